//! A32 (ARM Architecture Reference Manual, ARMv7-A and ARMv7-R edition, DDI 0406C, A5), each function one of the manual's tables.

mod loads;
mod miscellaneous;

use crate::arm::{self, Alu, Multiple, Shifted, not_modelled, read, shift_immediate, shift_register};
use crate::bits::Width;
use crate::coprocessor;
use crate::field::{bit, field};
use crate::machine::{Carry, Condition, Flags, Forgotten, Jump, Machine, Register};

const WORD: Width = Width::Word;

/// An instruction, and where it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arm {
    pub(crate) code: u32,
    pub(crate) address: u32,
}

impl Arm {
    /// The instruction's condition.
    pub(crate) const fn condition(self) -> Condition {
        Condition::of(self.code >> 28)
    }

    /// Whether the instruction is B or BL.
    pub(crate) const fn is_direct_branch(self) -> bool {
        field::<27, 25>(self.code) == 0b101 && self.condition().0 < 15
    }

    /// The program counter as an operand.
    const fn pc(self) -> u32 {
        self.address.wrapping_add(8)
    }

    /// Rn, Rd or Rt, Rs, Rm.
    fn registers(self) -> [Register; 4] {
        let code = self.code;
        [field::<19, 16>(code), field::<15, 12>(code), field::<11, 8>(code), field::<3, 0>(code)]
            .map(Register::of)
    }

    /// Executes the instruction, whose condition holds (A5.1).
    pub(crate) fn execute<M: Machine>(self, machine: &mut M) {
        let code = self.code;
        if self.condition().0 == 15 {
            self.unconditional(machine);
            return;
        }
        match field::<27, 25>(code) {
            0b000 if bit::<4>(code) && bit::<7>(code) => match field::<6, 5>(code) {
                0b00 if !bit::<24>(code) => miscellaneous::multiply(self, machine),
                0b00 => loads::synchronization(self, machine),
                _ => loads::extra(self, machine),
            },
            0b000 if field::<24, 23>(code) == 0b10 && !bit::<20>(code) => {
                miscellaneous::execute(self, machine);
            }
            0b000 => self.data_processing_register(machine),
            0b001 if field::<24, 23>(code) == 0b10 && !bit::<20>(code) => self.immediate_or_status(machine),
            0b001 => {
                let operand = self.immediate(machine);
                self.data_processing(machine, operand);
            }
            0b010 => loads::word_or_byte(self, machine),
            0b011 if bit::<4>(code) => miscellaneous::media(self, machine),
            0b011 => loads::word_or_byte(self, machine),
            0b100 => self.multiple(machine),
            // B, BL.
            0b101 => {
                if bit::<24>(code) {
                    let link = machine.word(self.address.wrapping_add(4));
                    machine.write(Register::LR, link);
                }
            }
            0b110 => coprocessor::execute(machine, code, self.pc()),
            // SVC raises an exception.
            _ if bit::<24>(code) => {}
            _ => coprocessor::execute(machine, code, self.pc()),
        }
    }

    /// A5.7.
    fn unconditional<M: Machine>(self, machine: &mut M) {
        let code = self.code;
        match field::<27, 20>(code) {
            // CPS, SETEND.
            0b0001_0000 => {
                if bit::<17>(code) {
                    machine.forget(Forgotten::StackPointer);
                }
            }
            // Advanced SIMD data processing.
            0b0010_0000..=0b0011_1111 => {}
            // Element and structure loads and stores; among the odd ones are preloads and barriers.
            0b0100_0000..=0b0111_1111 if bit::<20>(code) => {}
            0b0100_0000..=0b0100_1111 => coprocessor::structure(machine, code),
            // BLX (immediate).
            0b1010_0000..=0b1011_1111 => {
                let link = machine.word(self.address.wrapping_add(4));
                machine.write(Register::LR, link);
            }
            0b1100_0000..=0b1110_1111 => coprocessor::execute(machine, code, self.pc()),
            // SRS, RFE; undefined.
            _ => not_modelled(machine),
        }
    }

