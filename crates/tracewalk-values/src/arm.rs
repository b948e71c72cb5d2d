//! What A32 and T32 share: shifts, data processing, multiplication, loads and stores of several registers
//! (ARM Architecture Reference Manual, ARMv7-A and ARMv7-R edition, DDI 0406C).

use crate::bits::Width;
use crate::machine::{Carry, Flags, Forgotten, Jump, Machine, Register};
use crate::relation::{Operation, Shift};

const WORD: Width = Width::Word;

/// The operations of data-processing instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alu {
    And,
    Eor,
    Sub,
    Rsb,
    Add,
    Adc,
    Sbc,
    Rsc,
    Orr,
    Mov,
    Bic,
    Mvn,
    Orn,
}

/// A value from a shifter, and the shifter's carry.
pub(crate) type Shifted<V> = (V, Carry<V>);

/// The register's value; the program counter reads as `pc`.
pub(crate) fn read<M: Machine>(machine: &mut M, register: Register, pc: u32) -> M::Value {
    if register == Register::PC { machine.word(pc) } else { machine.read(register) }
}

/// A value shifted by an immediate (A8.4.3, DecodeImmShift and Shift_C).
pub(crate) fn shift_immediate<M: Machine>(
    machine: &mut M,
    value: M::Value,
    kind: u32,
    amount: u32,
) -> Shifted<M::Value> {
    #[expect(clippy::cast_possible_truncation, reason = "less than 32")]
    let bit = |index: u32| Carry::Bit(value, index as u8);
    let (shift, by, carry) = match (kind & 3, amount) {
        (0, 0) => return (value, Carry::Unchanged),
        (0, by) => (Shift::Left, by, bit(32 - by)),
        (1, 0) => (Shift::Right, 32, bit(31)),
        (1, by) => (Shift::Right, by, bit(by - 1)),
        (2, 0) => (Shift::Arithmetic, 32, bit(31)),
        (2, by) => (Shift::Arithmetic, by, bit(by - 1)),
        // RRX.
        (_, 0) => {
            let carry = machine.carry();
            let rest = machine.field(value, 1, 31, false, WORD);
            let insert = Operation::Insert { low: 31, count: 1 };
            return (machine.binary(insert, WORD, rest, carry), bit(0));
        }
        (_, by) => (Shift::Rotate, by, bit(by - 1)),
    };
    let by = machine.word(by);
    (machine.binary(Operation::Shift(shift), WORD, value, by), carry)
}

/// A value shifted by a register's low byte.
pub(crate) fn shift_register<M: Machine>(
    machine: &mut M,
    value: M::Value,
    kind: u32,
    by: M::Value,
) -> Shifted<M::Value> {
    let shift = match kind & 3 {
        0 => Shift::Left,
        1 => Shift::Right,
        2 => Shift::Arithmetic,
        _ => Shift::Rotate,
    };
    let shifted = machine.binary(Operation::Shift(shift), WORD, value, by);
    (shifted, Carry::Shifted { shift, value, by })
}

/// Computes a data-processing operation, and sets the flags if `set_flags`.
pub(crate) fn data_processing<M: Machine>(
    machine: &mut M,
    alu: Alu,
    a: M::Value,
    (b, carry): Shifted<M::Value>,
    set_flags: bool,
) -> M::Value {
    match alu {
        Alu::Add | Alu::Adc => {
            let carry = if alu == Alu::Adc { machine.carry() } else { machine.word(0) };
            let sum = machine.add(a, b, WORD);
            let result = if alu == Alu::Adc { machine.add(sum, carry, WORD) } else { sum };
            if set_flags {
                machine.set_flags(Flags::Sum { result, a, b, carry });
            }
            result
        }
        Alu::Sub | Alu::Rsb | Alu::Sbc | Alu::Rsc => {
            let (a, b) = if matches!(alu, Alu::Rsb | Alu::Rsc) { (b, a) } else { (a, b) };
            let with_borrow = matches!(alu, Alu::Sbc | Alu::Rsc);
            let difference = machine.subtract(a, b, WORD);
            let (result, borrow) = if with_borrow {
                let carry = machine.carry();
                let borrow = machine.invert(carry);
                (machine.subtract(difference, borrow, WORD), borrow)
            } else {
                (difference, machine.word(0))
            };
            if set_flags {
                machine.set_flags(Flags::Difference { result, a, b, borrow });
            }
            result
        }
        Alu::And | Alu::Eor | Alu::Orr | Alu::Mov | Alu::Bic | Alu::Mvn | Alu::Orn => {
            let b =
                if matches!(alu, Alu::Bic | Alu::Mvn | Alu::Orn) { machine.complement(b, WORD) } else { b };
            let result = match alu {
                Alu::And | Alu::Bic => machine.binary(Operation::And, WORD, a, b),
                Alu::Eor => machine.binary(Operation::Xor, WORD, a, b),
                Alu::Orr | Alu::Orn => machine.binary(Operation::Or, WORD, a, b),
                _ => b,
            };
            if set_flags {
                machine.set_flags(Flags::Logic { result, carry });
            }
            result
        }
    }
}

