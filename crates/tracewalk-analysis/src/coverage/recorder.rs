//! Recording the coverage of one source, element by element.

use tracewalk::directive::BeginReason;
use tracewalk::flow::{Block, Element, EventKind, Gap, GapReason, Passage};
use tracewalk::ids::Address;
use tracewalk::span::{CaptureOffset, StreamOffset};

use super::blocks::{Conditions, Packed};
use super::collected::{Part, SourceSummary};
use super::losses::{Loss, Losses};
use super::once::Once;
use super::undo::{Counts, UndoLog};
use crate::{Doubt, DoubtChange, Doubtful, Doubting, InDoubt, sink};

/// Counts the blocks of a source's elements, in parts in the order of the trace.
#[derive(Clone, Debug)]
pub struct Recorder {
    conditions: Conditions,
    /// All parts together.
    whole: RecordedPart,
}

/// The blocks of a part of a source's elements. The joined parts equal the whole.
#[derive(Clone, Debug, Default)]
pub struct RecordedPart {
    doubtful: Doubtful,
    counts: Counts,
    log: UndoLog,
    doubt: Doubt,
    /// Whether execution is followed and not in doubt, so that only the blocks of a passage matter.
    is_followed: bool,
    /// How many instructions are in doubt.
    in_doubt: u64,
    /// The offset from which counts of earlier parts are in doubt, if this part found doubt.
    doubted_before: Option<StreamOffset>,
    /// The last place in this part at which the position was proven.
    proven: Option<StreamOffset>,
    /// The place of the first block's proof.
    first_block: Option<StreamOffset>,
    /// The place at which execution was lost before the first block, if this part lost it.
    lost_at_first: Option<Loss>,
    losses: Losses,
    /// The place at which execution was lost, until it is found again.
    lost: Option<Loss>,
}

impl Recorder {
    /// A recorder for a source that records these conditions.
    #[must_use]
    pub fn new(conditions: Conditions, doubtful: Doubtful) -> Self {
        Self { conditions, whole: RecordedPart::new(doubtful) }
    }

    /// An empty part.
    #[must_use]
    pub fn part(&self) -> RecordedPart {
        RecordedPart::new(self.whole.doubtful)
    }

    /// Takes the source's next element.
    #[inline]
    pub fn element(&mut self, element: &Element) {
        self.whole.count_element(element);
    }

    /// Takes the source's next element, which is a block of another program.
    #[inline]
    pub fn another_program(&mut self, block: &Block) {
        if !self.whole.drops() {
            self.whole.see(block);
        }
    }

    /// Takes the source's next part.
    pub fn join(&mut self, part: RecordedPart) {
        self.whole.join(part);
    }

    /// The coverage; `capture`, `source` and `protocol` name its origin, and `bytes` is the amount of trace.
    #[must_use]
    pub fn finish(self, capture: &str, source: &str, protocol: &str, bytes: u64) -> Part {
        let Self { conditions, mut whole } = self;
        let end = StreamOffset(bytes);
        if let Some(loss) = whole.lost_at_first {
            whole.losses.count(loss, whole.first_block.unwrap_or(end));
        }
        whole.found(end);
        whole.losses.in_doubt = InDoubt::of(whole.in_doubt, whole.doubtful);
        let (blocks, instructions) = whole.counts.finish();
        let source = SourceSummary {
            capture: capture.to_owned(),
            source: source.to_owned(),
            protocol: protocol.to_owned(),
            conditions,
            bytes,
            instructions,
            losses: whole.losses,
        };
        Part { source, blocks: blocks.finish(conditions) }
    }
}

impl sink::Part for RecordedPart {
    fn lend(&mut self) -> Self {
        Self { counts: self.counts.lend(), ..Self::new(self.doubtful) }
    }

    fn learn(&mut self, lent: &mut Self) {
        self.counts.learn(&mut lent.counts);
    }

    fn begin(&mut self, doubting: Doubting) {
        self.doubt = doubting.doubt();
        self.note_state();
    }

    #[inline]
    fn element(&mut self, element: &Element, _: impl FnOnce() -> CaptureOffset) {
        self.count_element(element);
    }

    #[inline]
    fn passage(&mut self, passage: &Passage<'_>, _: impl FnMut(StreamOffset) -> CaptureOffset) {
        let is_counted = self.is_followed && self.counts.count_passage(passage, &mut self.log);
        if !is_counted {
            passage.elements().for_each(|element| self.count_element(&element));
        }
    }
}

impl RecordedPart {
    fn new(doubtful: Doubtful) -> Self {
        Self { doubtful, ..Self::default() }
    }

    /// Whether further elements are left out.
    #[inline]
    fn drops(&self) -> bool {
        self.doubt.is_open() && self.doubtful == Doubtful::Drop
    }

