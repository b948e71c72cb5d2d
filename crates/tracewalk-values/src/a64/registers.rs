//! Data processing on registers (C4.1.95).

use super::{A64, read, read_or_sp, shifted, write};
use crate::arm::not_modelled;
use crate::bits::Width;
use crate::field::{bit, field};
use crate::machine::{Condition, Flags, Machine};
use crate::relation::{Operation, Permutation, Shift};

pub(super) fn execute<M: Machine>(a64: A64, machine: &mut M) {
    let code = a64.code;
    match (bit::<28>(code), field::<24, 21>(code)) {
        (false, 0b0000..=0b0111) => logical(a64, machine),
        (false, kind) if kind & 1 == 0 => {
            // ADD, SUB (shifted register).
            let width = a64.width();
            let (kind, by) = (field::<23, 22>(code), field::<15, 10>(code));
            if kind == 3 || by >= width.bits() {
                return not_modelled(machine);
            }
            let (a, b) = (read(machine, a64.n(), width), read(machine, a64.m(), width));
            let b = shifted(machine, b, kind, by, width);
            let result = a64.add_or_subtract(machine, a, b, width);
            write(machine, a64.d(), result);
        }
        (false, _) => add_extended(a64, machine),
        (true, 0b0000) => with_carry(a64, machine),
        (true, 0b0010) => conditional_compare(a64, machine),
        (true, 0b0100) => conditional_select(a64, machine),
        (true, 0b0110) if bit::<30>(code) => one_source(a64, machine),
        (true, 0b0110) => two_sources(a64, machine),
        (true, 0b1000..=0b1111) => three_sources(a64, machine),
        _ => not_modelled(machine),
    }
}

/// AND, BIC, ORR, ORN, EOR, EON, ANDS, BICS (shifted register).
fn logical<M: Machine>(a64: A64, machine: &mut M) {
    let (code, width) = (a64.code, a64.width());
    let (a, b) = (read(machine, a64.n(), width), read(machine, a64.m(), width));
    let by = field::<15, 10>(code);
    if by >= width.bits() {
        return not_modelled(machine);
    }
    let b = shifted(machine, b, field::<23, 22>(code), by, width);
    let b = if bit::<21>(code) { machine.complement(b, width) } else { b };
    let operation = match field::<30, 29>(code) {
        0b01 => Operation::Or,
        0b10 => Operation::Xor,
        _ => Operation::And,
    };
    let result = machine.binary(operation, width, a, b);
    if field::<30, 29>(code) == 0b11 {
        machine.set_flags(Flags::Cleared { result });
    }
    write(machine, a64.d(), result);
}

/// A register extended and shifted, as an offset or an operand.
pub(super) fn extended<M: Machine>(a64: A64, machine: &mut M, shift: u32, width: Width) -> M::Value {
    let option = field::<15, 13>(a64.code);
    let value = read(machine, a64.m(), Width::Double);
    let count = 8 << (option & 3);
    let value = if count >= width.bits() {
        machine.resize(value, width)
    } else {
        machine.field(value, 0, count, option & 4 != 0, width)
    };
    shifted(machine, value, 0, shift, width)
}

/// ADD, SUB (extended register), on the stack pointer too.
fn add_extended<M: Machine>(a64: A64, machine: &mut M) {
    let (code, width) = (a64.code, a64.width());
    let shift = field::<12, 10>(code);
    if field::<23, 22>(code) != 0 || shift > 4 {
        return not_modelled(machine);
    }
    let a = read_or_sp(machine, a64.n(), width);
    let b = extended(a64, machine, shift, width);
    let result = a64.add_or_subtract(machine, a, b, width);
    if bit::<29>(code) { write(machine, a64.d(), result) } else { machine.write(a64.d(), result) }
}

/// ADC, ADCS, SBC, SBCS; RMIF, SETF8, SETF16 change only flags.
fn with_carry<M: Machine>(a64: A64, machine: &mut M) {
    let (code, width) = (a64.code, a64.width());
    if field::<15, 10>(code) != 0 {
        return machine.set_flags(Flags::Unknown);
    }
    let (a, b) = (read(machine, a64.n(), width), read(machine, a64.m(), width));
    let carry = machine.carry();
    let (result, flags) = if bit::<30>(code) {
        let borrow = machine.invert(carry);
        let difference = machine.subtract(a, b, width);
        let wide = machine.resize(borrow, width);
        let result = machine.subtract(difference, wide, width);
        (result, Flags::Difference { result, a, b, borrow })
    } else {
        let sum = machine.add(a, b, width);
        let wide = machine.resize(carry, width);
        let result = machine.add(sum, wide, width);
        (result, Flags::Sum { result, a, b, carry })
    };
    if bit::<29>(code) {
        machine.set_flags(flags);
    }
    write(machine, a64.d(), result);
}

/// CCMN, CCMP.
fn conditional_compare<M: Machine>(a64: A64, machine: &mut M) {
    let (code, width) = (a64.code, a64.width());
    let holds = machine.holds(Condition::of(field::<15, 12>(code)));
    let flags = match machine.known_bit(holds) {
        Some(true) => {
            let a = read(machine, a64.n(), width);
            let b = if bit::<11>(code) {
                machine.constant(field::<20, 16>(code).into(), width)
            } else {
                read(machine, a64.m(), width)
            };
            let zero = machine.word(0);
            if bit::<30>(code) {
                let result = machine.subtract(a, b, width);
                Flags::Difference { result, a, b, borrow: zero }
            } else {
                let result = machine.add(a, b, width);
                Flags::Sum { result, a, b, carry: zero }
            }
        }
        Some(false) => Flags::Fixed(field::<3, 0>(code)),
        None => Flags::Unknown,
    };
    machine.set_flags(flags);
}

