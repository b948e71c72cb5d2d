//! Waypoints that the trace names by their own address, and instructions on unknown paths.

use crate::ids::Location;
use crate::isa::{Class, Instruction};
use crate::program::Program;

use super::super::code::{farthest_waypoint, instruction_at, is_waypoint};
use super::super::element::{Contradiction, Element, GapReason};
use super::super::execution::{Arrival, Execution, Obstacle, Place, Report, TargetIs};

/// The maximum number of unnamed instructions whose path flow tries to work out.
const MOST_INSTRUCTIONS: u64 = 1 << 12;

impl Execution {
    /// Passes everything up to the waypoint at `target`, which was executed.
    pub(super) fn waypoint_at(
        &mut self,
        program: &Program,
        target: Location,
        report: &mut Report<'_, impl FnMut(Element)>,
    ) -> Result<(), Obstacle> {
        let farthest = farthest_waypoint(self.rules);
        let distance = |from: &Location| target.address.offset_from(from.address);
        let from = self.here().ok();
        let from = from.filter(|from| distance(from).is_some_and(|bytes| bytes <= farthest));
        // At least one trace unit sends the address of an A32 instruction as that of a T32 one.
        let target = Location::new(target.address, from.map_or(target.isa, |from| from.isa));
        if from.is_none() {
            self.close(report);
            self.jump(Place::At(target));
        }
        loop {
            let (at, instruction) = self.next_instruction(program)?;
            let is_waypoint = is_waypoint(self.rules, &instruction);
            if at == target && is_waypoint {
                return self.pass_exit(program, (at, instruction), true, TargetIs::SentOrPredicted, report);
            }
            if at.address > target.address {
                let misses =
                    Contradiction::RunMissesEnd { from: from.unwrap_or(target), until: target.address };
                return Err(misses.into());
            }
            if is_waypoint {
                // Without an atom for the waypoint, the trace proves only that execution continued after it.
                self.pass_exit_unchecked((at, instruction), false, TargetIs::Sent, report)?;
            } else {
                self.pass_straight(program, (at, instruction), true, report)?;
            }
            if at == target {
                return Ok(());
            }
        }
    }

    /// Passes instructions that the trace does not name; execution continues at `then`.
    pub(super) fn unseen(
        &mut self,
        program: &Program,
        instructions: Option<u64>,
        then: Location,
        report: &mut Report<'_, impl FnMut(Element)>,
    ) {
        let from = self.here().ok();
        let count = instructions.filter(|count| *count <= MOST_INSTRUCTIONS);
        let last = from.zip(count).and_then(|(from, count)| self.only_path(program, from, count, then));
        match last {
            Some((at, instruction)) => {
                let passed = self.pass_path(program, (at, instruction), then, report);
                self.stop(passed, report);
            }
            None if instructions != Some(0) || from != Some(then) => {
                self.gap(GapReason::Unseen { from, instructions, then }, report);
            }
            None => {}
        }
        self.jump(Place::At(then));
    }

    /// The last of `count` instructions, if the path from `from` to `then` is unique: straight code in which
    /// at most the last instruction branches.
    fn only_path(
        &self,
        program: &Program,
        from: Location,
        count: u64,
        then: Location,
    ) -> Option<(Location, Instruction)> {
        let mut at = from;
        for passed in 1..=count {
            let instruction = instruction_at(program, at).ok()?;
            let following = at.after(instruction.bytes.into());
            if passed == count {
                let leads = match instruction.class {
                    Class::Direct(target) => target == then || instruction.conditional && following == then,
                    Class::Indirect => true,
                    _ => following == then,
                };
                return leads.then_some((at, instruction));
            }
            if is_waypoint(self.rules, &instruction) {
                return None;
            }
            at = following;
        }
        None
    }

    /// Passes everything up to and including the instruction `last`, which leads to `then`.
    fn pass_path(
        &mut self,
        program: &Program,
        (last, instruction): (Location, Instruction),
        then: Location,
        report: &mut Report<'_, impl FnMut(Element)>,
    ) -> Result<(), Obstacle> {
        while self.here()? != last {
            let next = self.next_instruction(program)?;
            self.pass_straight(program, next, true, report)?;
        }
        if is_waypoint(self.rules, &instruction) {
            let is_taken = match instruction.class {
                Class::Direct(target) => target == then,
                _ => true,
            };
            self.pass_exit(program, (last, instruction), is_taken, TargetIs::Sent, report)?;
        } else {
            self.pass_straight(program, (last, instruction), true, report)?;
            self.close(report);
        }
        self.arrival = Arrival::Named;
        Ok(())
    }
}
