//! Recording the coverage of one source, element by element.

use std::collections::BTreeMap;

use tracewalk::directive::BeginReason;
use tracewalk::flow::{Block, Element, EventKind, Gap, GapReason, Passage};
use tracewalk::ids::Address;
use tracewalk::span::{CaptureOffset, StreamOffset};

use super::blocks::{BlockCounter, Conditions};
use super::collected::{Part, SourceSummary};
use super::passages::PassageCounter;
use crate::drive;

/// Counts what a source's elements say, in parts that come in the order of the trace.
#[derive(Clone, Debug)]
pub struct Recorder {
    conditions: Conditions,
    /// All parts together.
    whole: RecordedPart,
}

/// What a part of a source's elements says. Joined, the parts say what all elements together do.
#[derive(Clone, Debug, Default)]
pub struct RecordedPart {
    blocks: BlockCounter,
    passages: PassageCounter,
    instructions: u64,
    /// Where the first block is proven.
    first_block: Option<StreamOffset>,
    /// Where execution was lost in front of the first block, if it was not lost already.
    lost_at_first: Option<Loss>,
    losses: Losses,
    /// Where execution was lost, as long as it was not found again.
    lost: Option<Loss>,
}

/// What a trace cannot tell: code that seems not to have run may have run here.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Losses {
    /// How often tracing began; everything before and between was not traced.
    pub begins: u64,
    /// How often of these tracing began again because the trace unit could not send fast enough.
    pub overflows: u64,
    /// Trace was malformed or lost.
    pub trace_lost: Lost,
    /// The trace does not say where execution went.
    pub address_unknown: Lost,
    /// Trace and image disagree.
    pub contradictions: Lost,
    /// Code that cannot be decoded.
    pub undecodable: Lost,
    /// How often execution reached code that no image holds, by pages of [`Losses::PAGE`] bytes, each named by its first
    /// address. Pages, because a damaged trace may name any number of addresses.
    pub no_image: BTreeMap<Address, u64>,
}

/// Stretches of a trace: each from where execution was lost to where it was found again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lost {
    /// How many.
    pub stretches: u64,
    /// How many bytes of trace they have together.
    pub bytes: u64,
}

/// Where execution was lost, and for which reason.
type Loss = (StreamOffset, GapReason);

impl Recorder {
    /// A recorder for a source that tells so much of conditions.
    #[must_use]
    pub fn new(conditions: Conditions) -> Self {
        Self { conditions, whole: RecordedPart::default() }
    }

    /// Takes the source's next element.
    #[inline]
    pub fn element(&mut self, element: &Element) {
        self.whole.count_element(element);
    }

    /// Takes the source's next element where it is a block of another program.
    #[inline]
    pub fn another_program(&mut self, block: &Block) {
        self.whole.see(block);
    }

    /// Takes the source's next part.
    pub fn join(&mut self, part: RecordedPart) {
        self.whole.join(part);
    }

    /// What was recorded; `capture`, `source` and `protocol` say of what, and `bytes` how much trace it was.
    #[must_use]
    pub fn finish(self, capture: &str, source: &str, protocol: &str, bytes: u64) -> Part {
        let Self { conditions, mut whole } = self;
        let end = StreamOffset(bytes);
        if let Some(loss) = whole.lost_at_first {
            whole.losses.count(loss, whole.first_block.unwrap_or(end));
        }
        whole.found(end);
        let source = SourceSummary {
            capture: capture.to_owned(),
            source: source.to_owned(),
            protocol: protocol.to_owned(),
            conditions,
            bytes,
            instructions: whole.instructions,
            losses: whole.losses,
        };
        whole.passages.count_blocks(&mut whole.blocks);
        Part { source, blocks: whole.blocks.finish(conditions) }
    }
}

impl drive::Part for RecordedPart {
    #[inline]
    fn element(&mut self, element: &Element, _: impl FnOnce() -> CaptureOffset) {
        self.count_element(element);
    }

    #[inline]
    fn passage(&mut self, passage: &Passage<'_>, _: impl FnMut(StreamOffset) -> CaptureOffset) {
        let is_followed = self.lost.is_none() && self.first_block.is_some();
        if is_followed && self.passages.count(passage) {
            self.instructions += u64::from(passage.totals().instructions);
        } else {
            passage.elements().for_each(|element| self.count_element(&element));
        }
    }
}

impl RecordedPart {
    #[inline]
    fn count_element(&mut self, element: &Element) {
        match element {
            Element::Block(block) => {
                self.see(block);
                self.instructions += u64::from(block.instructions);
                self.blocks.count(block);
            }
            Element::Event(event) => {
                if let EventKind::TraceOn(reason) = event.kind {
                    self.losses.begins += 1;
                    self.losses.overflows += u64::from(reason == BeginReason::Overflow);
                }
            }
            Element::Gap(gap) => self.gap(gap),
            Element::Proof(_) => {}
        }
    }

