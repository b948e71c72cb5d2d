//! Passing everything up to a waypoint or an address.

use crate::directive::RunEnd;
use crate::ids::{Address, Location};
use crate::isa::{Barrier, Class, Instruction, Return};
use crate::program::Program;
use crate::span::Span;

use super::super::element::{Contradiction, Element, GapReason};
use super::instructions::may_be_in_it_block;
use super::{Position, Stop, Walk};

/// How far the code may go on without a waypoint. A trace unit sends a waypoint update where more than 4096 bytes lie
/// between waypoints (IHI 0035B, 4.6).
pub(in crate::flow) const FARTHEST_WAYPOINT: u64 = 4096 + 8;
/// How far a run that names its end may go. Straight code of this length is not a program, and every eight bytes of a
/// damaged MTB buffer may ask for a run.
const LONGEST_RUN: u64 = 1 << 16;

impl Walk {
    /// Everything up to and including the next waypoint.
    pub(in crate::flow) fn waypoint(
        &mut self,
        program: &Program,
        executed: bool,
        span: Span,
        sink: &mut impl FnMut(Element),
    ) -> Result<(), Stop> {
        let (at, waypoint) = self.run_to_waypoint(program, span, sink)?;
        // The newest entry is the target; a BLX that was predicted has still to make its own.
        let predicted = if executed && waypoint.class == Class::Indirect {
            let popped = self.rules.return_stack.then(|| self.return_stack.pop()).flatten();
            Some(popped.ok_or(Contradiction::ReturnStackEmpty(at)))
        } else {
            None
        };
        self.pass(program, at, &waypoint, executed, span, sink)?;
        if let Some(target) = predicted {
            if waypoint.returns == Some(Return::Exception) {
                self.interrupted.pop();
            }
            self.position = Position::At(target?);
            self.unconfirmed = None;
        }
        Ok(())
    }

    /// A waypoint that was executed, and went to `target`.
    pub(in crate::flow) fn waypoint_to(
        &mut self,
        program: &Program,
        target: Location,
        span: Span,
        sink: &mut impl FnMut(Element),
    ) {
        let passed = self
            .run_to_waypoint(program, span, sink)
            .and_then(|(at, waypoint)| self.pass(program, at, &waypoint, true, span, sink));
        self.stop(passed, span, sink);
        self.go_on_at(target, span, sink);
    }

    /// Passes what stands before the next waypoint, which it returns.
    pub(in crate::flow) fn run_to_waypoint(
        &mut self,
        program: &Program,
        span: Span,
        sink: &mut impl FnMut(Element),
    ) -> Result<(Location, Instruction), Stop> {
        let (open, last) = (self.open, self.last);
        let found = self.search_waypoint(program, span, sink);
        if let Err(Stop::Gap(GapReason::Contradiction(_))) = found {
            // What says that these instructions were executed says as well that a waypoint is among them.
            (self.open, self.last) = (open, last);
        }
        found
    }

    fn search_waypoint(
        &mut self,
        program: &Program,
        span: Span,
        sink: &mut impl FnMut(Element),
    ) -> Result<(Location, Instruction), Stop> {
        let mut start = None;
        loop {
            let (at, instruction) = self.next_instruction(program)?;
            if self.is_waypoint(&instruction) {
                return Ok((at, instruction));
            }
            let start = *start.get_or_insert(at);
            if at.bytes_since(start.address) > FARTHEST_WAYPOINT {
                return Err(Contradiction::NoBranchInReach(start).into());
            }
            let plain = Instruction { class: Class::Other, ..instruction };
            self.pass(program, at, &plain, true, span, sink)?;
        }
    }

    pub(in crate::flow) fn is_waypoint(&self, instruction: &Instruction) -> bool {
        match instruction.class {
            Class::Direct(_) | Class::Indirect | Class::Barrier(Barrier::Isb) => true,
            Class::Barrier(Barrier::Dmb | Barrier::Dsb) => self.rules.barriers_are_waypoints,
            Class::Other => false,
        }
    }

    /// Everything up to `until`. Of a run through instructions that cannot end there nothing is told.
    pub(in crate::flow) fn run_to(
        &mut self,
        program: &Program,
        until: Address,
        end: RunEnd,
        span: Span,
        sink: &mut impl FnMut(Element),
    ) -> Result<(), Stop> {
        let (open, last) = (self.open, self.last);
        let result = self.run_as_far_as(program, until, end, span, sink);
        if let (RunEnd::Through, Err(Stop::Gap(GapReason::Contradiction(_)))) = (end, &result) {
            (self.open, self.last) = (open, last);
        }
        result
    }

    fn run_as_far_as(
        &mut self,
        program: &Program,
        until: Address,
        end: RunEnd,
        span: Span,
        sink: &mut impl FnMut(Element),
    ) -> Result<(), Stop> {
        let Position::At(from) = self.position else { return self.not_at_an_instruction() };
        let misses = Contradiction::RunMissesEnd { from, until };
        if until.offset_from(from.address).is_none_or(|bytes| bytes > LONGEST_RUN) {
            return Err(misses.into());
        }
        loop {
            let Position::At(at) = self.position else { return self.not_at_an_instruction() };
            let arrived = match end {
                RunEnd::Through => at.address > until,
                RunEnd::Before | RunEnd::Jumps => at.address >= until,
            };
            if arrived {
                return match end {
                    RunEnd::Jumps if at.address == until => self.jump_from_here(program, span, sink),
                    RunEnd::Before | RunEnd::Jumps if at.address != until => Err(misses.into()),
                    _ => Ok(()),
                };
            }
            self.pass_inside_run(program, until, end, span, sink)?;
        }
    }

    /// An instruction of a run, which does not branch.
    pub(in crate::flow) fn pass_inside_run(
        &mut self,
        program: &Program,
        until: Address,
        end: RunEnd,
        span: Span,
        sink: &mut impl FnMut(Element),
    ) -> Result<(), Stop> {
        let (at, instruction) = self.next_instruction(program)?;
        if !instruction.is_branch() {
            // Before a waypoint update no waypoint was passed, a barrier no more than a branch.
            if end == RunEnd::Through && self.is_waypoint(&instruction) {
                return Err(Contradiction::RunPassesBranch { at, until }.into());
            }
            let plain = Instruction { class: Class::Other, ..instruction };
            return self.pass(program, at, &plain, true, span, sink);
        }
        // A branch to the next address changes nothing that an MTB must write a packet for (DDI 0486B, 2.3.1).
        let next = at.after(instruction.bytes.into());
        if end != RunEnd::Through && instruction.class == Class::Direct(next) && !instruction.conditional {
            return self.pass(program, at, &instruction, true, span, sink);
        }
        let may_not_branch = instruction.conditional || may_be_in_it_block(program, at);
        if end == RunEnd::Through || !may_not_branch {
            return Err(Contradiction::RunPassesBranch { at, until }.into());
        }
        self.pass(program, at, &instruction, false, span, sink)
    }

    /// The instruction here was executed and jumped; the trace says where to.
    pub(in crate::flow) fn jump_from_here(
        &mut self,
        program: &Program,
        span: Span,
        sink: &mut impl FnMut(Element),
    ) -> Result<(), Stop> {
        let (at, instruction) = self.next_instruction(program)?;
        // Behind an instruction that cannot jump flow goes on, and what the trace says next contradicts that.
        let class = if instruction.is_branch() { instruction.class } else { Class::Other };
        self.pass(program, at, &Instruction { class, ..instruction }, true, span, sink)
    }
}
