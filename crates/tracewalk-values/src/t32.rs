//! T32 (ARM Architecture Reference Manual, ARMv7-A and ARMv7-R edition, DDI 0406C, A6), each function one of the manual's tables.
//!
//! IT is not here: the block that it begins makes its instructions conditional, and keeps 16-bit data processing from setting flags.

mod loads;
mod wide;

pub(crate) use loads::store_exclusive;

use crate::arm::{self, Alu, Multiple, Single, not_modelled, read, shift_immediate, shift_register};
use crate::bits::Width;
use crate::field::{bit, field};
use crate::machine::{Carry, Condition, Jump, Machine, Register};
use crate::relation::{Operation, Permutation};

const WORD: Width = Width::Word;

/// An instruction, and where it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thumb {
    pub(crate) first: u16,
    /// The second halfword of a 32-bit instruction.
    pub(crate) second: u16,
    pub(crate) address: u32,
    /// The instruction is one of an IT block.
    pub(crate) in_it_block: bool,
}

impl Thumb {
    /// The instruction with this code of two or four bytes, the first halfword above.
    #[expect(clippy::cast_possible_truncation, reason = "two halfwords")]
    pub(crate) const fn of(code: u32, bytes: u8, address: u32, in_it_block: bool) -> Self {
        let (first, second) = if bytes == 4 { ((code >> 16) as u16, code as u16) } else { (code as u16, 0) };
        Self { first, second, address, in_it_block }
    }

    /// Whether the instruction has a second halfword (A6.1).
    pub(crate) const fn is_wide(self) -> bool {
        matches!(self.first >> 11, 0b11101..=0b11111)
    }

    /// The program counter as an operand.
    const fn pc(self) -> u32 {
        self.address.wrapping_add(4)
    }

    /// The program counter as a base, rounded down to a word.
    const fn base(self) -> u32 {
        self.pc() & !3
    }

    /// Whether the instruction is B with a target in its code.
    pub(crate) const fn is_direct_branch(self) -> bool {
        let (first, second) = (self.first as u32, self.second as u32);
        match field::<15, 11>(first) {
            0b11010 | 0b11011 => field::<11, 8>(first) < 14,
            0b10110 | 0b10111 => field::<11, 8>(first) & 0b0101 == 0b0001,
            0b11100 => true,
            0b11110 => match second & 0xd000 {
                0x8000 => field::<9, 7>(first) != 0b111,
                other => other >= 0x9000,
            },
            _ => false,
        }
    }

    /// Executes the instruction.
    pub(crate) fn execute<M: Machine>(self, machine: &mut M) {
        if self.is_wide() {
            wide::execute(self, machine);
            return;
        }
        let code = u32::from(self.first);
        match field::<15, 10>(code) {
            0b00_0000..=0b00_1111 => self.shift_add_subtract_move_compare(machine, code),
            0b01_0000 => self.data_processing(machine, code),
            0b01_0001 => self.special_data_and_branch_exchange(machine, code),
            // LDR (literal).
            0b01_0010 | 0b01_0011 => {
                let address = machine.word(self.base().wrapping_add(field::<7, 0>(code) << 2));
                let value = machine.load_literal(address, 4, WORD);
                machine.write(Register::of(field::<10, 8>(code)), value);
            }
            0b01_0100..=0b10_0111 => load_store_single(machine, code),
            // ADR; ADD (SP plus immediate).
            0b10_1000..=0b10_1011 => {
                let base =
                    if bit::<11>(code) { machine.read(Register::SP) } else { machine.word(self.base()) };
                let sum = machine.offset(base, (field::<7, 0>(code) << 2).into(), WORD);
                machine.write(Register::of(field::<10, 8>(code)), sum);
            }
            0b10_1100..=0b10_1111 => self.miscellaneous(machine, code),
            // STM, LDM.
            0b11_0000..=0b11_0011 => {
                let multiple = Multiple {
                    base: Register::of(field::<10, 8>(code)),
                    registers: field::<7, 0>(code),
                    decrement: false,
                    before: false,
                    write_back: true,
                };
                if bit::<11>(code) { multiple.load(machine) } else { multiple.store(machine, self.pc()) }
            }
            // B, encoding T1. UDF raises an exception, as SVC does.
            0b11_0100..=0b11_0111 if field::<11, 8>(code) < 14 => {
                let condition = machine.holds(Condition::of(field::<11, 8>(code)));
                machine.branch(condition, true);
            }
            // UDF, SVC; B, encoding T2.
            _ => {}
        }
    }

