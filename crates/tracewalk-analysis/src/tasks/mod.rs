//! Which tasks of an operating system ran, for how long, and what made each of them run.
//!
//! A call stack's tasks and instructions go in ([`Tasking`]), [`Tasks`] come out. Thread mode is what runs outside of exceptions. A *run*
//! is what a task executes in thread mode between two switches; a *switch* is the place where thread mode goes on in another task.
//!
//! Tasks with the same call stack are distinguished by their stack pointers ([`Stacks`]), as far as values are proven.
//! If the operating system has a variable for the running task, its values distinguish tasks too, and give them names
//! ([`CurrentTask`](crate::symbols::CurrentTask)). A task that stays unresolved has no row; its switches lack it.

mod blocks;
mod record;
mod stacks;

use std::collections::BTreeMap;
use std::sync::Arc;

use tracewalk::ids::Exception;

use crate::InDoubt;
use crate::call_stack::{FunctionId, Task};
use crate::clock::Cost;

use blocks::Block;
use stacks::Ends;

pub use record::Tasking;
pub use stacks::Stacks;

/// The tasks of one source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tasks {
    /// In the order in which they first ran.
    pub rows: Vec<TaskRow>,
    /// In the order of the trace.
    pub switches: Vec<Switch>,
    /// What ran in exceptions.
    pub handlers: Cost,
    /// What ran in tasks that stayed unresolved.
    pub unresolved: Cost,
    /// Whether the trace counts cycles.
    pub counts_cycles: bool,
    /// Instructions in doubt.
    pub in_doubt: InDoubt,
    /// Whether the call stacks identified each task that went on.
    pub certain: bool,
    /// How often a task's stack and its control block were those of two tasks.
    pub contradictions: u64,
}

/// What a task did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRow {
    /// The task.
    pub task: Task,
    /// The operating system's name for it.
    pub name: Option<Arc<str>>,
    /// The function in which it began, or the outermost one that is known.
    pub entry: Option<FunctionId>,
    /// Which of the tasks with this function it is, from 1.
    pub number: usize,
    /// What it ran in thread mode.
    pub cost: Cost,
    /// The number of its runs.
    pub runs: u64,
    /// Its longest run.
    pub longest: Run,
    /// The task that most often took over after an exception, and how often.
    pub preempted_by: Option<(Task, u64)>,
    /// The longest way from an exception to the task that it made run.
    pub response: Option<Response>,
}

/// A part of the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// The number of instructions before it.
    pub at: u64,
    /// What ran.
    pub cost: Cost,
}

/// The way from an exception to the first instruction of the task that it made run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// The exception; `None` if neither the trace nor the vector table states it.
    pub exception: Option<Exception>,
    /// What ran in between.
    pub run: Run,
}

/// A place where thread mode goes on in another task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// The number of instructions before the first one of the new task.
    pub at: u64,
    /// The task that ran before; `None` if it is unresolved.
    pub from: Option<Task>,
    /// The task that runs; `None` if it is unresolved.
    pub to: Option<Task>,
    /// The cause.
    pub reason: Reason,
}

/// The cause of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The first task after reset began.
    Start,
    /// The task gave way.
    Yield,
    /// This exception interrupted the task; `None` if neither the trace nor the vector table states it.
    Exception(Option<Exception>),
}

/// A part of thread mode in one task.
#[derive(Clone, Debug)]
struct Stretch {
    task: Task,
    run: Run,
    /// The first exception since the instruction of thread mode before, and its place.
    cause: Option<(Option<Exception>, Cost)>,
    /// The cost of all before.
    since: Cost,
    ends: Ends,
    block: Option<Block>,
    /// It begins at the start of a function.
    begins: bool,
}

impl Stretch {
    fn reason(&self) -> Reason {
        match self.cause {
            // PendSV is the switch itself.
            None | Some((Some(Exception::M(14)), _)) => Reason::Yield,
            Some((exception, _)) => Reason::Exception(exception),
        }
    }

    fn response(&self) -> Option<Response> {
        let (exception, at) = self.cause.filter(|_| matches!(self.reason(), Reason::Exception(_)))?;
        let cost = Cost {
            instructions: self.since.instructions - at.instructions,
            cycles: self.since.cycles - at.cycles,
            time: 0,
        };
        Some(Response { exception, run: Run { at: at.instructions, cost } })
    }
}

impl Tasks {
    /// The tasks of what ran in thread mode, in the order of the trace. `from_reset` if the trace begins with the program.
    fn of(stretches: &[Stretch], entries: &BTreeMap<Task, FunctionId>, from_reset: bool) -> Self {
        let mut found = Self::default();
        let known = |task: Task| Some(task).filter(|task| *task != Task::Unresolved);
        let mut preempted: BTreeMap<(Task, Task), u64> = BTreeMap::new();
        let mut before: Option<&Stretch> = None;
        for stretch in stretches {
            if let Some(before) = before.replace(stretch) {
                let is_start = from_reset && found.switches.is_empty();
                let reason = if is_start { Reason::Start } else { stretch.reason() };
                let (from, to) = (known(before.task), known(stretch.task));
                found.switches.push(Switch { at: stretch.run.at, from, to, reason });
                if let (Some(from), Some(to), Reason::Exception(_)) = (from, to, reason) {
                    *preempted.entry((from, to)).or_default() += 1;
                }
            }
            if stretch.task == Task::Unresolved {
                found.unresolved += stretch.run.cost;
                continue;
            }
            let row = found.row(stretch.task, entries);
            row.cost += stretch.run.cost;
            row.runs += 1;
            if stretch.run.cost.instructions > row.longest.cost.instructions {
                row.longest = stretch.run;
            }
            let slower = |response: &Response| {
                let longest = row.response.map_or(0, |longest| longest.run.cost.instructions);
                response.run.cost.instructions > longest
            };
            row.response = stretch.response().filter(slower).or(row.response);
        }
        for ((from, to), count) in preempted {
            let row = found.row(from, entries);
            if row.preempted_by.is_none_or(|(_, most)| count > most) {
                row.preempted_by = Some((to, count));
            }
        }
        found
    }

    fn row(&mut self, task: Task, entries: &BTreeMap<Task, FunctionId>) -> &mut TaskRow {
        let index = self.rows.iter().position(|row| row.task == task).unwrap_or_else(|| {
            let entry = entries.get(&task).copied();
            let number = 1 + self.rows.iter().filter(|row| row.entry == entry).count();
            let (cost, longest) = (Cost::default(), Run::default());
            self.rows.push(TaskRow {
                task,
                name: None,
                entry,
                number,
                cost,
                runs: 0,
                longest,
                preempted_by: None,
                response: None,
            });
            self.rows.len() - 1
        });
        &mut self.rows[index]
    }
}

#[cfg(test)]
mod tests;
