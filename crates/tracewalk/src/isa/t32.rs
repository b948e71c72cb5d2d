//! T32 and T32EE encodings (ARM Architecture Reference Manual, DDI 0406C, A6 and A9), each function one of the
//! manual's tables.

use super::bits::{bit, field, registers_in_list, sign_extend};
use super::coprocessor;
use super::instruction::{Access, Barrier, Direction, Instruction, Raises, Return};
use crate::ids::{Address, Isa, Location};

const SP: u32 = 13;
const LR: u32 = 14;
const PC: u32 = 15;

/// Whether a second halfword belongs to the instruction that starts with `first` (A6.1).
#[inline]
pub(super) const fn is_32_bit(first: u16) -> bool {
    matches!(first >> 11, 0b11101..=0b11111)
}

/// The location `offset` bytes from the PC, which reads as the instruction's address plus 4 (A2.3).
const fn relative(at: Location, offset: i32) -> Location {
    at.after(4).moved(offset as i64)
}

/// A6.2.
#[inline]
pub(super) fn classify_16_bit(code: u16, address: Address, isa: Isa) -> Instruction {
    let place = Location::new(address.aligned_for(isa), isa);
    let code = u32::from(code);
    match field::<15, 10>(code) {
        // Shift, add, subtract, move, compare; data processing.
        0b00_0000..=0b01_0000 => Instruction::other(2),
        0b01_0001 => special_data_and_branch_exchange(code),
        // LDR (literal).
        0b01_0010 | 0b01_0011 => Instruction::other(2).accessing(Access::of(Direction::Load, 4).times(1)),
        0b01_0100..=0b10_0111 => load_store_single(code),
        // ADR; ADD to SP.
        0b10_1000..=0b10_1011 => Instruction::other(2),
        0b10_1100..=0b10_1111 => miscellaneous_16_bit(code, place),
        0b11_0000..=0b11_0011 if matches!(isa, Isa::T32EE) => thumb_ee(code),
        // STM, LDM.
        0b11_0000..=0b11_0011 => {
            let direction = Direction::from_load_bit(bit::<11>(code));
            Instruction::other(2).accessing(Access::of(direction, 4).times(registers_in_list(code & 0xff)))
        }
        0b11_0100..=0b11_0111 => conditional_branch_and_supervisor_call(code, place),
        // B, encoding T2.
        0b11_1000 | 0b11_1001 => {
            Instruction::direct(2, relative(place, sign_extend::<11>(field::<10, 0>(code)) << 1))
        }
        // The first halves of 32-bit instructions.
        _ => Instruction::other(2),
    }
}

/// A6.2.3.
const fn special_data_and_branch_exchange(code: u32) -> Instruction {
    let destination = field::<7, 7>(code) << 3 | field::<2, 0>(code);
    let source = field::<6, 3>(code);
    match field::<9, 6>(code) {
        // ADD (register).
        0b0000..=0b0011 if destination == PC => Instruction::indirect(2),
        // MOV (register).
        0b1000..=0b1011 if destination == PC && source == LR => {
            Instruction::indirect(2).returning(Return::Function)
        }
        0b1000..=0b1011 if destination == PC => Instruction::indirect(2),
        // BX; with bit 2 ARMv8-M's BXNS.
        0b1100 | 0b1101 if source == LR => Instruction::indirect(2).returning(Return::Function),
        0b1100 | 0b1101 => Instruction::indirect(2),
        // BLX (register); with bit 2 ARMv8-M's BLXNS.
        0b1110 | 0b1111 => Instruction::indirect(2).linking(),
        // CMP; ADD and MOV to other registers.
        _ => Instruction::other(2),
    }
}

