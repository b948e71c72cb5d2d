//! The program that a source traced, for whoever finds out how it was traced.

use std::sync::Arc;

use tracewalk::program::Program;
use tracewalk::source::SourceConfig;
use tracewalk_analysis::drive::Follower;

use crate::shared::Shared;

/// A program that a source traced, and what sessions know of it together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traced<'a> {
    pub(crate) program: &'a Program,
    common: Option<(&'a Shared, &'a Arc<Program>)>,
}

impl<'a> Traced<'a> {
    /// One that sessions may have in common: the same program as theirs.
    pub(crate) const fn new(program: &'a Program, common: Option<(&'a Shared, &'a Arc<Program>)>) -> Self {
        Self { program, common }
    }

    /// One of which nobody knows anything.
    pub(crate) const fn alone(program: &'a Program) -> Self {
        Self::new(program, None)
    }

    /// Has a source followed by whoever knows most of the program, and keeps for others what is learned.
    pub(crate) fn follow<T>(self, config: &SourceConfig, work: impl FnOnce(&mut Follower<'_>) -> T) -> T {
        let Some((shared, program)) = self.common else {
            return work(&mut Follower::new(config, self.program));
        };
        let mut follower = shared.follower(config, program);
        let done = work(&mut follower);
        shared.keep_learned(config, program, follower.into_learned());
        done
    }
}
