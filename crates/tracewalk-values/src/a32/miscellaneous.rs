//! Multiplication, media and miscellaneous instructions (A5.2.5, A5.2.7, A5.2.12, A5.4).

use super::{Arm, WORD};
use crate::arm::{self, not_modelled};
use crate::bits::Width;
use crate::field::{bit, field};
use crate::machine::{Jump, Machine, Register};
use crate::relation::{Operation, Permutation};

/// A5.2.5. The result is in bits 19 to 16, the accumulator in 15 to 12.
pub(super) fn multiply<M: Machine>(arm: Arm, machine: &mut M) {
    let code = arm.code;
    let [d, accumulator, s, m] = arm.registers();
    let (a, b) = (machine.read(m), machine.read(s));
    let set_flags = bit::<20>(code);
    let operation = field::<23, 21>(code);
    if operation < 4 {
        let product = machine.binary(Operation::Mul, WORD, a, b);
        let result = match operation {
            // MUL, MLA, MLS; UMAAL has flags in its place.
            0b000 => product,
            0b001 => {
                let other = machine.read(accumulator);
                machine.add(product, other, WORD)
            }
            0b011 if !set_flags => {
                let other = machine.read(accumulator);
                machine.subtract(other, product, WORD)
            }
            0b010 if !set_flags => {
                let product = arm::long_product(machine, false, a, b);
                let sum = arm::add_words(machine, product, accumulator, d);
                return arm::write_long(machine, accumulator, d, sum);
            }
            _ => return not_modelled(machine),
        };
        if set_flags {
            arm::set_result_flags(machine, result);
        }
        machine.write(d, result);
        return;
    }
    // UMULL, UMLAL, SMULL, SMLAL.
    let product = arm::long_product(machine, operation & 0b010 != 0, a, b);
    let result = if operation & 1 == 1 {
        let other = arm::read_long(machine, accumulator, d);
        machine.add(product, other, Width::Double)
    } else {
        product
    };
    if set_flags {
        arm::set_result_flags(machine, result);
    }
    arm::write_long(machine, accumulator, d, result);
}

/// A5.2.7 and A5.2.12.
pub(super) fn execute<M: Machine>(arm: Arm, machine: &mut M) {
    let code = arm.code;
    let [d, target, s, m] = arm.registers();
    let operation = field::<22, 21>(code);
    if bit::<7>(code) {
        return halfword_multiply(arm, machine, operation);
    }
    match (field::<6, 4>(code), operation) {
        // MRS and MSR; MRS of banked registers.
        (0b000, 0b00 | 0b10) => {
            let value = machine.unknown(WORD);
            machine.write(target, value);
        }
        (0b000, _) if bit::<9>(code) => not_modelled(machine),
        (0b000, _) => arm.status(machine),
        // BX, BLX (register).
        (0b001 | 0b011, 0b01) => {
            let to = arm::read(machine, m, arm.pc());
            if bit::<5>(code) {
                let link = machine.word(arm.address.wrapping_add(4));
                machine.write(Register::LR, link);
            }
            machine.jump(to, Jump::Exchanging);
        }
        // CLZ.
        (0b001, 0b11) => {
            let value = machine.read(m);
            let zeros = machine.unary(Operation::LeadingZeros, WORD, value);
            machine.write(target, zeros);
        }
        // CRC32 (ARMv8), whose result is not modelled; QADD and its kin, which set only Q.
        (0b100 | 0b101, _) => {
            let value = machine.unknown(WORD);
            machine.write(target, value);
        }
        // BKPT, HVC, SMC raise exceptions.
        (0b111, 0b01..=0b11) => {}
        // BXJ, ERET; undefined.
        _ => {
            let _ = (d, s);
            not_modelled(machine);
        }
    }
}

/// A5.2.7.
fn halfword_multiply<M: Machine>(arm: Arm, machine: &mut M, operation: u32) {
    let code = arm.code;
    let [d, accumulator, s, m] = arm.registers();
    let (a, b) = (machine.read(m), machine.read(s));
    let second = machine.field(b, 16 * field::<6, 6>(code), 16, true, WORD);
    match operation {
        // SMLAxy, SMULxy.
        0b00 | 0b11 => {
            let first = machine.field(a, 16 * field::<5, 5>(code), 16, true, WORD);
            let product = machine.binary(Operation::Mul, WORD, first, second);
            let result = if operation == 0 {
                let other = machine.read(accumulator);
                machine.add(product, other, WORD)
            } else {
                product
            };
            machine.write(d, result);
        }
        // SMLAWy, SMULWy.
        0b01 => {
            let value = machine.unknown(WORD);
            machine.write(d, value);
        }
        // SMLALxy.
        _ => {
            let value = machine.unknown(Width::Double);
            arm::write_long(machine, accumulator, d, value);
        }
    }
}

