//! A machine that computes with known and unknown numbers.

use super::case::{Case, Set};
use super::program::{ARENA, ARENA_BYTES};
use crate::bits::Width;
use crate::machine::{Carry, Condition, Flags, Forgotten, Jump, Machine, Register};
use crate::relation::{self, Operation, Shift};

/// A number of a width; `None` if it is not modelled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number {
    value: Option<u64>,
    width: Width,
}

/// A machine that computes with numbers.
#[derive(Debug)]
pub(super) struct Numbers {
    set: Set,
    registers: [Number; 32],
    /// N, Z, C and V.
    flags: [Option<bool>; 4],
    pub(super) memory: Vec<Option<u8>>,
    /// The registers that the instruction wrote.
    written: u32,
    /// The instruction can be executed here: it does not branch, and uses only memory that is there.
    pub(super) is_possible: bool,
}

/// Registers and flags after an instruction.
#[derive(Clone, Debug)]
pub(super) struct After {
    pub(super) registers: Vec<u64>,
    pub(super) flags: u32,
}

impl Numbers {
    pub(super) fn new(case: &Case, memory: Vec<Option<u8>>) -> Self {
        let width = if case.set == Set::A64 { Width::Double } else { Width::Word };
        let flag = |bit: u32| Some(case.flags >> bit & 1 == 1);
        Self {
            set: case.set,
            registers: case.registers.map(|value| Number { value: Some(value), width }),
            flags: [flag(3), flag(2), flag(1), flag(0)],
            memory,
            written: 0,
            is_possible: !case.is_it(),
        }
    }

    /// What differs from the emulator's registers and flags.
    pub(super) fn difference(&self, after: &After) -> Option<String> {
        for (index, (number, value)) in self.registers.iter().zip(&after.registers).enumerate() {
            if number.value.is_some_and(|number| number != *value) {
                return Some(format!("register {index} is {:x?}, the emulator has {value:x}", number.value));
            }
        }
        for (index, flag) in self.flags.iter().enumerate() {
            let set = after.flags >> (3 - index) & 1 == 1;
            if flag.is_some_and(|flag| flag != set) {
                return Some(format!("flags are {:?}, the emulator has {:x}", self.flags, after.flags));
            }
        }
        None
    }

    pub(super) fn register(&self, index: usize) -> Option<u64> {
        self.registers[index].value
    }

    /// Whether a condition holds, if that is known.
    pub(super) fn condition(&self, condition: Condition) -> Option<bool> {
        let [n, z, c, v] = self.flags;
        let holds = match condition.0 >> 1 {
            0 => z?,
            1 => c?,
            2 => n?,
            3 => v?,
            4 => c? && !z?,
            5 => n? == v?,
            6 => n? == v? && !z?,
            _ => return Some(true),
        };
        Some(holds != (condition.0 & 1 == 1))
    }

    fn place(&mut self, address: Number, bytes: u8) -> Option<usize> {
        let place = address.value.and_then(|address| usize::try_from(address.checked_sub(ARENA)?).ok());
        let place = place.filter(|place| place + usize::from(bytes) <= ARENA_BYTES);
        self.is_possible &= place.is_some();
        place
    }

    fn carry_of(&self, carry: Carry<Number>) -> Option<bool> {
        let bit = |value: Number, bit: u64| value.value.map(|value| value >> bit & 1 == 1);
        match carry {
            Carry::Unchanged => self.flags[2],
            Carry::Known(carry) => Some(carry),
            Carry::Bit(value, index) => bit(value, index.into()),
            Carry::Shifted { shift, value, by } => match (shift, by.value? & 0xff) {
                (_, 0) => self.flags[2],
                (Shift::Left, by) => {
                    if by <= 32 {
                        bit(value, 32 - by)
                    } else {
                        Some(false)
                    }
                }
                (Shift::Right, by) => {
                    if by <= 32 {
                        bit(value, by - 1)
                    } else {
                        Some(false)
                    }
                }
                (Shift::Arithmetic, by) => bit(value, by.min(32) - 1),
                (Shift::Rotate, by) => bit(value, (by + 31) % 32),
            },
        }
    }
}

impl Machine for Numbers {
    type Value = Number;

    fn constant(&mut self, value: u64, width: Width) -> Number {
        assert_eq!(value & !width.mask(), 0, "a constant of the right width");
        Number { value: Some(value), width }
    }

    fn unknown(&mut self, width: Width) -> Number {
        Number { value: None, width }
    }

