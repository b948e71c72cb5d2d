//! The state of execution, which the walk and the block graph both drive.
//!
//! ```text
//! place: lost | target pending | at an instruction | after the open block | in a block of the graph
//! ```
//!
//! Following an atom through the graph takes a few machine instructions, because the state has only the block
//! and the number of its instructions that were passed. The addresses and the instruction passed last follow
//! from these two. [`Execution::spell_out`] replaces the block by locations. Call it before any step that
//! reads code.

use crate::directive::Rules;
use crate::ids::{Address, ContextId, Isa, Location, Privilege, Vmid};
use crate::isa::Return;
use crate::program::{Program, ViewId};
use crate::span::{Span, StreamOffset};

use super::code::Exit;
use super::data::DataState;
use super::element::{Block, BranchKind, Contradiction, Element, Ending, Event, EventKind, Gap, GapReason};
use super::graph::{Graph, NodeId};
use super::watched_stack::WatchedStack;

/// The state of execution.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Execution {
    pub(super) rules: Rules,
    pub(super) place: Place,
    /// The instruction passed last, unless the place is inside a block.
    pub(super) last: Last,
    pub(super) arrival: Arrival,
    /// The targets of predicted returns: the locations after executed calls.
    pub(super) returns: WatchedStack,
    /// Whether calls push entries on `returns` now. Invariant: false without a return stack.
    pub(super) notes_calls: bool,
    /// The locations that exceptions interrupted and that execution has not returned to.
    pub(super) interrupted: WatchedStack,
    /// Whether the first half of a 32-bit Thumb instruction was passed, if halfwords count.
    pub(super) half_passed: bool,
    pub(super) context: Context,
    /// The view of the program in the context.
    pub(super) view: ViewId,
    pub(super) data: DataState,
    pub(super) trust: Trust,
}

/// The place of execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) enum Place {
    /// Unknown, and reported as such.
    Lost,
    /// At an address that the trace has yet to state.
    Pending(Pending),
    /// At this instruction, with nothing to report.
    At(Location),
    /// After these instructions, which were passed and not reported yet.
    Open(OpenBlock),
    /// In a block of the graph. Never in a checkpoint.
    #[cfg_attr(feature = "serde", serde(skip))]
    Inside(Inside),
}

/// A place whose address the trace has yet to state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) enum Pending {
    /// The target of the last instruction.
    Target {
        /// Whether the instruction returns from an exception, by its form.
        exception_return: bool,
    },
    /// The target of the last instruction; the newest return stack entry if something else comes first.
    TargetOrReturn {
        /// The entry to push as soon as the target is known: a predicted call pops its target before it
        /// pushes its own entry.
        call: Option<Location>,
        /// Whether a synchronisation came after the branch: the next address may be the synchronisation's
        /// own, and the branch predicted all the same.
        synchronised: bool,
    },
    /// The handler of the exception that was taken, or the place where execution continues after a failed
    /// transaction.
    Handler,
    /// No position: in Debug state, nothing is traced before tracing begins again.
    DebugState,
}

/// Instructions that were passed one after the other, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct OpenBlock {
    pub(super) start: Address,
    pub(super) end: Address,
    pub(super) last: Address,
    pub(super) isa: Isa,
    pub(super) instructions: u32,
    pub(super) span: Span,
}

/// A place in a block of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Inside {
    pub(super) node: NodeId,
    /// The number of the block's instructions that were passed, less than all.
    pub(super) passed: u32,
    /// The trace that proves the last of them.
    pub(super) span: Span,
}

/// The instruction passed last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) enum Last {
    /// This instruction; `None` if it is unknown.
    At(Option<Location>),
    /// The last instruction of this block of the graph. Never in a checkpoint.
    #[cfg_attr(feature = "serde", serde(skip))]
    OfBlock(NodeId),
}

