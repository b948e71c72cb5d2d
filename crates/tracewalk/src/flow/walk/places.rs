//! Directives that state where execution is or continues.

use crate::directive::{BeginReason, Granularity, Handler, PreferredReturn};
use crate::ids::{Address, Exception, Location};
use crate::isa::Raises;
use crate::program::Program;

use super::super::code::instruction_at;
use super::super::element::{Contradiction, Element, EventKind, GapReason};
use super::super::execution::{Arrival, Execution, Last, Pending, Place, Report, Trust};
use super::super::vectors::{self, Entered};

impl Execution {
    /// Continues at the address that the trace states.
    pub(super) fn go_on_at(&mut self, target: Location, report: &mut Report<'_, impl FnMut(Element)>) {
        self.half_passed = false;
        if let Place::Pending(pending) = self.place {
            self.arrive(pending, target);
            return;
        }
        let expected = self.position().filter(|&expected| expected != target);
        if let Some(expected) = expected {
            if let Some(contradiction) = self.contradiction(expected, target) {
                self.gap(GapReason::Contradiction(contradiction), report);
            }
            self.close(report);
        }
        if expected.is_some() || self.place == Place::Lost {
            self.place = Place::At(target);
        }
        self.arrival = Arrival::Named;
    }

    /// The contradiction if execution continues at `found` instead of at `expected`.
    fn contradiction(&self, expected: Location, found: Location) -> Option<Contradiction> {
        let at = self.last()?;
        match self.arrival {
            Arrival::Named => None,
            Arrival::Branched => Some(Contradiction::WrongTarget { at, expected, found }),
            Arrival::Straight => Some(Contradiction::NotABranch { at, went_to: found }),
        }
    }

    /// Tracing begins.
    pub(super) fn begin(
        &mut self,
        at: Option<Location>,
        why: BeginReason,
        report: &mut Report<'_, impl FnMut(Element)>,
    ) {
        // An ETM sends the target of a branch even if nothing after the branch is traced, unless it
        // overflowed.
        let target_is_missing = self.rules.granularity == Granularity::Instructions
            && matches!(self.place, Place::Pending(pending) if pending.is_target());
        if target_is_missing && matches!(why, BeginReason::Enabled | BeginReason::DebugExit) {
            self.gap(GapReason::AddressUnknown, report);
        }
        self.close(report);
        self.jump(at.map_or(Place::Lost, Place::At));
        self.forget_returns();
        self.last = Last::At(None);
        self.event(EventKind::TraceOn(why), report);
    }

    /// Compares the position with that of a periodic synchronisation.
    pub(super) fn confirm(&mut self, at: Location, report: &mut Report<'_, impl FnMut(Element)>) {
        match self.position() {
            Some(expected) if expected == at => {}
            Some(expected) => {
                let was_sound = self.trust == Trust::Sound;
                let contradiction = Contradiction::WrongPosition { expected, found: at };
                self.gap(GapReason::Contradiction(contradiction), report);
                if was_sound {
                    self.trust = Trust::Disputed;
                }
                self.jump(Place::At(at));
            }
            None => self.jump(Place::At(at)),
        }
        self.forget_returns();
    }

    pub(super) fn exception(
        &mut self,
        program: &Program,
        (exception, handler, preferred_return): (Option<Exception>, Handler, PreferredReturn),
        report: &mut Report<'_, impl FnMut(Element)>,
    ) {
        let preferred_return = self.preferred_return(program, preferred_return);
        if let (Some(at), Some(address)) = (self.position(), preferred_return) {
            self.interrupted.push(Location::new(address, at.isa));
        }
        let entered = match (exception, handler) {
            (None, Handler::At(handler)) if self.rules.m_profile => vectors::entered(program, handler),
            _ => Entered::Exception(exception),
        };
        let kind = match entered {
            Entered::Exception(exception) => {
                EventKind::Exception { exception, preferred_return, handler: handler.location() }
            }
            Entered::ByDebugger => EventKind::TraceOn(BeginReason::DebugExit),
        };
        self.event(kind, report);
        self.jump(match handler {
            Handler::At(handler) => Place::At(handler),
            Handler::Pending => Place::Pending(Pending::Handler),
            Handler::DebugState => Place::Pending(Pending::DebugState),
            Handler::Unknown => Place::Lost,
        });
    }

    /// The address at which execution should resume after an exception.
    fn preferred_return(&self, program: &Program, preferred_return: PreferredReturn) -> Option<Address> {
        let is_fault: fn(&Program, Location) -> bool = match preferred_return {
            PreferredReturn::At(address) => return Some(address),
            PreferredReturn::Unknown => return None,
            PreferredReturn::Next => |_, _| false,
            // A branch that was passed is not the instruction that could not be executed: the latter was not
            // traced.
            PreferredReturn::Last => |program, last| !is_branch(program, last),
            PreferredReturn::AtFault => is_undefined,
        };
        let fault = self.last().filter(|&last| is_fault(program, last));
        fault.or(self.position()).map(|at| at.address)
    }

    /// Continues after a return from an exception.
    pub(super) fn resume(
        &mut self,
        program: &Program,
        target: Location,
        report: &mut Report<'_, impl FnMut(Element)>,
    ) {
        match vectors::tail_chained(program, target) {
            Some(exception) => {
                let handler = Some(target);
                self.event(EventKind::Exception { exception, preferred_return: None, handler }, report);
                self.jump(Place::At(target));
            }
            None => self.go_on_at(target, report),
        }
    }
}

/// Whether the instruction always faults.
fn is_undefined(program: &Program, at: Location) -> bool {
    instruction_at(program, at).is_ok_and(|instruction| instruction.raises == Some(Raises::Undefined))
}

/// Whether the instruction branches.
fn is_branch(program: &Program, at: Location) -> bool {
    instruction_at(program, at).is_ok_and(|instruction| instruction.is_branch())
}
