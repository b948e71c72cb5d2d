//! What is remembered of items that come again and again.

use super::activity::Activity;
use crate::quick::QuickMap;
use crate::timeline::Track;

/// What is known of items that come again.
#[derive(Debug, Default)]
pub(super) struct Effects {
    pub(super) known: QuickMap<Which, Effect>,
}

/// Which items, and what runs where they begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Which {
    pub(super) number: u64,
    pub(super) outer: Track,
    /// Whether `outer` is the track of the task that runs.
    pub(super) is_running: bool,
    pub(super) is_in_interrupt: bool,
}

/// What items add.
#[derive(Debug)]
pub(super) struct Effect {
    /// `None` if more than what they begin depends on them.
    pub(super) added: Option<Added>,
    pub(super) times: u64,
}

#[derive(Debug)]
pub(super) struct Added {
    pub(super) of: Box<[OfRecord]>,
    /// How long what ran before them runs meanwhile.
    pub(super) outer: u64,
    /// From the first item to the last.
    pub(super) length: u64,
}

/// What they add to one record.
#[derive(Debug)]
pub(super) struct OfRecord {
    pub(super) record: usize,
    /// Where the first and the last beginning is that was seen, from the first item on.
    pub(super) begins: Option<(u64, u64)>,
    pub(super) counts: Activity,
    pub(super) lengths: [Box<[u64]>; 3],
}
