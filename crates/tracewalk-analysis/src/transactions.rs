//! The points of program flow at which the fate of a transaction's instructions is decided.
//!
//! ```text
//! started ─ … ─ committed                   the instructions count
//! started ─ … ─ failed                      the processor undid them
//! started ─ … ─ trace lost, or its end      no commit is known: they do not count
//! ```
//!
//! A failure discards everything since the most recent start (Arm Architecture Reference Manual, D4.3.11.3). Only the outermost
//! transaction has a start and an end in the trace. A trace unit that can no longer follow a transaction, as in an overflow,
//! reports a failure, whatever happens to the transaction; trace that is lost is treated in the same way. A filter that leaves out
//! part of a transaction does not end it: its end is traced if any of its instructions is (D4.3.3.1.2).

use tracewalk::directive::{BeginReason, Transaction};
use tracewalk::flow::{Element, EventKind, GapReason};

/// A point at which the fate of a transaction is decided, or a transaction begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// A transaction begins, or is under way. If one is open, its end is missing.
    Begins,
    /// The open transaction took effect.
    Commits,
    /// The processor undid the open transaction.
    Fails,
    /// Trace was lost, or may be wrong since the last proof of the position: how the open transaction ended is unknown.
    IsLost,
}

impl Turn {
    /// The turn that an element takes; `None` if it decides nothing.
    #[inline]
    pub(crate) const fn of(element: &Element) -> Option<Self> {
        match element {
            Element::Block(_) | Element::Proof(_) => None,
            Element::Gap(gap) => {
                if gap.doubt || matches!(gap.reason, GapReason::TraceLost) {
                    Some(Self::IsLost)
                } else {
                    None
                }
            }
            Element::Event(event) => match event.kind {
                EventKind::Transaction(Transaction::Started | Transaction::UnderWay) => Some(Self::Begins),
                EventKind::Transaction(Transaction::Committed) => Some(Self::Commits),
                EventKind::Transaction(Transaction::Failed) => Some(Self::Fails),
                EventKind::TraceOn(BeginReason::Overflow) => Some(Self::IsLost),
                _ => None,
            },
        }
    }

    /// Whether the instructions of the transaction that is open before it count.
    #[inline]
    pub(crate) const fn commits(self) -> bool {
        matches!(self, Self::Commits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{block, event, gap, taken};
    use tracewalk::flow::Gap;
    use tracewalk::ids::{Address, Isa, Location};

    #[test]
    fn lost_trace_decides_and_trace_that_was_filtered_out_does_not() {
        let of = |element| Turn::of(&element);
        let transaction = |transaction| of(event(EventKind::Transaction(transaction)));
        assert_eq!(transaction(Transaction::Started), Some(Turn::Begins));
        assert_eq!(transaction(Transaction::UnderWay), Some(Turn::Begins));
        assert_eq!(transaction(Transaction::Committed), Some(Turn::Commits));
        assert_eq!(transaction(Transaction::Failed), Some(Turn::Fails));
        assert_eq!(of(event(EventKind::TraceOn(BeginReason::Overflow))), Some(Turn::IsLost));
        assert_eq!(of(event(EventKind::TraceOn(BeginReason::Enabled))), None);
        assert_eq!(of(gap(GapReason::TraceLost)), Some(Turn::IsLost));
        let nowhere = gap(GapReason::NoCode(Location::new(Address::new(0x100), Isa::A64)));
        assert_eq!(of(nowhere), None);
        let Element::Gap(nowhere) = nowhere else { unreachable!("gap() makes a gap") };
        assert_eq!(of(Element::Gap(Gap { doubt: true, ..nowhere })), Some(Turn::IsLost));
        assert_eq!(of(block(0x100, 0x104, taken())), None);
    }
}
