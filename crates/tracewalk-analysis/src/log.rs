//! A record of what threads decoded, which one thread replays in order.
//!
//! ```text
//! decoding threads      a number for each passage and each block; everything else unchanged           Log
//! one thread            each by its number, or its elements one by one                                  Reader
//! ```
//!
//! Repeated execution takes eight bytes for each passage, and what a number means is worked out once. A number has the same meaning in all threads. Numbers are limited: once they are used up, passages without a number
//! are noted unchanged, until new numbers are given out.
//!
//! ```
//! use tracewalk_analysis::Doubtful;
//! use tracewalk_analysis::analysis::{Analysis as _, End};
//! use tracewalk_analysis::counts::Counting;
//! use tracewalk_analysis::drive::Spread;
//! use tracewalk_analysis::log::{Log, Noting, Reader};
//!
//! # use tracewalk::{ids::Address, program::Program, protocol::etmv3, source::SourceConfig};
//! # use tracewalk_analysis::drive::{Carrier, Follower, Input, NoProgress, Stretch};
//! # let config = SourceConfig::Etmv3(etmv3::Config::for_core("cortex-m3").expect("a known core"));
//! # let mut program = Program::new();
//! # program.add(Address::new(0x100), &[0x00, 0xbf, 0x00, 0xbf])?;
//! # let trace = [0, 0, 0, 0, 0, 0x80, 0x08, 0x21, 0x01, 0x01, 0x00, 0x00, 0x84, 0x84];
//! # let carrier = Carrier::Stretches(vec![Stretch::all(trace.len())]);
//! # let input = Input { capture: &trace, carrier, rest: None, progress: &NoProgress };
//! // `config`, `program` and `input` are made as in the example of `drive`.
//! // A trace of two instructions, decoded by two threads and counted by this one.
//! let (mut reader, mut counting) = (Reader::new(Doubtful::Drop, false), Counting::default());
//! let (mut follower, empty) = (Follower::new(&config, &program), Log::new(Noting::Passages));
//! let mut statistics = tracewalk_analysis::Statistics::default();
//! follower.flow_parts(&input, Spread::over(2), &empty, |gathered| {
//!     statistics.add(&gathered.statistics);
//!     reader.part(gathered.part, &mut counting)
//! })?;
//! reader.finish(&mut counting)?;
//! let counted = counting.answer(&End { statistics, complete: true });
//! assert_eq!(counted.counts[&(None, None)].instructions, 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod named;
mod numbers;
mod reader;

use std::sync::Arc;

use tracewalk::flow::{Block, Element, KeptPassage, Passage, Placing};
use tracewalk::span::{CaptureOffset, Span, StreamOffset};

use crate::quick::QuickMap;
use crate::sink::Part;
use named::Entry;
use numbers::{ById, Numbers};

pub(crate) use named::Named;
pub use numbers::Numbering;
pub use reader::Reader;

/// A part of a source's elements, noted in order.
#[derive(Debug)]
pub struct Log {
    numbering: Arc<Numbering>,
    noting: Noting,
    known: Box<Known>,
    /// The start of the first passage or block.
    base: Option<StreamOffset>,
    entries: Vec<Entry>,
    /// The places of passages and blocks in the capture, if they are noted.
    places: Vec<CaptureOffset>,
    others: Vec<Other>,
    waiting: Vec<(u32, Placing)>,
    /// The start of the last one.
    newest: StreamOffset,
}

/// The detail of the notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noting {
    /// The place of each element in the capture, not only of gaps and proofs. Passages are then split into their elements.
    Places,
    /// Passages.
    Passages,
}

/// An element that is noted unchanged.
#[derive(Clone, Copy, Debug)]
struct Other {
    /// The element's entry.
    entry: u32,
    element: Element,
    at: CaptureOffset,
}

/// A thread's copy of the numbers.
#[derive(Debug)]
struct Known {
    numbers: Arc<Numbers>,
    passages: ById,
    blocks: QuickMap<BlockContent, u32>,
    /// Set once there are no more numbers.
    is_full: bool,
}

/// The mark of a passage that is not plain, in place of a number.
const NO_NUMBER: u32 = u32::MAX;

/// A block without its place in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BlockContent(Block);

impl std::hash::Hash for BlockContent {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.start.get() ^ self.0.last.get().rotate_left(32));
        state.write_u64(self.0.span.end.0 ^ u64::from(self.0.instructions) << 32);
    }
}

impl Log {
    /// An empty log.
    #[must_use]
    pub fn new(noting: Noting) -> Self {
        Self::of(Arc::new(Numbering::default()), noting)
    }

    fn of(numbering: Arc<Numbering>, noting: Noting) -> Self {
        let known = Box::new(Known::of(numbering.current()));
        Self {
            numbering,
            noting,
            known,
            base: None,
            entries: Vec::new(),
            places: Vec::new(),
            others: Vec::new(),
            waiting: Vec::new(),
            newest: StreamOffset(0),
        }
    }

