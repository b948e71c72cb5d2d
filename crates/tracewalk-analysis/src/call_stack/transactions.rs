//! Transactions that fail: execution continues after the instruction that started the transaction, with the calls of that moment.

use super::CallStack;
use super::frame::{Frame, Left};
use super::observer::Observer;
use super::stack::{Next, Start};
use crate::transactions::Turn;

impl<M: Clone> CallStack<M> {
    /// A transaction begins, or its fate is decided.
    #[cold]
    pub(super) fn transaction<O: Observer<Mark = M>>(&mut self, turn: Turn, observer: &mut O) {
        let start = self.transaction.take();
        match turn {
            Turn::Begins => self.transaction = self.start(),
            Turn::Commits | Turn::IsLost => {}
            Turn::Fails => match start.filter(|start| start.task == self.stack.task) {
                Some(start) => self.go_back(*start, observer),
                None => self.lose(observer),
            },
        }
    }

    /// The current frames; `None` if the function that starts the transaction is not known. If the trace begins in a transaction,
    /// other functions may have started it.
    fn start(&self) -> Option<Box<Start<M>>> {
        let is_known = self.next == Next::Straight && !self.stack.frames.is_empty();
        let stack = is_known.then_some(&self.stack)?;
        let (frames, jumps, origin) = (stack.frames.clone(), stack.jumps.clone(), stack.origin.clone());
        Some(Box::new(Start { task: stack.task, frames, jumps, origin }))
    }

    /// Leaves the frames that were entered since the start, and finds those that were left again.
    fn go_back<O: Observer<Mark = M>>(&mut self, start: Start<M>, observer: &mut O) {
        self.enter_handler(None, observer);
        // A function that was called again in the same way takes the place of the call that it equals.
        let is_same =
            |(now, then): &(&Frame<M>, &Frame<M>)| (now.kind, now.function) == (then.kind, then.function);
        let same = self.stack.frames.iter().zip(&start.frames).take_while(is_same).count();
        self.leave_to(same, Left::Unwound, observer);
        for (now, then) in self.stack.frames.iter_mut().zip(&start.frames) {
            now.schedules = then.schedules;
        }
        for mut frame in start.frames.into_iter().skip(same) {
            observer.regain(self.stack.frames.back_mut(), &mut frame);
            self.stack.frames.push_back(frame);
        }
        (self.stack.jumps, self.stack.origin) = (start.jumps, start.origin);
        self.next = Next::Straight;
    }
}
