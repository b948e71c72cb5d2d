//! A record of what threads decoded, which one thread replays in order.
//!
//! ```text
//! threads that decode   a number for each passage and each block, and what else there is as it is      Log
//! one thread            each by its number, or its elements one by one                                  Reader
//! ```
//!
//! Where the same runs again and again the notes are eight bytes for each passage, or for a group of them, and whoever follows the calls
//! may remember what a number did. What a number stands for is the same for all threads. Numbers are limited; when they are used up,
//! what has none is noted as it is, until new ones are given out.

mod groups;
mod named;
mod numbers;
mod reader;

use std::sync::Arc;

use tracewalk::flow::{Block, Element, KeptPassage, Passage, Placing};
use tracewalk::span::{CaptureOffset, Span, StreamOffset};

use crate::quick::QuickMap;
use crate::sink::Part;
use groups::{Groups, Growing};
use named::Entry;
use numbers::{ById, Numbers};

pub(crate) use named::{Content, Named};
pub use numbers::Numbering;
pub use reader::Reader;

/// A part of a source's elements, noted in order.
#[derive(Debug)]
pub struct Log {
    numbering: Arc<Numbering>,
    noting: Noting,
    /// The passages and blocks since the last group, or since what is none.
    growing: Growing,
    /// The groups since the last group of groups, or since what is none.
    outer: Growing,
    known: Box<Known>,
    /// Where the first passage or block begins.
    base: Option<StreamOffset>,
    entries: Vec<Entry>,
    /// Where the passages and blocks stand in the capture, if that is noted.
    places: Vec<CaptureOffset>,
    others: Vec<Other>,
    waiting: Vec<(u32, Placing)>,
    /// Where the last of them begins.
    newest: StreamOffset,
}

/// How much is noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noting {
    /// Where each element stands in the capture, and not only gaps and proofs. Passages are then taken apart.
    Places,
    /// Passages.
    Passages,
    /// Passages, and those that often follow one another as one.
    Groups,
}

/// What is noted as it is.
#[derive(Clone, Copy, Debug)]
struct Other {
    /// Its entry.
    entry: u32,
    element: Element,
    at: CaptureOffset,
}

/// What a thread knows of the numbers.
#[derive(Debug)]
struct Known {
    numbers: Arc<Numbers>,
    passages: ById,
    blocks: QuickMap<BlockContent, u32>,
    groups: Groups,
    /// Set where there are no more numbers.
    is_full: bool,
}

/// In the place of a number, for a passage that has none because it is not plain.
const NO_NUMBER: u32 = u32::MAX;

/// A block wherever it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BlockContent(Block);

impl std::hash::Hash for BlockContent {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.start.get() ^ self.0.last.get().rotate_left(32));
        state.write_u64(self.0.span.end.0 ^ u64::from(self.0.instructions) << 32);
    }
}

impl Log {
    /// Nothing is noted yet.
    #[must_use]
    pub fn new(noting: Noting) -> Self {
        Self::of(Arc::new(Numbering::default()), noting)
    }

    fn of(numbering: Arc<Numbering>, noting: Noting) -> Self {
        let known = Box::new(Known::of(numbering.current()));
        Self {
            numbering,
            noting,
            growing: Growing::default(),
            outer: Growing::default(),
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
        if self.noting == Noting::Groups && self.growing.takes(number, self.entries.len()) {
            self.end_group();
        }
        true
    }

    /// Puts one entry in the place of those of a group that is known, and of groups that follow one another.
    #[inline(never)]
    fn end_group(&mut self) {
        let Some(number) = self.fold(self.growing) else { return self.break_group() };
        if self.outer.takes(number, self.entries.len()) {
            self.fold(self.outer);
            self.outer = Growing::from(self.entries.len());
        }
        self.growing = Growing::from(self.entries.len());
    }

    /// Puts one entry in the place of those at the end, if they are known as a group: answers its number. One alone stays as it is.
    fn fold(&mut self, growing: Growing) -> Option<u32> {
        let Self { entries, known, .. } = self;
        let members = entries.get(growing.start..)?;
        if let [alone] = members {
            return Some(alone.number);
        }
        let at = members.first()?.at;
        let number = known.groups.number(growing, members, &known.numbers)?;
        entries.truncate(growing.start);
        entries.push(Entry { number, at });
        Some(number)
    }

    /// What comes now is in another group than what came.
    fn break_group(&mut self) {
        self.growing = Growing::from(self.entries.len());
        self.outer = self.growing;
    }

    #[cold]
    fn other(&mut self, element: &Element, at: CaptureOffset) {
        let entry = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        self.entries.push(Entry { number: Entry::OTHER, at: 0 });
        self.break_group();
        self.others.push(Other { entry, element: *element, at });
        self.newest = self.newest.max(element.span().start);
    }

    /// Gaps, and places where the position is proven.
    fn marks(&self) -> impl Iterator<Item = Other> {
        let is_mark = |other: &&Other| matches!(other.element, Element::Gap(_) | Element::Proof(_));
        self.others.iter().filter(is_mark).copied()
    }

    /// A passage that is not plain, or that something was waited for, or that has no number yet.
    #[inline(never)]
    fn unusual(&mut self, passage: &Passage<'_>, mut at: impl FnMut(StreamOffset) -> CaptureOffset) {
        let (number, placing) = (self.known.number(passage), passage.placing());
        match number {
            Some(number) if placing.waits() => {
                self.entries.push(Entry { number: Entry::WAITING, at: 0 });
                self.break_group();
                self.waiting.push((number, placing));
                self.newest = placing.origin();
            }
            number if self.note(number, placing.origin()) => {}
            _ => passage.elements().for_each(|element| self.element(&element, || at(element.span().start))),
        }
    }
}

/// A copy is another thread's: it knows nothing yet.
impl Clone for Log {
    fn clone(&self) -> Self {
        Self::of(Arc::clone(&self.numbering), self.noting)
    }
}

impl Part for Log {
    fn lend(&mut self) -> Self {
        let mut next = Self::of(Arc::clone(&self.numbering), self.noting);
        if Arc::ptr_eq(&next.known.numbers, &self.known.numbers) {
            std::mem::swap(&mut next.known, &mut self.known);
        }
        next
    }

    fn learn(&mut self, from: &mut Self) {
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
        let is_mark = matches!(element, Element::Gap(_) | Element::Proof(_));
        let at = if self.noting == Noting::Places || is_mark { at() } else { CaptureOffset(0) };
        self.other(element, at);
    }

    #[inline]
    fn passage(&mut self, passage: &Passage<'_>, mut at: impl FnMut(StreamOffset) -> CaptureOffset) {
        if self.noting == Noting::Places {
            passage.elements().for_each(|element| self.element(&element, || at(element.span().start)));
            return;
        }
        // One without elements has no number of its own.
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
        Self {
            numbers,
            passages: ById::default(),
            blocks: QuickMap::default(),
            groups: Groups::default(),
            is_full: false,
        }
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