/// How execution came to its place, if that is an instruction. Decides whether another address in the trace
/// is a contradiction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) enum Arrival {
    /// The trace itself stated the place, or the way there is unknown.
    Named,
    /// The instruction passed last is a direct branch to it that was taken.
    Branched,
    /// The instruction passed last continues after itself.
    Straight,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Context {
    pub(super) context_id: Option<ContextId>,
    pub(super) vmid: Option<Vmid>,
    pub(super) privilege: Privilege,
}

/// Whether flow rests on a proven position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) enum Trust {
    /// The position is not in doubt.
    #[default]
    Sound,
    /// A gap casts doubt on flow until the position is proven.
    InDoubt,
    /// A synchronisation contradicts sound flow. Either may be damaged, so the synchronisation proves
    /// nothing.
    Disputed,
}

/// Why an instruction could not be passed.
pub(super) enum Obstacle {
    Gap(GapReason),
    /// The position was lost before, and the loss was reported.
    Lost,
}

impl From<Contradiction> for Obstacle {
    fn from(contradiction: Contradiction) -> Self {
        Self::Gap(GapReason::Contradiction(contradiction))
    }
}

/// How the trace reports the target of an indirect branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TargetIs {
    /// The trace sends the address.
    Sent,
    /// The trace sends no address: the target is the newest return stack entry.
    Predicted,
    /// The trace sends the address, or else the target is the newest return stack entry.
    SentOrPredicted,
}

/// The consumer of the elements, and the trace that proves them.
pub(super) struct Report<'a, S> {
    pub(super) span: Span,
    pub(super) sink: &'a mut S,
}

impl Execution {
    /// The state before any trace.
    pub(super) fn new(rules: Rules) -> Self {
        Self {
            rules,
            place: Place::Lost,
            last: Last::At(None),
            arrival: Arrival::Named,
            returns: WatchedStack::new(),
            notes_calls: rules.return_stack,
            interrupted: WatchedStack::new(),
            half_passed: false,
            context: Context::default(),
            view: ViewId::default(),
            data: DataState::default(),
            trust: Trust::Sound,
        }
    }

    /// Replaces blocks of the graph by their locations. `program` is the visible view.
    pub(super) fn spell_out(&mut self, graph: &Graph, program: &Program) {
        if let Last::OfBlock(id) = self.last {
            self.last = Last::At(Some(graph.node(id).last_location()));
        }
        let Place::Inside(Inside { node, passed, span }) = self.place else { return };
        let node = graph.node(node);
        let (last, next) = node.instruction(program, passed);
        self.place = match last {
            None => Place::At(node.first_location()),
            Some(last) => {
                self.last = Last::At(Some(Location::new(last, node.isa)));
                self.arrival = Arrival::Straight;
                let (start, isa, instructions) = (node.start, node.isa, passed);
                Place::Open(OpenBlock { start, end: next, last, isa, instructions, span })
            }
        };
    }

    /// The instruction passed last, spelled out.
    pub(super) const fn last(&self) -> Option<Location> {
        match self.last {
            Last::At(last) => last,
            Last::OfBlock(_) => None,
        }
    }

    /// The next instruction, spelled out.
    pub(super) const fn position(&self) -> Option<Location> {
        match self.place {
            Place::At(at) => Some(at),
            Place::Open(open) => Some(Location::new(open.end, open.isa)),
            Place::Lost | Place::Pending(_) | Place::Inside(_) => None,
        }
    }

