//! ETMv3 packets → directives.
//!
//! The last atom is held back until the next one, because a branch packet may cancel it, even after other
//! packets. Directives of these packets are queued after the atom:
//!
//! ```text
//! atom      release what is held; hold the atom
//! branch    target: queue it. exception: drop what it cancels, release the rest
//! i-sync    periodic: queue it. else: release what is held, start again
//! others    queue them
//! ```

mod memo;

use alloc::vec::Vec;

use crate::directive::{Directive, Handler, PreferredReturn, Transfer, TransferValue};
use crate::ids::{ContextId, Exception, Location, Profile};
use crate::protocol::SecurityBits;
use crate::protocol::synchronisation::Tracking;
use crate::protocol::{Emit, Loss, Lower};
use crate::span::Span;

use super::config::Config;
use super::exception::BranchException;
use super::packet::{Atom, Branch, DataAddress, ISync, PHeader, Packet};

/// Turns packets into directives.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Lowering {
    profile: Profile,
    tracking: Tracking,
    /// The atom or return that the next exception may cancel.
    held: Option<(Cancellable, Span)>,
    /// The target of the held instruction, if a branch packet came next; `None` without `held`.
    target: Option<(Location, Span)>,
    /// The directives after `held` and `target`; empty without `held`. At most `LONGEST_QUEUE` long.
    queue: Vec<(Directive, Span)>,
    /// Cycles counted since the last atom, and the span of the last packet that counted some.
    cycles: Option<(u64, Span)>,
    /// The last security state and context ID reported.
    security: SecurityBits,
    context_id: Option<ContextId>,
    /// Whether no I-sync has followed the last A-sync yet: the next I-sync depends on nothing before it.
    after_a_sync: bool,
}

/// An atom or return that an exception may cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
enum Cancellable {
    /// An atom: its instruction may not have completed.
    Instruction(Atom),
    /// ARMv7-M: the return from an exception, whose instruction completed (DDI 0337G, 14.6, "Exception exit").
    Return,
}

/// The most directives queued after an atom, to bound memory. A load multiple with all its transfers needs 16
/// or so; no trace unit sends this many between an atom and its cancellation.
const LONGEST_QUEUE: usize = 64;

