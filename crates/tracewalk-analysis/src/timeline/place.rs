//! Places in the trace, before their time is known.

use super::item::Certainty;

/// A place in the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// The count up to here: cycles, or instructions.
    pub(super) count: u64,
    /// Whether the count is known here, or only at some place before and at some place after.
    pub(super) certainty: Certainty,
}
