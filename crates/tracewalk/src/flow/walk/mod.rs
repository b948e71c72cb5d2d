//! Following directives instruction by instruction.
//!
//! ```text
//! position: nowhere | at an instruction | behind an indirect branch, waiting for its target
//! to pass an instruction: fetch it, classify it, add it to the open block;
//!     a taken direct branch moves the position, a taken indirect one waits, everything else goes on behind itself
//! a branch, a failed condition and every event close the open block
//! what the image cannot confirm is a Gap, and the position is nowhere until the trace names one
//! ```

mod instructions;
mod places;
mod runs;
mod segment;

use crate::directive::{Directive, Rules, Transfer};
use crate::ids::{Address, ContextId, Isa, Location, SecurityState, Vmid};
use crate::isa::{Class, Return};
use crate::program::{Program, ViewId};
use crate::span::Span;

pub(super) use instructions::may_be_in_it_block;
pub(super) use runs::FARTHEST_WAYPOINT;

use super::data::DataState;
use super::element::{Block, Contradiction, Element, Ending, Event, EventKind, Gap, GapReason, Proof};
use super::location_stack::LocationStack;

/// The plain walk: the oracle for anything faster.
///
/// ```
/// use tracewalk::directive::{BeginReason, Directive, Rules};
/// use tracewalk::flow::{Element, Walk};
/// use tracewalk::ids::{Address, Isa, Location};
/// use tracewalk::program::Program;
/// use tracewalk::span::Span;
///
/// let mut program = Program::new();
/// program.add(Address::new(0x100), &[0x01, 0x20, 0x70, 0x47])?; // movs r0, #1; bx lr
/// let mut walk = Walk::new(Rules::default());
/// let mut blocks = Vec::new();
/// let mut note = |element| {
///     if let Element::Block(block) = element {
///         blocks.push((block.start, block.end));
///     }
/// };
/// let at = Some(Location::new(Address::new(0x100), Isa::T32));
/// walk.follow(&program, Directive::Begin { at, why: BeginReason::Enabled }, Span::default(), &mut note);
/// walk.follow(&program, Directive::Instructions { executed: 2, then_failed: false }, Span::default(), &mut note);
/// walk.finish(&mut note);
/// assert_eq!(blocks, [(Address::new(0x100), Address::new(0x104))]);
/// # Ok::<(), tracewalk::program::AddRegionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Walk {
    rules: Rules,
    pub(super) position: Position,
    pub(super) open: Option<OpenBlock>,
    /// Where predicted returns go: behind the calls that were executed.
    pub(super) return_stack: LocationStack,
    /// Where exceptions were taken from and execution has not returned to.
    pub(super) interrupted: LocationStack,
    /// The instruction passed last, as long as nothing has said yet where execution went from there.
    pub(super) unconfirmed: Option<Passed>,
    /// The instruction passed last.
    pub(super) last: Option<Location>,
    /// Whether the first half of a 32-bit Thumb instruction was passed, where halfwords count.
    half_passed: bool,
    pub(super) context: Context,
    /// What the context makes visible of the program.
    pub(super) view: ViewId,
    data: DataState,
    pub(super) trust: Trust,
}

/// Whether what is followed rests on a position that was proven.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Trust {
    /// Nothing speaks against it.
    #[default]
    Sound,
    /// A gap casts doubt on what comes until the position is proven.
    InDoubt,
    /// A synchronisation contradicts what was sound: either may be what is damaged, so that it proves nothing itself.
    Disputed,
}

/// Where execution has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Position {
    /// Unknown, and said so.
    Nowhere,
    /// Here.
    At(Location),
    /// Where the last instruction went, which the trace has still to say.
    Elsewhere,
}

/// Instructions that were passed and not told yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OpenBlock {
    pub(super) start: Address,
    pub(super) end: Address,
    pub(super) last: Address,
    pub(super) isa: Isa,
    pub(super) instructions: u32,
    pub(super) span: Span,
}

