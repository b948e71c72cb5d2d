//! The blocks of conditional instructions, which IT and VPT begin.
//!
//! The state of a block does not depend on the path of execution: the instruction that begins the block is searched in the code
//! before. A block has at most four instructions.

use exarmo_aarch32::{ItState, t32};
use tracewalk::ids::Location;
use tracewalk::program::Program;

use super::mve;
use super::template::CONDITIONS;

/// The state of the IT block around the instruction at `at`.
pub(super) fn it_state(program: &Program, at: Location) -> ItState {
    // Three instructions of four bytes and IT itself are before the last.
    (1..=7).find_map(|halfwords| it_block(program, at.moved(-2 * halfwords), at)).unwrap_or(ItState::Outside)
}

/// The state at `at` if an IT instruction at `from` has `at` in its block.
fn it_block(program: &Program, from: Location, at: Location) -> Option<ItState> {
    let it = halfword(program, from).filter(|it| it & 0xff00 == 0xbf00)?;
    let [_, state] = it.to_be_bytes();
    // `ITAdvance` of the manual keeps the upper bits of the condition.
    let mask = (state & 0x1f) << index(program, from, from.after(2), at)?;
    Some(ItState::from_bits(state & 0xe0 | mask & 0x1f)).filter(|_| mask & 0x0f != 0)
}

/// The condition of the instruction at `at` in an IT block; empty outside of blocks.
pub(super) fn condition(program: &Program, at: Location) -> &'static str {
    let state = it_state(program, at);
    let condition = CONDITIONS.get(usize::from(state.bits() >> 4)).filter(|_| state.in_block());
    condition.copied().unwrap_or_default()
}

/// The letter of the instruction at `at` in a VPT block: `t` if it is executed for the lanes of the block's condition, `e` if for the
/// other lanes; empty outside of blocks.
pub(super) fn vpt_letter(program: &Program, at: Location) -> &'static str {
    // All instructions of a VPT block have four bytes.
    match (1..=4).find_map(|words| vpt_block(program, at.moved(-4 * words), at)) {
        Some('t') => "t",
        Some(_) => "e",
        None => "",
    }
}

/// The letter of the instruction at `at` if a VPT or VPST at `from` has it in its block.
fn vpt_block(program: &Program, from: Location, at: Location) -> Option<char> {
    let (first, second) = (halfword(program, from)?, halfword(program, from.after(2))?);
    let begin = mve::disassemble(u32::from(first) << 16 | u32::from(second), from)?.text;
    let name = begin.split(['.', ' ']).next()?;
    let letters = name.strip_prefix("vpst").or_else(|| name.strip_prefix("vpt"))?;
    match index(program, from, from.after(4), at)? {
        0 => Some('t'),
        index => letters.chars().nth(index - 1),
    }
}

/// The index of the instruction at `at` after the one at `from`, which ends at `next`; `None` if there is no instruction at `from`, or if
/// `at` is not among the next four.
fn index(program: &Program, from: Location, mut next: Location, at: Location) -> Option<usize> {
    if !begins(program, from) {
        return None;
    }
    for index in 0..4 {
        if next == at {
            return Some(index);
        }
        next = next.after(t32::length(halfword(program, next)?).into());
    }
    None
}

/// Whether an instruction begins at `at`.
///
/// After a halfword that cannot be the first of two an instruction begins. From there on the others pair up.
fn begins(program: &Program, at: Location) -> bool {
    let firsts = (1..=LONGEST_RUN).take_while(|halfwords| {
        halfword(program, at.moved(-2 * halfwords)).is_some_and(|before| t32::length(before) == 4)
    });
    let count = firsts.count();
    count % 2 == 0 && i64::try_from(count) != Ok(LONGEST_RUN)
}

/// The most halfwords in a row that may each be the first of an instruction. More are not code: erased memory, for example.
const LONGEST_RUN: i64 = 32;

fn halfword(program: &Program, at: Location) -> Option<u16> {
    program.code(at.address)?.first_chunk().copied().map(u16::from_le_bytes)
}
