//! Code that goes on with another stack, as a cooperative scheduler does.
//!
//! ```text
//! the block ends in a return, and before that
//!     it stores the stack pointer, or a copy of it, to an address outside the running function's frame
//!     it loads the stack pointer from memory or from another register than the frame pointer
//! ```
//!
//! `setjmp` only stores it and `longjmp` only loads it; a function with an array of variable length keeps it in its own frame.

use tracewalk::flow::Block;
use tracewalk::ids::{Address, Isa};
use tracewalk::isa;
use tracewalk::program::Program;

/// What an instruction does with the stack pointer, by the registers' numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    Nothing,
    /// Copies the stack pointer to a register.
    Copies(u32),
    /// Stores a register at an address in another one.
    Stores(u32, u32),
    /// Loads the stack pointer from memory or a register.
    Loads,
}

/// No block of a scheduler is longer, in instructions.
const LONGEST: u32 = 64;

/// Whether an instruction loads the stack pointer from memory or another register than the frame pointer.
pub(crate) fn loads_stack_pointer(isa: Isa, word: u32) -> bool {
    let does = match isa {
        Isa::T32 => thumb(word),
        Isa::A32 => arm(word),
        Isa::A64 => arm64(word),
        _ => Does::Nothing,
    };
    does == Does::Loads
}

/// Whether a block that ends in a return changes the stack.
pub(super) fn changes_stack(block: &Block, program: &Program) -> bool {
    let (stack_pointer, does): (u32, fn(u32) -> Does) = match block.isa {
        Isa::T32 => (13, thumb),
        Isa::A32 => (13, arm),
        Isa::A64 => (31, arm64),
        _ => return false,
    };
    let (mut copies, mut stores, mut loads) = (1_u32 << stack_pointer, false, false);
    let mut at = block.start;
    for _ in 0..block.instructions.min(LONGEST) {
        let Some(code) = program.code(at) else { return false };
        let Ok(known) = isa::classify(code, at, block.isa) else { return false };
        match does(word(code, block.isa)) {
            Does::Copies(to) => copies |= 1 << to,
            Does::Stores(what, base) => stores |= copies >> what & 1 == 1 && copies >> base & 1 == 0,
            Does::Loads => loads = stores,
            Does::Nothing => {}
        }
        let Some(next) = at.get().checked_add(known.bytes.into()).map(Address::new) else { return false };
        at = next;
    }
    loads
}

/// An instruction's bits; in T32, the first halfword is the upper one.
fn word(code: &[u8], isa: Isa) -> u32 {
    let word = code.first_chunk().copied().map_or(0, u32::from_le_bytes);
    let short = code.first_chunk().copied().map_or(0, u16::from_le_bytes);
    match isa {
        Isa::T32 if word == 0 => u32::from(short) << 16,
        Isa::T32 => word.rotate_left(16),
        _ => word,
    }
}

/// T32 (DDI 0406C, A6 and A7). r7 is the frame pointer.
fn thumb(word: u32) -> Does {
    let (first, second) = (word >> 16, word & 0xffff);
    let register = |from: u32, shift: u32| from >> shift & 0xf;
    match (first, second) {
        // MOV SP, Rm; MOV Rd, SP
        _ if first & 0xff87 == 0x4685 && register(first, 3) != 7 => Does::Loads,
        _ if first & 0xff78 == 0x4668 => Does::Copies(first & 7 | first >> 4 & 8),
        // STR Rt, [Rn, #imm]
        _ if first & 0xf800 == 0x6000 => Does::Stores(first & 7, first >> 3 & 7),
        // STR.W and LDR.W with an immediate
        _ if first & 0xff70 == 0xf840 => Does::Stores(second >> 12, first & 0xf),
        _ if first & 0xff70 == 0xf850 && second >> 12 == 13 => Does::Loads,
        // MRS Rd, MSP or PSP; MSR MSP or PSP, Rn
        (0xf3ef, 0x8000..=0x8fff) if matches!(second & 0xff, 8 | 9) => Does::Copies(second >> 8 & 0xf),
        (0xf380..=0xf38f, 0x8808 | 0x8809) => Does::Loads,
        _ => Does::Nothing,
    }
}

