//! The 32-bit encodings (A6.3), but for loads and stores.

use super::{Thumb, WORD, loads, reversed};
use crate::arm::{self, Alu, Shifted, data_processing, not_modelled, read, shift_immediate, shift_register};
use crate::coprocessor;
use crate::field::{bit, field};
use crate::machine::{Carry, Condition, Flags, Forgotten, Jump, Machine, Register};
use crate::relation::{Operation, Permutation};

/// A6.3.
pub(super) fn execute<M: Machine>(thumb: Thumb, machine: &mut M) {
    let (first, second) = (u32::from(thumb.first), u32::from(thumb.second));
    let word = first << 16 | second;
    match (field::<12, 11>(first), field::<10, 4>(first), bit::<15>(second)) {
        (0b01, 0b000_0000..=0b001_1111, _) if bit::<6>(first) => {
            loads::dual_exclusive_and_table_branch(thumb, machine, first, second);
        }
        (0b01, 0b000_0000..=0b001_1111, _) => loads::multiple(thumb, machine, first, second),
        (0b01, 0b010_0000..=0b011_1111, _) => data_processing_shifted(machine, first, second),
        (0b01, ..) => coprocessor::execute(machine, word, thumb.pc()),
        (0b10, operation, false) if operation & 0b10_0000 == 0 => {
            data_processing_immediate(machine, first, second);
        }
        (0b10, _, false) => plain_immediate(thumb, machine, first, second),
        (0b10, _, true) => branches_and_control(thumb, machine, first, second),
        (_, 0b000_0000..=0b000_1111, _) if !bit::<4>(first) => {
            loads::store_single(thumb, machine, first, second);
        }
        // Advanced SIMD element or structure load and store.
        (_, 0b001_0000..=0b001_1111, _) if !bit::<4>(first) => coprocessor::structure(machine, word),
        (_, 0b000_0000..=0b001_1111, _) => loads::load_single(thumb, machine, first, second),
        (_, 0b010_0000..=0b010_1111, _) => data_processing_register(machine, first, second),
        (_, 0b011_0000..=0b011_0111, _) => multiply(machine, first, second),
        (_, 0b011_1000..=0b011_1111, _) => long_multiply_and_divide(machine, first, second),
        _ => coprocessor::execute(machine, word, thumb.pc()),
    }
}

/// The registers of most encodings: Rn, Rd, Rm.
fn registers(first: u32, second: u32) -> (Register, Register, Register) {
    (
        Register::of(field::<3, 0>(first)),
        Register::of(field::<11, 8>(second)),
        Register::of(field::<3, 0>(second)),
    )
}

/// A modified immediate, and whether its carry is the flag's or bit 31 (A6.3.2, ThumbExpandImm_C).
fn modified_immediate(first: u32, second: u32) -> (u32, Option<bool>) {
    let number = field::<10, 10>(first) << 11 | field::<14, 12>(second) << 8 | field::<7, 0>(second);
    let byte = number & 0xff;
    match field::<11, 8>(number) {
        0b0000 => (byte, None),
        0b0001 => (byte << 16 | byte, None),
        0b0010 => (byte << 24 | byte << 8, None),
        0b0011 => (byte << 24 | byte << 16 | byte << 8 | byte, None),
        _ => {
            let value = (0x80 | byte & 0x7f).rotate_right(field::<11, 7>(number));
            (value, Some(value >> 31 == 1))
        }
    }
}

/// The operations of A6.3.1 and A6.3.11 on an operand.
fn modified_operation<M: Machine>(machine: &mut M, first: u32, second: u32, operand: Shifted<M::Value>) {
    let (n, d, _) = registers(first, second);
    let set_flags = bit::<4>(first);
    let (alu, is_test) = match field::<8, 5>(first) {
        0b0000 => (Alu::And, true),
        0b0001 => (Alu::Bic, false),
        0b0010 if n == Register::PC => (Alu::Mov, false),
        0b0010 => (Alu::Orr, false),
        0b0011 if n == Register::PC => (Alu::Mvn, false),
        0b0011 => (Alu::Orn, false),
        0b0100 => (Alu::Eor, true),
        0b1000 => (Alu::Add, true),
        0b1010 => (Alu::Adc, false),
        0b1011 => (Alu::Sbc, false),
        0b1101 => (Alu::Sub, true),
        0b1110 => (Alu::Rsb, false),
        _ => return not_modelled(machine),
    };
    let a = match alu {
        Alu::Mov | Alu::Mvn => operand.0,
        _ if n == Register::PC => return not_modelled(machine),
        _ => machine.read(n),
    };
    let result = data_processing(machine, alu, a, operand, set_flags);
    // TST, TEQ, CMN, CMP.
    if d != Register::PC {
        machine.write(d, result);
    } else if !(is_test && set_flags) {
        not_modelled(machine);
    }
}

