//! Stacks of waiting tasks, and stacks that were lost in gaps.
//!
//! Tasks often wait at the same place, inside the same function of their operating system. The address at which a task continues
//! then does not identify the task: it stays unresolved until it has returned so far that only one waiting stack fits.

use tracewalk::ids::Address;

use super::CallStack;
use super::frame::{Evidence, FrameKind, Left, Task};
use super::observer::Observer;
use super::stack::{Next, Origin, Parked, Stack};

/// The most tasks that are kept.
const MOST_TASKS: usize = 64;
/// The most gaps whose frames are kept.
const MOST_LOST: usize = 8;
/// The most frames that an unresolved task may return through.
const LONGEST_PATH: usize = 64;

impl<M> CallStack<M> {
    /// Another task runs, which continues at `at`; the one that ran will go on at `resume`.
    pub(super) fn switch<O: Observer<Mark = M>>(
        &mut self,
        resume: Address,
        at: Address,
        evidence: Evidence,
        observer: &mut O,
    ) {
        if self.stack.task == Task::Unresolved {
            // What it did so far belongs to no task in particular. The number ends with the first return that identifies it.
            self.stack.leave_all(observer);
            self.stack.task = self.new_task();
        }
        let from = self.stack.task;
        self.park(Some(resume), observer);
        let path = [at];
        let mut waiting = self.on_path(&path);
        match (waiting.next(), waiting.next()) {
            (Some(only), None) => {
                drop(waiting);
                self.unpark(only);
                if !matches!(self.stack.origin, Origin::Unresolved(_)) {
                    self.stack.origin = Origin::Taken { depth: self.stack.frames.len(), resume: at };
                }
            }
            (Some(_), Some(_)) => {
                drop(waiting);
                self.stack = Stack::new(Task::Unresolved);
                self.stack.origin = Origin::Unresolved(path.to_vec());
            }
            (None, _) => {
                drop(waiting);
                self.stack = Stack::new(self.new_task());
            }
        }
        if self.stack.task != from {
            observer.switch(from, self.stack.task, evidence);
        }
        self.stack.regain_all(observer);
    }

    /// An unresolved task returned from its outermost known frame to `at`. Returns whether its other frames are found.
    pub(super) fn attach<O: Observer<Mark = M>>(&mut self, at: Address, observer: &mut O) -> bool {
        let from = self.stack.task;
        let Origin::Unresolved(path) = &mut self.stack.origin else { return false };
        path.push(at);
        let path = path.clone();
        let mut waiting = self.on_path(&path);
        let (first, second) = (waiting.next(), waiting.next());
        drop(waiting);
        match (first, second) {
            (Some(only), None) => {
                self.unpark(only);
                // Where in between each of them returned, and what it did, is not known.
                let depth = self.stack.frames.len() + 1 - path.len();
                if self.stack.left {
                    self.stack.frames.truncate(depth);
                }
                self.stack.leave_to(depth, Left::Lost, observer);
                observer.identify(from, self.stack.task);
                self.stack.regain_all(observer);
                true
            }
            (Some(_), Some(_)) if path.len() < LONGEST_PATH => true,
            _ => {
                // No waiting task matches, or several still do after `LONGEST_PATH` returns: take this one for a new task.
                let task = self.new_task();
                self.stack = Stack::new(task);
                observer.identify(from, task);
                false
            }
        }
    }

    /// Whether the running task was mistaken for another one: its first return goes to an address to which that task cannot
    /// return. If so, looks the running task up again.
    pub(super) fn correct<O: Observer<Mark = M>>(&mut self, at: Address, observer: &mut O) -> bool {
        let Origin::Taken { depth, resume } = self.stack.origin else { return false };
        // A function that was found running may return anywhere.
        let is_known = self.stack.frames.back().is_some_and(|top| top.kind != FrameKind::Root);
        if depth != self.stack.frames.len() || !is_known {
            return false;
        }
        let from = self.stack.task;
        self.stack.origin = Origin::Found;
        self.park(Some(resume), observer);
        self.stack = Stack::new(Task::Unresolved);
        self.stack.origin = Origin::Unresolved(vec![resume]);
        observer.identify(from, Task::Unresolved);
        self.attach(at, observer);
        true
    }

