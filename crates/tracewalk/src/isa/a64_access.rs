//! The A64 encodings that load and store (Arm Architecture Reference Manual for A-profile, DDI 0487L, C4.1:
//! "Loads and Stores", "SVE encodings", "SME encodings"), each function one of the manual's tables.
//!
//! An access has only its direction, because a trace unit may count loads and stores as P0 instructions. The
//! size of a transfer depends on the length of vectors, and no trace of A64 has data. Prefetches and cache
//! maintenance transfer nothing. An unallocated encoding raises an exception, and is classified as the
//! instruction whose fields it has.

use super::bits::{bit, field};
use super::instruction::{Access, Direction};

const LOAD: Option<Access> = Some(Access::of_any_size(Direction::Load));
const STORE: Option<Access> = Some(Access::of_any_size(Direction::Store));
/// An instruction that reads memory and writes it.
const BOTH: Option<Access> = Some(Access::of_any_size(Direction::Swap));

/// The accesses of an encoding that is neither a branch nor a system instruction.
pub(super) const fn access(word: u32) -> Option<Access> {
    if bit::<27>(word) && !bit::<25>(word) {
        return load_or_store(word);
    }
    match field::<31, 25>(word) {
        0b100_0010 => sve_gather_32(word),
        0b101_0010 => LOAD,
        0b110_0010 => sve_gather_64(word),
        0b111_0010 => STORE,
        // Several SVE registers at a time; SME's array.
        0b101_0000 if bit::<23>(word) => None,
        0b101_0000 | 0b111_0000 => by_load_bit(!bit::<21>(word)),
        _ => None,
    }
}

/// C4.1, "Loads and Stores". Bit 26 is set for SIMD and floating-point registers.
const fn load_or_store(word: u32) -> Option<Access> {
    let (is_simd, load_bit) = (bit::<26>(word), bit::<22>(word));
    match (field::<29, 28>(word), bit::<24>(word)) {
        // Structures of Advanced SIMD.
        (0b00, _) if is_simd => by_load_bit(load_bit),
        (0b00, has_unprivileged) => exclusive_or_ordered(word, has_unprivileged),
        // From a literal; opc 11 is a prefetch.
        (0b01, false) => {
            if field::<31, 30>(word) == 0b11 {
                None
            } else {
                LOAD
            }
        }
        (0b01, true) => ordered_offset_tag_or_copy(word),
        // Pairs, also with a tag.
        (0b10, _) => by_load_bit(load_bit),
        // An unsigned offset.
        (_, true) => register(word),
        (_, false) if !bit::<21>(word) => register(word),
        // A register's offset, atomic operations, and addresses with authentication codes.
        (_, false) => match field::<11, 10>(word) {
            0b00 => atomic(word),
            0b10 => register(word),
            _ => LOAD,
        },
    }
}

/// C4.1, "Load/store exclusive pair", "Load/store exclusive register", "Load/store ordered", "Compare and swap".
const fn exclusive_or_ordered(word: u32, is_unprivileged: bool) -> Option<Access> {
    let has_size = bit::<31>(word);
    match (bit::<23>(word), bit::<21>(word)) {
        (false, true) if !has_size => BOTH,
        (true, true) => BOTH,
        (true, false) if is_unprivileged => BOTH,
        _ => by_load_bit(bit::<22>(word)),
    }
}

/// C4.1, "LDAPR/STLR (unscaled immediate)", "Load/store memory tags", "Memory Copy and Memory Set" and the
/// encodings that share their bits.
const fn ordered_offset_tag_or_copy(word: u32) -> Option<Access> {
    let opc = field::<23, 22>(word);
    match (bit::<21>(word), field::<11, 10>(word)) {
        // CPY; SET.
        (false, 0b01) => {
            if opc == 0b11 {
                STORE
            } else {
                BOTH
            }
        }
        // STLUR, LDAPUR of either size; of SIMD registers with L in bit 22.
        (false, 0b00) if !bit::<26>(word) => by_load_bit(opc != 0b00),
        // SETGO.
        (false, 0b00) => STORE,
        // GCSSTR.
        (false, 0b11) => STORE,
        // LDIAPP, STILP.
        (false, _) => by_load_bit(bit::<22>(word)),
        // LDG, LDGM; STZGM, STGM, STG and its kin.
        (true, form) if field::<31, 30>(word) == 0b11 => by_load_bit(form == 0b00 && bit::<22>(word)),
        // Atomic operations on 128 bits, and with a check of the translation.
        (true, _) => BOTH,
    }
}

/// C4.1, "Load/store register", of any addressing mode. opc 10 of 64 bits is a prefetch.
const fn register(word: u32) -> Option<Access> {
    let (size, opc) = (field::<31, 30>(word), field::<23, 22>(word));
    match (bit::<26>(word), opc) {
        (true, _) => by_load_bit(bit::<22>(word)),
        (false, 0b00) => STORE,
        (false, 0b10) if size == 0b11 => None,
        (false, _) => LOAD,
    }
}

/// C4.1, "Atomic memory operations".
const fn atomic(word: u32) -> Option<Access> {
    let has_o3 = bit::<15>(word);
    let (is_simd, size) = (bit::<26>(word), field::<31, 30>(word));
    match (has_o3, field::<14, 12>(word)) {
        // LDAPR, which is not an atomic operation.
        (true, 0b100) if !is_simd => LOAD,
        // LD64B; ST64B, ST64BV, ST64BV0.
        (true, 0b101) if size == 0b11 && !is_simd => LOAD,
        (true, 0b001..=0b011) if size == 0b11 && !is_simd => STORE,
        _ => BOTH,
    }
}

/// C4.1, "SVE Memory - 32-bit Gather and Unsized Contiguous".
const fn sve_gather_32(word: u32) -> Option<Access> {
    let (msz, bits) = (field::<24, 23>(word), field::<15, 13>(word));
    let is_prefetch = match (msz, field::<22, 21>(word), bits) {
        // PRF of a scalar and 32-bit scaled offsets; of a scalar and an immediate.
        (0b00, 0b01 | 0b11, 0b000..=0b011) | (0b11, 0b10 | 0b11, 0b000..=0b011) => true,
        // PRF of two scalars; of a vector and an immediate.
        (_, 0b00, 0b110 | 0b111) => true,
        _ => false,
    };
    if is_prefetch { None } else { LOAD }
}

/// C4.1, "SVE Memory - 64-bit Gather".
const fn sve_gather_64(word: u32) -> Option<Access> {
    let (msz, bits) = (field::<24, 23>(word), field::<15, 13>(word));
    let is_prefetch = match (msz, field::<22, 21>(word), bits) {
        // PRF of a scalar and 64-bit scaled offsets; 32-bit unpacked scaled ones.
        (0b00, 0b11, 0b100..=0b111) | (0b00, 0b01 | 0b11, 0b000..=0b011) => true,
        // PRF of a vector and an immediate.
        (_, 0b00, 0b111) => true,
        _ => false,
    };
    if is_prefetch { None } else { LOAD }
}

const fn by_load_bit(load: bool) -> Option<Access> {
    Some(Access::of_any_size(Direction::from_load_bit(load)))
}
