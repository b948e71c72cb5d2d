//! Whether code runs straight from one place to another.

use crate::ids::{Address, Location};
use crate::isa::{self, Class};
use crate::program::Program;

/// The longest distance in bytes to search. Code seldom runs this far without a jump, and callers try many
/// pairs of addresses.
const FARTHEST: usize = 4096;

/// Whether execution at `from` can come to the instruction at `to` without any branch taken on the way, apart from
/// branches to the next instruction.
///
/// A conditional branch in between may have failed its condition. A branch is in the way if it has no
/// condition, neither its own nor that of an IT instruction after `from`.
#[must_use]
pub fn runs_straight(program: &Program, from: Location, to: Address) -> bool {
    let distance =
        usize::try_from(Location::new(to, from.isa).bytes_since(from.address)).unwrap_or(usize::MAX);
    let Some(code) = program.code(from.address).filter(|_| distance <= FARTHEST) else { return false };
    let (mut passed, mut it_block) = (0, 0_u8);
    while passed < distance {
        let rest = code.get(passed..).unwrap_or_default();
        let at = from.after(passed as u64);
        let Ok(instruction) = isa::classify(rest, at.address, at.isa) else { return false };
        let following = at.after(instruction.bytes.into());
        let leaves = match instruction.class {
            Class::Direct(target) => target != following,
            Class::Indirect => true,
            Class::Other | Class::Barrier(_) | Class::Wait | Class::TransactionStart => false,
        };
        if leaves && !instruction.conditional && it_block == 0 {
            return false;
        }
        it_block = if instruction.it_block > 0 { instruction.it_block } else { it_block.saturating_sub(1) };
        passed += usize::from(instruction.bytes);
    }
    passed == distance && code.len() > distance
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Isa;

    fn reaches(halfwords: &[u16], from: u32, to: u32) -> bool {
        let code = halfwords.iter().flat_map(|halfword| halfword.to_le_bytes());
        let mut program = Program::new();
        program
            .add(Address::new(0x100), &code.collect::<alloc::vec::Vec<_>>())
            .expect("nothing else is there");
        runs_straight(&program, Location::new(Address::from(from), Isa::T32), Address::from(to))
    }

    #[test]
    fn a_conditional_branch_may_be_passed_and_an_unconditional_one_not() {
        // nop; bne .; nop; b .; nop
        let code = [0xbf00, 0xd1fe, 0xbf00, 0xe7fe, 0xbf00];
        assert!(reaches(&code, 0x100, 0x106));
        assert!(!reaches(&code, 0x100, 0x108));
        assert!(reaches(&code, 0x108, 0x108));
        // b 102: the next instruction
        assert!(reaches(&[0xe7ff, 0xbf00, 0xbf00], 0x100, 0x104));
        // it eq; bxeq lr; nop
        assert!(reaches(&[0xbf08, 0x4770, 0xbf00], 0x100, 0x104));
    }

    #[test]
    fn an_end_inside_an_instruction_after_the_start_or_outside_the_code_is_not_reached() {
        // nop; isb; nop
        let code = [0xbf00, 0xf3bf, 0x8f6f, 0xbf00];
        assert!(reaches(&code, 0x100, 0x106));
        assert!(!reaches(&code, 0x100, 0x104));
        assert!(!reaches(&code, 0x106, 0x100));
        assert!(!reaches(&code, 0x100, 0x108));
        assert!(!reaches(&code, 0x200, 0x200));
    }
}
