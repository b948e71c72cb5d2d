//! Profiles of samples of the program counter, which tell functions but no calls.

use tracewalk::ids::{Address, Isa};
use tracewalk::program::Scope;

use super::{NodeKind, Profile};
use crate::Code;
use crate::call_stack::{FunctionId, Piece};
use crate::clock::Cost;

/// An address that no M-profile processor executes (Armv7-M and Armv8-M reference manuals, EXC_RETURN).
const NOWHERE: Address = Address::new(0xffff_fffe);

impl Profile {
    /// Counts a sample of the program counter; `None` if the processor slept.
    pub fn sample(&mut self, at: Option<Address>, code: &Code) {
        let function = match at.map(|at| code.symbols.function(at)) {
            None => FunctionId::Asleep,
            Some(None) => FunctionId::Unknown,
            Some(Some(function)) => FunctionId::Named(function.start, Scope::EVERYWHERE),
        };
        let node = self.node(None, NodeKind::Function { function, site: None });
        let start = at.unwrap_or(NOWHERE);
        let end = start.checked_add(Isa::T32.alignment().into()).unwrap_or(start);
        let entry = self.entry(node, Piece { start, end, isa: Isa::T32, instructions: 1 });
        self.spend(entry, Cost { instructions: 1, ..Cost::default() });
        self.measures.samples += 1;
    }
}