/// A6.2.4.
const fn load_store_single(code: u32) -> Instruction {
    let (direction, bytes) = match (field::<15, 12>(code), field::<11, 9>(code)) {
        // STR, STRH, STRB (register).
        (0b0101, 0b000) => (Direction::Store, 4),
        (0b0101, 0b001) => (Direction::Store, 2),
        (0b0101, 0b010) => (Direction::Store, 1),
        // LDRSB, LDR, LDRH, LDRB, LDRSH (register).
        (0b0101, 0b011 | 0b110) => (Direction::Load, 1),
        (0b0101, 0b100) => (Direction::Load, 4),
        (0b0101, _) => (Direction::Load, 2),
        // STR, LDR (immediate); STRB, LDRB; STRH, LDRH; STR, LDR from SP.
        (0b0110, _) => (Direction::from_load_bit(bit::<11>(code)), 4),
        (0b0111, _) => (Direction::from_load_bit(bit::<11>(code)), 1),
        (0b1000, _) => (Direction::from_load_bit(bit::<11>(code)), 2),
        _ => (Direction::from_load_bit(bit::<11>(code)), 4),
    };
    Instruction::other(2).accessing(Access::of(direction, bytes).times(1))
}

/// A6.2.5.
const fn miscellaneous_16_bit(code: u32, place: Location) -> Instruction {
    // PUSH stores LR and POP loads PC by bit 8, beside the list of low registers.
    let stacked = registers_in_list(code & 0x1ff);
    match (field::<11, 8>(code), bit::<8>(code)) {
        // CBZ, CBNZ: x0x1, forward only.
        (0b0001 | 0b0011 | 0b1001 | 0b1011, _) => {
            let offset = field::<9, 9>(code) << 6 | field::<7, 3>(code) << 1;
            Instruction::direct(2, relative(place, offset.cast_signed())).conditional()
        }
        (0b0100 | 0b0101, _) => {
            Instruction::other(2).accessing(Access::of(Direction::Store, 4).times(stacked))
        }
        (0b1100 | 0b1101, to_pc) => {
            let access = Access::of(Direction::Load, 4).times(stacked);
            if to_pc {
                Instruction::indirect(2).returning(Return::Function).accessing(access)
            } else {
                Instruction::other(2).accessing(access)
            }
        }
        (0b1110, _) => Instruction::exception(2, Raises::Breakpoint),
        (0b1111, _) => if_then_and_hints(code),
        // ADD and SUB SP, extensions, SETEND, CPS, REV; undefined.
        _ => Instruction::other(2),
    }
}

/// The hints WFE and WFI, encoding T1; in T2 the same number without its last four bits.
const WFE: u32 = 0b0010_0000;
const WFI: u32 = 0b0011_0000;

/// A6.2.6. The lowest set bit of IT's mask ends the block.
const fn if_then_and_hints(code: u32) -> Instruction {
    if matches!(code & 0xff, WFE | WFI) {
        return Instruction::wait(2);
    }
    let it_block = match field::<3, 0>(code) {
        // A hint.
        0b0000 => 0,
        0b1000 => 1,
        0b0100 | 0b1100 => 2,
        0b0010 | 0b0110 | 0b1010 | 0b1110 => 3,
        _ => 4,
    };
    Instruction { it_block, ..Instruction::other(2) }
}

/// A6.2.7.
const fn conditional_branch_and_supervisor_call(code: u32, place: Location) -> Instruction {
    match field::<11, 8>(code) {
        0b1110 => Instruction::exception(2, Raises::Undefined),
        0b1111 => Instruction::exception(2, Raises::SupervisorCall),
        // B, encoding T1.
        _ => {
            Instruction::direct(2, relative(place, sign_extend::<8>(field::<7, 0>(code)) << 1)).conditional()
        }
    }
}

/// A9.2.1, the 16-bit encodings that T32EE has in the place of LDM and STM.
///
/// HB and its kin branch to handlers in a table at TEEHBR, an address that no instruction contains.
const fn thumb_ee(code: u32) -> Instruction {
    let load = Access::of(Direction::Load, 4).times(1);
    match field::<11, 8>(code) {
        // HBP.
        0b0000 => Instruction::indirect(2),
        // HB, HBL.
        0b0010 => Instruction::indirect(2),
        0b0011 => Instruction::indirect(2).linking(),
        // HBLP.
        0b0100..=0b0111 => Instruction::indirect(2).linking(),
        // LDR (immediate) with a negative offset, from R10, from R9.
        0b1000 | 0b1001 | 0b1011..=0b1101 => Instruction::other(2).accessing(load),
        // STR (immediate) to R9.
        0b1110 | 0b1111 => Instruction::other(2).accessing(Access::of(Direction::Store, 4).times(1)),
        // CHKA, which only branches by raising an exception; undefined.
        _ => Instruction::other(2),
    }
}

