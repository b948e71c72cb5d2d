//! Problems with memory in a text.

use std::fmt;

use tracewalk::ids::Address;

/// The problem with the memory in a text.
#[derive(Clone, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", prefix = "dump_")]
#[non_exhaustive]
pub enum MemoryProblem {
    /// A line of a file of records is not a record.
    NotARecord {
        /// The form of the other lines.
        expected: &'static str,
        /// The line.
        found: String,
    },
    /// A record's checksum does not match its bytes.
    Checksum {
        /// The checksum in the record.
        found: u8,
        /// The checksum of the record's bytes.
        expected: u8,
    },
    /// A record's length contradicts its count field or its type.
    RecordLength {
        /// The record.
        found: String,
    },
    /// The record's type is unknown.
    RecordType {
        /// The type.
        found: String,
    },
    /// The number of records contradicts the file's count record.
    RecordCount {
        /// The number of records in the file.
        found: u32,
        /// The number in the count record.
        expected: u32,
    },
    /// The record that ends every file is missing.
    CutOff {
        /// The record.
        expected: &'static str,
    },
    /// Bytes extend beyond the last 32-bit address.
    PastEndOfMemory {
        /// The address of the first byte.
        address: u64,
        /// The number of bytes.
        bytes: u64,
    },
    /// Two parts have different bytes at the same address.
    Conflict {
        /// The first address at which they differ.
        at: Address,
        /// The value in this part.
        found: u8,
        /// The value in the other part.
        other: u8,
        /// The line of the other part, if the file has lines.
        other_line: Option<u32>,
    },
    /// The file is in a form for memory but contains none.
    NoMemory,
}

impl MemoryProblem {
    /// A stable short name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for MemoryProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotARecord { expected, found } => write!(f, "expected {expected}, found `{found}`"),
            Self::Checksum { found, expected } => {
                write!(f, "the record is damaged: its checksum is {found:02X}, expected {expected:02X}")
            }
            Self::RecordLength { found } => {
                write!(f, "the record's length contradicts its count field or its type: `{found}`")
            }
            Self::RecordType { found } => write!(f, "unknown record type {found}"),
            Self::RecordCount { found, expected } => {
                write!(f, "expected {expected} data records before this one, found {found}")
            }
            Self::CutOff { expected } => write!(f, "the file is cut off: its last record is not {expected}"),
            Self::PastEndOfMemory { address, bytes } => {
                write!(f, "{bytes} bytes at 0x{address:08x} extend past the end of the 32-bit address space")
            }
            Self::Conflict { at, found, other, other_line } => {
                write!(f, "found 0x{found:02x} at address {at}, but ")?;
                match other_line {
                    Some(line) => write!(f, "line {line}")?,
                    None => f.write_str("another part")?,
                }
                write!(f, " has 0x{other:02x}")
            }
            Self::NoMemory => f.write_str("holds no memory"),
        }
    }
}
