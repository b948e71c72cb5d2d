//! The known state of one context at a place: the running one, or another one at its last place.

use tracewalk::ids::Address;
use tracewalk_analysis::Code;
use tracewalk_analysis::call_stack::Task;

use super::{Core, State};
use crate::walk::{self, Direction};

/// The subject of a request for registers or memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// The code that runs at the place.
    Running,
    /// The context of this number: at the place if it runs there, else where it ran last.
    Context(usize),
}

impl Core<'_> {
    /// The known state of a context, or of the code that runs; `None` if it has not run yet.
    pub(crate) fn state_of(&mut self, who: Who) -> Option<&State> {
        match who {
            Who::Context(context) if !self.is_running(context) => self.waiting_state(context),
            Who::Running | Who::Context(_) => self.state(),
        }
    }

    /// The contexts that the trace names, by their numbers.
    pub(crate) fn contexts(&self) -> impl Iterator<Item = Task> {
        self.kept.turns.contexts()
    }

    /// Whether a context runs at the place.
    pub(crate) fn is_running(&self, context: usize) -> bool {
        // The handler that the recording ends with belongs to the context that ran last.
        self.kept.turns.is_running(context, self.step_number().saturating_sub(u64::from(self.is_after)))
    }

    /// Whether a context has run by the time of the place.
    pub(crate) fn has_run(&self, context: usize) -> bool {
        self.kept.turns.last_before(context, self.step_number().saturating_add(1)).is_some()
    }

    fn waiting_state(&mut self, context: usize) -> Option<&State> {
        let place = self.step_number();
        let ran = self.kept.turns.last_before(context, place)?;
        if self.waiting.get(&context).is_none_or(|(known, _)| *known != ran) {
            let is_there = self.seek_back(ran);
            let state = if is_there { self.made_state() } else { None };
            self.seek_step(place);
            self.waiting.insert(context, (ran, state?));
        }
        self.waiting.get(&context).map(|(_, state)| state)
    }

    /// Goes to the next place at which a context runs, or the last one before. Returns whether there is one.
    pub(crate) fn step_context(&mut self, context: usize, direction: Direction) -> bool {
        let place = self.step_number();
        let turns = &self.kept.turns;
        let next = |step| match direction {
            Direction::Forward => turns.first_after(context, step),
            Direction::Backward => turns.last_before(context, step),
        };
        let mut step = place;
        while let Some(found) = next(step) {
            let is_there = match direction {
                Direction::Forward => self.seek_step(found),
                Direction::Backward => self.seek_back(found),
            };
            let now = self.step_number();
            let is_further = match direction {
                Direction::Forward => now > place,
                Direction::Backward => now < place,
            };
            // A turn may end in steps that are not places.
            if is_there && is_further && self.is_running(context) {
                return true;
            }
            step = found;
        }
        self.seek_step(place);
        false
    }

    /// Goes to the place of a step, or the last one before it. Returns whether there is one.
    pub(super) fn seek_back(&mut self, step: u64) -> bool {
        let found =
            self.cursor.seek_step(step) && walk::settle(&mut self.cursor, &self.code, Direction::Backward);
        self.is_after &= !found;
        found
    }

    /// The program as the running code or a context at the place sees it.
    pub(crate) fn seen_by(&self, who: Who) -> &Code {
        let context = match who {
            Who::Context(context) if !self.is_running(context) => self.contexts().nth(context),
            Who::Running | Who::Context(_) => return self.seen(),
        };
        match context {
            Some(Task::Context(scope)) => self.code.in_scope(scope),
            Some(Task::Number(_) | Task::Unresolved) | None => &self.code,
        }
    }

    /// The byte at an address, if the program cannot change it, so that the image's byte is valid.
    pub(crate) fn constant(&self, at: Address, who: Who) -> Option<u8> {
        let code = self.seen_by(who);
        let is_variable = self.variables.iter().any(|range| range.contains(&at.get()));
        if is_variable || !code.program.holds(at) {
            return None;
        }
        code.program.code(at)?.first().copied()
    }

    /// The byte at an address, if data trace reported it.
    pub(crate) fn traced(&mut self, at: u64, who: Who) -> Option<u8> {
        let step = self.step_number();
        let task = self.state_of(who)?.task;
        self.kept.transfers.byte(at, step, task)
    }

    /// The byte at an address, if the path proves it.
    pub(crate) fn proven(&mut self, at: u64, who: Who) -> Option<u8> {
        let is_there = match who {
            Who::Running => true,
            Who::Context(context) => self.is_running(context),
        };
        let step = self.step_number();
        if is_there && self.has_apart_stack() { self.values.byte(step, at) } else { None }
    }
}
