//! The instructions of a program's functions, whether they ran or not.
//!
//! ```text
//! with mapping symbols, which distinguish code from data: every instruction of every function, one after the other
//! without them: the instructions that can be reached from the start of each function by direct branches
//! ```
//!
//! The second way misses code after computed jumps; every compiler's ELF files allow the first. The caller adds the instructions
//! that ran; these take precedence if the two disagree about where instructions start.

use std::collections::HashSet;

use tracewalk::ids::{Address, Isa, Location};
use tracewalk::isa::{self, Class, Instruction};
use tracewalk::program::Program;

use crate::symbols::{Extent, Stretch};

/// The instructions of the program's functions, in the order of their addresses.
pub(super) fn instructions(
    program: &Program,
    functions: &[Extent],
    stretches: &[Stretch],
) -> Vec<(Location, Instruction)> {
    let mut found = Vec::new();
    for (start, end) in joined(functions) {
        for stretch in overlapping(stretches, start, end) {
            sweep(program, stretch, (start, end), functions, &mut found);
        }
    }
    for function in functions {
        if overlapping(stretches, function.start.get(), function.end).next().is_none() {
            descend(program, function, &mut found);
        }
    }
    found.sort_unstable_by_key(|(at, _)| *at);
    found.dedup_by_key(|(at, _)| *at);
    found
}

/// The addresses that belong to any function, as intervals that do not touch.
fn joined(functions: &[Extent]) -> Vec<(u64, u64)> {
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for function in functions {
        let start = function.start.get();
        match joined.last_mut() {
            Some((_, end)) if start <= *end => *end = function.end.max(*end),
            _ => joined.push((start, function.end)),
        }
    }
    joined
}

fn overlapping(stretches: &[Stretch], start: u64, end: u64) -> impl Iterator<Item = &Stretch> {
    let first = stretches.partition_point(|stretch| stretch.end <= start);
    let rest = stretches.get(first..).unwrap_or_default();
    rest.iter().take_while(move |stretch| stretch.start.get() < end)
}

/// Reads a stretch of code inside functions from one instruction to the next.
fn sweep(
    program: &Program,
    stretch: &Stretch,
    (start, end): (u64, u64),
    functions: &[Extent],
    found: &mut Vec<(Location, Instruction)>,
) {
    let Some(isa) = stretch.isa else { return };
    let mut at = start.max(stretch.start.get());
    let end = end.min(stretch.end);
    while at < end {
        let Some((location, instruction)) = read(program, at, isa) else { break };
        let next = at + u64::from(instruction.bytes);
        let later = functions.partition_point(|function| function.start.get() <= at);
        let next_function = functions.get(later).map(|function| function.start.get());
        // An instruction that overlaps a function's start is padding before that function.
        at = match next_function {
            Some(function) if function < next => function,
            _ => {
                if next <= end {
                    found.push((location, instruction));
                }
                next
            }
        };
    }
}

/// Follows a function's code from its start, along branches that stay in it.
fn descend(program: &Program, function: &Extent, found: &mut Vec<(Location, Instruction)>) {
    let Some(isa) = function.isa else { return };
    let (start, end) = (function.start.get(), function.end);
    let mut seen = HashSet::new();
    let mut open = vec![Location::new(function.start, isa)];
    while let Some(mut at) = open.pop() {
        while (start..end).contains(&at.address.get()) && seen.insert(at) {
            let Some((_, instruction)) = read(program, at.address.get(), at.isa) else { break };
            found.push((at, instruction));
            if let Class::Direct(target) = instruction.class {
                open.push(target);
            }
            // An IT instruction may make a branch conditional. Continuing after an unconditional branch does little harm: the
            // bytes there are code of the function, or the next branch's target.
            let leaves = matches!(instruction.class, Class::Direct(_) | Class::Indirect);
            let is_in_it_block = || in_it_block(program, at);
            if leaves && !instruction.conditional && !instruction.link && !is_in_it_block() {
                break;
            }
            at = at.after(instruction.bytes.into());
        }
    }
}

/// The instruction at `at`, if there is one.
pub(super) fn read(program: &Program, at: u64, isa: Isa) -> Option<(Location, Instruction)> {
    let at = Location::new(Address::new(at), isa);
    let instruction = isa::classify(program.code(at.address)?, at.address, isa).ok()?;
    Some((at, instruction))
}