/// CSEL, CSINC, CSINV, CSNEG.
fn conditional_select<M: Machine>(a64: A64, machine: &mut M) {
    let (code, width) = (a64.code, a64.width());
    if bit::<29>(code) || bit::<11>(code) {
        return not_modelled(machine);
    }
    let holds = machine.holds(Condition::of(field::<15, 12>(code)));
    let (a, b) = (read(machine, a64.n(), width), read(machine, a64.m(), width));
    let other = match (bit::<30>(code), bit::<10>(code)) {
        (false, false) => b,
        (false, true) => machine.offset(b, 1, width),
        (true, false) => machine.complement(b, width),
        (true, true) => {
            let zero = machine.constant(0, width);
            machine.subtract(zero, b, width)
        }
    };
    let result = machine.operation(Operation::Select, width, [a, other, holds]);
    write(machine, a64.d(), result);
}

/// RBIT, REV16, REV32, REV, CLZ; CLS, CTZ, CNT, ABS and pointer authentication are not modelled.
fn one_source<M: Machine>(a64: A64, machine: &mut M) {
    let (code, width) = (a64.code, a64.width());
    let value = read(machine, a64.n(), width);
    let permute = |permutation| Operation::Permute(permutation);
    let operation = match (field::<20, 16>(code), field::<15, 10>(code), width) {
        (0, 0b000_000, _) => permute(Permutation::Bits),
        (0, 0b000_001, _) => permute(Permutation::BytesOfHalves),
        (0, 0b000_010, Width::Word) | (0, 0b000_011, Width::Double) => permute(Permutation::Bytes),
        (0, 0b000_010, Width::Double) => permute(Permutation::BytesOfWords),
        (0, 0b000_100, _) => Operation::LeadingZeros,
        _ => {
            let value = machine.unknown(width);
            return write(machine, a64.d(), value);
        }
    };
    let result = machine.unary(operation, width, value);
    write(machine, a64.d(), result);
}

/// UDIV, SDIV, LSLV, LSRV, ASRV, RORV; CRC32, PACGA, SUBP, IRG, GMI and minima are not modelled.
fn two_sources<M: Machine>(a64: A64, machine: &mut M) {
    let (code, width) = (a64.code, a64.width());
    let (a, b) = (read(machine, a64.n(), width), read(machine, a64.m(), width));
    let shift = |machine: &mut M, shift| {
        let mask = machine.constant((width.bits() - 1).into(), width);
        let by = machine.binary(Operation::And, width, b, mask);
        machine.binary(Operation::Shift(shift), width, a, by)
    };
    let result = match (bit::<29>(code), field::<15, 10>(code)) {
        (false, 0b000_010) => machine.binary(Operation::Div { signed: false }, width, a, b),
        (false, 0b000_011) => machine.binary(Operation::Div { signed: true }, width, a, b),
        (false, 0b001_000) => shift(machine, Shift::Left),
        (false, 0b001_001) => shift(machine, Shift::Right),
        (false, 0b001_010) => shift(machine, Shift::Arithmetic),
        (false, 0b001_011) => shift(machine, Shift::Rotate),
        // IRG writes the stack pointer's number as such.
        (false, 0b000_100) => {
            let value = machine.unknown(width);
            return machine.write(a64.d(), value);
        }
        (sets_flags, _) => {
            if sets_flags {
                machine.set_flags(Flags::Unknown);
            }
            machine.unknown(width)
        }
    };
    write(machine, a64.d(), result);
}

/// MADD, MSUB, SMADDL, SMSUBL, UMADDL, UMSUBL, SMULH, UMULH.
fn three_sources<M: Machine>(a64: A64, machine: &mut M) {
    let (code, width) = (a64.code, a64.width());
    let kind = field::<23, 21>(code);
    if field::<30, 29>(code) != 0 || kind != 0 && width == Width::Word {
        return not_modelled(machine);
    }
    let product = match kind {
        0b000 => {
            let (a, b) = (read(machine, a64.n(), width), read(machine, a64.m(), width));
            machine.binary(Operation::Mul, width, a, b)
        }
        0b001 | 0b101 => {
            let (a, b) = (read(machine, a64.n(), Width::Word), read(machine, a64.m(), Width::Word));
            crate::arm::long_product(machine, kind == 0b001, a, b)
        }
        0b010 | 0b110 => {
            let (a, b) = (read(machine, a64.n(), width), read(machine, a64.m(), width));
            let high = machine.binary(Operation::MulHigh { signed: kind == 0b010 }, width, a, b);
            return write(machine, a64.d(), high);
        }
        _ => return not_modelled(machine),
    };
    let other = read(machine, a64.a(), width);
    let result = if bit::<15>(code) {
        machine.subtract(other, product, width)
    } else {
        machine.add(other, product, width)
    };
    write(machine, a64.d(), result);
}
