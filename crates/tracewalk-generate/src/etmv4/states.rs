//! Exception level and security state, as far as contexts show them.

use tracewalk::ids::Profile;

use crate::path::State;

/// The processor's current state, and the states that active exceptions interrupted.
pub(super) struct States {
    profile: Profile,
    current: State,
    /// The states from which exceptions were taken, newest last.
    left: Vec<State>,
}

impl States {
    /// Starts at EL0, which holds until an exception is taken or the path states another level.
    pub(super) const fn new(profile: Profile, non_secure: bool) -> Self {
        Self { profile, current: State { level: 0, non_secure }, left: Vec::new() }
    }

    pub(super) const fn current(&self) -> State {
        self.current
    }

    pub(super) const fn change(&mut self, state: State) {
        self.current = state;
    }

    /// Enters the state that the path states, or else EL1. M profile has no levels.
    pub(super) fn enter_exception(&mut self, said: Option<State>) {
        self.left.push(self.current);
        let level = u8::from(self.profile != Profile::M);
        self.current = said.unwrap_or(State { level, ..self.current });
    }

    /// Returns to the state that the path states, or else to the one that the exception interrupted.
    pub(super) fn leave_exception(&mut self, said: Option<State>) {
        let usual = self.left.pop().unwrap_or(self.current);
        self.current = said.unwrap_or(usual);
    }
}
