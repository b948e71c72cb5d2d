//! Counts of blocks → counts of instructions.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use tracewalk::ids::{Address, Location};
use tracewalk::isa::{Class, Instruction as Classified, Return};
use tracewalk::program::Program;

use super::blocks::{BlockKey, Conditions, Outcome};
use super::code::{self, in_it_block, read};
use super::runs::RunSet;
use crate::Code;
use crate::symbols::Extent;

/// An instruction, and the number of times that it ran, or another sum over blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction<A = u64> {
    /// The instruction's location.
    pub at: Location,
    /// The size in bytes.
    pub bytes: u8,
    /// Whether and how it branches.
    pub branching: Branching,
    /// Whether its condition can fail: by its own encoding, or in an IT block.
    pub conditional: bool,
    /// How often it ran.
    pub passes: Passes<A>,
}

/// Whether and how an instruction branches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branching {
    /// The instruction is no branch.
    None,
    /// The instruction branches to an address in its encoding.
    Direct {
        /// The target.
        target: Location,
        /// Whether it is a call.
        call: bool,
    },
    /// The instruction branches to an address in a register or in memory.
    Indirect {
        /// Whether it is a call.
        call: bool,
        /// Whether it is a return.
        returns: bool,
    },
}

/// How often execution passed an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passes<A = u64> {
    /// The instruction took effect: its condition passed, or it has none. A branch was taken.
    pub executed: A,
    /// The instruction's condition failed. A branch was not taken.
    pub skipped: A,
    /// The trace does not record which of the two.
    pub unrecorded: A,
}

impl Passes {
    /// The number of all passes.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.executed.saturating_add(self.skipped).saturating_add(self.unrecorded)
    }
}

/// A sum over blocks: a count, or a set of runs.
pub(super) trait Amount: Clone + Default {
    /// Adds another amount.
    fn add(&mut self, other: &Self);
}

impl Amount for u64 {
    fn add(&mut self, other: &Self) {
        *self = self.saturating_add(*other);
    }
}

impl Amount for RunSet {
    fn add(&mut self, other: &Self) {
        self.add(other);
    }
}

impl<A> Instruction<A> {
    /// Whether it is a branch.
    #[must_use]
    pub fn is_branch(&self) -> bool {
        self.branching != Branching::None
    }

    /// Whether not branching counts as an effect of the statement, too. `function` is the addresses of its function.
    ///
    /// A conditional branch inside a function does its work, which is to decide, also when it is not taken. A branch that calls,
    /// returns or leaves the function represents a statement that runs only when it is taken.
    fn decides(&self, function: &Range<u64>) -> bool {
        matches!(self.branching, Branching::Direct { target, call: false } if function.contains(&target.address.get()))
    }
}

impl Instruction {
    /// How often it took effect as part of a statement. `function` is the addresses of its function.
    ///
    /// A conditional branch inside a function does its work, which is to decide, also when it is not taken.
    #[must_use]
    pub fn effects(&self, function: Range<u64>) -> u64 {
        let Passes { executed, skipped, .. } = self.passes;
        if self.decides(&function) { executed.saturating_add(skipped) } else { executed }
    }
}

impl Instruction<RunSet> {
    /// The runs in which it took effect, as [`Instruction::effects`] counts it.
    pub(super) fn runs(self, function: &Range<u64>) -> RunSet {
        let decides = self.decides(function);
        let Passes { mut executed, skipped, .. } = self.passes;
        if decides {
            executed.add(&skipped);
        }
        executed
    }
}

/// Every instruction that ran or belongs to one of the program's functions, in the order of their addresses.
pub(super) fn count<'a, A: Amount>(
    Code { program, symbols, .. }: &'a Code,
    functions: &[Extent],
    blocks: &BTreeMap<BlockKey, A>,
) -> impl Iterator<Item = Instruction<A>> + use<'a, A> {
    let mut raw = HashMap::new();
    for (block, count) in blocks {
        count_block(program, block, count, &mut raw);
    }
    let mut all = raw.into_iter().collect::<Vec<_>>();
    all.sort_unstable_by_key(|(at, _)| *at);
    add_what_did_not_run(&mut all, code::instructions(program, functions, &symbols.stretches()));
    let mut it_block = ItBlock::default();
    all.into_iter().map(move |(at, raw)| {
        let governed = it_block.governs(program, at, &raw.classified);
        raw.finish(at, governed)
    })
}

