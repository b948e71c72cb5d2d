//! The turns of each context of a source: a context that does not run at a place is where it ran last.

use serde::{Deserialize, Serialize};
use tracewalk_analysis::call_stack::Task;

/// The turns of each context.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct Turns {
    /// In the order in which they were first seen, each with the steps at which its turns begin and end, exclusive;
    /// ascending.
    contexts: Vec<(Task, Vec<(u64, u64)>)>,
    /// The current turn.
    now: Option<(usize, u64)>,
    /// The number of turns.
    kept: usize,
}

/// The most contexts. Later ones have no turns.
const MOST_CONTEXTS: usize = 256;

/// The most turns: the newest ones.
const MOST_TURNS: usize = 1 << 20;

impl Turns {
    /// Notes that a task executes from a step on.
    pub(crate) fn runs(&mut self, task: Task, step: u64) {
        if self.now.is_some_and(|(index, _)| self.contexts.get(index).is_some_and(|(now, _)| *now == task)) {
            return;
        }
        self.end(step);
        self.now = self.begun(task).map(|index| (index, step));
    }

    /// Ends the last turn before the step `end`, at the end of the recording.
    pub(crate) fn finish(mut self, end: u64) -> Self {
        self.end(end);
        self
    }

    /// The contexts, by their numbers.
    pub(crate) fn contexts(&self) -> impl Iterator<Item = Task> {
        self.contexts.iter().map(|(task, _)| *task)
    }

    /// Whether a context ran at a step.
    pub(crate) fn is_running(&self, context: usize, step: u64) -> bool {
        self.last_before(context, step.saturating_add(1)) == Some(step)
    }

    /// The last step before this one at which a context ran.
    pub(crate) fn last_before(&self, context: usize, step: u64) -> Option<u64> {
        let (_, turns) = self.contexts.get(context)?;
        let begun = turns.partition_point(|(start, _)| *start < step);
        let (_, end) = turns.get(begun.checked_sub(1)?)?;
        step.min(*end).checked_sub(1)
    }

    /// The first step after this one at which a context runs.
    pub(crate) fn first_after(&self, context: usize, step: u64) -> Option<u64> {
        let (_, turns) = self.contexts.get(context)?;
        let over = turns.partition_point(|(_, end)| end.saturating_sub(1) <= step);
        let (start, _) = turns.get(over)?;
        Some((*start).max(step.saturating_add(1)))
    }

    /// The number of a context, which is new if it has not run before; `None` if there are too many.
    fn begun(&mut self, task: Task) -> Option<usize> {
        // Without context IDs, tasks are distinguished by their stacks, which may be corrected later.
        if !matches!(task, Task::Context(_)) {
            return None;
        }
        let known = self.contexts.iter().position(|(known, _)| *known == task);
        if known.is_none() && self.contexts.len() < MOST_CONTEXTS {
            self.contexts.push((task, Vec::new()));
            return self.contexts.len().checked_sub(1);
        }
        known
    }

    fn end(&mut self, step: u64) {
        let Some((index, start)) = self.now.take() else { return };
        let Some((_, turns)) = self.contexts.get_mut(index).filter(|_| start < step) else { return };
        turns.push((start, step));
        self.kept += 1;
        if self.kept > MOST_TURNS {
            for (_, turns) in &mut self.contexts {
                let dropped = turns.len() / 2;
                turns.drain(..dropped);
            }
            self.kept = self.contexts.iter().map(|(_, turns)| turns.len()).sum();
        }
    }
}

#[cfg(test)]
mod tests {
    use tracewalk::ids::ContextId;
    use tracewalk::program::Scope;

    use super::*;

    #[test]
    fn a_context_stands_where_it_ran_last_and_runs_again_with_its_next_turn() {
        let [one, two] = [1, 2].map(|id| Task::Context(Scope::context(ContextId(id))));
        let mut turns = Turns::default();
        turns.runs(Task::Number(1), 0);
        for (task, step) in [(one, 5), (one, 7), (two, 10), (one, 20)] {
            turns.runs(task, step);
        }
        let turns = turns.finish(30);
        assert_eq!(turns.contexts().collect::<Vec<_>>(), [one, two]);
        let last = [0, 5, 6, 10, 15, 21, 29].map(|step| turns.last_before(0, step));
        assert_eq!(last, [None, None, Some(5), Some(9), Some(9), Some(20), Some(28)]);
        let first = [0, 5, 8, 9, 19, 28, 29].map(|step| turns.first_after(0, step));
        assert_eq!(first, [Some(5), Some(6), Some(9), Some(20), Some(20), Some(29), None]);
        assert_eq!([4, 5, 9, 10, 20].map(|step| turns.is_running(0, step)), [false, true, true, false, true]);
        assert_eq!([turns.last_before(1, 15), turns.first_after(1, 15)], [Some(14), Some(16)]);
    }
}
