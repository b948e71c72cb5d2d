//! Loads and stores of single registers (A5.2.8 to A5.2.10, A5.3).

use super::{Arm, WORD};
use crate::arm::{Single, not_modelled, read, shift_immediate};
use crate::field::{bit, field};
use crate::machine::{Machine, Register};
use crate::t32::store_exclusive;

impl Arm {
    /// The addressing with an offset: P, U and W.
    fn single<M: Machine>(self, machine: &mut M, offset: M::Value) -> Single<M::Value> {
        let [base, ..] = self.registers();
        let before = bit::<24>(self.code);
        Single {
            base,
            from: read(machine, base, self.pc()),
            offset,
            subtract: !bit::<23>(self.code),
            before,
            // Without P the base is written, as with W, which then means an unprivileged access.
            write_back: !before || bit::<21>(self.code),
        }
    }
}

/// A5.3: words and bytes.
pub(super) fn word_or_byte<M: Machine>(arm: Arm, machine: &mut M) {
    let code = arm.code;
    let [_, target, _, m] = arm.registers();
    let offset = if bit::<25>(code) {
        let value = machine.read(m);
        shift_immediate(machine, value, field::<6, 5>(code), field::<11, 7>(code)).0
    } else {
        machine.word(field::<11, 0>(code))
    };
    let single = arm.single(machine, offset);
    let bytes = if bit::<22>(code) { 1 } else { 4 };
    if bit::<20>(code) {
        single.load(machine, target, bytes, false);
    } else {
        let value = read(machine, target, arm.pc());
        single.store(machine, value, bytes);
    }
}

/// A5.2.8 and A5.2.9: halfwords, signed bytes, doublewords.
pub(super) fn extra<M: Machine>(arm: Arm, machine: &mut M) {
    let code = arm.code;
    let [_, target, _, m] = arm.registers();
    let offset = if bit::<22>(code) {
        machine.word(field::<11, 8>(code) << 4 | field::<3, 0>(code))
    } else {
        machine.read(m)
    };
    let single = arm.single(machine, offset);
    match (bit::<20>(code), field::<6, 5>(code)) {
        // STRH.
        (false, 0b01) => {
            let value = machine.read(target);
            single.store(machine, value, 2);
        }
        // An offset that LDRD loads is unpredictable.
        (false, 0b10) if !bit::<22>(code) && m.0 | 1 == target.0 | 1 => not_modelled(machine),
        // LDRD, STRD of two registers; the first is even.
        (false, kind) if target.0 & 1 == 0 && target.0 < 14 => {
            single.pair(machine, kind == 0b10, target, Register(target.0 + 1));
        }
        (false, _) => not_modelled(machine),
        // LDRH, LDRSB, LDRSH.
        (true, kind) if target != Register::PC => {
            single.load(machine, target, if kind == 0b10 { 1 } else { 2 }, kind != 0b01);
        }
        (true, _) => not_modelled(machine),
    }
}

/// A5.2.10, and the loads with acquire and stores with release of ARMv8.
pub(super) fn synchronization<M: Machine>(arm: Arm, machine: &mut M) {
    let code = arm.code;
    let [base, d, _, m] = arm.registers();
    let bytes = match field::<22, 21>(code) {
        0b00 => 4,
        0b10 => 1,
        0b11 => 2,
        // Doublewords.
        _ => return not_modelled(machine),
    };
    let address = machine.read(base);
    match (bit::<23>(code), bit::<20>(code), field::<9, 8>(code)) {
        // SWP, SWPB.
        (false, false, _) if bytes == 4 && !bit::<22>(code) || bytes == 1 => {
            let swap = if bit::<22>(code) { 1 } else { 4 };
            let value = machine.read(m);
            let loaded = machine.load(address, swap, WORD);
            machine.store(address, swap, value);
            machine.write(d, loaded);
        }
        // LDREX and its kin; LDA, LDAEX and their kin.
        (true, true, _) => {
            let loaded = machine.load(address, bytes, WORD);
            machine.write(d, loaded);
        }
        // STL and its kin.
        (true, false, 0b00) => {
            let value = machine.read(m);
            machine.store(address, bytes, value);
        }
        // STREX, STLEX and their kin.
        (true, false, 0b10 | 0b11) => store_exclusive(machine, address, m, bytes, d),
        _ => not_modelled(machine),
    }
}
