//! The contents of memory, as far as data trace reported loads and stores.
//!
//! A load shows the contents of memory, as a store does. The last traced access before a place gives the contents
//! there, unless something unknown happened in between: trace was lost, a store came without its address or value, or
//! another context, which may have other memory, used the address.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use tracewalk::directive::TransferValue;
use tracewalk::flow::{DataTransfer, Element, Event, EventKind};
use tracewalk::ids::Address;
use tracewalk::program::Scope;
use tracewalk_analysis::call_stack::Task;

use crate::walk::Direction;

/// Loads and stores, each by the words of memory that it touched.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct Transfers {
    /// Sorted by word, then by step.
    touched: Vec<Touched>,
    /// The steps at which all known contents became invalid; ascending.
    forgotten: Vec<u64>,
    /// Accesses of steps before this one are not kept.
    kept_from: u64,
}

/// Collects [`Transfers`] while a source is followed.
#[derive(Debug, Default)]
pub(crate) struct Collecting {
    /// In the order of their steps.
    touched: Vec<Touched>,
    forgotten: Vec<u64>,
    kept_from: u64,
    /// The instruction that executed last; `None` after an exception, because the next accesses are the processor's
    /// own.
    last: Option<Address>,
}

/// Some bytes of a word were loaded or stored.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
struct Touched {
    /// The word's address.
    word: u64,
    step: u64,
    /// The context whose memory it is.
    space: Scope,
    /// Whether the access is a store.
    is_stored: bool,
    /// The bytes of the word that were touched: a bit for each.
    mask: u8,
    /// The bytes' contents from then on; `None` if unknown.
    bytes: Option<[u8; WORD_BYTES]>,
}

const WORD: u64 = 4;
const WORD_BYTES: usize = 4;

/// The most accesses: the newest ones, and at least half as many. Each takes about 40 bytes.
const MOST: usize = 1 << 21;

impl Transfers {
    /// The content of a byte before a step, in a task.
    pub(crate) fn byte(&self, at: u64, step: u64, task: Task) -> Option<u8> {
        let (word, lane) = (at - at % WORD, at % WORD);
        let end = self.touched.partition_point(|touched| (touched.word, touched.step) < (word, step));
        let before = self.touched.get(..end)?.iter().rev().take_while(|touched| touched.word == word);
        let last = before.into_iter().find(|touched| touched.mask >> lane & 1 == 1)?;
        let forgotten = self.forgotten.partition_point(|forgotten| *forgotten < step);
        let is_forgotten = forgotten
            .checked_sub(1)
            .and_then(|newest| self.forgotten.get(newest))
            .is_some_and(|forgotten| *forgotten >= last.step);
        if is_forgotten || last.space != space(task) {
            return None;
        }
        last.bytes?.get(usize::try_from(lane).ok()?).copied()
    }

    /// Whether there are no accesses.
    pub(crate) const fn is_empty(&self) -> bool {
        self.touched.is_empty()
    }

    /// Accesses of steps before this one are not kept.
    pub(crate) const fn kept_from(&self) -> u64 {
        self.kept_from
    }

    /// The first access to some bytes from a step on, or the last one before it: its step, and the first of the bytes
    /// that it touched.
    pub(crate) fn access(&self, watched: &Watched, step: u64, direction: Direction) -> Option<(u64, u64)> {
        let Watched { kind, ref bytes } = *watched;
        let from = bytes.start - bytes.start % WORD;
        let start = self.touched.partition_point(|touched| touched.word < from);
        let of_words = self.touched.get(start..)?.iter().take_while(|touched| touched.word < bytes.end);
        let found = of_words.filter_map(|touched| {
            let is_meant = match kind {
                Watch::Store => touched.is_stored,
                Watch::Load => !touched.is_stored,
                Watch::Any => true,
            };
            let is_there = match direction {
                Direction::Forward => touched.step >= step,
                Direction::Backward => touched.step < step,
            };
            let lanes = (0..WORD).filter(|lane| touched.mask >> lane & 1 == 1);
            let at = lanes.map(|lane| touched.word + lane).find(|at| bytes.contains(at))?;
            (is_meant && is_there).then_some((touched.step, at))
        });
        match direction {
            Direction::Forward => found.min(),
            Direction::Backward => found.max_by_key(|(step, _)| *step),
        }
    }
}

