//! Time by timestamps: the ticks between two of them, distributed over the code that ran there.
//!
//! Distribution is by cycles if they are traced, else by instructions. An interval with unmeasured execution (a gap, or tracing
//! was off) is not distributed: its length is unrelated to the code that was seen in it.

use super::EntryId;
use crate::clock::share;

/// Distributes the ticks between timestamps.
#[derive(Clone, Debug, Default)]
pub(super) struct Interval {
    /// The last timestamp that was known.
    since: Option<u64>,
    /// The execution since then, in cycles and instructions.
    shares: Vec<Share>,
    /// Set once code ran whose cycles are unknown.
    broken: bool,
}

#[derive(Clone, Copy, Debug)]
struct Share {
    owner: Owner,
    cycles: u64,
    instructions: u64,
}

/// The receiver of ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Owner {
    Entry(EntryId),
    Unfollowed,
    Untraced,
    /// Code outside of the window.
    Outside,
}

/// The number of shares kept before those of the same entry are joined.
const MANY: usize = 1 << 16;

impl Interval {
    /// Whether ticks will be distributed over the code that runs.
    #[inline]
    pub(super) const fn measures(&self) -> bool {
        self.since.is_some()
    }

    /// Something ran.
    pub(super) fn ran(&mut self, owner: Owner, cycles: u64, instructions: u64) {
        if self.since.is_none() {
            return;
        }
        match self.shares.last_mut() {
            Some(last) if last.owner == owner => {
                last.cycles += cycles;
                last.instructions += instructions;
            }
            _ => {
                if self.shares.len() >= MANY && self.shares.len().is_power_of_two() {
                    self.join();
                }
                self.shares.push(Share { owner, cycles, instructions });
            }
        }
    }

    /// Unseen code ran.
    pub(super) fn gap(&mut self) {
        self.broken = true;
    }

    /// A timestamp; `None` if the source did not know it. Distributes the ticks since the last one, and returns the number of
    /// instructions that they cover.
    pub(super) fn timestamp(&mut self, time: Option<u64>, mut give: impl FnMut(Owner, u64)) -> u64 {
        let Self { since, shares, broken } = std::mem::take(self);
        self.since = time;
        let (Some(since), Some(time)) = (since, time) else { return 0 };
        let Some(ticks) = time.checked_sub(since) else { return 0 };
        let sum = |of: fn(&Share) -> u64| shares.iter().map(of).sum::<u64>();
        let cycles = sum(|share| share.cycles);
        if broken && cycles == 0 {
            give(Owner::Untraced, ticks);
            return 0;
        }
        let weight = |share: &Share| if cycles > 0 { share.cycles } else { share.instructions };
        let whole = shares.iter().map(weight).sum::<u64>();
        let mut before = 0;
        for part in &shares {
            give(part.owner, share(ticks, before, weight(part), whole));
            before += weight(part);
        }
        if whole == 0 {
            give(Owner::Unfollowed, ticks);
        }
        let recorded = shares.iter().filter(|share| matches!(share.owner, Owner::Entry(_)));
        recorded.map(|share| share.instructions).sum()
    }

    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        self.shares.len()
    }

    /// Joins the shares of the same entries, so that there are at most as many as entries.
    fn join(&mut self) {
        self.shares.sort_by_key(|share| share.owner);
        self.shares.dedup_by(|later, earlier| {
            let same = later.owner == earlier.owner;
            if same {
                earlier.cycles += later.cycles;
                earlier.instructions += later.instructions;
            }
            same
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(interval: &mut Interval, time: Option<u64>) -> (Vec<(Owner, u64)>, u64) {
        let mut given = Vec::new();
        let instructions = interval.timestamp(time, |owner, ticks| {
            if ticks > 0 {
                given.push((owner, ticks));
            }
        });
        (given, instructions)
    }

    #[test]
    fn ticks_are_shared_by_instructions_or_by_cycles() {
        let mut interval = Interval::default();
        interval.ran(Owner::Entry(EntryId(0)), 0, 5);
        assert_eq!(given(&mut interval, Some(100)), (vec![], 0));
        interval.ran(Owner::Entry(EntryId(0)), 0, 1);
        interval.ran(Owner::Entry(EntryId(1)), 0, 3);
        let expected = vec![(Owner::Entry(EntryId(0)), 2), (Owner::Entry(EntryId(1)), 8)];
        assert_eq!(given(&mut interval, Some(110)), (expected, 4));
        interval.ran(Owner::Entry(EntryId(0)), 8, 1);
        interval.ran(Owner::Untraced, 8, 0);
        let expected = vec![(Owner::Entry(EntryId(0)), 5), (Owner::Untraced, 5)];
        assert_eq!(given(&mut interval, Some(120)), (expected, 1));
    }

    #[test]
    fn an_interval_with_a_gap_of_unknown_length_is_nobodys() {
        let mut interval = Interval::default();
        given(&mut interval, Some(100));
        interval.ran(Owner::Entry(EntryId(0)), 0, 1);
        interval.gap();
        assert_eq!(given(&mut interval, Some(150)), (vec![(Owner::Untraced, 50)], 0));
        interval.ran(Owner::Entry(EntryId(0)), 0, 1);
        assert_eq!(given(&mut interval, None), (vec![], 0));
        interval.ran(Owner::Entry(EntryId(0)), 0, 1);
        assert_eq!(given(&mut interval, Some(170)), (vec![], 0));
        // A clock that goes backwards was set anew.
        interval.ran(Owner::Entry(EntryId(0)), 0, 1);
        assert_eq!(given(&mut interval, Some(160)), (vec![], 0));
    }

    #[test]
    fn an_interval_without_a_timestamp_takes_no_more_memory_than_there_are_entries() {
        let mut interval = Interval::default();
        given(&mut interval, Some(0));
        for index in 0..1_000_000 {
            interval.ran(Owner::Entry(EntryId(index % 10)), 0, 1);
        }
        assert!(interval.shares.len() <= MANY);
        let (given, instructions) = given(&mut interval, Some(1_000_000));
        assert_eq!(instructions, 1_000_000);
        assert_eq!(given.iter().map(|(_, ticks)| ticks).sum::<u64>(), 1_000_000);
    }
}
