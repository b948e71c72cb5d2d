//! Loads and stores (C4.1.94).

use super::registers::extended;
use super::{A64, read, read_or_sp, vectors, write};
use crate::arm::not_modelled;
use crate::bits::Width;
use crate::field::{bit, field};
use crate::machine::{Machine, Register};
use crate::relation::Operation;

pub(super) fn execute<M: Machine>(a64: A64, machine: &mut M) {
    let code = a64.code;
    match (field::<29, 28>(code), bit::<26>(code), field::<24, 23>(code)) {
        // Vector structures.
        (0b00, true, _) if !bit::<31>(code) => vectors::structures(a64, machine),
        // Exclusive, ordered, compare and swap.
        (0b00, false, 0b00 | 0b01) => ordered(a64, machine),
        // LDR (literal).
        (0b01, _, 0b00 | 0b01) => literal(a64, machine),
        // LDAPUR, STLUR and their kin.
        (0b01, false, 0b10 | 0b11) if field::<11, 10>(code) == 0 && !bit::<21>(code) => {
            let offset = a64.offset(12, 9);
            single(a64, machine, Mode::Offset(offset));
        }
        (0b10, ..) => pair(a64, machine),
        (0b11, ..) => registers(a64, machine),
        _ => not_modelled(machine),
    }
}

/// The address of a transfer.
#[derive(Clone, Copy, Debug)]
enum Mode {
    /// Base plus offset.
    Offset(u64),
    /// The same, and the base is changed.
    Before(u64),
    /// The base, which is changed after.
    After(u64),
    /// Base plus an extended register.
    Register,
}

/// A single register by size and opc.
fn registers<M: Machine>(a64: A64, machine: &mut M) {
    let code = a64.code;
    let scale = if bit::<26>(code) && bit::<23>(code) { 4 } else { field::<31, 30>(code) };
    let mode = match (bit::<24>(code), bit::<21>(code), field::<11, 10>(code)) {
        // Unsigned immediate.
        (true, ..) => Mode::Offset(u64::from(field::<21, 10>(code)) << scale),
        (false, false, 0b00 | 0b10) => Mode::Offset(a64.offset(12, 9)),
        (false, false, 0b01) => Mode::After(a64.offset(12, 9)),
        (false, false, _) => Mode::Before(a64.offset(12, 9)),
        (false, true, 0b10) => Mode::Register,
        (false, true, 0b00) if !bit::<26>(code) => return atomic(a64, machine),
        // With pointer authentication.
        _ => return not_modelled(machine),
    };
    single(a64, machine, mode);
}

fn single<M: Machine>(a64: A64, machine: &mut M, mode: Mode) {
    let code = a64.code;
    let (size, kind) = (field::<31, 30>(code), field::<23, 22>(code));
    let is_vector = bit::<26>(code);
    let scale = if is_vector && kind >= 2 { 4 } else { size };
    let base = read_or_sp(machine, a64.n(), Width::Double);
    let (address, moved) = match mode {
        Mode::Offset(offset) => (machine.offset(base, offset, Width::Double), None),
        Mode::Before(offset) => {
            let moved = machine.offset(base, offset, Width::Double);
            (moved, Some(moved))
        }
        Mode::After(offset) => (base, Some(machine.offset(base, offset, Width::Double))),
        Mode::Register => {
            let shift = if bit::<12>(code) { scale } else { 0 };
            let offset = extended(a64, machine, shift, Width::Double);
            (machine.add(base, offset, Width::Double), None)
        }
    };
    let bytes = 1 << scale;
    let loaded = match (is_vector, kind) {
        (true, _) => {
            vectors::transfer(machine, address, bytes.into(), kind & 1 == 1);
            None
        }
        (false, 0b00) => {
            let value = read(machine, a64.d(), if size == 3 { Width::Double } else { Width::Word });
            machine.store(address, bytes, value);
            None
        }
        (false, 0b01) => {
            let width = if size == 3 { Width::Double } else { Width::Word };
            Some(machine.load(address, bytes, width))
        }
        // PRFM.
        (false, _) if size == 3 => None,
        (false, kind) if kind == 3 && size == 2 => return not_modelled(machine),
        // Signed, to an X register or a W register.
        (false, kind) => {
            let width = if kind == 0b10 { Width::Double } else { Width::Word };
            let value = machine.load(address, bytes, Width::Word);
            Some(machine.field(value, 0, 8 * u32::from(bytes), true, width))
        }
    };
    if let Some(moved) = moved {
        machine.write(a64.n(), moved);
    }
    if let Some(value) = loaded {
        write(machine, a64.d(), value);
    }
}

/// LDR, LDRSW (literal), PRFM.
fn literal<M: Machine>(a64: A64, machine: &mut M) {
    let code = a64.code;
    let address = machine.constant(a64.address.wrapping_add(a64.offset(5, 19) << 2), Width::Double);
    let size = field::<31, 30>(code);
    if bit::<26>(code) {
        return vectors::transfer(machine, address, 4 << size.min(2), true);
    }
    let value = match size {
        0b00 => machine.load_literal(address, 4, Width::Word),
        0b01 => machine.load_literal(address, 8, Width::Double),
        0b10 => {
            let value = machine.load_literal(address, 4, Width::Word);
            machine.field(value, 0, 32, true, Width::Double)
        }
        _ => return,
    };
    write(machine, a64.d(), value);
}