/// A6.3.
#[inline]
pub(super) fn classify_32_bit(first: u16, second: u16, address: Address, isa: Isa) -> Instruction {
    let place = Location::new(address.aligned_for(isa), isa);
    let word = u32::from(first) << 16 | u32::from(second);
    let (first, second) = (u32::from(first), u32::from(second));
    match (field::<12, 11>(first), field::<10, 4>(first), bit::<15>(second)) {
        // 00xx0xx, 00xx1xx, 01xxxxx (data processing), 1xxxxxx.
        (0b01, 0b000_0000..=0b001_1111, _) if bit::<6>(first) => {
            dual_exclusive_and_table_branch(first, second)
        }
        (0b01, 0b000_0000..=0b001_1111, _) => load_store_multiple(first, second),
        (0b01, 0b010_0000..=0b011_1111, _) => Instruction::other(4),
        (0b01, ..) => coprocessor::classify(word),
        // Data processing with an immediate.
        (0b10, _, false) => Instruction::other(4),
        (0b10, _, true) => branches_and_miscellaneous_control(first, second, place),
        // 000xxx0, 001xxx0, 00xx001, 00xx011, 00xx101, 00xx111.
        (_, 0b000_0000..=0b000_1111, _) if !bit::<4>(first) => store_single(first, second),
        (_, 0b001_0000..=0b001_1111, _) if !bit::<4>(first) => {
            Instruction::other(4).accessing(coprocessor::element_or_structure_access(word))
        }
        (_, 0b000_0000..=0b001_1111, _) => load_single(first, second),
        // ARMv8.1-M's BXAUT, in the place of SMMLAR with the PC as its destination.
        (_, 0b011_0101, _) if field::<11, 4>(second) == 0b1111_0001 => {
            Instruction::indirect(4).returning(Return::Function)
        }
        // Data processing on registers and multiplication.
        (_, 0b010_0000..=0b011_1111, _) => Instruction::other(4),
        _ => coprocessor::classify(word),
    }
}

/// A6.3.4.
const fn branches_and_miscellaneous_control(first: u32, second: u32, place: Location) -> Instruction {
    let is_conditional_branch = field::<9, 7>(first) != 0b111;
    match (field::<14, 12>(second), field::<10, 4>(first)) {
        (0b000 | 0b010, _) if is_conditional_branch => {
            Instruction::direct(4, relative(place, conditional_branch_offset(first, second))).conditional()
        }
        // MSR, hints, CPS; 0b011_1011 has the barriers.
        (0b000 | 0b010, 0b011_1011) => miscellaneous_control(second, place),
        // Hints: WFE and WFI, if the processor's mode is not changed.
        (0b000 | 0b010, 0b011_1010) if matches!((second & 0b111_1111_1111) << 4, WFE | WFI) => {
            Instruction::wait(4)
        }
        // BXJ.
        (0b000 | 0b010, 0b011_1100) => Instruction::indirect(4),
        // ERET; SUBS PC, LR.
        (0b000 | 0b010, 0b011_1101) => Instruction::indirect(4).returning(Return::Exception),
        (0b000, 0b111_1110) => Instruction::exception(4, Raises::HypervisorCall),
        (0b000, 0b111_1111) => Instruction::exception(4, Raises::SecureMonitorCall),
        (0b010, 0b111_1111) => Instruction::exception(4, Raises::Undefined),
        // B, encoding T4.
        (0b001 | 0b011, _) => Instruction::direct(4, relative(place, branch_offset(first, second))),
        // BLX (immediate), from the PC rounded down to a word. The lowest bit, H, is undefined when set.
        (0b100 | 0b110, _) if !bit::<0>(second) => {
            let pc = Location::new(place.after(4).address.aligned_for(Isa::A32), Isa::A32);
            Instruction::direct(4, pc.moved(branch_offset(first, second) as i64)).linking()
        }
        (0b100 | 0b110, _) => low_overhead_loop(first, second, place),
        // BL.
        (0b101 | 0b111, _) => Instruction::direct(4, relative(place, branch_offset(first, second))).linking(),
        // MRS, MSR, hints, CPS; undefined.
        _ => Instruction::other(4),
    }
}

