//! Exceptions: their entries, their returns, and tail-chaining.

use tracewalk::ids::{Address, Exception};

use super::CallStack;
use super::frame::{Entry, Evidence, FrameKind, FunctionId, Interruption, Left};
use super::observer::Observer;
use super::stack::{Finished, Next, Origin};

impl<M> CallStack<M> {
    pub(super) fn exception<O: Observer<Mark = M>>(
        &mut self,
        exception: Option<Exception>,
        preferred_return: Option<Address>,
        handler: Option<Address>,
        observer: &mut O,
    ) {
        if preferred_return.is_none() {
            self.enter_handler(None, observer);
        }
        if is_reset(exception) {
            self.lost.clear();
            self.leave_to(0, Left::Lost, observer);
            self.next = Next::Unknown;
        }
        let returned = matches!(self.next, Next::ExceptionReturn(_));
        let before = self.replaced_return(preferred_return, observer);
        let replaced = before.is_some();
        // The exception before may have returned to another task. What an instruction raises itself is not chained to what returned to
        // this instruction.
        let is_of_instruction =
            preferred_return.is_some() && exception.is_some_and(Exception::is_synchronous);
        let chained = (replaced || returned) && !is_of_instruction;
        // A call or return just before the exception has happened, though nothing ran at its target.
        match (preferred_return, self.next) {
            _ if replaced => {}
            (Some(address), _) => drop(self.arrive(address, observer)),
            (None, Next::Unknown) => {}
            (None, _) => self.next = Next::Straight,
        }
        let returns_to = preferred_return.or(before.flatten());
        self.next = Next::Handler(Interruption { exception, returns_to, chained });
        if handler.is_some() {
            self.enter_handler(handler, observer);
        }
    }

    /// The exception that was taken last, if its handler is not a frame yet: in ETMv4, the handler's address follows the exception.
    #[must_use]
    pub const fn taken(&self) -> Option<&Interruption> {
        match &self.next {
            Next::Handler(interruption) => Some(interruption),
            _ => None,
        }
    }

    /// Enters the handler of an exception that was taken, if that is the next step; `None` if its address is not known.
    pub(super) fn enter_handler<O: Observer<Mark = M>>(&mut self, at: Option<Address>, observer: &mut O) {
        let Next::Handler(interruption) = self.next else { return };
        let function = at.map_or(FunctionId::Unknown, |at| self.functions.entered(at));
        self.push(FrameKind::Exception(interruption), function, Entry::Interrupting, observer);
        self.next = Next::Exception;
    }

    /// The address that the previous exception would have returned to, if this exception replaces that return.
    ///
    /// M profile enters the next handler without returning first (DDI 0403E, B1.5.12, tail-chaining); the trace may or may not
    /// report the first handler's return.
    fn replaced_return<O: Observer<Mark = M>>(
        &mut self,
        preferred_return: Option<Address>,
        observer: &mut O,
    ) -> Option<Option<Address>> {
        match self.next {
            Next::ExceptionReturn(finished)
                if preferred_return.is_none() || preferred_return == finished.from =>
            {
                Some(finished.from)
            }
            Next::Return
                if preferred_return.is_none()
                    && self.stack.frames.back().is_some_and(|top| top.kind.is_exception()) =>
            {
                Some(self.pop_exception(observer).from)
            }
            _ => None,
        }
    }

    /// Takes the event of an exception's return. The form of the instruction before may have shown the return already.
    pub(super) fn exception_return<O: Observer<Mark = M>>(&mut self, observer: &mut O) {
        self.enter_handler(None, observer);
        if !matches!(self.next, Next::ExceptionReturn(_)) {
            self.next = Next::ExceptionReturn(self.pop_exception(observer));
        }
    }

    /// Leaves the innermost exception's handler.
    pub(super) fn pop_exception<O: Observer<Mark = M>>(&mut self, observer: &mut O) -> Finished {
        let found = self.stack.frames.iter().enumerate().rev().find_map(|(index, frame)| match frame.kind {
            FrameKind::Exception(interruption) => Some((index, interruption, frame.schedules)),
            FrameKind::Root | FrameKind::Call { .. } => None,
        });
        let Some((index, interruption, scheduled)) = found else {
            // The exception was taken before the trace began; so were the calls of its handler that are known.
            self.leave_to(0, Left::Returned, observer);
            self.stack.origin = Origin::Found;
            return Finished::default();
        };
        self.leave_to(index, Left::Returned, observer);
        Finished { from: interruption.returns_to, exception: interruption.exception, scheduled }
    }

    /// Execution continues at `at` after a return from an exception.
    pub(super) fn resumed<O: Observer<Mark = M>>(
        &mut self,
        finished: Finished,
        at: Address,
        observer: &mut O,
    ) {
        if self.stack.frames.is_empty() {
            // The handler was the outermost frame that is known.
            self.regain(at, observer);
            return;
        }
        let chooses_tasks = finished.exception == Some(Exception::M(14)) || finished.scheduled;
        // All tasks that yielded in the same function resume at the same place.
        if finished.from == Some(at) && !(chooses_tasks && self.is_waiting_at(at)) {
            if chooses_tasks && self.stack.origin == Origin::Found {
                // The task may still be another one that was not seen before.
                self.stack.origin = Origin::Taken { depth: self.stack.frames.len(), resume: at };
            }
            return;
        }
        // If an outer exception was taken here, the inner one was tail-chained to it: the outer handler ended when the inner one
        // began.
        let taken_here = |kind: FrameKind| kind.is_exception() && kind.returns_to() == Some(at);
        if let Some(outer) = self.stack.frames.iter().rposition(|frame| taken_here(frame.kind)) {
            self.leave_to(outer, Left::Returned, observer);
            return;
        }
        let evidence = match finished {
            // If the address at which the exception was taken is unknown, any code may follow.
            Finished { from: None, .. } => None,
            _ if self.functions.states_tasks() => None,
            Finished { exception: Some(Exception::M(14)), .. } => Some(Evidence::PendSv),
            Finished { scheduled: true, .. } => Some(Evidence::Scheduler),
            _ if self.functions.is_start(at) => Some(Evidence::Start),
            _ if self.is_waiting_at(at) => Some(Evidence::Resumed),
            _ => None,
        };
        if let (Some(evidence), Some(from)) = (evidence, finished.from) {
            self.switch(from, at, evidence, observer);
            return;
        }
        // The handler may have resumed execution after a faulting call, or elsewhere.
        if self.return_to(at, observer) {
            return;
        }
        match self.stack.innermost(self.functions.entered(at)) {
            Some(index) => self.leave_to(index + 1, Left::Unwound, observer),
            None => {
                self.lose(observer);
                self.next = Next::Straight;
            }
        }
    }
}

fn is_reset(exception: Option<Exception>) -> bool {
    exception.is_some_and(Exception::is_reset)
}
