//! The functions that are running at one place, to go on from there.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use tracewalk::program::{Scope, ViewId};

use super::stack::{Next, Parked, Stack};
use super::{CallStack, Task};

/// What a [`CallStack`] knows at one place of a source's flow, without the program and what it remembers of that.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct CallStackCheckpoint<M> {
    /// How the program is seen.
    seen: (ViewId, Scope),
    stack: Stack<M>,
    next: Next,
    next_task: Option<Task>,
    parked: Vec<Parked<M>>,
    lost: VecDeque<Stack<M>>,
    tasks: u32,
}

impl<M: Clone> CallStack<M> {
    /// What is known here.
    #[must_use]
    pub fn checkpoint(&self) -> CallStackCheckpoint<M> {
        CallStackCheckpoint {
            seen: self.functions.code().seen(),
            stack: self.stack.clone(),
            next: self.next,
            next_task: self.next_task,
            parked: self.parked.clone(),
            lost: self.lost.clone(),
            tasks: self.tasks,
        }
    }

    /// Goes on as if the elements before a checkpoint, which was made for the same program, had just been followed.
    pub fn go_on_from(&mut self, checkpoint: &CallStackCheckpoint<M>) {
        self.functions.see(self.functions.code().seen_as(checkpoint.seen));
        self.stack.clone_from(&checkpoint.stack);
        self.parked.clone_from(&checkpoint.parked);
        self.lost.clone_from(&checkpoint.lost);
        (self.next, self.next_task, self.tasks) = (checkpoint.next, checkpoint.next_task, checkpoint.tasks);
        self.did_more = true;
    }
}

impl<M> CallStackCheckpoint<M> {
    /// How many frames it keeps, of all tasks: how much memory it takes.
    #[must_use]
    pub fn size(&self) -> usize {
        let stacks = self.parked.iter().map(|parked| &parked.stack).chain(&self.lost).chain([&self.stack]);
        stacks.map(|stack| stack.frames.len()).sum()
    }
}
