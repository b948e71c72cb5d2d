//! How often something happened, and how long it took.

use serde::{Deserialize, Serialize};

use super::lengths::Lengths;

/// How often something happened, and how long it took.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Activity {
    /// How often the activity began.
    pub count: u64,
    /// How often the exception replaced another exception's return.
    pub tail_chained: u64,
    /// How often the exception interrupted another exception's handler.
    pub preempting: u64,
    /// How often the durations lack the activity, because its beginning, its end or a part in between was not seen.
    pub cut: u64,
    /// From the beginning to the end.
    pub with_preemption: Lengths,
    /// The same, without interrupts and tasks that ran in between.
    pub without_preemption: Lengths,
    /// From one beginning to the next, if everything in between is known.
    pub inter_arrival: Lengths,
}

impl Activity {
    /// Adds another activity.
    pub fn merge(&mut self, other: &Self) {
        self.add_counts(other, 1);
        self.with_preemption.merge(&other.with_preemption);
        self.without_preemption.merge(&other.without_preemption);
        self.inter_arrival.merge(&other.inter_arrival);
    }

    /// Adds `times` times the counts of another activity, without lengths.
    pub(super) fn add_counts(&mut self, other: &Self, times: u64) {
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more.saturating_mul(times));
        add(&mut self.count, other.count);
        add(&mut self.tail_chained, other.tail_chained);
        add(&mut self.preempting, other.preempting);
        add(&mut self.cut, other.cut);
    }
}
