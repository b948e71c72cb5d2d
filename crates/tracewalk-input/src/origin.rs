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
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
#[expect(missing_docs, reason = "the names are those of what is stated")]
pub enum Setting {
    #[strum(to_string = "--container")]
    Container,
    #[strum(to_string = "--container frame-start")]
    FrameStart,
    #[strum(to_string = "--container read-pointer")]
    ReadPointer,
    #[strum(to_string = "--container swap-words")]
    SwappedWords,
    #[strum(to_string = "--container address")]
    DumpAddress,
    #[strum(to_string = "--source")]
    Source,
    #[strum(to_string = "--source mtb,position")]
    MtbPosition,
    #[strum(to_string = "--source mtb,master")]
    MtbMaster,
    #[strum(to_string = "--source mtb,base")]
    MtbBase,
    #[strum(to_string = "--source mtb,pc")]
    MtbHaltedAt,
    #[strum(to_string = "--registers")]
    MtbRegisters,
    #[strum(to_string = "--vtor")]
    VectorTable,
    #[strum(to_string = "--image")]
    Image,
    #[strum(to_string = "--dump")]
    Snapshot,
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
