//! Passing one instruction.

use crate::ids::{Isa, Location};
use crate::isa::{self, Class, Instruction, Unclassified};
use crate::program::Program;
use crate::span::Span;

use super::super::element::{BranchKind, Contradiction, Element, Ending, GapReason};
use super::{OpenBlock, Passed, Position, Stop, Walk};

impl Walk {
    pub(in crate::flow) fn instructions(
        &mut self,
        program: &Program,
        executed: u8,
        then_failed: bool,
        span: Span,
        sink: &mut impl FnMut(Element),
    ) {
        let atoms = core::iter::repeat_n(true, usize::from(executed)).chain(then_failed.then_some(false));
        for passed_condition in atoms {
            let result = self.atom(program, passed_condition, span, sink);
            self.stop(result, span, sink);
        }
    }

    /// One ETM atom: one instruction, or half of a 32-bit Thumb instruction.
    pub(in crate::flow) fn atom(
        &mut self,
        program: &Program,
        executed: bool,
        span: Span,
        sink: &mut impl FnMut(Element),
    ) -> Result<(), Stop> {
        let (at, instruction) = self.next_instruction(program)?;
        if self.rules.halfwords_count && at.isa.is_thumb() && instruction.bytes == 4 && !self.half_passed {
            self.half_passed = true;
            return Ok(());
        }
        self.half_passed = false;
        // A barrier is a waypoint only where waypoints are counted.
        let class = if instruction.is_branch() { instruction.class } else { Class::Other };
        self.pass(program, at, &Instruction { class, ..instruction }, executed, span, sink)
    }

    /// Fetches and classifies the instruction at the position.
    pub(in crate::flow) fn next_instruction(
        &mut self,
        program: &Program,
    ) -> Result<(Location, Instruction), Stop> {
        let Position::At(at) = self.position else { return self.not_at_an_instruction() };
        let Some(code) = program.code(at.address) else {
            return Err(Stop::Gap(match at.isa {
                Isa::Jazelle => GapReason::Undecodable(at, Unclassified::Jazelle),
                Isa::A64 => GapReason::Undecodable(at, Unclassified::A64),
                Isa::A32 | Isa::T32 | Isa::T32EE => GapReason::NoCode(at),
            }));
        };
        match isa::classify(code, at.address, at.isa) {
            Ok(instruction) => Ok((at, instruction)),
            Err(why) => Err(Stop::Gap(GapReason::Undecodable(at, why))),
        }
    }

    pub(in crate::flow) fn not_at_an_instruction<T>(&self) -> Result<T, Stop> {
        Err(match self.position {
            Position::Elsewhere => Stop::Gap(GapReason::AddressUnknown),
            _ => Stop::Nowhere,
        })
    }

    /// Adds one instruction to the open block and moves on.
    pub(in crate::flow) fn pass(
        &mut self,
        program: &Program,
        at: Location,
        instruction: &Instruction,
        executed: bool,
        span: Span,
        sink: &mut impl FnMut(Element),
    ) -> Result<(), Stop> {
        // PFTv1.0 does not say of a barrier whether it was executed: either atom only says that it was passed.
        let barrier = matches!(instruction.class, Class::Barrier(_));
        if !executed && !barrier && !instruction.conditional && !may_be_in_it_block(program, at) {
            return Err(Contradiction::UnconditionalFailed(at).into());
        }
        let behind = at.after(instruction.bytes.into());
        let open = self.open.get_or_insert(OpenBlock {
            start: at.address,
            end: at.address,
            last: at.address,
            isa: at.isa,
            instructions: 0,
            span,
        });
        open.end = behind.address;
        open.last = at.address;
        open.instructions += 1;
        open.span = span;
        self.set_passed(Passed {
            at,
            class: instruction.class,
            returns: instruction.returns,
            taken: executed,
        });
        let kind = match instruction.class {
            Class::Other => None,
            Class::Direct(_) => Some(BranchKind::Direct),
            Class::Indirect => Some(BranchKind::Indirect),
            Class::Barrier(_) => Some(BranchKind::Barrier),
        };
        self.position = match instruction.class {
            Class::Direct(target) if executed => Position::At(target),
            Class::Indirect if executed => Position::Elsewhere,
            _ => Position::At(behind),
        };
        if executed && instruction.link && self.rules.return_stack {
            self.return_stack.push(behind);
        }
        if let Some(kind) = kind {
            let (link, returns) = (instruction.link, instruction.returns);
            self.close(Ending::Branch { kind, taken: executed, link, returns }, sink);
        } else if !executed {
            self.close(Ending::ConditionFailed, sink);
        }
        Ok(())
    }
}

/// Whether an IT instruction may make the instruction at `at` conditional.
///
/// Execution may have come into an IT block by a return from an exception, so that what was passed does not tell: the
/// code before it does. That a data halfword or half an instruction looks like an IT instruction is harmless: a
/// contradiction goes unnoticed there.
pub(in crate::flow) fn may_be_in_it_block(program: &Program, at: Location) -> bool {
    /// An IT instruction governs four instructions of four bytes at the most.
    const FARTHEST_IT: i64 = 1 + 3 * 2;
    let is_it = |halfwords: i64| {
        let code = program.code(at.moved(-2 * halfwords).address).and_then(<[u8]>::first_chunk::<2>);
        code.is_some_and(|code| code[1] == 0b1011_1111 && code[0] & 0b1111 != 0)
    };
    at.isa.is_thumb() && (1..=FARTHEST_IT).any(is_it)
}
