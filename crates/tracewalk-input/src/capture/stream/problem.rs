//! Problems with a stream.

use std::fmt;

/// The problem with a stream.
#[derive(Clone, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", prefix = "stream_")]
#[non_exhaustive]
pub enum StreamProblem {
    /// The name is not a valid server name.
    Address {
        /// The name.
        found: String,
    },
    /// The connection failed; the operating system's message.
    Connect(String),
    /// The connection was lost, or reading the file failed; the operating system's message.
    Broken(String),
    /// The file became shorter while it was followed.
    Shortened {
        /// The number of bytes that had been read.
        read: u64,
        /// The file's present length.
        found: u64,
    },
    /// Bytes that had been read changed while the file was followed.
    Overwritten {
        /// The number of bytes that had been read.
        read: u64,
    },
    /// The file's name was removed while the file was followed.
    Deleted,
    /// The file's name now belongs to another file.
    Replaced,
}

impl StreamProblem {
    /// A stable short name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for StreamProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address { found } => write!(f, "expected tcp:HOST:PORT, found `{found}`"),
            Self::Connect(words) => write!(f, "cannot connect: {words}"),
            Self::Broken(words) => write!(f, "the connection was lost: {words}"),
            Self::Shortened { found, .. } => {
                write!(f, "was truncated to {found} bytes while tracewalk followed it")
            }
            Self::Overwritten { .. } => f.write_str("was overwritten while tracewalk followed it"),
            Self::Deleted => f.write_str("was deleted or renamed while tracewalk followed it"),
            Self::Replaced => f.write_str("was replaced by another file while tracewalk followed it"),
        }
    }
}