    fn operation(&mut self, operation: Operation, width: Width, [a, b, c]: [Number; 3]) -> Number {
        let value = a.value.zip(b.value).zip(c.value);
        let value = value.map(|((a, b), c)| relation::evaluate(operation, width, a, b, c));
        Number { value, width }
    }

    fn subtract(&mut self, a: Number, b: Number, width: Width) -> Number {
        let value = a.value.zip(b.value).map(|(a, b)| a.wrapping_sub(b) & width.mask());
        Number { value, width }
    }

    fn read(&mut self, register: Register) -> Number {
        // The program's own stack pointer is not that of the case, and the program counter is unpredictable here.
        self.is_possible &= register.0 < if self.set == Set::A64 { 31 } else { 15 };
        self.registers[usize::from(register.0)]
    }

    fn write(&mut self, register: Register, value: Number) {
        self.is_possible &= register.0 < if self.set == Set::A64 { 31 } else { 15 };
        // Two results for one register are unpredictable.
        self.is_possible &= self.written & 1 << register.0 == 0;
        self.written |= 1 << register.0;
        let width = if self.set == Set::A64 { Width::Double } else { Width::Word };
        self.registers[usize::from(register.0)] = Number { width, ..value };
    }

    fn load(&mut self, address: Number, bytes: u8, width: Width) -> Number {
        let Some(place) = self.place(address, bytes) else { return Number { value: None, width } };
        let mut bytes = self.memory[place..place + usize::from(bytes)].iter().rev();
        let value =
            bytes.by_ref().copied().try_fold(0, |value: u64, byte| Some(value << 8 | u64::from(byte?)));
        Number { value, width }
    }

    fn store(&mut self, address: Number, bytes: u8, value: Number) {
        let Some(place) = self.place(address, bytes) else { return };
        for index in 0..usize::from(bytes) {
            let byte = value.value.map(|value| value.to_le_bytes()[index]);
            self.memory[place + index] = byte;
        }
    }

    fn store_or_not(&mut self, address: Number, bytes: u8, value: Number) {
        self.store(address, bytes, Number { value: None, ..value });
    }

    fn set_flags(&mut self, flags: Flags<Number>) {
        let sign = |number: Number| number.value.map(|value| value & number.width.sign() != 0);
        let result = |number: Number| [sign(number), number.value.map(|value| value == 0)];
        let evaluate = |operation, a: Number, b: Number, c: Number| {
            let ((a_value, b), c) = a.value.zip(b.value).zip(c.value)?;
            Some(relation::evaluate(operation, a.width, a_value, b, c) == 1)
        };
        self.flags = match flags {
            Flags::Sum { result: sum, a, b, carry } => {
                let [n, z] = result(sum);
                let overflow = sign(a).zip(sign(b)).zip(n).map(|((a, b), n)| a == b && a != n);
                [n, z, evaluate(Operation::Carry, a, b, carry), overflow]
            }
            Flags::Difference { result: difference, a, b, borrow } => {
                let [n, z] = result(difference);
                let overflow = sign(a).zip(sign(b)).zip(n).map(|((a, b), n)| a != b && a != n);
                [n, z, evaluate(Operation::NoBorrow, a, b, borrow), overflow]
            }
            Flags::Logic { result: logic, carry } => {
                let [n, z] = result(logic);
                [n, z, self.carry_of(carry), self.flags[3]]
            }
            Flags::Cleared { result: logic } => {
                let [n, z] = result(logic);
                [n, z, Some(false), Some(false)]
            }
            Flags::Fixed(flags) => [3, 2, 1, 0].map(|bit| Some(flags >> bit & 1 == 1)),
            Flags::Unknown => [None; 4],
        };
    }

    fn holds(&mut self, condition: Condition) -> Number {
        Number { value: self.condition(condition).map(u64::from), width: Width::Word }
    }

    fn branch(&mut self, _: Number, _: bool) {
        self.is_possible = false;
    }

    fn jump(&mut self, _: Number, _: Jump) {
        self.is_possible = false;
    }

    fn write_special(&mut self, _: u32, _: Number) {
        self.is_possible = false;
    }

    fn read_special(&mut self, _: u32) -> Number {
        self.unknown(Width::Word)
    }

    fn forget(&mut self, _: Forgotten) {
        self.is_possible = false;
    }

    fn resize(&mut self, value: Number, width: Width) -> Number {
        Number { value: value.value.map(|value| value & width.mask()), width }
    }

    fn known_bit(&self, value: Number) -> Option<bool> {
        value.value.map(|value| value & 1 == 1)
    }
}
