//! Returns, and indirect branches that may be returns by another means.

use tracewalk::ids::Address;

use super::frame::{FrameKind, Left};
use super::functions::Special;
use super::observer::Observer;
use super::stack::Next;
use super::{Arrival, CallStack, Evidence};

impl<M> CallStack<M> {
    /// An indirect branch without the form of a return went to `at`.
    pub(super) fn jumped<O: Observer<Mark = M>>(&mut self, at: Address, observer: &mut O) -> Arrival {
        if self.return_to(at, observer) || self.jump_back(at, observer) {
            return Arrival::Return;
        }
        // Into the middle of a function that waits further out: a thrown exception's landing pad.
        if !self.functions.is_start(at)
            && let Some(index) = self.landing(at)
            && index + 1 < self.stack.frames.len()
        {
            self.leave_to(index + 1, Left::Unwound, observer);
            return Arrival::Return;
        }
        Arrival::Jump
    }

    /// The frame in which execution goes on at `at`, in the middle of its function: the innermost one of that function. A
    /// cleanup that goes on with the unwinding is over, and so is the frame that it belongs to.
    fn landing(&mut self, at: Address) -> Option<usize> {
        let function = self.functions.entered(at);
        let Self { stack, functions, .. } = self;
        let mut cleanup = None;
        let _ = stack.since_exception(|index, frame| {
            let unwinds = !frame.is_usual && functions.special(frame.function) == Special::Unwinds;
            cleanup = if unwinds { Some(index) } else { cleanup };
            // One such function may have called the other.
            cleanup.is_some() && !unwinds
        });
        let below = cleanup.and_then(|outermost| outermost.checked_sub(1));
        let outer = below.and_then(|depth| stack.innermost_below(depth, function));
        outer.or_else(|| stack.innermost(function))
    }

    /// An instruction that has the form of a return went to `at`; `evidence` if the stack is another one afterwards.
    pub(super) fn returned<O: Observer<Mark = M>>(
        &mut self,
        at: Address,
        evidence: Option<Evidence>,
        observer: &mut O,
    ) -> Arrival {
        let top = self.stack.frames.back().map(|top| top.function);
        let by_name = top.is_some_and(|function| self.functions.special(function) == Special::Switches);
        let evidence = evidence.or(by_name.then_some(Evidence::Scheduler));
        if self.return_to(at, observer) {
            if let Some(evidence) = evidence {
                self.switch(at, at, evidence, observer);
            }
            return Arrival::Return;
        }
        if let Some(evidence) = evidence
            && self.stack.frames.len() > 1
            && let Some(resume) = self.caller()
            && !self.stack.frames.iter().any(|frame| frame.kind.is_exception())
        {
            self.leave_to(self.stack.frames.len() - 1, Left::Returned, observer);
            self.switch(resume, at, evidence, observer);
            return Arrival::Return;
        }
        if self.jump_back(at, observer) {
            return Arrival::Return;
        }
        let depth = self.stack.frames.len();
        let top = self.stack.frames.back().map(|top| top.kind);
        if let Some(FrameKind::Call { returns_to: None, .. }) = top {
            self.leave_to(depth - 1, Left::Returned, observer);
            return Arrival::Return;
        }
        if self.functions.is_start(at) {
            // PUSH {address}; POP {PC}: a call in the form of a return.
            return Arrival::Jump;
        }
        if let Some(index) = self.landing(at) {
            if index + 1 < depth {
                self.leave_to(index + 1, Left::Unwound, observer);
                return Arrival::Return;
            }
            if top != Some(FrameKind::Root) {
                return Arrival::Jump;
            }
        }
        self.return_out(at, observer);
        Arrival::Return
    }

    /// Execution returned to `at`, the return address of no known frame.
    pub(super) fn return_out<O: Observer<Mark = M>>(&mut self, at: Address, observer: &mut O) {
        if let Some(handler) = self.stack.frames.iter().rposition(|frame| frame.kind.is_exception()) {
            self.leave_to(handler + 1, Left::Lost, observer);
        } else if self.correct(at, observer) {
            // The running task was taken for another one.
        } else if self.stack.frames.len() <= 1 {
            self.leave_to(0, Left::Returned, observer);
            if !self.attach(at, observer) {
                self.regain(at, observer);
            }
        } else {
            self.lose(observer);
            self.next = Next::Straight;
        }
    }

    /// The return address of the innermost function.
    pub(super) fn caller(&self) -> Option<Address> {
        self.stack.frames.back()?.kind.returns_to()
    }

    /// Code that no image holds went to `at`.
    pub(super) fn came_back<O: Observer<Mark = M>>(&mut self, at: Address, observer: &mut O) -> Arrival {
        if self.return_to(at, observer) || self.jump_back(at, observer) {
            return Arrival::Return;
        }
        if self.functions.is_start(at) {
            self.call(FrameKind::Call { site: None, returns_to: None }, at, observer);
            return Arrival::Call;
        }
        match self.stack.innermost(self.functions.entered(at)) {
            Some(index) => {
                self.leave_to(index + 1, Left::Unwound, observer);
                Arrival::Return
            }
            None => {
                self.lose(observer);
                self.next = Next::Straight;
                Arrival::Unknown
            }
        }
    }

    /// Whether a call since the last exception, or that exception, returns to `at`; if so, leaves its callees.
    pub(super) fn return_to<O: Observer<Mark = M>>(&mut self, at: Address, observer: &mut O) -> bool {
        match self.stack.returning_to(at) {
            Some(index) => {
                self.leave_to(index, Left::Returned, observer);
                true
            }
            None => false,
        }
    }

    /// Whether `at` is after a call of `setjmp`; if so, leaves the functions called since.
    pub(super) fn jump_back<O: Observer<Mark = M>>(&mut self, at: Address, observer: &mut O) -> bool {
        let Some(depth) = self.stack.jump_to(at) else { return false };
        self.leave_to(depth, Left::Unwound, observer);
        true
    }
}
