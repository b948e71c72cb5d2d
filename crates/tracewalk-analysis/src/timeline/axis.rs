//! Places in the trace → places on the axis.
//!
//! Instructions and cycles are counted, so that each place is known at once. On an axis of time, only timestamps give places.
//! Changes between two timestamps wait for the second one, and are placed by cycles, or by instructions if cycles are not traced:
//!
//! ```text
//! between two timestamps            in proportion
//! … with unknown execution in it    from both ends, at the pace of the interval before
//! before the first, after the last at the pace of the nearest interval
//! ```

use std::collections::VecDeque;

use super::item::{Certainty, Change, Item, Moment};
use super::place::Place;
use crate::clock::Unit;

/// Places changes on the axis.
#[derive(Debug)]
pub(super) struct Axis {
    by_time: bool,
    /// Changes that wait for the next timestamp.
    waiting: VecDeque<(Place, Change)>,
    /// The number of them before the first timestamp.
    before_first: usize,
    /// The number of them before a stretch of unknown length.
    before_unknown: Option<usize>,
    anchor: Option<Anchor>,
    pace: Option<Pace>,
    /// The offset of the timestamps, because their counter was set back.
    set_back: u64,
    last: u64,
}

/// A place with a timestamp.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    count: u64,
    time: u64,
}

/// How fast time passed.
#[derive(Clone, Copy, Debug)]
struct Pace {
    count: u64,
    time: u64,
}

/// The most changes that wait for a timestamp.
const MOST_WAITING: usize = 1 << 16;

impl Pace {
    /// One tick for each count, if the pace is unknown.
    const UNKNOWN: Self = Self { count: 1, time: 1 };

    fn time(self, count: u64) -> u64 {
        let time = u128::from(count) * u128::from(self.time) / u128::from(self.count.max(1));
        u64::try_from(time).unwrap_or(u64::MAX)
    }
}

impl Axis {
    pub(super) fn new(unit: Unit) -> Self {
        Self {
            by_time: unit == Unit::Time,
            waiting: VecDeque::new(),
            before_first: 0,
            before_unknown: None,
            anchor: None,
            pace: None,
            set_back: 0,
            last: 0,
        }
    }

    /// A change happened. If its place is known at once, the item is built in place: copying a value that was just written in
    /// parts stalls.
    #[inline(always)]
    pub(super) fn push(&mut self, place: Place, change: Change, sink: &mut impl FnMut(Item)) {
        if self.by_time {
            self.wait(place, change, sink);
        } else {
            self.give(Moment { ticks: place.count, certainty: place.certainty }, change, sink);
        }
    }

    #[inline(never)]
    fn wait(&mut self, place: Place, change: Change, sink: &mut impl FnMut(Item)) {
        if self.waiting.len() >= MOST_WAITING {
            self.flush(sink);
        }
        self.waiting.push_back((place, change));
    }

    /// Code of unknown length ran.
    pub(super) fn unknown(&mut self) {
        if self.anchor.is_some() {
            self.before_unknown.get_or_insert(self.waiting.len());
        }
    }

    /// A timestamp gives the time at `count`.
    pub(super) fn timestamp(&mut self, count: u64, time: u64, sink: &mut impl FnMut(Item)) {
        if !self.by_time {
            return;
        }
        let Some(anchor) = self.anchor else {
            self.anchor = Some(Anchor { count, time });
            self.before_first = self.waiting.len();
            return;
        };
        let counted = count.saturating_sub(anchor.count);
        let mut time = time.saturating_add(self.set_back);
        if time < anchor.time {
            let guess = anchor.time.saturating_add(self.pace.unwrap_or(Pace::UNKNOWN).time(counted));
            self.set_back = self.set_back.saturating_add(guess - time);
            time = guess;
        }
        let interval = Pace { count: counted, time: time - anchor.time };
        let before_unknown = self.before_unknown.take();
        let known = counted > 0 && before_unknown.is_none();
        let pace = if known { interval } else { self.pace.unwrap_or(interval) };
        for index in 0..self.waiting.len() {
            let Some((place, change)) = self.waiting.pop_front() else { break };
            let passed = place.count.saturating_sub(anchor.count);
            let moment = if index < self.before_first {
                let before = pace.time(anchor.count.saturating_sub(place.count));
                estimated(anchor.time.saturating_sub(before))
            } else if known {
                let is_between = passed != 0 && passed != counted;
                let certainty = if is_between { Certainty::Interpolated } else { Certainty::Exact };
                let certainty = certainty.max(place.certainty);
                Moment { ticks: anchor.time + interval.time(passed), certainty }
            } else if before_unknown.is_none_or(|before| index < before) {
                estimated(anchor.time.saturating_add(pace.time(passed)).min(time))
            } else {
                estimated(time.saturating_sub(pace.time(counted.saturating_sub(passed))))
            };
            self.give(moment, change, sink);
        }
        self.before_first = 0;
        self.pace = if known { Some(interval) } else { self.pace };
        self.anchor = Some(Anchor { count, time });
    }

