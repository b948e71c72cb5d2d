//! Entries of a log, and the contents of their numbers.

use std::sync::Arc;

use tracewalk::flow::{KeptPassage, Placing, Totals};
use tracewalk::span::StreamOffset;

/// An entry of a log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// The number of a passage or a block, or one of the two below.
    pub(super) number: u32,
    /// The start, from the base on; or an index in another list.
    pub(super) at: u32,
}

impl Entry {
    /// The next item of `Log::others`: neither a passage nor a block with a number.
    pub(super) const OTHER: u32 = u32::MAX;
    /// The next item of `Log::waiting`: a passage with a number that cycles waited for.
    pub(super) const WAITING: u32 = u32::MAX - 1;
}

/// The content of a number.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) passage: Arc<KeptPassage>,
    pub(crate) totals: Totals,
    /// Whether the passage states contexts, all of them without a context ID and a VMID.
    pub(crate) states_context: bool,
    /// All elements begin before this distance from the start.
    pub(crate) bytes: u64,
}

/// At most this many bytes of trace have a passage's elements.
pub(super) const PASSAGE: u64 = 64;

impl Named {
    pub(super) fn of(passage: Arc<KeptPassage>) -> Self {
        let (totals, states_context) = (passage.totals(), passage.states_context());
        let last = passage
            .placed(Placing::at(StreamOffset(PASSAGE)))
            .elements()
            .map(|element| element.span().start)
            .max();
        let bytes = last.map_or(0, |last| (last.0 + 1).saturating_sub(PASSAGE));
        Self { passage, totals, states_context, bytes }
    }
}
