//! The functions that are running, reconstructed from program flow.
//!
//! Calls push their return address, exceptions the address at which they were taken. A return is recognised by its target, not by
//! its instruction: execution that goes to an address on the stack has returned there, whatever ran in between. This rule also
//! covers tail calls and functions that ran in code no image holds. Other events change the stack as follows:
//!
//! ```text
//! jump to another function       it takes over the frame: a tail call, or code shared between functions
//! return to where nothing called the known stack is wrong, or the caller ran before the trace began: only the function that
//!                                execution returned to is known
//! longjmp, a thrown exception    execution goes on after a setjmp, or in a function further out: the frames in between
//!                                are left
//! gap                            the frames are lost, but kept: a return to one of them finds it again
//! transaction that fails         the frames at its start run again
//! task switch                    the frames wait until the task runs again: by the context ID or VMID, or by the evidence that
//!                                an exception returned to where another task had been interrupted, or that a function
//!                                changed the stack pointer and returned
//! cleanup that resumes unwinding the frame that it cleaned up is over
//! ```
//!
//! No frame is invented: each one was entered in the trace, or is the outermost and was found running.
//!
//! ```
//! use std::sync::Arc;
//! use tracewalk_analysis::call_stack::{CallStack, Unobserved};
//! use tracewalk_analysis::Code;
//!
//! # use tracewalk::{ids::Address, program::Program, protocol::etmv3, source::SourceConfig};
//! # use tracewalk_analysis::drive::{Carrier, Follower, Input, NoProgress, Stretch};
//! # let config = SourceConfig::Etmv3(etmv3::Config::for_core("cortex-m3").expect("a known core"));
//! # let mut program = Program::new();
//! # program.add(Address::new(0x100), &[0x00, 0xf0, 0x02, 0xf8, 0x00, 0xbf, 0x00, 0xbf, 0x00, 0xbf])?;
//! # let trace = [0, 0, 0, 0, 0, 0x80, 0x08, 0x21, 0x01, 0x01, 0x00, 0x00, 0x84, 0x84];
//! # let carrier = Carrier::Stretches(vec![Stretch::all(trace.len())]);
//! # let input = Input { capture: &trace, carrier, rest: None, progress: &NoProgress };
//! // `config`, `program` and `input` are made as in the example of `drive`.
//! // A trace of `bl` at 0x100 and of an instruction of the function that it calls.
//! let code = Arc::new(Code { program: Arc::new(program.clone()), ..Code::unknown() });
//! let mut calls = CallStack::<()>::new(code);
//! Follower::new(&config, &program).flow(&input, |record| {
//!     calls.element(&record.element, &mut Unobserved);
//!     Ok(())
//! })?;
//! assert_eq!(calls.depth(), 1);
//! let addresses = calls.frames().map(|frame| frame.function.address()).collect::<Vec<_>>();
//! assert_eq!(addresses.last(), Some(&Some(Address::new(0x108))));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod checkpoint;
mod exceptions;
mod frame;
mod functions;
mod observer;
mod outline;
mod passage;
mod returns;
mod stack;
mod switching;
mod tasks;
mod transactions;

use std::collections::VecDeque;
use std::sync::Arc;

use tracewalk::flow::{Block, Element, EventKind, GapReason};
use tracewalk::ids::Address;
use tracewalk::program::Scope;

use crate::transactions::Turn;
use crate::{Code, CodeInContext};
use functions::{Functions, Pieces, Special};
use outline::Outlines;
use stack::{Next, Parked, Stack, Start};

pub use checkpoint::{CallStackCheckpoint, CallStackLimits, CallStacks, keep_every_other};
pub use frame::{Entry, Evidence, Frame, FrameKind, FunctionId, Interruption, Left, Task};
pub use observer::{Observer, Piece, Run, Runs, Unobserved};
pub use outline::Outlined;
pub(crate) use switching::loads_stack_pointer;

/// Follows calls, returns, exceptions and tasks, and reports them to an [`Observer`].
#[derive(Debug)]
pub struct CallStack<M> {
    functions: Functions,
    stack: Stack<M>,
    next: Next,
    /// The task that the trace has named, from the next instruction on.
    next_task: Option<Task>,
    /// Other tasks' stacks.
    parked: Vec<Parked<M>>,
    /// Stacks that were lost in gaps, the newest last.
    lost: VecDeque<Stack<M>>,
    /// The start of the open transaction, if it is known.
    transaction: Option<Box<Start<M>>>,
    /// How many tasks were distinguished by evidence.
    tasks: u32,
    /// The outlines of passages that were taken.
    outlines: Outlines,
}

