//! Coprocessor and extension register encodings, which A32 and T32 share but for their first four bits
//! (DDI 0406C, A5.6, A6.3.18, A7.5 to A7.9).
//!
//! A T32 encoding is one word here, with its first halfword on top.

use super::bits::{bit, field};
use super::instruction::{Access, Barrier, Direction, Instruction};

/// A5.6 and A6.3.18, without SVC and Advanced SIMD data processing.
pub(super) const fn classify(word: u32) -> Instruction {
    match (field::<25, 20>(word), bit::<4>(word)) {
        // 64-bit transfers: 00010x; undefined: 00000x.
        (0b00_0000 | 0b00_0001 | 0b00_0100 | 0b00_0101, _) => Instruction::other(4),
        (0b00_0000..=0b01_1111, _) => Instruction::other(4).accessing(load_store(word)),
        // Moves to coprocessor: 10xxx0.
        (0b10_0000..=0b10_1110, true) if !bit::<20>(word) => move_to_coprocessor(word),
        // Data processing and moves to core registers; Advanced SIMD (T32 only).
        _ => Instruction::other(4),
    }
}

/// MCR. CP15 has ARMv6's barriers (B3.17, c7); MCR2 has none.
const fn move_to_coprocessor(word: u32) -> Instruction {
    const CP15: u32 = 0b1111;
    const C5: u32 = 5;
    const C7: u32 = 7;
    const C10: u32 = 10;
    // MCR2's first four bits are 1111; T32's MCR has 1110 there.
    let is_mcr2 = field::<31, 28>(word) == 0b1111;
    let opc1 = field::<23, 21>(word);
    let crn = field::<19, 16>(word);
    match (field::<11, 8>(word), opc1, crn, field::<3, 0>(word), field::<7, 5>(word)) {
        _ if is_mcr2 => Instruction::other(4),
        (CP15, 0, C7, C5, 4) => Instruction::barrier(4, Barrier::Isb),
        (CP15, 0, C7, C10, 4) => Instruction::barrier(4, Barrier::Dsb),
        (CP15, 0, C7, C10, 5) => Instruction::barrier(4, Barrier::Dmb),
        _ => Instruction::other(4),
    }
}

/// LDC, STC and the extension register load/store instructions (A7.6).
const fn load_store(word: u32) -> Option<Access> {
    let access = Access::of(Direction::from_load_bit(bit::<20>(word)), 4);
    let extension_registers = field::<11, 9>(word) == 0b101;
    let double = bit::<8>(word);
    // P and W: offset addressing.
    let single_register = bit::<24>(word) && !bit::<21>(word);
    match (extension_registers, single_register) {
        (true, _) if field::<31, 28>(word) == 0b1111 => None,
        // VLDR, VSTR.
        (true, true) => access.times(if double { 2 } else { 1 }),
        // VLDM, VSTM, VPUSH, VPOP: imm8 counts words. FLDMX and FSTMX count one word more than their
        // registers hold.
        (true, false) if double => access.times(field8::<7, 0>(word) & !1),
        (true, false) => access.times(field8::<7, 0>(word)),
        // The coprocessor defines how many words LDC and STC transfer. ARMv7 defines only CP14, with one word
        // (C6.1).
        (false, _) => access.times(1),
    }
}

/// A7.7, Advanced SIMD element or structure load/store.
pub(super) const fn element_or_structure_access(word: u32) -> Option<Access> {
    let direction = Direction::from_load_bit(bit::<21>(word));
    if bit::<23>(word) { single_structure(word, direction) } else { multiple_structures(word, direction) }
}

/// A7.7, with A clear: VLD1 to VLD4 and VST1 to VST4 of whole registers.
const fn multiple_structures(word: u32, direction: Direction) -> Option<Access> {
    let size = field8::<7, 6>(word);
    let (structure, registers) = match field::<11, 8>(word) {
        0b0111 => (1, 1),
        0b1010 => (1, 2),
        0b0110 => (1, 3),
        0b0010 => (1, 4),
        0b1000 | 0b1001 => (2, 2),
        0b0011 => (2, 4),
        0b0100 | 0b0101 => (3, 3),
        0b0000 | 0b0001 => (4, 4),
        // Undefined.
        _ => return None,
    };
    match (structure, size) {
        // Undefined: only VLD1 and VST1 have elements of 64 bits.
        (2..=4, 0b11) => None,
        _ => Access::of(direction, 1 << size).times(registers * (8 >> size)),
    }
}

/// A7.7, with A set: one element or structure, to one lane or to all.
const fn single_structure(word: u32, direction: Direction) -> Option<Access> {
    let elements = field8::<9, 8>(word) + 1;
    let bytes = match (field::<11, 10>(word), direction, field8::<7, 6>(word)) {
        (0b00, ..) => 1,
        (0b01, ..) => 2,
        (0b10, ..) => 4,
        // To all lanes, which only loads can do.
        (_, Direction::Load, size @ 0b00..=0b10) => 1 << size,
        // VLD4 to all lanes, 32 bits with a stricter alignment.
        (_, Direction::Load, _) if elements == 4 => 4,
        // Undefined.
        _ => return None,
    };
    Access::of(direction, bytes).times(elements)
}

/// A field of at most eight bits.
#[expect(clippy::cast_possible_truncation, reason = "at most eight bits are left")]
const fn field8<const HIGH: u32, const LOW: u32>(word: u32) -> u8 {
    const { assert!(HIGH - LOW < 8) };
    field::<HIGH, LOW>(word) as u8
}
