//! The program that a source traced, and what others learned of it.

use std::fmt;

use tracewalk::program::Program;
use tracewalk::source::SourceConfig;
use tracewalk_analysis::drive::{Follower, Learned};

/// Keeps what is learned of a program, for other sources of it.
pub(crate) trait Learning: fmt::Debug {
    /// One who knows what others learned of the same program with the same configuration.
    fn follower<'p>(&'p self, config: &'p SourceConfig) -> Follower<'p>;

    /// Keeps what was learned.
    fn keep(&self, config: &SourceConfig, learned: Learned);
}

/// A program that a source traced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traced<'a> {
    pub(super) program: &'a Program,
    others: Option<&'a dyn Learning>,
}

impl<'a> Traced<'a> {
    /// A program, and where what is learned of an equal one is kept.
    pub(crate) const fn new(program: &'a Program, others: Option<&'a dyn Learning>) -> Self {
        Self { program, others }
    }

    /// A program without earlier learning.
    pub(super) const fn alone(program: &'a Program) -> Self {
        Self::new(program, None)
    }

    /// Follows a source with the follower that has learned most of the program, and keeps what it learns.
    pub(super) fn follow<T>(self, config: &SourceConfig, work: impl FnOnce(&mut Follower<'_>) -> T) -> T {
        let Some(others) = self.others else {
            return work(&mut Follower::new(config, self.program));
        };
        let mut follower = others.follower(config);
        let done = work(&mut follower);
        others.keep(config, follower.into_learned());
        done
    }
}