    /// Leaves a block by its last instruction: updates the stacks and the place.
    #[inline(always)]
    pub(super) fn leave(
        &mut self,
        exit: &Exit,
        taken: bool,
        target_is: TargetIs,
    ) -> Result<(), Contradiction> {
        let exception_return = exit.returns == Some(Return::Exception);
        self.arrival = Arrival::Straight;
        self.place = match (exit.target, target_is) {
            _ if !taken => Place::At(exit.following),
            (Some(target), _) => {
                self.arrival = Arrival::by(exit.kind);
                Place::At(target)
            }
            (None, TargetIs::Predicted) => {
                if exception_return {
                    self.interrupted.pop();
                }
                // Without an entry, the place is unknown.
                self.place = Place::Lost;
                // The newest entry is the target. A predicted call pushes its own entry after that.
                let target = self.predicted(exit.at)?;
                self.arrival = Arrival::Named;
                Place::At(target)
            }
            // The address of a return from an exception is always sent.
            (None, TargetIs::SentOrPredicted) if !exception_return && self.rules.return_stack => {
                let call = self.returns_to(taken, exit);
                self.place = Place::Pending(Pending::TargetOrReturn { call, synchronised: false });
                return Ok(());
            }
            (None, _) => Place::Pending(Pending::Target { exception_return }),
        };
        self.call(taken, exit);
        Ok(())
    }

    /// Reports a return from an exception that the trace does not mark.
    #[inline(always)]
    pub(super) fn report_return(
        &self,
        exit: &Exit,
        taken: bool,
        report: &mut Report<'_, impl FnMut(Element)>,
    ) {
        if taken && exit.returns == Some(Return::Exception) && self.rules.exception_returns_by_form {
            report.element(Element::Event(Event { kind: EventKind::ExceptionReturn, span: report.span }));
        }
    }

    /// Pushes an entry on the return stack if a call leaves the block.
    #[inline(always)]
    pub(super) fn call(&mut self, taken: bool, exit: &Exit) {
        if let Some(location) = self.returns_to(taken, exit) {
            self.returns.push(location);
        }
    }

    /// The location that a call returns to, if a call leaves the block and the trace unit notes it.
    #[inline(always)]
    fn returns_to(&self, taken: bool, exit: &Exit) -> Option<Location> {
        Some(exit.following).filter(|_| taken && exit.link && self.notes_calls)
    }

    /// The target of the branch at `at`, which the return stack predicted.
    fn predicted(&mut self, at: Location) -> Result<Location, Contradiction> {
        let target = self.rules.return_stack.then(|| self.returns.pop()).flatten();
        target.ok_or(Contradiction::ReturnStackEmpty(at))
    }

    /// Continues at the address that was pending.
    #[inline(always)]
    pub(super) fn arrive(&mut self, pending: Pending, address: Location) {
        let target = match pending {
            Pending::Target { exception_return: true } => {
                let target = self.unrounded(address);
                self.interrupted.pop();
                target
            }
            Pending::TargetOrReturn { call, synchronised } => {
                // If the address is the newest entry, the trace unit predicted the branch and popped the
                // entry.
                if synchronised && self.returns.newest() == Some(address) {
                    self.returns.pop();
                }
                self.call_pending(call);
                address
            }
            Pending::Target { exception_return: false } | Pending::Handler | Pending::DebugState => address,
        };
        self.place = Place::At(target);
        self.arrival = Arrival::Named;
    }

    /// Resolves a target that may have been predicted: no address came, so it was.
    pub(super) fn resolve_pending(&mut self) -> Result<(), Contradiction> {
        let Place::Pending(Pending::TargetOrReturn { call, .. }) = self.place else { return Ok(()) };
        let Some(at) = self.last() else { return Ok(()) };
        let target = self.predicted(at)?;
        self.call_pending(call);
        self.place = Place::At(target);
        self.arrival = Arrival::Named;
        Ok(())
    }

    /// A synchronisation begins: calls push no return stack entries until its address comes.
    pub(super) const fn begin_synchronisation(&mut self) {
        self.notes_calls = false;
        if let Place::Pending(Pending::TargetOrReturn { synchronised, .. }) = &mut self.place {
            *synchronised = true;
        }
    }

    /// Pushes the return stack entry of a call whose target was pending.
    #[inline(always)]
    fn call_pending(&mut self, call: Option<Location>) {
        if let Some(call) = call {
            self.returns.push(call);
        }
    }

