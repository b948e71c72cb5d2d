//! A64 (Arm Architecture Reference Manual for A-profile, DDI 0487, C4.1), each function one of the manual's tables.
//!
//! Vector and floating-point registers are not modelled, but what their instructions do to general registers, flags and memory.

mod loads;
mod registers;
mod vectors;

use crate::arm::not_modelled;
use crate::bits::{Width, low_mask};
use crate::field::{bit, field};
use crate::machine::{Condition, Flags, Forgotten, Jump, Machine, Register};
use crate::relation::{Operation, Permutation, Shift};

/// The link register.
const LINK: Register = Register(30);
/// The stack pointer; in most encodings its number means zero.
const SP: Register = Register(31);

/// An instruction, and where it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct A64 {
    code: u32,
    address: u64,
}

/// Executes the instruction at an address.
pub(crate) fn execute<M: Machine>(machine: &mut M, code: u32, address: u64) {
    let a64 = A64 { code, address };
    match field::<28, 25>(code) {
        0b1000 | 0b1001 => a64.immediate(machine),
        0b1010 | 0b1011 => a64.branch_or_system(machine),
        0b0100 | 0b0110 | 0b1100 | 0b1110 => loads::execute(a64, machine),
        0b0101 | 0b1101 => registers::execute(a64, machine),
        0b0111 | 0b1111 => vectors::execute(a64, machine),
        // UDF raises an exception.
        0b0000 if code < 0x1_0000 => {}
        // SME, SVE; unallocated.
        _ => not_modelled(machine),
    }
}

impl A64 {
    /// The width by the sf bit.
    const fn width(self) -> Width {
        if bit::<31>(self.code) { Width::Double } else { Width::Word }
    }

    const fn d(self) -> Register {
        Register::of(field::<4, 0>(self.code))
    }

    const fn n(self) -> Register {
        Register::of(field::<9, 5>(self.code))
    }

    const fn m(self) -> Register {
        Register::of(field::<20, 16>(self.code))
    }

    const fn a(self) -> Register {
        Register::of(field::<14, 10>(self.code))
    }

    /// A signed offset of `count` bits from `low` on.
    const fn offset(self, low: u32, count: u32) -> u64 {
        crate::bits::sign_extend((self.code >> low) as u64 & low_mask(count), count)
    }

    /// C4.1.92: data processing with an immediate.
    fn immediate<M: Machine>(self, machine: &mut M) {
        let (code, width) = (self.code, self.width());
        let result = match field::<25, 23>(code) {
            // ADR, ADRP.
            0b000 | 0b001 => {
                let number = self.offset(5, 19) << 2 | u64::from(field::<30, 29>(code));
                let value = if bit::<31>(code) {
                    (self.address & !0xfff).wrapping_add(number << 12)
                } else {
                    self.address.wrapping_add(number)
                };
                machine.constant(value, Width::Double)
            }
            // ADD, ADDS, SUB, SUBS (immediate), on the stack pointer too.
            0b010 => {
                let immediate = field::<21, 10>(code) << if bit::<22>(code) { 12 } else { 0 };
                let (a, b) =
                    (read_or_sp(machine, self.n(), width), machine.constant(immediate.into(), width));
                let result = self.add_or_subtract(machine, a, b, width);
                return if bit::<29>(code) {
                    write(machine, self.d(), result);
                } else {
                    machine.write(self.d(), result);
                };
            }
            // ADDG, SUBG; SMAX, UMAX, SMIN, UMIN (immediate).
            0b011 => {
                let value = machine.unknown(width);
                return if bit::<22>(code) {
                    write(machine, self.d(), value);
                } else {
                    machine.write(self.d(), value);
                };
            }
            // AND, ORR, EOR, ANDS (immediate).
            0b100 => {
                let Some((mask, _)) = masks(code, width) else { return not_modelled(machine) };
                let (a, b) = (read(machine, self.n(), width), machine.constant(mask, width));
                let operation = match field::<30, 29>(code) {
                    0b01 => Operation::Or,
                    0b10 => Operation::Xor,
                    _ => Operation::And,
                };
                let result = machine.binary(operation, width, a, b);
                return if field::<30, 29>(code) == 0b11 {
                    machine.set_flags(Flags::Cleared { result });
                    write(machine, self.d(), result);
                } else {
                    machine.write(self.d(), result);
                };
            }
            // MOVN, MOVZ, MOVK.
            0b101 => {
                let (shift, number) = (16 * field::<22, 21>(code), u64::from(field::<20, 5>(code)));
                if shift >= width.bits() {
                    return not_modelled(machine);
                }
                match field::<30, 29>(code) {
                    0b00 => machine.constant(!(number << shift) & width.mask(), width),
                    0b10 => machine.constant(number << shift, width),
                    0b11 => {
                        let (value, number) =
                            (read(machine, self.d(), width), machine.constant(number, width));
                        #[expect(clippy::cast_possible_truncation, reason = "at most 48")]
                        machine.binary(
                            Operation::Insert { low: shift as u8, count: 16 },
                            width,
                            value,
                            number,
                        )
                    }
                    _ => return not_modelled(machine),
                }
            }
            // SBFM, BFM, UBFM.
            0b110 => match self.bitfield(machine, width) {
                Some(result) => result,
                None => return not_modelled(machine),
            },
            // EXTR.
            _ => {
                let low = field::<15, 10>(code);
                if low >= width.bits() {
                    return not_modelled(machine);
                }
                let (high_part, low_part) = (read(machine, self.n(), width), read(machine, self.m(), width));
                if self.n() == self.m() {
                    rotate(machine, low_part, low, width)
                } else if low == 0 {
                    low_part
                } else {
                    let low_part = machine.field(low_part, low, width.bits() - low, false, width);
                    #[expect(clippy::cast_possible_truncation, reason = "at most 64")]
                    let insert = Operation::Insert { low: (width.bits() - low) as u8, count: low as u8 };
                    machine.binary(insert, width, low_part, high_part)
                }
            }
        };
        write(machine, self.d(), result);
    }

