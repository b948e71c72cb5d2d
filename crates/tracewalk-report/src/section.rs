//! One source's part of an output.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use tracewalk::ids::{Address, Location, TraceId};
use tracewalk::isa;
use tracewalk::program::Program;

use crate::disassembly::{Disassemble, Disassembler};
use crate::interrupts::Interrupts;
use crate::symbols::{NoSymbols, Symbols};

/// What an output says of a source before its first item.
#[derive(Clone, Debug)]
pub struct Section {
    /// The trace ID; `None` for a capture without IDs (one source's bytes, or an MTB's RAM).
    pub id: Option<TraceId>,
    /// The protocol's name, like `etmv3`.
    pub protocol: &'static str,
    /// The program that the source traced.
    pub code: Rc<Code>,
}

/// A program and how to read it.
pub struct Code {
    /// Its bytes.
    pub program: Arc<Program>,
    /// Its names and source lines.
    pub symbols: Box<dyn Symbols>,
    /// What the chip's interrupts are called.
    pub interrupts: Interrupts,
    /// How its instructions are written.
    pub disassembler: Box<dyn Disassemble>,
}

impl Code {
    /// No code, no symbols.
    #[must_use]
    pub fn unknown() -> Self {
        Self {
            program: Arc::new(Program::new()),
            symbols: Box::new(NoSymbols),
            interrupts: Interrupts::default(),
            disassembler: Box::new(Disassembler::default()),
        }
    }
}

impl Code {
    /// The address behind the instruction at `at`.
    pub(crate) fn behind(&self, at: Location) -> Address {
        let code = self.program.code(at.address).unwrap_or_default();
        let bytes = match isa::classify(code, at.address, at.isa) {
            Ok(instruction) => instruction.bytes.into(),
            Err(_) => at.isa.alignment(),
        };
        at.address.plus(bytes)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Code").field("regions", &self.program.regions().len()).finish_non_exhaustive()
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.id {
            Some(id) => write!(f, "trace ID {id}, {}", self.protocol),
            None => write!(f, "one source without trace ID, {}", self.protocol),
        }
    }
}
