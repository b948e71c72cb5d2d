//! The origin of a statement about a capture.

use std::fmt;
use std::path::{Path, PathBuf};

use tracewalk::plain::Plain;

/// The source of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A file, and its line if there is one.
    File {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: Option<u32>,
    },
    /// The caller, beside the capture's description.
    Stated(Setting),
    /// The usual value for a processor, by the processor's name.
    Usual(String),
    /// A value that is assumed from related processors, by the processor's name.
    Assumed(String),
    /// The value was inferred from the bytes.
    Detected,
}

/// What a caller can state of a capture. Printed as the command's option, which all front ends' messages name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of what is stated")]
pub enum Setting {
    Container,
    FrameStart,
    ReadPointer,
    SwappedWords,
    DumpAddress,
    Source,
    MtbPosition,
    MtbMaster,
    MtbBase,
    MtbHaltedAt,
    MtbRegisters,
    VectorTable,
    Image,
    Snapshot,
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Container => "--container",
            Self::FrameStart => "--container frame-start",
            Self::ReadPointer => "--container read-pointer",
            Self::SwappedWords => "--container swap-words",
            Self::DumpAddress => "--container address",
            Self::Source => "--source",
            Self::MtbPosition => "--source mtb,position",
            Self::MtbMaster => "--source mtb,master",
            Self::MtbBase => "--source mtb,base",
            Self::MtbHaltedAt => "--source mtb,pc",
            Self::MtbRegisters => "--registers",
            Self::VectorTable => "--vtor",
            Self::Image => "--image",
            Self::Snapshot => "--dump",
        })
    }
}

impl Origin {
    /// Whether the statement follows from the processor's name alone.
    #[must_use]
    pub const fn is_of_processor(&self) -> bool {
        matches!(self, Self::Usual(_) | Self::Assumed(_))
    }

    /// The line `line` of the file at `path`.
    #[must_use]
    pub fn line(path: &Path, line: u32) -> Self {
        Self::File { path: path.to_owned(), line: Some(line) }
    }

    /// The file at `path` as a whole.
    #[must_use]
    pub fn file(path: &Path) -> Self {
        Self::File { path: path.to_owned(), line: None }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line: Some(line) } => write!(f, "{}:{line}", Plain(path.display())),
            Self::File { path, line: None } => Plain(path.display()).fmt(f),
            Self::Stated(setting) => setting.fmt(f),
            Self::Usual(cpu) => write!(f, "usual for {}", Plain(cpu)),
            Self::Assumed(cpu) => write!(f, "assumed for {}", Plain(cpu)),
            Self::Detected => f.write_str("detected"),
        }
    }
}

/// The entry of a description that names a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Naming {
    /// The key.
    pub key: String,
    /// The table or section that has it, with its brackets.
    pub section: String,
    /// The description.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: u32,
}

impl fmt::Display for Naming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, section, file, line } = self;
        write!(f, "`{}` in {} at {}:{line}", Plain(key), Plain(section), Plain(file.display()))
    }
}

/// A value and its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stated<T> {
    /// The value.
    pub value: T,
    /// Its origin.
    pub origin: Origin,
}

impl<T> Stated<T> {
    /// `value`, stated by `origin`.
    #[must_use]
    pub const fn new(value: T, origin: Origin) -> Self {
        Self { value, origin }
    }
}
