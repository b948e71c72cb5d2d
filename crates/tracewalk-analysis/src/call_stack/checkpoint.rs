//! The functions that are running at one place, saved so that following can resume there.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use tracewalk::program::{Scope, ViewId};

use super::stack::{Next, Parked, Stack, Start};
use super::{CallStack, Task};

/// The state of a [`CallStack`] at one place of a source's flow, without the program and its cached functions.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct CallStackCheckpoint<M> {
    /// The view of the program, and the scope of the context.
    seen: (ViewId, Scope),
    stack: Stack<M>,
    next: Next,
    next_task: Option<Task>,
    parked: Vec<Parked<M>>,
    lost: VecDeque<Stack<M>>,
    transaction: Option<Box<Start<M>>>,
    tasks: u32,
}

impl<M: Clone> CallStack<M> {
    /// The current state.
    #[must_use]
    pub fn checkpoint(&self) -> CallStackCheckpoint<M> {
        CallStackCheckpoint {
            seen: self.functions.code().seen(),
            stack: self.stack.clone(),
            next: self.next,
            next_task: self.next_task,
            parked: self.parked.clone(),
            lost: self.lost.clone(),
            transaction: self.transaction.clone(),
            tasks: self.tasks,
        }
    }

    /// Resumes as if the elements before a checkpoint, made for the same program, had just been followed.
    pub fn go_on_from(&mut self, checkpoint: &CallStackCheckpoint<M>) {
        self.functions.see(self.functions.code().seen_as(checkpoint.seen));
        self.stack.clone_from(&checkpoint.stack);
        self.parked.clone_from(&checkpoint.parked);
        self.lost.clone_from(&checkpoint.lost);
        self.transaction.clone_from(&checkpoint.transaction);
        (self.next, self.next_task, self.tasks) = (checkpoint.next, checkpoint.next_task, checkpoint.tasks);
    }
}

impl<M> CallStackCheckpoint<M> {
    /// The number of frames of all tasks, as a measure of memory.
    #[must_use]
    pub fn size(&self) -> usize {
        let stacks = self.parked.iter().map(|parked| &parked.stack).chain(&self.lost).chain([&self.stack]);
        let start = self.transaction.iter().map(|start| start.frames.len());
        stacks.map(|stack| stack.frames.len()).chain(start).sum()
    }
}
