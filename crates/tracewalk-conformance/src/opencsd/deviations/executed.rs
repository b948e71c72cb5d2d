//! Deviations in the executed path: addresses, instruction sets, exceptions, atoms.

use tracewalk::ids::Isa;
use tracewalk::source::SourceConfig;

use crate::opencsd::compare::Difference;
use crate::opencsd::deviation::{Deviation, Evidence};
use crate::opencsd::model::{Packet, Step, Value, What};
use crate::opencsd::recognise::{
    differs_in, is_cancelled, is_data_with_address, is_etmv3, is_m_profile, one_each, only_theirs,
    resolve_gray, traces_data_addresses,
};

/// The deviations, in the order in which they are tried.
pub(super) const EXECUTED: &[Deviation] = &[
    Deviation {
        id: "m-exception-codes",
        opencsd: "reports the packet's code instead of the exception's number",
        specification: "IHI 0014Q, table 7.11: for ARMv7-M the codes 1 to 9 and from 0x10 on stand for other numbers; for example, 8 stands for IRQ0, whose number is 16",
        recognised_by: "M profile; both have one exception, and OpenCSD's number is the code of our packet there",
        evidence: Evidence::Readings,
        recognises: |difference, place| {
            let number = |step: &Step| match step.what {
                What::Exception { number, .. } => Some(u64::from(number)),
                _ => None,
            };
            let Some((_, theirs)) = one_each(difference) else { return false };
            let code = place.packet(theirs.from).and_then(|branch| branch.number("exception"));
            is_m_profile(place.config) && code.is_some() && number(theirs) == code
        },
    },
    Deviation {
        id: "deprecated-exception-codes",
        opencsd: "reads the three-bit code of the deprecated form as the four-bit code of the other form, and 0 as no exception",
        specification: "IHI 0014Q, table 7.7: the form has its own codes; 0 stands for the exceptions that the vector's address distinguishes",
        recognised_by: "our packet has such a code, and OpenCSD's number is the code, or OpenCSD has no exception if the code is 0",
        evidence: Evidence::Readings,
        recognises: |difference, place| {
            let code = |step: &Step| place.packet(step.from).and_then(|packet| packet.number("eee"));
            let is_code = |step: &Step| matches!(step.what, What::Exception { number, .. } if code(step) == Some(number.into()));
            let Difference::Flow { ours, theirs, .. } = difference else { return false };
            match (&ours[..], &theirs[..]) {
                ([ours], []) => {
                    let is_other = |their: &Step| their.from == ours.from && is_code(their);
                    matches!(ours.what, What::Exception { .. })
                        && (code(ours) == Some(0) || place.their_steps().any(is_other))
                }
                ([] | [_], [theirs]) => is_code(theirs),
                _ => false,
            }
        },
    },
    Deviation {
        id: "undefined-return",
        opencsd: "reports that execution continues after an undefined instruction",
        specification: "DDI 0406C, B1.8.1: the preferred return address of an Undefined Instruction exception is that of the instruction",
        recognised_by: "both have exception 9, and our return address is one instruction before OpenCSD's",
        evidence: Evidence::Readings,
        recognises: |difference, _| match one_each(difference).map(|(ours, theirs)| (ours.what, theirs.what))
        {
            Some((
                What::Exception { number: 9, preferred_return: Some(ours) },
                What::Exception { number: 9, preferred_return: Some(theirs) },
            )) => [2, 4].contains(&theirs.get().wrapping_sub(ours.get())),
            _ => false,
        },
    },
    Deviation {
        id: "gray-timestamps",
        opencsd: "reads Gray codes as binary numbers",
        specification: "IHI 0035B, 4.5.9 (timestamps): PFTv1.0 sends Gray codes, and so do later units if ETMCCER[28] is clear",
        recognised_by: "only the timestamps differ, and OpenCSD's, decoded from Gray code, equals ours",
        evidence: Evidence::Readings,
        recognises: |difference, _| match difference {
            Difference::Packet { ours, theirs } => {
                let resolved = theirs.number("timestamp").map(|code| resolve_gray(code & ((1 << 48) - 1)));
                resolved.is_some()
                    && ours.number("timestamp") == resolved
                    && differs_in(ours, theirs) == ["timestamp"]
            }
            _ => false,
        },
    },
    Deviation {
        id: "isa-behind-blx",
        opencsd: "starts each P-header with the instruction set of the last address packet",
        specification: "IHI 0014Q, 7.3 (direct branches): the target's instruction set follows from the instruction",
        recognised_by: "ETMv3; both have the same address with different instruction sets, and our last change of instruction set has no packet",
        evidence: Evidence::Readings,
        recognises: |difference, place| {
            let Difference::Flow { ours, theirs, between } = difference else { return false };
            let firsts = || ours.first().into_iter().chain(theirs.first()).map(|step| step.from);
            let (first, last) = (firsts().min().unwrap_or(between.1), firsts().max().unwrap_or(between.1));
            is_etmv3(place.config) && place.changed_isa_unsaid(last, first)
        },
    },
    Deviation {
        id: "isa-behind-failed-blx",
        opencsd: "changes the instruction set after a BLX that was not executed",
        specification: "IHI 0035B, 4.5.3 (atoms): after N execution continues with the next instruction",
        recognised_by: "PFT; both have the same address with different instruction sets, after an instruction that failed in ours",
        evidence: Evidence::Readings,
        recognises: |difference, place| {
            let Difference::Flow { ours, theirs, .. } = difference else { return false };
            let (Some(first), Some(their)) = (ours.first(), theirs.first()) else { return false };
            let (What::Instruction { at, .. }, What::Instruction { at: their, .. }) =
                (first.what, their.what)
            else {
                return false;
            };
            let before = place.steps().take_while(|step| *step != first).last();
            !is_etmv3(place.config)
                && at.address == their.address
                && at.isa != their.isa
                && before.is_some_and(|step| matches!(step.what, What::Instruction { passed: false, .. }))
        },
    },
    Deviation {
        id: "alternative-isa",
        opencsd: "does not take AltISA from an I-sync packet: Thumb stays Thumb after the next short address",
        specification: "IHI 0014Q, 7.10.5, and IHI 0035B, 4.5.2: AltISA holds until a packet changes it",
        recognised_by: "one has ThumbEE and the other Thumb, in this packet or in one before it, back to the last I-sync",
        evidence: Evidence::Readings,
        recognises: |difference, place| {
            let is_ee = |packet: &Packet| {
                packet.fields.get("isa") == Some(&Value::Text(Isa::T32EE.name().to_owned()))
            };
            match difference {
                Difference::Packet { ours, theirs } => {
                    is_ee(ours) != is_ee(theirs) && differs_in(ours, theirs) == ["isa"]
                }
                Difference::Flow { ours, .. } => {
                    let is_ee_step = |step: &Step| matches!(step.what, What::Instruction { at, .. } if at.isa == Isa::T32EE);
                    place.packets().chain(place.their_packets()).any(is_ee) || ours.iter().any(is_ee_step)
                }
                Difference::Cut { .. } => false,
            }
        },
    },
    Deviation {
        id: "jazelle-addresses",
        opencsd: "clears bit 0 of an I-sync's address in Jazelle state",
        specification: "DDI 0406C, A2.10: bytecodes are byte-aligned; IHI 0014Q, 7.10.5, does not exclude bit 0 from the address",
        recognised_by: "both have an ETMv3 I-sync in Jazelle state, and only bit 0 of the address differs, which OpenCSD clears",
        evidence: Evidence::Readings,
        recognises: |difference, place| match difference {
            Difference::Packet { ours, theirs } => {
                let jazelle = Value::Text(Isa::Jazelle.name().to_owned());
                is_etmv3(place.config)
                    && ours.kind == "i_sync"
                    && ours.fields.get("isa") == Some(&jazelle)
                    && differs_in(ours, theirs) == ["addr"]
                    && ours.number("addr").map(|address| address & !1) == theirs.number("addr")
            }
            _ => false,
        },
    },
    Deviation {
        id: "hyp-without-virtualization",
        opencsd: "reads Hyp from I-sync packets only if ETMCCER has the Virtualization Extensions, and otherwise keeps that of an earlier branch packet",
        specification: "IHI 0014Q, 7.10.5 and table 7.9: the bit is Hyp in both, and the value in an I-sync holds until a branch packet changes it",
        recognised_by: "ETMv3; ETMCCER[26] is clear, only Hyp differs, and ours is that of this I-sync packet or the last one",
        evidence: Evidence::Readings,
        recognises: |difference, place| match difference {
            Difference::Packet { ours, theirs } => {
                const VIRTUALIZATION: u32 = 1 << 26;
                is_etmv3(place.config)
                    && place.registers.etmccer & VIRTUALIZATION == 0
                    && ours.number("hyp") == place.hyp_of_i_sync(ours.at)
                    && ours.number("hyp") != Some(theirs.number("hyp").unwrap_or(0))
                    && differs_in(ours, theirs).iter().all(|field| *field == "hyp")
                    && ours.number("cancel").unwrap_or(0) == theirs.number("cancel").unwrap_or(0)
            }
            _ => false,
        },
    },
    Deviation {
        id: "load-in-progress",
        opencsd: "takes the second address of an I-sync packet with LSiP for a branch packet",
        specification: "IHI 0014Q, 7.10.5 (I-sync, LSiP): the second address is part of the packet; the first is that of an executed instruction",
        recognised_by: "our I-sync packet has LSiP; its first address is OpenCSD's, and its second one that of OpenCSD's branch packet",
        evidence: Evidence::Readings,
        recognises: |difference, place| {
            let in_progress = |packet: &&Packet| packet.number("lsip_addr").is_some();
            match difference {
                Difference::Packet { ours, theirs } => {
                    ours.number("lsip_addr") == theirs.number("addr") && theirs.number("addr").is_some()
                }
                Difference::Cut { ours, theirs, .. } => match &theirs[..] {
                    [branch] if ours.is_empty() && branch.kind == "branch" => {
                        let i_sync = place.packets().filter(in_progress).last();
                        i_sync.is_some_and(|i_sync| i_sync.number("addr") == branch.number("addr"))
                    }
                    _ => false,
                },
                Difference::Flow { ours, theirs, .. } => {
                    let lsip = |at: u64| place.packet(at).as_ref().is_some_and(in_progress);
                    theirs.is_empty() && ours.iter().any(|step| lsip(step.from))
                }
            }
        },
    },
    Deviation {
        id: "data-addresses",
        opencsd: "loses bits of data addresses, and so misreads where the value begins",
        specification: "IHI 0014Q, 7.4.2 (data addresses): 1 to 5 bytes, in which bit 7 means that another one follows",
        recognised_by: "data addresses are traced, and the first packet that differs is a data packet",
        evidence: Evidence::Readings,
        recognises: |difference, place| match difference {
            Difference::Packet { ours, .. } => {
                traces_data_addresses(place.config) && is_data_with_address(ours)
            }
            Difference::Cut { ours, .. } => {
                let first = ours.first().map_or(0, |packet| packet.at);
                let before = place.packets().filter(|packet| packet.at < first).last();
                traces_data_addresses(place.config)
                    && before.into_iter().chain(ours.first()).any(is_data_with_address)
            }
            Difference::Flow { .. } => false,
        },
    },
    Deviation {
        id: "cancelled-return",
        opencsd: "reports the return from an exception although another exception replaced it",
        specification: "IHI 0014Q, 7.3.5 (Can after an exception return packet, ARMv7-M): the return is cancelled, not the instruction",
        recognised_by: "only OpenCSD has exception returns, and the next exception after each one cancels, with no atom between them",
        evidence: Evidence::Readings,
        recognises: |difference, place| {
            only_theirs(difference).is_some_and(|steps| {
                steps.iter().all(|step| step.what == What::ExceptionReturn && is_cancelled(step, place))
            })
        },
    },
    Deviation {
        id: "cancelled-instruction",
        opencsd: "cancels an instruction only if its atom is alone in its P-header and directly before the branch packet",
        specification: "IHI 0014Q, 7.3.5 (Can): the most recently traced instruction was not completed, whatever packets have followed it",
        recognised_by: "ETMv3; only OpenCSD has the instruction, and the next exception after it cancels, with no atom between them",
        evidence: Evidence::Readings,
        recognises: |difference, place| {
            only_theirs(difference).is_some_and(|steps| {
                matches!(steps, [step] if matches!(step.what, What::Instruction { .. }) && is_cancelled(step, place))
            })
        },
    },
    Deviation {
        id: "end-of-region",
        opencsd: "reads four bytes if a 16-bit instruction ends the region, and finds no code there",
        specification: "DDI 0406C, A6.1: the first halfword determines whether there is a second one",
        recognised_by: "only we have instructions, and before the first or with it the image ends after a halfword",
        evidence: Evidence::Readings,
        recognises: |difference, place| {
            let Difference::Flow { ours, theirs, between } = difference else { return false };
            let nowhere =
                |step: &&Step| step.what == What::Unknown && step.from >= between.0 && step.from <= between.1;
            theirs.is_empty()
                && place.their_steps().any(|step| nowhere(&step))
                && place.steps().filter(|step| step.from <= between.1).any(|step| place.ends_region(step))
                && ours.iter().all(|step| matches!(step.what, What::Instruction { .. }))
        },
    },
    Deviation {
        id: "empty-p-header",
        opencsd: "prints an empty range, with the addresses of an earlier range, for a P-header without atoms",
        specification: "IHI 0014Q, table 7.2: 0b10000000 has neither E nor N atoms",
        recognised_by: "only OpenCSD has instructions, and our packets there are P-headers without atoms",
        evidence: Evidence::Readings,
        recognises: |difference, place| {
            let empty = |at: u64| {
                let atoms = place.packet(at).and_then(|packet| packet.fields.get("atoms"));
                atoms == Some(&Value::Text(String::new()))
            };
            only_theirs(difference).is_some_and(|steps| steps.iter().all(|step| empty(step.from)))
        },
    },
    Deviation {
        id: "two-atoms-per-instruction",
        opencsd: "takes each atom for one instruction, regardless of ETMIDR",
        specification: "IHI 0014Q, ETMIDR[18]: if it is clear, a 32-bit Thumb instruction is traced as two 16-bit instructions",
        recognised_by: "ETMIDR[18] is clear, and the program executed a 32-bit Thumb instruction here",
        evidence: Evidence::Readings,
        recognises: |difference, place| {
            matches!(difference, Difference::Flow { .. })
                && matches!(place.config, SourceConfig::Etmv3(config) if config.two_atoms_per_thumb_pair())
                && place.has_wide_thumb()
        },
    },
    Deviation {
        id: "exception-zero",
        opencsd: "takes exception bytes with number 0 for an exception, and drops the branch",
        specification: "IHI 0035B, 4.5.4 (branch address packets): number 0 is not an exception: the packet is a branch that changes the security state",
        recognised_by: "PFT; OpenCSD has an exception with number 0, or the instruction that it dropped for that exception",
        evidence: Evidence::Readings,
        recognises: |difference, place| {
            let Difference::Flow { ours, theirs, .. } = difference else { return false };
            let zero = |at: u64| place.packet(at).is_some_and(|packet| packet.number("exception") == Some(0));
            !is_etmv3(place.config) && ours.iter().chain(theirs).all(|step| zero(step.from))
        },
    },
];