/// LDP, STP, LDNP, STNP, LDPSW.
fn pair<M: Machine>(a64: A64, machine: &mut M) {
    let code = a64.code;
    let (size, load) = (field::<31, 30>(code), bit::<22>(code));
    let is_vector = bit::<26>(code);
    let bytes: u8 = match (is_vector, size) {
        (true, size @ 0..=2) => 4 << size,
        (false, 0b00) => 4,
        (false, 0b01) if load => 4,
        (false, 0b10) => 8,
        // STGP and unallocated.
        _ => return not_modelled(machine),
    };
    let offset = a64.offset(15, 7).wrapping_mul(bytes.into());
    let base = read_or_sp(machine, a64.n(), Width::Double);
    let moved = machine.offset(base, offset, Width::Double);
    let first = if field::<24, 23>(code) == 0b01 { base } else { moved };
    let second = machine.offset(first, bytes.into(), Width::Double);
    let width = if bytes == 8 { Width::Double } else { Width::Word };
    let targets = [(first, a64.d()), (second, a64.a())];
    let mut loaded = [None, None];
    for ((address, register), loaded) in targets.into_iter().zip(&mut loaded) {
        if is_vector {
            vectors::transfer(machine, address, bytes.into(), load);
        } else if load {
            let value = machine.load(address, bytes, width);
            // LDPSW.
            let value = if size == 1 { machine.field(value, 0, 32, true, Width::Double) } else { value };
            *loaded = Some((register, value));
        } else {
            let value = read(machine, register, width);
            machine.store(address, bytes, value);
        }
    }
    if bit::<23>(code) {
        machine.write(a64.n(), moved);
    }
    for (register, value) in loaded.into_iter().flatten() {
        write(machine, register, value);
    }
}

/// Exclusive and ordered loads and stores, CAS.
fn ordered<M: Machine>(a64: A64, machine: &mut M) {
    let code = a64.code;
    let size = field::<31, 30>(code);
    let bytes = 1 << size;
    let width = if size == 3 { Width::Double } else { Width::Word };
    let address = read_or_sp(machine, a64.n(), Width::Double);
    let load = bit::<22>(code);
    match (bit::<23>(code), bit::<21>(code), load) {
        // LDXR, LDAXR; LDAR, LDLAR.
        (_, false, true) => {
            let value = machine.load(address, bytes, width);
            write(machine, a64.d(), value);
        }
        // STLR, STLLR.
        (true, false, false) => {
            let value = read(machine, a64.d(), width);
            machine.store(address, bytes, value);
        }
        // STXR, STLXR.
        (false, false, false) => {
            let value = read(machine, a64.d(), width);
            machine.store_or_not(address, bytes, value);
            failed(machine, a64.m());
        }
        // LDXP, LDAXP, STXP, STLXP.
        (false, true, _) if size >= 2 => {
            let next = machine.offset(address, bytes.into(), Width::Double);
            if load {
                let (low, high) = (machine.load(address, bytes, width), machine.load(next, bytes, width));
                write(machine, a64.d(), low);
                write(machine, a64.a(), high);
            } else {
                let (low, high) = (read(machine, a64.d(), width), read(machine, a64.a(), width));
                machine.store_or_not(address, bytes, low);
                machine.store_or_not(next, bytes, high);
                failed(machine, a64.m());
            }
        }
        // CAS and its kin: Rs receives what was there.
        (true, true, _) => {
            let compared = read(machine, a64.m(), width);
            let loaded = machine.load(address, bytes, width);
            let compared = machine.field(compared, 0, 8 << size, false, width);
            let difference = machine.binary(Operation::Xor, width, loaded, compared);
            let is_equal = machine.unary(Operation::IsZero, width, difference);
            let value = read(machine, a64.d(), width);
            match machine.known_bit(is_equal) {
                Some(true) => machine.store(address, bytes, value),
                Some(false) => {}
                None => machine.store_or_not(address, bytes, value),
            }
            write(machine, a64.m(), loaded);
        }
        // CASP.
        _ => not_modelled(machine),
    }
}

/// The status of an exclusive store.
fn failed<M: Machine>(machine: &mut M, status: Register) {
    let unknown = machine.unknown(Width::Word);
    let failed = machine.field(unknown, 0, 1, false, Width::Word);
    write(machine, status, failed);
}

/// LDADD, LDCLR, LDEOR, LDSET, the minima and maxima, SWP; LDAPR.
fn atomic<M: Machine>(a64: A64, machine: &mut M) {
    let code = a64.code;
    let size = field::<31, 30>(code);
    let bytes = 1 << size;
    let width = if size == 3 { Width::Double } else { Width::Word };
    let address = read_or_sp(machine, a64.n(), Width::Double);
    let (option, is_swap) = (field::<14, 12>(code), bit::<15>(code));
    // LDAPR.
    if is_swap && option == 0b100 {
        let value = machine.load(address, bytes, width);
        return write(machine, a64.d(), value);
    }
    // ST64B and its kin.
    if is_swap && option != 0 {
        return not_modelled(machine);
    }
    let operand = read(machine, a64.m(), width);
    let loaded = machine.load(address, bytes, width);
    let stored = match option {
        _ if is_swap => operand,
        0b000 => machine.add(loaded, operand, width),
        0b001 => {
            let operand = machine.complement(operand, width);
            machine.binary(Operation::And, width, loaded, operand)
        }
        0b010 => machine.binary(Operation::Xor, width, loaded, operand),
        0b011 => machine.binary(Operation::Or, width, loaded, operand),
        _ => machine.unknown(width),
    };
    machine.store(address, bytes, stored);
    write(machine, a64.d(), loaded);
}