    /// A5.2.4: a byte, rotated by an even number.
    fn immediate<M: Machine>(self, machine: &mut M) -> Shifted<M::Value> {
        let rotation = 2 * field::<11, 8>(self.code);
        let value = field::<7, 0>(self.code).rotate_right(rotation);
        let carry = if rotation == 0 { Carry::Unchanged } else { Carry::Known(value >> 31 == 1) };
        (machine.word(value), carry)
    }

    /// A5.2.1, A5.2.2.
    fn data_processing_register<M: Machine>(self, machine: &mut M) {
        let code = self.code;
        let [_, _, s, m] = self.registers();
        let value = read(machine, m, self.pc());
        let operand = if bit::<4>(code) {
            let by = machine.read(s);
            shift_register(machine, value, field::<6, 5>(code), by)
        } else {
            shift_immediate(machine, value, field::<6, 5>(code), field::<11, 7>(code))
        };
        self.data_processing(machine, operand);
    }

    fn data_processing<M: Machine>(self, machine: &mut M, operand: Shifted<M::Value>) {
        let code = self.code;
        let [n, d, ..] = self.registers();
        let (alu, writes) = match field::<24, 21>(code) {
            0b0000 => (Alu::And, true),
            0b0001 => (Alu::Eor, true),
            0b0010 => (Alu::Sub, true),
            0b0011 => (Alu::Rsb, true),
            0b0100 => (Alu::Add, true),
            0b0101 => (Alu::Adc, true),
            0b0110 => (Alu::Sbc, true),
            0b0111 => (Alu::Rsc, true),
            // TST, TEQ, CMP, CMN.
            0b1000 => (Alu::And, false),
            0b1001 => (Alu::Eor, false),
            0b1010 => (Alu::Sub, false),
            0b1011 => (Alu::Add, false),
            0b1100 => (Alu::Orr, true),
            0b1101 => (Alu::Mov, true),
            0b1110 => (Alu::Bic, true),
            _ => (Alu::Mvn, true),
        };
        let has_first = !matches!(alu, Alu::Mov | Alu::Mvn);
        let a = if has_first { read(machine, n, self.pc()) } else { operand.0 };
        let to_pc = writes && d == Register::PC;
        let set_flags = bit::<20>(code);
        let result = arm::data_processing(machine, alu, a, operand, set_flags && !to_pc);
        if !writes {
            return;
        }
        if !to_pc {
            machine.write(d, result);
            return;
        }
        machine.jump(result, Jump::Aligned);
        // SUBS PC, LR and its kin return from an exception.
        if set_flags {
            machine.set_flags(Flags::Unknown);
            machine.forget(Forgotten::StackPointer);
        }
    }

    /// MOVW, MOVT; MSR (immediate) and hints (A5.2, A5.2.11).
    fn immediate_or_status<M: Machine>(self, machine: &mut M) {
        let code = self.code;
        let [_, d, ..] = self.registers();
        let number = field::<19, 16>(code) << 12 | field::<11, 0>(code);
        match field::<22, 21>(code) {
            0b00 => {
                let value = machine.word(number);
                machine.write(d, value);
            }
            0b10 => {
                let (value, high) = (machine.read(d), machine.word(number));
                let insert = crate::relation::Operation::Insert { low: 16, count: 16 };
                let result = machine.binary(insert, WORD, value, high);
                machine.write(d, result);
            }
            _ => self.status(machine),
        }
    }

    /// MSR to the fields of a mask; hints have none.
    fn status<M: Machine>(self, machine: &mut M) {
        let mask = field::<19, 16>(self.code);
        if mask & 0b1000 != 0 && !bit::<22>(self.code) {
            machine.set_flags(Flags::Unknown);
        }
        if mask & 0b0111 != 0 && !bit::<22>(self.code) {
            machine.forget(Forgotten::StackPointer);
        }
    }

    /// A5.5.
    fn multiple<M: Machine>(self, machine: &mut M) {
        let code = self.code;
        let [base, ..] = self.registers();
        // Registers of the user mode, and returns from exceptions.
        if bit::<22>(code) {
            not_modelled(machine);
            return;
        }
        let multiple = Multiple {
            base,
            registers: field::<15, 0>(code),
            decrement: !bit::<23>(code),
            before: bit::<24>(code),
            write_back: bit::<21>(code),
        };
        if bit::<20>(code) { multiple.load(machine) } else { multiple.store(machine, self.pc()) }
    }
}
