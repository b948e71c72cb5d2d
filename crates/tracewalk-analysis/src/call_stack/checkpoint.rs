//! The functions that are running at one place, to go on from there.

use std::collections::VecDeque;

use super::stack::{Next, Parked, Stack};
use super::{CallStack, Task};
use crate::CodeInContext;

/// What a [`CallStack`] knows at one place of a source's flow, without what it remembers of the program.
#[derive(Clone, Debug)]
pub struct CallStackCheckpoint<M> {
    code: CodeInContext,
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
            code: self.functions.code().clone(),
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
        self.functions.see(checkpoint.code.clone());
        self.stack.clone_from(&checkpoint.stack);
        self.parked.clone_from(&checkpoint.parked);
        self.lost.clone_from(&checkpoint.lost);
        (self.next, self.next_task, self.tasks) = (checkpoint.next, checkpoint.next_task, checkpoint.tasks);
        self.did_more = true;
        self.returns.add_all();
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
