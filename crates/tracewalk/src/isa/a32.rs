//! A32 encodings (ARM Architecture Reference Manual, DDI 0406C, A5), each function one of the manual's tables.

use super::bits::{bit, field, registers_in_list, sign_extend};
use super::coprocessor;
use super::instruction::{Access, Barrier, Direction, Instruction, Raises, Return};
use crate::ids::{Address, Isa, Location};

const SP: u32 = 13;
const LR: u32 = 14;
const PC: u32 = 15;

/// A5.1.
#[inline]
pub(super) const fn classify(word: u32, address: Address) -> Instruction {
    let condition = field::<31, 28>(word);
    if condition == 0b1111 {
        return unconditional(word, address);
    }
    let instruction = match (field::<27, 25>(word), bit::<4>(word)) {
        (0b000, _) => data_processing_and_miscellaneous(word),
        (0b001, _) => data_processing_immediate_and_miscellaneous(word),
        (0b010, _) | (0b011, false) => load_store_word_and_byte(word),
        (0b011, true) => media(word),
        (0b100, _) => block_transfer(word),
        (0b101, _) => branch(word, address),
        // 0b11x
        _ => coprocessor_and_supervisor_call(word),
    };
    if condition == 0b1110 { instruction } else { instruction.conditional() }
}

/// A5.2, with bit 25 clear.
const fn data_processing_and_miscellaneous(word: u32) -> Instruction {
    let op1 = field::<24, 20>(word);
    match (field::<7, 4>(word), op1) {
        // Multiply and multiply accumulate (A5.2.5).
        (0b1001, 0b00000..=0b01111) => Instruction::other(4),
        (0b1001, _) => synchronisation_primitives(word),
        (0b1011 | 0b1101 | 0b1111, _) => extra_load_store(word),
        // 10xx0: the comparisons without S are other instructions.
        (0b0000..=0b0111, 0b10000 | 0b10010 | 0b10100 | 0b10110) => miscellaneous(word),
        // Halfword multiply and multiply accumulate (A5.2.7).
        (_, 0b10000 | 0b10010 | 0b10100 | 0b10110) => Instruction::other(4),
        _ => data_processing(word),
    }
}

/// A5.2, with bit 25 set.
const fn data_processing_immediate_and_miscellaneous(word: u32) -> Instruction {
    const WFE: u32 = 0x320_f002;
    const WFI: u32 = 0x320_f003;
    match field::<24, 20>(word) {
        0b10010 if matches!(field::<27, 0>(word), WFE | WFI) => Instruction::wait(4),
        // MOVW, MOVT, MSR (immediate) and other hints (A5.2.11): none of them writes the PC.
        0b10000 | 0b10010 | 0b10100 | 0b10110 => Instruction::other(4),
        _ => data_processing(word),
    }
}

/// A5.2.1 to A5.2.3, without the comparisons that do not set flags.
const fn data_processing(word: u32) -> Instruction {
    let sets_flags = bit::<20>(word);
    match field::<24, 21>(word) {
        // TST, TEQ, CMP, CMN have no destination.
        0b1000..=0b1011 => Instruction::other(4),
        _ if field::<15, 12>(word) != PC => Instruction::other(4),
        // SUBS PC, LR and related instructions (B9.3.20).
        _ if sets_flags => Instruction::indirect(4).returning(Return::Exception),
        // MOV (register): MOV PC, LR.
        0b1101 if !bit::<25>(word) && field::<11, 0>(word) == LR => {
            Instruction::indirect(4).returning(Return::Function)
        }
        _ => Instruction::indirect(4),
    }
}

/// A5.2.8 extra load/store instructions, and A5.2.9, their unprivileged forms.
const fn extra_load_store(word: u32) -> Instruction {
    let access = match (field::<6, 5>(word), bit::<20>(word)) {
        // STRH, LDRH.
        (0b01, load) => Access::of(Direction::from_load_bit(load), 2).times(1),
        // LDRD.
        (0b10, false) => Access::of(Direction::Load, 4).times(2),
        // LDRSB.
        (0b10, true) => Access::of(Direction::Load, 1).times(1),
        // STRD.
        (_, false) => Access::of(Direction::Store, 4).times(2),
        // LDRSH.
        (_, true) => Access::of(Direction::Load, 2).times(1),
    };
    Instruction::other(4).accessing(access)
}

/// A5.2.10. ARMv8 puts its load-acquire and store-release (LDA, STL and their kin) here as well.
const fn synchronisation_primitives(word: u32) -> Instruction {
    let (direction, bytes) = match field::<23, 20>(word) {
        // SWP, SWPB.
        0b0000 => (Direction::Swap, 4),
        0b0100 => (Direction::Swap, 1),
        // STREX, LDREX.
        0b1000 => (Direction::Store, 4),
        0b1001 => (Direction::Load, 4),
        // STREXD, LDREXD.
        0b1010 => (Direction::Store, 8),
        0b1011 => (Direction::Load, 8),
        // STREXB, LDREXB.
        0b1100 => (Direction::Store, 1),
        0b1101 => (Direction::Load, 1),
        // STREXH, LDREXH.
        0b1110 => (Direction::Store, 2),
        0b1111 => (Direction::Load, 2),
        // Undefined.
        _ => return Instruction::other(4),
    };
    Instruction::other(4).accessing(Access::of(direction, bytes).times(1))
}