    /// Adds the part that follows this one.
    fn join(&mut self, next: Self) {
        self.blocks.join(next.blocks);
        next.passages.count_blocks(&mut self.blocks);
        self.instructions += next.instructions;
        let open = if self.first_block.is_some() { &mut self.lost } else { &mut self.lost_at_first };
        // What is lost already cannot be lost again.
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

    /// Execution is known where a block is.
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
            let page = Address(at.address.0 & !(Losses::PAGE - 1));
            *self.losses.no_image.entry(page).or_default() += 1;
        } else {
            lost.get_or_insert((gap.span.start, gap.reason));
        }
    }

    /// Execution is known from a block on.
    #[cold]
    fn found_at(&mut self, block: &Block) {
        self.first_block.get_or_insert(block.span.start);
        self.found(block.span.start);
    }

    /// Execution is known again from `at` on.
    fn found(&mut self, at: StreamOffset) {
        if let Some(loss) = self.lost.take() {
            self.losses.count(loss, at);
        }
    }
}

impl Losses {
    /// The size of the pages by which [`Losses::no_image`] counts.
    pub const PAGE: u32 = 1 << 12;

    /// Counts a stretch of trace, from where execution was lost to where it was found again.
    fn count(&mut self, (since, reason): Loss, found: StreamOffset) {
        let lost = match reason {
            GapReason::AddressUnknown => &mut self.address_unknown,
            GapReason::Contradiction(_) => &mut self.contradictions,
            GapReason::Undecodable(..) => &mut self.undecodable,
            GapReason::TraceLost | GapReason::NoCode(_) => &mut self.trace_lost,
        };
        lost.stretches += 1;
        lost.bytes += found.0.saturating_sub(since.0);
    }

    /// Adds what another trace cannot tell.
    pub fn add(&mut self, other: &Self) {
        self.begins = self.begins.saturating_add(other.begins);
        self.overflows = self.overflows.saturating_add(other.overflows);
        self.trace_lost.add(other.trace_lost);
        self.address_unknown.add(other.address_unknown);
        self.contradictions.add(other.contradictions);
        self.undecodable.add(other.undecodable);
        for (&page, &count) in &other.no_image {
            let sum = self.no_image.entry(page).or_default();
            *sum = sum.saturating_add(count);
        }
    }

    /// The pages that no image holds, those that touch joined: first address, the address behind as a number that may be
    /// 2^32, and how often execution went there.
    #[must_use]
    pub fn regions_without_image(&self) -> Vec<(Address, u64, u64)> {
        let mut regions: Vec<(Address, u64, u64)> = Vec::new();
        for (&page, &count) in &self.no_image {
            let end = u64::from(page.0) + u64::from(Self::PAGE);
            match regions.last_mut() {
                Some(last) if last.1 == u64::from(page.0) => {
                    last.1 = end;
                    last.2 = last.2.saturating_add(count);
                }
                _ => regions.push((page, end, count)),
            }
        }
        regions
    }
}

impl Lost {
    const fn add(&mut self, other: Self) {
        self.stretches = self.stretches.saturating_add(other.stretches);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::samples::{SPAN, block, event, gap, taken};
    use tracewalk::flow::Contradiction;
    use tracewalk::ids::{Isa, Location};

    fn elements() -> Vec<Element> {
        let at = |address| Location::new(Address(address), Isa::T32);
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
    fn what_a_trace_cannot_tell_is_counted_by_its_reason() {
        let elements = elements();
        let mut recorder = Recorder::new(Conditions::OfEvery);
        for element in &elements {
            recorder.element(element);
        }
        let part = recorder.finish("a capture", "0x10", "etmv3", 99);
        let losses = &part.source.losses;
        assert_eq!((losses.begins, losses.overflows), (2, 1));
        // From where it was lost to where it was found again, once at 53 and once at the end.
        assert_eq!(
            losses.trace_lost,
            Lost { stretches: 2, bytes: (53 - SPAN.start.0) + (99 - SPAN.start.0) }
        );
        assert_eq!(losses.contradictions, Lost { stretches: 1, bytes: 0 });
        assert_eq!(losses.address_unknown, Lost::default());
        assert_eq!(
            losses.regions_without_image(),
            [(Address(0x2000_0000), 0x2000_2000, 2), (Address(0xffff_f000), 1 << 32, 1)]
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
            let mut recorder = Recorder::new(Conditions::OfEvery);
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
        let mut whole = Recorder::new(Conditions::OfEvery);
        elements.iter().for_each(|element| whole.element(element));
        let whole = whole.finish("a capture", "-", "etmv3", 99);
        assert_eq!(record(&(0..elements.len()).collect::<Vec<_>>()), whole);
        for first in 0..elements.len() {
            for second in first..elements.len() {
                assert_eq!(record(&[first, second]), whole, "cut at {first} and {second}");
            }
        }
    }
}
