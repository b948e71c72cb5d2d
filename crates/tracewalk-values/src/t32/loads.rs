//! The 32-bit loads and stores (A6.3.5 to A6.3.10).

use super::{Thumb, WORD, wide};
use crate::arm::{Multiple, Single, not_modelled};
use crate::field::{bit, field};
use crate::machine::{Forgotten, Machine, Register};
use crate::relation::{Operation, Shift};

/// A6.3.5.
pub(super) fn multiple<M: Machine>(thumb: Thumb, machine: &mut M, first: u32, second: u32) {
    let multiple = |decrement| Multiple {
        base: Register::of(field::<3, 0>(first)),
        registers: second & 0xffff,
        decrement,
        before: decrement,
        write_back: bit::<5>(first),
    };
    match field::<8, 7>(first) {
        // CLRM of ARMv8.1-M is in the place of LDM with the program counter as its base.
        0b01 | 0b10 if multiple(false).base == Register::PC => not_modelled(machine),
        kind @ (0b01 | 0b10) if bit::<4>(first) => multiple(kind == 0b10).load(machine),
        kind @ (0b01 | 0b10) => multiple(kind == 0b10).store(machine, thumb.pc()),
        // SRS, RFE.
        _ => not_modelled(machine),
    }
}

/// A6.3.6.
pub(super) fn dual_exclusive_and_table_branch<M: Machine>(
    thumb: Thumb,
    machine: &mut M,
    first: u32,
    second: u32,
) {
    let base = Register::of(field::<3, 0>(first));
    let (target, other) = (Register::of(field::<15, 12>(second)), Register::of(field::<11, 8>(second)));
    let last = Register::of(field::<3, 0>(second));
    let load = bit::<4>(first);
    match (field::<8, 7>(first), field::<5, 4>(first), field::<7, 4>(second)) {
        // SG, the entry to the secure state.
        _ if first == 0xe97f && second == 0xe97f => machine.forget(Forgotten::StackPointer),
        // TT, TTT, TTA, TTAT.
        (0b00, 0b00, _) if target == Register::PC => {
            let value = machine.unknown(WORD);
            machine.write(other, value);
        }
        // LDREX.
        (0b00, 0b01, _) => {
            let from = machine.read(base);
            let offset = machine.word(field::<7, 0>(second) << 2);
            Single { base, from, offset, subtract: false, before: true, write_back: false }
                .load(machine, target, 4, false);
        }
        // STREX.
        (0b00, 0b00, _) => {
            let from = machine.read(base);
            let address = machine.offset(from, (field::<7, 0>(second) << 2).into(), WORD);
            store_exclusive(machine, address, target, 4, other);
        }
        // TBB, TBH.
        (0b01, 0b01, kind @ (0b0000 | 0b0001)) => {
            let table = crate::arm::read(machine, base, thumb.pc());
            let mut index = machine.read(last);
            if kind == 1 {
                let one = machine.word(1);
                index = machine.binary(Operation::Shift(Shift::Left), WORD, index, one);
            }
            let address = machine.add(table, index, WORD);
            let entry = machine.load(address, if kind == 1 { 2 } else { 1 }, WORD);
            wide::table_jump(thumb, machine, entry);
        }
        // STREXD, LDREXD, STLEXD, LDAEXD.
        (0b01, 0b00 | 0b01, 0b0111 | 0b1111) => not_modelled(machine),
        // LDREXB, LDREXH; LDA, LDAEX and their kin.
        (0b01, 0b01, kind @ (0b0100 | 0b0101 | 0b1000..=0b1110)) => {
            let address = machine.read(base);
            let value = machine.load(address, 1 << (kind & 3), WORD);
            machine.write(target, value);
        }
        // STLB, STLH, STL.
        (0b01, 0b00, kind @ 0b1000..=0b1010) => {
            let (address, value) = (machine.read(base), machine.read(target));
            machine.store(address, 1 << (kind & 3), value);
        }
        // STREXB, STREXH, STLEX and its kin.
        (0b01, 0b00, kind @ (0b0100 | 0b0101 | 0b1100..=0b1110)) => {
            let address = machine.read(base);
            store_exclusive(machine, address, target, 1 << (kind & 3), last);
        }
        (0b01, 0b00 | 0b01, _) => not_modelled(machine),
        // STRD, LDRD.
        _ => {
            let from = wide::base(thumb, machine, base);
            let offset = machine.word(field::<7, 0>(second) << 2);
            let (subtract, before, write_back) = (!bit::<7>(first), bit::<8>(first), bit::<5>(first));
            Single { base, from, offset, subtract, before, write_back }.pair(machine, load, target, other);
        }
    }
}

