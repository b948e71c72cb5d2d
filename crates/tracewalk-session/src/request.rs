//! What a caller asks: the capture, what is known of it, a place in it, and patterns for names.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use tracewalk::ids::{Address, TraceId};
use tracewalk_input::MemoryLimit;
use tracewalk_input::capture::perf::BinaryPlaces;
use tracewalk_input::capture::wire::WireOptions;
use tracewalk_input::capture::{Container, SourceDescription};
use tracewalk_input::image::ImageRequest;

use crate::shared::Shared;

/// A capture to open, statements about it, and whether to infer the rest.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// A file of trace bytes, a `capture.toml` or a snapshot directory.
    pub capture: PathBuf,
    /// Further directories for files that a description names, besides the description's own.
    pub roots: Vec<PathBuf>,
    /// The caller's statements. A statement replaces that of the capture's own description.
    pub stated: Statements,
    /// The images of the program, besides those that the description names.
    pub images: Vec<ImageRequest>,
    /// The trace IDs to decode; all if empty.
    pub ids: Vec<TraceId>,
    /// Whether missing settings are inferred.
    pub policy: Policy,
    /// The memory limit.
    pub limit: MemoryLimit,
    /// The number of bytes of a segment that one thread decodes; `None` for the fastest. Tests use it to cut a capture of
    /// some kilobytes into many segments. The results do not depend on it.
    pub segment: Option<usize>,
    /// A cache shared with other sessions.
    pub shared: Option<Shared>,
    /// Whether the log of a halted processor may lack a trace. See [`Session::lacks_trace`](crate::Session::lacks_trace).
    pub may_lack_trace: bool,
}

impl Request {
    /// A capture without statements: all settings may be inferred.
    #[must_use]
    pub fn new(capture: impl Into<PathBuf>) -> Self {
        Self { capture: capture.into(), ..Self::default() }
    }

    /// Whether the capture is searched for sources.
    pub(crate) const fn searches(&self) -> bool {
        self.ids.is_empty() && self.stated.sources.is_empty() && matches!(self.policy, Policy::Infer)
    }
}

/// Whether missing settings are inferred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Missing settings are inferred from the bytes and the program.
    #[default]
    Infer,
    /// A missing setting is an error.
    Strict,
}

/// A caller's statements about a capture; everything omitted may be inferred.
#[derive(Clone, Debug, Default)]
pub struct Statements {
    /// How the bytes are packed.
    pub container: Option<Container>,
    /// For a trace port without FSYNC: the number of bytes before the first frame, 0 to 15.
    pub frame_start: Option<u8>,
    /// For a buffer that wrapped, read from its first address on: the offset of its oldest byte in the file.
    pub read_pointer: Option<u32>,
    /// Whether each 32-bit word of the file has its highest byte first.
    pub swap_words: bool,
    /// The address of the file's first byte, for a memory dump.
    pub dump_address: Option<Address>,
    /// How a recording of a logic analyser is read.
    pub wires: WireOptions,
    /// Where to search for the files that ran on a machine recorded by perf.
    pub binaries: BinaryPlaces,
    /// The sources.
    pub sources: Vec<SourceDescription>,
    /// Statements about an MTB.
    pub mtb: MtbStatements,
    /// The chip's CMSIS-SVD file.
    pub svd: Option<PathBuf>,
    /// The address of M profile's vector table (VTOR).
    pub vector_table: Option<Address>,
    /// Names of tasks, by their numbers or context IDs.
    pub tasks: BTreeMap<u32, String>,
    /// Whether profiles and timelines take tasks from all evidence, as [`Session::tasks`](crate::Session::tasks) does.
    pub proves_tasks: bool,
}

/// A caller's statements about a Micro Trace Buffer.
#[derive(Clone, Debug, Default)]
pub struct MtbStatements {
    /// MTB_POSITION: the place of the oldest packet.
    pub position: Option<u32>,
    /// MTB_MASTER: the size of the buffer.
    pub master: Option<u32>,
    /// MTB_BASE: the address of its RAM.
    pub base: Option<u32>,
    /// The address at which the processor halted, if the MTB was on until then.
    pub halted_at: Option<Address>,
    /// A file with lines like `MTB_POSITION=0x…`.
    pub registers: Option<PathBuf>,
}

/// A step of a recording: an instruction, an event or a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The first one.
    First,
    /// The last one.
    Last,
    /// The one of this number, from 0.
    Step(u64),
}

impl At {
    /// The step's number among `steps`; at most the last one.
    #[must_use]
    pub const fn step(self, steps: u64) -> u64 {
        let last = steps.saturating_sub(1);
        match self {
            Self::First => 0,
            Self::Step(step) if step < last => step,
            Self::Last | Self::Step(_) => last,
        }
    }
}

impl FromStr for At {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "first" => Ok(Self::First),
            "last" => Ok(Self::Last),
            number => number.parse().map(Self::Step).map_err(|_| "expected first, last or a number"),
        }
    }
}

/// A pattern for names: its text, for messages, and the names that it matches. The front end chooses the syntax.
#[derive(Clone)]
pub struct Pattern {
    text: String,
    matches: Arc<dyn Fn(&str) -> bool + Send + Sync>,
}

impl Pattern {
    /// The pattern of this text, which matches the names for which `matches` is true.
    #[must_use]
    pub fn new(text: impl Into<String>, matches: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self { text: text.into(), matches: Arc::new(matches) }
    }

    /// Whether a name matches.
    #[must_use]
    pub fn is_match(&self, name: &str) -> bool {
        (self.matches)(name)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({})", self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_is_written() {
        assert_eq!("first".parse(), Ok(At::First));
        assert_eq!("last".parse(), Ok(At::Last));
        assert_eq!("18446744073709551615".parse(), Ok(At::Step(u64::MAX)));
        for wrong in ["", "-1", "First", "18446744073709551616"] {
            assert!(wrong.parse::<At>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_step_after_the_last_one_is_the_last_one() {
        let steps = |steps| [At::First, At::Step(3), At::Last].map(|at| at.step(steps));
        assert_eq!(steps(5), [0, 3, 4]);
        assert_eq!(steps(2), [0, 1, 1]);
        assert_eq!(steps(0), [0, 0, 0]);
    }
}