/// An instruction that was passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Passed {
    pub(super) at: Location,
    pub(super) class: Class,
    pub(super) returns: Option<Return>,
    pub(super) taken: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Context {
    context_id: Option<ContextId>,
    vmid: Option<Vmid>,
    security: SecurityState,
}

/// What stopped a walk that should have gone on.
pub(in crate::flow) enum Stop {
    Gap(GapReason),
    /// The position was lost before, and that was said.
    Nowhere,
}

impl From<Contradiction> for Stop {
    fn from(contradiction: Contradiction) -> Self {
        Self::Gap(GapReason::Contradiction(contradiction))
    }
}

impl Walk {
    /// A walk that knows no position yet.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            position: Position::Nowhere,
            open: None,
            return_stack: LocationStack::new(),
            interrupted: LocationStack::new(),
            unconfirmed: None,
            last: None,
            half_passed: false,
            context: Context::default(),
            view: ViewId::default(),
            data: DataState::default(),
            trust: Trust::Sound,
        }
    }

    /// Follows one directive and calls `sink` with what it proves. `span` is the trace that it came from. The program
    /// has to be the same at every call.
    pub fn follow(
        &mut self,
        program: &Program,
        directive: Directive,
        span: Span,
        sink: &mut impl FnMut(Element),
    ) {
        match directive {
            Directive::ContextId(context_id) => {
                let context = Context { context_id: Some(context_id), ..self.context };
                self.context(program, context, span, sink);
            }
            Directive::Vmid(vmid) => {
                self.context(program, Context { vmid: Some(vmid), ..self.context }, span, sink);
            }
            Directive::Security(security) => {
                self.context(program, Context { security, ..self.context }, span, sink);
            }
            _ => self.follow_in_context(program.view(self.view), directive, span, sink),
        }
    }

    /// Follows a directive that does not change the context through what is visible.
    fn follow_in_context(
        &mut self,
        program: &Program,
        directive: Directive,
        span: Span,
        sink: &mut impl FnMut(Element),
    ) {
        match directive {
            Directive::Instructions { executed, then_failed } => {
                self.instructions(program, executed, then_failed, span, sink);
            }
            Directive::Waypoint { executed } => {
                let result = self.waypoint(program, executed, span, sink);
                self.stop(result, span, sink);
            }
            Directive::WaypointTo(target) => self.waypoint_to(program, target, span, sink),
            Directive::RunTo { address, end } => {
                let result = self.run_to(program, address, end, span, sink);
                self.stop(result, span, sink);
            }
            Directive::Continue(target) => self.go_on_at(target, span, sink),
            Directive::Resume(target) => self.resume(program, target, span, sink),
            Directive::Begin { at, why } => self.begin(at, why, span, sink),
            Directive::Confirm(at) => self.confirm(at, span, sink),
            Directive::Exception { exception, handler, preferred_return } => {
                self.exception(program, exception, handler, preferred_return, span, sink);
            }
            Directive::ExceptionReturn => self.event(EventKind::ExceptionReturn, span, sink),
            Directive::ContextId(_) | Directive::Vmid(_) | Directive::Security(_) => {}
            Directive::Timestamp(time) => self.event(EventKind::Timestamp(time), span, sink),
            Directive::Cycles(cycles) => self.event(EventKind::Cycles(cycles), span, sink),
            Directive::Trigger => self.event(EventKind::Trigger, span, sink),
            Directive::Data(transfer) => self.transfer(program, transfer, span, sink),
            Directive::LateData { tag, value } => {
                if let Some(transfer) = self.data.late(tag, value) {
                    self.event(EventKind::Data(transfer), span, sink);
                }
            }
            Directive::Proven => self.proven(span, sink),
            Directive::Lost | Directive::Cut => {
                self.close(Ending::Interrupted, sink);
                let doubt = directive == Directive::Lost;
                if doubt {
                    self.trust = Trust::InDoubt;
                }
                sink(Element::Gap(Gap { reason: GapReason::TraceLost, span, doubt }));
                self.jump(None);
                self.forget_returns();
                self.last = None;
                self.data = DataState::default();
            }
        }
    }

    /// The trace ends here.
    pub fn finish(&mut self, sink: &mut impl FnMut(Element)) {
        self.close(Ending::Interrupted, sink);
    }

    fn proven(&mut self, span: Span, sink: &mut impl FnMut(Element)) {
        let at = match self.position {
            Position::Nowhere => return,
            Position::At(at) => Some(at),
            Position::Elsewhere => None,
        };
        match core::mem::take(&mut self.trust) {
            // A run goes on behind the proof, and is told as one.
            Trust::Sound => {}
            // A block is in doubt as a whole or not at all.
            Trust::InDoubt => self.close(Ending::Interrupted, sink),
            Trust::Disputed => {
                self.trust = Trust::InDoubt;
                return;
            }
        }
        sink(Element::Proof(Proof { at, span }));
    }

    fn transfer(
        &mut self,
        program: &Program,
        transfer: Transfer,
        span: Span,
        sink: &mut impl FnMut(Element),
    ) {
        if let Some(transfer) = self.data.transfer(program, self.last, transfer) {
            self.event(EventKind::Data(transfer), span, sink);
        }
    }

    /// This instruction was passed last, and nothing has said yet where execution went from there.
    pub(super) fn set_passed(&mut self, passed: Passed) {
        self.last = Some(passed.at);
        self.unconfirmed = Some(passed);
    }

    /// An exception was taken at `position`, where that is known, behind the instruction `last`.
    pub(super) fn taken_from(&mut self, position: Option<Location>, last: Option<Location>) {
        if let Some(position) = position {
            self.interrupted.push(position);
        }
        self.last = last;
    }

    /// Execution goes on at a place that the instruction passed last does not lead to.
    pub(super) fn jump(&mut self, at: Option<Location>) {
        self.position = at.map_or(Position::Nowhere, Position::At);
        self.unconfirmed = None;
        self.half_passed = false;
    }

    /// Where predicted returns go is not known any more. Without a return stack there is nothing to forget, which a memo of
    /// what became of the stack should not take for something.
    pub(super) fn forget_returns(&mut self) {
        if self.rules.return_stack {
            self.return_stack.clear();
        }
    }

    fn context(&mut self, program: &Program, context: Context, span: Span, sink: &mut impl FnMut(Element)) {
        self.context = context;
        self.view = program.view_in(context.context_id, context.vmid);
        let Context { context_id, vmid, security } = context;
        self.event(EventKind::Context { context_id, vmid, security }, span, sink);
    }

    fn event(&mut self, kind: EventKind, span: Span, sink: &mut impl FnMut(Element)) {
        self.close(Ending::Interrupted, sink);
        sink(Element::Event(Event { kind, span }));
    }

    fn contradict(&mut self, contradiction: Contradiction, span: Span, sink: &mut impl FnMut(Element)) {
        self.close(Ending::Interrupted, sink);
        self.gap(GapReason::Contradiction(contradiction), span, sink);
    }

    /// Tells that execution could not be followed.
    pub(in crate::flow) fn gap(&mut self, reason: GapReason, span: Span, sink: &mut impl FnMut(Element)) {
        let doubt = reason.casts_doubt();
        if doubt {
            self.trust = Trust::InDoubt;
        }
        sink(Element::Gap(Gap { reason, span, doubt }));
    }

    /// Tells why a walk stopped; the position is unknown from there on.
    fn stop(&mut self, result: Result<(), Stop>, span: Span, sink: &mut impl FnMut(Element)) {
        if let Err(stop) = result {
            self.close(Ending::Interrupted, sink);
            if let Stop::Gap(reason) = stop {
                self.gap(reason, span, sink);
            }
            self.jump(None);
            // Calls and returns pass unseen now, and the trace unit's stack goes its own way.
            self.forget_returns();
        }
    }

    /// Tells the open block.
    fn close(&mut self, ending: Ending, sink: &mut impl FnMut(Element)) {
        if let Some(open) = self.open.take() {
            sink(Element::Block(Block {
                start: open.start,
                end: open.end,
                isa: open.isa,
                instructions: open.instructions,
                last: open.last,
                ending,
                span: open.span,
            }));
        }
    }
}
