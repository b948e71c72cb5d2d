//! The output of an encoder, and its pauses.
//!
//! ```
//! use tracewalk_generate::trace::Pauses;
//!
//! // 700 steps are traced, then 90 are not, because the trace unit overflows.
//! let pauses = "700:90:overflow".parse::<Pauses>()?;
//! assert_eq!(pauses.traced, 700);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use tracewalk::ids::ContextId;
use tracewalk::protocol::ISyncReason;

use crate::path::{Path, Step};

/// One source's trace, and the path that it should decode to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The bytes that the trace unit would have sent.
    pub bytes: Vec<u8>,
    /// The path that the bytes contain: without what this trace unit does not report, and without the end of
    /// the path if a target was never reached.
    pub path: Path,
    /// The cycles that the reported instructions took, by the encoder's model of time.
    pub cycles: u64,
    /// For each step of the path, how many cycles had passed after it, by the same model.
    pub times: Vec<u64>,
    /// For each step of the path, how many bytes had been sent after it.
    pub lengths: Vec<usize>,
    /// How often tracing began.
    pub starts: usize,
    /// How many triggers there are.
    pub triggers: usize,
}

impl Trace {
    /// One line for each step of the encoded path: the step, and how many cycles had passed after it.
    ///
    /// `I ADDRESS CYCLES` for an instruction, `X NUMBER RETURN CYCLES` for an exception, `T CYCLES` for a return.
    #[must_use]
    pub fn times_text(&self, path: &Path) -> String {
        let lines = path.steps.iter().zip(&self.times).filter_map(|(step, cycles)| match step {
            Step::Instruction(executed) => Some(format!("I {:x} {cycles}\n", executed.address)),
            Step::Exception(taken) => {
                let number = taken.exception.number();
                let returns_to =
                    taken.preferred_return.map_or_else(|| "-".to_owned(), |address| format!("{address:x}"));
                Some(format!("X {number} {returns_to} {cycles}\n"))
            }
            Step::ExceptionReturn => Some(format!("T {cycles}\n")),
            Step::Access(_) | Step::ContextId(_) | Step::State(_) => None,
        });
        lines.collect()
    }
}

/// When tracing is switched off, and which reason the trace gives when tracing continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pauses {
    /// The number of steps of the path that are traced.
    pub traced: usize,
    /// The number of steps that are not traced. A pause begins and ends only between two instructions.
    pub untraced: usize,
    /// Why tracing begins again.
    pub reason: ISyncReason,
}

const REASONS: [(&str, ISyncReason); 3] = [
    ("enabled", ISyncReason::Enabled),
    ("overflow", ISyncReason::Overflow),
    ("debug", ISyncReason::DebugExit),
];

impl std::fmt::Display for Pauses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let reason =
            REASONS.iter().find(|(_, reason)| *reason == self.reason).map_or("enabled", |(name, _)| name);
        write!(f, "{}:{}:{reason}", self.traced, self.untraced)
    }
}

impl std::str::FromStr for Pauses {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "\"{text}\" is not TRACED:UNTRACED or TRACED:UNTRACED:REASON, where REASON is enabled, overflow or debug"
            )
        };
        let mut words = text.split(':');
        let mut number = || words.next().and_then(|word| word.parse().ok()).ok_or_else(wrong);
        let (traced, untraced) = (number()?, number()?);
        let name = words.next().unwrap_or("enabled");
        let (_, reason) = REASONS.iter().find(|(known, _)| *known == name).ok_or_else(wrong)?;
        Ok(Self { traced, untraced, reason: *reason })
    }
}

/// An encoder's position relative to its pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tracing {
    /// On, as at the step before.
    On,
    /// Off from this step on.
    Ends,
    /// Off, as at the step before.
    Off,
    /// On again from this step on.
    Begins,
}

impl Pauses {
    /// The tracing state of the step at `index`; `off` is the state before it.
    pub(crate) fn at(pauses: Option<Self>, steps: &[Step], index: usize, off: bool) -> Tracing {
        let Some(pauses) = pauses else { return Tracing::On };
        let wanted = index % (pauses.traced + pauses.untraced).max(1) >= pauses.traced;
        let before = index.checked_sub(1).and_then(|before| steps.get(before));
        let between =
            matches!((before, steps.get(index)), (Some(Step::Instruction(_)), Some(Step::Instruction(_))));
        match (off, wanted) {
            (false, true) if between => Tracing::Ends,
            (true, false) if between => Tracing::Begins,
            (false, _) => Tracing::On,
            (true, _) => Tracing::Off,
        }
    }
}

/// The bytes of a context ID that a trace unit sends if it is set up to send only some: the low ones.
pub(crate) fn truncated(context_id: ContextId, bytes: u8) -> ContextId {
    let unsent = 8 * u32::from(4_u8.saturating_sub(bytes));
    ContextId(u32::MAX.checked_shr(unsent).map_or(0, |mask| context_id.0 & mask))
}

/// Why a path cannot be encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EncodeError {
    /// The program has no code at an address that was executed.
    NoCode {
        /// The instruction's address.
        at: tracewalk::ids::Address,
    },
    /// The exception has no code in this protocol.
    NoExceptionCode {
        /// The exception.
        exception: tracewalk::ids::Exception,
    },
    /// The packet encoder refused a packet: the configuration does not fit the path.
    Packet {
        /// The packet encoder's message.
        message: String,
    },
}

impl std::fmt::Display for EncodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoCode { at } => write!(f, "the path executes {at}, at which the program has no code"),
            Self::NoExceptionCode { exception } => write!(f, "this protocol has no code for {exception}"),
            Self::Packet { message } => f.write_str(message),
        }
    }
}

impl std::error::Error for EncodeError {}
