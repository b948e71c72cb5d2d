//! Packets → directives.

mod memo;

use crate::directive::{Directive, Handler, PreferredReturn, RunEnd};
use crate::ids::{ContextId, Exception, Location, Vmid};
use crate::protocol::SecurityBits;
use crate::protocol::synchronisation::Tracking;
use crate::protocol::{Emit, Loss, Lower};
use crate::span::Span;

use super::packet::{Atom, Branch, ExceptionInformation, ISync, Packet, Timestamp, WaypointUpdate};

/// What packets mean, in the order in which it happened.
///
/// Nothing is held back: no PFT packet takes back what an earlier one said.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Lowering {
    /// Until it is known, only what needs no position is passed on: times, context and triggers.
    tracking: Tracking,
    /// The context that was last passed on; `None` for parts that were never traced.
    context_id: Option<ContextId>,
    vmid: Option<Vmid>,
    security: Option<SecurityBits>,
    /// No I-sync came since the last A-sync: the next one does not rest on anything before.
    behind_a_sync: bool,
}

impl Default for Lowering {
    fn default() -> Self {
        Self::new()
    }
}

impl Lowering {
    /// For the start of a source's trace.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            tracking: Tracking::Unsynchronised,
            context_id: None,
            vmid: None,
            security: None,
            behind_a_sync: false,
        }
    }

    fn i_sync(&mut self, packet: &ISync, emit: &mut impl FnMut(Directive)) {
        if let Some(cycles) = packet.cycles {
            emit(Directive::Cycles(u64::from(cycles)));
        }
        // A periodic one is of no consequence where the position is known.
        let began = packet.reason.begins(self.tracking == Tracking::Known);
        emit(match began {
            Some(why) => Directive::Begin { at: Some(packet.location), why },
            None => Directive::Confirm(packet.location),
        });
        self.tracking = Tracking::Known;
        if core::mem::take(&mut self.behind_a_sync) {
            emit(Directive::Synchronised);
        }
        self.security(packet.security, emit);
        if let Some(context_id) = packet.context_id {
            self.context_id(context_id, emit);
        }
    }

    fn atom(&self, packet: &Atom, emit: &mut impl FnMut(Directive)) {
        if let Some(cycles) = packet.cycles {
            emit(Directive::Cycles(u64::from(cycles)));
        }
        if self.tracking == Tracking::Known {
            packet.atoms.iter().for_each(|executed| emit(Directive::Waypoint { executed }));
        }
    }

    fn branch(&mut self, packet: &Branch, emit: &mut impl FnMut(Directive)) {
        if let Some(cycles) = packet.cycles {
            emit(Directive::Cycles(u64::from(cycles)));
        }
        // An I-sync gives a base, so that there is a target wherever there is a position.
        let (true, Some(target)) = (self.tracking == Tracking::Known, packet.target) else { return };
        match packet.exception {
            Some(exception) if exception.was_taken() => self.exception(exception, target, emit),
            Some(exception) => {
                emit(Directive::WaypointTo(target));
                self.security(exception.security, emit);
            }
            None => emit(Directive::WaypointTo(target)),
        }
    }

    fn exception(
        &mut self,
        information: ExceptionInformation,
        handler: Location,
        emit: &mut impl FnMut(Directive),
    ) {
        let exception = information.exception();
        // Debug entry: neither address nor state of the packet have a meaning.
        let debug_entry = exception.is_some_and(Exception::is_debug_entry);
        emit(Directive::Exception {
            exception,
            handler: if debug_entry { Handler::DebugState } else { Handler::At(handler) },
            preferred_return: preferred_return(information.number),
        });
        if !debug_entry {
            self.security(information.security, emit);
        }
    }

    fn timestamp(packet: &Timestamp, emit: &mut impl FnMut(Directive)) {
        if packet.clock_changed {
            emit(Directive::ClockChanged);
        }
        emit(Directive::Timestamp(packet.value));
        if let Some(cycles) = packet.cycles {
            emit(Directive::Cycles(u64::from(cycles)));
        }
    }

    fn security(&mut self, security: SecurityBits, emit: &mut impl FnMut(Directive)) {
        if self.security.replace(security) != Some(security) {
            emit(Directive::Privilege(security.privilege()));
        }
    }

    fn context_id(&mut self, context_id: ContextId, emit: &mut impl FnMut(Directive)) {
        if self.context_id.replace(context_id) != Some(context_id) {
            emit(Directive::ContextId(context_id));
        }
    }
}

impl Lower for Lowering {
    type Packet = Packet;

    fn lower(&mut self, packet: &Packet, span: Span, emit: &mut impl Emit) {
        let emit = &mut |directive| emit.emit(directive, span);
        match packet {
            Packet::ASync => {
                self.tracking.synchronise();
                self.behind_a_sync = true;
            }
            _ if self.tracking.is_on_trial() => {}
            Packet::Ignore => {}
            Packet::ISync(i_sync) => self.i_sync(i_sync, emit),
            Packet::Atom(atom) => self.atom(atom, emit),
            Packet::Branch(branch) => self.branch(branch, emit),
            Packet::WaypointUpdate(WaypointUpdate { reached, .. }) => {
                if let (true, Some(reached)) = (self.tracking == Tracking::Known, reached) {
                    emit(Directive::RunTo { address: reached.address, end: RunEnd::Through });
                }
            }
            Packet::ContextId(context_id) => self.context_id(*context_id, emit),
            Packet::Trigger => emit(Directive::Trigger),
            Packet::ExceptionReturn => {
                if self.tracking == Tracking::Known {
                    emit(Directive::ExceptionReturn);
                }
            }
            Packet::Timestamp(timestamp) => Self::timestamp(timestamp, emit),
            Packet::Vmid(vmid) => {
                if self.vmid.replace(*vmid) != Some(*vmid) {
                    emit(Directive::Vmid(*vmid));
                }
            }
        }
    }

    fn lost(&mut self, span: Span, loss: Loss, emit: &mut impl Emit) {
        self.behind_a_sync = false;
        if self.tracking.lose() {
            emit.emit(loss.directive(), span);
        }
    }

    fn finish(&mut self, _emit: &mut impl Emit) {}
}

/// Where the architecture resumes after an exception of this number, seen from how far the trace has come.
///
/// Section 5.2 of IHI 0035B: before the exception a waypoint update brings the trace to the last instruction executed.
/// For SVC, SMC and HVC that is the instruction itself, for aborts and breakpoints the one before; so both resume at the
/// next instruction. An undefined instruction counts as executed as well, but its return address is its own.
const fn preferred_return(number: u16) -> PreferredReturn {
    match number {
        // Debug entry, SMC, Hyp entry, asynchronous abort, ThumbEE check.
        1..=5 => PreferredReturn::Next,
        // Reset: the trace does not show the execution before it.
        8 => PreferredReturn::Unknown,
        9 => PreferredReturn::Last,
        // SVC, prefetch abort, data abort, generic, IRQ, FIQ.
        10..=15 => PreferredReturn::Next,
        // Reserved.
        _ => PreferredReturn::Unknown,
    }
}