/// Whether an IT instruction in the code before governs the instruction at `at`.
///
/// For code whose instructions are not known: a halfword that looks like IT may be the second half of a 32-bit instruction, so
/// the halfword before it is checked too.
pub(super) fn in_it_block(program: &Program, at: Location) -> bool {
    /// An IT instruction governs at most four instructions of four bytes.
    const FARTHEST_IT: i64 = 1 + 3 * 2;
    if !at.isa.is_thumb() {
        return false;
    }
    (1..=FARTHEST_IT).any(|halfwords| {
        let from = at.moved(-2 * halfwords);
        let Some((_, it)) = read(program, from.address.get(), at.isa) else { return false };
        let before = read(program, from.moved(-2).address.get(), at.isa);
        if it.it_block == 0 || before.is_some_and(|(_, before)| before.bytes == 4) {
            return false;
        }
        let mut next = from.after(it.bytes.into());
        for _ in 0..it.it_block {
            if next == at {
                return true;
            }
            let Some((_, instruction)) = read(program, next.address.get(), at.isa) else { return false };
            next = next.after(instruction.bytes.into());
        }
        false
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(start: u32, end: u64) -> Extent {
        Extent {
            name: format!("f{start:x}"),
            symbol: String::new(),
            start: Address::from(start),
            end,
            isa: Some(Isa::T32),
        }
    }

    fn stretch(start: u32, end: u64, isa: Option<Isa>) -> Stretch {
        Stretch { start: Address::from(start), end, isa }
    }

    fn starts(code: &[u16], functions: &[Extent], stretches: &[Stretch]) -> Vec<u64> {
        let mut program = Program::new();
        let bytes = code.iter().flat_map(|halfword| halfword.to_le_bytes()).collect::<Vec<_>>();
        program.add(Address::new(0x100), &bytes).unwrap();
        let found = instructions(&program, functions, stretches);
        found.iter().map(|(at, _)| at.address.get()).collect()
    }

    #[test]
    fn code_in_functions_is_read_and_data_and_padding_are_not() {
        // nop; nop.w; bx lr; .word; nop (padding); bx lr
        let code = [0xbf00, 0xf3af, 0x8000, 0x4770, 0x1234, 0x5678, 0xbf00, 0x4770];
        let functions = vec![function(0x100, 0x108), function(0x10e, 0x110)];
        let t32 = Some(Isa::T32);
        let stretches =
            vec![stretch(0x100, 0x108, t32), stretch(0x108, 0x10c, None), stretch(0x10c, 0x110, t32)];
        assert_eq!(starts(&code, &functions, &stretches), [0x100, 0x102, 0x106, 0x10e]);
    }

    #[test]
    fn a_function_start_begins_an_instruction_whatever_stands_before() {
        // The first halfword of a 32-bit instruction, as padding; nop; bx lr
        let code = [0xbf00, 0xf3af, 0xbf00, 0x4770];
        let functions = vec![function(0x100, 0x104), function(0x104, 0x108)];
        assert_eq!(
            starts(&code, &functions, &[stretch(0x100, 0x108, Some(Isa::T32))]),
            [0x100, 0x104, 0x106]
        );
    }

    #[test]
    fn functions_that_overlap_or_enclose_others_are_read_once() {
        let code = [0xbf00; 8];
        let functions = vec![function(0x100, 0x110), function(0x104, 0x106), function(0x106, 0x10a)];
        let found = starts(&code, &functions, &[stretch(0, 1 << 32, Some(Isa::T32))]);
        assert_eq!(found, (0x100..0x110).step_by(2).collect::<Vec<_>>());
    }

    #[test]
    fn without_mapping_symbols_a_function_is_followed_from_its_start() {
        // beq 106; bx lr; .short; it eq; bxeq lr; b 100; .short
        let code = [0xd001, 0x4770, 0xdead, 0xbf08, 0x4770, 0xe7f9, 0xdead];
        let found = starts(&code, &[function(0x100, 0x10e)], &[]);
        assert_eq!(found, [0x100, 0x102, 0x106, 0x108, 0x10a]);
    }

    #[test]
    fn a_function_of_any_size_ends_with_its_code() {
        let found =
            starts(&[0xbf00, 0xbf00], &[function(0x100, 1 << 32)], &[stretch(0, 1 << 32, Some(Isa::T32))]);
        assert_eq!(found, [0x100, 0x102]);
    }
}