/// Watched bytes of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Watched {
    pub(crate) kind: Watch,
    pub(crate) bytes: Range<u64>,
}

/// The kind of accesses to watch for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watch {
    Store,
    Load,
    Any,
}

impl Collecting {
    /// Takes the element that begins with a step.
    pub(crate) fn element(&mut self, element: &Element, step: u64, task: Task) {
        match element {
            Element::Block(block) => self.last = Some(block.last),
            Element::Event(Event { kind: EventKind::Data(transfer), .. }) => {
                self.transfer(transfer, step, task);
            }
            Element::Event(Event { kind: EventKind::Exception { .. }, .. }) => self.last = None,
            Element::Event(Event { kind: EventKind::TraceOn(_), .. }) => self.forget(step),
            // The unseen code may have stored anything.
            Element::Gap(_) => self.forget(step),
            Element::Event(_) | Element::Proof(_) => {}
        }
    }

    pub(crate) fn finish(mut self) -> Transfers {
        self.touched.sort_by_key(|touched| (touched.word, touched.step));
        self.touched.shrink_to_fit();
        let Self { touched, forgotten, kept_from, .. } = self;
        Transfers { touched, forgotten, kept_from }
    }

    fn transfer(&mut self, transfer: &DataTransfer, step: u64, task: Task) {
        let is_of_last = self.last.is_some() && transfer.instruction.map(|at| at.address) == self.last;
        let is_load = transfer.store == Some(false) && self.last.is_some();
        let value = match transfer.value {
            TransferValue::Value(value) => Some(value),
            // Memory is unchanged.
            TransferValue::StoreFailed => return,
            // An unknown number of accesses is missing.
            TransferValue::Suppressed => return self.forget(step),
            TransferValue::NotTraced | TransferValue::Pending(_) if is_load => return,
            TransferValue::NotTraced | TransferValue::Pending(_) => None,
        };
        // If the value of a load comes late, it is the content of memory when the load began.
        if is_load && !is_of_last {
            return;
        }
        match (transfer.address, transfer.bytes, is_of_last) {
            (Some(address), Some(bytes), true) => {
                let bytes = usize::from(bytes).min(WORD_BYTES);
                let value = value.map(|value| match transfer.big_endian {
                    true => value.to_be_bytes(),
                    false => value.to_le_bytes(),
                });
                let skipped = if transfer.big_endian { WORD_BYTES - bytes } else { 0 };
                for lane in 0..bytes {
                    let byte = value.and_then(|value| value.get(skipped + lane).copied());
                    self.touch(address.get().wrapping_add(lane as u64), byte, !is_load, (step, task));
                }
            }
            _ if is_load => {}
            _ => self.forget(step),
        }
    }

    /// Notes that the access of a step touched a byte.
    fn touch(&mut self, at: u64, byte: Option<u8>, is_stored: bool, (step, task): (u64, Task)) {
        let (word, lane, space) = (at - at % WORD, at % WORD, space(task));
        let bit = 1_u8 << lane;
        let same = self.touched.last_mut().filter(|last| {
            (last.word, last.step, last.space, last.is_stored) == (word, step, space, is_stored)
                && last.bytes.is_some() == byte.is_some()
        });
        let touched = match same {
            Some(touched) => touched,
            None => {
                if self.touched.len() >= MOST {
                    // Drops the oldest ones.
                    self.touched.drain(..MOST / 2);
                    self.kept_from = self.touched.first().map_or(step, |first| first.step);
                }
                let bytes = byte.map(|_| [0; WORD_BYTES]);
                self.touched.push(Touched { word, step, space, is_stored, mask: 0, bytes });
                let Some(touched) = self.touched.last_mut() else { return };
                touched
            }
        };
        touched.mask |= bit;
        if let (Some(bytes), Some(byte)) = (&mut touched.bytes, byte)
            && let Some(slot) = usize::try_from(lane).ok().and_then(|lane| bytes.get_mut(lane))
        {
            *slot = byte;
        }
    }

