//! A model of time that supplies cycle counts and timestamps. It models no real processor: it is
//! deterministic, has stalls, and has instructions that take no time of their own.

use tracewalk::isa::{Class, Instruction};

use crate::path::Executed;

/// The number of instructions between stalls of the instruction fetch.
const STALL_EVERY: u64 = 61;
const STALL_CYCLES: u32 = 19;

/// Counts cycles.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    now: u64,
    instructions: u64,
    /// Whether another instruction may be issued in the same cycle as the last one.
    can_pair: bool,
}

impl Clock {
    /// Advances the clock by an instruction; returns the cycles that passed.
    pub(crate) fn execute(&mut self, executed: &Executed, instruction: &Instruction) -> u32 {
        self.instructions += 1;
        let simple = matches!(instruction.class, Class::Other | Class::Wait) && instruction.access.is_none();
        let cycles = if !executed.passed {
            1
        } else if simple && self.can_pair {
            0
        } else {
            let transfers = instruction.access.map_or(0, |access| u32::from(access.transfers));
            1 + transfers + if instruction.is_branch() { 2 } else { 0 }
        };
        self.can_pair = simple && cycles == 1 && executed.address.get() & 0b100 == 0;
        let stall = if self.instructions.is_multiple_of(STALL_EVERY) { STALL_CYCLES } else { 0 };
        self.now += u64::from(cycles + stall);
        cycles + stall
    }

    /// The cycles so far.
    pub(crate) const fn now(&self) -> u64 {
        self.now
    }

    /// The system's time, which runs at half the processor's speed and started long before the program.
    pub(crate) const fn timestamp(&self) -> u64 {
        0x12_3456_0000 + self.now / 2
    }
}
