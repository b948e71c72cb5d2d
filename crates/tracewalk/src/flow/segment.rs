//! Beginning in the middle of a trace, and finding out whether that was right.
//!
//! ```text
//! the worker before:  …──────────────┤ real, here
//! the next worker:        guess: ┤?──┬──part──┬──part──┬──part──▶
//!                                    └ same state: what it made of the parts behind is what the trace says
//! ```
//!
//! Whoever begins in the middle knows neither the position nor what lies on the stacks of places to return to. The
//! position comes with the next synchronisation. Entries below those that were pushed since may never be known, and need
//! not be, as long as nothing asks for them: a part in which something did is not to be trusted.

use crate::program::Program;

use super::engine::{Flow, Place};
use super::walk::Walk;

impl Flow {
    /// The whole state, as one that does not depend on who found it. Here a part ends and the next one begins.
    pub(crate) fn checkpoint(&mut self, program: &Program) -> Walk {
        self.give_to_walk(program);
        let walk = self.walk.clone();
        self.walk.begin_part();
        self.take_from_walk(program);
        walk
    }

    /// Goes back to where no position is known.
    pub(crate) fn begin_again(&mut self) {
        self.place = Place::Walk;
        self.walk = Walk::new(self.rules);
    }

    /// Goes on in this state.
    pub(crate) fn go_on_from(&mut self, walk: &Walk, program: &Program) {
        self.place = Place::Walk;
        self.walk = walk.clone();
        self.walk.begin_part();
        self.take_from_walk(program);
    }
}