    /// The real target of a return from an exception, if the trace states `target`.
    ///
    /// A change of the instruction set needs an address of five bytes. If the next exception comes before the
    /// first instruction after a return, some captures have fewer bytes: the instruction set is then that of
    /// the handler, and the address is rounded down to its alignment. A return into the interrupted word in
    /// another instruction set is such a case. Its real target is the place at which the exception was taken.
    fn unrounded(&mut self, target: Location) -> Location {
        let rounded = |interrupted: &Location| {
            interrupted.address != target.address
                && interrupted.address.aligned_for(target.isa) == target.address
        };
        self.interrupted.newest().filter(rounded).unwrap_or(target)
    }

    /// Continues at a place that the instruction passed last does not lead to.
    pub(super) fn jump(&mut self, place: Place) {
        self.place = place;
        self.arrival = Arrival::Named;
        self.half_passed = false;
    }

    /// Forgets the targets of predicted returns. Without a return stack there is nothing to forget, and a
    /// memo must not record a change to the stack.
    pub(super) fn forget_returns(&mut self) {
        if self.rules.return_stack {
            self.returns.clear();
        }
    }

    /// Reports the open block.
    pub(super) fn close(&mut self, report: &mut Report<'_, impl FnMut(Element)>) {
        if let Place::Open(open) = self.place {
            report.element(Element::Block(open.block(Ending::Interrupted)));
            self.place = Place::At(Location::new(open.end, open.isa));
        }
    }

    pub(super) fn event(&mut self, kind: EventKind, report: &mut Report<'_, impl FnMut(Element)>) {
        self.close(report);
        if let (EventKind::ExceptionReturn, Place::Pending(Pending::TargetOrReturn { call, .. })) =
            (kind, self.place)
        {
            // The address of a return from an exception is always sent.
            self.call_pending(call);
            self.place = Place::Pending(Pending::Target { exception_return: false });
        }
        report.element(Element::Event(Event { kind, span: report.span }));
    }

    /// Reports that execution could not be followed.
    pub(super) fn gap(&mut self, reason: GapReason, report: &mut Report<'_, impl FnMut(Element)>) {
        self.close(report);
        let doubt = reason.casts_doubt();
        if doubt {
            self.trust = Trust::InDoubt;
        }
        report.element(Element::Gap(Gap { reason, span: report.span, doubt }));
    }

    /// Reports why an instruction could not be passed; the position is unknown from there on.
    pub(super) fn stop(
        &mut self,
        result: Result<(), Obstacle>,
        report: &mut Report<'_, impl FnMut(Element)>,
    ) {
        if let Err(obstacle) = result {
            self.close(report);
            if let Obstacle::Gap(reason) = obstacle {
                self.gap(reason, report);
            }
            self.jump(Place::Lost);
            // Flow no longer sees calls and returns, so the trace unit's stack diverges.
            self.forget_returns();
        }
    }
}

impl<S: FnMut(Element)> Report<'_, S> {
    #[inline(always)]
    pub(super) fn element(&mut self, element: Element) {
        (self.sink)(element);
    }
}

impl Arrival {
    /// The arrival at the target of a taken instruction of this kind, if the target is in the code.
    #[inline]
    pub(super) const fn by(kind: BranchKind) -> Self {
        match kind {
            BranchKind::Direct => Self::Branched,
            BranchKind::Indirect | BranchKind::Barrier => Self::Straight,
        }
    }
}

impl Pending {
    /// Whether a branch leads to the pending place.
    pub(super) const fn is_target(self) -> bool {
        matches!(self, Self::Target { .. } | Self::TargetOrReturn { .. })
    }
}

impl OpenBlock {
    /// The block as an element.
    pub(super) const fn block(&self, ending: Ending) -> Block {
        let Self { start, end, last, isa, instructions, span } = *self;
        Block { start, end, isa, instructions, last, ending, span }
    }
}

impl Inside {
    /// The start of a block.
    #[inline]
    pub(super) const fn start(node: NodeId) -> Self {
        Self { node, passed: 0, span: Span::new(StreamOffset(0), 0) }
    }
}
