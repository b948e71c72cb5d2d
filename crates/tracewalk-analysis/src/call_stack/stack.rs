//! One task's frames, and the addresses at which execution may continue in them.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use tracewalk::flow::{Block, BranchKind, Ending};
use tracewalk::ids::{Address, Exception};
use tracewalk::isa::Return;

use super::frame::{Entry, Frame, FrameKind, FunctionId, Interruption, Left, ReturnSet, Task};
use super::observer::Observer;

/// One task's frames.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Stack<M> {
    pub(super) task: Task,
    /// The innermost last.
    pub(super) frames: VecDeque<Frame<M>>,
    /// The possible targets of `longjmp`, the newest last.
    pub(super) jumps: Vec<Jump>,
    pub(super) origin: Origin,
    /// The return address of the last call, if the trace was lost before the call's target was known.
    pub(super) called: Option<Address>,
    /// Whether the frames were left as lost, though they are kept.
    pub(super) left: bool,
}

/// A call of `setjmp` that returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub(super) struct Jump {
    /// The number of frames when execution continues there.
    pub(super) depth: usize,
    to: Address,
}

/// The origin of a stack's outermost frame.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub(super) enum Origin {
    /// The frame was found running.
    Found,
    /// The stack is one of a waiting task: one that continued at the first of these addresses and returned to the others.
    Unresolved(Vec<Address>),
    /// The stack was taken for that of the task that waited at `resume`, with `depth` frames; no return has confirmed this yet.
    Taken { depth: usize, resume: Address },
}

/// A task that is not running.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Parked<M> {
    pub(super) stack: Stack<M>,
    /// The address at which the task resumes; `None` if only its context ID identifies it.
    pub(super) resume: Option<Address>,
}

/// One task's frames at the start of a transaction.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Start<M> {
    pub(super) task: Task,
    pub(super) frames: VecDeque<Frame<M>>,
    pub(super) jumps: Vec<Jump>,
    pub(super) origin: Origin,
}

/// The pending step before the next block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub(super) enum Next {
    Unknown,
    Straight,
    Jump,
    /// An indirect branch, which may be a return by another means.
    IndirectJump,
    Call {
        site: Address,
        returns_to: Address,
    },
    Return,
    /// A return with another stack than the function was called with.
    OtherStack,
    /// Applied already.
    Exception,
    /// The handler is left already.
    ExceptionReturn(Finished),
    /// Code that no image holds ran; it may return.
    Elsewhere,
    /// An exception was taken, and the trace states the handler's address after it, as ETMv4 does.
    Handler(Interruption),
}

impl Next {
    /// The step after a block; `None` for a return from an exception, which leaves the exception's frames first.
    pub(super) const fn after(block: &Block) -> Option<Self> {
        Some(match block.ending {
            Ending::Branch { kind, taken: true, link, returns } => match (kind, link, returns) {
                (BranchKind::Barrier, ..) => Self::Straight,
                (_, true, _) => Self::Call { site: block.last, returns_to: block.end },
                (_, false, Some(Return::Function)) => Self::Return,
                (_, false, Some(Return::Exception)) => return None,
                (BranchKind::Indirect, false, None) => Self::IndirectJump,
                (BranchKind::Direct, false, None) => Self::Jump,
            },
            Ending::Branch { taken: false, .. } | Ending::Interrupted | Ending::ConditionFailed => {
                Self::Straight
            }
        })
    }
}

/// An exception that was returned from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub(super) struct Finished {
    /// The address at which the exception was taken.
    pub(super) from: Option<Address>,
    pub(super) exception: Option<Exception>,
    /// Whether a function that chooses the next task ran in its handler.
    pub(super) scheduled: bool,
}

/// The number of calls of `setjmp` that are remembered.
const MOST_JUMPS: usize = 256;

impl<M> Stack<M> {
    pub(super) const fn new(task: Task) -> Self {
        Self {
            task,
            frames: VecDeque::new(),
            jumps: Vec::new(),
            origin: Origin::Found,
            called: None,
            left: false,
        }
    }

    /// Enters a function; `is_usual` if it is known only to call and return.
    #[inline]
    pub(super) fn enter<O: Observer<Mark = M>>(
        &mut self,
        (kind, function, entry): (FrameKind, FunctionId, Entry),
        is_usual: bool,
        observer: &mut O,
    ) {
        let mark = observer.enter(self.frames.back_mut(), kind, function, entry);
        let returns = ReturnSet::of(kind, self.frames.back());
        self.frames.push_back(Frame { kind, function, mark, schedules: false, returns, is_usual });
    }

