//! A single count: of a block, or of a passage by its number.

use super::blocks::Packed;

/// A passage's number among those that share one `Contents`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PassageNumber(pub(super) u32);

/// A block that was counted once, and its instructions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Once {
    pub(super) block: Packed,
    pub(super) instructions: u32,
}

/// A passage that was counted once.
#[derive(Clone, Copy, Debug)]
pub(super) struct PassageOnce {
    pub(super) number: PassageNumber,
    /// See [`Passage::waited`]. Doubt does not reach as far as the greatest number.
    pub(super) waited: u32,
}