impl Lowering {
    /// A lowering for the start of a source's trace.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self {
            profile: config.profile,
            tracking: Tracking::Unsynchronised,
            held: None,
            target: None,
            queue: Vec::new(),
            cycles: None,
            security: SecurityBits::default(),
            context_id: None,
            after_a_sync: false,
        }
    }

    #[inline(always)]
    fn p_header(&mut self, p_header: PHeader, span: Span, emit: &mut impl Emit) {
        let Some((executed, failed)) = p_header.run() else {
            self.by_atoms(p_header, span, emit);
            return;
        };
        let last = match (executed, failed) {
            (0, false) => return,
            (_, false) => Atom::E,
            (_, true) => Atom::N,
        };
        let mut certain = executed - u8::from(!failed);
        if matches!(self.held, Some((Cancellable::Instruction(Atom::E), _))) && self.nothing_waits() {
            // This P-header makes the held atom certain, so its span proves the atom as well.
            certain += 1;
        } else {
            self.release(emit);
        }
        if certain > 0 {
            emit.emit(Directive::Instructions { executed: certain, then_failed: false }, span);
        }
        self.held = Some((Cancellable::Instruction(last), span));
    }

    /// Lowers a P-header with cycles, or whose atoms may come in any order.
    #[inline(never)]
    fn by_atoms(&mut self, p_header: PHeader, span: Span, emit: &mut impl Emit) {
        if let Some((executed, failed)) = p_header.steps() {
            for _ in 0..executed {
                self.count_cycles(1, span);
                self.atom(Atom::E, span, emit);
            }
            if failed {
                self.count_cycles(1, span);
                self.atom(Atom::N, span, emit);
            }
        } else if let Some((cycles, executed)) = p_header.wait() {
            self.count_cycles(u64::from(cycles), span);
            if executed {
                self.atom(Atom::E, span, emit);
            }
        } else {
            p_header.atoms().for_each(|atom| self.atom(atom, span, emit));
        }
    }

    #[inline]
    fn atom(&mut self, atom: Atom, span: Span, emit: &mut impl Emit) {
        if atom == Atom::W {
            self.count_cycles(1, span);
            return;
        }
        self.release(emit);
        self.emit_cycles(emit);
        self.held = Some((Cancellable::Instruction(atom), span));
    }

    fn branch(&mut self, branch: &Branch, span: Span, emit: &mut impl Emit) {
        let taken = branch.exception.as_ref().and_then(|information| {
            information.exception(self.profile, branch.target.map(|target| target.address))
        });
        let cancel = branch.exception.as_ref().is_some_and(BranchException::cancel);
        match taken {
            None => {
                if cancel {
                    self.cancel(emit);
                }
                if let Some(target) = branch.target {
                    self.target(target, span, emit);
                }
            }
            Some(exception) => {
                if cancel {
                    self.cancel(emit);
                }
                self.release(emit);
                let handler = match branch.target {
                    _ if exception.is_debug_entry() => Handler::DebugState,
                    Some(target) => Handler::At(target),
                    None => Handler::Unknown,
                };
                let preferred_return = preferred_return(exception, cancel);
                emit.emit(
                    Directive::Exception { exception: Some(exception), handler, preferred_return },
                    span,
                );
            }
        }
        if let Some(BranchException::Information(information)) = branch.exception {
            self.security(information.security, span, emit);
        }
    }

    fn i_sync(&mut self, i_sync: &ISync, span: Span, emit: &mut impl Emit) {
        let Some(why) = i_sync.reason.begins(self.tracking == Tracking::Known) else {
            if let Some(location) = i_sync.location {
                self.queue(Directive::Confirm(location), span, emit);
                self.proven(span, emit);
            }
            self.state(i_sync, span, emit);
            return;
        };
        self.release(emit);
        self.emit_cycles(emit);
        if let Some(cycles) = i_sync.cycles {
            emit.emit(Directive::Cycles(u64::from(cycles)), span);
        }
        if let Some(in_progress) = i_sync.in_progress {
            // The packet reports this instruction as executed, but not what ran between it and the next one.
            emit.emit(Directive::Begin { at: Some(in_progress), why }, span);
            self.state(i_sync, span, emit);
            emit.emit(Directive::Instructions { executed: 1, then_failed: false }, span);
        }
        emit.emit(Directive::Begin { at: i_sync.location, why }, span);
        self.tracking = Tracking::Known;
        self.proven(span, emit);
        self.state(i_sync, span, emit);
    }

    fn proven(&mut self, span: Span, emit: &mut impl Emit) {
        if core::mem::take(&mut self.after_a_sync) {
            self.queue(Directive::Synchronised, span, emit);
        }
    }

    /// Reports the state that an I-sync names.
    fn state(&mut self, i_sync: &ISync, span: Span, emit: &mut impl Emit) {
        self.security(i_sync.security, span, emit);
        if let Some(context_id) = i_sync.context_id {
            self.context_id(context_id, span, emit);
        }
    }

    fn security(&mut self, security: SecurityBits, span: Span, emit: &mut impl Emit) {
        if security != self.security {
            self.security = security;
            self.queue(Directive::Privilege(security.privilege()), span, emit);
        }
    }

    fn context_id(&mut self, context_id: ContextId, span: Span, emit: &mut impl Emit) {
        if self.context_id != Some(context_id) {
            self.context_id = Some(context_id);
            self.queue(Directive::ContextId(context_id), span, emit);
        }
    }

    fn data(&mut self, address: Option<DataAddress>, value: TransferValue, span: Span, emit: &mut impl Emit) {
        let big_endian = address.and_then(|address| address.big_endian).unwrap_or(false);
        let address = address.map(|address| address.address);
        self.queue(Directive::Data(Transfer { address, value, big_endian }), span, emit);
    }

    /// The last instruction returned from an exception.
    fn exception_exit(&mut self, span: Span, emit: &mut impl Emit) {
        match self.profile {
            Profile::M => {
                self.release(emit);
                self.held = Some((Cancellable::Return, span));
            }
            Profile::Ar => self.queue(Directive::ExceptionReturn, span, emit),
        }
    }

    /// Holds or queues the place where execution continues after the last instruction.
    #[inline(always)]
    fn target(&mut self, target: Location, span: Span, emit: &mut impl Emit) {
        if self.held.is_some() && self.nothing_waits() {
            self.target = Some((target, span));
        } else {
            self.queue(Directive::Continue(target), span, emit);
        }
    }

    /// Whether nothing followed the held atom.
    #[inline(always)]
    fn nothing_waits(&self) -> bool {
        self.target.is_none() && self.queue.is_empty()
    }

    /// Emits `directive`, or queues it after the held atom.
    fn queue(&mut self, directive: Directive, span: Span, emit: &mut impl Emit) {
        if self.queue.len() == LONGEST_QUEUE {
            self.release(emit);
        }
        if self.held.is_some() {
            self.queue.push((directive, span));
        } else {
            emit.emit(directive, span);
        }
    }

    /// Emits the held atom, which nothing can cancel any more, and the directives after it.
    #[inline(always)]
    fn release(&mut self, emit: &mut impl Emit) {
        match self.held.take() {
            Some((Cancellable::Instruction(Atom::E), span)) => {
                emit.emit(Directive::Instructions { executed: 1, then_failed: false }, span);
            }
            Some((Cancellable::Instruction(_), span)) => {
                emit.emit(Directive::Instructions { executed: 0, then_failed: true }, span);
            }
            Some((Cancellable::Return, span)) => emit.emit(Directive::ExceptionReturn, span),
            None => {}
        }
        if let Some((target, span)) = self.target.take() {
            emit.emit(Directive::Continue(target), span);
        }
        if !self.queue.is_empty() {
            self.queue.drain(..).for_each(|(directive, span)| emit.emit(directive, span));
        }
    }

    /// Drops the held atom and its effects in the queue.
    fn cancel(&mut self, emit: &mut impl Emit) {
        self.held = None;
        self.target = None;
        for (directive, span) in self.queue.drain(..) {
            let effect = matches!(
                directive,
                Directive::Continue(_)
                    | Directive::Confirm(_)
                    | Directive::Synchronised
                    | Directive::ExceptionReturn
                    | Directive::Data(_)
            );
            if !effect {
                emit.emit(directive, span);
            }
        }
    }

    fn count_cycles(&mut self, cycles: u64, span: Span) {
        if cycles > 0 {
            self.cycles = Some((self.cycles.map_or(0, |(before, _)| before) + cycles, span));
        }
    }

    /// Lowers infrequent packets.
    #[inline(never)]
    fn infrequent(&mut self, packet: &Packet, span: Span, emit: &mut impl Emit) {
        match (packet, self.tracking) {
            (Packet::ASync, _) => {
                self.tracking.synchronise();
                self.after_a_sync = true;
            }
            (_, Tracking::Unsynchronised | Tracking::Lost) => {}
            (Packet::ISync(i_sync), _) => self.i_sync(i_sync, span, emit),
            (Packet::Trigger, _) => self.queue(Directive::Trigger, span, emit),
            (Packet::Vmid(vmid), _) => self.queue(Directive::Vmid(*vmid), span, emit),
            (Packet::Timestamp { value, clock_changed }, _) => {
                if *clock_changed {
                    self.queue(Directive::ClockChanged, span, emit);
                }
                self.queue(Directive::Timestamp(*value), span, emit);
            }
            (Packet::ContextId(context_id), _) => self.context_id(*context_id, span, emit),
            // The data packets after an exception entry are the automatic push, which belongs to no
            // instruction.
            (Packet::Ignore | Packet::ExceptionEntry, _) => {}
            // Before the first I-sync, instructions have no known place; cycles count nevertheless.
            (Packet::PHeader(p_header), Tracking::InStep) => {
                let cycles = p_header.atoms().filter(|&atom| atom == Atom::W).count();
                self.count_cycles(cycles as u64, span);
            }
            (_, Tracking::InStep) => {}
            (Packet::PHeader(p_header), _) => self.p_header(*p_header, span, emit),
            (Packet::Branch(branch), _) => self.branch(branch, span, emit),
            (Packet::CycleCount(cycles), _) => self.queue(Directive::Cycles(u64::from(*cycles)), span, emit),
            (Packet::ExceptionExit, _) => self.exception_exit(span, emit),
            (Packet::OutOfOrderData { tag, value }, _) => {
                if let Some(value) = *value {
                    self.queue(Directive::LateData { tag: tag.get(), value }, span, emit);
                }
            }
            (Packet::OutOfOrderPlaceholder { tag, address }, _) => {
                self.data(*address, TransferValue::Pending(tag.get()), span, emit);
            }
            (Packet::NormalData { address, value }, _) => {
                let value = value.map_or(TransferValue::NotTraced, TransferValue::Value);
                self.data(*address, value, span, emit);
            }
            (Packet::ValueNotTraced { address }, _) => {
                self.data(*address, TransferValue::NotTraced, span, emit);
            }
            (Packet::StoreFailed, _) => self.data(None, TransferValue::StoreFailed, span, emit),
            (Packet::DataSuppressed, _) => self.data(None, TransferValue::Suppressed, span, emit),
        }
    }

    fn emit_cycles(&mut self, emit: &mut impl Emit) {
        if let Some((cycles, span)) = self.cycles.take() {
            emit.emit(Directive::Cycles(cycles), span);
        }
    }
}

