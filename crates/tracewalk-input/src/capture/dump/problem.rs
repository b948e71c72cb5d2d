//! Problems with a dump.

use std::fmt;

use super::tool::Tool;
use crate::image::ImageErrorKind;
use crate::records::MemoryProblem;

/// The problem with a memory dump.
#[derive(Clone, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", prefix = "dump_")]
#[non_exhaustive]
pub enum DumpProblem {
    /// A problem of the memory, or of the records that contain it.
    Memory(MemoryProblem),
    /// A line begins like a tool's memory output, but continues differently.
    Values {
        /// The tool.
        tool: Tool,
        /// The text at which the line stops being memory.
        found: String,
    },
    /// Decimal numbers as GDB prints them, of unknown size.
    NoWidth {
        /// The line.
        found: String,
    },
    /// The text is longer than the limit.
    TooLong {
        /// The length of the text in bytes.
        bytes: u64,
        /// The limit in bytes.
        most: u64,
    },
    /// The lines `*` stand for more bytes than the limit.
    Repeats {
        /// The number of bytes up to this line.
        bytes: u64,
        /// The limit in bytes.
        most: u64,
    },
    /// The ELF core file cannot be used.
    Core(ImageErrorKind),
}

/// A problem, and the line on which it appears, if known.
pub(super) type Located = (Option<u32>, DumpProblem);

impl DumpProblem {
    /// A stable short name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Memory(problem) => problem.name(),
            Self::Core(kind) => kind.name(),
            _ => self.into(),
        }
    }
}

impl From<MemoryProblem> for DumpProblem {
    fn from(problem: MemoryProblem) -> Self {
        Self::Memory(problem)
    }
}

impl fmt::Display for DumpProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(problem) => problem.fmt(f),
            Self::Values { tool, found } => {
                write!(f, "expected memory as {tool} prints it ({}), found `{found}`", tool.example())
            }
            Self::NoWidth { found } => {
                write!(f, "the size of the decimal numbers is unknown: `{found}`")
            }
            Self::TooLong { bytes, most } => {
                write!(f, "found {bytes} bytes of text, expected at most {most}")
            }
            Self::Repeats { bytes, most } => {
                write!(f, "lines `*` stand for {bytes} bytes up to here, expected at most {most}")
            }
            Self::Core(kind) => kind.fmt(f),
        }
    }
}
