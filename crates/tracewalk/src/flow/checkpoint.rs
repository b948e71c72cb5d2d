//! Starts in the middle of a trace, and checks later whether the result is valid.
//!
//! ```text
//! the worker before:  …──────────────┤ real, here
//! the next worker:        guess: ┤?──┬──part──┬──part──┬──part──▶
//!                                    └ same state: its output for the parts after this is valid
//! ```
//!
//! A stream that begins in the middle knows neither the position nor the entries of the return stacks. The
//! next synchronisation gives the position. Entries below those pushed since may stay unknown. The output of
//! a part that reads such an entry is not valid.

use crate::directive::Rules;
use crate::program::Program;

use super::execution::Execution;
use super::follow::Flow;
use super::watched_stack::WatchedStack;

impl Flow {
    /// The complete state. A part ends here and the next one begins.
    pub(crate) fn checkpoint(&mut self, program: &Program) -> Execution {
        self.spell_out(program);
        let checkpoint = self.execution.clone();
        self.execution.begin_part();
        self.enter_any(program);
        checkpoint
    }

    /// Resets to an unknown position.
    pub(crate) fn begin_again(&mut self) {
        self.execution = Execution::new(self.execution.rules);
    }

    /// Continues in this state.
    pub(crate) fn go_on_from(&mut self, checkpoint: &Execution, program: &Program) {
        self.execution = checkpoint.clone();
        self.execution.begin_part();
        self.enter_any(program);
    }
}

impl Execution {
    /// A state in the middle of a trace.
    pub(crate) fn in_the_middle(rules: Rules) -> Self {
        Self { returns: WatchedStack::unknown(), interrupted: WatchedStack::unknown(), ..Self::new(rules) }
    }

    /// Begins a new part for [`Execution::is_certain`].
    const fn begin_part(&mut self) {
        self.returns.begin_part();
        self.interrupted.begin_part();
    }

    /// Whether the output of the part that ended in this state is valid, if `real` [proves](Self::proves)
    /// `guess`, the state before the part.
    pub(crate) const fn is_certain(&self, real: &Self, guess: &Self) -> bool {
        self.returns.is_certain(&real.returns, &guess.returns)
            && self.interrupted.is_certain(&real.interrupted, &guess.interrupted)
    }

    /// Whether this state equals `guess`, except for what `guess` does not know.
    pub(crate) fn proves(&self, guess: &Self) -> bool {
        let Self {
            rules,
            place,
            last,
            arrival,
            returns,
            notes_calls,
            interrupted,
            half_passed,
            context,
            view,
            data,
            trust,
        } = self;
        (rules, place, last, arrival) == (&guess.rules, &guess.place, &guess.last, &guess.arrival)
            && (half_passed, context, view) == (&guess.half_passed, &guess.context, &guess.view)
            && (data, trust, notes_calls) == (&guess.data, &guess.trust, &guess.notes_calls)
            && returns.proves(&guess.returns)
            && interrupted.proves(&guess.interrupted)
    }

    /// This state after some parts. The state [proves](Self::proves) `guess`, the state before the parts;
    /// `parts` are the states after each part.
    pub(crate) fn continued<'a>(&self, guess: &Self, parts: impl Iterator<Item = &'a Self> + Clone) -> Self {
        let end = parts.clone().last().unwrap_or(guess);
        Self {
            returns: self.returns.continued(&guess.returns, parts.clone().map(|part| &part.returns)),
            interrupted: self.interrupted.continued(&guess.interrupted, parts.map(|part| &part.interrupted)),
            ..end.clone()
        }
    }
}