/// Sets N and Z from a result, as multiplications do.
pub(crate) fn set_result_flags<M: Machine>(machine: &mut M, result: M::Value) {
    machine.set_flags(Flags::Logic { result, carry: Carry::Unchanged });
}

/// The product of 64 bits of two words.
pub(crate) fn long_product<M: Machine>(machine: &mut M, signed: bool, a: M::Value, b: M::Value) -> M::Value {
    let a = machine.field(a, 0, 32, signed, Width::Double);
    let b = machine.field(b, 0, 32, signed, Width::Double);
    machine.binary(Operation::Mul, Width::Double, a, b)
}

/// Writes a value of 64 bits to two registers.
pub(crate) fn write_long<M: Machine>(machine: &mut M, low: Register, high: Register, value: M::Value) {
    let low_half = machine.field(value, 0, 32, false, WORD);
    let high_half = machine.field(value, 32, 32, false, WORD);
    machine.write(low, low_half);
    machine.write(high, high_half);
}

/// Two registers as one value of 64 bits.
pub(crate) fn read_long<M: Machine>(machine: &mut M, low: Register, high: Register) -> M::Value {
    let (low, high) = (machine.read(low), machine.read(high));
    let low = machine.field(low, 0, 32, false, Width::Double);
    machine.binary(Operation::Insert { low: 32, count: 32 }, Width::Double, low, high)
}

/// The sum of a value of 64 bits and two words.
pub(crate) fn add_words<M: Machine>(
    machine: &mut M,
    value: M::Value,
    low: Register,
    high: Register,
) -> M::Value {
    let (low, high) = (machine.read(low), machine.read(high));
    let low = machine.field(low, 0, 32, false, Width::Double);
    let high = machine.field(high, 0, 32, false, Width::Double);
    let sum = machine.add(value, low, Width::Double);
    machine.add(sum, high, Width::Double)
}

/// The addressing of a transfer of several registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Multiple {
    pub(crate) base: Register,
    pub(crate) registers: u32,
    /// The addresses lie below the base.
    pub(crate) decrement: bool,
    /// The base itself is not among the addresses, if they ascend, or is, if they descend.
    pub(crate) before: bool,
    pub(crate) write_back: bool,
}

impl Multiple {
    /// The offset of the lowest address and the change of the base.
    fn offsets(self) -> (u32, u32) {
        let bytes = 4 * self.registers.count_ones();
        match (self.decrement, self.before) {
            (false, false) => (0, bytes),
            (false, true) => (4, bytes),
            (true, false) => (4_u32.wrapping_sub(bytes), bytes.wrapping_neg()),
            (true, true) => (bytes.wrapping_neg(), bytes.wrapping_neg()),
        }
    }

    fn list(self) -> impl Iterator<Item = Register> {
        (0..16).filter(move |bit| self.registers >> bit & 1 == 1).map(Register::of)
    }

    /// LDM, LDMDB, POP.
    pub(crate) fn load<M: Machine>(self, machine: &mut M) {
        let (start, change) = self.offsets();
        let base = machine.read(self.base);
        let mut address = machine.offset(base, start.into(), WORD);
        let mut target = None;
        for register in self.list() {
            let value = machine.load(address, 4, WORD);
            address = machine.offset(address, 4, WORD);
            if register == Register::PC {
                target = Some(value);
            } else {
                machine.write(register, value);
            }
        }
        // A base in the list is loaded.
        if self.write_back && self.registers >> self.base.0 & 1 == 0 {
            let base = machine.offset(base, change.into(), WORD);
            machine.write(self.base, base);
        }
        if let Some(target) = target {
            machine.jump(target, Jump::Exchanging);
        }
    }

