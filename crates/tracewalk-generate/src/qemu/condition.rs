//! Whether an instruction's condition holds, from the processor's state before it.

use tracewalk::ids::Isa;

use super::log::Entered;

/// Whether the instruction at the start of `code` executes rather than being passed over. For a conditional
/// branch, whether the branch is taken.
pub(super) fn passed(entered: &Entered, code: &[u8]) -> bool {
    let Some(word) = word(entered.isa, code) else { return true };
    match entered.isa {
        Isa::A32 => holds(word >> 28, entered.status),
        Isa::T32 | Isa::T32EE | Isa::Jazelle => match it_condition(entered.status) {
            Some(condition) => holds(condition, entered.status),
            None => thumb_branch_passed(entered, word),
        },
        Isa::A64 => a64_branch_passed(entered, word),
    }
}

/// The instruction as one number. A Thumb instruction has its first halfword on top, as in the manuals; a
/// 16-bit instruction has zero below.
pub(super) fn word(isa: Isa, code: &[u8]) -> Option<u32> {
    let halfword = |index: usize| {
        let bytes = code.get(2 * index..)?.first_chunk().copied()?;
        Some(u32::from(u16::from_le_bytes(bytes)))
    };
    match isa {
        Isa::A32 => Some(halfword(1)? << 16 | halfword(0)?),
        Isa::T32 | Isa::T32EE | Isa::Jazelle => {
            let first = halfword(0)?;
            let second = if first >> 11 >= 0b11101 { halfword(1)? } else { 0 };
            Some(first << 16 | second)
        }
        Isa::A64 => Some(halfword(1)? << 16 | halfword(0)?),
    }
}

/// The condition that an IT block puts on the next instruction (DDI 0406C, A2.5.2: ITSTATE, in two parts of the PSR).
fn it_condition(status: u32) -> Option<u32> {
    let state = status >> 10 & 0b11_1111;
    let state = state << 2 | status >> 25 & 0b11;
    (state & 0b1111 != 0).then_some(state >> 4)
}

/// Whether a Thumb branch with a condition of its own is taken.
fn thumb_branch_passed(entered: &Entered, word: u32) -> bool {
    let first = word >> 16;
    if first & 0xf500 == 0xb100 {
        // CBZ, CBNZ
        let is_zero = entered.register(first & 0b111) == 0;
        return is_zero == (first & 0x0800 == 0);
    }
    if first & 0xf000 == 0xd000 && first >> 8 & 0b1111 < 0b1110 {
        return holds(first >> 8 & 0b1111, entered.status);
    }
    if first & 0xf800 == 0xf000 && word & 0xd000 == 0x8000 && first >> 7 & 0b111 != 0b111 {
        return holds(first >> 6 & 0b1111, entered.status);
    }
    true
}

/// Whether an A64 instruction with a condition of its own executes; all such instructions are branches (DDI
/// 0487, C4.1.94).
fn a64_branch_passed(entered: &Entered, word: u32) -> bool {
    let (register, is_negated) = (word & 0b1_1111, word >> 24 & 1 == 1);
    // Register 31 is the zero register here.
    let value = if register == 31 { 0 } else { entered.register(register) };
    match word >> 24 {
        // B.cond, BC.cond; AL and NV always branch.
        0x54 => word & 0b1110 == 0b1110 || holds(word & 0b1111, entered.status),
        // CBZ and CBNZ of W and X registers.
        0x34 | 0x35 => (value & 0xffff_ffff == 0) != is_negated,
        0xb4 | 0xb5 => (value == 0) != is_negated,
        // TBZ and TBNZ.
        0x36 | 0x37 | 0xb6 | 0xb7 => {
            let bit = word >> 31 << 5 | word >> 19 & 0b1_1111;
            (value >> bit & 1 == 0) != is_negated
        }
        _ => true,
    }
}

/// Whether a condition code holds (DDI 0406C, A8.3).
fn holds(condition: u32, status: u32) -> bool {
    let flag = |bit: u32| status >> bit & 1 == 1;
    let (negative, zero, carry, overflow) = (flag(31), flag(30), flag(29), flag(28));
    let result = match condition >> 1 {
        0b000 => zero,
        0b001 => carry,
        0b010 => negative,
        0b011 => overflow,
        0b100 => carry && !zero,
        0b101 => negative == overflow,
        0b110 => negative == overflow && !zero,
        // AL, and the encodings without a condition.
        _ => return true,
    };
    result == (condition & 1 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZERO: u32 = 1 << 30;

    fn t32(status: u32, code: [u8; 2]) -> bool {
        passed(&Entered { isa: Isa::T32, status, ..Entered::default() }, &code)
    }

    #[test]
    fn every_condition_is_the_opposite_of_its_neighbour() {
        for flags in 0..16_u32 {
            for condition in (0..14).step_by(2) {
                assert_ne!(holds(condition, flags << 28), holds(condition + 1, flags << 28));
            }
        }
    }

    #[test]
    fn a64_branches_read_flags_and_registers() {
        let passed = |entered: &Entered, word: u32| passed(entered, &word.to_le_bytes());
        let mut entered = Entered { isa: Isa::A64, status: ZERO, ..Entered::default() };
        entered.registers[3] = 1 << 40;
        entered.registers[31] = 1;
        for (word, expected) in [
            (0x5400_0040, true),  // b.eq
            (0x5400_0041, false), // b.ne
            (0x5400_004f, true),  // b.nv
            (0x3400_0043, true),  // cbz w3
            (0xb400_0043, false), // cbz x3
            (0xb500_0043, true),  // cbnz x3
            (0x3400_005f, true),  // cbz wzr
            (0xb640_0043, false), // tbz x3, #40
            (0xb740_0043, true),  // tbnz x3, #40
            (0x3600_0043, true),  // tbz w3, #0
            (0xd61f_0060, true),  // br x3
        ] {
            assert_eq!(passed(&entered, word), expected, "{word:x}");
        }
    }

    #[test]
    fn conditions_come_from_the_branch_the_register_or_the_it_block() {
        let beq = [0x00, 0xd0];
        assert!(t32(ZERO, beq));
        assert!(!t32(0, beq));
        let cbz_r0 = [0x00, 0xb1];
        let cbnz_r0 = [0x00, 0xb9];
        assert!(t32(0, cbz_r0));
        assert!(!t32(0, cbnz_r0));
        // An xPSR as QEMU logged it inside an IT block: ITSTATE 0b1010_1100, so GE for the next instruction.
        let in_it_block = 0x0100_ac00;
        let movs_r0_r0 = [0x00, 0x00];
        assert!(t32(in_it_block, movs_r0_r0));
        assert!(!t32(in_it_block | 1 << 31, movs_r0_r0));
    }
}
