//! Exception level and security state, as far as contexts say them.

use tracewalk::ids::Profile;

use crate::path::State;

/// Where the processor runs now, and where exceptions came from.
pub(super) struct States {
    profile: Profile,
    current: State,
    /// The states that exceptions left, newest last.
    left: Vec<State>,
}

impl States {
    /// Applications, until an exception is taken or the path says otherwise.
    pub(super) const fn new(profile: Profile, non_secure: bool) -> Self {
        Self { profile, current: State { level: 0, non_secure }, left: Vec::new() }
    }

    pub(super) const fn current(&self) -> State {
        self.current
    }

    pub(super) const fn change(&mut self, state: State) {
        self.current = state;
    }

    /// An exception leads to the state that the path says, or to EL1. M profile has no levels.
    pub(super) fn enter_exception(&mut self, said: Option<State>) {
        self.left.push(self.current);
        let level = u8::from(self.profile != Profile::M);
        self.current = said.unwrap_or(State { level, ..self.current });
    }

    /// A return from an exception leads to the state that the path says, or to where the exception came from.
    pub(super) fn leave_exception(&mut self, said: Option<State>) {
        let usual = self.left.pop().unwrap_or(self.current);
        self.current = said.unwrap_or(usual);
    }
}
