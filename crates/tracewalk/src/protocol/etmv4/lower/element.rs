//! What the trace says, one element after the other.

use crate::directive::{Instrumentation, Transaction};
use crate::ids::Address;
use crate::protocol::etmv4::address::{AddressUnit, SentAddress};
use crate::protocol::etmv4::packet::Context;

/// Something that the trace says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) enum Element {
    /// A P0 instruction.
    Atom {
        executed: bool,
    },
    /// The address is a return address, and the target of the branch before if `is_target`.
    Exception {
        number: u16,
        is_target: bool,
        place: Place,
    },
    /// The processor was reset.
    Reset,
    /// Instructions on an unknown path, and where execution went on.
    Q {
        count: Option<u64>,
        then: Place,
    },
    /// Execution went straight to this instruction, which was executed or taken.
    Source(Place),
    /// A transaction begins, where that is a P0 element.
    TransactionStart,
    /// A P0 element that flow need not know.
    Nothing,
    /// Where execution goes on.
    Address(Place),
    Context(Context),
    TraceOn {
        overflowed: bool,
    },
    TraceInfo,
    ExceptionReturn,
    Transaction(Transaction),
    Events(u8),
    Instrumentation(Instrumentation),
    Timestamp(u64),
    Cycles(u64),
}

impl Element {
    /// Whether it happened whatever is cancelled.
    pub(super) const fn is_certain(self) -> bool {
        matches!(self, Self::Timestamp(_) | Self::Cycles(_) | Self::Events(_) | Self::Instrumentation(_))
    }
}

/// An address, and its information about the instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Place {
    pub(super) address: Address,
    pub(super) alignment: AddressUnit,
}

impl Place {
    /// The place that was sent, unless its base is unknown.
    pub(super) const fn of(sent: SentAddress) -> Option<Self> {
        match sent.address {
            Some(address) => Some(Self { address, alignment: sent.alignment }),
            None => None,
        }
    }
}

/// The queue cannot be what the trace unit's is: packets were lost or damaged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Impossible;
