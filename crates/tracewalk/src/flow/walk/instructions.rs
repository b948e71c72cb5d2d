//! Passes one instruction.

use crate::ids::Location;
use crate::isa::{Class, Instruction};
use crate::program::Program;

use super::super::code::{Exit, instruction_at, may_be_in_it_block};
use super::super::element::{Contradiction, Element, Ending, GapReason};
use super::super::execution::{Arrival, Execution, Last, Obstacle, OpenBlock, Place, Report, TargetIs};

impl Execution {
    pub(super) fn instructions(
        &mut self,
        program: &Program,
        executed: u8,
        then_failed: bool,
        report: &mut Report<'_, impl FnMut(Element)>,
    ) {
        let atoms = core::iter::repeat_n(true, usize::from(executed)).chain(then_failed.then_some(false));
        for executed in atoms {
            let passed = self.atom(program, executed, report);
            self.stop(passed, report);
        }
    }

    /// One ETM atom: one instruction, or half of a 32-bit Thumb instruction.
    fn atom(
        &mut self,
        program: &Program,
        executed: bool,
        report: &mut Report<'_, impl FnMut(Element)>,
    ) -> Result<(), Obstacle> {
        let (at, instruction) = self.next_instruction(program)?;
        if self.rules.halfwords_count && at.isa.is_thumb() && instruction.bytes == 4 && !self.half_passed {
            self.half_passed = true;
            return Ok(());
        }
        self.half_passed = false;
        self.pass_branch(program, (at, instruction), executed, TargetIs::Sent, report)
    }

    /// Passes an instruction that may be a branch. A barrier is not a branch: it ends a block only as a
    /// waypoint.
    pub(super) fn pass_branch(
        &mut self,
        program: &Program,
        (at, instruction): (Location, Instruction),
        executed: bool,
        target_is: TargetIs,
        report: &mut Report<'_, impl FnMut(Element)>,
    ) -> Result<(), Obstacle> {
        if instruction.is_branch() {
            self.pass_exit(program, (at, instruction), executed, target_is, report)
        } else {
            self.pass_straight(program, (at, instruction), executed, report)
        }
    }

    /// Passes an instruction after which execution continues.
    pub(super) fn pass_straight(
        &mut self,
        program: &Program,
        (at, instruction): (Location, Instruction),
        executed: bool,
        report: &mut Report<'_, impl FnMut(Element)>,
    ) -> Result<(), Obstacle> {
        check_condition(program, at, &instruction, executed)?;
        let following = at.after(instruction.bytes.into());
        let open = self.open_through(at, following, report);
        self.last = Last::At(Some(at));
        self.arrival = Arrival::Straight;
        self.place = Place::Open(open);
        if !executed {
            report.element(Element::Block(open.block(Ending::ConditionFailed)));
            self.place = Place::At(following);
        } else if following.address < at.address {
            // No block continues across the end of memory.
            self.close(report);
        }
        Ok(())
    }

    /// Passes an instruction that ends a block: a branch or, as a waypoint, a barrier.
    pub(super) fn pass_exit(
        &mut self,
        program: &Program,
        (at, instruction): (Location, Instruction),
        executed: bool,
        target_is: TargetIs,
        report: &mut Report<'_, impl FnMut(Element)>,
    ) -> Result<(), Obstacle> {
        if !executed && !instruction.is_branch() && self.rules.waypoints_fail_by_condition {
            return self.pass_straight(program, (at, instruction), false, report);
        }
        // PFTv1.0 does not report whether a barrier was executed: either atom reports only that it was
        // passed.
        if !matches!(instruction.class, Class::Barrier(_)) {
            check_condition(program, at, &instruction, executed)?;
        }
        self.pass_exit_unchecked((at, instruction), executed, target_is, report)
    }

    /// As `pass_exit`, whether or not the instruction has a condition that can fail.
    pub(super) fn pass_exit_unchecked(
        &mut self,
        (at, instruction): (Location, Instruction),
        executed: bool,
        target_is: TargetIs,
        report: &mut Report<'_, impl FnMut(Element)>,
    ) -> Result<(), Obstacle> {
        let exit = Exit::of(&instruction, at);
        let Exit { following, kind, link, returns, .. } = exit;
        let open = self.open_through(at, following, report);
        report.element(Element::Block(open.block(Ending::Branch { kind, taken: executed, link, returns })));
        self.last = Last::At(Some(at));
        self.report_return(&exit, executed, report);
        self.leave(&exit, executed, target_is)?;
        Ok(())
    }

    /// The open block, or a new one, with the instruction at `at` as its last.
    fn open_through<S>(&self, at: Location, following: Location, report: &Report<'_, S>) -> OpenBlock {
        let (start, before) = match self.place {
            Place::Open(open) => (open.start, open.instructions),
            _ => (at.address, 0),
        };
        OpenBlock {
            start,
            end: following.address,
            last: at.address,
            isa: at.isa,
            instructions: before + 1,
            span: report.span,
        }
    }

    /// The instruction to be passed next.
    pub(super) fn next_instruction(
        &mut self,
        program: &Program,
    ) -> Result<(Location, Instruction), Obstacle> {
        let at = self.here()?;
        let instruction = instruction_at(program, at).map_err(Obstacle::Gap)?;
        Ok((at, instruction))
    }

    /// The location of the next instruction. If its address is still pending, the trace sent none.
    pub(super) fn here(&mut self) -> Result<Location, Obstacle> {
        self.resolve_pending()?;
        self.position().ok_or(match self.place {
            Place::Pending(_) => Obstacle::Gap(GapReason::AddressUnknown),
            _ => Obstacle::Lost,
        })
    }
}

/// Checks that an instruction whose condition failed has a condition.
fn check_condition(
    program: &Program,
    at: Location,
    instruction: &Instruction,
    executed: bool,
) -> Result<(), Contradiction> {
    if executed || instruction.conditional || may_be_in_it_block(program, at) {
        Ok(())
    } else {
        Err(Contradiction::UnconditionalFailed(at))
    }
}