/// A6.3.1.
fn data_processing_immediate<M: Machine>(machine: &mut M, first: u32, second: u32) {
    let (value, carry) = modified_immediate(first, second);
    let operand = (machine.word(value), carry.map_or(Carry::Unchanged, Carry::Known));
    modified_operation(machine, first, second, operand);
}

/// A6.3.3.
fn plain_immediate<M: Machine>(thumb: Thumb, machine: &mut M, first: u32, second: u32) {
    let (n, d, _) = registers(first, second);
    let immediate = field::<10, 10>(first) << 11 | field::<14, 12>(second) << 8 | field::<7, 0>(second);
    let low = field::<14, 12>(second) << 2 | field::<7, 6>(second);
    let number = field::<4, 0>(second);
    let result = match field::<8, 4>(first) {
        // ADDW, SUBW, and ADR from the program counter.
        operation @ (0b00000 | 0b01010) => {
            let base = if n == Register::PC { machine.word(thumb.base()) } else { machine.read(n) };
            let immediate = u64::from(immediate);
            machine.offset(base, if operation == 0 { immediate } else { immediate.wrapping_neg() }, WORD)
        }
        // MOVW.
        0b00100 => machine.word(field::<3, 0>(first) << 12 | immediate),
        // MOVT.
        0b01100 => {
            let (value, high) = (machine.read(d), machine.word(field::<3, 0>(first) << 12 | immediate));
            machine.binary(Operation::Insert { low: 16, count: 16 }, WORD, value, high)
        }
        // SBFX, UBFX.
        operation @ (0b10100 | 0b11100) if low + number < 32 => {
            let value = machine.read(n);
            machine.field(value, low, number + 1, operation == 0b10100, WORD)
        }
        // BFI, BFC.
        0b10110 if number >= low => {
            let value = machine.read(d);
            let inserted = if n == Register::PC { machine.word(0) } else { machine.read(n) };
            #[expect(clippy::cast_possible_truncation, reason = "at most 32")]
            let insert = Operation::Insert { low: low as u8, count: (number - low + 1) as u8 };
            machine.binary(insert, WORD, value, inserted)
        }
        // SSAT, USAT; SSAT16, USAT16.
        0b10000 | 0b10010 | 0b11000 | 0b11010 => {
            machine.set_flags(Flags::Unknown);
            machine.unknown(WORD)
        }
        _ => return not_modelled(machine),
    };
    machine.write(d, result);
}

/// A6.3.11.
fn data_processing_shifted<M: Machine>(machine: &mut M, first: u32, second: u32) {
    let (n, d, m) = registers(first, second);
    let amount = field::<14, 12>(second) << 2 | field::<7, 6>(second);
    let value = machine.read(m);
    let operand = shift_immediate(machine, value, field::<5, 4>(second), amount);
    // PKHBT, PKHTB.
    if field::<8, 5>(first) == 0b0110 {
        let other = machine.read(n);
        let (low, high) = if bit::<5>(second) { (operand.0, other) } else { (other, operand.0) };
        let high = machine.field(high, 16, 16, false, WORD);
        let packed = machine.binary(Operation::Insert { low: 16, count: 16 }, WORD, low, high);
        return machine.write(d, packed);
    }
    modified_operation(machine, first, second, operand);
}