    /// STM, STMDB, PUSH.
    pub(crate) fn store<M: Machine>(self, machine: &mut M, pc: u32) {
        let (start, change) = self.offsets();
        let base = machine.read(self.base);
        let mut address = machine.offset(base, start.into(), WORD);
        let lowest = self.registers.trailing_zeros();
        for register in self.list() {
            // A base that is written back and not the lowest register of the list has an unknown value in memory.
            let value = if register == self.base && self.write_back && u32::from(register.0) != lowest {
                machine.unknown(WORD)
            } else {
                read(machine, register, pc)
            };
            machine.store(address, 4, value);
            address = machine.offset(address, 4, WORD);
        }
        if self.write_back {
            let base = machine.offset(base, change.into(), WORD);
            machine.write(self.base, base);
        }
    }
}

/// The addressing of a transfer of one or two registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Single<V> {
    pub(crate) base: Register,
    /// The base's value, which for the program counter is aligned.
    pub(crate) from: V,
    pub(crate) offset: V,
    pub(crate) subtract: bool,
    /// The offset is part of the address.
    pub(crate) before: bool,
    pub(crate) write_back: bool,
}

impl<V: Copy> Single<V> {
    /// The address, and the base's new value.
    pub(crate) fn address<M: Machine<Value = V>>(self, machine: &mut M) -> (V, V) {
        let moved = if self.subtract {
            machine.subtract(self.from, self.offset, WORD)
        } else {
            machine.add(self.from, self.offset, WORD)
        };
        (if self.before { moved } else { self.from }, moved)
    }

    /// Loads a register.
    pub(crate) fn load<M: Machine<Value = V>>(
        self,
        machine: &mut M,
        target: Register,
        bytes: u8,
        signed: bool,
    ) {
        let (address, moved) = self.address(machine);
        let value = if self.base == Register::PC {
            machine.load_literal(address, bytes, WORD)
        } else {
            machine.load(address, bytes, WORD)
        };
        let value = if signed && bytes < 4 {
            machine.field(value, 0, 8 * u32::from(bytes), true, WORD)
        } else {
            value
        };
        if self.write_back {
            machine.write(self.base, moved);
        }
        if target == Register::PC {
            machine.jump(value, Jump::Exchanging);
        } else {
            machine.write(target, value);
        }
    }

    /// Stores a register.
    pub(crate) fn store<M: Machine<Value = V>>(self, machine: &mut M, source: V, bytes: u8) {
        let (address, moved) = self.address(machine);
        machine.store(address, bytes, source);
        if self.write_back {
            machine.write(self.base, moved);
        }
    }

    /// LDRD and STRD.
    pub(crate) fn pair<M: Machine<Value = V>>(
        self,
        machine: &mut M,
        load: bool,
        first: Register,
        second: Register,
    ) {
        let (address, moved) = self.address(machine);
        let next = machine.offset(address, 4, WORD);
        if load {
            let (low, high) = (machine.load(address, 4, WORD), machine.load(next, 4, WORD));
            if self.write_back {
                machine.write(self.base, moved);
            }
            machine.write(first, low);
            machine.write(second, high);
        } else {
            let (low, high) = (machine.read(first), machine.read(second));
            machine.store(address, 4, low);
            machine.store(next, 4, high);
            if self.write_back {
                machine.write(self.base, moved);
            }
        }
    }
}

/// An instruction that is not in the tables: it may change everything.
pub(crate) fn not_modelled<M: Machine>(machine: &mut M) {
    machine.forget(Forgotten::Everything);
}

/// What an extension takes from a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Byte,
    Halfword,
    /// The bytes 0 and 2, each extended to a halfword.
    Bytes,
}

/// SXTB, SXTH, SXTB16, UXTB, UXTH, UXTB16 and their sums with Rn; with the program counter as Rn there is no sum.
pub(crate) fn extend<M: Machine>(
    machine: &mut M,
    n: Register,
    part: Part,
    signed: bool,
    value: M::Value,
) -> M::Value {
    let extended = match part {
        Part::Byte => machine.field(value, 0, 8, signed, WORD),
        Part::Halfword => machine.field(value, 0, 16, signed, WORD),
        Part::Bytes if !signed && n == Register::PC => {
            let mask = machine.word(0x00ff_00ff);
            return machine.binary(Operation::And, WORD, value, mask);
        }
        Part::Bytes => return machine.unknown(WORD),
    };
    if n == Register::PC {
        return extended;
    }
    let other = machine.read(n);
    machine.add(other, extended, WORD)
}
