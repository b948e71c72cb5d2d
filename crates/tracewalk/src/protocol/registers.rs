//! The registers that ETMv3 and PFT share, and what their common fields mean.
//!
//! ETM architecture (IHI 0014Q) and PFT architecture (IHI 0035B), "Programmers' model": the two give these registers the
//! same places and most fields the same bits.

use crate::ids::TraceId;

use super::timestamp::{TimestampCoding, TimestampFormat, TimestampWidth};

/// The registers that decoding depends on. `None` is unknown, not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// ETMCR, main control.
    pub etmcr: Option<u32>,
    /// ETMIDR, ID.
    pub etmidr: Option<u32>,
    /// ETMCCER, configuration code extension.
    pub etmccer: Option<u32>,
    /// ETMTRACEIDR, CoreSight trace ID.
    pub etmtraceidr: Option<u32>,
}

/// How much of the context ID is traced (ETMCR, bits 15:14).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum ContextIdSize {
    /// Nothing.
    #[default]
    None,
    /// The low byte.
    Byte,
    /// The low two bytes.
    Halfword,
    /// All four bytes.
    Word,
}

impl ContextIdSize {
    /// The number of bytes: 0, 1, 2 or 4.
    #[must_use]
    pub const fn bytes(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Byte => 1,
            Self::Halfword => 2,
            Self::Word => 4,
        }
    }
}

/// ETMCR.
pub(super) mod etmcr {
    pub(crate) const BRANCH_BROADCAST: u32 = 1 << 8;
    pub(crate) const CYCLE_ACCURATE: u32 = 1 << 12;
    pub(crate) const CONTEXT_ID: u32 = 0b11 << 14;

    /// Bits 15:14.
    pub(crate) const fn context_id_size(register: u32) -> super::ContextIdSize {
        match (register & CONTEXT_ID) >> 14 {
            0b00 => super::ContextIdSize::None,
            0b01 => super::ContextIdSize::Byte,
            0b10 => super::ContextIdSize::Halfword,
            _ => super::ContextIdSize::Word,
        }
    }
}

/// ETMIDR.
pub(super) mod etmidr {
    /// Bits 11:8.
    pub(crate) const fn major(register: u32) -> u32 {
        register >> 8 & 0b1111
    }

    /// Bits 7:4.
    pub(crate) const fn minor(register: u32) -> u32 {
        register >> 4 & 0b1111
    }
}

/// ETMCCER.
const TIMESTAMP_BINARY: u32 = 1 << 28;
const TIMESTAMP_64_BITS: u32 = 1 << 29;

/// The timestamp format that ETMCCER states.
pub(super) const fn timestamp_format(etmccer: u32) -> TimestampFormat {
    TimestampFormat {
        width: if etmccer & TIMESTAMP_64_BITS != 0 { TimestampWidth::Bits64 } else { TimestampWidth::Bits48 },
        coding: if etmccer & TIMESTAMP_BINARY != 0 { TimestampCoding::Binary } else { TimestampCoding::Gray },
    }
}

/// ETMTRACEIDR[6:0]. 0 is its reset value: not set. The error is the register's value if it is no trace ID.
pub(super) fn trace_id(etmtraceidr: Option<u32>) -> Result<Option<TraceId>, u32> {
    match etmtraceidr {
        None | Some(0) => Ok(None),
        Some(found) => u8::try_from(found).ok().and_then(TraceId::new).map(Some).ok_or(found),
    }
}