/// A6.3.12 to A6.3.15.
fn data_processing_register<M: Machine>(machine: &mut M, first: u32, second: u32) {
    let (n, d, m) = registers(first, second);
    if field::<15, 12>(second) != 0b1111 {
        return not_modelled(machine);
    }
    let operation = field::<7, 4>(first);
    // LSL, LSR, ASR, ROR (register).
    if operation < 8 && field::<7, 4>(second) == 0 {
        let (value, by) = (machine.read(n), machine.read(m));
        let shifted = shift_register(machine, value, field::<6, 5>(first), by);
        let result = data_processing(machine, Alu::Mov, value, shifted, bit::<4>(first));
        return machine.write(d, result);
    }
    let result = match (operation, field::<7, 4>(second)) {
        // SXTAH, UXTAH, SXTAB16, UXTAB16, SXTAB, UXTAB, and without Rn.
        (0b0000..=0b0101, 0b1000..=0b1011) => {
            let value = machine.read(m);
            let rotation = field::<5, 4>(second) << 3;
            let (rotated, _) = if rotation == 0 {
                (value, Carry::Unchanged)
            } else {
                shift_immediate(machine, value, 3, rotation)
            };
            let part = match operation >> 1 {
                0 => arm::Part::Halfword,
                1 => arm::Part::Bytes,
                _ => arm::Part::Byte,
            };
            arm::extend(machine, n, part, operation & 1 == 0, rotated)
        }
        // REV, REV16, RBIT, REVSH.
        (0b1001, 0b1010) => {
            let value = machine.read(m);
            machine.unary(Operation::Permute(Permutation::Bits), WORD, value)
        }
        (0b1001, kind @ (0b1000 | 0b1001 | 0b1011)) => {
            let value = machine.read(m);
            let Some(reversed) = reversed(machine, value, kind & 3) else { return not_modelled(machine) };
            reversed
        }
        // SEL uses flags that are not modelled.
        (0b1010, 0b1000) => machine.unknown(WORD),
        // CLZ.
        (0b1011, 0b1000) => {
            let value = machine.read(m);
            machine.unary(Operation::LeadingZeros, WORD, value)
        }
        // Parallel addition and subtraction; QADD, QDADD, QSUB, QDSUB. The GE and Q flags are not modelled.
        (0b1000..=0b1111, 0b0000..=0b0111) | (0b1000, 0b1000..=0b1011) => machine.unknown(WORD),
        _ => return not_modelled(machine),
    };
    machine.write(d, result);
}

/// A6.3.16.
fn multiply<M: Machine>(machine: &mut M, first: u32, second: u32) {
    let (n, d, m) = registers(first, second);
    let accumulator = Register::of(field::<15, 12>(second));
    let is_alone = accumulator == Register::PC;
    let (a, b) = (machine.read(n), machine.read(m));
    let product = match (field::<6, 4>(first), field::<7, 4>(second)) {
        // MUL, MLA, MLS.
        (0b000, 0b0001) if is_alone => return not_modelled(machine),
        (0b000, 0b0000 | 0b0001) => machine.binary(Operation::Mul, WORD, a, b),
        // SMULxy, SMLAxy.
        (0b001, halves @ 0..=3) => {
            let a = machine.field(a, 16 * (halves >> 1), 16, true, WORD);
            let b = machine.field(b, 16 * (halves & 1), 16, true, WORD);
            machine.binary(Operation::Mul, WORD, a, b)
        }
        // SMUAD, SMLAD, SMULW, SMLAW, SMUSD, SMLSD, SMMUL, SMMLA, SMMLS, USAD8, USADA8: the result is not modelled, nor is Q.
        (0b010..=0b111, 0b0000 | 0b0001) => machine.unknown(WORD),
        _ => return not_modelled(machine),
    };
    let result = match field::<7, 4>(second) {
        _ if is_alone => product,
        0b0001 if field::<6, 4>(first) == 0 => {
            let other = machine.read(accumulator);
            machine.subtract(other, product, WORD)
        }
        _ => {
            let other = machine.read(accumulator);
            machine.add(other, product, WORD)
        }
    };
    machine.write(d, result);
}