    /// SBFM, BFM, UBFM: a field moved down, or up.
    fn bitfield<M: Machine>(self, machine: &mut M, width: Width) -> Option<M::Value> {
        let code = self.code;
        let (rotation, last) = (field::<21, 16>(code), field::<15, 10>(code));
        if bit::<22>(code) != bit::<31>(code) || rotation >= width.bits() || last >= width.bits() {
            return None;
        }
        let value = read(machine, self.n(), width);
        let is_down = last >= rotation;
        let (low, count, to) =
            if is_down { (rotation, last - rotation + 1, 0) } else { (0, last + 1, width.bits() - rotation) };
        #[expect(clippy::cast_possible_truncation, reason = "at most 64")]
        let insert = Operation::Insert { low: to as u8, count: count as u8 };
        Some(match field::<30, 29>(code) {
            0b01 => {
                let into = read(machine, self.d(), width);
                let moved = machine.field(value, low, count, false, width);
                machine.binary(insert, width, into, moved)
            }
            kind @ (0b00 | 0b10) => {
                let moved = machine.field(value, low, count, kind == 0, width);
                let by = machine.constant(to.into(), width);
                if to == 0 { moved } else { machine.binary(Operation::Shift(Shift::Left), width, moved, by) }
            }
            _ => return None,
        })
    }

    /// ADD or SUB by bit 30, with flags by bit 29.
    fn add_or_subtract<M: Machine>(
        self,
        machine: &mut M,
        a: M::Value,
        b: M::Value,
        width: Width,
    ) -> M::Value {
        let zero = machine.word(0);
        let (result, flags) = if bit::<30>(self.code) {
            let result = machine.subtract(a, b, width);
            (result, Flags::Difference { result, a, b, borrow: zero })
        } else {
            let result = machine.add(a, b, width);
            (result, Flags::Sum { result, a, b, carry: zero })
        };
        if bit::<29>(self.code) {
            machine.set_flags(flags);
        }
        result
    }

    /// C4.1.93: branches, exceptions and system instructions.
    fn branch_or_system<M: Machine>(self, machine: &mut M) {
        let code = self.code;
        match (field::<31, 29>(code), field::<25, 24>(code)) {
            // B, BL.
            (0b000, _) => {}
            (0b100, _) => self.link(machine),
            // CBZ, CBNZ; TBZ, TBNZ.
            (0b001 | 0b101, 0b00 | 0b01) => {
                let width = self.width();
                let value = read(machine, self.d(), width);
                let is_zero = machine.unary(Operation::IsZero, width, value);
                machine.branch(is_zero, !bit::<24>(code));
            }
            (0b001 | 0b101, _) => {
                let index = field::<31, 31>(code) << 5 | field::<23, 19>(code);
                let value = read(machine, self.d(), Width::Double);
                let tested = machine.field(value, index, 1, false, Width::Word);
                machine.branch(tested, bit::<24>(code));
            }
            // B.cond, BC.cond.
            (0b010, 0b00 | 0b01) => {
                let condition = Condition::of(field::<3, 0>(code));
                if condition.0 < Condition::ALWAYS.0 {
                    let holds = machine.holds(condition);
                    machine.branch(holds, true);
                }
            }
            // SVC, HVC, SMC, BRK, HLT, DCPS raise exceptions.
            (0b110, 0b00) => {}
            (0b110, 0b01) => self.system(machine),
            (0b110, _) => self.branch_to_register(machine),
            _ => not_modelled(machine),
        }
    }

    fn link<M: Machine>(self, machine: &mut M) {
        let link = machine.constant(self.address.wrapping_add(4), Width::Double);
        machine.write(LINK, link);
    }

