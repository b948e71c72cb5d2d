//! Coprocessors, floating point and Advanced SIMD (DDI 0406C, A7 and A8): their registers are not modelled, but what they
//! do to core registers and to memory.

use crate::arm::not_modelled;
use crate::bits::Width;
use crate::field::{bit, field};
use crate::machine::{Flags, Machine, Register};

const WORD: Width = Width::Word;

/// Executes an instruction of coprocessors, floating point or Advanced SIMD, in A32's form: T32 has the same bits below the condition.
pub(crate) fn execute<M: Machine>(machine: &mut M, word: u32, pc: u32) {
    let target = Register::of(field::<15, 12>(word));
    let second = Register::of(field::<19, 16>(word));
    let is_float = field::<11, 9>(word) == 0b101;
    match field::<27, 24>(word) {
        // MCRR, VMOV of two registers; MRRC.
        0b1100 if field::<23, 20>(word) == 0b0101 => {
            let (low, high) = (machine.unknown(WORD), machine.unknown(WORD));
            machine.write(target, low);
            machine.write(second, high);
        }
        0b1100 if field::<23, 20>(word) == 0b0100 => {}
        0b1100 if field::<23, 21>(word) == 0b000 => not_modelled(machine),
        // VLDR, VSTR, VLDM, VSTM, VPUSH, VPOP.
        0b1100 | 0b1101 if is_float => extension_registers(machine, word, pc),
        // LDC, STC: debug registers and the like.
        0b1100 | 0b1101 => not_modelled(machine),
        // MRC, VMOV to a core register, VMRS: program counter means the flags.
        0b1110 if bit::<4>(word) && bit::<20>(word) => {
            if target == Register::PC
                && is_float
                && (field::<23, 20>(word), bit::<8>(word)) != (0b1111, false)
            {
                not_modelled(machine);
            } else if target == Register::PC {
                machine.set_flags(Flags::Unknown);
            } else {
                let value = machine.unknown(WORD);
                machine.write(target, value);
            }
        }
        // MCR, CDP and floating-point data processing; Advanced SIMD data processing in T32's form.
        _ => {}
    }
}

/// A7.6: loads and stores of extension registers.
fn extension_registers<M: Machine>(machine: &mut M, word: u32, pc: u32) {
    let base = Register::of(field::<19, 16>(word));
    let (before, add, write_back, load) =
        (bit::<24>(word), bit::<23>(word), bit::<21>(word), bit::<20>(word));
    let immediate = field::<7, 0>(word);
    let from = crate::arm::read(machine, base, pc & !3);
    if before && !write_back {
        // VLDR, VSTR: halfwords, words and doublewords.
        let (bytes, scale) = match field::<9, 8>(word) {
            0b01 => (2, 1),
            0b10 => (4, 2),
            _ => (8, 2),
        };
        let offset = u64::from(immediate << scale);
        let address = machine.offset(from, if add { offset } else { offset.wrapping_neg() }, WORD);
        transfer(machine, address, bytes, load);
        return;
    }
    // VLDM, VSTM; the number of words is odd for FLDMX and FSTMX.
    let length = u64::from(immediate << 2);
    let start = if add { from } else { machine.offset(from, length.wrapping_neg(), WORD) };
    let words = if bit::<8>(word) { immediate & !1 } else { immediate };
    for index in 0..words {
        let address = machine.offset(start, (4 * index).into(), WORD);
        transfer(machine, address, 4, load);
    }
    if write_back {
        let end = if add { machine.offset(from, length, WORD) } else { start };
        machine.write(base, end);
    }
}

fn transfer<M: Machine>(machine: &mut M, address: M::Value, bytes: u8, load: bool) {
    for offset in (0..bytes).step_by(4) {
        let address = machine.offset(address, offset.into(), WORD);
        if load {
            machine.load(address, bytes.min(4), WORD);
        } else {
            let value = machine.unknown(WORD);
            machine.store(address, bytes.min(4), value);
        }
    }
}

/// A7.7: element and structure loads and stores of Advanced SIMD.
pub(crate) fn structure<M: Machine>(machine: &mut M, _word: u32) {
    not_modelled(machine);
}