/// A32 (DDI 0406C, A8). r11 is the frame pointer.
fn arm(word: u32) -> Does {
    match word {
        _ if word & 0x0fff_fff0 == 0x01a0_d000 && word & 0xf != 11 => Does::Loads,
        _ if word & 0x0fff_0fff == 0x01a0_000d => Does::Copies(word >> 12 & 0xf),
        _ if word & 0x0e50_0000 == 0x0400_0000 => Does::Stores(word >> 12 & 0xf, word >> 16 & 0xf),
        _ if word & 0x0e50_f000 == 0x0410_d000 => Does::Loads,
        // STM and LDM with SP in the list
        _ if word & 0x0e10_2000 == 0x0800_2000 => Does::Stores(13, word >> 16 & 0xf),
        _ if word & 0x0e10_2000 == 0x0810_2000 => Does::Loads,
        _ => Does::Nothing,
    }
}

/// A64 (DDI 0487, C6): MOV to and from SP, STR and STP. x29 is the frame pointer.
fn arm64(word: u32) -> Does {
    let (first, base, second) = (word & 0x1f, word >> 5 & 0x1f, word >> 10 & 0x1f);
    match word {
        _ if word & 0xffff_fc1f == 0x9100_001f && !matches!(base, 29 | 31) => Does::Loads,
        _ if word & 0xffff_ffe0 == 0x9100_03e0 => Does::Copies(first),
        // Register 31 is XZR here.
        _ if word & 0xff40_0000 == 0xf900_0000 && first != 31 => Does::Stores(first, base),
        _ if word & 0xffe0_0000 == 0xf800_0000 && first != 31 => Does::Stores(first, base),
        // Either of a pair may be the copy: the second is, in Linux.
        _ if word & 0xfe40_0000 == 0xa800_0000 && second != 31 => Does::Stores(second, base),
        _ => Does::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use tracewalk::flow::Ending;

    use super::*;

    /// Whether code that runs as one block changes the stack.
    fn changes(isa: Isa, code: &[u8], instructions: u32) -> bool {
        let start = Address::new(0x1000);
        let mut program = Program::new();
        program.add(start, code).expect("there is room");
        let end = Address::new(0x1000 + code.len() as u64);
        let ending = Ending::Interrupted;
        let block = Block { start, end, last: start, isa, instructions, ending, span: Default::default() };
        changes_stack(&block, &program)
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn schedulers_change_the_stack_and_other_functions_do_not() {
        // push {r4-r11, lr}; str sp, [r0]; mov sp, r1; pop {r4-r11, pc}
        let thumb = [0x2d, 0xe9, 0xf0, 0x4f, 0xc0, 0xf8, 0x00, 0xd0, 0x8d, 0x46, 0xbd, 0xe8, 0xf0, 0x8f];
        assert!(changes(Isa::T32, &thumb, 4));
        // mov r2, sp; str r2, [r0]; ldr r1, [r1]; mov sp, r1; bx lr
        assert!(changes(Isa::T32, &[0x6a, 0x46, 0x02, 0x60, 0x09, 0x68, 0x8d, 0x46, 0x70, 0x47], 5));
        // push {r7, lr}; mov r3, sp; str r3, [r7, #4]; mov sp, r3; pop {r7, pc}: an array of variable length
        assert!(!changes(Isa::T32, &[0x80, 0xb5, 0x6b, 0x46, 0x7b, 0x60, 0xbd, 0x46, 0x80, 0xbd], 5));
        // stmfd sp!, {r4, lr}; str sp, [r0]; mov sp, r1; ldmfd sp!, {r4, pc}
        assert!(changes(Isa::A32, &words(&[0xe92d_4010, 0xe580_d000, 0xe1a0_d001, 0xe8bd_8010]), 4));
        // mov x9, sp; stp x29, x9, [x8], #16; ldp x29, x9, [x8], #16; mov sp, x9; ret
        let arm64 = words(&[0x9100_03e9, 0xa881_251d, 0xa8c1_251d, 0x9100_013f, 0xd65f_03c0]);
        assert!(changes(Isa::A64, &arm64, 5));
        // stp x29, x30, [sp, #-16]!; mov x29, sp; mov sp, x29; ldp x29, x30, [sp], #16; ret
        let framed = words(&[0xa9bf_7bfd, 0x9100_03fd, 0x9100_03bf, 0xa8c1_7bfd, 0xd65f_03c0]);
        assert!(!changes(Isa::A64, &framed, 5));
    }
}