    fn branch_to_register<M: Machine>(self, machine: &mut M) {
        let target = read(machine, self.n(), Width::Double);
        // With authentication the address is only part of the register.
        let is_plain = field::<15, 10>(self.code) == 0;
        match field::<24, 21>(self.code) {
            // BR, RET.
            0b0000 | 0b0010 if is_plain => machine.jump(target, Jump::Exact),
            0b0000 | 0b0010 | 0b1000 => {}
            // BLR.
            0b0001 | 0b1001 => {
                self.link(machine);
                if is_plain {
                    machine.jump(target, Jump::Exact);
                }
            }
            // ERET, ERETAA, ERETAB; DRPS.
            0b0100 | 0b0101 => {
                machine.set_flags(Flags::Unknown);
                machine.forget(Forgotten::StackPointer);
            }
            _ => not_modelled(machine),
        }
    }

    /// Hints, barriers, MSR, MRS, SYS.
    fn system<M: Machine>(self, machine: &mut M) {
        let code = self.code;
        match field::<24, 21>(code) & 0b0001 {
            // MRS, SYSL.
            1 => {
                let value = machine.unknown(Width::Double);
                write(machine, self.d(), value);
            }
            _ => match (field::<20, 19>(code), field::<18, 16>(code), field::<15, 12>(code)) {
                // Hints: those of pointer authentication change registers.
                (0b00, 0b011, 0b0010) => match field::<11, 5>(code) {
                    0b000_0111 | 0b001_1000..=0b001_1111 => {
                        let value = machine.unknown(Width::Double);
                        machine.write(LINK, value);
                    }
                    0b000_1000..=0b000_1111 => {
                        let value = machine.unknown(Width::Double);
                        machine.write(Register(17), value);
                    }
                    _ => {}
                },
                // Barriers.
                (0b00, 0b011, 0b0011) => {}
                // MSR (immediate): SPSel selects the stack pointer; CFINV, XAFLAG and AXFLAG change flags.
                (0b00, _, 0b0100) => {
                    machine.set_flags(Flags::Unknown);
                    if field::<18, 16>(code) == 0 && field::<7, 5>(code) == 0b101 {
                        machine.forget(Forgotten::StackPointer);
                    }
                }
                // WFET, WFIT.
                (0b00, 0b011, 0b0001) => {}
                // SYS: DC ZVA and its kin write memory; the others do maintenance.
                (0b01, 0b011, 0b0111) if field::<11, 8>(code) == 0b0100 => machine.forget(Forgotten::Memory),
                (0b01, ..) => {}
                // MSR (register): NZCV, SPSel, and another level's stack pointer.
                (0b10 | 0b11, ..) => {
                    machine.set_flags(Flags::Unknown);
                    if field::<15, 8>(code) == 0b0100_0010 || field::<15, 8>(code) == 0b0100_0001 {
                        machine.forget(Forgotten::StackPointer);
                    }
                }
                _ => not_modelled(machine),
            },
        }
    }
}

/// A register's value, or zero.
fn read<M: Machine>(machine: &mut M, register: Register, width: Width) -> M::Value {
    if register == SP {
        return machine.constant(0, width);
    }
    let value = machine.read(register);
    machine.resize(value, width)
}

/// A register's value, or the stack pointer's.
fn read_or_sp<M: Machine>(machine: &mut M, register: Register, width: Width) -> M::Value {
    let value = machine.read(register);
    machine.resize(value, width)
}

/// Writes a register, unless its number means zero.
fn write<M: Machine>(machine: &mut M, register: Register, value: M::Value) {
    if register != SP {
        machine.write(register, value);
    }
}

/// A value rotated right by a constant.
fn rotate<M: Machine>(machine: &mut M, value: M::Value, by: u32, width: Width) -> M::Value {
    #[expect(clippy::cast_possible_truncation, reason = "less than 64")]
    let by = by as u8;
    if by == 0 { value } else { machine.unary(Operation::Permute(Permutation::Rotate(by)), width, value) }
}

/// A value shifted by a constant.
fn shifted<M: Machine>(machine: &mut M, value: M::Value, kind: u32, by: u32, width: Width) -> M::Value {
    let shift = match kind {
        _ if by == 0 => return value,
        0 => Shift::Left,
        1 => Shift::Right,
        2 => Shift::Arithmetic,
        _ => return rotate(machine, value, by, width),
    };
    let by = machine.constant(by.into(), width);
    machine.binary(Operation::Shift(shift), width, value, by)
}

/// The mask of a logical immediate (DecodeBitMasks).
fn masks(code: u32, width: Width) -> Option<(u64, u32)> {
    let (n, rotation, ones) = (field::<22, 22>(code), field::<21, 16>(code), field::<15, 10>(code));
    if n == 1 && width == Width::Word {
        return None;
    }
    let length = 31_u32.checked_sub((n << 6 | !ones & 0x3f).leading_zeros())?;
    if length == 0 {
        return None;
    }
    let size = 1 << length;
    let (ones, rotation) = (ones & (size - 1), rotation & (size - 1));
    if ones == size - 1 {
        return None;
    }
    let element = low_mask(ones + 1);
    let element = if rotation == 0 {
        element
    } else {
        (element >> rotation | element << (size - rotation)) & low_mask(size)
    };
    let mut mask = 0;
    for at in (0..64).step_by(size as usize) {
        mask |= element << at;
    }
    Some((mask & width.mask(), size))
}
