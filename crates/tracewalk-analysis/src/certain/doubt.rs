//! Elements that may be wrong although the trace is well-formed at their place.
//!
//! ```text
//! proof ─ … ─ damage, unnoticed ─ … ─ contradiction ─ … ─ proof
//!       └──────── in doubt ─────────┘└─── in doubt ────┘
//! ```
//!
//! Atoms and compressed addresses have no redundancy: after a changed byte, flow follows real code on a path that was not taken,
//! until it reaches a contradiction. The damage may lie anywhere since the position was last [proven](tracewalk::flow::Proof), and may affect
//! everything up to the next proof.

use tracewalk::flow::{Element, Gap};
use tracewalk::span::{CaptureOffset, StreamOffset};

/// Finds the stretches of trace that are in doubt, element by element.
///
/// ```
/// use tracewalk::flow::{Element, Gap, GapReason, Proof};
/// use tracewalk::span::{CaptureOffset, Span, StreamOffset};
/// use tracewalk_analysis::{Doubt, DoubtChange};
///
/// let span = |at| Span::new(StreamOffset(at), 1);
/// let mut doubt = Doubt::default();
/// assert_eq!(doubt.element(&Element::Proof(Proof { at: None, span: span(100) }), || CaptureOffset(120)), None);
/// let gap = Gap { reason: GapReason::AddressUnknown, span: span(150), doubt: true };
/// let begins = Some(DoubtChange::Begins { since: StreamOffset(100), from: CaptureOffset(120) });
/// assert_eq!(doubt.element(&Element::Gap(gap), || CaptureOffset(180)), begins);
/// let ends = doubt.element(&Element::Proof(Proof { at: None, span: span(200) }), || CaptureOffset(240));
/// assert!(matches!(ends, Some(DoubtChange::Ends(stretch)) if stretch.bytes == 100));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Doubt {
    /// The place at which the position was last proven.
    proven: StreamOffset,
    proven_at: CaptureOffset,
    /// The offset since which elements are in doubt; `None` if they are not.
    since: Option<StreamOffset>,
}

/// A change that an element makes to the doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoubtChange {
    /// Elements from trace at `since` or later are in doubt, including those to come.
    Begins {
        /// The first offset in doubt.
        since: StreamOffset,
        /// The last proof of the position in the capture.
        from: CaptureOffset,
    },
    /// Further elements are not in doubt.
    Ends(DoubtfulStretch),
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

impl Doubt {
    /// The furthest that doubt reaches back, in bytes of trace. Trace units prove the position every few hundred or thousand
    /// bytes. Some are set up not to, and the amount that can be taken back has to be bounded.
    pub const REACH: u64 = 1 << 16;

    /// Before the first element.
    #[must_use]
    pub const fn new() -> Self {
        Self { proven: StreamOffset(0), proven_at: CaptureOffset(0), since: None }
    }

    /// Looks at the next element. `at` returns the capture offset of the trace that proves it.
    #[inline]
    pub fn element(&mut self, element: &Element, at: impl FnOnce() -> CaptureOffset) -> Option<DoubtChange> {
        match element {
            Element::Gap(gap) => self.gap(gap),
            Element::Proof(proof) => {
                let (proven, proven_at) = (proof.span.start, at());
                let stretch = self.at_end(proven, proven_at);
                *self = Self { proven, proven_at, since: None };
                stretch.map(DoubtChange::Ends)
            }
            Element::Block(_) | Element::Event(_) => None,
        }
    }

    /// Whether further elements are in doubt.
    #[inline]
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.since.is_some()
    }

    /// The stretch in doubt, if the trace ends here.
    #[must_use]
    pub fn at_end(&self, end: StreamOffset, at: CaptureOffset) -> Option<DoubtfulStretch> {
        let bytes = |since: StreamOffset| end.0.saturating_sub(since.0);
        self.since.map(|since| DoubtfulStretch { from: self.proven_at, to: at, bytes: bytes(since) })
    }

    /// The same with its offset in the capture replaced.
    #[must_use]
    pub fn placed(self, place: impl FnOnce(CaptureOffset) -> CaptureOffset) -> Self {
        Self { proven_at: place(self.proven_at), ..self }
    }

    const fn gap(&mut self, gap: &Gap) -> Option<DoubtChange> {
        if !gap.doubt || self.is_open() {
            return None;
        }
        let reach = gap.span.start.0.saturating_sub(Self::REACH);
        let since = if reach > self.proven.0 { StreamOffset(reach) } else { self.proven };
        self.since = Some(since);
        Some(DoubtChange::Begins { since, from: self.proven_at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Doubts;
    use tracewalk::flow::{GapReason, Proof};
    use tracewalk::span::Span;

    fn span(at: u64) -> Span {
        Span::new(StreamOffset(at), 1)
    }

    fn gap(at: u64, doubt: bool) -> Element {
        Element::Gap(Gap { reason: GapReason::TraceLost, span: span(at), doubt })
    }

    fn proof(at: u64) -> Element {
        Element::Proof(Proof { at: None, span: span(at) })
    }

    #[test]
    fn stretches_reach_from_the_last_proof_to_the_next() {
        let elements = [
            gap(2, true),
            // In doubt already.
            gap(3, true),
            proof(10),
            // What the trace unit reports itself.
            gap(12, false),
            proof(20),
            gap(25, true),
            proof(30),
            proof(40),
            gap(40 + Doubt::REACH + 5, true),
        ];
        let (mut doubt, mut doubts, mut begins) = (Doubt::default(), Doubts::default(), Vec::new());
        for element in elements {
            match doubt.element(&element, || CaptureOffset(element.span().start.0 * 2)) {
                Some(DoubtChange::Begins { since, from }) => begins.push((since.0, from.0)),
                Some(DoubtChange::Ends(stretch)) => doubts.add(stretch),
                None => {}
            }
            assert_eq!(doubt.is_open(), begins.len() as u64 > doubts.count);
        }
        let end = StreamOffset(60 + Doubt::REACH);
        doubts.add(doubt.at_end(end, CaptureOffset(1 << 20)).unwrap());
        assert_eq!(begins, [(0, 0), (20, 40), (45, 80)]);
        let places = doubts.first.iter().map(|stretch| (stretch.from.0, stretch.to.0, stretch.bytes));
        assert_eq!(places.collect::<Vec<_>>(), [(0, 20, 10), (40, 60, 10), (80, 1 << 20, Doubt::REACH + 15)]);
        assert_eq!((doubts.count, doubts.bytes), (3, Doubt::REACH + 35));
    }

    #[test]
    fn doubt_goes_no_farther_back_than_its_reach() {
        for (at, since) in [(Doubt::REACH, 0), (Doubt::REACH + 1, 1), (3 * Doubt::REACH, 2 * Doubt::REACH)] {
            let begins = DoubtChange::Begins { since: StreamOffset(since), from: CaptureOffset(0) };
            assert_eq!(Doubt::new().element(&gap(at, true), CaptureOffset::default), Some(begins));
        }
    }
}
