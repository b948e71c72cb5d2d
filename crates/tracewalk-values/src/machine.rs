//! The small language into which instructions are translated: what a machine does that executes them.
//!
//! The tables of the instruction sets describe each instruction by calls of these methods. The prover names the values and
//! notes their relations; a test's machine computes with numbers, and is compared with an emulator.

use crate::bits::Width;
use crate::relation::{Operation, Shift};

/// A register by its number: 0 to 14, or in A64 0 to 30, and 31 for the stack pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Register(pub u8);

impl Register {
    /// The stack pointer of A32 and T32.
    pub(crate) const SP: Self = Self(13);
    /// The link register of A32 and T32.
    pub(crate) const LR: Self = Self(14);
    /// The number that A32 and T32 have for the program counter, which is no register here.
    pub(crate) const PC: Self = Self(15);

    /// The register with a number from an encoding.
    #[expect(clippy::cast_possible_truncation, reason = "a field of an encoding")]
    pub(crate) const fn of(number: u32) -> Self {
        Self(number as u8)
    }
}

/// The source of the flags after an instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Flags<V> {
    /// A sum: a + b + carry.
    Sum { result: V, a: V, b: V, carry: V },
    /// A difference: a - b - borrow.
    Difference { result: V, a: V, b: V, borrow: V },
    /// A result with its own carry. The overflow flag stays.
    Logic { result: V, carry: Carry<V> },
    /// A result that clears the carry and the overflow flag.
    Cleared { result: V },
    /// N, Z, C and V as bits 3 to 0.
    Fixed(u32),
    /// What they are is not modelled.
    Unknown,
}

/// The carry of a shifter.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Carry<V> {
    /// The flag stays.
    Unchanged,
    /// A constant's.
    Known(bool),
    /// A bit of a value.
    Bit(V, u8),
    /// A shift by a register's low byte.
    Shifted { shift: Shift, value: V, by: V },
}

/// A condition by its number in the manuals (DDI 0406C, A8.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Condition(pub(crate) u8);

impl Condition {
    /// The conditions from here on always hold.
    pub(crate) const ALWAYS: Self = Self(14);

    /// The condition in a field of an encoding.
    #[expect(clippy::cast_possible_truncation, reason = "four bits")]
    pub(crate) const fn of(field: u32) -> Self {
        Self(field as u8 & 15)
    }
}

/// The use of a jump's target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Jump {
    /// Bit 0 is the instruction set: one for T32.
    Exchanging,
    /// The address has bits that the jump ignores.
    Aligned,
    /// The address is exact.
    Exact,
}

/// What an instruction changes that is not modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forgotten {
    /// All registers, the flags and memory.
    Everything,
    /// All of memory that can be written.
    Memory,
    /// The stack pointer: another one is in use.
    StackPointer,
}

/// A machine that executes instructions.
pub(crate) trait Machine {
    /// A value of 32 or 64 bits.
    type Value: Copy;

    /// A constant.
    fn constant(&mut self, value: u64, width: Width) -> Self::Value;
    /// A value that is not modelled.
    fn unknown(&mut self, width: Width) -> Self::Value;
    /// An operation's result. Operands that it does not have are ignored.
    fn operation(&mut self, operation: Operation, width: Width, operands: [Self::Value; 3]) -> Self::Value;
    /// The difference.
    fn subtract(&mut self, a: Self::Value, b: Self::Value, width: Width) -> Self::Value;
    /// A register's value.
    fn read(&mut self, register: Register) -> Self::Value;
    /// Changes a register.
    fn write(&mut self, register: Register, value: Self::Value);
    /// Loads bytes, with zeros above.
    fn load(&mut self, address: Self::Value, bytes: u8, width: Width) -> Self::Value;
    /// Loads a constant that is part of the code.
    fn load_literal(&mut self, address: Self::Value, bytes: u8, width: Width) -> Self::Value {
        self.load(address, bytes, width)
    }
    /// Stores a value's low bytes.
    fn store(&mut self, address: Self::Value, bytes: u8, value: Self::Value);
    /// Stores a value's low bytes, or does not.
    fn store_or_not(&mut self, address: Self::Value, bytes: u8, value: Self::Value);
    /// Changes the flags.
    fn set_flags(&mut self, flags: Flags<Self::Value>);
    /// 1 if a condition holds, 0 if not.
    fn holds(&mut self, condition: Condition) -> Self::Value;
    /// Branches if the condition's value is `taken_if`.
    fn branch(&mut self, condition: Self::Value, taken_if: bool);
    /// Jumps to a value.
    fn jump(&mut self, target: Self::Value, jump: Jump);
    /// Writes a special register of M profile, or the status and mode of other profiles.
    fn write_special(&mut self, number: u32, value: Self::Value);
    /// Reads one.
    fn read_special(&mut self, number: u32) -> Self::Value;
    /// Forgets what an instruction changes that is not modelled.
    fn forget(&mut self, forgotten: Forgotten);

    /// A value as one of another width: its low bits, or with zeros above.
    fn resize(&mut self, value: Self::Value, width: Width) -> Self::Value;
    /// The lowest bit of a value, if it is known.
    fn known_bit(&self, value: Self::Value) -> Option<bool>;

    /// An operation with two operands.
    fn binary(&mut self, operation: Operation, width: Width, a: Self::Value, b: Self::Value) -> Self::Value {
        self.operation(operation, width, [a, b, b])
    }

    /// An operation with one operand.
    fn unary(&mut self, operation: Operation, width: Width, a: Self::Value) -> Self::Value {
        self.operation(operation, width, [a, a, a])
    }

    /// A constant of 32 bits.
    fn word(&mut self, value: u32) -> Self::Value {
        self.constant(value.into(), Width::Word)
    }

    /// The sum.
    fn add(&mut self, a: Self::Value, b: Self::Value, width: Width) -> Self::Value {
        self.binary(Operation::Add, width, a, b)
    }

    /// The sum with a constant.
    fn offset(&mut self, a: Self::Value, by: u64, width: Width) -> Self::Value {
        let by = self.constant(by & width.mask(), width);
        self.add(a, by, width)
    }

    /// The complement.
    fn complement(&mut self, a: Self::Value, width: Width) -> Self::Value {
        let ones = self.constant(width.mask(), width);
        self.binary(Operation::Xor, width, a, ones)
    }

    /// `count` bits of a value from `low` on.
    fn field(&mut self, a: Self::Value, low: u32, count: u32, signed: bool, width: Width) -> Self::Value {
        #[expect(clippy::cast_possible_truncation, reason = "at most 64")]
        let (low, count) = (low as u8, count as u8);
        self.unary(Operation::Field { low, count, signed }, width, a)
    }

    /// The carry flag, 0 or 1.
    fn carry(&mut self) -> Self::Value {
        self.holds(Condition(2))
    }

    /// Another value with its lowest bit inverted.
    fn invert(&mut self, bit: Self::Value) -> Self::Value {
        let one = self.word(1);
        self.binary(Operation::Xor, Width::Word, bit, one)
    }
}