    #[inline]
    fn count_element(&mut self, element: &Element) {
        match element {
            Element::Block(block) => {
                if self.doubt.is_open() {
                    self.in_doubt += u64::from(block.instructions);
                }
                if !self.drops() {
                    self.see(block);
                    let once = Once { block: Packed::of(block), instructions: block.instructions };
                    self.counts.count(block.span.start, once, &mut self.log);
                }
            }
            Element::Event(event) => {
                if let EventKind::TraceOn(reason) = event.kind {
                    self.losses.begins += 1;
                    self.losses.overflows += u64::from(reason == BeginReason::Overflow);
                }
            }
            Element::Gap(gap) => {
                self.gap(gap);
                self.note_doubt(element);
            }
            Element::Proof(_) => self.note_doubt(element),
        }
    }

    /// Takes back the counts that a gap puts in doubt; drops the undo log when the position is proven.
    fn note_doubt(&mut self, element: &Element) {
        if let Some(DoubtChange::Begins { since }) = self.doubt.element(element) {
            self.in_doubt += self.log.doubt(since, &mut self.counts, self.doubtful);
            if self.proven.is_none() {
                self.doubted_before = Some(since);
            }
        }
        if let Element::Proof(proof) = element {
            self.log.proven(proof.span.start);
            self.proven = Some(proof.span.start);
        }
        self.note_state();
    }

    fn note_state(&mut self) {
        self.is_followed = self.lost.is_none() && self.first_block.is_some() && !self.doubt.is_open();
    }

    /// Adds the part that follows this one.
    fn join(&mut self, next: Self) {
        if let Some(since) = next.doubted_before {
            self.in_doubt += self.log.doubt(since, &mut self.counts, self.doubtful);
        }
        if let Some(at) = next.proven {
            self.log.proven(at);
            self.proven = next.proven;
        }
        self.counts.join(next.counts, next.log, &mut self.log);
        self.in_doubt += next.in_doubt;
        self.doubt = next.doubt;
        let open = if self.first_block.is_some() { &mut self.lost } else { &mut self.lost_at_first };
        // Execution that is lost already cannot be lost again.
        *open = open.or(next.lost_at_first);
        if let Some(first) = next.first_block {
            if self.first_block.is_some() {
                self.found(first);
            } else {
                self.first_block = Some(first);
            }
            self.lost = next.lost;
        }
        self.losses.add(&next.losses);
    }

    /// A block shows the position of execution.
    #[inline]
    fn see(&mut self, block: &Block) {
        if self.lost.is_some() || self.first_block.is_none() {
            self.found_at(block);
        }
    }

    #[cold]
    fn gap(&mut self, gap: &Gap) {
        let lost = if self.first_block.is_some() { &mut self.lost } else { &mut self.lost_at_first };
        if let GapReason::NoCode(at) = gap.reason {
            let page = Address::new(at.address.get() & !(Losses::PAGE - 1));
            *self.losses.no_image.entry(page).or_default() += 1;
        } else {
            lost.get_or_insert((gap.span.start, gap.reason));
        }
        self.note_state();
    }

    /// Execution is found at a block.
    #[cold]
    fn found_at(&mut self, block: &Block) {
        self.first_block.get_or_insert(block.span.start);
        self.found(block.span.start);
        self.note_state();
    }

