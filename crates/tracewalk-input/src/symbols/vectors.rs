//! The vector table of an M-profile program.
//!
//! ARMv7-M Architecture Reference Manual (DDI 0403E), B1.5.3: word 0 is the initial stack pointer, word n the
//! address of exception n's handler with bit 0 set. VTOR holds the table's address. Trace does not show VTOR,
//! so the table is found by the names that startup code gives it, or at its address after reset.

use std::fmt;

use tracewalk::ids::Address;
use tracewalk::program::Program;

use super::table::Table;
use super::tables;
use crate::cpu::Profile;
use crate::image::Width;
use crate::image::{Memory, VisibleImage};

/// A vector table, and how it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorTable {
    /// The address of word 0.
    pub address: Address,
    /// How it was found.
    pub from: VectorTableFrom,
}

/// How a vector table was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VectorTableFrom {
    /// By a symbol of this name.
    Symbol(String),
    /// By a section of this name.
    Section(String),
    /// At address 0, the usual address after reset.
    Reset,
    /// At the lowest address of the images.
    LowestAddress,
}

impl fmt::Display for VectorTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.address, self.from)
    }
}

impl fmt::Display for VectorTableFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Symbol(name) => write!(f, "symbol {name}"),
            Self::Section(name) => write!(f, "section {name}"),
            Self::Reset => f.write_str("its address after reset"),
            Self::LowestAddress => f.write_str("the lowest address of the images"),
        }
    }
}

/// The table's names in CMSIS, vendors' code and operating systems. The most common ones come first.
const SYMBOLS: [&str; 16] = [
    "__isr_vector",
    "g_pfnVectors",
    "__Vectors",
    "__vector_table",
    "_vector_table",
    "vector_table",
    "__VECTOR_TABLE",
    "__vectors",
    "_vectors",
    "vectors",
    "__interrupt_vector_table",
    "interruptVectors",
    "exception_table",
    "_isr_vectors",
    "isr_vector",
    "__StackTop_and_vectors",
];

const SECTIONS: [&str; 9] = [
    ".isr_vector",
    ".vector_table",
    ".vectors",
    ".vector",
    ".intvec",
    ".interrupts",
    ".isr_vectors",
    "vectors",
    "RESET",
];

impl VectorTable {
    /// Finds the vector table of an M-profile program by its symbols, its sections, or a guess. `profile` is
    /// the profile that the capture states; the images take precedence. Other profiles have no table of
    /// addresses.
    #[must_use]
    pub fn of(memory: &Memory, profile: Option<Profile>) -> Option<Self> {
        let width = |visible: &VisibleImage| visible.image.elf_file().map(|(width, _)| width);
        if memory.images.iter().any(|visible| width(visible) == Some(Width::Bits64)) {
            return None;
        }
        let of_images = memory.images.iter().find_map(|visible| visible.image.attributes.profile);
        match of_images.or(profile) {
            Some(Profile::M) | None => {
                // Problems of a symbol table are reported when symbols are used.
                let is_wanted = |symbol: &[u8]| SYMBOLS.iter().any(|name| name.as_bytes() == symbol);
                let tables = tables(memory, is_wanted, &mut Vec::new());
                choose(&candidates(&tables), &memory.program)
            }
            Some(Profile::A | Profile::R | Profile::Classic) => None,
        }
    }
}

/// The tables that symbol and section names suggest, the most common names first.
fn candidates(tables: &[Table<'_>]) -> Vec<VectorTable> {
    let mut symbols = Vec::new();
    for symbol in tables.iter().flat_map(|table| &table.symbols) {
        if let Some(rank) = SYMBOLS.iter().position(|name| symbol.name == *name) {
            symbols.push((rank, symbol));
        }
    }
    symbols.sort_by_key(|(rank, _)| *rank);
    let symbols = symbols.into_iter().map(|(_, symbol)| VectorTable {
        address: Address::new(symbol.value & !1),
        from: VectorTableFrom::Symbol(symbol.name.to_string()),
    });
    let mut found = symbols.collect::<Vec<_>>();
    for name in SECTIONS {
        let sections = tables.iter().flat_map(|table| &table.sections).filter(|section| section.name == name);
        found.extend(sections.map(|section| VectorTable {
            address: Address::new(section.start),
            from: VectorTableFrom::Section(name.to_owned()),
        }));
    }
    found
}

/// The first plausible table.
fn choose(candidates: &[VectorTable], program: &Program) -> Option<VectorTable> {
    let reset = VectorTable { address: Address::new(0), from: VectorTableFrom::Reset };
    let lowest = program
        .regions()
        .first()
        .map(|region| VectorTable { address: region.start(), from: VectorTableFrom::LowestAddress });
    let guesses = [Some(reset), lowest];
    let all = candidates.iter().chain(guesses.iter().flatten());
    all.into_iter().find(|table| is_plausible(table.address, program)).cloned()
}

/// Whether the table has an aligned stack pointer and a reset handler in the program.
fn is_plausible(table: Address, program: &Program) -> bool {
    // The low bits of VTOR are not implemented (DDI 0403E, B3.2.5).
    const ALIGNMENT: u64 = 128;
    let stack = program.word(table);
    let reset = table.checked_add(4).and_then(|second| program.word(second));
    let (Some(stack), Some(reset)) = (stack, reset) else { return false };
    table.get().is_multiple_of(ALIGNMENT)
        && stack != 0
        && stack.is_multiple_of(4)
        && reset & 1 == 1
        && program.code(Address::from(reset & !1)).is_some_and(|code| code.len() >= 2)
}
