//! Deviations in ETMv4 and ETE.

use tracewalk::ids::Address;

use crate::opencsd::deviation::{Deviation, Evidence};
use crate::opencsd::model::{Step, What};
use crate::opencsd::recognise::{is_etmv4_of_m_profile, one_each, only_theirs};

/// M profile's return address if an exception has none.
const NO_RETURN_ADDRESS: Address = Address::new(0xffff_fffe);

/// TYPE of the first interrupt whose TYPE differs from the architecture's exception number.
const TYPE_OF_IRQ: u16 = 0x200;

/// The deviations, in the order in which they are tried.
pub(super) const ETMV4: &[Deviation] = &[
    Deviation {
        id: "m-exception-types",
        opencsd: "reports the packet's TYPE instead of the exception's number",
        specification: "IHI 0064, exceptions of M profile: TYPE 0x208 and up are IRQ8 and up, whose numbers are 24 and up",
        recognised_by: "M profile; both have one exception, ours is IRQ8 or higher, and OpenCSD's number is the TYPE",
        evidence: Evidence::Readings,
        recognises: |difference, place| match one_each(difference) {
            Some((ours, theirs)) => {
                let (Some((number, _)), Some((their_type, _))) = (exception(ours), exception(theirs)) else {
                    return false;
                };
                is_etmv4_of_m_profile(place.config)
                    && number >= 24
                    && their_type == TYPE_OF_IRQ + (number - 16)
            }
            None => false,
        },
    },
    Deviation {
        id: "no-return-address",
        opencsd: "takes 0xfffffffe for the return address of a tail-chained exception, and walks there from the last known place",
        specification: "IHI 0064, exceptions of M profile: 0xfffffffe means that there is no return address and that nothing was executed",
        recognised_by: "M profile; OpenCSD's exception returns to 0xfffffffe and ours has no return address, or only OpenCSD has instructions from the packet of such an exception",
        evidence: Evidence::Readings,
        recognises: |difference, place| {
            if !is_etmv4_of_m_profile(place.config) {
                return false;
            }
            if let Some((ours, theirs)) = one_each(difference) {
                return exception(theirs).zip(exception(ours)).is_some_and(|(theirs, ours)| {
                    theirs == (ours.0, Some(NO_RETURN_ADDRESS)) && ours.1.is_none()
                });
            }
            let is_of_such = |step: &Step| {
                matches!(step.what, What::Instruction { .. })
                    && place.their_steps().any(|other| {
                        other.from == step.from
                            && exception(other).is_some_and(|(_, to)| to == Some(NO_RETURN_ADDRESS))
                    })
            };
            only_theirs(difference).is_some_and(|steps| !steps.is_empty() && steps.iter().all(is_of_such))
        },
    },
    Deviation {
        id: "outcomes-without-atoms",
        opencsd: "reports each instruction up to a Q or source address element as passed",
        specification: "IHI 0064: the instructions of a Q element have no atoms, and execution continues at its address; before a source address no branch was taken (ETE)",
        recognised_by: "both have the same instruction, from a Q or source address packet; ours failed, and OpenCSD's passed",
        evidence: Evidence::Readings,
        recognises: |difference, place| match one_each(difference).map(|(ours, theirs)| (ours.what, theirs)) {
            Some((What::Instruction { at, passed: false }, theirs)) => {
                theirs.what == What::Instruction { at, passed: true }
                    && place
                        .packet(theirs.from)
                        .is_some_and(|packet| ["q", "source_address"].contains(&packet.kind))
            }
            _ => false,
        },
    },
];

fn exception(step: &Step) -> Option<(u16, Option<Address>)> {
    match step.what {
        What::Exception { number, preferred_return } => Some((number, preferred_return)),
        _ => None,
    }
}
