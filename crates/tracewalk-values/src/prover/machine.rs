//! Executes instructions with names instead of numbers.

use super::{Prover, stacks};
use crate::bits::{Bits, Width};
use crate::machine::{Condition, Flags, Forgotten, Jump, Machine, Register};
use crate::memory::{Access, Kind};
use crate::profile::Profile;
use crate::relation::{self, Operation};
use crate::terms::Term;

impl Prover<'_> {
    fn access(&mut self, address: Term, bytes: u8, value: Term, kind: Kind) {
        let is_of_stack = self.is_of_stack(address);
        let access = Access {
            address,
            value,
            bytes,
            kind,
            guard: self.guard,
            is_of_stack,
            is_literal: self.is_literal,
        };
        self.accesses.push(access);
        self.memory.push(access, &mut self.terms, self.image);
    }

    /// A register's value after an instruction that may not be executed.
    fn guarded(&mut self, value: Term, before: Term) -> Term {
        let Some(guard) = self.guard else { return value };
        self.operation(Operation::Select, value.width, [value, before, guard])
    }

    /// Changes a register without noting that the instruction writes it.
    pub(super) fn change(&mut self, register: usize, value: Term) {
        self.registers[register] = value;
        if register == self.stack_pointer() {
            self.terms.is_stack_pointer(value);
        }
    }
}

impl Machine for Prover<'_> {
    type Value = Term;

    fn constant(&mut self, value: u64, width: Width) -> Term {
        Term::constant(value, width)
    }

    fn unknown(&mut self, width: Width) -> Term {
        self.terms.unknown(width)
    }

    fn operation(&mut self, operation: Operation, width: Width, operands: [Term; 3]) -> Term {
        let [a, b, c] = operands.map(|term| self.terms.value(term));
        if let (Some(a), Some(b), Some(c)) = (a, b, c) {
            return Term::constant(relation::evaluate(operation, width, a, b, c), width);
        }
        let [first, second, _] = operands;
        match (operation, a, b) {
            (Operation::Add, _, Some(by)) => return first.plus(by),
            (Operation::Add, Some(by), _) => return second.plus(by),
            _ => {}
        }
        let result = self.terms.known(Self::result_bits(operation, width), width);
        self.terms.relate(operation, width, result, &operands);
        result
    }

    fn subtract(&mut self, a: Term, b: Term, width: Width) -> Term {
        if let Some(by) = self.terms.value(b) {
            return a.plus(by.wrapping_neg());
        }
        let difference = self.terms.unknown(width);
        self.terms.relate(Operation::Add, width, a, &[difference, b]);
        difference
    }

    fn read(&mut self, register: Register) -> Term {
        self.registers[usize::from(register.0)]
    }

    fn write(&mut self, register: Register, value: Term) {
        self.writes.push((register, value));
        let index = usize::from(register.0);
        let value = self.guarded(value, self.registers[index]);
        self.change(index, value);
    }

    fn load(&mut self, address: Term, bytes: u8, width: Width) -> Term {
        let value = self.terms.known(Bits::of_low(8 * u32::from(bytes)), width);
        self.access(address, bytes, value, Kind::Load);
        value
    }

    fn load_literal(&mut self, address: Term, bytes: u8, width: Width) -> Term {
        self.is_literal = true;
        let value = self.load(address, bytes, width);
        self.is_literal = false;
        value
    }

    fn store(&mut self, address: Term, bytes: u8, value: Term) {
        self.access(address, bytes, value, Kind::Store);
    }

    fn store_or_not(&mut self, address: Term, bytes: u8, value: Term) {
        self.access(address, bytes, value, Kind::StoreOrNot);
    }

    fn resize(&mut self, value: Term, width: Width) -> Term {
        if value.width == width {
            return value;
        }
        self.field(value, 0, 32, false, width)
    }

    fn known_bit(&self, value: Term) -> Option<bool> {
        self.terms.value(value).map(|value| value & 1 == 1)
    }

    fn set_flags(&mut self, flags: Flags<Term>) {
        self.change_flags(flags);
    }

    fn holds(&mut self, condition: Condition) -> Term {
        self.condition(condition)
    }

    fn branch(&mut self, condition: Term, taken_if: bool) {
        if let Some(taken) = self.now.and_then(|instruction| instruction.executed) {
            self.terms.learn(condition, Bits::constant(u64::from(taken == taken_if)));
        }
    }

    fn jump(&mut self, target: Term, jump: Jump) {
        self.last_target = Some(target);
        let Some(instruction) = self.now else { return };
        let Some(next) = instruction.next.filter(|_| !self.processor.has_security) else { return };
        let address = next.address.get();
        let bits = match jump {
            Jump::Exchanging => Bits::constant(address | u64::from(next.isa.is_thumb())),
            Jump::Aligned => {
                let known = if next.isa.is_thumb() { !1 } else { !3 };
                Bits { known, ones: address & known }
            }
            Jump::Exact => Bits::constant(address),
        };
        self.terms.learn(target, bits);
    }

    fn write_special(&mut self, number: u32, value: Term) {
        self.write_stack_register(number, value);
    }

    fn read_special(&mut self, number: u32) -> Term {
        self.read_stack_register(number)
    }

    fn forget(&mut self, forgotten: Forgotten) {
        match forgotten {
            Forgotten::Everything => self.forget_everything_here(),
            Forgotten::Memory => self.forget_memory(),
            Forgotten::StackPointer => self.forget_bank(),
        }
    }
}

impl Prover<'_> {
    /// An instruction that is not modelled: registers, flags and memory.
    fn forget_everything_here(&mut self) {
        self.forget_registers();
        self.forget_memory();
        self.frames.clear();
    }

    /// Registers that another mode or stack has of its own.
    pub(super) fn forget_bank(&mut self) {
        self.forget_stacks();
        self.frames.clear();
    }

    /// The same, but the frames on the stacks stay.
    pub(super) fn forget_stacks(&mut self) {
        let banked: &[usize] = match self.processor.profile {
            Profile::M => &[13, stacks::MAIN, stacks::PROCESS],
            Profile::A32 => &[8, 9, 10, 11, 12, 13, 14],
            Profile::A64 => &[31],
        };
        for register in banked {
            let value = self.terms.unknown(self.width());
            self.change(*register, value);
        }
    }
}