/// Counts of an instruction that may or may not be conditional.
#[derive(Clone, Copy, Debug)]
struct Raw<A> {
    classified: Classified,
    /// In a trace that records conditions, how often the condition passed. For a branch, how often it was taken.
    executed: A,
    /// How often the condition failed. For a branch, how often it was not taken.
    skipped: A,
    /// In a trace that does not record conditions.
    passed: A,
}

fn count_block<A: Amount>(
    program: &Program,
    block: &BlockKey,
    count: &A,
    raw: &mut HashMap<Location, Raw<A>>,
) {
    let mut at = block.start.get();
    let end = block.end.get();
    while at < end {
        let location = Location::new(Address::new(at), block.isa);
        let found = match raw.get_mut(&location) {
            Some(found) => found,
            None => {
                let Some((_, classified)) = read(program, at, block.isa) else { return };
                raw.entry(location).or_insert(Raw::new(classified))
            }
        };
        at += u64::from(found.classified.bytes);
        let outcome = if at < end { Outcome::Passed } else { block.outcome };
        let counter = match (outcome, block.conditions) {
            (Outcome::Taken, _) | (Outcome::Passed, Conditions::OfEvery) => &mut found.executed,
            (Outcome::Failed | Outcome::NotTaken, _) => &mut found.skipped,
            (Outcome::Passed, Conditions::OfBranches) => &mut found.passed,
        };
        counter.add(count);
    }
}

impl<A: Amount> Raw<A> {
    fn new(classified: Classified) -> Self {
        Self { classified, executed: A::default(), skipped: A::default(), passed: A::default() }
    }

    fn finish(self, at: Location, in_it_block: bool) -> Instruction<A> {
        let Classified { bytes, class, link: call, returns, .. } = self.classified;
        let conditional = self.classified.conditional || in_it_block;
        let branching = match class {
            Class::Direct(target) => Branching::Direct { target, call },
            Class::Indirect => Branching::Indirect {
                call,
                returns: matches!(returns, Some(Return::Function | Return::Exception)),
            },
            Class::Other | Class::Barrier(_) | Class::Wait | Class::TransactionStart => Branching::None,
        };
        let Self { mut executed, skipped, passed, .. } = self;
        let unrecorded = if conditional {
            passed
        } else {
            executed.add(&passed);
            A::default()
        };
        let passes = Passes { executed, skipped, unrecorded };
        Instruction { at, bytes, branching, conditional, passes }
    }
}

/// Inserts the instructions that did not run. If they overlap with those that ran, the program's symbols are wrong.
fn add_what_did_not_run<A: Amount>(all: &mut Vec<(Location, Raw<A>)>, known: Vec<(Location, Classified)>) {
    let ran = std::mem::take(all);
    let end = |at: Location, bytes: u8| at.address.get() + u64::from(bytes);
    let mut ran = ran.into_iter().peekable();
    let mut ran_to = 0;
    for (at, classified) in known {
        while let Some(earlier) = ran.next_if(|(ran, _)| *ran <= at) {
            ran_to = ran_to.max(end(earlier.0, earlier.1.classified.bytes));
            all.push(earlier);
        }
        let after = end(at, classified.bytes);
        let overlaps =
            ran_to > at.address.get() || ran.peek().is_some_and(|(next, _)| next.address.get() < after);
        if !overlaps {
            all.push((at, Raw::new(classified)));
        }
    }
    all.extend(ran);
}

/// Follows IT blocks through instructions in the order of their addresses.
#[derive(Debug, Default)]
struct ItBlock {
    /// The address after the last instruction; 0 before the first.
    next: u64,
    /// How many more instructions the block governs.
    left: u8,
}