    /// Leaves all frames but the outermost `depth`. The innermost one is left as `how` says; frames that it returned past are
    /// unwound.
    pub(super) fn leave_to<O: Observer<Mark = M>>(&mut self, depth: usize, how: Left, observer: &mut O) {
        while self.frames.len() > depth
            && let Some(mut frame) = self.frames.pop_back()
        {
            let last = self.frames.len() == depth;
            let how = if how == Left::Returned && !last { Left::Unwound } else { how };
            observer.leave(&mut frame, self.frames.back_mut(), how);
        }
        self.has_left(depth);
    }

    /// Leaves all frames as lost, but keeps them: see [`Stack::regain_all`].
    pub(super) fn leave_all<O: Observer<Mark = M>>(&mut self, observer: &mut O) {
        if std::mem::replace(&mut self.left, true) {
            return;
        }
        let mut frames = VecDeque::with_capacity(self.frames.len());
        while let Some(mut frame) = self.frames.pop_back() {
            observer.leave(&mut frame, self.frames.back_mut(), Left::Lost);
            frames.push_front(frame);
        }
        self.frames = frames;
    }

    /// Enters all frames again, if they were left.
    pub(super) fn regain_all<O: Observer<Mark = M>>(&mut self, observer: &mut O) {
        if !std::mem::take(&mut self.left) {
            return;
        }
        let mut frames: VecDeque<Frame<M>> = VecDeque::with_capacity(self.frames.len());
        for mut frame in self.frames.drain(..) {
            observer.regain(frames.back_mut(), &mut frame);
            frames.push_back(frame);
        }
        self.frames = frames;
    }

    /// The frames but the outermost `depth` were left.
    #[inline]
    pub(super) fn has_left(&mut self, depth: usize) {
        self.jumps.retain(|jump| jump.depth <= depth);
        if matches!(self.origin, Origin::Taken { depth: taken, .. } if depth < taken) {
            self.origin = Origin::Found;
        }
    }

    pub(super) fn drop_outermost<O: Observer<Mark = M>>(&mut self, observer: &mut O) {
        if let Some(mut outermost) = self.frames.pop_front() {
            observer.leave(&mut outermost, None, Left::Lost);
        }
        self.jumps.clear();
        self.origin = Origin::Found;
    }

    /// The innermost frame of a function since the last exception.
    pub(super) fn innermost(&self, function: FunctionId) -> Option<usize> {
        self.innermost_below(self.frames.len(), function)
    }

    /// The innermost frame of a function since the last exception, among the outermost `depth` frames.
    pub(super) fn innermost_below(&self, depth: usize, function: FunctionId) -> Option<usize> {
        if !matches!(function, FunctionId::Named(..)) {
            return None;
        }
        self.since_exception(|index, frame| index < depth && frame.function == function)
    }

    /// The innermost call since the last exception, or that exception, that returns to `at`.
    pub(super) fn returning_to(&self, at: Address) -> Option<usize> {
        let top = self.frames.back()?;
        // Most jumps go to places that no frame returns to.
        if !top.returns.may_contain(at) {
            return None;
        }
        self.since_exception(|_, frame| frame.kind.returns_to() == Some(at))
    }

    /// The innermost of these frames among the last exception's and those above it.
    pub(super) fn since_exception(
        &self,
        mut is_wanted: impl FnMut(usize, &Frame<M>) -> bool,
    ) -> Option<usize> {
        for (index, frame) in self.frames.iter().enumerate().rev() {
            if is_wanted(index, frame) {
                return Some(index);
            }
            if frame.kind.is_exception() {
                return None;
            }
        }
        None
    }

    /// The innermost frame called `setjmp`, which will return to `to`.
    pub(super) fn remember_jump(&mut self, to: Address) {
        let jump = Jump { depth: self.frames.len(), to };
        self.jumps.retain(|known| *known != jump);
        if self.jumps.len() == MOST_JUMPS {
            self.jumps.remove(0);
        }
        self.jumps.push(jump);
    }

    /// The number of frames that remain when `longjmp` goes to `at`.
    pub(super) fn jump_to(&self, at: Address) -> Option<usize> {
        self.jumps
            .iter()
            .rev()
            .find(|jump| jump.to == at && jump.depth < self.frames.len())
            .map(|jump| jump.depth)
    }

    /// The return addresses of the frames, innermost first.
    fn returns(&self) -> impl Iterator<Item = Option<Address>> {
        self.frames.iter().rev().map(|frame| frame.kind.returns_to())
    }
}

impl<M> Parked<M> {
    /// Whether the task would go on at the first address of `path`, and return to the others.
    pub(super) fn is_on(&self, path: &[Address]) -> bool {
        let places = std::iter::once(self.resume).chain(self.stack.returns());
        path.len() <= self.stack.frames.len() && path.iter().zip(places).all(|(at, place)| place == Some(*at))
    }
}