/// A5.4.
pub(super) fn media<M: Machine>(arm: Arm, machine: &mut M) {
    let code = arm.code;
    let [n, d, s, m] = arm.registers();
    let value = machine.read(m);
    let (low, number) = (field::<11, 7>(code), field::<20, 16>(code));
    let result = match (field::<24, 20>(code), field::<7, 5>(code)) {
        // Parallel addition and subtraction.
        (0b00000..=0b00111, _) => machine.unknown(WORD),
        // PKHBT, PKHTB.
        (0b01000, 0b000 | 0b010 | 0b100 | 0b110) => {
            let kind = if bit::<6>(code) { 2 } else { 0 };
            let (shifted, _) = arm::shift_immediate(machine, value, kind, low);
            let other = machine.read(n);
            let (low, high) = if kind == 2 { (shifted, other) } else { (other, shifted) };
            let high = machine.field(high, 16, 16, false, WORD);
            machine.binary(Operation::Insert { low: 16, count: 16 }, WORD, low, high)
        }
        // SEL.
        (0b01000, 0b101) => machine.unknown(WORD),
        // SXTAB16, UXTAB16; SXTAB, SXTAH, UXTAB, UXTAH, and without Rn.
        (kind @ (0b01000 | 0b01100 | 0b01010 | 0b01011 | 0b01110 | 0b01111), 0b011) => {
            let rotated = match field::<11, 10>(code) {
                0 => value,
                by => arm::shift_immediate(machine, value, 3, 8 * by).0,
            };
            let part = match kind & 0b11 {
                0b10 => arm::Part::Byte,
                0b11 => arm::Part::Halfword,
                _ => arm::Part::Bytes,
            };
            arm::extend(machine, n, part, !bit::<2>(kind), rotated)
        }
        // REV, RBIT, REV16, REVSH.
        (0b01011, 0b001) => machine.unary(Operation::Permute(Permutation::Bytes), WORD, value),
        (0b01111, 0b001) => machine.unary(Operation::Permute(Permutation::Bits), WORD, value),
        (0b01011, 0b101) => machine.unary(Operation::Permute(Permutation::BytesOfHalves), WORD, value),
        (0b01111, 0b101) => {
            let halves = machine.unary(Operation::Permute(Permutation::BytesOfHalves), WORD, value);
            machine.field(halves, 0, 16, true, WORD)
        }
        // SSAT16, USAT16; SSAT, USAT, which set only Q.
        (0b01010 | 0b01110, 0b001) => machine.unknown(WORD),
        (0b01010 | 0b01011 | 0b01110 | 0b01111, 0b000 | 0b010 | 0b100 | 0b110) => machine.unknown(WORD),
        // SDIV, UDIV.
        (kind @ (0b10001 | 0b10011), 0b000) => {
            let divisor = machine.read(s);
            let quotient = machine.binary(Operation::Div { signed: kind == 0b10001 }, WORD, value, divisor);
            return machine.write(n, quotient);
        }
        // SMLALD, SMLSLD.
        (0b10100, _) => {
            let value = machine.unknown(Width::Double);
            return arm::write_long(machine, d, n, value);
        }
        // SMLAD, SMLSD, SMMLA, SMMLS; USAD8, USADA8: the result is in bits 19 to 16.
        (0b10000 | 0b10101, _) | (0b11000, 0b000) => {
            let value = machine.unknown(WORD);
            return machine.write(n, value);
        }
        // SBFX, UBFX.
        (kind @ (0b11010 | 0b11011 | 0b11110 | 0b11111), 0b010 | 0b110) if low + number < 32 => {
            machine.field(value, low, number + 1, kind < 0b11100, WORD)
        }
        // BFI, BFC.
        (0b11100 | 0b11101, 0b000 | 0b100) if number >= low => {
            let into = machine.read(d);
            let from = if m == Register::PC { machine.word(0) } else { value };
            #[expect(clippy::cast_possible_truncation, reason = "at most 32")]
            let insert = Operation::Insert { low: low as u8, count: (number - low + 1) as u8 };
            machine.binary(insert, WORD, into, from)
        }
        // UDF raises an exception.
        (0b11111, 0b111) => return,
        _ => return not_modelled(machine),
    };
    machine.write(d, result);
}