/// A6.3.17.
fn long_multiply_and_divide<M: Machine>(machine: &mut M, first: u32, second: u32) {
    let (n, d, m) = registers(first, second);
    let low = Register::of(field::<15, 12>(second));
    let (a, b) = (machine.read(n), machine.read(m));
    let result = match (field::<6, 4>(first), field::<7, 4>(second)) {
        // SMULL, UMULL.
        (kind @ (0b000 | 0b010), 0b0000) => arm::long_product(machine, kind == 0, a, b),
        // SDIV, UDIV.
        (kind @ (0b001 | 0b011), 0b1111) => {
            let quotient = machine.binary(Operation::Div { signed: kind == 1 }, WORD, a, b);
            return machine.write(d, quotient);
        }
        // SMLAL, UMLAL.
        (kind @ (0b100 | 0b110), 0b0000) => {
            let product = arm::long_product(machine, kind == 0b100, a, b);
            let other = arm::read_long(machine, low, d);
            machine.add(product, other, crate::bits::Width::Double)
        }
        // UMAAL.
        (0b110, 0b0110) => {
            let product = arm::long_product(machine, false, a, b);
            arm::add_words(machine, product, low, d)
        }
        // SMLALxy, SMLALD, SMLSLD.
        (0b100, 0b1000..=0b1101) | (0b101, 0b1100 | 0b1101) => machine.unknown(crate::bits::Width::Double),
        _ => return not_modelled(machine),
    };
    arm::write_long(machine, low, d, result);
}

/// A6.3.4.
fn branches_and_control<M: Machine>(thumb: Thumb, machine: &mut M, first: u32, second: u32) {
    let condition = field::<9, 6>(first);
    match (field::<14, 12>(second), field::<10, 4>(first)) {
        // B, encoding T3.
        (0b000 | 0b010, _) if condition < 14 => {
            let condition = machine.holds(Condition::of(condition));
            machine.branch(condition, true);
        }
        // MSR: of M profile a special register, among them the stack pointers and CONTROL; otherwise the flags and the mode.
        (0b000 | 0b010, 0b011_1000 | 0b011_1001) => {
            machine.set_flags(Flags::Unknown);
            let number = field::<7, 0>(second);
            if number >= 8 || bit::<4>(first) || field::<11, 8>(second) & 0b0111 != 0 {
                let value = machine.read(Register::of(field::<3, 0>(first)));
                machine.write_special(number, value);
            }
        }
        // Hints, and CPS, which may change the mode of A and R profile.
        (0b000 | 0b010, 0b011_1010) => {
            if bit::<8>(second) {
                machine.forget(Forgotten::StackPointer);
            }
        }
        // Barriers, CLREX.
        (0b000 | 0b010, 0b011_1011) => {}
        // MRS.
        (0b000 | 0b010, 0b011_1110 | 0b011_1111) if second & 0xd000 == 0x8000 => {
            let value = machine.read_special(field::<7, 0>(second));
            machine.write(Register::of(field::<11, 8>(second)), value);
        }
        // ERET, SUBS PC, LR.
        (0b000 | 0b010, 0b011_1101) => {
            machine.set_flags(Flags::Unknown);
            machine.forget(Forgotten::StackPointer);
        }
        // HVC, SMC, UDF raise exceptions.
        (0b000 | 0b010, 0b111_1110 | 0b111_1111) => {}
        // B, encoding T4.
        (0b001 | 0b011, _) => {}
        // BLX (immediate) and BL.
        (0b100 | 0b110, _) if bit::<0>(second) => not_modelled(machine),
        (0b100..=0b111, _) => {
            let link = machine.word(thumb.address.wrapping_add(4) | 1);
            machine.write(Register::LR, link);
        }
        // BXJ, ENTERX, LEAVEX; undefined.
        _ => not_modelled(machine),
    }
}

/// A jump by a table of offsets in halfwords.
pub(super) fn table_jump<M: Machine>(thumb: Thumb, machine: &mut M, entry: M::Value) {
    let one = machine.word(1);
    let shift = Operation::Shift(crate::relation::Shift::Left);
    let offset = machine.binary(shift, WORD, entry, one);
    let target = machine.offset(offset, thumb.pc().into(), WORD);
    machine.jump(target, Jump::Exact);
}

/// The program counter or a register.
pub(super) fn base<M: Machine>(thumb: Thumb, machine: &mut M, register: Register) -> M::Value {
    read(machine, register, thumb.base())
}
