//! Floating point and Advanced SIMD (C4.1.94, C4.1.96): what they do to general registers, flags and memory.

use super::{A64, read, read_or_sp, write};
use crate::arm::not_modelled;
use crate::bits::Width;
use crate::field::{bit, field};
use crate::machine::{Flags, Machine};

/// Data processing.
pub(super) fn execute<M: Machine>(a64: A64, machine: &mut M) {
    let code = a64.code;
    if field::<28, 24>(code) == 0b11110 && !bit::<29>(code) {
        let writes = if bit::<21>(code) {
            match (field::<15, 10>(code), field::<18, 16>(code)) {
                // FCVT and its kin to a general register, FMOV to one; FJCVTZS changes flags.
                (0, 0b000 | 0b001 | 0b100 | 0b101) => true,
                (0, 0b110) => {
                    machine.set_flags(Flags::Unknown);
                    true
                }
                // FCMP, FCCMP.
                (kind, _) if kind & 0b1111 == 0b1000 || kind & 0b11 == 0b01 => {
                    machine.set_flags(Flags::Unknown);
                    false
                }
                _ => false,
            }
        } else {
            // Conversions to fixed-point numbers.
            matches!(field::<18, 16>(code), 0b000 | 0b001)
        };
        if writes {
            let value = machine.unknown(a64.width());
            write(machine, a64.d(), value);
        }
        return;
    }
    // SMOV, UMOV.
    let is_copy = field::<28, 21>(code) == 0b0111_0000 && !bit::<31>(code) && !bit::<29>(code);
    if is_copy && !bit::<15>(code) && bit::<10>(code) && matches!(field::<14, 11>(code), 0b0101 | 0b0111) {
        let value = machine.unknown(if bit::<30>(code) { Width::Double } else { Width::Word });
        write(machine, a64.d(), value);
    }
}

/// Loads or stores bytes of vector registers.
pub(super) fn transfer<M: Machine>(machine: &mut M, address: M::Value, bytes: u32, load: bool) {
    for at in (0..bytes).step_by(8) {
        let address = machine.offset(address, at.into(), Width::Double);
        let size = (bytes - at).min(8) as u8;
        if load {
            machine.load(address, size, Width::Double);
        } else {
            let value = machine.unknown(Width::Double);
            machine.store(address, size, value);
        }
    }
}

/// LD1 to LD4, ST1 to ST4, of whole registers or of one element each.
pub(super) fn structures<M: Machine>(a64: A64, machine: &mut M) {
    let code = a64.code;
    let bytes = if bit::<24>(code) {
        let (kind, size) = (field::<15, 13>(code), field::<11, 10>(code));
        let element = match kind >> 1 {
            0 => 1,
            1 => 2,
            2 => 4 << (size & 1),
            _ => 1 << size,
        };
        element * ((kind & 1) << 1 | field::<21, 21>(code)).wrapping_add(1)
    } else {
        let registers = match field::<15, 12>(code) {
            0b0000 | 0b0010 => 4,
            0b0100 | 0b0110 => 3,
            0b0111 => 1,
            0b1000 | 0b1010 => 2,
            _ => return not_modelled(machine),
        };
        registers * if bit::<30>(code) { 16 } else { 8 }
    };
    let address = read_or_sp(machine, a64.n(), Width::Double);
    transfer(machine, address, bytes, bit::<22>(code));
    if bit::<23>(code) {
        let moved = if a64.m().0 == 31 {
            machine.offset(address, bytes.into(), Width::Double)
        } else {
            let by = read(machine, a64.m(), Width::Double);
            machine.add(address, by, Width::Double)
        };
        machine.write(a64.n(), moved);
    }
}
