//! The stretches of a trace that are in doubt.

use serde::{Deserialize, Serialize};
use tracewalk::flow::Element;
use tracewalk::span::{CaptureOffset, StreamOffset};

use crate::doubt::{Doubt, DoubtChange};

/// Whether elements in doubt are left out or kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Doubtful {
    /// Elements in doubt are left out.
    #[default]
    Drop,
    /// Elements in doubt are treated like all others.
    Keep,
}

/// Instructions that are in doubt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct InDoubt {
    /// The number that was left out.
    pub left_out: u64,
    /// The number that was treated like the others.
    pub counted: u64,
}

impl InDoubt {
    /// The number of instructions in doubt, left out and counted.
    #[must_use]
    pub const fn of(instructions: u64, doubtful: Doubtful) -> Self {
        match doubtful {
            Doubtful::Drop => Self { left_out: instructions, counted: 0 },
            Doubtful::Keep => Self { left_out: 0, counted: instructions },
        }
    }

    /// Adds those of another trace.
    pub const fn add(&mut self, other: Self) {
        self.left_out = self.left_out.saturating_add(other.left_out);
        self.counted = self.counted.saturating_add(other.counted);
    }
}

/// Tracks whether elements are in doubt, and since which offset of the capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Doubting {
    doubt: Doubt,
    /// The place at which the position was last proven.
    proven: CaptureOffset,
}

/// A stretch of trace that is in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DoubtfulStretch {
    /// The start in the capture: the last proof of the position before the stretch.
    pub from: CaptureOffset,
    /// The end in the capture: the next proof of the position.
    pub to: CaptureOffset,
    /// The bytes of the source's trace that are in doubt: all in between, or those that [doubt reaches](Doubt::REACH).
    pub bytes: u64,
}

/// A change that an element makes to the doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoubtfulChange {
    /// Elements from this byte of the capture on are in doubt, including those to come.
    Begins(CaptureOffset),
    /// Further elements are not in doubt.
    Ends(DoubtfulStretch),
}

/// The stretches in doubt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Doubts {
    /// How many there are.
    pub count: u64,
    /// How many bytes of the source's trace they have.
    pub bytes: u64,
    /// The first ones.
    pub first: Vec<DoubtfulStretch>,
}

/// How many stretches are kept.
const KEPT: usize = 5;

impl Doubting {
    /// Before the first element.
    #[must_use]
    pub const fn new() -> Self {
        Self { doubt: Doubt::new(), proven: CaptureOffset(0) }
    }

    /// Takes the next element. `at` returns the capture offset of the trace that proves it.
    pub fn element(
        &mut self,
        element: &Element,
        at: impl FnOnce() -> CaptureOffset,
    ) -> Option<DoubtfulChange> {
        let Element::Proof(proof) = element else {
            let begins = self.doubt.element(element).is_some();
            return begins.then_some(DoubtfulChange::Begins(self.proven));
        };
        let since = self.doubt.since();
        let from = std::mem::replace(&mut self.proven, at());
        let ends = self.doubt.element(element) == Some(DoubtChange::Ends);
        since
            .filter(|_| ends)
            .map(|since| DoubtfulChange::Ends(stretch((since, from), (proof.span.start, self.proven))))
    }

    /// Whether further elements are in doubt.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.doubt.is_open()
    }

    /// The same without places in the capture.
    #[must_use]
    pub const fn doubt(&self) -> Doubt {
        self.doubt
    }

    /// The stretch in doubt, if the trace ends here.
    #[must_use]
    pub fn at_end(&self, end: StreamOffset, at: CaptureOffset) -> Option<DoubtfulStretch> {
        self.doubt.since().map(|since| stretch((since, self.proven), (end, at)))
    }

    /// The same with each offset in the capture replaced.
    #[must_use]
    pub fn placed(self, place: impl FnOnce(CaptureOffset) -> CaptureOffset) -> Self {
        Self { proven: place(self.proven), ..self }
    }
}

fn stretch(from: (StreamOffset, CaptureOffset), to: (StreamOffset, CaptureOffset)) -> DoubtfulStretch {
    DoubtfulStretch { from: from.1, to: to.1, bytes: to.0.0.saturating_sub(from.0.0) }
}

impl Doubts {
    /// Adds the next stretch.
    pub fn add(&mut self, stretch: DoubtfulStretch) {
        self.count += 1;
        self.bytes += stretch.bytes;
        if self.first.len() < KEPT {
            self.first.push(stretch);
        }
    }

    /// Adds those of the next part. `place` returns the file offset of a byte of the capture.
    pub fn add_part(&mut self, part: &Self, place: impl Fn(CaptureOffset) -> CaptureOffset) {
        self.count += part.count;
        self.bytes += part.bytes;
        let first = part.first.iter().map(|stretch| DoubtfulStretch {
            from: place(stretch.from),
            to: place(stretch.to),
            ..*stretch
        });
        self.first.extend(first.take(KEPT.saturating_sub(self.first.len())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracewalk::flow::{Gap, GapReason, Proof};
    use tracewalk::span::Span;

    #[test]
    fn stretches_reach_from_the_last_proof_to_the_next() {
        let span = |at| Span::new(StreamOffset(at), 1);
        let gap = |at, doubt| Element::Gap(Gap { reason: GapReason::TraceLost, span: span(at), doubt });
        let proof = |at| Element::Proof(Proof { at: None, span: span(at) });
        let elements = [
            gap(2, true),
            gap(3, true),
            proof(10),
            gap(12, false),
            proof(20),
            gap(25, true),
            proof(30),
            proof(40),
            gap(40 + Doubt::REACH + 5, true),
        ];
        let (mut doubting, mut doubts, mut begins) = (Doubting::default(), Doubts::default(), Vec::new());
        for element in elements {
            match doubting.element(&element, || CaptureOffset(element.span().start.0 * 2)) {
                Some(DoubtfulChange::Begins(from)) => begins.push(from.0),
                Some(DoubtfulChange::Ends(stretch)) => doubts.add(stretch),
                None => {}
            }
        }
        let end = StreamOffset(60 + Doubt::REACH);
        doubts.add(doubting.at_end(end, CaptureOffset(1 << 20)).unwrap());
        assert_eq!(begins, [0, 40, 80]);
        let places = doubts.first.iter().map(|stretch| (stretch.from.0, stretch.to.0, stretch.bytes));
        assert_eq!(places.collect::<Vec<_>>(), [(0, 20, 10), (40, 60, 10), (80, 1 << 20, Doubt::REACH + 15)]);
        assert_eq!((doubts.count, doubts.bytes), (3, Doubt::REACH + 35));
    }
}