    /// Invalidates all known contents.
    fn forget(&mut self, step: u64) {
        let known = self.touched.last().map(|touched| touched.step);
        if known.is_some_and(|known| self.forgotten.last().is_none_or(|last| *last < known)) {
            self.forgotten.push(step);
        }
    }
}

/// The memory that a task uses: each context may have its own; tasks that are distinguished by their stacks share one.
const fn space(task: Task) -> Scope {
    match task {
        Task::Context(scope) => scope,
        Task::Number(_) | Task::Unresolved => Scope::EVERYWHERE,
    }
}

#[cfg(test)]
mod tests {
    use tracewalk::flow::{Block, Ending, Gap, GapReason};
    use tracewalk::ids::{ContextId, Isa, Location};
    use tracewalk::span::Span;

    use super::*;

    const TASK: Task = Task::Number(1);
    const AT: Address = Address::new(0x100);
    const RAM: u64 = 0x2000_0000;

    fn block(last: Address) -> Element {
        let (isa, ending) = (Isa::A32, Ending::Interrupted);
        Element::Block(Block {
            start: last,
            end: Address::new(last.get() + 4),
            isa,
            instructions: 1,
            last,
            ending,
            span: Span::default(),
        })
    }

    fn event(kind: EventKind) -> Element {
        Element::Event(Event { kind, span: Span::default() })
    }

    /// An access of four bytes.
    fn access(instruction: Address, address: Option<u64>, value: TransferValue, store: bool) -> Element {
        event(EventKind::Data(DataTransfer {
            instruction: Some(Location::new(instruction, Isa::A32)),
            address: address.map(Address::new),
            value,
            bytes: Some(4),
            store: Some(store),
            big_endian: false,
        }))
    }

    fn stored(value: u32) -> Element {
        access(AT, Some(RAM), TransferValue::Value(value), true)
    }

    /// The content of the first byte after each of these elements, which have one step each.
    fn held(elements: &[Element]) -> Vec<Option<u8>> {
        let mut collecting = Collecting::default();
        for (step, element) in (0..).zip(elements) {
            collecting.element(element, step, TASK);
        }
        let transfers = collecting.finish();
        (1..=elements.len() as u64).map(|step| transfers.byte(RAM, step, TASK)).collect()
    }

    #[test]
    fn a_byte_holds_what_was_loaded_or_stored_last_before_the_place() {
        let loaded = access(AT, Some(RAM), TransferValue::Value(3), false);
        let elements = [block(AT), stored(1), block(AT), stored(2), block(AT), loaded];
        assert_eq!(held(&elements), [None, Some(1), Some(1), Some(2), Some(2), Some(3)]);
    }

    #[test]
    fn nothing_is_known_after_what_may_have_changed_memory_unseen() {
        let gap = Element::Gap(Gap { reason: GapReason::TraceLost, span: Span::default(), doubt: false });
        let suppressed = access(AT, None, TransferValue::Suppressed, true);
        let nowhere = access(AT, None, TransferValue::Value(5), true);
        for unseen in [gap, suppressed, nowhere] {
            let elements = [block(AT), stored(1), block(AT), unseen, block(AT), stored(2)];
            assert_eq!(held(&elements), [None, Some(1), Some(1), None, None, Some(2)], "{unseen:?}");
        }
        // The bytes of a store whose value was not traced are unknown; those of a failed store stay.
        for (value, after) in [(TransferValue::NotTraced, None), (TransferValue::StoreFailed, Some(1))] {
            let elements = [block(AT), stored(1), block(AT), access(AT, Some(RAM), value, true)];
            assert_eq!(held(&elements), [None, Some(1), Some(1), after]);
        }
    }

