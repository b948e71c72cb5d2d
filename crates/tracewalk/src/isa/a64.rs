//! A64 encodings (Arm Architecture Reference Manual for A-profile, DDI 0487L, C4.1), each function one of the manual's tables.
//!
//! Instructions of later versions of the architecture are recognised for every core: for earlier cores they
//! are hints or undefined encodings, which programs for those cores do not contain. A memory access has only
//! its direction, because no trace of A64 has data.

use super::a64_access::access;
use super::bits::{bit, field, sign_extend};
use super::instruction::{Barrier, Class, Instruction, Raises, Return};
use crate::ids::{Address, Isa, Location};

const BYTES: u8 = 4;
/// XZR, or no register, in a register's field.
const NO_REGISTER: u32 = 0b1_1111;

/// C4.1: only the group "Branches, Exception Generating and System instructions", the reserved encodings, and loads and stores matter.
#[inline]
pub(super) const fn classify(word: u32, address: Address) -> Instruction {
    let place = Location::new(address.aligned_for(Isa::A64), Isa::A64);
    match field::<31, 24>(word) {
        // UDF is the one reserved encoding that has a name.
        0b0000_0000 if field::<31, 16>(word) == 0 => Instruction::exception(BYTES, Raises::Undefined),
        // B, BL.
        0b0001_0100..=0b0001_0111 => immediate_branch(word, place),
        0b1001_0100..=0b1001_0111 => immediate_branch(word, place).linking(),
        // CBZ, CBNZ.
        0b0011_0100 | 0b0011_0101 | 0b1011_0100 | 0b1011_0101 => {
            relative(place, sign_extend::<19>(field::<23, 5>(word))).conditional()
        }
        // TBZ, TBNZ.
        0b0011_0110 | 0b0011_0111 | 0b1011_0110 | 0b1011_0111 => {
            relative(place, sign_extend::<14>(field::<18, 5>(word))).conditional()
        }
        // B.cond; with bit 4 BC.cond. AL and NV are conditions that always hold.
        0b0101_0100 => relative(place, sign_extend::<19>(field::<23, 5>(word))).conditional(),
        0b0101_0101 => return_with_authenticated_address(word),
        // CB<cc> on registers, CBB<cc> and CBH<cc>; CB<cc> with an immediate.
        0b0111_0100 | 0b0111_0101 | 0b1111_0100 | 0b1111_0101 => compare_and_branch(word, place),
        0b1101_0100 => exception_generation(word),
        0b1101_0101 => system(word),
        0b1101_0110 | 0b1101_0111 => branch_to_register(word),
        _ => Instruction::other(BYTES).accessing(access(word)),
    }
}

/// A direct branch `words` words from its own address.
const fn relative(place: Location, words: i32) -> Instruction {
    Instruction::direct(BYTES, place.moved(words as i64 * BYTES as i64))
}

/// C4.1, "Unconditional branch (immediate)".
const fn immediate_branch(word: u32, place: Location) -> Instruction {
    relative(place, sign_extend::<26>(field::<25, 0>(word)))
}

/// C4.1, "Miscellaneous branch (immediate)": RETAASPPC and RETABSPPC. The label is where the address was signed.
const fn return_with_authenticated_address(word: u32) -> Instruction {
    match (field::<23, 22>(word), field::<4, 0>(word)) {
        (0b00, NO_REGISTER) => Instruction::indirect(BYTES).returning(Return::Function),
        _ => Instruction::other(BYTES),
    }
}

/// C4.1, "Compare and branch" (FEAT_CMPBR).
const fn compare_and_branch(word: u32, place: Location) -> Instruction {
    let is_allocated = match (bit::<31>(word), bit::<24>(word), field::<15, 14>(word)) {
        // Registers of a word or a doubleword; of a byte, of a halfword.
        (_, false, 0b00) | (false, false, 0b10 | 0b11) => true,
        // An immediate, which includes bit 15.
        (_, true, bits) => bits & 0b01 == 0,
        _ => false,
    };
    if is_allocated {
        relative(place, sign_extend::<9>(field::<13, 5>(word))).conditional()
    } else {
        Instruction::other(BYTES)
    }
}

