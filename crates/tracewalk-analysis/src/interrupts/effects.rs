//! The cached effects of repeated items.

use super::activity::Activity;
use crate::quick::QuickMap;
use crate::timeline::Track;

/// The cached effects of repeated items, and the keys by which they are found.
#[derive(Debug, Default)]
pub(super) struct Effects {
    pub(super) known: QuickMap<Which, Effect>,
}

/// The key of an effect: the items, and the state in which they begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Which {
    pub(super) number: u64,
    pub(super) outer: Track,
    /// Whether `outer` is the track of the running task.
    pub(super) is_running: bool,
    pub(super) is_in_interrupt: bool,
}

/// An effect.
#[derive(Debug)]
pub(super) struct Effect {
    /// `None` if the items affect more than what they begin.
    pub(super) added: Option<Added>,
    pub(super) times: u64,
}

#[derive(Debug)]
pub(super) struct Added {
    pub(super) of: Box<[OfRecord]>,
    /// How long the code that ran before them runs in between.
    pub(super) outer: u64,
    /// From the first item to the last.
    pub(super) length: u64,
}

/// The effect on one record.
#[derive(Debug)]
pub(super) struct OfRecord {
    pub(super) record: usize,
    /// The places of the first and the last beginning, from the first item on.
    pub(super) begins: Option<(u64, u64)>,
    pub(super) counts: Activity,
    pub(super) lengths: [Box<[u64]>; 3],
}
