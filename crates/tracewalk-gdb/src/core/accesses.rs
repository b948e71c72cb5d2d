//! Loads and stores that data trace reported, or else that the path proves, for watchpoints.
//!
//! GDB assumes that an Arm processor stops before the instruction whose access is watched: GDB then makes that step
//! itself, and compares the memory.

use tracewalk_analysis::values::ProvenAccess;

use super::Core;
use crate::transfers::{Watch, Watched};
use crate::walk::Direction;

/// An access of watched memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    /// The step that reports the access, which is after the instruction and before the next place.
    pub(crate) step: u64,
    /// The kind of the watchpoint, and the address; `None` if the accesses on the other side of the step are not kept.
    pub(crate) of: Option<(Watch, u64)>,
}

impl Core<'_> {
    /// Whether data trace reported no access at all.
    pub(crate) const fn has_no_accesses(&self) -> bool {
        self.kept.transfers.is_empty()
    }

    /// The next access of watched memory from the place on, or the last one before it.
    pub(crate) fn access(&self, watched: &[Watched], direction: Direction) -> Option<Access> {
        if watched.is_empty() || self.has_no_accesses() {
            return None;
        }
        let (place, transfers) = (self.step_number(), &self.kept.transfers);
        let found = watched.iter().filter_map(|watched| {
            let (step, at) = transfers.access(watched, place, direction)?;
            Some(Access { step, of: Some((watched.kind, at)) })
        });
        let found = match direction {
            Direction::Forward => found.min_by_key(|access| access.step),
            Direction::Backward => found.max_by_key(|access| access.step),
        };
        // Accesses that are not kept may be of the watched memory.
        let kept_from = transfers.kept_from();
        let is_among_kept = match direction {
            Direction::Forward => place >= kept_from,
            Direction::Backward => found.is_some() || place <= kept_from,
        };
        if is_among_kept { found } else { Some(Access { step: kept_from, of: None }) }
    }

    /// The access of watched memory that the path proves, and that is first in the direction from a place to this one.
    pub(crate) fn proven_access(
        &mut self,
        watched: &[Watched],
        from: u64,
        direction: Direction,
    ) -> Option<Access> {
        let place = self.step_number();
        let (within, is_backward) = match direction {
            // What the last place does is beyond it.
            Direction::Forward => (from..place + u64::from(place + 1 == self.steps()), false),
            Direction::Backward => (place..from, true),
        };
        let found = watched.iter().filter_map(|Watched { kind, bytes }| {
            let is_wanted = |access: &ProvenAccess| match kind {
                Watch::Store => access.is_store,
                Watch::Load => !access.is_store,
                Watch::Any => true,
            };
            let (step, at) = self.values.access(within.clone(), bytes, is_backward, is_wanted)?;
            Some(Access { step, of: Some((*kind, at)) })
        });
        match direction {
            Direction::Forward => found.min_by_key(|access| access.step),
            Direction::Backward => found.max_by_key(|access| access.step),
        }
    }

    /// Whether the place is beyond an access.
    pub(crate) fn is_beyond(&self, access: Access, direction: Direction) -> bool {
        match direction {
            Direction::Forward => self.step_number() > access.step,
            Direction::Backward => self.step_number() <= access.step,
        }
    }

    /// Goes to the place next to an access on this side of it: before the instruction in the forward direction, after
    /// it in the backward direction.
    pub(crate) fn go_next_to(&mut self, access: Access, direction: Direction) {
        match direction {
            Direction::Forward => self.seek_back(access.step),
            Direction::Backward => self.seek_step(access.step.saturating_add(1)),
        };
    }
}