/// The preferred return of an exception. An undefined instruction is traced and never cancelled (table 7.7),
/// and is itself the preferred return; every other instruction that did not complete is cancelled.
fn preferred_return(exception: Exception, cancel: bool) -> PreferredReturn {
    match (exception, cancel) {
        (Exception::Ar(9), false) => PreferredReturn::Last,
        // HardFault, which other faults escalate to, and UsageFault.
        (Exception::M(3 | 6), false) => PreferredReturn::AtFault,
        (Exception::Ar(8) | Exception::M(1), _) => PreferredReturn::Unknown,
        _ => PreferredReturn::Next,
    }
}

impl Lower for Lowering {
    type Packet = Packet;

    #[inline(always)]
    fn lower(&mut self, packet: &Packet, span: Span, emit: &mut impl Emit) {
        match (packet, self.tracking) {
            (Packet::PHeader(p_header), Tracking::Known) => self.p_header(*p_header, span, emit),
            (Packet::Branch(branch), Tracking::Known) if branch.exception.is_none() => {
                if let Some(target) = branch.target {
                    self.target(target, span, emit);
                }
            }
            _ => self.infrequent(packet, span, emit),
        }
    }

    fn lost(&mut self, span: Span, loss: Loss, emit: &mut impl Emit) {
        self.finish(emit);
        self.after_a_sync = false;
        if self.tracking.lose() {
            emit.emit(loss.directive(), span);
        }
    }

    fn finish(&mut self, emit: &mut impl Emit) {
        self.release(emit);
        self.emit_cycles(emit);
    }
}
