//! The program that a source traced, and what other sources of it taught.

use std::sync::Arc;

use tracewalk::program::Program;
use tracewalk::source::SourceConfig;
use tracewalk_analysis::drive::Follower;

use crate::shared::Shared;

/// A program that a source traced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traced<'a> {
    pub(super) program: &'a Arc<Program>,
    shared: Option<&'a Shared>,
}

impl<'a> Traced<'a> {
    /// A program, and the cache of what was learned of programs.
    pub(crate) const fn new(program: &'a Arc<Program>, shared: &'a Shared) -> Self {
        Self { program, shared: Some(shared) }
    }

    /// A program, without what was learned of it.
    pub(super) const fn alone(program: &'a Arc<Program>) -> Self {
        Self { program, shared: None }
    }

    /// Follows a source with what was learned of the program, and keeps what it adds.
    pub(crate) fn follow<T>(self, config: &SourceConfig, work: impl FnOnce(&mut Follower<'_>) -> T) -> T {
        let Some(shared) = self.shared else {
            return work(&mut Follower::new(config, self.program));
        };
        let mut follower = shared.follower(config, self.program);
        let done = work(&mut follower);
        shared.keep_learned(config, self.program, follower.into_learned());
        done
    }
}
