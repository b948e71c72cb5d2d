//! The program that a source traced, and the effects that other sources learned of it.

use std::fmt;

use tracewalk::program::Program;
use tracewalk::source::SourceConfig;
use tracewalk_analysis::drive::{Follower, Learned};

/// Keeps learned effects of a program for its other sources, and for later.
pub(crate) trait Learning: fmt::Debug {
    /// A follower with the effects that others learned of `program`, or of an equal one, with the same configuration.
    fn follower<'p>(&'p self, config: &'p SourceConfig, program: &'p Program) -> Follower<'p>;

    /// Keeps learned effects.
    fn keep(&self, config: &SourceConfig, learned: Learned);
}

/// A program that a source traced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traced<'a> {
    pub(super) program: &'a Program,
    others: Option<&'a dyn Learning>,
}

impl<'a> Traced<'a> {
    /// A program, and the learned effects of an equal one.
    pub(crate) const fn new(program: &'a Program, others: &'a dyn Learning) -> Self {
        Self { program, others: Some(others) }
    }

    /// A program without learned effects.
    pub(super) const fn alone(program: &'a Program) -> Self {
        Self { program, others: None }
    }

    /// Follows a source with all learned effects of the program, and keeps those that it adds.
    pub(crate) fn follow<T>(self, config: &SourceConfig, work: impl FnOnce(&mut Follower<'_>) -> T) -> T {
        let Some(others) = self.others else {
            return work(&mut Follower::new(config, self.program));
        };
        let mut follower = others.follower(config, self.program);
        let done = work(&mut follower);
        others.keep(config, follower.into_learned());
        done
    }
}
