//! The parts of a call stack: functions, frames, tasks, and the observer's interface.

use std::fmt;

use serde::{Deserialize, Serialize};
use tracewalk::ids::{Address, Exception};
use tracewalk::program::Scope;

use crate::quick::mix;
use crate::saved::words;
use crate::{Code, CodeInContext};

/// A function, identified by its address and the contexts in which its code is visible there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FunctionId {
    /// The function that starts here by the symbols.
    Named(#[serde(with = "words")] Address, #[serde(with = "words::scope")] Scope),
    /// Code without a symbol that was entered here.
    Unnamed(#[serde(with = "words")] Address, #[serde(with = "words::scope")] Scope),
    /// Code that no image holds, entered here.
    Missing(#[serde(with = "words")] Address),
    /// Code without a symbol; how it was entered is not known.
    Unknown,
    /// No code: a sample found that the processor slept.
    Asleep,
}

impl FunctionId {
    /// The function whose instruction at `at` was reached by a call, or in another way that makes `at` its entry.
    pub(super) fn entered(at: Address, code: &CodeInContext) -> Self {
        match code.symbols.function(at) {
            Some(function) => Self::Named(function.start, code.scope_at(at)),
            // Without any image, no code is missing in particular.
            None if !code.program.is_empty() && code.program.code(at).is_none() => Self::Missing(at),
            None => Self::Unnamed(at, code.scope_at(at)),
        }
    }

    /// The name in the program `code`, or a substitute.
    #[must_use]
    pub fn name(self, code: &Code) -> String {
        match self {
            Self::Named(start, scope) => match code.in_scope(scope).symbols.function(start) {
                Some(function) => function.name.to_owned(),
                None => start.to_string(),
            },
            // A system loads a file somewhere else each time.
            Self::Unnamed(entry, scope) => match code.in_scope(scope).symbols.in_moved_file(entry) {
                Some((file, at)) => format!("{file}+{:#x}", at.get()),
                None => entry.to_string(),
            },
            Self::Missing(entry) => format!("{entry} (in no image)"),
            Self::Unknown => "code without a name".to_owned(),
            Self::Asleep => "(asleep)".to_owned(),
        }
    }

    /// The address at which the function starts, or was entered.
    #[must_use]
    pub const fn address(self) -> Option<Address> {
        match self {
            Self::Named(at, _) | Self::Unnamed(at, _) | Self::Missing(at) => Some(at),
            Self::Unknown | Self::Asleep => None,
        }
    }

    /// In which contexts its code is visible there.
    #[must_use]
    pub const fn scope(self) -> Scope {
        match self {
            Self::Named(_, scope) | Self::Unnamed(_, scope) => scope,
            Self::Missing(_) | Self::Unknown | Self::Asleep => Scope::EVERYWHERE,
        }
    }

    /// Whether execution in this function that reached the code of `other` is still in it. Without symbols, only calls tell
    /// functions apart.
    pub(super) fn goes_on_in(self, other: Self) -> bool {
        match (self, other) {
            (Self::Named(..), Self::Named(..)) => self == other,
            (Self::Unnamed(_, scope), Self::Unnamed(_, other)) => scope == other,
            (Self::Missing(_), Self::Missing(_)) => true,
            (Self::Unnamed(..) | Self::Unknown, Self::Unnamed(..) | Self::Unknown) => true,
            _ => false,
        }
    }
}

/// A set of return addresses: one that is not in the set is recognised at once, mostly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReturnSet(u128);

/// Any address may be in the set.
impl Default for ReturnSet {
    fn default() -> Self {
        Self(u128::MAX)
    }
}

impl ReturnSet {
    const EMPTY: Self = Self(0);

    /// The return addresses of a frame of this kind and of the frames under it, up to an exception's.
    pub(super) fn of<M>(kind: FrameKind, below: Option<&Frame<M>>) -> Self {
        let below = match (kind, below) {
            (FrameKind::Exception(_), _) | (_, None) => Self::EMPTY,
            (_, Some(below)) => below.returns,
        };
        Self(below.0 | kind.returns_to().map_or(0, Self::bit))
    }

    /// Whether the address may be in the set.
    #[inline]
    pub(super) const fn may_contain(self, at: Address) -> bool {
        self.0 & Self::bit(at) != 0
    }

    const fn bit(at: Address) -> u128 {
        1 << (mix(at.get()) >> 57)
    }
}

/// A function that is running, or waits for a callee or for the end of an exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Frame<M> {
    /// How the function came to run.
    pub kind: FrameKind,
    /// The function. A tail call puts another one in its place.
    pub function: FunctionId,
    /// The observer's mark.
    pub mark: M,
    /// Set on an exception in which a function ran that chooses the next task.
    pub(super) schedules: bool,
    /// The return addresses since the last exception.
    #[serde(skip)]
    pub(super) returns: ReturnSet,
    /// Whether the function is known only to call and return.
    #[serde(skip)]
    pub(super) is_usual: bool,
}

/// How a frame came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub enum FrameKind {
    /// The function was already running when first seen; its caller is unknown.
    Root,
    /// By a call.
    Call {
        /// The calling instruction; `None` for a call from code that no image holds.
        site: Option<Address>,
        /// The return address; `None` for a call from code that no image holds.
        returns_to: Option<Address>,
    },
    /// By an exception.
    Exception(Interruption),
}