/// A5.2.12.
const fn miscellaneous(word: u32) -> Instruction {
    match (field::<6, 4>(word), field::<22, 21>(word)) {
        (0b001, 0b01) if field::<3, 0>(word) == LR => Instruction::indirect(4).returning(Return::Function),
        // BX.
        (0b001, 0b01) => Instruction::indirect(4),
        // BXJ.
        (0b010, 0b01) => Instruction::indirect(4),
        // BLX (register).
        (0b011, 0b01) => Instruction::indirect(4).linking(),
        // ERET.
        (0b110, 0b11) => Instruction::indirect(4).returning(Return::Exception),
        (0b111, 0b01) => Instruction::exception(4, Raises::Breakpoint),
        (0b111, 0b10) => Instruction::exception(4, Raises::HypervisorCall),
        (0b111, 0b11) => Instruction::exception(4, Raises::SecureMonitorCall),
        // MRS, MSR, CLZ, saturating addition and subtraction; undefined.
        _ => Instruction::other(4),
    }
}

/// A5.3.
const fn load_store_word_and_byte(word: u32) -> Instruction {
    let load = bit::<20>(word);
    let byte = bit::<22>(word);
    let access = Access::of(Direction::from_load_bit(load), if byte { 1 } else { 4 }).times(1);
    let instruction = match (load, byte, field::<15, 12>(word)) {
        (true, false, PC) if is_stack_pop(word) => Instruction::indirect(4).returning(Return::Function),
        (true, false, PC) => Instruction::indirect(4),
        _ => Instruction::other(4),
    };
    instruction.accessing(access)
}

/// LDR Rt, [SP], #imm12: no register offset, P 0, U 1, W 0. Library code may drop more than one word from the
/// stack.
const fn is_stack_pop(word: u32) -> bool {
    matches!((field::<25, 20>(word), field::<19, 16>(word)), (0b00_1001, SP))
}

/// A5.4.
const fn media(word: u32) -> Instruction {
    match (field::<31, 28>(word), field::<24, 20>(word), field::<7, 5>(word)) {
        (0b1110, 0b11111, 0b111) => Instruction::exception(4, Raises::Undefined),
        // Arithmetic on registers.
        _ => Instruction::other(4),
    }
}

/// A5.5, with bit 25 clear: LDM, STM and their forms for user registers and exception return.
const fn block_transfer(word: u32) -> Instruction {
    let load = bit::<20>(word);
    let access = Access::of(Direction::from_load_bit(load), 4).times(registers_in_list(word));
    let instruction = if !load || !bit::<15>(word) {
        Instruction::other(4)
    } else if bit::<22>(word) {
        // LDM (exception return).
        Instruction::indirect(4).returning(Return::Exception)
    } else if field::<19, 16>(word) == SP || bit::<13>(word) {
        // POP {.., PC}. Reloading SP itself ends a function too: LDM R11, {R11, SP, PC}.
        Instruction::indirect(4).returning(Return::Function)
    } else {
        Instruction::indirect(4)
    };
    instruction.accessing(access)
}

/// A5.5, with bit 25 set: B and BL.
const fn branch(word: u32, address: Address) -> Instruction {
    let instruction = Instruction::direct(4, branch_target(word, address));
    if bit::<24>(word) { instruction.linking() } else { instruction }
}

/// The address that imm24 leads to; the PC reads as the instruction's address plus 8 (A2.3).
const fn branch_target(word: u32, address: Address) -> Location {
    let pc = Location::new(address.aligned_for(Isa::A32), Isa::A32).after(8);
    pc.moved((sign_extend::<24>(field::<23, 0>(word)) << 2) as i64)
}

/// A5.6.
const fn coprocessor_and_supervisor_call(word: u32) -> Instruction {
    if field::<25, 24>(word) == 0b11 {
        Instruction::exception(4, Raises::SupervisorCall)
    } else {
        coprocessor::classify(word)
    }
}

/// A5.7.
const fn unconditional(word: u32, address: Address) -> Instruction {
    match field::<27, 20>(word) {
        0b0000_0000..=0b0111_1111 => memory_hints_and_miscellaneous(word),
        // SRS: bit 22 set, bit 20 clear.
        0b1000_0000..=0b1001_1111 if field::<22, 20>(word) & 0b101 == 0b100 => {
            Instruction::other(4).accessing(Access::of(Direction::Store, 4).times(2))
        }
        // RFE: bit 22 clear, bit 20 set.
        0b1000_0000..=0b1001_1111 if field::<22, 20>(word) & 0b101 == 0b001 => Instruction::indirect(4)
            .returning(Return::Exception)
            .accessing(Access::of(Direction::Load, 4).times(2)),
        // BLX (immediate): bit 24 is H, bit 1 of the offset.
        0b1010_0000..=0b1011_1111 => {
            let target = branch_target(word, address).after((field::<24, 24>(word) << 1) as u64);
            Instruction::direct(4, Location::new(target.address, Isa::T32)).linking()
        }
        0b1100_0000..=0b1110_1111 => coprocessor::classify(word),
        // Undefined.
        _ => Instruction::other(4),
    }
}

/// A5.7.1. Preloads are hints, not accesses.
const fn memory_hints_and_miscellaneous(word: u32) -> Instruction {
    match (field::<26, 20>(word), field::<7, 4>(word)) {
        // Advanced SIMD element or structure load/store: 100xxx0.
        (0b100_0000..=0b100_1110, _) if !bit::<20>(word) => {
            Instruction::other(4).accessing(coprocessor::element_or_structure_access(word))
        }
        (0b101_0111, 0b0100) => Instruction::barrier(4, Barrier::Dsb),
        (0b101_0111, 0b0101) => Instruction::barrier(4, Barrier::Dmb),
        (0b101_0111, 0b0110) => Instruction::barrier(4, Barrier::Isb),
        // CPS, SETEND, CLREX, PLD, PLDW, PLI, Advanced SIMD data processing; unpredictable; undefined.
        _ => Instruction::other(4),
    }
}
