//! The uninterrupted run of instructions before an exception, with what is proven of each: where values came from.

use tracewalk::ids::{Address, Isa, Location};
use tracewalk::isa;
use tracewalk::span::StreamOffset;
use tracewalk_values::Walk;

use super::proven::Values;
use super::trail::{self, Happened};
use crate::Code;
use crate::values::{Effect, Proven, Register};

/// The stack pointer, the link register and the program counter.
pub(super) const SP: u8 = 13;
pub(super) const LR: u8 = 14;
pub(super) const PC: u8 = 15;

/// The most instructions that are examined.
const MOST_STEPS: usize = 1 << 13;

/// The core registers, as far as they are known.
pub(super) type Registers = [Option<u32>; 16];

/// An instruction.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) at: u32,
    /// The bytes in the image.
    pub(super) code: Vec<u8>,
    pub(super) effect: Effect,
    /// What is proven of it.
    pub(super) proven: Proven,
    /// The byte of the source's trace that shows that it ran.
    pub(super) traced_at: Option<StreamOffset>,
}

/// Instructions that ran one after the other.
#[derive(Debug, Default)]
pub(super) struct Path {
    pub(super) steps: Vec<Step>,
}

/// A store that was made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Store {
    /// The step that made it.
    pub(super) step: usize,
    /// The address.
    pub(super) address: u32,
    pub(super) bytes: u8,
    /// The register that was stored.
    pub(super) register: Option<u8>,
    pub(super) value: Option<u32>,
}

/// The memory that a register's value was loaded from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loaded {
    /// The step that loaded it.
    pub(super) step: usize,
    /// The address; `None` if it is not proven.
    pub(super) address: Option<u32>,
}

impl Step {
    /// The instruction at an address, apart from any path, with these registers before it.
    pub(super) fn read(at: Address, code: &Code, in_it_block: bool, registers: &Registers) -> Option<Self> {
        let instruction = Walk::read(&code.program, Location::new(at, Isa::T32))?;
        let bytes = code.program.code(at)?.get(..usize::from(instruction.bytes))?.to_vec();
        let mut known = [None; 32];
        known
            .iter_mut()
            .zip(registers.iter().take(15))
            .for_each(|(known, value)| *known = value.map(u64::from));
        Some(Self {
            at: at.low_word(),
            code: bytes,
            effect: Effect::of(&instruction, in_it_block, &known),
            proven: Proven::default(),
            traced_at: None,
        })
    }

    /// The instruction at an address, with the newest of these pieces that shows that it ran.
    pub(super) fn ran(at: Address, pieces: &[&Happened], code: &Code) -> Option<Self> {
        let traced_at = pieces.iter().rev().find_map(|piece| match piece {
            Happened::Ran(block) if block.start <= at && at < block.end => Some(block.span.start),
            _ => None,
        });
        Some(Self { traced_at, ..Self::read(at, code, false, &Registers::default())? })
    }

    /// A register before it, if that is proven.
    pub(super) fn before(&self, register: u8) -> Option<u32> {
        word(*self.proven.before.as_ref()?.get(usize::from(register))?)
    }

    /// The registers after it that are proven.
    pub(super) fn after(&self) -> Registers {
        let mut registers: Registers =
            std::array::from_fn(|register| self.before(u8::try_from(register).ok()?));
        registers[usize::from(PC)] = None;
        for (Register(number), value) in &self.proven.writes {
            if let Some(register) = registers.get_mut(usize::from(*number)) {
                *register = word(*value);
            }
        }
        registers
    }

    /// Whether it may be undefined: nothing is known to be what it does. Hints are defined.
    pub(super) fn may_be_undefined(&self) -> bool {
        const HINT: u8 = 0xbf;
        self.effect.is_opaque || self.effect == Effect::default() && self.code.get(1) != Some(&HINT)
    }

    /// The address and the value of one of its accesses, by the number in its effect, as far as they are proven.
    pub(super) fn access(&self, number: usize) -> (Option<u32>, Option<u32>) {
        let accesses = &self.proven.accesses;
        let access = accesses.get(number).filter(|_| accesses.len() == self.effect.accesses.len());
        access.map_or((None, None), |access| (word(access.address), word(access.value)))
    }

    /// Whether it was executed for certain.
    const fn is_certain(&self) -> bool {
        matches!(self.proven.executed, Some(true))
    }

    /// What it jumped to, with the Thumb bit, if that is proven.
    pub(super) fn jumped_to(&self) -> Option<u32> {
        let target = self.effect.target?;
        match target.loaded() {
            Some(load) => self.access(load).1,
            None => self.before(target.copied()?.0),
        }
    }
}

