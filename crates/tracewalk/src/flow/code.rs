//! The program's code as execution reads it: at a location, up to the end of the instruction set's memory.

use crate::directive::Rules;
use crate::ids::{Isa, Location};
use crate::isa::{self, Access, Barrier, Class, Direction, Instruction, Return, Unclassified};
use crate::program::Program;

use super::element::{BranchKind, GapReason};

/// The longest code without a waypoint, in bytes. A trace unit sends a waypoint update if more than 4096
/// bytes lie between waypoints (IHI 0035B, 4.10).
const FARTHEST_WAYPOINT: u64 = 4096 + 8;

/// The same for a trace unit that sends nothing for the length of code alone: no program has longer straight
/// code.
const FARTHEST_BY_PROGRAMS: u64 = 1 << 16;

/// The longest code without a waypoint, in bytes.
pub(super) const fn farthest_waypoint(rules: Rules) -> u64 {
    if rules.waypoints_may_be_far { FARTHEST_BY_PROGRAMS } else { FARTHEST_WAYPOINT }
}

/// Whether an instruction is a waypoint of these rules.
pub(super) const fn is_waypoint(rules: Rules, instruction: &Instruction) -> bool {
    match instruction.class {
        Class::Direct(_) | Class::Indirect | Class::Barrier(Barrier::Isb) => true,
        Class::Barrier(Barrier::Dmb | Barrier::Dsb) => rules.barriers_are_waypoints,
        Class::Wait => rules.waits_are_waypoints,
        Class::TransactionStart => rules.transaction_starts_are_waypoints,
        Class::Other => match instruction.access {
            Some(Access { direction: Direction::Load, .. }) => rules.loads_are_waypoints,
            Some(Access { direction: Direction::Store, .. }) => rules.stores_are_waypoints,
            Some(Access { direction: Direction::Swap, .. }) => {
                rules.loads_are_waypoints || rules.stores_are_waypoints
            }
            None => false,
        },
    }
}

/// An instruction that ends a block: a branch or, as a waypoint, a barrier.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exit {
    pub(super) at: Location,
    /// The location after the instruction.
    pub(super) following: Location,
    pub(super) kind: BranchKind,
    /// The target if the instruction is taken; `None` if only the trace can state it.
    pub(super) target: Option<Location>,
    pub(super) link: bool,
    pub(super) returns: Option<Return>,
}

impl Exit {
    /// The instruction at `at` as one that ends a block.
    pub(super) fn of(instruction: &Instruction, at: Location) -> Self {
        let following = at.after(instruction.bytes.into());
        let (kind, target) = match instruction.class {
            Class::Direct(target) => (BranchKind::Direct, Some(target)),
            Class::Indirect => (BranchKind::Indirect, None),
            Class::Barrier(_) | Class::Wait | Class::TransactionStart | Class::Other => {
                (BranchKind::Barrier, Some(following))
            }
        };
        Self { at, following, kind, target, link: instruction.link, returns: instruction.returns }
    }
}

/// The code from `at` to the end of the instruction set's memory. An image's bytes after that end belong to
/// other instruction sets.
#[inline]
pub(super) fn code_at(program: &Program, at: Location) -> Option<&[u8]> {
    let code = program.code(at.address)?;
    let last = usize::try_from(at.isa.last_address().offset_from(at.address)?).unwrap_or(usize::MAX);
    Some(code.get(..=last).unwrap_or(code))
}

/// The instruction at `at`, or why there is none.
pub(super) fn instruction_at(program: &Program, at: Location) -> Result<Instruction, GapReason> {
    let Some(code) = code_at(program, at) else {
        return Err(match at.isa {
            Isa::Jazelle => GapReason::Undecodable(at, Unclassified::Jazelle),
            Isa::A32 | Isa::T32 | Isa::T32EE | Isa::A64 => GapReason::NoCode(at),
        });
    };
    isa::classify(code, at.address, at.isa).map_err(|why| GapReason::Undecodable(at, why))
}

/// Whether an IT instruction may make the instruction at `at` conditional.
///
/// A return from an exception may have entered an IT block, so the code before `at` decides, not the
/// instructions passed. A data halfword or half an instruction may look like an IT instruction. The only
/// effect is that a contradiction there goes unnoticed.
pub(super) fn may_be_in_it_block(program: &Program, at: Location) -> bool {
    /// An IT instruction governs at most four instructions of four bytes.
    const FARTHEST_IT: i64 = 1 + 3 * 2;
    let is_it = |halfwords: i64| {
        let code = program.code(at.moved(-2 * halfwords).address).and_then(<[u8]>::first_chunk::<2>);
        code.is_some_and(|code| code[1] == 0b1011_1111 && code[0] & 0b1111 != 0)
    };
    at.isa.is_thumb() && (1..=FARTHEST_IT).any(is_it)
}
