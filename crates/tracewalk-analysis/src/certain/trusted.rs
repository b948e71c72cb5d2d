//! Program flow without elements in doubt.

use std::collections::VecDeque;
use std::io;

use tracewalk::flow::{Element, Event, EventKind, Gap, GapReason};
use tracewalk::span::Span;

use super::{Doubt, DoubtChange};
use crate::record::FlowRecord;

/// Hands on records in order, once nothing can put them in doubt.
///
/// A record waits until the position is proven after it, or for [`Doubt::REACH`] bytes of trace, so that memory is bounded. Gaps
/// in the trace, beginnings of tracing, the current context, and where transactions begin and end are always handed on. A contradiction
/// that casts doubt becomes two gaps: lost trace from the first element that is left out, and the contradiction itself.
#[derive(Debug, Default)]
pub struct Trusted {
    doubt: Doubt,
    waiting: VecDeque<FlowRecord>,
    /// The newest context that was reported in a stretch in doubt.
    context: Option<FlowRecord>,
    /// The number of instructions that were left out.
    left_out: u64,
}

impl Trusted {
    /// Takes the next record; calls `take` with the records that are certain now.
    ///
    /// # Errors
    ///
    /// The first error of `take`.
    pub fn record(
        &mut self,
        record: FlowRecord,
        take: &mut impl FnMut(FlowRecord) -> io::Result<()>,
    ) -> io::Result<()> {
        match self.doubt.element(&record.element, || record.at) {
            Some(DoubtChange::Begins { since, .. }) => {
                let (certain, doubtful) =
                    std::mem::take(&mut self.waiting).into_iter().partition::<Vec<_>, _>(|waiting| {
                        // What the end of a transaction decides is before the gap that follows it.
                        waiting.element.span().start < since || is_of_transaction(&waiting.element)
                    });
                certain.into_iter().try_for_each(&mut *take)?;
                let first = doubtful.first().unwrap_or(&record);
                let (at, span) = (first.at, Span::new(first.element.span().start, 0));
                let lost = Gap { reason: GapReason::TraceLost, span, doubt: false };
                // After a lone contradiction, readers would assume that the trace continues at once.
                if let Element::Gap(Gap { reason: GapReason::Contradiction(_), .. }) = record.element {
                    take(FlowRecord { element: Element::Gap(lost), at })?;
                }
                doubtful.into_iter().try_for_each(|waiting| self.in_doubt(waiting, take))?;
                take(record)
            }
            Some(DoubtChange::Ends(_)) => {
                self.context.take().map_or(Ok(()), &mut *take)?;
                take(record)
            }
            None if self.doubt.is_open() => self.in_doubt(record, take),
            None => self.wait(record, take),
        }
    }

    /// As [`Trusted::record`], but hands on elements in doubt as well. `take` receives each record, and whether it is in doubt.
    ///
    /// # Errors
    ///
    /// The first error of `take`.
    pub fn weigh(
        &mut self,
        record: FlowRecord,
        take: &mut impl FnMut(FlowRecord, bool) -> io::Result<()>,
    ) -> io::Result<()> {
        match self.doubt.element(&record.element, || record.at) {
            Some(DoubtChange::Begins { since, .. }) => {
                let mut waiting = std::mem::take(&mut self.waiting).into_iter();
                waiting.try_for_each(|waiting| take(waiting, waiting.element.span().start >= since))?;
                take(record, false)
            }
            Some(DoubtChange::Ends(_)) => take(record, false),
            None if self.doubt.is_open() => take(record, true),
            None => self.wait(record, &mut |record| take(record, false)),
        }
    }

    /// Hands on the records that are certain now, and lets this one wait.
    fn wait(
        &mut self,
        record: FlowRecord,
        take: &mut impl FnMut(FlowRecord) -> io::Result<()>,
    ) -> io::Result<()> {
        let start = record.element.span().start.0;
        let proven = match record.element {
            Element::Proof(_) => start,
            _ => start.saturating_sub(Doubt::REACH),
        };
        let is_proven = |waiting: &FlowRecord| waiting.element.span().start.0 < proven;
        while self.waiting.front().is_some_and(is_proven) {
            self.waiting.pop_front().map_or(Ok(()), &mut *take)?;
        }
        self.waiting.push_back(record);
        Ok(())
    }

    /// Continues with this doubt.
    pub(crate) const fn go_on(&mut self, doubt: Doubt) {
        self.doubt = doubt;
    }

    /// The trace ends here: nothing can put the waiting records in doubt.
    ///
    /// # Errors
    ///
    /// The first error of `take`.
    pub fn finish(&mut self, take: &mut impl FnMut(FlowRecord) -> io::Result<()>) -> io::Result<()> {
        self.waiting.drain(..).try_for_each(take)
    }

