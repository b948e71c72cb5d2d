//! Memory in a dump: pieces of bytes by address.

use std::collections::BTreeSet;
use std::fmt;

use tracewalk::ids::Address;

use super::super::registers::Registers;
use super::problem::{DumpProblem, Located};
use super::processor::ProcessorRegisters;
use super::tool::Tool;
use crate::bytes::Bytes;
use crate::records::Assembly;

/// Memory as it was when it was saved.
#[derive(Clone, Debug)]
pub struct MemoryDump {
    /// The form in which it was saved.
    pub form: Form,
    /// The memory: at least one piece, in address order, with a gap between any two.
    pub pieces: Vec<MemoryPiece>,
    /// Whether addresses are offsets in a file whose address in memory is not stated.
    pub is_file: bool,
    /// Registers of a Micro Trace Buffer that the same text names (`MTB_POSITION=0x1bc`).
    pub registers: Registers,
    /// Registers of the processor that the same text names.
    pub processor: ProcessorRegisters,
    /// Lines of the text that are neither memory nor registers.
    pub other_lines: OtherLines,
    /// The part of the file that could not be read; the rest is in `pieces`.
    pub damage: Option<Damage>,
}

/// Damaged parts of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The number of damaged parts.
    pub count: u32,
    /// The line of the first one, from 1, if it is known.
    pub line: Option<u32>,
    /// The problem.
    pub problem: DumpProblem,
}

/// A contiguous piece of memory.
#[derive(Clone, Debug)]
pub struct MemoryPiece {
    /// The address of the first byte; `None` if not stated.
    pub address: Option<Address>,
    /// The bytes; at least one.
    pub bytes: Bytes,
}

/// The form in which memory was saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// Intel HEX records.
    IntelHex,
    /// Motorola S-records.
    SRecords,
    /// An ELF core file.
    CoreFile,
    /// Text in the formats of these tools.
    Text(BTreeSet<Tool>),
    /// Text that contains only numbers, without addresses.
    Numbers,
    /// Text that contains only hexadecimal bytes.
    Bytes,
    /// A table of bytes that a logic analyser decoded.
    ByteTable,
    /// Plain bytes, at an address that is stated elsewhere.
    Binary,
}

/// Lines of a text that are not memory: prompts, commands, messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtherLines {
    /// The number of lines.
    pub count: u32,
    /// The line number of the first one, from 1, and its text.
    pub first: Option<(u32, String)>,
}

impl MemoryDump {
    /// A dump that has only memory.
    pub(super) fn of(form: Form, pieces: Vec<MemoryPiece>) -> Self {
        Self {
            form,
            pieces,
            is_file: false,
            registers: Registers::new(),
            processor: ProcessorRegisters::default(),
            other_lines: OtherLines::default(),
            damage: None,
        }
    }

    /// The total number of bytes in all pieces.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.bytes.len() as u64).sum()
    }
}

impl MemoryDump {
    /// The dump of a file, moved so that the file's first byte is at this address; `None` if it extends past
    /// the end of memory.
    #[must_use]
    pub fn placed_at(mut self, address: Address) -> Option<Self> {
        for piece in &mut self.pieces {
            let place = piece.address.map_or(0, Address::get);
            let start = address.checked_add(place)?;
            start.checked_add(piece.bytes.len() as u64).filter(|end| end.get() <= 1 << 32)?;
            piece.address = Some(start);
        }
        self.is_file = false;
        Some(self)
    }
}

/// The pieces of the assembled memory.
pub(super) fn finished(memory: Assembly) -> Result<Vec<MemoryPiece>, Located> {
    let pieces = memory.finish().map_err(|(line, problem)| (line, problem.into()))?;
    let piece =
        |(address, bytes): (Address, Vec<u8>)| MemoryPiece { address: Some(address), bytes: bytes.into() };
    Ok(pieces.into_iter().map(piece).collect())
}

impl Damage {
    /// Adds a damaged part.
    pub(super) fn add(damage: &mut Option<Self>, line: Option<u32>, problem: DumpProblem) {
        match damage {
            Some(damage) => damage.count = damage.count.saturating_add(1),
            None => *damage = Some(Self { count: 1, line, problem }),
        }
    }
}

impl MemoryPiece {
    /// The word at `address`, little-endian.
    #[must_use]
    pub fn word(&self, address: Address) -> Option<u32> {
        let offset = usize::try_from(address.offset_from(self.address?)?).ok()?;
        self.bytes.get(offset..)?.first_chunk().copied().map(u32::from_le_bytes)
    }
}

impl fmt::Display for MemoryPiece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            Some(address) => write!(f, "{} bytes at {address}", self.bytes.len()),
            None => write!(f, "{} bytes", self.bytes.len()),
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::IntelHex => f.write_str("Intel HEX"),
            Self::SRecords => f.write_str("Motorola S-records"),
            Self::CoreFile => f.write_str("an ELF core file"),
            Self::Text(tools) => {
                let tools = tools.iter().map(ToString::to_string).collect::<Vec<_>>();
                let verb = if tools.len() > 1 { "print" } else { "prints" };
                write!(f, "memory as {} {verb} it", tools.join(" and "))
            }
            Self::Numbers => f.write_str("little-endian numbers without addresses, as probe-rs prints them"),
            Self::Bytes => f.write_str("hexadecimal bytes without addresses"),
            Self::ByteTable => f.write_str("a table of bytes that a logic analyser decoded"),
            Self::Binary => f.write_str("raw memory"),
        }
    }
}