    /// A6.2.1.
    fn shift_add_subtract_move_compare<M: Machine>(self, machine: &mut M, code: u32) {
        let set_flags = !self.in_it_block;
        let register = Register::of(field::<2, 0>(code));
        let source = Register::of(field::<5, 3>(code));
        let immediate = field::<7, 0>(code);
        match field::<13, 11>(code) {
            // LSL, LSR, ASR (immediate); LSL by 0 is MOV (register), encoding T2.
            0b000..=0b010 => {
                let value = machine.read(source);
                let shifted = shift_immediate(machine, value, field::<12, 11>(code), field::<10, 6>(code));
                let result = arm::data_processing(machine, Alu::Mov, value, shifted, set_flags);
                machine.write(register, result);
            }
            // ADD, SUB (register; 3-bit immediate).
            0b011 => {
                let value = machine.read(source);
                let number = field::<8, 6>(code);
                let other =
                    if bit::<10>(code) { machine.word(number) } else { machine.read(Register::of(number)) };
                let alu = if bit::<9>(code) { Alu::Sub } else { Alu::Add };
                let result = arm::data_processing(machine, alu, value, (other, Carry::Unchanged), set_flags);
                machine.write(register, result);
            }
            // MOV, CMP, ADD, SUB (8-bit immediate).
            operation => {
                let register = Register::of(field::<10, 8>(code));
                let value = machine.read(register);
                let (alu, writes) = match operation {
                    0b100 => (Alu::Mov, true),
                    0b101 => (Alu::Sub, false),
                    0b110 => (Alu::Add, true),
                    _ => (Alu::Sub, true),
                };
                let immediate = machine.word(immediate);
                let set_flags = set_flags || !writes;
                let result =
                    arm::data_processing(machine, alu, value, (immediate, Carry::Unchanged), set_flags);
                if writes {
                    machine.write(register, result);
                }
            }
        }
    }

    /// A6.2.2.
    fn data_processing<M: Machine>(self, machine: &mut M, code: u32) {
        let set_flags = !self.in_it_block;
        let register = Register::of(field::<2, 0>(code));
        let (a, b) = (machine.read(register), machine.read(Register::of(field::<5, 3>(code))));
        let plain = (b, Carry::Unchanged);
        let (alu, operand, writes) = match field::<9, 6>(code) {
            0b0000 => (Alu::And, plain, true),
            0b0001 => (Alu::Eor, plain, true),
            // LSL, LSR, ASR, ROR (register).
            0b0010 => (Alu::Mov, shift_register(machine, a, 0, b), true),
            0b0011 => (Alu::Mov, shift_register(machine, a, 1, b), true),
            0b0100 => (Alu::Mov, shift_register(machine, a, 2, b), true),
            0b0101 => (Alu::Adc, plain, true),
            0b0110 => (Alu::Sbc, plain, true),
            0b0111 => (Alu::Mov, shift_register(machine, a, 3, b), true),
            // TST.
            0b1000 => (Alu::And, plain, false),
            // RSB (immediate) from 0: 0 - b.
            0b1001 => {
                let zero = machine.word(0);
                let result = arm::data_processing(machine, Alu::Sub, zero, plain, set_flags);
                machine.write(register, result);
                return;
            }
            // CMP, CMN (register).
            0b1010 => (Alu::Sub, plain, false),
            0b1011 => (Alu::Add, plain, false),
            0b1100 => (Alu::Orr, plain, true),
            // MUL.
            0b1101 => {
                let product = machine.binary(Operation::Mul, WORD, a, b);
                if set_flags {
                    arm::set_result_flags(machine, product);
                }
                machine.write(register, product);
                return;
            }
            0b1110 => (Alu::Bic, plain, true),
            _ => (Alu::Mvn, plain, true),
        };
        let result = arm::data_processing(machine, alu, a, operand, set_flags || !writes);
        if writes {
            machine.write(register, result);
        }
    }

    /// A6.2.3.
    fn special_data_and_branch_exchange<M: Machine>(self, machine: &mut M, code: u32) {
        let destination = Register::of(field::<7, 7>(code) << 3 | field::<2, 0>(code));
        let value = read(machine, Register::of(field::<6, 3>(code)), self.pc());
        match field::<9, 8>(code) {
            // ADD (register).
            0b00 => {
                let other = read(machine, destination, self.pc());
                let sum = machine.add(other, value, WORD);
                self.write_or_jump(machine, destination, sum);
            }
            // CMP (register).
            0b01 => {
                let other = read(machine, destination, self.pc());
                arm::data_processing(machine, Alu::Sub, other, (value, Carry::Unchanged), true);
            }
            // MOV (register).
            0b10 => self.write_or_jump(machine, destination, value),
            // BX, BLX (register).
            _ => {
                if bit::<7>(code) {
                    let link = machine.word(self.address.wrapping_add(2) | 1);
                    machine.write(Register::LR, link);
                }
                // BXNS, BLXNS: to the non-secure state, which has registers of its own.
                if bit::<2>(code) {
                    not_modelled(machine);
                } else {
                    machine.jump(value, Jump::Exchanging);
                }
            }
        }
    }

