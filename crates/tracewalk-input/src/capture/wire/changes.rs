//! What the channels of a recording did, moment by moment.

use crate::capture::error::CaptureError;

/// A moment in a recording: its samples are counted, or the units of time that it is written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(pub u64);

impl Tick {
    /// How many ticks later `later` is; 0 if it is not later.
    #[must_use]
    pub const fn until(self, later: Self) -> f64 {
        // Exact below 2^53; a recording in picoseconds comes there after 2.5 hours.
        later.0.saturating_sub(self.0) as f64
    }
}

/// The levels of the channels that were asked for, in the order in which they were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Levels(pub(super) u64);

/// The most channels that can be asked for at once.
pub(super) const MOST_CHANNELS: usize = 64;

impl Levels {
    /// Whether the channel at `index` is high.
    pub(super) const fn is_high(self, index: usize) -> bool {
        index < MOST_CHANNELS && self.0 >> index & 1 == 1
    }

    /// The same with the channel at `index` at another level.
    pub(super) const fn with(self, index: usize, high: bool) -> Self {
        if index >= MOST_CHANNELS {
            return self;
        }
        Self(if high { self.0 | 1 << index } else { self.0 & !(1 << index) })
    }
}

/// From this moment on the levels are these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) at: Tick,
    pub(super) levels: Levels,
}

impl Change {
    /// The same with high for low.
    pub(super) const fn inverted(self) -> Self {
        Self { levels: Levels(!self.levels.0), ..self }
    }
}

/// The changes of a recording in the order of time. The first one says how it starts; the last one says where it ends
/// and repeats the levels. Nothing comes after an error.
pub(super) trait Changes: Iterator<Item = Result<Change, CaptureError>> {}

impl<T: Iterator<Item = Result<Change, CaptureError>>> Changes for T {}

/// The activity of one channel at the beginning of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) starts_high: bool,
    pub(super) start: Tick,
    /// When the level changed. Neighbours go in opposite directions.
    pub(super) edges: Vec<Tick>,
    /// Up to where this is known.
    pub(super) end: Tick,
}

impl Line {
    /// Takes a change of the recording; `high` is this channel's level.
    pub(super) fn take(&mut self, is_first: bool, at: Tick, high: bool) {
        if is_first {
            *self = Self { starts_high: high, start: at, edges: Vec::new(), end: at };
        } else if self.is_high() != high {
            self.edges.push(at);
        }
        self.end = at;
    }

    /// The same with high for low.
    pub(super) fn inverted(&self) -> Self {
        Self { starts_high: !self.starts_high, ..self.clone() }
    }

    fn is_high(&self) -> bool {
        self.starts_high ^ !self.edges.len().is_multiple_of(2)
    }

    /// How long the line kept each level that it both took and left.
    pub(super) fn pulses(&self) -> impl Iterator<Item = f64> {
        self.edges.iter().zip(self.edges.iter().skip(1)).map(|(from, to)| from.until(*to))
    }

    /// Whether nearly all pulses are as long as one another: what toggles so evenly is a clock.
    pub(super) fn is_clock(&self) -> bool {
        let mut pulses = self.pulses().collect::<Vec<_>>();
        pulses.sort_by(f64::total_cmp);
        let Some(&median) = pulses.get(pulses.len() / 2) else { return false };
        let even = pulses.iter().filter(|pulse| (median * 0.65..median * 1.35).contains(*pulse)).count();
        even * 10 > pulses.len() * 9
    }

    /// The times from each edge to the next one in the same direction. Unlike pulses they do not depend on how much
    /// faster a line falls than it rises.
    pub(super) fn periods(&self) -> impl Iterator<Item = f64> {
        self.edges.iter().zip(self.edges.iter().skip(2)).map(|(from, to)| from.until(*to))
    }
}
