//! Certain elements → directives.

use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

use crate::directive::{BeginReason, Directive, Handler, PreferredReturn, RunEnd, Transaction, Waypoints};
use crate::ids::{
    Address, ContextId, Exception, ExceptionLevel, Isa, Location, Privilege, Profile, SecurityState, Vmid,
};
use crate::protocol::Emit;
use crate::protocol::etmv4::address::AddressUnit;
use crate::protocol::etmv4::config::Config;
use crate::protocol::etmv4::packet::Context;
use crate::span::Span;

use super::element::{Element, Place};

/// Turns certain elements into directives, in execution order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Emission {
    profile: Profile,
    /// SF: words are A64.
    is_64_bit: bool,
    /// The context reported last.
    privilege: Option<Privilege>,
    context_id: Option<ContextId>,
    vmid: Option<Vmid>,
    /// The last address reported, if nothing was executed since: a context that is still to come may change
    /// its instruction set.
    address: Option<Place>,
    /// Whether the start of tracing was reported.
    has_begun: bool,
    /// Whether the next address depends on nothing before it.
    is_proof: bool,
    /// Whether there is a return stack. Calls make no entries between a trace info packet and its address.
    return_stack: bool,
    /// Whether cycles are counted: a count comes after the elements that it counts.
    holds: bool,
    /// If `holds`: the directives of the last P0 element and its followers, until the next P0 element or a
    /// count.
    held: Vec<(Directive, Span)>,
}

/// The state that repeatable packets depend on and change, while no directive is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settled {
    is_64_bit: bool,
    privilege: Option<Privilege>,
    address: Option<Place>,
}

/// The part in which states differ most: the address itself is also the decoder's newest one.
impl Hash for Settled {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.address.is_some().hash(state);
    }
}

/// The most directives held for a cycle count, to bound memory if no P0 element comes.
const MOST_HELD: usize = 64;

/// TYPE of a reset.
const RESET: u16 = 0;

/// M profile's value for no return address: the exception was taken on a return, or tail-chained.
const NO_RETURN_ADDRESS: u64 = 0xffff_fffe;

impl Emission {
    pub(super) const fn new(config: &Config) -> Self {
        Self {
            profile: config.profile,
            is_64_bit: config.has_64_bit_addresses,
            privilege: None,
            context_id: None,
            vmid: None,
            address: None,
            has_begun: false,
            is_proof: false,
            return_stack: config.return_stack,
            holds: config.cycle_counting,
            held: Vec::new(),
        }
    }

    /// The state; `None` for a state that few packets lead to.
    pub(super) fn settled(&self) -> Option<Settled> {
        let is_settled = self.has_begun && !self.is_proof && self.held.is_empty();
        let Self { is_64_bit, privilege, address, .. } = *self;
        is_settled.then_some(Settled { is_64_bit, privilege, address })
    }

    /// Whether directives are held for cycle counts.
    pub(super) const fn holds(&self) -> bool {
        self.holds
    }

    /// Continues in this state, after repeatable packets.
    pub(super) const fn resume(&mut self, Settled { is_64_bit, privilege, address }: Settled) {
        (self.is_64_bit, self.privilege, self.address) = (is_64_bit, privilege, address);
    }

    /// Emits P0 instructions of one packet.
    #[inline(always)]
    pub(super) fn atoms(&mut self, atoms: Waypoints, span: Span, emit: &mut impl Emit) {
        if !self.has_begun {
            return;
        }
        self.address = None;
        if !self.holds {
            emit.emit_waypoints(atoms, span);
            return;
        }
        // Each atom releases the one before it.
        if let Some((executed, before)) = atoms.split_last() {
            self.release(emit);
            emit.emit_waypoints(before, span);
            self.held.push((Waypoints::directive(executed), span));
        }
    }

    /// Emits the meaning of an element.
    pub(super) fn element(&mut self, element: Element, span: Span, emit: &mut impl Emit) {
        match element {
            Element::Atoms(atoms) => self.atoms(atoms, span, emit),
            Element::Exception { number, is_target, place } => {
                self.begin_p0(emit);
                self.exception(number, is_target, place, span, emit);
            }
            Element::Reset => {
                self.begin_p0(emit);
                let exception = Some(Exception::from_type(self.profile, RESET));
                let handler = Handler::Pending;
                let preferred_return = PreferredReturn::Unknown;
                self.out(Directive::Exception { exception, handler, preferred_return }, span, emit);
            }
            Element::Q { count, then } => {
                self.begin_p0(emit);
                let then = self.location(then);
                self.out(Directive::Unseen { instructions: count, then }, span, emit);
            }
            Element::Source(place) => {
                let location = self.location(place);
                if !self.has_begun {
                    self.out(
                        Directive::Begin { at: Some(location), why: BeginReason::Synchronised },
                        span,
                        emit,
                    );
                    self.has_begun = true;
                }
                self.begin_p0(emit);
                self.out(Directive::WaypointAt(location), span, emit);
            }
            Element::Nothing => self.begin_p0(emit),
            Element::Address(place) => self.go_on_at(place, span, emit),
            Element::Context(context) => self.context(context, span, emit),
            Element::TraceOn { overflowed } => {
                let why = if overflowed { BeginReason::Overflow } else { BeginReason::Enabled };
                self.release(emit);
                self.out(Directive::Begin { at: None, why }, span, emit);
                self.has_begun = true;
                self.address = None;
            }
            Element::TraceInfo => {
                self.is_proof = true;
                if self.return_stack {
                    self.out(Directive::CallsUnnoted, span, emit);
                }
            }
            Element::ExceptionReturn => self.out(Directive::ExceptionReturn, span, emit),
            Element::TransactionStart => {
                self.begin_p0(emit);
                self.out(Directive::Transaction(Transaction::Started), span, emit);
            }
            Element::Transaction(transaction) => self.out(Directive::Transaction(transaction), span, emit),
            Element::Events(events) => self.out(Directive::Events(events), span, emit),
            Element::Instrumentation(instrumentation) => {
                self.out(Directive::Instrumentation(instrumentation), span, emit);
            }
            Element::Timestamp(time) => self.out(Directive::Timestamp(time), span, emit),
            Element::Cycles(cycles) => {
                // The cycles passed from the last count up to the held P0 element.
                emit.emit(Directive::Cycles(cycles), span);
                self.release(emit);
            }
        }
    }

