//! Beginning in the middle of a trace, and finding out whether that was right.
//!
//! ```text
//! the worker before:  …──────────────┤ real, here
//! the next worker:        guess: ┤?──┬──part──┬──part──┬──part──▶
//!                                    └ same state: what it made of the parts after this is what the trace says
//! ```
//!
//! A stream that begins in the middle knows neither the position nor the entries of the return stacks. The position comes with
//! the next synchronisation. Entries below those that were pushed since may never be known, and need not be, as long as nothing
//! asks for them: a part in which something did is not to be trusted.

use crate::directive::Rules;
use crate::program::Program;

use super::execution::Execution;
use super::follow::Flow;
use super::watched_stack::WatchedStack;

impl Flow {
    /// The whole state, spelled out. Here a part ends and the next one begins.
    pub(crate) fn checkpoint(&mut self, program: &Program) -> Execution {
        self.spell_out(program);
        let checkpoint = self.execution.clone();
        self.execution.begin_part();
        self.enter_any(program);
        checkpoint
    }

    /// Goes back to where no position is known.
    pub(crate) fn begin_again(&mut self) {
        self.execution = Execution::new(self.execution.rules);
    }

    /// Goes on in this state.
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

    /// From here on [`Execution::is_certain`] concerns a new part.
    const fn begin_part(&mut self) {
        self.returns.begin_part();
        self.interrupted.begin_part();
    }

    /// Whether what was found in the part that ended in this state is right, if `real` [proves](Self::proves) what was
    /// guessed before.
    pub(crate) const fn is_certain(&self, real: &Self, guess: &Self) -> bool {
        self.returns.is_certain(&real.returns, &guess.returns)
            && self.interrupted.is_certain(&real.interrupted, &guess.interrupted)
    }

    /// Whether this is what `guess` is, but for what that one does not know.
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

    /// What this state comes to after some parts: it [proves](Self::proves) `guess`, which was before them, and these are
    /// the states after each of them.
    pub(crate) fn continued<'a>(&self, guess: &Self, parts: impl Iterator<Item = &'a Self> + Clone) -> Self {
        let end = parts.clone().last().unwrap_or(guess);
        Self {
            returns: self.returns.continued(&guess.returns, parts.clone().map(|part| &part.returns)),
            interrupted: self.interrupted.continued(&guess.interrupted, parts.map(|part| &part.interrupted)),
            ..end.clone()
        }
    }
}