/// ARMv8.1-M's low overhead loops and branch futures (DDI 0553, C2.4.36), in the place of BLX (immediate) with H set.
const fn low_overhead_loop(first: u32, second: u32, place: Location) -> Instruction {
    let offset = (field::<10, 1>(second) << 2 | field::<11, 11>(second) << 1).cast_signed();
    let pc = place.after(4);
    match (field::<15, 12>(second), field::<10, 4>(first), field::<3, 0>(first)) {
        // LE LR and LETP branch back while the count in LR lasts; LE always branches back.
        (0b1100, 0b000_0000 | 0b000_0001, PC) => {
            Instruction::direct(4, pc.moved(-(offset as i64))).conditional()
        }
        (0b1100, 0b000_0010, PC) => Instruction::direct(4, pc.moved(-(offset as i64))),
        (0b1100, 0b000_0011, PC) => Instruction::other(4),
        // WLS and WLSTP skip the loop if the count is 0.
        (0b1100, 0b000_0000..=0b000_0100, _) => Instruction::direct(4, pc.moved(offset as i64)).conditional(),
        // DLS, DLSTP, LCTP, which count; BF, BFX, BFL, BFLX, BFCSEL, which known cores treat as NOP; undefined.
        _ => Instruction::other(4),
    }
}

/// A6.3.4, B encoding T3: S:J2:J1:imm6:imm11:0.
const fn conditional_branch_offset(first: u32, second: u32) -> i32 {
    let offset = field::<10, 10>(first) << 19
        | field::<11, 11>(second) << 18
        | field::<13, 13>(second) << 17
        | field::<5, 0>(first) << 11
        | field::<10, 0>(second);
    sign_extend::<20>(offset) << 1
}

/// A6.3.4, B encoding T4, BL, BLX (immediate): S:I1:I2:imm10:imm11:0 with I = NOT(J EOR S).
const fn branch_offset(first: u32, second: u32) -> i32 {
    let sign = field::<10, 10>(first);
    let i1 = (field::<13, 13>(second) ^ sign) ^ 1;
    let i2 = (field::<11, 11>(second) ^ sign) ^ 1;
    let offset = sign << 23 | i1 << 22 | i2 << 21 | field::<9, 0>(first) << 11 | field::<10, 0>(second);
    sign_extend::<24>(offset) << 1
}

/// A6.3.4, miscellaneous control instructions.
const fn miscellaneous_control(second: u32, place: Location) -> Instruction {
    let next = place.after(4).address;
    match field::<7, 4>(second) {
        // LEAVEX and ENTERX (A9.3.1) continue after themselves, in the named instruction set.
        0b0000 => Instruction::direct(4, Location::new(next, Isa::T32)),
        0b0001 => Instruction::direct(4, Location::new(next, Isa::T32EE)),
        0b0100 => Instruction::barrier(4, Barrier::Dsb),
        0b0101 => Instruction::barrier(4, Barrier::Dmb),
        0b0110 => Instruction::barrier(4, Barrier::Isb),
        // CLREX; undefined.
        _ => Instruction::other(4),
    }
}

/// A6.3.5.
const fn load_store_multiple(first: u32, second: u32) -> Instruction {
    let load = bit::<4>(first);
    let access = Access::of(Direction::from_load_bit(load), 4);
    let base = field::<3, 0>(first);
    match (field::<8, 7>(first), load) {
        // SRS: LR and SPSR.
        (0b00 | 0b11, false) => Instruction::other(4).accessing(access.times(2)),
        // RFE.
        (0b00 | 0b11, true) => {
            Instruction::indirect(4).returning(Return::Exception).accessing(access.times(2))
        }
        // ARMv8.1-M's CLRM, in the place of LDM with the PC as its base.
        (0b01, true) if first == 0xe89f => Instruction::other(4),
        // LDM, POP, LDMDB with PC.
        (_, true) if bit::<15>(second) => {
            let instruction = Instruction::indirect(4).accessing(access.times(registers_in_list(second)));
            if base == SP { instruction.returning(Return::Function) } else { instruction }
        }
        // STM, PUSH, STMDB; LDM, POP, LDMDB without PC.
        _ => Instruction::other(4).accessing(access.times(registers_in_list(second))),
    }
}

