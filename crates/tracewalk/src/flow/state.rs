//! Putting the state of flow aside, and taking it up again when the same comes back.
//!
//! A state is what the meaning of the next packets depends on, but for the stacks of places to return to: these are as
//! many as there are ways to come somewhere. What packets do to them is told as [`Exchanges`].

use crate::span::StreamOffset;

use super::execution::{Arrival, Context, Inside, Last, Place, Trust};
use super::follow::Flow;
use super::watched_stack::{StackEffect, WatchedStack};

/// How far execution was followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    place: Place,
    last: Last,
    arrival: Arrival,
    context: Context,
    trust: Trust,
}

/// What became of the stacks of places to return to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Exchanges {
    interrupted: StackEffect,
    returns: StackEffect,
}

/// The stacks as they were.
#[derive(Clone, Debug)]
pub(crate) struct Stacks {
    interrupted: WatchedStack,
    returns: WatchedStack,
}

impl Flow {
    /// The state before the byte at `at`; `None` while a block is open that is not one of the graph's.
    pub(crate) fn state(&self, at: StreamOffset) -> Option<State> {
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
        Some(State { place, last, arrival, context: execution.context, trust: execution.trust })
    }

    /// Goes on in this state before the byte at `at`. The context may differ from the present one by its security
    /// state, which makes nothing else visible of the program.
    pub(crate) fn resume(&mut self, state: &State, at: StreamOffset) {
        let State { place, last, arrival, context, trust } = *state;
        let place = match place {
            Place::Inside(inside @ Inside { passed: 1.., .. }) => {
                Place::Inside(Inside { span: inside.span.placed_behind(at), ..inside })
            }
            place => place,
        };
        let execution = &mut self.execution;
        (execution.place, execution.last, execution.arrival) = (place, last, arrival);
        (execution.context, execution.trust) = (context, trust);
    }

    /// From here on [`Flow::exchanges_since`] tells what becomes of the stacks, which are returned as they are.
    pub(crate) fn watch_stacks(&mut self) -> Stacks {
        let execution = &mut self.execution;
        execution.interrupted.watch();
        execution.returns.watch();
        Stacks { interrupted: execution.interrupted.clone(), returns: execution.returns.clone() }
    }

    /// What became of the stacks; `None` if that cannot be told.
    pub(crate) fn exchanges_since(&self, before: &Stacks) -> Option<Exchanges> {
        let interrupted = self.execution.interrupted.effect_since(&before.interrupted)?;
        let returns = self.execution.returns.effect_since(&before.returns)?;
        Some(Exchanges { interrupted, returns })
    }

    /// Whether the stacks hold what these exchanges take.
    #[inline]
    pub(crate) fn allows(&self, exchanges: &Exchanges) -> bool {
        self.execution.interrupted.allows(&exchanges.interrupted)
            && self.execution.returns.allows(&exchanges.returns)
    }

    /// Does to the stacks what these exchanges say, which are [allowed](Flow::allows).
    #[inline]
    pub(crate) fn apply(&mut self, exchanges: &Exchanges) {
        self.execution.interrupted.apply(&exchanges.interrupted);
        self.execution.returns.apply(&exchanges.returns);
    }
}