/// A store that may fail: the status says whether it did.
pub(crate) fn store_exclusive<M: Machine>(
    machine: &mut M,
    address: M::Value,
    source: Register,
    bytes: u8,
    status: Register,
) {
    let value = machine.read(source);
    machine.store_or_not(address, bytes, value);
    let failed = machine.unknown(WORD);
    let failed = machine.field(failed, 0, 1, false, WORD);
    machine.write(status, failed);
}

/// The addressing of A6.3.7 to A6.3.10; `None` for what is undefined.
fn single<M: Machine>(thumb: Thumb, machine: &mut M, first: u32, second: u32) -> Option<Single<M::Value>> {
    let base = Register::of(field::<3, 0>(first));
    let from = wide::base(thumb, machine, base);
    let plain = |offset, subtract| Single { base, from, offset, subtract, before: true, write_back: false };
    // Literals.
    if base == Register::PC {
        let offset = machine.word(field::<11, 0>(second));
        return Some(plain(offset, !bit::<7>(first)));
    }
    if bit::<7>(first) {
        let offset = machine.word(field::<11, 0>(second));
        return Some(plain(offset, false));
    }
    let immediate = field::<7, 0>(second);
    match field::<11, 8>(second) {
        // A register, shifted left.
        0b0000 if field::<7, 6>(second) == 0 => {
            let value = machine.read(Register::of(field::<3, 0>(second)));
            let by = machine.word(field::<5, 4>(second));
            let offset = machine.binary(Operation::Shift(Shift::Left), WORD, value, by);
            Some(plain(offset, false))
        }
        // A negative offset; unprivileged.
        0b1100 | 0b1110 => {
            let offset = machine.word(immediate);
            Some(plain(offset, !bit::<9>(second)))
        }
        // Post-indexed, pre-indexed.
        0b1001 | 0b1011 | 0b1101 | 0b1111 => {
            let offset = machine.word(immediate);
            let before = bit::<10>(second);
            Some(Single { base, from, offset, subtract: !bit::<9>(second), before, write_back: true })
        }
        _ => None,
    }
}

/// A6.3.7 to A6.3.9. Loads to the program counter of less than a word are hints.
pub(super) fn load_single<M: Machine>(thumb: Thumb, machine: &mut M, first: u32, second: u32) {
    let bytes = 1 << field::<6, 5>(first);
    let signed = bit::<8>(first);
    let target = Register::of(field::<15, 12>(second));
    if bytes == 8 || bytes == 4 && signed {
        return not_modelled(machine);
    }
    if target == Register::PC && bytes < 4 {
        let has_base_alone = Register::of(field::<3, 0>(first)) == Register::PC || bit::<7>(first);
        return match field::<11, 8>(second) {
            _ if has_base_alone => {}
            0b1100 => {}
            0b0000 if field::<7, 6>(second) == 0 => {}
            _ => not_modelled(machine),
        };
    }
    match single(thumb, machine, first, second) {
        Some(single) => single.load(machine, target, bytes, signed),
        None => not_modelled(machine),
    }
}

/// A6.3.10.
pub(super) fn store_single<M: Machine>(thumb: Thumb, machine: &mut M, first: u32, second: u32) {
    let bytes = 1 << field::<6, 5>(first);
    let source = machine.read(Register::of(field::<15, 12>(second)));
    match single(thumb, machine, first, second) {
        Some(single) if bytes < 8 && single.base != Register::PC => single.store(machine, source, bytes),
        _ => not_modelled(machine),
    }
}
