//! Cached lines of repeated passages.
//!
//! The text of a passage depends on the passage, on the state of the call stack, and on the place of the last instruction. Each
//! combination is built once, and copied from then on.

use std::rc::Rc;

use tracewalk::ids::Address;
use tracewalk_analysis::analysis::Repeated;
use tracewalk_analysis::call_stack::{CallStack, Known, Learning, Remembered};
use tracewalk_analysis::quick::QuickMap;

use super::super::code::Place;

/// The text of passages that were written.
#[derive(Debug, Default)]
pub(super) struct Ready {
    remembered: Remembered<(), Lines>,
    /// Numbers for places of last instructions, and for passages after them.
    states: QuickMap<(usize, u64), u32>,
    numbers: QuickMap<(u32, u32), u32>,
    /// The number of the last instruction's place, if known.
    here: Option<u32>,
    /// The set of the passages' numbers.
    set: u32,
    /// The total length of the text, in bytes.
    bytes: usize,
}

/// A passage that is being written for the first time.
#[derive(Debug)]
pub(super) struct Writing(Learning);

/// The text of a passage, and the last instruction after it.
#[derive(Debug)]
pub(super) struct Lines {
    pub(super) text: Box<[u8]>,
    pub(super) after: Last,
    state: u32,
}

/// The last instruction.
#[derive(Clone, Debug)]
pub(super) struct Last {
    /// The place in the source.
    pub(super) place: Option<Rc<Place>>,
    /// The address after the instruction.
    pub(super) next: Option<Address>,
    /// The call depth.
    pub(super) depth: usize,
}

/// The most text that is kept, in bytes.
const MOST_BYTES: usize = 8 << 20;
const MOST_NUMBERS: usize = 1 << 16;

impl Ready {
    /// The text of a passage after such an instruction, if it was written before.
    #[inline]
    pub(super) fn find(
        &mut self,
        calls: &mut CallStack<()>,
        repeated: &Repeated<'_>,
        last: (&Option<Rc<Place>>, Option<Address>),
    ) -> Option<Known> {
        if repeated.set() != self.set {
            return None;
        }
        let here = match self.here {
            Some(here) => here,
            None => self.state(last),
        };
        self.here = Some(here);
        let number = *self.numbers.get(&(here, repeated.number()))?;
        self.remembered.find(calls, (self.set, number), |()| 0)
    }

    /// The text of a known passage.
    #[inline]
    pub(super) fn lines(&self, known: Known) -> Option<&Lines> {
        self.remembered.effect(known)
    }

    /// Applies a passage's effect on the call stack, once its text is written.
    #[inline]
    pub(super) fn go(&mut self, known: Known, calls: &mut CallStack<()>) {
        self.here = self.remembered.effect(known).map(|lines| lines.state);
        self.remembered.go(known, calls);
    }

    /// Begins to write a passage that was not found, after this instruction.
    pub(super) fn begin(
        &mut self,
        calls: &mut CallStack<()>,
        repeated: &Repeated<'_>,
        last: (&Option<Rc<Place>>, Option<Address>),
    ) -> Writing {
        let set = repeated.set();
        if self.remembered.is_full(set) || self.bytes >= MOST_BYTES || self.numbers.len() >= MOST_NUMBERS {
            self.remembered.forget(set, calls);
            self.states.clear();
            self.numbers.clear();
            (self.set, self.here, self.bytes) = (set, None, 0);
        }
        let here = self.here.unwrap_or_else(|| self.state(last));
        let next = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry((here, repeated.number())).or_insert(next);
        // This look-up only finds the state of the stack.
        let _ = self.remembered.find(calls, (set, number), |()| 0);
        self.here = None;
        Writing(self.remembered.begin_learning(calls, (set, number)))
    }

    /// The passage was written, as `lines` if these depend on nothing else.
    pub(super) fn end(
        &mut self,
        calls: &mut CallStack<()>,
        Writing(learning): Writing,
        written: Option<(Box<[u8]>, Last)>,
    ) {
        let lines = written.map(|(text, after)| {
            self.bytes += text.len();
            let state = self.state((&after.place, after.next));
            (Lines { text, after, state }, false)
        });
        self.remembered.end_learning(calls, learning, lines, |()| 0);
    }

    /// Other text is written, and the stack changes.
    #[inline]
    pub(super) fn disturb(&mut self, calls: &mut CallStack<()>) {
        self.here = None;
        self.remembered.disturb(calls);
    }

    fn state(&mut self, (place, next): (&Option<Rc<Place>>, Option<Address>)) -> u32 {
        // Each instruction has one place as long as rows are kept.
        let place = place.as_ref().map_or(0, |place| Rc::as_ptr(place) as usize);
        // No instruction ends at the last address.
        let next = next.map_or(u64::MAX, Address::get);
        let number = u32::try_from(self.states.len()).unwrap_or(u32::MAX);
        *self.states.entry((place, next)).or_insert(number)
    }
}
