//! ETMv4 and ETE packets → directives.
//!
//! A trace unit may trace speculatively. Elements enter the queue, and leave it when they are committed:
//!
//! ```text
//! atom, exception …   a P0 element: queued; if there are more than MAXSPEC of them, the oldest is committed
//! address, time …     queued after the P0 element that it belongs to
//! commit              the oldest P0 elements are emitted, with the elements after them
//! cancel              the newest P0 elements did not happen, nor did their targets; time did
//! mispredict          the newest atom is inverted, and its target did not happen
//! ```
//!
//! Without speculation the queue stays empty.

mod element;
mod emission;
mod memo;
mod queue;

use crate::directive::{Instrumentation, Transaction};
use crate::ids::{ExceptionLevel, Profile};
use crate::protocol::synchronisation::Tracking;
use crate::protocol::{Emit, Loss, Lower};
use crate::span::Span;

use super::atoms::Atoms;
use super::config::Config;
use super::packet::{
    AddressInterpretation, AddressPacket, Cancel, CycleCount, Exception, Packet, Q, TraceInfo,
};
use element::{Element, Impossible, Place};
use emission::Emission;
use queue::Queue;

/// Turns packets into directives.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Lowering {
    is_m_profile: bool,
    /// In ETE, events count even before the first trace info packet.
    is_ete: bool,
    transaction_start_is_p0: bool,
    greatest_speculation: u64,
    tracking: Tracking,
    /// Whether the trace unit lost trace: the reason for the next trace on packet.
    overflowed: bool,
    /// The P0 element that the next address packet completes.
    incomplete: Option<(Incomplete, Span)>,
    queue: Queue,
    emission: Emission,
}

/// A P0 element whose address comes in a packet of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
enum Incomplete {
    Exception(Exception),
    Q { count: Option<u64> },
}

