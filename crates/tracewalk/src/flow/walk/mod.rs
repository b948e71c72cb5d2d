//! Follows directives instruction by instruction: simple, obviously right, and the reference in tests of
//! anything faster.
//!
//! ```text
//! to pass an instruction: fetch it, classify it, add it to the open block;
//!     a branch, a failed condition and every event close the open block
//! a taken direct branch moves the position, a taken indirect one waits for its target, everything else continues after itself
//! anything that the image cannot confirm is a Gap, and the position is lost until the trace names one
//! ```

mod instructions;
mod places;
mod runs;
mod unseen;

use crate::directive::{Directive, Transaction, Transfer};
use crate::program::Program;

use super::data::DataState;
use super::element::{Element, EventKind, Gap, GapReason, Proof};
use super::execution::{Context, Execution, Last, Pending, Place, Report, TargetIs, Trust};

impl Execution {
    /// Follows one directive. The state has to be [spelled out](Execution::spell_out).
    pub(super) fn follow(
        &mut self,
        program: &Program,
        directive: Directive,
        report: &mut Report<'_, impl FnMut(Element)>,
    ) {
        let context = self.context;
        match directive {
            Directive::ContextId(context_id) => {
                self.enter_context(program, Context { context_id: Some(context_id), ..context }, report);
            }
            Directive::Vmid(vmid) => {
                self.enter_context(program, Context { vmid: Some(vmid), ..context }, report);
            }
            Directive::Privilege(privilege) => {
                self.enter_context(program, Context { privilege, ..context }, report);
            }
            _ => self.follow_in_context(program.view(self.view), directive, report),
        }
    }

    /// Follows a directive that does not change the context, through the current view.
    fn follow_in_context(
        &mut self,
        program: &Program,
        directive: Directive,
        report: &mut Report<'_, impl FnMut(Element)>,
    ) {
        match directive {
            Directive::Instructions { executed, then_failed } => {
                self.instructions(program, executed, then_failed, report);
            }
            Directive::Waypoint { executed } => {
                let passed = self.waypoint(program, executed, TargetIs::Predicted, report);
                self.stop(passed, report);
            }
            Directive::WaypointPending => {
                let passed = self.waypoint(program, true, TargetIs::SentOrPredicted, report);
                self.stop(passed, report);
            }
            Directive::WaypointTo(target) => {
                let passed = self.waypoint(program, true, TargetIs::Sent, report);
                self.stop(passed, report);
                self.go_on_at(target, report);
            }
            Directive::WaypointAt(target) => {
                let passed = self.waypoint_at(program, target, report);
                self.stop(passed, report);
            }
            Directive::Unseen { instructions, then } => self.unseen(program, instructions, then, report),
            Directive::RunTo { address, end } => {
                let passed = self.run_to(program, address, end, report);
                self.stop(passed, report);
            }
            Directive::Continue(target) => self.go_on_at(target, report),
            Directive::Resume(target) => self.resume(program, target, report),
            Directive::Begin { at, why } => self.begin(at, why, report),
            Directive::Confirm(at) => self.confirm(at, report),
            Directive::Exception { exception, handler, preferred_return } => {
                self.exception(program, (exception, handler, preferred_return), report);
            }
            Directive::Data(transfer) => self.transfer(program, transfer, report),
            Directive::LateData { tag, value } => {
                if let Some(transfer) = self.data.late(tag, value) {
                    self.event(EventKind::Data(transfer), report);
                }
            }
            Directive::Synchronised => {
                self.notes_calls = self.rules.return_stack;
                self.synchronised(report);
            }
            Directive::CallsUnnoted => self.begin_synchronisation(),
            Directive::Lost => self.lose(true, report),
            Directive::Cut => self.lose(false, report),
            Directive::Transaction(Transaction::Failed) => {
                self.event(EventKind::Transaction(Transaction::Failed), report);
                self.jump(Place::Pending(Pending::Handler));
            }
            Directive::ExceptionReturn
            | Directive::ClockChanged
            | Directive::Timestamp(_)
            | Directive::Cycles(_)
            | Directive::Trigger
            | Directive::Events(_)
            | Directive::Instrumentation(_)
            | Directive::Transaction(_)
            | Directive::ContextId(_)
            | Directive::Vmid(_)
            | Directive::Privilege(_) => {
                if let Some(kind) = event_kind(directive) {
                    self.event(kind, report);
                }
            }
        }
    }

    fn enter_context(
        &mut self,
        program: &Program,
        context: Context,
        report: &mut Report<'_, impl FnMut(Element)>,
    ) {
        self.context = context;
        self.view = program.view_in(context.context_id, context.vmid);
        let Context { context_id, vmid, privilege } = context;
        self.event(EventKind::Context { context_id, vmid, privilege }, report);
    }

    fn transfer(
        &mut self,
        program: &Program,
        transfer: Transfer,
        report: &mut Report<'_, impl FnMut(Element)>,
    ) {
        if let Some(transfer) = self.data.transfer(program, self.last(), transfer) {
            self.event(EventKind::Data(transfer), report);
        }
    }

    fn synchronised(&mut self, report: &mut Report<'_, impl FnMut(Element)>) {
        if self.place == Place::Lost {
            return;
        }
        match core::mem::take(&mut self.trust) {
            // A run of instructions continues after the proof, and is reported as one block.
            Trust::Sound => {}
            // A block is in doubt as a whole or not at all.
            Trust::InDoubt => self.close(report),
            Trust::Disputed => {
                self.trust = Trust::InDoubt;
                return;
            }
        }
        let (at, span) = (self.position(), report.span);
        report.element(Element::Proof(Proof { at, span }));
    }

    /// Handles missing trace; `doubt` states whether earlier elements may be wrong.
    fn lose(&mut self, doubt: bool, report: &mut Report<'_, impl FnMut(Element)>) {
        self.close(report);
        if doubt {
            self.trust = Trust::InDoubt;
        }
        report.element(Element::Gap(Gap { reason: GapReason::TraceLost, span: report.span, doubt }));
        self.jump(Place::Lost);
        self.forget_returns();
        self.last = Last::At(None);
        self.data = DataState::default();
    }
}

/// The event of a directive that does not move execution.
#[inline]
pub(super) const fn event_kind(directive: Directive) -> Option<EventKind> {
    match directive {
        Directive::ExceptionReturn => Some(EventKind::ExceptionReturn),
        Directive::ClockChanged => Some(EventKind::ClockChanged),
        Directive::Timestamp(time) => Some(EventKind::Timestamp(time)),
        Directive::Cycles(cycles) => Some(EventKind::Cycles(cycles)),
        Directive::Trigger => Some(EventKind::Trigger),
        Directive::Events(events) => Some(EventKind::Events(events)),
        Directive::Instrumentation(instrumentation) => Some(EventKind::Instrumentation(instrumentation)),
        // A failed transaction moves execution.
        Directive::Transaction(
            transaction @ (Transaction::Started | Transaction::UnderWay | Transaction::Committed),
        ) => Some(EventKind::Transaction(transaction)),
        _ => None,
    }
}