    #[test]
    fn a_load_whose_value_comes_late_says_nothing_of_memory_now() {
        let other = Address::new(0x104);
        let late = access(AT, Some(RAM), TransferValue::Value(1), false);
        let elements = [block(AT), stored(2), block(other), late];
        assert_eq!(held(&elements), [None, Some(2), Some(2), Some(2)]);
    }

    #[test]
    fn what_the_processor_pushes_for_an_exception_is_no_access_of_the_instruction_before() {
        let exception =
            event(EventKind::Exception { exception: None, preferred_return: None, handler: None });
        let elements = [block(AT), stored(1), exception, stored(2)];
        assert_eq!(held(&elements), [None, Some(1), Some(1), None]);
    }

    #[test]
    fn another_contexts_memory_is_unknown_and_its_access_makes_it_so() {
        let [one, two] = [1, 2].map(|id| Task::Context(Scope::context(ContextId(id))));
        let mut collecting = Collecting::default();
        for (step, (task, element)) in
            (0..).zip([(one, block(AT)), (one, stored(1)), (two, block(AT)), (two, stored(2))])
        {
            collecting.element(&element, step, task);
        }
        let transfers = collecting.finish();
        let seen = |step| [one, two].map(|task| transfers.byte(RAM, step, task));
        assert_eq!([seen(2), seen(3), seen(4)], [[Some(1), None], [Some(1), None], [None, Some(2)]]);
    }

    #[test]
    fn accesses_of_watched_bytes_are_found_in_both_directions() {
        let load = access(AT, Some(RAM), TransferValue::Value(1), false);
        let elsewhere = access(AT, Some(RAM + 8), TransferValue::Value(1), true);
        let elements = [block(AT), stored(1), block(AT), load, block(AT), elsewhere, block(AT), stored(2)];
        let mut collecting = Collecting::default();
        for (step, element) in (0..).zip(&elements) {
            collecting.element(element, step, TASK);
        }
        let transfers = collecting.finish();
        let all = |kind, bytes: Range<u64>| {
            let watched = Watched { kind, bytes };
            let mut forward = Vec::new();
            let mut step = 0;
            while let Some((at, _)) = transfers.access(&watched, step, Direction::Forward) {
                forward.push(at);
                step = at + 1;
            }
            let mut backward = Vec::new();
            while let Some((at, _)) = transfers.access(&watched, step, Direction::Backward) {
                backward.push(at);
                step = at;
            }
            backward.reverse();
            assert_eq!(forward, backward);
            forward
        };
        assert_eq!(all(Watch::Store, RAM + 2..RAM + 4), [1, 7]);
        assert_eq!(all(Watch::Load, RAM..RAM + 1), [3]);
        assert_eq!(all(Watch::Any, RAM + 3..RAM + 9), [1, 3, 5, 7]);
        assert_eq!(all(Watch::Any, RAM + 4..RAM + 8), [0; 0]);
        let watched = Watched { kind: Watch::Any, bytes: RAM + 2..RAM + 12 };
        assert_eq!(transfers.access(&watched, 0, Direction::Forward), Some((1, RAM + 2)));
    }

    #[test]
    fn bytes_of_a_big_endian_store_stand_in_their_order() {
        let mut collecting = Collecting::default();
        collecting.element(&block(AT), 0, TASK);
        let Element::Event(Event { kind: EventKind::Data(transfer), span }) = stored(0x1234) else {
            unreachable!("it is one")
        };
        let transfer = DataTransfer { big_endian: true, bytes: Some(2), ..transfer };
        collecting.element(&Element::Event(Event { kind: EventKind::Data(transfer), span }), 1, TASK);
        let transfers = collecting.finish();
        let bytes = [0, 1, 2].map(|offset| transfers.byte(RAM + offset, 2, TASK));
        assert_eq!(bytes, [Some(0x12), Some(0x34), None]);
    }
}
