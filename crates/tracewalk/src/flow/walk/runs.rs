//! Passes everything up to a waypoint or an address.

use crate::directive::RunEnd;
use crate::ids::{Address, Location};
use crate::isa::{Class, Instruction};
use crate::program::Program;

use super::super::code::{farthest_waypoint, is_waypoint, may_be_in_it_block};
use super::super::element::{Contradiction, Element, GapReason};
use super::super::execution::{Execution, Obstacle, Report, TargetIs};

/// The maximum length in bytes of a run that names its end. No program has straight code of this length, and
/// every eight bytes of a damaged MTB buffer may name a run.
const LONGEST_RUN: u64 = 1 << 16;

impl Execution {
    /// Passes everything up to and including the next waypoint.
    pub(super) fn waypoint(
        &mut self,
        program: &Program,
        executed: bool,
        target_is: TargetIs,
        report: &mut Report<'_, impl FnMut(Element)>,
    ) -> Result<(), Obstacle> {
        let waypoint = self.all_or_nothing(|execution| execution.run_to_waypoint(program, report))?;
        self.pass_exit(program, waypoint, executed, target_is, report)
    }

    /// Passes the instructions before the next waypoint, and returns the waypoint.
    fn run_to_waypoint(
        &mut self,
        program: &Program,
        report: &mut Report<'_, impl FnMut(Element)>,
    ) -> Result<(Location, Instruction), Obstacle> {
        let start = self.here()?;
        loop {
            let (at, instruction) = self.next_instruction(program)?;
            if self.is_waypoint(&instruction) {
                return Ok((at, instruction));
            }
            if at.bytes_since(start.address) > farthest_waypoint(self.rules) {
                return Err(Contradiction::NoBranchInReach(start).into());
            }
            self.pass_straight(program, (at, instruction), true, report)?;
        }
    }

    /// Passes several instructions that the trace proves together: if the trace contradicts the last ones, it
    /// does not prove that the first ones were executed.
    fn all_or_nothing<T>(
        &mut self,
        pass: impl FnOnce(&mut Self) -> Result<T, Obstacle>,
    ) -> Result<T, Obstacle> {
        let (place, last) = (self.place, self.last);
        let passed = pass(self);
        if let Err(Obstacle::Gap(GapReason::Contradiction(_))) = passed {
            (self.place, self.last) = (place, last);
        }
        passed
    }

    const fn is_waypoint(&self, instruction: &Instruction) -> bool {
        is_waypoint(self.rules, instruction)
    }

    /// Passes everything up to `until`.
    pub(super) fn run_to(
        &mut self,
        program: &Program,
        until: Address,
        end: RunEnd,
        report: &mut Report<'_, impl FnMut(Element)>,
    ) -> Result<(), Obstacle> {
        match end {
            RunEnd::Through | RunEnd::BeforeWithoutWaypoints => {
                self.all_or_nothing(|execution| execution.run_as_far_as(program, until, end, report))
            }
            RunEnd::Before | RunEnd::Jumps => self.run_as_far_as(program, until, end, report),
        }
    }

    fn run_as_far_as(
        &mut self,
        program: &Program,
        until: Address,
        end: RunEnd,
        report: &mut Report<'_, impl FnMut(Element)>,
    ) -> Result<(), Obstacle> {
        let from = match (self.here(), end) {
            // An exception may come before the address of a branch is sent, whether the branch was predicted
            // or not.
            (Err(Obstacle::Gap(_)), RunEnd::BeforeWithoutWaypoints) => {
                return Err(Obstacle::Gap(GapReason::AddressUnknown));
            }
            (from, _) => from?,
        };
        let misses = Contradiction::RunMissesEnd { from, until };
        let Some(distance) = until.offset_from(from.address).filter(|distance| *distance <= LONGEST_RUN)
        else {
            return Err(misses.into());
        };
        loop {
            // After the last instruction of memory, addresses wrap and distances do not.
            let passed = self.here()?.bytes_since(from.address);
            match end {
                RunEnd::Through if passed > distance => return Ok(()),
                RunEnd::BeforeWithoutWaypoints if passed >= distance => return Ok(()),
                RunEnd::Before if passed == distance => return Ok(()),
                RunEnd::Jumps if passed == distance => {
                    // If the instruction cannot jump, flow continues after it, and the next address in the
                    // trace contradicts that.
                    let jump = self.next_instruction(program)?;
                    return self.pass_branch(program, jump, true, TargetIs::Sent, report);
                }
                RunEnd::Before | RunEnd::Jumps if passed > distance => return Err(misses.into()),
                _ => self.pass_inside_run(program, until, end, report)?,
            }
        }
    }

    /// Passes an instruction inside a run, which does not branch.
    fn pass_inside_run(
        &mut self,
        program: &Program,
        until: Address,
        end: RunEnd,
        report: &mut Report<'_, impl FnMut(Element)>,
    ) -> Result<(), Obstacle> {
        let (at, instruction) = self.next_instruction(program)?;
        let passes = Contradiction::RunPassesBranch { at, until };
        if matches!(end, RunEnd::Through | RunEnd::BeforeWithoutWaypoints) {
            // The trace has an atom for each waypoint, for a barrier as for a branch.
            if self.is_waypoint(&instruction) {
                return Err(passes.into());
            }
            return self.pass_straight(program, (at, instruction), true, report);
        }
        if !instruction.is_branch() {
            return self.pass_straight(program, (at, instruction), true, report);
        }
        // An MTB need not write a packet for a branch to the next address (DDI 0486B, 2.3.1).
        let next = at.after(instruction.bytes.into());
        if instruction.class == Class::Direct(next) && !instruction.conditional {
            return self.pass_exit(program, (at, instruction), true, TargetIs::Sent, report);
        }
        if !instruction.conditional && !may_be_in_it_block(program, at) {
            return Err(passes.into());
        }
        self.pass_exit(program, (at, instruction), false, TargetIs::Sent, report)
    }
}