    /// Forgets the position, which is unknown up to the next address.
    pub(super) fn forget_position(&mut self, emit: &mut impl Emit) {
        self.release(emit);
        self.has_begun = false;
        self.address = None;
    }

    /// Emits the held directives.
    pub(super) fn release(&mut self, emit: &mut impl Emit) {
        for &(directive, span) in &self.held {
            match directive {
                Directive::WaypointPending => emit.emit_waypoints(Waypoints::EXECUTED, span),
                directive => emit.emit(directive, span),
            }
        }
        self.held.clear();
    }

    #[inline]
    fn begin_p0(&mut self, emit: &mut impl Emit) {
        self.address = None;
        if self.holds {
            self.release(emit);
        }
    }

    #[inline(always)]
    fn out(&mut self, directive: Directive, span: Span, emit: &mut impl Emit) {
        if self.holds {
            self.hold(directive, span, emit);
        } else {
            emit.emit(directive, span);
        }
    }

    fn hold(&mut self, directive: Directive, span: Span, emit: &mut impl Emit) {
        if self.held.len() < MOST_HELD {
            self.held.push((directive, span));
        } else {
            self.release(emit);
            emit.emit(directive, span);
        }
    }

    /// The location of an address in the present context.
    fn location(&self, place: Place) -> Location {
        let Place { address, alignment } = place;
        match alignment {
            _ if self.profile == Profile::M => {
                Location::new(Address::from(address.low_word()).aligned_for(Isa::T32), Isa::T32)
            }
            AddressUnit::Halfwords => Location::new(Address::from(address.low_word()), Isa::T32),
            AddressUnit::Words if self.is_64_bit => Location::new(address, Isa::A64),
            AddressUnit::Words => Location::new(Address::from(address.low_word()), Isa::A32),
        }
    }

    fn go_on_at(&mut self, place: Place, span: Span, emit: &mut impl Emit) {
        let location = self.location(place);
        if self.has_begun {
            self.out(Directive::Continue(location), span, emit);
        } else {
            self.out(Directive::Begin { at: Some(location), why: BeginReason::Synchronised }, span, emit);
            self.has_begun = true;
        }
        if core::mem::take(&mut self.is_proof) {
            self.out(Directive::Synchronised, span, emit);
        }
        self.address = Some(place);
    }

    fn context(&mut self, context: Context, span: Span, emit: &mut impl Emit) {
        let privilege = self.privilege_of(context);
        if self.privilege.replace(privilege) != Some(privilege) {
            self.out(Directive::Privilege(privilege), span, emit);
        }
        if let Some(vmid) = context.vmid.filter(|vmid| self.vmid != Some(*vmid)) {
            self.vmid = Some(vmid);
            self.out(Directive::Vmid(vmid), span, emit);
        }
        if let Some(context_id) = context.context_id.filter(|id| self.context_id != Some(*id)) {
            self.context_id = Some(context_id);
            self.out(Directive::ContextId(context_id), span, emit);
        }
        let is_64_bit = core::mem::replace(&mut self.is_64_bit, context.is_64_bit);
        // The last address came before the context that determines its instruction set.
        if let Some(place) = self.address.filter(|_| is_64_bit != context.is_64_bit) {
            self.out(Directive::Continue(self.location(place)), span, emit);
        }
    }

    fn exception(&mut self, number: u16, is_target: bool, place: Place, span: Span, emit: &mut impl Emit) {
        let location = self.location(place);
        let is_none = self.profile == Profile::M && location.address.get() == NO_RETURN_ADDRESS;
        let preferred_return = if is_none {
            PreferredReturn::Unknown
        } else if is_target {
            self.out(Directive::Continue(location), span, emit);
            PreferredReturn::At(location.address)
        } else {
            let end = RunEnd::BeforeWithoutWaypoints;
            self.out(Directive::RunTo { address: location.address, end }, span, emit);
            PreferredReturn::At(location.address)
        };
        let exception = Exception::from_type(self.profile, number);
        let handler = if exception.is_debug_entry() { Handler::DebugState } else { Handler::Pending };
        let exception = Some(exception);
        self.out(Directive::Exception { exception, handler, preferred_return }, span, emit);
    }

    /// The privilege of a context. M profile has no exception levels.
    fn privilege_of(&self, context: Context) -> Privilege {
        let level = ExceptionLevel::new(context.exception_level).filter(|_| self.profile == Profile::Ar);
        let security = match (context.non_secure_extension, context.non_secure) {
            (false, false) => SecurityState::Secure,
            (false, true) => SecurityState::NonSecure,
            (true, false) => SecurityState::Root,
            (true, true) => SecurityState::Realm,
        };
        Privilege { level, security }
    }
}
