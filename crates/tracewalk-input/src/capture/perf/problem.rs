//! Why a perf.data file cannot be read.

use std::fmt;

/// What is wrong with a perf.data file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PerfProblem {
    /// The machine had the other byte order.
    BigEndian,
    /// The header is incomplete, or contradicts itself.
    Header {
        /// The part of the header.
        what: &'static str,
    },
    /// simpleperf reduced the trace to counts of branches: the file has no trace.
    BranchList,
    /// Nothing in the file describes CoreSight trace.
    NoCoreSight {
        /// The kind of trace that the file describes, if any.
        kind: Option<u32>,
    },
    /// A trace unit's description cannot be read.
    TraceUnit {
        /// The description's offset in the file.
        at: u64,
        /// The value in the place of the description's magic number or length.
        found: u64,
    },
    /// Trace IDs are stated in a form of a later kernel.
    HardwareId {
        /// The form's version.
        major: u8,
    },
    /// The file has more of something than the limit.
    TooMany {
        /// The things that are too many.
        what: &'static str,
        /// The limit.
        most: usize,
    },
    /// A place of binaries is a file but not an archive.
    Archive {
        /// Why, in the library's words.
        why: String,
    },
    /// Compressed records cannot be unpacked.
    Compressed {
        /// The records' offset in the file.
        at: u64,
        /// Why, in the library's words.
        why: String,
    },
}

impl fmt::Display for PerfProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BigEndian => f.write_str("recorded on a big-endian machine, which is not supported"),
            Self::Header { what } => write!(f, "{what} is invalid: the file is damaged or truncated"),
            Self::BranchList => f.write_str(
                "simpleperf reduced this recording to a list of branches, which holds no trace: `simpleperf inject -i FILE --symdir DIR` converts it to AutoFDO's text; for tracewalk, record without --decode-etm",
            ),
            Self::NoCoreSight { kind: None } => {
                f.write_str("no CoreSight trace was recorded: record with `perf record -e cs_etm//u`")
            }
            Self::NoCoreSight { kind: Some(kind) } => {
                write!(f, "found hardware trace of type {kind}, expected CoreSight's, which is type 3")
            }
            Self::TraceUnit { at, found } => {
                write!(f, "found {found:#x} in the description of a trace unit at {at:#x}, expected an ETM or ETE")
            }
            Self::HardwareId { major } => {
                write!(f, "found trace IDs in format {major}, expected format 0: the kernel is newer than this version of tracewalk")
            }
            Self::TooMany { what, most } => write!(f, "found more {what} than the limit of {most}"),
            Self::Archive { why } => write!(
                f,
                "is neither a directory of files by build-id nor an archive made by `perf archive` (.tar, .tar.gz, .tar.bz2): {why}"
            ),
            Self::Compressed { at, why } => write!(f, "compressed records at {at:#x} cannot be unpacked: {why}"),
        }
    }
}