impl Path {
    /// The uninterrupted run of instructions at the end of these pieces, of which `values` are proven.
    pub(super) fn of(pieces: &[&Happened], code: &Code, values: &Values) -> Self {
        let mut steps = Vec::new();
        for (piece, happened) in pieces.iter().enumerate().rev() {
            let block = match happened {
                Happened::Ran(block) => block,
                Happened::NoCode(_) if steps.is_empty() => continue,
                _ => break,
            };
            let places = trail::instructions(block, code);
            if places.is_empty() || steps.len() >= MOST_STEPS {
                break;
            }
            let mut conditional = 0;
            let mut of_block = Vec::new();
            for (number, place) in places.into_iter().enumerate() {
                let Some(known) = code.program.code(place) else { return Self::default() };
                let Ok(classified) = isa::classify(known, place, Isa::T32) else { return Self::default() };
                let nothing = Registers::default();
                let Some(step) = Step::read(place, code, conditional > 0, &nothing) else {
                    return Self::default();
                };
                let proven = values.instruction(piece, number);
                let proven = proven.filter(|(instruction, _)| instruction.at.address == place);
                let proven = proven.map_or_else(Proven::default, |(_, proven)| proven.clone());
                of_block.push(Step { proven, traced_at: Some(block.span.start), ..step });
                conditional = match classified.it_block {
                    0 => u8::saturating_sub(conditional, 1),
                    begins => begins,
                };
            }
            steps.extend(of_block.into_iter().rev());
        }
        steps.reverse();
        Self { steps }
    }

    /// A register's value before a step, if it is proven.
    pub(super) fn before(&self, step: usize, register: u8) -> Option<u32> {
        match self.steps.get(step) {
            Some(step) => step.before(register),
            None => *self.steps.last()?.after().get(usize::from(register))?,
        }
    }

    /// The registers after the last step that are proven.
    pub(super) fn end(&self) -> Registers {
        self.steps.last().map(Step::after).unwrap_or_default()
    }

    /// The load that gave a register the value that it has before `step`; `None` if it was computed, or had it from the start.
    pub(super) fn origin(&self, step: usize, register: u8) -> Option<Loaded> {
        let mut register = register;
        for index in (0..step).rev() {
            let writer = self.steps.get(index)?;
            if writer.effect.is_opaque {
                return None;
            }
            let Some(origin) = writer.effect.written(Register(register)) else { continue };
            match writer.proven.executed {
                Some(true) => {}
                Some(false) => continue,
                None => return None,
            }
            if let Some(load) = origin.loaded() {
                writer.effect.accesses.get(load).filter(|access| access.bytes == 4)?;
                return Some(Loaded { step: index, address: writer.access(load).0 });
            }
            // A copy has the value of its original.
            register = origin.copied()?.0;
        }
        None
    }

    /// The last store to any byte of the word at `address` before `step`; `None` if there was none, or if stores to unknown addresses may
    /// have come later.
    pub(super) fn last_store(&self, step: usize, word: u32) -> Option<Store> {
        let overlaps = |store: &Store| {
            let (start, end) = (u64::from(store.address), u64::from(store.address) + u64::from(store.bytes));
            start < u64::from(word) + 4 && u64::from(word) < end
        };
        for (index, step) in self.steps.iter().enumerate().take(step).rev() {
            if step.proven.may_store || step.effect.is_opaque {
                return None;
            }
            if step.proven.executed == Some(false) {
                continue;
            }
            for (number, _) in step.effect.stores().rev() {
                let store = self.store(index, number)?;
                if overlaps(&store) {
                    return Some(store).filter(|_| step.is_certain());
                }
            }
        }
        None
    }

    /// A store by its step and its number in the effect, if its address is proven.
    fn store(&self, index: usize, number: usize) -> Option<Store> {
        let step = self.steps.get(index)?;
        let transfer = step.effect.accesses.get(number)?;
        let (address, value) = step.access(number);
        let register = transfer.value.copied().map(|register| register.0);
        Some(Store { step: index, address: address?, bytes: transfer.bytes, register, value })
    }

    /// The last store of a register to an address.
    pub(super) fn saved(&self, register: u8, address: u32) -> Option<Store> {
        let stores = |index: usize| {
            let step = self.steps.get(index)?;
            let mut found = step.effect.stores().filter_map(|(number, _)| self.store(index, number));
            found.rfind(|store| store.register == Some(register) && store.address == address)
        };
        (0..self.steps.len()).rev().find_map(stores)
    }
}

fn word(value: Option<u64>) -> Option<u32> {
    value.and_then(|value| u32::try_from(value).ok())
}
