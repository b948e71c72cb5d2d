//! Packets → directives.

mod memo;

use crate::directive::{Directive, Handler, PreferredReturn, RunEnd};
use crate::ids::{ContextId, Exception, Location, Vmid};
use crate::protocol::SecurityBits;
use crate::protocol::synchronisation::Tracking;
use crate::protocol::{Emit, Loss, Lower};
use crate::span::Span;

use super::packet::{Atom, Branch, ExceptionInformation, ISync, Packet, Timestamp, WaypointUpdate};

/// Turns packets into directives, in execution order.
///
/// The lowering holds nothing back: no PFT packet revokes an earlier one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Lowering {
    /// Until the position is known, only times, context and triggers are passed on, which need none.
    tracking: Tracking,
    /// The context that was last passed on; `None` for parts that were never traced.
    context_id: Option<ContextId>,
    vmid: Option<Vmid>,
    security: Option<SecurityBits>,
    /// Whether no I-sync has followed the last A-sync yet: the next I-sync depends on nothing before it.
    after_a_sync: bool,
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
            after_a_sync: false,
        }
    }

    fn i_sync(&mut self, packet: &ISync, emit: &mut impl FnMut(Directive)) {
        if let Some(cycles) = packet.cycles {
            emit(Directive::Cycles(u64::from(cycles)));
        }
        // A periodic I-sync only confirms a known position.
        let began = packet.reason.begins(self.tracking == Tracking::Known);
        emit(match began {
            Some(why) => Directive::Begin { at: Some(packet.location), why },
            None => Directive::Confirm(packet.location),
        });
        self.tracking = Tracking::Known;
        if core::mem::take(&mut self.after_a_sync) {
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
        // Every I-sync sets the base, so a known position implies a known target.
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
        // On debug entry, the packet's address and state have no meaning.
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
                self.after_a_sync = true;
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
        self.after_a_sync = false;
        if self.tracking.lose() {
            emit.emit(loss.directive(), span);
        }
    }

    fn finish(&mut self, _emit: &mut impl Emit) {}
}

/// The preferred return of the exception with this number, relative to how far the trace has come.
///
/// Section 5.2 of IHI 0035B: before the exception a waypoint update brings the trace to the last instruction
/// executed. For SVC, SMC and HVC that is the instruction itself; for aborts and breakpoints, the one before.
/// Both therefore resume at the next instruction. An undefined instruction counts as executed as well, but
/// its return address is its own.
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