/// An exception that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub struct Interruption {
    /// The exception; `None` if neither the trace nor the vector table states it.
    pub exception: Option<Exception>,
    /// The address at which execution resumes; `None` if unknown.
    pub returns_to: Option<Address>,
    /// Whether the exception replaced another exception's return, with nothing executed between them.
    pub chained: bool,
}

impl FrameKind {
    /// The return address, if known.
    pub(super) const fn returns_to(self) -> Option<Address> {
        match self {
            Self::Root => None,
            Self::Call { returns_to, .. } => returns_to,
            Self::Exception(interruption) => interruption.returns_to,
        }
    }

    /// Whether the frame handles an exception.
    #[must_use]
    pub const fn is_exception(self) -> bool {
        matches!(self, Self::Exception(_))
    }
}

/// How a function is entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Entry {
    /// The function was already running when first seen.
    Found,
    /// By a call.
    Called,
    /// By a jump to its start from the function whose frame it takes over: a tail call.
    TailCalled,
    /// By a jump into its middle, or by falling into it; the function takes over the frame.
    Joined,
    /// By an exception.
    Interrupting,
    /// The function was lost in a gap and is found again.
    Regained,
}

/// How a function is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// By a return.
    Returned,
    /// Another function took over its frame.
    Replaced,
    /// A function further out continued, by `longjmp` or the like.
    Unwound,
    /// The trace does not show how the function ended.
    Lost,
}

/// A thread of execution with a stack of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// The task with this context ID, VMID, or both, as far as the trace reports them.
    Context(#[serde(with = "words::scope")] Scope),
    /// A task that was distinguished by its stack, numbered from 1 in the order of appearance.
    Number(u32),
    /// One of several tasks whose stacks look alike so far, or a task that was not seen before.
    Unresolved,
}

impl Task {
    /// The name: the user's or the capture's, if there is one.
    #[must_use]
    pub fn name(self, code: &Code) -> String {
        let name = match self {
            Self::Context(Scope { context_id, vmid }) => {
                let context_id = code.program.named(context_id);
                // Either may identify the thread.
                let scopes = [(context_id, vmid), (context_id, None), (None, vmid)];
                let names = scopes
                    .map(|(context_id, vmid)| code.threads.get(&Self::Context(Scope { context_id, vmid })));
                names.into_iter().flatten().next()
            }
            Self::Number(_) => code.threads.get(&self),
            Self::Unresolved => None,
        };
        name.cloned().unwrap_or_else(|| self.to_string())
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Context(Scope { context_id: Some(id), vmid: None }) => write!(f, "context {id}"),
            Self::Context(Scope { context_id: Some(id), vmid: Some(vmid) }) => {
                write!(f, "context {id} of VMID {vmid}")
            }
            Self::Context(scope) => scope.fmt(f),
            Self::Number(number) => write!(f, "task {number}"),
            Self::Unresolved => f.write_str("unresolved task"),
        }
    }
}

/// The evidence that another task runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// The trace reported another context ID or VMID.
    #[serde(rename = "context")]
    ContextId,
    /// PendSV returned to an address at which it had not been taken.
    #[serde(rename = "pendsv")]
    PendSv,
    /// A known function of an operating system chose the next task in an exception, and the exception returned to an address at
    /// which it had not been taken; or such a function returned.
    Scheduler,
    /// A function stored the stack pointer, loaded another one, and returned.
    StackPointer,
    /// An exception returned to the start of a function.
    Start,
    /// Execution went on where another task had stopped: an exception returned there, or an unresolved task turned out to be that one.
    Resumed,
}

impl Evidence {
    /// The evidence in a few words.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::ContextId => "the context changed",
            Self::PendSv => "PendSV returned elsewhere",
            Self::Scheduler => "a scheduler's function ran",
            Self::StackPointer => "a function changed the stack",
            Self::Start => "an exception returned to the start of a function",
            Self::Resumed => "a task that waited went on",
        }
    }
}
