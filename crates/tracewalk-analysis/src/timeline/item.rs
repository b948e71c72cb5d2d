//! Items of a timeline: spans that begin and end on tracks, and marks between them.

use std::fmt;

use tracewalk::directive::{BeginReason, Instrumentation, Transaction};
use tracewalk::flow::GapReason;
use tracewalk::ids::{Address, Exception};
use tracewalk::protocol::itm::{ExceptionAction, Packet};

use crate::call_stack::{Entry, FunctionId, Interruption, Left, Task};
use crate::itm::{ItmEvent, Watched};

/// An event on the axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The time.
    pub at: Moment,
    /// The change.
    pub change: Change,
}

/// A place on the axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// In the axis's unit; never less than that of the previous item.
    pub ticks: u64,
    /// How certain the trace is.
    pub certainty: Certainty,
}

/// The origin of a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Certainty {
    /// The trace states it here.
    #[default]
    Exact,
    /// Between two places that the trace states, by the amount of execution in between.
    Interpolated,
    /// Only one side is known, or execution of unknown length is in between.
    Estimated,
}

/// A change of the timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A span begins, inside those that are open on its track.
    Begin(Span),
    /// The innermost span of a track ends.
    End {
        /// The span's name.
        id: SpanId,
        /// The span's track.
        track: Track,
        /// How it ends.
        finish: Finish,
    },
    /// An event without a length.
    Mark {
        /// The mark's track.
        track: Track,
        /// The subject.
        mark: Mark,
    },
}

/// An event with a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The name in this timeline. After an interruption by another task, a span continues under the same name.
    pub id: SpanId,
    /// The track.
    pub track: Track,
    /// The subject.
    pub what: What,
    /// How it begins.
    pub start: Start,
}

/// A span's name; spans that begin later have greater ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanId(pub u64);

/// A row of a timeline. The spans of a track enclose each other or lie apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Track {
    /// The running task.
    Running,
    /// The functions of a task.
    Task(Task),
    /// The functions of tasks that are too many for tracks of their own.
    OtherTasks,
    /// An exception, with the functions of its handler.
    Exception(Option<Exception>),
    /// Stretches in which execution is not known.
    Gaps,
    /// Triggers.
    Events,
    /// The program's writes to a stimulus port.
    Text(u8),
    /// The program's writes to a stimulus port that are not text.
    Values(u8),
    /// Exceptions as an ITM reports them.
    Reported,
    /// The values of the data that a comparator of the DWT watches.
    Watched {
        /// The comparator.
        comparator: u8,
        /// The first address of the data object, if it is known.
        object: Option<Address>,
    },
}

/// The subject of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// A function.
    Function {
        /// The function.
        function: FunctionId,
        /// How it was entered.
        entry: Entry,
    },
    /// An exception, from its entry to its return.
    Exception(Interruption),
    /// A task runs.
    Task(Task),
    /// Execution is not known.
    Gap(Unknown),
}

/// Why execution is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unknown {
    /// Execution could not be followed.
    Gap(GapReason),
    /// Execution was not traced, up to a place where tracing continued for this reason.
    Untraced(BeginReason),
    /// An ITM lost packets.
    Reports,
}

/// How a span begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Start {
    /// The span begins here.
    Here,
    /// The span was already running when first seen or found again.
    Earlier,
    /// The span continues at the point at which another task had interrupted it.
    Resumed,
    /// The span began before the window.
    Clipped,
}

/// How a span ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Finish {
    /// The function returned, or the span is over.
    Returned,
    /// Another function took over its frame.
    Replaced,
    /// A function further out continued, by `longjmp` or the like.
    Unwound,
    /// The end of the span is not known.
    Lost,
    /// Another task runs; the span will be resumed.
    Suspended,
    /// The span continues after the window.
    Clipped,
}

/// An event without a length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The trace unit's trigger condition occurred.
    Trigger,
    /// Events that the trace unit was set up to report occurred: a bit for each.
    Events(u8),
    /// The program wrote this into the trace.
    Instrumentation(Instrumentation),
    /// A transaction began or ended.
    Transaction(Transaction),
    /// The program wrote this.
    Text(String),
    /// An ITM reports this action of an exception; `None` is thread mode.
    Exception(Option<Exception>, ExceptionAction),
    /// Watched data had this value in an access, or the program wrote this value.
    Value(u32),
}

impl Mark {
    /// The mark of an ITM's report, and its track; `None` if timelines have none for it.
    pub(super) fn of_itm(event: &ItmEvent, watched: &mut Watched) -> Option<(Track, Self)> {
        let object = watched.event(event);
        match *event {
            ItmEvent::Packet(Packet::DataValue { comparator, value, .. }) => {
                Some((Track::Watched { comparator, object }, Self::Value(value)))
            }
            ItmEvent::Value { port, value, .. } => Some((Track::Values(port), Self::Value(value))),
            ItmEvent::Text { port, ref bytes } => {
                let text = String::from_utf8_lossy(bytes).trim_end().to_owned();
                Some((Track::Text(port), Self::Text(text)))
            }
            ItmEvent::Packet(Packet::Exception { number, action }) => {
                // Number 0 means thread mode.
                let exception = (number != 0).then_some(Exception::M(number));
                Some((Track::Reported, Self::Exception(exception, action)))
            }
            _ => None,
        }
    }
}

impl Start {
    /// A note for unusual cases; `None` for the usual one.
    #[must_use]
    pub const fn note(self) -> Option<&'static str> {
        match self {
            Self::Here => None,
            Self::Earlier => Some("start not traced"),
            Self::Resumed => Some("continued"),
            Self::Clipped => Some("began before the window"),
        }
    }
}

impl Finish {
    /// A note for unusual cases; `None` for the usual one.
    #[must_use]
    pub const fn note(self) -> Option<&'static str> {
        match self {
            Self::Returned => None,
            Self::Replaced => Some("replaced by another function"),
            Self::Unwound => Some("unwound"),
            Self::Lost => Some("end not traced"),
            Self::Suspended => Some("another task took over"),
            Self::Clipped => Some("continues after the window"),
        }
    }
}

impl From<Left> for Finish {
    fn from(left: Left) -> Self {
        match left {
            Left::Returned => Self::Returned,
            Left::Replaced => Self::Replaced,
            Left::Unwound => Self::Unwound,
            Left::Lost => Self::Lost,
        }
    }
}

impl Certainty {
    /// A name for uncertain moments; `None` for exact ones.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::Exact => None,
            Self::Interpolated => Some("interpolated"),
            Self::Estimated => Some("estimated"),
        }
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gap(reason) => reason.fmt(f),
            Self::Untraced(BeginReason::Overflow) => {
                f.write_str("not traced: the trace unit's buffer was full")
            }
            Self::Untraced(BeginReason::DebugExit) => {
                f.write_str("not traced: the processor was in Debug state")
            }
            Self::Untraced(BeginReason::Enabled) => f.write_str("not traced: tracing was off"),
            Self::Untraced(_) => f.write_str("not traced"),
            Self::Reports => f.write_str("packets of the ITM were lost"),
        }
    }
}