    /// The number of instructions that were left out so far.
    #[must_use]
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Takes a record that is in doubt.
    fn in_doubt(
        &mut self,
        record: FlowRecord,
        take: &mut impl FnMut(FlowRecord) -> io::Result<()>,
    ) -> io::Result<()> {
        match record.element {
            // Execution reached this address.
            Element::Gap(Gap { reason: GapReason::NoCode(_) | GapReason::Undecodable(..), .. }) => Ok(()),
            Element::Gap(_) | Element::Proof(_) => take(record),
            Element::Event(Event { kind: EventKind::Context { .. }, .. }) => {
                self.context = Some(record);
                Ok(())
            }
            Element::Event(Event { kind: EventKind::TraceOn(_) | EventKind::Transaction(_), .. }) => {
                take(record)
            }
            Element::Event(_) => Ok(()),
            Element::Block(block) => {
                self.left_out += u64::from(block.instructions);
                Ok(())
            }
        }
    }
}

const fn is_of_transaction(element: &Element) -> bool {
    matches!(element, Element::Event(Event { kind: EventKind::Transaction(_), .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{block, taken};
    use tracewalk::directive::{BeginReason, Transaction};
    use tracewalk::flow::{Gap, GapReason, Proof};
    use tracewalk::span::{CaptureOffset, Span, StreamOffset};

    const CONTEXT: EventKind = EventKind::Context {
        context_id: None,
        vmid: None,
        privilege: tracewalk::ids::Privilege::of(tracewalk::ids::SecurityState::NonSecure),
    };

    fn span(at: u64) -> Span {
        Span::new(StreamOffset(at), 1)
    }

    fn run(at: u64) -> Element {
        let Element::Block(mut block) = block(0x100, 0x104, taken()) else {
            unreachable!("block() makes one")
        };
        block.span = span(at);
        Element::Block(block)
    }

    fn gap(at: u64, doubt: bool) -> Element {
        Element::Gap(Gap { reason: GapReason::TraceLost, span: span(at), doubt })
    }

    fn proof(at: u64) -> Element {
        Element::Proof(Proof { at: None, span: span(at) })
    }

    /// The places of the elements that are handed on, without proofs, and the number of instructions that are left out.
    fn handed_on(elements: &[Element]) -> (Vec<u64>, u64) {
        let mut trusted = Trusted::default();
        let mut places = Vec::new();
        let mut take = |record: FlowRecord| {
            if !matches!(record.element, Element::Proof(_)) {
                places.push(record.element.span().start.0);
            }
            Ok(())
        };
        for &element in elements {
            trusted.record(FlowRecord { element, at: CaptureOffset(0) }, &mut take).unwrap();
        }
        trusted.finish(&mut take).unwrap();
        (places, trusted.left_out())
    }

    #[test]
    fn from_the_last_proof_to_the_next_one_only_gaps_beginnings_and_the_context_are_handed_on() {
        let context = Element::Event(Event { kind: CONTEXT, span: span(13) });
        let begin = EventKind::TraceOn(BeginReason::Synchronised);
        let begin = Element::Event(Event { kind: begin, span: span(18) });
        let elements = [
            run(1),
            proof(10),
            run(11),
            gap(12, false),
            context,
            run(14),
            gap(15, true),
            run(16),
            gap(17, true),
            begin,
            run(19),
        ];
        let after = [proof(20), run(21)];
        // Four blocks of two instructions each.
        assert_eq!(handed_on(&[&elements[..], &after].concat()), (vec![1, 12, 15, 17, 18, 13, 21], 8));
    }

    #[test]
    fn a_contradiction_does_not_stand_where_the_trace_goes_on_at_once() {
        let at = tracewalk::ids::Location::new(tracewalk::ids::Address::new(0x100), tracewalk::ids::Isa::T32);
        let contradiction = GapReason::Contradiction(tracewalk::flow::Contradiction::NoBranchInReach(at));
        let contradiction = Element::Gap(Gap { reason: contradiction, span: span(15), doubt: true });
        let no_code = Element::Gap(Gap { reason: GapReason::NoCode(at), span: span(12), doubt: false });
        // Trace is lost from 10 on, and execution may have reached a place without code.
        let elements = [run(2), proof(10), no_code, run(13), contradiction, run(16), proof(20), run(21)];
        assert_eq!(handed_on(&elements), (vec![2, 10, 15, 21], 4));
    }

    #[test]
    fn where_a_transaction_ends_is_handed_on_before_the_gap_that_casts_doubt() {
        let transaction =
            |at, kind| Element::Event(Event { kind: EventKind::Transaction(kind), span: span(at) });
        let elements = [
            transaction(1, Transaction::Started),
            run(2),
            proof(10),
            run(11),
            transaction(12, Transaction::Committed),
            gap(15, true),
            transaction(16, Transaction::UnderWay),
            run(17),
            proof(20),
            run(21),
        ];
        assert_eq!(handed_on(&elements), (vec![1, 2, 12, 15, 16, 21], 4));
    }

    #[test]
    fn an_announced_loss_casts_no_doubt_and_doubt_has_a_reach() {
        assert_eq!(handed_on(&[proof(1), run(2), gap(3, false), run(4)]), (vec![2, 3, 4], 0));
        let far = Doubt::REACH + 10;
        let elements = [run(2), run(9), run(11), gap(far, true), run(far + 1)];
        assert_eq!(handed_on(&elements), (vec![2, 9, far], 4));
    }
}