    #[inline]
    fn note(&mut self, number: Option<u32>, at: StreamOffset) -> bool {
        let base = *self.base.get_or_insert(at);
        let (Some(number), Ok(at)) = (number, u32::try_from(at.0.wrapping_sub(base.0))) else { return false };
        self.entries.push(Entry { number, at });
        self.newest = StreamOffset(base.0 + u64::from(at));
        true
    }

    #[cold]
    fn other(&mut self, element: &Element, at: CaptureOffset) {
        let entry = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        self.entries.push(Entry { number: Entry::OTHER, at: 0 });
        self.others.push(Other { entry, element: *element, at });
        self.newest = self.newest.max(element.span().start);
    }

    /// Gaps, and places where the position is proven.
    fn marks(&self) -> impl Iterator<Item = Other> {
        let is_mark = |other: &&Other| matches!(other.element, Element::Gap(_) | Element::Proof(_));
        self.others.iter().filter(is_mark).copied()
    }

    /// Notes a passage that is not plain, that cycles waited for, or that has no number yet.
    #[inline(never)]
    fn unusual(&mut self, passage: &Passage<'_>, mut at: impl FnMut(StreamOffset) -> CaptureOffset) {
        let (number, placing) = (self.known.number(passage), passage.placing());
        match number {
            Some(number) if placing.waits() => {
                self.entries.push(Entry { number: Entry::WAITING, at: 0 });
                self.waiting.push((number, placing));
                self.newest = placing.origin();
            }
            number if self.note(number, placing.origin()) => {}
            _ => passage.elements().for_each(|element| self.element(&element, || at(element.span().start))),
        }
    }
}

/// A copy is for another thread, and its tables are empty.
impl Clone for Log {
    fn clone(&self) -> Self {
        Self::of(Arc::clone(&self.numbering), self.noting)
    }
}

impl Part for Log {
    fn with_tables(&mut self) -> Self {
        let mut next = Self::of(Arc::clone(&self.numbering), self.noting);
        if Arc::ptr_eq(&next.known.numbers, &self.known.numbers) {
            std::mem::swap(&mut next.known, &mut self.known);
        }
        next
    }

    fn take_tables(&mut self, from: &mut Self) {
        let numbers = Arc::clone(&from.known.numbers);
        self.known = std::mem::replace(&mut from.known, Box::new(Known::of(numbers)));
    }

    fn element(&mut self, element: &Element, at: impl FnOnce() -> CaptureOffset) {
        if let Element::Block(block) = element {
            let number = self.known.block(block);
            if self.note(number, block.span.start) {
                if self.noting == Noting::Places {
                    self.places.push(at());
                }
                return;
            }
        }
        let at = at();
        self.other(element, at);
    }

    #[inline]
    fn passage(&mut self, passage: &Passage<'_>, mut at: impl FnMut(StreamOffset) -> CaptureOffset) {
        if self.noting == Noting::Places {
            passage.elements().for_each(|element| self.element(&element, || at(element.span().start)));
            return;
        }
        // A passage without elements has no number of its own.
        if passage.is_empty() {
            return;
        }
        let number = self.known.passages.get(passage.id().number()).filter(|number| *number != NO_NUMBER);
        let is_usual = number.is_some() && !passage.waits() && self.note(number, passage.at());
        if !is_usual {
            self.unusual(passage, at);
        }
    }
}

impl Known {
    fn of(numbers: Arc<Numbers>) -> Self {
        Self { numbers, passages: ById::default(), blocks: QuickMap::default(), is_full: false }
    }

    /// The number of a passage; `None` if it is not plain, or there are no more numbers.
    fn number(&mut self, passage: &Passage<'_>) -> Option<u32> {
        let id = passage.id().number();
        let number = match self.passages.get(id) {
            Some(number) => number,
            None if self.is_full => return None,
            None => {
                let kept = passage.keep();
                let number = if kept.is_plain() { self.give(kept)? } else { NO_NUMBER };
                self.passages.insert(id, number);
                number
            }
        };
        Some(number).filter(|number| *number != NO_NUMBER)
    }

    /// The number of a block; `None` if there are no more.
    #[inline]
    fn block(&mut self, block: &Block) -> Option<u32> {
        let bytes = block.span.bytes();
        let content = BlockContent(Block { span: Span::new(StreamOffset(0), bytes), ..*block });
        if let Some(number) = self.blocks.get(&content) {
            return Some(*number);
        }
        let number = if self.is_full { None } else { self.give(KeptPassage::of_block(block)) };
        self.blocks.extend(number.map(|number| (content, number)));
        number
    }

    fn give(&mut self, passage: KeptPassage) -> Option<u32> {
        let number = self.numbers.number(passage);
        self.is_full = number.is_none();
        number
    }
}