    /// There are no more timestamps.
    pub(super) fn flush(&mut self, sink: &mut impl FnMut(Item)) {
        let pace = self.pace.unwrap_or(Pace::UNKNOWN);
        let anchor = self.anchor.unwrap_or(Anchor { count: 0, time: 0 });
        while let Some((place, change)) = self.waiting.pop_front() {
            let moment = match place.count.checked_sub(anchor.count) {
                Some(passed) => estimated(anchor.time.saturating_add(pace.time(passed))),
                None => estimated(anchor.time.saturating_sub(pace.time(anchor.count - place.count))),
            };
            self.give(moment, change, sink);
        }
        self.before_first = 0;
        self.before_unknown = self.before_unknown.map(|_| 0);
    }

    #[inline(always)]
    fn give(&mut self, moment: Moment, change: Change, sink: &mut impl FnMut(Item)) {
        self.last = self.last.max(moment.ticks);
        sink(Item { at: Moment { ticks: self.last, ..moment }, change });
    }
}

const fn estimated(ticks: u64) -> Moment {
    Moment { ticks, certainty: Certainty::Estimated }
}

#[cfg(test)]
mod tests {
    use super::super::item::{Mark, Track};
    use super::*;
    use Certainty::{Estimated, Exact, Interpolated};

    /// Marks at these counts, timestamps and stretches of unknown length → when the marks are.
    enum Step {
        At(u64),
        Time(u64, u64),
        Unknown,
    }
    use Step::{At, Time, Unknown};

    fn moments(steps: &[Step]) -> Vec<(u64, Certainty)> {
        let mut axis = Axis::new(Unit::Time);
        let mut found = Vec::new();
        let mut sink = |item: Item| found.push((item.at.ticks, item.at.certainty));
        for step in steps {
            match *step {
                At(count) => {
                    let change = Change::Mark { track: Track::Events, mark: Mark::Trigger };
                    axis.push(Place { count, certainty: Exact }, change, &mut sink);
                }
                Time(count, time) => axis.timestamp(count, time, &mut sink),
                Unknown => axis.unknown(),
            }
        }
        axis.flush(&mut sink);
        found
    }

    #[test]
    fn what_lies_between_two_timestamps_is_placed_in_proportion() {
        let found = moments(&[Time(100, 1000), At(100), At(125), At(200), Time(200, 1200)]);
        assert_eq!(found, [(1000, Exact), (1050, Interpolated), (1200, Exact)]);
    }

    #[test]
    fn before_the_first_and_after_the_last_timestamp_the_pace_is_the_nearest_intervals() {
        let found = moments(&[At(90), Time(100, 1000), At(150), Time(200, 1200), At(210)]);
        assert_eq!(found, [(980, Estimated), (1100, Interpolated), (1220, Estimated)]);
    }

    #[test]
    fn an_unknown_stretch_is_placed_from_both_ends() {
        let found = moments(&[
            Time(0, 0),
            At(50),
            Time(100, 200),
            At(110),
            Unknown,
            At(110),
            At(120),
            Time(130, 1000),
        ]);
        assert_eq!(found, [(100, Interpolated), (220, Estimated), (960, Estimated), (980, Estimated)]);
    }

    #[test]
    fn a_counter_that_is_set_back_does_not_turn_time_back() {
        let found = moments(&[Time(0, 500), Time(100, 600), At(150), Time(200, 10), At(250), Time(300, 110)]);
        assert_eq!(found, [(650, Interpolated), (750, Interpolated)]);
    }

    #[test]
    fn without_timestamps_what_waits_is_bounded() {
        let mut axis = Axis::new(Unit::Time);
        let mut given = 0;
        for count in 0..200_000 {
            let change = Change::Mark { track: Track::Events, mark: Mark::Trigger };
            axis.push(Place { count, certainty: Exact }, change, &mut |_: Item| given += 1);
            assert!(axis.waiting.len() <= MOST_WAITING);
        }
        axis.flush(&mut |_: Item| given += 1);
        assert_eq!(given, 200_000);
    }
}