impl ItBlock {
    /// Whether an IT instruction governs the instruction at `at`.
    fn governs(&mut self, program: &Program, at: Location, classified: &Classified) -> bool {
        let address = at.address.get();
        let governed = if address == self.next {
            self.left > 0
        } else {
            self.left = 0;
            at.isa.is_thumb() && in_it_block(program, at)
        };
        self.left = match classified.it_block {
            0 => self.left.saturating_sub(1),
            governs => governs,
        };
        self.next = address + u64::from(classified.bytes);
        governed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracewalk::ids::Isa;

    fn key(start: u32, end: u32, outcome: Outcome, conditions: Conditions) -> BlockKey {
        BlockKey { start: Address::from(start), end: Address::from(end), isa: Isa::T32, outcome, conditions }
    }

    /// movs r0, #1; it ne; movne r0, #2; cmp r0, #0; beq 100; bx lr
    const CODE: [u16; 6] = [0x2001, 0xbf18, 0x2002, 0x2800, 0xd0fa, 0x4770];

    fn passes(blocks: &[(BlockKey, u64)]) -> Vec<(u64, bool, [u64; 3])> {
        let mut program = Program::new();
        let bytes = CODE.iter().flat_map(|halfword| halfword.to_le_bytes()).collect::<Vec<_>>();
        program.add(Address::new(0x100), &bytes).unwrap();
        let blocks = blocks.iter().copied().collect::<BTreeMap<_, _>>();
        let code = Code { program: program.into(), ..Code::unknown() };
        let found = count(&code, &[], &blocks);
        let passes = |passes: Passes| [passes.executed, passes.skipped, passes.unrecorded];
        found.map(|found| (found.at.address.get(), found.conditional, passes(found.passes))).collect()
    }

    #[test]
    fn a_trace_of_conditions_distinguishes_executed_from_skipped() {
        use Conditions::OfEvery;
        let found = passes(&[
            (key(0x100, 0x10a, Outcome::Taken, OfEvery), 5),
            (key(0x100, 0x106, Outcome::Failed, OfEvery), 2),
            (key(0x106, 0x10a, Outcome::NotTaken, OfEvery), 2),
        ]);
        let expected = [
            (0x100, false, [7, 0, 0]),
            (0x102, false, [7, 0, 0]),
            (0x104, true, [5, 2, 0]),
            (0x106, false, [7, 0, 0]),
            (0x108, true, [5, 2, 0]),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_trace_of_branches_records_nothing_of_other_conditions() {
        use Conditions::OfBranches;
        let found = passes(&[
            (key(0x100, 0x10a, Outcome::Taken, OfBranches), 3),
            (key(0x100, 0x10a, Outcome::NotTaken, OfBranches), 1),
        ]);
        let expected = [
            (0x100, false, [4, 0, 0]),
            (0x102, false, [4, 0, 0]),
            (0x104, true, [0, 0, 4]),
            (0x106, false, [4, 0, 0]),
            (0x108, true, [3, 1, 0]),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn an_instruction_is_conditional_even_where_execution_came_into_the_middle_of_its_it_block() {
        let found = passes(&[(key(0x104, 0x106, Outcome::Passed, Conditions::OfBranches), 1)]);
        assert_eq!(found, [(0x104, true, [0, 0, 1])]);
    }

    #[test]
    fn a_block_that_no_code_holds_counts_nothing() {
        assert_eq!(passes(&[(key(0x200, 0x204, Outcome::Taken, Conditions::OfEvery), 1)]), []);
    }

    #[test]
    fn what_ran_wins_over_what_the_symbols_say() {
        let nop = |at| (Location::new(Address::from(at), Isa::T32), Classified::other(4));
        let ran = |at| (Location::new(Address::from(at), Isa::T32), Raw::<u64>::new(Classified::other(2)));
        let mut all = vec![ran(0x102), ran(0x108)];
        add_what_did_not_run(&mut all, vec![nop(0x100), nop(0x104), nop(0x108), nop(0x10c)]);
        let starts = all.iter().map(|(at, _)| at.address.get()).collect::<Vec<_>>();
        assert_eq!(starts, [0x102, 0x104, 0x108, 0x10c]);
    }
}
