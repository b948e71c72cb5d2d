//! Putting the state of flow aside, and taking it up again where the same comes back.
//!
//! A state is what the meaning of the next packets depends on, but for the stacks of places to return to: these are as
//! many as there are ways to come somewhere. What packets do to them is told as [`Exchanges`].

use crate::ids::Location;
use crate::span::{Span, StreamOffset};

use super::engine::{At, Flow, From, Place};
use super::location_stack::{Exchange, LocationStack};
use super::walk::{Context, Passed, Position, Trust};

/// Where execution is: in a block of the graph, behind one, or where the graph holds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    place: Place,
    /// The position where it is the walk that has it.
    position: Option<Position>,
    context: Context,
    /// The instruction passed last, and what is not confirmed of it; nothing where the place itself says it.
    before: (Option<Location>, Option<Passed>),
    trust: Trust,
}

/// What became of the stacks of places to return to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Exchanges {
    interrupted: Exchange,
    returns: Exchange,
}

/// The stacks as they were.
#[derive(Clone, Debug)]
pub(crate) struct Stacks {
    interrupted: LocationStack,
    returns: LocationStack,
}

impl Flow {
    /// The state in front of the byte at `at`; `None` while the walk has begun a block.
    pub(crate) fn state(&self, at: StreamOffset) -> Option<State> {
        let place = match self.place {
            Place::Walk if self.walk.open.is_some() || !self.has_graphs() => return None,
            Place::Walk => Place::Walk,
            Place::At(place) => Place::At(place.with_span(|span| span.relative_to(at)).canonical()),
            behind @ Place::Behind(_) => behind,
        };
        let before =
            if self.place.follows_walk() { (self.walk.last, self.walk.unconfirmed) } else { (None, None) };
        let position = (place == Place::Walk).then_some(self.walk.position);
        Some(State { place, position, context: self.walk.context, before, trust: self.walk.trust })
    }

    /// Goes on in this state in front of the byte at `at`. The context may differ from the present one by its security
    /// state, which makes nothing else visible of the program.
    pub(crate) fn resume(&mut self, state: &State, at: StreamOffset) {
        self.place = match state.place {
            Place::At(place) => Place::At(place.with_span(|span| span.placed_behind(at))),
            place => place,
        };
        self.walk.context = state.context;
        self.walk.trust = state.trust;
        if self.place.follows_walk() {
            (self.walk.last, self.walk.unconfirmed) = state.before;
        }
        if let Some(position) = state.position {
            self.walk.position = position;
            self.walk.open = None;
        }
    }

    /// How often blocks were forgotten. A state from before that is none any more.
    #[inline]
    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// From here on [`Flow::exchanges_since`] tells what becomes of the stacks, which are returned as they are.
    pub(crate) fn watch_stacks(&mut self) -> Stacks {
        self.walk.interrupted.watch();
        self.walk.return_stack.watch();
        Stacks { interrupted: self.walk.interrupted.clone(), returns: self.walk.return_stack.clone() }
    }

    /// What became of the stacks; `None` where that cannot be told.
    pub(crate) fn exchanges_since(&self, before: &Stacks) -> Option<Exchanges> {
        let interrupted = self.walk.interrupted.exchange_since(&before.interrupted)?;
        let returns = self.walk.return_stack.exchange_since(&before.returns)?;
        Some(Exchanges { interrupted, returns })
    }

    /// Whether the stacks hold what these exchanges take.
    #[inline]
    pub(crate) fn allows(&self, exchanges: &Exchanges) -> bool {
        self.walk.interrupted.allows(&exchanges.interrupted)
            && self.walk.return_stack.allows(&exchanges.returns)
    }

    /// Does to the stacks what these exchanges say, which are [allowed](Flow::allows).
    #[inline]
    pub(crate) fn apply(&mut self, exchanges: &Exchanges) {
        self.walk.interrupted.apply(&exchanges.interrupted);
        self.walk.return_stack.apply(&exchanges.returns);
    }
}

impl Place {
    /// Whether the walk knows what was passed before.
    const fn follows_walk(self) -> bool {
        matches!(self, Self::Walk | Self::At(At { passed: 0, from: From::Walk, .. }))
    }
}

impl At {
    /// The same place, its span told otherwise.
    fn with_span(self, told: impl FnOnce(Span) -> Span) -> Self {
        Self { span: told(self.span), ..self }
    }

    /// The same place without what means nothing at it.
    const fn canonical(self) -> Self {
        if self.passed == 0 {
            Self { span: Span::new(StreamOffset(0), 0), ..self }
        } else {
            Self { from: From::Walk, ..self }
        }
    }
}