/// How execution came to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The code that ran before is unknown.
    Unknown,
    /// By running on from the block before.
    Straight,
    /// By a branch that neither called nor returned.
    Jump,
    /// By a call.
    Call,
    /// By a return from a known call, or from one before the trace began.
    Return,
    /// By taking an exception.
    Exception,
    /// By returning from an exception.
    ExceptionReturn,
}

/// Recursion deeper than this loses its outermost frames, so that memory stays bounded.
const DEEPEST: usize = 1 << 14;

impl<M> CallStack<M> {
    /// A stack without known frames.
    #[must_use]
    pub fn new(code: Arc<Code>) -> Self {
        Self {
            functions: Functions::new(code),
            stack: Stack::new(Task::Number(1)),
            next: Next::Unknown,
            next_task: None,
            parked: Vec::new(),
            lost: VecDeque::new(),
            transaction: None,
            tasks: 1,
            outlines: Outlines::default(),
        }
    }

    /// The number of known calls and exceptions around the last block.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.stack.frames.len().saturating_sub(1)
    }

    /// The functions that are running, outermost first.
    pub fn frames(&self) -> impl DoubleEndedIterator<Item = &Frame<M>> {
        self.stack.frames.iter()
    }

    /// The same, for an observer to change its marks.
    pub fn frames_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Frame<M>> {
        self.stack.frames.iter_mut()
    }

    /// The program as the current context sees it.
    #[must_use]
    pub const fn code(&self) -> &CodeInContext {
        self.functions.code()
    }

    /// The function that is running.
    pub fn innermost_mut(&mut self) -> Option<&mut Frame<M>> {
        self.stack.frames.back_mut()
    }

    /// The task that is running.
    #[must_use]
    pub const fn task(&self) -> Task {
        self.stack.task
    }

    /// Takes the next element. For a block, returns how execution came to it.
    pub fn element<O>(&mut self, element: &Element, observer: &mut O) -> Option<Arrival>
    where
        M: Clone,
        O: Observer<Mark = M>,
    {
        match element {
            Element::Block(block) => {
                let arrival = self.arrive(block.start, observer);
                let switches = self.run(block, observer);
                self.end_block(block, switches, observer);
                return Some(arrival);
            }
            Element::Event(event) => match event.kind {
                EventKind::TraceOn(_) => self.lose(observer),
                EventKind::Exception { exception, preferred_return, handler } => {
                    let handler = handler.map(|handler| handler.address);
                    self.exception(exception, preferred_return, handler, observer);
                }
                EventKind::ExceptionReturn => self.exception_return(observer),
                EventKind::Context { context_id, vmid, .. } => {
                    self.functions.element(element);
                    let context = Scope { context_id, vmid };
                    if context != Scope::EVERYWHERE {
                        self.named(Task::Context(context), observer);
                    }
                }
                EventKind::Timestamp(_)
                | EventKind::Cycles(_)
                | EventKind::Trigger
                | EventKind::Events(_)
                | EventKind::Instrumentation(_)
                | EventKind::Transaction(_)
                | EventKind::ClockChanged
                | EventKind::Data(_) => {}
                // An unknown kind may change which functions run.
                _ => self.lose(observer),
            },
            Element::Proof(_) => {}
            Element::Gap(gap) => match gap.reason {
                GapReason::NoCode(at) | GapReason::Undecodable(at, _) => {
                    let _ = self.arrive(at.address, observer);
                    self.next = Next::Elsewhere;
                }
                // Lost trace, contradictions, and every other reason: the running functions are unknown.
                _ => self.lose(observer),
            },
        }
        if let Some(turn) = Turn::of(element) {
            self.transaction(turn, observer);
        }
        None
    }

    /// The trace ends here: all functions are left.
    pub fn finish<O: Observer<Mark = M>>(&mut self, observer: &mut O) {
        self.enter_handler(None, observer);
        self.leave_to(0, Left::Lost, observer);
        for mut parked in std::mem::take(&mut self.parked) {
            parked.stack.leave_all(observer);
        }
        self.lost.clear();
        self.transaction = None;
        self.next = Next::Unknown;
    }

    /// Execution is at `at` next.
    fn arrive<O: Observer<Mark = M>>(&mut self, at: Address, observer: &mut O) -> Arrival {
        self.enter_handler(Some(at), observer);
        let arrival = match std::mem::replace(&mut self.next, Next::Straight) {
            Next::Unknown => Arrival::Unknown,
            Next::Straight => Arrival::Straight,
            Next::Jump => Arrival::Jump,
            Next::Exception | Next::Handler(_) => Arrival::Exception,
            // Position-independent code calls the next instruction to get its own address.
            Next::Call { returns_to, .. } if returns_to == at => Arrival::Straight,
            Next::Call { site, returns_to } => {
                let kind = FrameKind::Call { site: Some(site), returns_to: Some(returns_to) };
                self.call(kind, at, observer);
                Arrival::Call
            }
            Next::IndirectJump => self.jumped(at, observer),
            Next::Return => self.returned(at, None, observer),
            Next::OtherStack => self.returned(at, Some(Evidence::StackPointer), observer),
            Next::ExceptionReturn(finished) => {
                let is_other = self.next_task.is_some_and(|task| task != self.stack.task);
                if !(is_other && self.functions.states_tasks()) {
                    self.resumed(finished, at, observer);
                }
                Arrival::ExceptionReturn
            }
            Next::Elsewhere => self.came_back(at, observer),
        };
        // In another task, `at` is no evidence about the frames of this one.
        if !self.change_task(at, observer) {
            self.settle(at, observer);
        }
        arrival
    }

    /// Makes the innermost frame's function the one that holds `at`.
    fn settle<O: Observer<Mark = M>>(&mut self, at: Address, observer: &mut O) {
        let function = self.functions.entered(at);
        let Some(top) = self.stack.frames.back() else {
            let found = match function {
                FunctionId::Unnamed(..) => FunctionId::Unknown,
                known => known,
            };
            self.push(FrameKind::Root, found, Entry::Found, observer);
            return;
        };
        if !top.function.goes_on_in(function) {
            self.replace(function, at, observer);
        }
    }

    /// Another function takes over the innermost frame.
    fn replace<O: Observer<Mark = M>>(&mut self, function: FunctionId, at: Address, observer: &mut O) {
        let Some(mut top) = self.stack.frames.pop_back() else { return };
        observer.leave(&mut top, self.stack.frames.back_mut(), Left::Replaced);
        let entry = if function.address() == Some(at) { Entry::TailCalled } else { Entry::Joined };
        self.push(top.kind, function, entry, observer);
        if let Some(new) = self.stack.frames.back_mut() {
            new.schedules |= top.schedules;
        }
    }

    fn push<O>(&mut self, kind: FrameKind, function: FunctionId, entry: Entry, observer: &mut O)
    where
        O: Observer<Mark = M>,
    {
        if self.stack.frames.len() >= DEEPEST {
            self.stack.drop_outermost(observer);
        }
        let special = self.functions.special(function);
        self.stack.enter((kind, function, entry), special == Special::Nothing, observer);
        if special == Special::Schedules {
            let handler = self.stack.frames.iter().rposition(|frame| frame.kind.is_exception());
            if let Some(handler) = handler.and_then(|handler| self.stack.frames.get_mut(handler)) {
                handler.schedules = true;
            }
        }
    }

    fn call<O: Observer<Mark = M>>(&mut self, kind: FrameKind, at: Address, observer: &mut O) {
        let function = self.functions.entered(at);
        if let (Special::SetsJump, FrameKind::Call { returns_to: Some(to), .. }) =
            (self.functions.special(function), kind)
        {
            self.stack.remember_jump(to);
        }
        self.push(kind, function, Entry::Called, observer);
    }

    /// Runs a block's instructions. Returns whether it goes on with another stack.
    fn run<O: Observer<Mark = M>>(&mut self, block: &Block, observer: &mut O) -> bool {
        let pieces = self.functions.pieces(block);
        match &pieces {
            Pieces::One | Pieces::Switching => {
                let Block { start, end, isa, instructions, .. } = *block;
                if let Some(top) = self.stack.frames.back_mut() {
                    observer.run(top, &Piece { start, end, isa, instructions });
                }
            }
            Pieces::Several(pieces) => {
                for piece in pieces.iter() {
                    self.settle(piece.start, observer);
                    if let Some(top) = self.stack.frames.back_mut() {
                        observer.run(top, piece);
                    }
                }
            }
        }
        matches!(pieces, Pieces::Switching)
    }

    fn end_block<O: Observer<Mark = M>>(&mut self, block: &Block, switches: bool, observer: &mut O) {
        self.next = match Next::after(block) {
            Some(Next::Return) if switches => Next::OtherStack,
            Some(next) => next,
            None => Next::ExceptionReturn(self.pop_exception(observer)),
        };
    }

    /// Loses the frames: the code that ran since is unknown.
    fn lose<O: Observer<Mark = M>>(&mut self, observer: &mut O) {
        self.enter_handler(None, observer);
        self.lose_stack(observer);
        self.next = Next::Unknown;
    }

    /// Leaves all frames but the outermost `depth`.
    fn leave_to<O: Observer<Mark = M>>(&mut self, depth: usize, how: Left, observer: &mut O) {
        self.stack.leave_to(depth, how, observer);
    }
}

#[cfg(test)]
mod tests;
