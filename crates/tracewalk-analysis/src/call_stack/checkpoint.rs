//! The functions that are running at one place, saved so that following can resume there; and such states at regular distances.

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

/// Call stacks by step, kept at regular distances in one pass over a source. If there are too many, every other one is dropped and
/// the distance doubles, as with [`FlowIndex`](crate::drive::FlowIndex).
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct CallStacks<M> {
    /// Each with the step before which it is valid; ascending.
    kept: Vec<(u64, CallStackCheckpoint<M>)>,
    /// The number of frames in all of them.
    frames: usize,
    limits: CallStackLimits,
    /// The current distance between two, in steps.
    distance: u64,
}

/// How finely call stacks are kept.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct CallStackLimits {
    /// The least distance between two, in steps.
    pub distance: u64,
    /// The most stacks.
    pub stacks: usize,
    /// The most frames in all of them.
    pub frames: usize,
}

impl<M: Clone> CallStacks<M> {
    /// No stacks yet.
    #[must_use]
    pub const fn new(limits: CallStackLimits) -> Self {
        Self { kept: Vec::new(), frames: 0, limits, distance: limits.distance }
    }

    /// The last stack that is kept at or before a step, and its step.
    #[must_use]
    pub fn before(&self, step: u64) -> Option<&(u64, CallStackCheckpoint<M>)> {
        let after = self.kept.partition_point(|(at, _)| *at <= step);
        self.kept.get(after.checked_sub(1)?)
    }

    /// Keeps the stack before a step, if it is far enough from the last one that is kept.
    pub fn keep(&mut self, step: u64, calls: &CallStack<M>) {
        if self.kept.last().is_some_and(|(last, _)| step < last.saturating_add(self.distance)) {
            return;
        }
        let checkpoint = calls.checkpoint();
        self.frames += checkpoint.size();
        self.kept.push((step, checkpoint));
        while self.kept.len() > 1
            && (self.kept.len() > self.limits.stacks || self.frames > self.limits.frames)
        {
            keep_every_other(&mut self.kept);
            self.frames = self.kept.iter().map(|(_, checkpoint)| checkpoint.size()).sum();
            self.distance = self.distance.saturating_mul(2);
        }
    }

    /// Drops all stacks.
    pub fn clear(&mut self) {
        *self = Self::new(self.limits);
    }
}

/// Drops every second value.
pub fn keep_every_other<T>(of: &mut Vec<T>) {
    let mut number = 0_usize;
    of.retain(|_| {
        number += 1;
        number % 2 == 1
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Code;

    /// The sum of the steps over which calls are followed for jumps to a thousand places in a recording of `steps`
    /// steps.
    fn followed(steps: u64) -> u64 {
        let calls = CallStack::<u64>::new(Arc::new(Code::unknown()));
        let limits = CallStackLimits { distance: 1 << 16, stacks: 1 << 13, frames: 1 << 20 };
        let mut stacks = CallStacks::new(limits);
        for step in (0..steps).step_by(1000) {
            stacks.keep(step, &calls);
        }
        let places = (1..=1000).map(|place| place * (steps / 1001));
        places.map(|place| place - stacks.before(place).expect("the first step is kept").0).sum()
    }

    #[test]
    fn a_jump_in_a_recording_a_hundred_times_longer_follows_calls_no_further() {
        let (short, long) = (followed(5_000_000), followed(500_000_000));
        assert!(long * 2 < short * 3, "{short} {long}");
    }
}