    /// Whether a waiting task would go on at `at`.
    pub(super) fn is_waiting_at(&self, at: Address) -> bool {
        self.on_path(&[at]).next().is_some()
    }

    /// The trace names the task of the instructions from here on.
    pub(super) fn named<O: Observer<Mark = M>>(&mut self, task: Task, observer: &mut O) {
        if !self.stack.frames.is_empty() || !self.parked.is_empty() {
            self.next_task = Some(task);
        } else if task != self.stack.task {
            observer.switch(self.stack.task, task, Evidence::ContextId);
            self.stack.task = task;
        }
    }

    /// Changes to the task that the trace has named, now that execution has come to `at`. Returns whether it is another one.
    pub(super) fn change_task<O: Observer<Mark = M>>(&mut self, at: Address, observer: &mut O) -> bool {
        let Some(task) = self.next_task.take().filter(|task| *task != self.stack.task) else { return false };
        let from = self.stack.task;
        self.park(None, observer);
        match self.parked.iter().position(|parked| parked.stack.task == task) {
            Some(index) => self.unpark(index),
            None => self.stack = Stack::new(task),
        }
        observer.switch(from, task, Evidence::ContextId);
        self.stack.regain_all(observer);
        let function = self.functions.entered(at);
        match self.stack.innermost(function) {
            Some(index) => self.leave_to(index + 1, Left::Unwound, observer),
            None => self.lose_stack(observer),
        }
        self.settle(at, observer);
        self.next = Next::Straight;
        true
    }

    /// Puts the frames aside: a return may find them again.
    pub(super) fn lose_stack<O: Observer<Mark = M>>(&mut self, observer: &mut O) {
        let task = self.stack.task;
        let mut stack = std::mem::replace(&mut self.stack, Stack::new(task));
        if stack.frames.is_empty() {
            return;
        }
        stack.leave_all(observer);
        stack.origin = Origin::Found;
        stack.called = match self.next {
            Next::Call { returns_to, .. } => Some(returns_to),
            _ => None,
        };
        if self.lost.len() == MOST_LOST {
            self.lost.pop_front();
        }
        self.lost.push_back(stack);
    }

    /// Execution returned to `at` from the outermost known frame. Finds lost frames again if one of them was called from there or
    /// interrupted there: the outermost such frame, because nothing shows that the others still run.
    pub(super) fn regain<O: Observer<Mark = M>>(&mut self, at: Address, observer: &mut O) {
        let task = self.stack.task;
        for index in (0..self.lost.len()).rev() {
            let Some(stack) = self.lost.get(index).filter(|stack| stack.task == task) else { continue };
            let left = stack.frames.iter().position(|frame| frame.kind.returns_to() == Some(at));
            let left = left.or_else(|| (stack.called == Some(at)).then_some(stack.frames.len()));
            let Some(depth) = left.filter(|depth| *depth > 0) else { continue };
            let Some(mut stack) = self.lost.remove(index) else { continue };
            stack.frames.truncate(depth);
            stack.jumps.retain(|jump| jump.depth <= depth);
            stack.regain_all(observer);
            stack.called = None;
            self.stack = stack;
            return;
        }
    }

    fn park<O: Observer<Mark = M>>(&mut self, resume: Option<Address>, observer: &mut O) {
        let task = self.stack.task;
        let mut stack = std::mem::replace(&mut self.stack, Stack::new(task));
        let Some(top) = stack.frames.back_mut() else { return };
        if !stack.left {
            observer.suspend(top);
        }
        if self.parked.len() == MOST_TASKS {
            let mut oldest = self.parked.remove(0);
            oldest.stack.leave_all(observer);
        }
        self.parked.push(Parked { stack, resume });
    }

    fn unpark(&mut self, index: usize) {
        self.stack = self.parked.remove(index).stack;
    }

    fn on_path<'a>(&'a self, path: &'a [Address]) -> impl Iterator<Item = usize> + 'a {
        let waiting = self.parked.iter().enumerate();
        waiting.filter(|(_, parked)| parked.is_on(path)).map(|(index, _)| index)
    }

    fn new_task(&mut self) -> Task {
        self.tasks = self.tasks.saturating_add(1);
        Task::Number(self.tasks)
    }
}