    fn write_or_jump<M: Machine>(self, machine: &mut M, destination: Register, value: M::Value) {
        if destination == Register::PC {
            machine.jump(value, Jump::Aligned);
        } else {
            machine.write(destination, value);
        }
    }

    /// A6.2.5.
    fn miscellaneous<M: Machine>(self, machine: &mut M, code: u32) {
        let register = Register::of(field::<2, 0>(code));
        let source = Register::of(field::<5, 3>(code));
        match field::<11, 8>(code) {
            // ADD, SUB (SP plus or minus immediate).
            0b0000 => {
                let immediate = u64::from(field::<6, 0>(code) << 2);
                let change = if bit::<7>(code) { immediate.wrapping_neg() } else { immediate };
                let pointer = machine.read(Register::SP);
                let sum = machine.offset(pointer, change, WORD);
                machine.write(Register::SP, sum);
            }
            // CBZ, CBNZ.
            0b0001 | 0b0011 | 0b1001 | 0b1011 => {
                let value = machine.read(register);
                let is_zero = machine.unary(Operation::IsZero, WORD, value);
                machine.branch(is_zero, !bit::<11>(code));
            }
            // SXTH, SXTB, UXTH, UXTB.
            0b0010 => {
                let value = machine.read(source);
                let count = if bit::<6>(code) { 8 } else { 16 };
                let extended = machine.field(value, 0, count, !bit::<7>(code), WORD);
                machine.write(register, extended);
            }
            // PUSH.
            0b0100 | 0b0101 => {
                let registers = field::<7, 0>(code) | field::<8, 8>(code) << 14;
                let base = Register::SP;
                Multiple { base, registers, decrement: true, before: true, write_back: true }
                    .store(machine, self.pc());
            }
            // REV, REV16, REVSH.
            0b1010 => {
                let value = machine.read(source);
                if let Some(reversed) = reversed(machine, value, field::<7, 6>(code)) {
                    machine.write(register, reversed);
                }
            }
            // POP.
            0b1100 | 0b1101 => {
                let registers = field::<7, 0>(code) | field::<8, 8>(code) << 15;
                let base = Register::SP;
                Multiple { base, registers, decrement: false, before: false, write_back: true }.load(machine);
            }
            // SETEND, CPS; BKPT; IT and hints; undefined.
            _ => {}
        }
    }
}

/// REV, REV16, REVSH by their number; 0b10 has another use.
fn reversed<M: Machine>(machine: &mut M, value: M::Value, operation: u32) -> Option<M::Value> {
    match operation {
        0b00 => Some(machine.unary(Operation::Permute(Permutation::Bytes), WORD, value)),
        0b01 => Some(machine.unary(Operation::Permute(Permutation::BytesOfHalves), WORD, value)),
        0b11 => {
            let halves = machine.unary(Operation::Permute(Permutation::BytesOfHalves), WORD, value);
            Some(machine.field(halves, 0, 16, true, WORD))
        }
        _ => None,
    }
}

/// A6.2.4.
fn load_store_single<M: Machine>(machine: &mut M, code: u32) {
    let (mut base, mut target) = (Register::of(field::<5, 3>(code)), Register::of(field::<2, 0>(code)));
    let immediate = field::<10, 6>(code);
    let (load, bytes, signed, offset) = match field::<15, 12>(code) {
        // STR, STRH, STRB, LDRSB, LDR, LDRH, LDRB, LDRSH (register).
        0b0101 => {
            let offset = machine.read(Register::of(field::<8, 6>(code)));
            let (load, bytes, signed) = match field::<11, 9>(code) {
                0b000 => (false, 4, false),
                0b001 => (false, 2, false),
                0b010 => (false, 1, false),
                0b011 => (true, 1, true),
                0b100 => (true, 4, false),
                0b101 => (true, 2, false),
                0b110 => (true, 1, false),
                _ => (true, 2, true),
            };
            (load, bytes, signed, offset)
        }
        // STR, LDR; STRB, LDRB; STRH, LDRH (immediate).
        0b0110 => (bit::<11>(code), 4, false, machine.word(immediate << 2)),
        0b0111 => (bit::<11>(code), 1, false, machine.word(immediate)),
        0b1000 => (bit::<11>(code), 2, false, machine.word(immediate << 1)),
        // STR, LDR (immediate) from SP.
        _ => {
            (base, target) = (Register::SP, Register::of(field::<10, 8>(code)));
            (bit::<11>(code), 4, false, machine.word(field::<7, 0>(code) << 2))
        }
    };
    let from = machine.read(base);
    let single = Single { base, from, offset, subtract: false, before: true, write_back: false };
    if load {
        single.load(machine, target, bytes, signed);
    } else {
        let value = machine.read(target);
        single.store(machine, value, bytes);
    }
}