impl Lowering {
    /// A lowering for the start of a source's trace.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self {
            is_m_profile: config.profile == Profile::M,
            is_ete: config.is_ete(),
            transaction_start_is_p0: config.transaction_start_is_p0,
            greatest_speculation: u64::from(config.greatest_speculation),
            tracking: Tracking::Unsynchronised,
            overflowed: false,
            incomplete: None,
            queue: Queue::default(),
            emission: Emission::new(config),
        }
    }

    /// Lowers any packet.
    #[inline(never)]
    fn lower_other(&mut self, packet: &Packet, span: Span, emit: &mut impl Emit) {
        let lowered = match (packet, self.tracking) {
            (Packet::ASync, _) => {
                self.tracking.synchronise();
                Ok(())
            }
            (_, Tracking::Unsynchronised | Tracking::Lost) => Ok(()),
            (Packet::TraceInfo(trace_info), _) => self.trace_info(trace_info, span, emit),
            (Packet::Event(events), Tracking::InStep) if self.is_ete => {
                self.follower(Element::Events(*events), span, emit)
            }
            (_, Tracking::InStep) => Ok(()),
            (packet, Tracking::Known) => self.packet(packet, span, emit),
        };
        if lowered.is_err() {
            self.lost(span, Loss::Lost, emit);
        }
    }

    /// Lowers a packet after a trace info packet.
    fn packet(&mut self, packet: &Packet, span: Span, emit: &mut impl Emit) -> Result<(), Impossible> {
        match packet {
            Packet::Atom(atoms) => self.atoms(*atoms, span, emit)?,
            Packet::Address(address) => self.address(address, span, emit)?,
            Packet::Context(context) => {
                if let Some(context) = context {
                    self.follower(Element::Context(*context), span, emit)?;
                }
            }
            Packet::Exception(exception) => self.begin(Incomplete::Exception(*exception), span)?,
            Packet::Q(q) => self.q(q, span, emit)?,
            Packet::SourceAddress(sent) => {
                let place = Place::of(*sent).ok_or(Impossible)?;
                self.p0(Element::Source(place), span, emit)?;
            }
            Packet::ExceptionReturn if self.is_m_profile => {
                self.p0(Element::ExceptionReturn, span, emit)?;
            }
            Packet::ExceptionReturn => self.follower(Element::ExceptionReturn, span, emit)?,
            Packet::FunctionReturn => self.p0(Element::Nothing, span, emit)?,
            Packet::PeReset => self.p0(Element::Reset, span, emit)?,
            Packet::TransactionStart if self.transaction_start_is_p0 => {
                self.p0(Element::TransactionStart, span, emit)?;
            }
            Packet::TransactionStart => {
                self.follower(Element::Transaction(Transaction::Started), span, emit)?;
            }
            Packet::TransactionCommit => {
                self.follower(Element::Transaction(Transaction::Committed), span, emit)?;
            }
            Packet::TransactionFailure => {
                self.follower(Element::Transaction(Transaction::Failed), span, emit)?;
            }
            Packet::Event(events) => self.follower(Element::Events(*events), span, emit)?,
            Packet::Instrumentation(packet) => {
                // Two bits always hold a valid level.
                if let Some(level) = ExceptionLevel::new(packet.exception_level) {
                    let instrumentation = Instrumentation { level, value: packet.value };
                    self.follower(Element::Instrumentation(instrumentation), span, emit)?;
                }
            }
            Packet::TraceOn => {
                let overflowed = core::mem::take(&mut self.overflowed);
                self.follower(Element::TraceOn { overflowed }, span, emit)?;
            }
            Packet::Timestamp(timestamp) => {
                self.follower(Element::Timestamp(timestamp.value), span, emit)?;
            }
            Packet::CycleCount(CycleCount { commit, cycles, .. }) => {
                if let Some(cycles) = cycles {
                    self.follower(Element::Cycles(*cycles), span, emit)?;
                }
                // Without speculation, every element was committed at once.
                if let Some(commit) = commit.filter(|_| self.greatest_speculation > 0) {
                    self.commit(commit, emit)?;
                }
            }
            Packet::Commit(count) => self.commit(*count, emit)?,
            Packet::Cancel(Cancel { atoms, count, mispredict, .. }) => {
                self.wrong_path(*atoms, *count, *mispredict, span)?;
                self.commit_surplus(emit)?;
            }
            Packet::Mispredict(atoms) => {
                self.wrong_path(*atoms, 0, true, span)?;
                self.commit_surplus(emit)?;
            }
            Packet::Discard | Packet::Overflow => self.forget(*packet == Packet::Overflow, emit),
            Packet::ASync
            | Packet::TraceInfo(_)
            | Packet::BranchFutureFlush
            | Packet::DataSynchronisation(_)
            | Packet::ConditionalInstruction(_)
            | Packet::ConditionalFlush
            | Packet::ConditionalResult(_)
            | Packet::Ignore
            | Packet::TimestampMarker => {}
        }
        Ok(())
    }

    #[inline]
    fn atoms(&mut self, atoms: Atoms, span: Span, emit: &mut impl Emit) -> Result<(), Impossible> {
        if self.incomplete.is_some() {
            return Err(Impossible);
        }
        let atoms = atoms.waypoints();
        if self.greatest_speculation == 0 && self.queue.is_empty() {
            self.emission.atoms(atoms, span, emit);
            return Ok(());
        }
        self.queue.push_atoms(atoms, span)?;
        self.commit_surplus(emit)
    }

    /// Adds a P0 element.
    fn p0(&mut self, element: Element, span: Span, emit: &mut impl Emit) -> Result<(), Impossible> {
        if self.incomplete.is_some() {
            return Err(Impossible);
        }
        self.queue.push_p0(element, span)?;
        self.commit_surplus(emit)
    }

    /// Commits P0 elements beyond the number that the unit can hold.
    fn commit_surplus(&mut self, emit: &mut impl Emit) -> Result<(), Impossible> {
        let surplus = self.queue.uncommitted().saturating_sub(self.greatest_speculation);
        self.commit(surplus, emit)
    }

    /// Adds an element that belongs to the P0 element before it.
    fn follower(&mut self, element: Element, span: Span, emit: &mut impl Emit) -> Result<(), Impossible> {
        if self.queue.is_empty() {
            self.emission.element(element, span, emit);
            return Ok(());
        }
        self.queue.push(element, span)
    }

    /// Begins a P0 element whose address comes next.
    const fn begin(&mut self, incomplete: Incomplete, span: Span) -> Result<(), Impossible> {
        if self.incomplete.is_some() {
            return Err(Impossible);
        }
        self.incomplete = Some((incomplete, span));
        Ok(())
    }

    fn address(
        &mut self,
        packet: &AddressPacket,
        span: Span,
        emit: &mut impl Emit,
    ) -> Result<(), Impossible> {
        let place = Place::of(packet.sent).ok_or(Impossible)?;
        // An exception's address has the context of the place where the exception was taken.
        if let Some(context) = packet.context {
            self.follower(Element::Context(context), span, emit)?;
        }
        match self.incomplete.take() {
            None => self.follower(Element::Address(place), span, emit),
            Some((Incomplete::Q { count }, began)) => {
                self.p0(Element::Q { count, then: place }, began.to(span), emit)
            }
            Some((Incomplete::Exception(exception), began)) => {
                let is_target = match exception.address {
                    AddressInterpretation::Return => false,
                    AddressInterpretation::TargetAndReturn => true,
                    AddressInterpretation::Reserved0 | AddressInterpretation::Reserved3 => {
                        return Err(Impossible);
                    }
                };
                let number = exception.number;
                self.p0(Element::Exception { number, is_target, place }, began.to(span), emit)
            }
        }
    }

    fn q(&mut self, q: &Q, span: Span, emit: &mut impl Emit) -> Result<(), Impossible> {
        match q.sent {
            None => self.begin(Incomplete::Q { count: q.count }, span),
            Some(sent) => {
                let then = Place::of(sent).ok_or(Impossible)?;
                self.p0(Element::Q { count: q.count, then }, span, emit)
            }
        }
    }

    /// Commits the oldest P0 elements.
    fn commit(&mut self, count: u64, emit: &mut impl Emit) -> Result<(), Impossible> {
        let Self { queue, emission, .. } = self;
        queue.commit(count, |element, span| emission.element(element, span, emit))
    }

    /// Adds `atoms`, then cancels the newest P0 elements, then inverts the newest atom if it was
    /// mispredicted.
    fn wrong_path(
        &mut self,
        atoms: Option<Atoms>,
        cancelled: u64,
        mispredicted: bool,
        span: Span,
    ) -> Result<(), Impossible> {
        self.incomplete = None;
        if let Some(atoms) = atoms {
            self.queue.push_atoms(atoms.waypoints(), span)?;
        }
        self.queue.cancel(cancelled)?;
        if mispredicted {
            self.queue.turn_newest_atom();
        }
        Ok(())
    }

    /// Drops uncommitted elements, which did not happen, and the position, which is unknown up to the next
    /// trace info packet.
    fn forget(&mut self, overflowed: bool, emit: &mut impl Emit) {
        let Self { queue, emission, .. } = self;
        queue.discard(|element, span| emission.element(element, span, emit));
        emission.forget_position(emit);
        self.incomplete = None;
        self.overflowed = overflowed;
        self.tracking = Tracking::InStep;
    }

    fn trace_info(&mut self, packet: &TraceInfo, span: Span, emit: &mut impl Emit) -> Result<(), Impossible> {
        if self.tracking != Tracking::Known {
            self.tracking = Tracking::Known;
            self.queue.begin(packet.speculation);
            if self.is_ete && packet.is_in_transaction() {
                self.follower(Element::Transaction(Transaction::UnderWay), span, emit)?;
            }
        }
        self.follower(Element::TraceInfo, span, emit)
    }
}

impl Lower for Lowering {
    type Packet = Packet;

    #[inline(always)]
    fn lower(&mut self, packet: &Packet, span: Span, emit: &mut impl Emit) {
        match (packet, self.tracking) {
            (Packet::Atom(atoms), Tracking::Known) => {
                if self.atoms(*atoms, span, emit).is_err() {
                    self.lost(span, Loss::Lost, emit);
                }
            }
            _ => self.lower_other(packet, span, emit),
        }
    }

    fn lost(&mut self, span: Span, loss: Loss, emit: &mut impl Emit) {
        self.forget(false, emit);
        self.tracking = Tracking::InStep;
        if self.tracking.lose() {
            emit.emit(loss.directive(), span);
        }
    }

    /// Drops uncommitted elements, which may not have happened.
    fn finish(&mut self, emit: &mut impl Emit) {
        let Self { queue, emission, .. } = self;
        queue.finish(|element, span| emission.element(element, span, emit));
        emission.release(emit);
    }
}
