//! Putting the state of flow aside, and taking it up again when the same comes back.
//!
//! A state is what the meaning of the next packets depends on, but for the stacks of places to return to: these are as
//! many as there are ways to come somewhere. What packets do to them is recorded as [`StackEffects`].

use crate::span::StreamOffset;

use super::execution::{Arrival, Context, Execution, Inside, Last, Place, Trust};
use super::follow::Flow;
use super::watched_stack::StackEffect;

/// How far execution was followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FlowState {
    place: Place,
    last: Last,
    arrival: Arrival,
    context: Context,
    trust: Trust,
    notes_calls: bool,
}

/// What became of the stacks of places to return to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct StackEffects {
    interrupted: StackEffect,
    returns: StackEffect,
}

impl Flow {
    /// The state before the byte at `at`; `None` while a block is open that is not one of the graph's.
    pub(crate) fn state(&self, at: StreamOffset) -> Option<FlowState> {
        let execution = &self.execution;
        let (mut last, mut arrival) = (execution.last, execution.arrival);
        let place = match execution.place {
            Place::Open(_) => return None,
            _ if !self.has_graphs() => return None,
            Place::Inside(inside @ Inside { passed: 1.., .. }) => {
                // Inside of a block these follow from the place.
                (last, arrival) = (Last::At(None), Arrival::Straight);
                Place::Inside(Inside { span: inside.span.relative_to(at), ..inside })
            }
            place => place,
        };
        let Execution { context, trust, notes_calls, .. } = *execution;
        Some(FlowState { place, last, arrival, context, trust, notes_calls })
    }

    /// Goes on in this state before the byte at `at`. The context may differ from the present one by its security
    /// state, which makes nothing else visible of the program.
    pub(crate) fn resume(&mut self, state: &FlowState, at: StreamOffset) {
        let FlowState { place, last, arrival, context, trust, notes_calls } = *state;
        let place = match place {
            Place::Inside(inside @ Inside { passed: 1.., .. }) => {
                Place::Inside(Inside { span: inside.span.placed_behind(at), ..inside })
            }
            place => place,
        };
        let execution = &mut self.execution;
        (execution.place, execution.last, execution.arrival) = (place, last, arrival);
        (execution.context, execution.trust, execution.notes_calls) = (context, trust, notes_calls);
    }

    /// From here on [`Flow::stack_effects`] says what becomes of the stacks.
    pub(crate) const fn watch_stacks(&mut self) {
        self.execution.interrupted.watch();
        self.execution.returns.watch();
    }

    /// What became of the stacks since they were [watched](Flow::watch_stacks); `None` if that depends on what lay in them, or
    /// is too much to say.
    pub(crate) fn stack_effects(&self) -> Option<StackEffects> {
        let interrupted = self.execution.interrupted.effect()?;
        let returns = self.execution.returns.effect()?;
        Some(StackEffects { interrupted, returns })
    }

    /// Whether the stacks hold what is taken from them.
    #[inline]
    pub(crate) fn allows(&self, effects: &StackEffects) -> bool {
        self.execution.interrupted.allows(&effects.interrupted)
            && self.execution.returns.allows(&effects.returns)
    }

    /// Does this to the stacks, which [allow](Flow::allows) it.
    #[inline]
    pub(crate) fn apply(&mut self, effects: &StackEffects) {
        self.execution.interrupted.apply(&effects.interrupted);
        self.execution.returns.apply(&effects.returns);
    }
}
