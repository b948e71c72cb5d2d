//! What can be wrong with a stream.

use std::fmt;

/// What is wrong with a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamProblem {
    /// The name is none of a server.
    Address {
        /// The name.
        found: String,
    },
    /// There is no connection, in the operating system's words.
    Connect(String),
    /// The connection or the file broke off, in the operating system's words.
    Broken(String),
    /// The file became shorter while it was followed.
    Shortened {
        /// How many bytes of it had been read.
        read: u64,
        /// How many it has.
        found: u64,
    },
    /// The file has other bytes where some had been read while it was followed.
    Overwritten {
        /// How many bytes of it had been read.
        read: u64,
    },
    /// The file lost its name while it was followed, and no other one has it.
    Deleted,
    /// Another file got the name of the one that is followed.
    Replaced,
}

impl StreamProblem {
    /// What to try.
    pub(crate) const fn hint(&self) -> &'static str {
        match self {
            Self::Address { .. } => "write tcp:localhost:3443",
            Self::Connect(_) => "check that the server runs, and its host and port",
            Self::Broken(_) => "check the connection, and start again",
            Self::Shortened { .. } | Self::Overwritten { .. } | Self::Replaced => {
                "follow the new file from its start"
            }
            Self::Deleted => "follow it again where it is now",
        }
    }
}

impl StreamProblem {
    /// A short name that stays what it is.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Address { .. } => "stream_address",
            Self::Connect { .. } => "stream_connect",
            Self::Broken { .. } => "stream_broken",
            Self::Shortened { .. } => "stream_shortened",
            Self::Overwritten { .. } => "stream_overwritten",
            Self::Deleted { .. } => "stream_deleted",
            Self::Replaced { .. } => "stream_replaced",
        }
    }
}

impl fmt::Display for StreamProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address { found } => write!(f, "expected tcp:HOST:PORT, found `{found}`"),
            Self::Connect(words) => write!(f, "cannot connect: {words}"),
            Self::Broken(words) => write!(f, "broke off: {words}"),
            Self::Shortened { read, found } => {
                write!(f, "was cut to {found} bytes while it was followed, {read} had been read")
            }
            Self::Overwritten { read } => {
                write!(f, "was written anew while it was followed, {read} bytes had been read")
            }
            Self::Deleted => f.write_str("was deleted or renamed while it was followed"),
            Self::Replaced => f.write_str("was replaced by another file while it was followed"),
        }
    }
}
