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

/// Memory as it was when it was written down.
#[derive(Clone, Debug)]
pub struct MemoryDump {
    /// How it was written down.
    pub form: Form,
    /// The memory: at least one piece, by address, with missing bytes between each two.
    pub pieces: Vec<MemoryPiece>,
    /// Whether addresses are offsets in a file whose address in memory is not stated.
    pub is_file: bool,
    /// Registers of a Micro Trace Buffer that the same text names (`MTB_POSITION=0x1bc`).
    pub registers: Registers,
    /// Registers of the processor that the same text names.
    pub processor: ProcessorRegisters,
    /// Lines of the text that are neither.
    pub other_lines: OtherLines,
    /// The part of the file that could not be read; the rest is in `pieces`.
    pub damage: Option<Damage>,
}

/// Parts of a file that are not as they were written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// How many parts there are.
    pub count: u32,
    /// The line of the first one, from 1, if it is known.
    pub line: Option<u32>,
    /// The problem.
    pub problem: DumpProblem,
}

/// A stretch of memory.
#[derive(Clone, Debug)]
pub struct MemoryPiece {
    /// The address of the first byte; `None` if not stated.
    pub address: Option<Address>,
    /// The bytes; at least one.
    pub bytes: Bytes,
}

/// How memory was written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// Intel HEX records.
    IntelHex,
    /// Motorola S-records.
    SRecords,
    /// An ELF core file.
    CoreFile,
    /// Text in the words of these tools.
    Text(BTreeSet<Tool>),
    /// Text that is nothing but numbers, without addresses.
    Numbers,
    /// Plain bytes, at an address that is stated elsewhere.
    Binary,
}

/// Lines of a text that are no memory: prompts, commands, messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtherLines {
    /// How many there are.
    pub count: u32,
    /// The first one, from 1, and its text.
    pub first: Option<(u32, String)>,
}

impl MemoryDump {
    /// Memory without anything else beside it.
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

    /// How many bytes all pieces have together.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.bytes.len() as u64).sum()
    }
}

impl MemoryDump {
    /// The same of a file whose first byte was at this address; `None` if it goes past the end of memory.
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

/// The pieces of memory that were put together.
pub(super) fn finished(memory: Assembly) -> Result<Vec<MemoryPiece>, Located> {
    let pieces = memory.finish().map_err(|(line, problem)| (line, problem.into()))?;
    let piece =
        |(address, bytes): (Address, Vec<u8>)| MemoryPiece { address: Some(address), bytes: bytes.into() };
    Ok(pieces.into_iter().map(piece).collect())
}

impl Damage {
    /// Takes one more part in.
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
            Self::Binary => f.write_str("memory as it is"),
        }
    }
}
