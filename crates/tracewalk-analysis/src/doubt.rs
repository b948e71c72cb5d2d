//! Elements that may be wrong although the trace is well-formed at their place.
//!
//! ```text
//! proof ─ … ─ damage, unnoticed ─ … ─ contradiction ─ … ─ proof
//!       └──────── in doubt ─────────┘└─── in doubt ────┘
//! ```
//!
//! Atoms and compressed addresses have no redundancy: after a changed byte, flow follows real code on a path that was not taken,
//! until it reaches a contradiction. The damage may lie anywhere since the position was last [proven](Proof), and may affect
//! everything up to the next proof.

use tracewalk::flow::{Element, Gap, Proof};
use tracewalk::span::StreamOffset;

/// Finds the stretches of trace that are in doubt, element by element.
///
/// ```
/// use tracewalk::flow::{Element, Gap, GapReason, Proof};
/// use tracewalk::span::{Span, StreamOffset};
/// use tracewalk_analysis::{Doubt, DoubtChange};
///
/// let span = |at| Span::new(StreamOffset(at), 1);
/// let mut doubt = Doubt::default();
/// assert_eq!(doubt.element(&Element::Proof(Proof { at: None, span: span(100) })), None);
/// let gap = Gap { reason: GapReason::AddressUnknown, span: span(150), doubt: true };
/// let begins = Some(DoubtChange::Begins { since: StreamOffset(100) });
/// assert_eq!(doubt.element(&Element::Gap(gap)), begins);
/// assert_eq!(doubt.element(&Element::Proof(Proof { at: None, span: span(200) })), Some(DoubtChange::Ends));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Doubt {
    proven: StreamOffset,
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
    },
    /// Further elements are not in doubt.
    Ends,
}

impl Doubt {
    /// The furthest that doubt reaches back, in bytes of trace. Trace units prove the position every few hundred or thousand
    /// bytes. Some are set up not to, and the amount that can be taken back has to be bounded.
    pub const REACH: u64 = 1 << 16;

    /// Before the first element.
    #[must_use]
    pub const fn new() -> Self {
        Self { proven: StreamOffset(0), since: None }
    }

    /// Looks at the next element.
    #[inline]
    pub const fn element(&mut self, element: &Element) -> Option<DoubtChange> {
        match element {
            Element::Gap(gap) => self.gap(gap),
            Element::Proof(proof) => self.proof(proof),
            Element::Block(_) | Element::Event(_) => None,
        }
    }

    /// Whether further elements are in doubt.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.since.is_some()
    }

    /// The first offset in doubt; `None` if further elements are not in doubt.
    #[must_use]
    pub const fn since(&self) -> Option<StreamOffset> {
        self.since
    }

    /// The offset from which the trace is not proven yet.
    #[must_use]
    pub const fn proven(&self) -> StreamOffset {
        self.proven
    }

    const fn gap(&mut self, gap: &Gap) -> Option<DoubtChange> {
        if !gap.doubt || self.is_open() {
            return None;
        }
        let reach = gap.span.start.0.saturating_sub(Self::REACH);
        let since = if reach > self.proven.0 { StreamOffset(reach) } else { self.proven };
        self.since = Some(since);
        Some(DoubtChange::Begins { since })
    }

    const fn proof(&mut self, proof: &Proof) -> Option<DoubtChange> {
        self.proven = proof.span.start;
        let was_open = self.is_open();
        self.since = None;
        if was_open { Some(DoubtChange::Ends) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracewalk::flow::GapReason;
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

    fn begins(since: u64) -> Option<DoubtChange> {
        Some(DoubtChange::Begins { since: StreamOffset(since) })
    }

    #[test]
    fn doubt_goes_back_to_the_last_proof_and_lasts_up_to_the_next() {
        let mut doubt = Doubt::new();
        assert_eq!((doubt.element(&proof(100)), doubt.proven()), (None, StreamOffset(100)));
        assert_eq!(doubt.element(&gap(120, false)), None, "what the trace unit reports itself");
        assert_eq!((doubt.is_open(), doubt.since()), (false, None));
        assert_eq!(doubt.element(&gap(150, true)), begins(100));
        assert_eq!((doubt.is_open(), doubt.since()), (true, Some(StreamOffset(100))));
        assert_eq!(doubt.element(&gap(160, true)), None, "it is in doubt already");
        assert_eq!(doubt.element(&proof(200)), Some(DoubtChange::Ends));
        assert_eq!((doubt.is_open(), doubt.since(), doubt.proven()), (false, None, StreamOffset(200)));
        assert_eq!(doubt.element(&gap(250, true)), begins(200));
    }

    #[test]
    fn doubt_goes_no_farther_back_than_its_reach() {
        for (at, since) in [(Doubt::REACH, 0), (Doubt::REACH + 1, 1), (3 * Doubt::REACH, 2 * Doubt::REACH)] {
            assert_eq!(Doubt::new().element(&gap(at, true)), begins(since));
        }
        let mut doubt = Doubt::new();
        doubt.element(&proof(1000));
        assert_eq!(doubt.element(&gap(1000 + Doubt::REACH + 7, true)), begins(1007));
    }
}
