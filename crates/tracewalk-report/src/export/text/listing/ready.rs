//! The lines of what runs again and again, ready to be written.
//!
//! What a listing writes of a passage depends on the passage, on the state of the call stack, and on where the last instruction
//! stands. So the text is made once for each of these, and copied from then on.

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
    /// Numbers for where last instructions stand, and for passages after them.
    states: QuickMap<(usize, u64), u32>,
    numbers: QuickMap<(u32, u32), u32>,
    /// Where the last instruction stands, if that is known.
    here: Option<u32>,
    /// The set that the passages' numbers are of.
    set: u32,
    /// How many bytes of text there are.
    bytes: usize,
}

/// A passage that is being written for the first time.
#[derive(Debug)]
pub(super) struct Writing(Learning);

/// What is written of a passage, and what stands after it.
#[derive(Debug)]
pub(super) struct Lines {
    pub(super) text: Box<[u8]>,
    pub(super) after: Last,
    state: u32,
}

/// The last instruction.
#[derive(Clone, Debug)]
pub(super) struct Last {
    /// Where it stands.
    pub(super) place: Option<Rc<Place>>,
    /// The address after it.
    pub(super) next: Option<Address>,
    /// How deep in calls it is.
    pub(super) depth: usize,
}

/// More text is not kept.
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

    /// What is written of it.
    #[inline]
    pub(super) fn lines(&self, known: Known) -> Option<&Lines> {
        self.remembered.effect(known)
    }

    /// It was written.
    #[inline]
    pub(super) fn go(&mut self, known: Known, calls: &mut CallStack<()>) {
        self.here = self.remembered.effect(known).map(|lines| lines.state);
        self.remembered.go(known, calls);
    }

    /// A passage that was not found is written now, after such an instruction.
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
        // The state of the stack is looked up.
        let _ = self.remembered.find(calls, (set, number), |()| 0);
        self.here = None;
        Writing(self.remembered.begin_learning(calls, (set, number)))
    }

    /// It was written: this, if that depends on nothing else.
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

    /// Something else is written, and happens to the stack.
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
