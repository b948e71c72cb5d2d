//! Saves the state of flow, and restores it when the same packets come again.
//!
//! A state has everything that the meaning of the next packets depends on, except the stacks of places to
//! return to: their content differs with every path to a place. [`StackEffects`] records the changes that
//! packets make to the stacks.

use core::hash::{Hash, Hasher};

use crate::span::StreamOffset;

use super::execution::{Arrival, Context, Execution, Inside, Last, Place, Trust};
use super::follow::Flow;
use super::watched_stack::StackEffect;

/// The state of execution, without the stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowState {
    place: Place,
    last: Last,
    arrival: Arrival,
    context: Context,
    trust: Trust,
    notes_calls: bool,
}

/// The parts in which states differ most. A memo hashes a state for each window that it learns.
impl Hash for FlowState {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self.place {
            Place::Inside(Inside { node, passed, span: _ }) => (node, passed).hash(state),
            place => place.hash(state),
        }
        match self.last {
            Last::OfBlock(node) => node.hash(state),
            Last::At(last) => last.map(|last| last.address).hash(state),
        }
    }
}

/// The changes to the stacks of places to return to.
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
                // Inside a block, the place implies both.
                (last, arrival) = (Last::At(None), Arrival::Straight);
                Place::Inside(Inside { span: inside.span.relative_to(at), ..inside })
            }
            place => place,
        };
        let Execution { context, trust, notes_calls, .. } = *execution;
        Some(FlowState { place, last, arrival, context, trust, notes_calls })
    }

    /// Continues in this state before the byte at `at`. The context may differ from the present one in its
    /// security state, which does not change the visible code.
    pub(crate) fn resume(&mut self, state: &FlowState, at: StreamOffset) {
        let FlowState { place, last, arrival, context, trust, notes_calls } = *state;
        let place = match place {
            Place::Inside(inside @ Inside { passed: 1.., .. }) => {
                Place::Inside(Inside { span: inside.span.placed_after(at), ..inside })
            }
            place => place,
        };
        let execution = &mut self.execution;
        (execution.place, execution.last, execution.arrival) = (place, last, arrival);
        (execution.context, execution.trust, execution.notes_calls) = (context, trust, notes_calls);
    }

    /// Starts to record the changes that [`Flow::stack_effects`] returns.
    pub(crate) const fn watch_stacks(&mut self) {
        self.execution.interrupted.watch();
        self.execution.returns.watch();
    }

    /// The changes to the stacks since [`Flow::watch_stacks`]; `None` if a stack ran empty or was cleared, or
    /// if there are too many changes.
    pub(crate) fn stack_effects(&self) -> Option<StackEffects> {
        let interrupted = self.execution.interrupted.effect()?;
        let returns = self.execution.returns.effect()?;
        Some(StackEffects { interrupted, returns })
    }

    /// Whether the stacks hold the entries that `effects` takes from them.
    #[inline]
    pub(crate) fn allows(&self, effects: &StackEffects) -> bool {
        self.execution.interrupted.allows(&effects.interrupted)
            && self.execution.returns.allows(&effects.returns)
    }

    /// Applies the changes to the stacks, which must [allow](Flow::allows) them.
    #[inline]
    pub(crate) fn apply(&mut self, effects: &StackEffects) {
        self.execution.interrupted.apply(&effects.interrupted);
        self.execution.returns.apply(&effects.returns);
    }
}
