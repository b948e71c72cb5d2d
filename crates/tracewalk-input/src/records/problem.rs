//! What can be wrong with memory that a text holds.

use std::fmt;

use tracewalk::ids::Address;

/// What is wrong with the memory in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemoryProblem {
    /// A line of a file of records is no record.
    NotARecord {
        /// What the other lines are.
        expected: &'static str,
        /// The line.
        found: String,
    },
    /// A record's checksum does not match its bytes.
    Checksum {
        /// The checksum in the record.
        found: u8,
        /// That of its bytes.
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
        /// How many there are.
        found: u32,
        /// The number that it states.
        expected: u32,
    },
    /// The record that ends every file is missing.
    CutOff {
        /// The record.
        expected: &'static str,
    },
    /// Bytes go past the last address of 32 bits.
    PastEndOfMemory {
        /// Where they start.
        address: u64,
        /// How many there are.
        bytes: u64,
    },
    /// Two parts have different bytes at the same address.
    Conflict {
        /// The first address where they differ.
        at: Address,
        /// The value in this part.
        found: u8,
        /// The value in the other part.
        other: u8,
        /// The line of the other part, where there are lines.
        other_line: Option<u32>,
    },
    /// The file is of a form for memory, and holds none.
    NoMemory,
}

impl MemoryProblem {
    /// A stable short name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::NotARecord { .. } => "dump_not_a_record",
            Self::Checksum { .. } => "dump_checksum",
            Self::RecordLength { .. } => "dump_record_length",
            Self::RecordType { .. } => "dump_record_type",
            Self::RecordCount { .. } => "dump_record_count",
            Self::CutOff { .. } => "dump_cut_off",
            Self::PastEndOfMemory { .. } => "dump_past_end_of_memory",
            Self::Conflict { .. } => "dump_conflict",
            Self::NoMemory => "dump_no_memory",
        }
    }
}

impl fmt::Display for MemoryProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotARecord { expected, found } => write!(f, "expected {expected}, found `{found}`"),
            Self::Checksum { found, expected } => {
                write!(
                    f,
                    "the record is damaged: its checksum is {found:02X}, that of its bytes {expected:02X}"
                )
            }
            Self::RecordLength { found } => {
                write!(f, "the record's length contradicts its count field or its type: `{found}`")
            }
            Self::RecordType { found } => write!(f, "unknown record type {found}"),
            Self::RecordCount { found, expected } => {
                write!(f, "expected {expected} records of memory before this one, found {found}")
            }
            Self::CutOff { expected } => write!(f, "the file is cut off: its last record is not {expected}"),
            Self::PastEndOfMemory { address, bytes } => {
                write!(f, "{bytes} bytes at 0x{address:08x} extend past the end of the 32-bit address space")
            }
            Self::Conflict { at, found, other, other_line } => {
                write!(f, "has 0x{found:02x} at address {at}, where ")?;
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
