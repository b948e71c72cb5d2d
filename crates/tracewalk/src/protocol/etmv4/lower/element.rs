//! The elements that packets stand for.

use crate::directive::{Instrumentation, Transaction, Waypoints};
use crate::ids::Address;
use crate::protocol::etmv4::address::{AddressUnit, SentAddress};
use crate::protocol::etmv4::packet::Context;

/// An element of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) enum Element {
    /// P0 instructions, one or more.
    Atoms(Waypoints),
    /// The address is a return address, and the target of the branch before if `is_target`.
    Exception {
        number: u16,
        is_target: bool,
        place: Place,
    },
    /// The processor was reset.
    Reset,
    /// Instructions on an unknown path, and the place where execution continued.
    Q {
        count: Option<u64>,
        then: Place,
    },
    /// Execution went straight to this instruction, which was executed or taken.
    Source(Place),
    /// The start of a transaction, if that is a P0 element.
    TransactionStart,
    /// A P0 element without meaning for flow.
    Nothing,
    /// The place where execution continues.
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
    /// Whether the element happened even if the P0 element before it is cancelled.
    pub(super) const fn is_certain(self) -> bool {
        matches!(self, Self::Timestamp(_) | Self::Cycles(_) | Self::Events(_) | Self::Instrumentation(_))
    }
}

/// An address with its alignment.
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

/// The queue contradicts the trace unit's: packets were lost or damaged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Impossible;