/// A6.3.6.
const fn dual_exclusive_and_table_branch(first: u32, second: u32) -> Instruction {
    let direction = Direction::from_load_bit(bit::<4>(first));
    match (field::<8, 7>(first), field::<5, 4>(first), field::<7, 4>(second)) {
        // ARMv8-M's SG and TT are among the unpredictable forms of LDRD and STREX.
        _ if first == 0xe97f && second == 0xe97f => Instruction::other(4),
        (0b00, 0b00, _) if field::<15, 12>(second) == PC => Instruction::other(4),
        // STREX, LDREX.
        (0b00, 0b00 | 0b01, _) => Instruction::other(4).accessing(Access::of(direction, 4).times(1)),
        // TBB, TBH, which load from the table of offsets.
        (0b01, 0b01, 0b0000) => Instruction::indirect(4).accessing(Access::of(Direction::Load, 1).times(1)),
        (0b01, 0b01, 0b0001) => Instruction::indirect(4).accessing(Access::of(Direction::Load, 2).times(1)),
        // Exclusive bytes, halfwords and doublewords; from 1000 on ARMv8's load-acquire and store-release.
        (0b01, 0b00 | 0b01, 0b0100 | 0b1000 | 0b1100) => {
            Instruction::other(4).accessing(Access::of(direction, 1).times(1))
        }
        (0b01, 0b00 | 0b01, 0b0101 | 0b1001 | 0b1101) => {
            Instruction::other(4).accessing(Access::of(direction, 2).times(1))
        }
        (0b01, 0b00 | 0b01, 0b1010 | 0b1110) => {
            Instruction::other(4).accessing(Access::of(direction, 4).times(1))
        }
        (0b01, 0b00 | 0b01, 0b0111 | 0b1111) => {
            Instruction::other(4).accessing(Access::of(direction, 8).times(1))
        }
        // Undefined.
        (0b01, 0b00 | 0b01, _) => Instruction::other(4),
        // STRD, LDRD.
        _ => Instruction::other(4).accessing(Access::of(direction, 4).times(2)),
    }
}

/// A6.3.7 to A6.3.9. Loads to PC of less than a word are hints.
const fn load_single(first: u32, second: u32) -> Instruction {
    let to_pc = field::<15, 12>(second) == PC;
    let signed = bit::<8>(first);
    let bytes = match (field::<6, 5>(first), signed) {
        (0b00, _) => 1,
        (0b01, _) => 2,
        (0b10, false) => 4,
        // Undefined.
        _ => return Instruction::other(4),
    };
    let literal = field::<3, 0>(first) == PC;
    let wide_offset = bit::<7>(first);
    if !(literal || is_addressing_mode(first, second)) || to_pc && bytes != 4 {
        return Instruction::other(4);
    }
    // LDR Rt, [SP], #imm8: P 0, U 1, W 1. Library code may drop more than one word from the stack.
    let is_stack_pop = !wide_offset && field::<3, 0>(first) == SP && field::<11, 8>(second) == 0b1011;
    let instruction = match (to_pc, is_stack_pop) {
        (true, true) => Instruction::indirect(4).returning(Return::Function),
        (true, false) => Instruction::indirect(4),
        (false, _) => Instruction::other(4),
    };
    instruction.accessing(Access::of(Direction::Load, bytes).times(1))
}

/// A6.3.10.
const fn store_single(first: u32, second: u32) -> Instruction {
    let bytes = match field::<6, 5>(first) {
        0b00 => 1,
        0b01 => 2,
        0b10 => 4,
        // Undefined.
        _ => return Instruction::other(4),
    };
    if is_addressing_mode(first, second) {
        Instruction::other(4).accessing(Access::of(Direction::Store, bytes).times(1))
    } else {
        Instruction::other(4)
    }
}

/// Whether a single load or store has a defined addressing mode: op1 and op2 of A6.3.7 to A6.3.10.
const fn is_addressing_mode(first: u32, second: u32) -> bool {
    let wide_offset = bit::<7>(first);
    wide_offset
        || match field::<11, 8>(second) {
            // A register offset: 000000.
            0b0000 => field::<7, 6>(second) == 0b00,
            // Post-indexed and pre-indexed: 1xx1xx.
            0b1001 | 0b1011 | 0b1101 | 0b1111 => true,
            // A negative offset; unprivileged.
            0b1100 | 0b1110 => true,
            _ => false,
        }
}