    /// Execution is found at `at`.
    fn found(&mut self, at: StreamOffset) {
        if let Some(loss) = self.lost.take() {
            self.losses.count(loss, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coverage::Lost;
    use crate::samples::{SPAN, block, event, gap, taken};
    use tracewalk::flow::{Contradiction, Proof};
    use tracewalk::ids::{Isa, Location};
    use tracewalk::span::Span;

    fn elements() -> Vec<Element> {
        let at = |address| Location::new(Address::from(address), Isa::T32);
        let nowhere = |address| gap(GapReason::NoCode(at(address)));
        let later = |element, start| {
            let Element::Block(mut block) = element else { unreachable!("block() makes a block") };
            block.span.start = StreamOffset(start);
            Element::Block(block)
        };
        vec![
            event(EventKind::TraceOn(BeginReason::Enabled)),
            block(0x100, 0x104, taken()),
            gap(GapReason::TraceLost),
            gap(GapReason::AddressUnknown),
            event(EventKind::TraceOn(BeginReason::Overflow)),
            later(block(0x100, 0x104, taken()), 53),
            gap(GapReason::Contradiction(Contradiction::NoBranchInReach(at(0x100)))),
            block(0x100, 0x104, taken()),
            gap(GapReason::TraceLost),
            nowhere(0x2000_0004),
            nowhere(0x2000_1ffe),
            nowhere(0xffff_fffe),
        ]
    }

    #[test]
    fn what_a_trace_cannot_record_is_counted_by_its_reason() {
        let elements = elements();
        let mut recorder = Recorder::new(Conditions::OfEvery, Doubtful::Drop);
        for element in &elements {
            recorder.element(element);
        }
        let part = recorder.finish("a capture", "0x10", "etmv3", 99);
        let losses = &part.source.losses;
        assert_eq!((losses.begins, losses.overflows), (2, 1));
        // From the loss of execution to its recovery, once at 53 and once at the end.
        assert_eq!(
            losses.trace_lost,
            Lost { stretches: 2, bytes: (53 - SPAN.start.0) + (99 - SPAN.start.0) }
        );
        assert_eq!(losses.contradictions, Lost { stretches: 1, bytes: 0 });
        assert_eq!(losses.address_unknown, Lost::default());
        assert_eq!(
            losses.regions_without_image(),
            [(Address::new(0x2000_0000), 0x2000_2000, 2), (Address::new(0xffff_f000), 1 << 32, 1)]
        );
        assert_eq!((part.source.instructions, part.source.bytes), (6, 99));
    }

    #[test]
    fn where_parts_are_cut_does_not_show() {
        let mut elements = elements();
        // Execution is lost at the beginning, too.
        elements.insert(0, gap(GapReason::AddressUnknown));
        elements.extend(self::elements());
        let record = |cuts: &[usize]| {
            let mut recorder = Recorder::new(Conditions::OfEvery, Doubtful::Drop);
            let mut part = RecordedPart::default();
            for (index, element) in elements.iter().enumerate() {
                if cuts.contains(&index) {
                    recorder.join(std::mem::take(&mut part));
                }
                part.count_element(element);
            }
            recorder.join(part);
            recorder.finish("a capture", "-", "etmv3", 99)
        };
        let mut whole = Recorder::new(Conditions::OfEvery, Doubtful::Drop);
        elements.iter().for_each(|element| whole.element(element));
        let whole = whole.finish("a capture", "-", "etmv3", 99);
        assert_eq!(record(&(0..elements.len()).collect::<Vec<_>>()), whole);
        for first in 0..elements.len() {
            for second in first..elements.len() {
                assert_eq!(record(&[first, second]), whole, "cut at {first} and {second}");
            }
        }
    }

    fn doubtful_elements() -> Vec<Element> {
        let span = |at| Span::new(StreamOffset(at), 1);
        let run = |at, start| {
            let Element::Block(mut block) = block(start, start + 4, taken()) else {
                unreachable!("block() makes a block")
            };
            block.span = span(at);
            Element::Block(block)
        };
        let gap = |at, doubt| Element::Gap(Gap { reason: GapReason::TraceLost, span: span(at), doubt });
        let proof = |at| Element::Proof(Proof { at: None, span: span(at) });
        let far = 100 + Doubt::REACH;
        vec![
            run(1, 0x100),
            gap(2, false),
            run(3, 0x100),
            proof(10),
            run(11, 0x200),
            run(12, 0x200),
            gap(13, true),
            run(14, 0x200),
            gap(15, true),
            run(16, 0x200),
            proof(20),
            run(21, 0x100),
            proof(30),
            run(31, 0x300),
            run(far, 0x200),
            gap(far + 60, true),
            run(far + 70, 0x200),
            proof(far + 80),
            run(far + 81, 0x100),
        ]
    }

    #[test]
    fn what_is_in_doubt_is_left_out_or_counted_wherever_parts_are_cut() {
        let elements = doubtful_elements();
        let record = |doubtful, cuts: &[usize]| {
            let mut recorder = Recorder::new(Conditions::OfEvery, doubtful);
            let (mut part, mut doubting) = (recorder.part(), Doubting::default());
            for (index, element) in elements.iter().enumerate() {
                if cuts.contains(&index) {
                    recorder.join(std::mem::replace(&mut part, recorder.part()));
                    sink::Part::begin(&mut part, doubting);
                }
                part.count_element(element);
                doubting.element(element, || CaptureOffset(0));
            }
            recorder.join(part);
            recorder.finish("a capture", "-", "etmv3", Doubt::REACH + 300)
        };
        // Each block has two instructions; all blocks at 0x200 are in doubt.
        let cases = [
            (Doubtful::Drop, vec![(0x100, 4), (0x300, 1)], InDoubt { left_out: 12, counted: 0 }),
            (Doubtful::Keep, vec![(0x100, 4), (0x200, 6), (0x300, 1)], InDoubt { left_out: 0, counted: 12 }),
        ];
        for (doubtful, expected, in_doubt) in cases {
            let mut recorder = Recorder::new(Conditions::OfEvery, doubtful);
            elements.iter().for_each(|element| recorder.element(element));
            let whole = recorder.finish("a capture", "-", "etmv3", Doubt::REACH + 300);
            let blocks =
                whole.blocks.iter().map(|(key, count)| (key.start.get(), *count)).collect::<Vec<_>>();
            assert_eq!((blocks, whole.source.losses.in_doubt), (expected, in_doubt));
            for first in 0..elements.len() {
                for second in first..elements.len() {
                    assert_eq!(record(doubtful, &[first, second]), whole, "cut at {first} and {second}");
                }
            }
        }
    }
}
