//! The state of a walk that began in the middle: see [`crate::flow::segment`].

use super::Walk;
use crate::directive::Rules;
use crate::flow::location_stack::LocationStack;

impl Walk {
    /// A walk that begins in the middle.
    pub(crate) fn in_the_middle(rules: Rules) -> Self {
        Self {
            return_stack: LocationStack::unknown(),
            interrupted: LocationStack::unknown(),
            ..Self::new(rules)
        }
    }

    /// From here on [`Walk::is_certain`] tells of a new part.
    pub(in crate::flow) fn begin_part(&mut self) {
        self.return_stack.begin_part();
        self.interrupted.begin_part();
    }

    /// Whether what was found in the part behind which the walk was this is right, where `real` [proves](Self::proves) what
    /// was guessed before.
    pub(crate) const fn is_certain(&self, real: &Self, guess: &Self) -> bool {
        self.return_stack.is_certain(&real.return_stack, &guess.return_stack)
            && self.interrupted.is_certain(&real.interrupted, &guess.interrupted)
    }

    /// Whether this is what `guess` is, but for what that one does not know.
    pub(crate) fn proves(&self, guess: &Self) -> bool {
        let Self {
            rules,
            position,
            open,
            return_stack,
            interrupted,
            unconfirmed,
            last,
            half_passed,
            context,
            view,
            data,
            trust,
        } = self;
        (rules, position, open, unconfirmed)
            == (&guess.rules, &guess.position, &guess.open, &guess.unconfirmed)
            && (last, half_passed, context, view)
                == (&guess.last, &guess.half_passed, &guess.context, &guess.view)
            && *data == guess.data
            && *trust == guess.trust
            && return_stack.proves(&guess.return_stack)
            && interrupted.proves(&guess.interrupted)
    }

    /// What this walk comes to behind some parts: it [proves](Self::proves) `guess`, which was before them, and these are
    /// the states behind each of them.
    pub(crate) fn continued<'a>(&self, guess: &Self, parts: impl Iterator<Item = &'a Self> + Clone) -> Self {
        let end = parts.clone().last().unwrap_or(guess);
        Self {
            return_stack: self
                .return_stack
                .continued(&guess.return_stack, parts.clone().map(|part| &part.return_stack)),
            interrupted: self.interrupted.continued(&guess.interrupted, parts.map(|part| &part.interrupted)),
            ..end.clone()
        }
    }
}