/// C4.1, "Exception generation".
const fn exception_generation(word: u32) -> Instruction {
    match (field::<23, 21>(word), field::<4, 0>(word)) {
        (0b000, 0b0_0001) => Instruction::exception(BYTES, Raises::SupervisorCall),
        (0b000, 0b0_0010) => Instruction::exception(BYTES, Raises::HypervisorCall),
        (0b000, 0b0_0011) => Instruction::exception(BYTES, Raises::SecureMonitorCall),
        // BRK, HLT.
        (0b001 | 0b010, 0b0_0000) => Instruction::exception(BYTES, Raises::Breakpoint),
        // TCANCEL, DCPS.
        _ => Instruction::other(BYTES),
    }
}

/// C4.1, "Hints", "Barriers" and "System instructions with register argument".
const fn system(word: u32) -> Instruction {
    const CONTROL: u32 = 0b1101_0101_0000_0011_0000;
    const TRANSACTION_START: u32 = 0b1101_0101_0010_0011_0011_0000_0110_0000;
    if word & !0b1_1111 == TRANSACTION_START {
        return Instruction { class: Class::TransactionStart, ..Instruction::other(BYTES) };
    }
    if field::<31, 12>(word) & !0b1111 != CONTROL {
        return Instruction::other(BYTES);
    }
    let rt_is_none = field::<4, 0>(word) == NO_REGISTER;
    match (field::<15, 12>(word), field::<11, 8>(word), field::<7, 5>(word)) {
        // WFET, WFIT.
        (0b0001, 0b0000, 0b000 | 0b001) => Instruction::wait(BYTES),
        // WFE, WFI.
        (0b0010, 0b0000, 0b010 | 0b011) if rt_is_none => Instruction::wait(BYTES),
        (0b0011, _, 0b100) if rt_is_none => Instruction::barrier(BYTES, Barrier::Dsb),
        (0b0011, _, 0b101) if rt_is_none => Instruction::barrier(BYTES, Barrier::Dmb),
        (0b0011, _, 0b110) if rt_is_none => Instruction::barrier(BYTES, Barrier::Isb),
        // Other hints, CLREX, SB, TCOMMIT, PSTATE.
        _ => Instruction::other(BYTES),
    }
}

/// C4.1, "Unconditional branch (register)". Bit 24 distinguishes a modifier in a register from zero, bit 11 pointer authentication,
/// bit 10 its key.
const fn branch_to_register(word: u32) -> Instruction {
    if field::<20, 16>(word) != NO_REGISTER || field::<15, 12>(word) != 0 {
        return Instruction::other(BYTES);
    }
    let authenticates = bit::<11>(word);
    let (has_key_b, register, modifier) = (bit::<10>(word), field::<9, 5>(word), field::<4, 0>(word));
    let plain = !authenticates && !has_key_b && modifier == 0;
    // BRAAZ and its kin have no modifier, BRAA and its kin have any.
    let to_register =
        if bit::<24>(word) { authenticates } else { plain || authenticates && modifier == NO_REGISTER };
    match field::<24, 21>(word) {
        0b0000 | 0b1000 if to_register => Instruction::indirect(BYTES),
        0b0001 | 0b1001 if to_register => Instruction::indirect(BYTES).linking(),
        // RET; RETAA, RETAB; RETAASPPCR and RETABSPPCR with their modifier.
        0b0010 if plain || authenticates && register == NO_REGISTER => {
            Instruction::indirect(BYTES).returning(Return::Function)
        }
        // ERET; ERETAA, ERETAB.
        0b0100 if register == NO_REGISTER && (plain || authenticates && modifier == NO_REGISTER) => {
            Instruction::indirect(BYTES).returning(Return::Exception)
        }
        // TEXIT; with bit 10 TEXIT NB.
        0b0111 if !authenticates && register == NO_REGISTER && modifier == 0 => {
            Instruction::indirect(BYTES).returning(Return::Exception)
        }
        // DRPS, which exists in Debug state alone.
        _ => Instruction::other(BYTES),
    }
}
