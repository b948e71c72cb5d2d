//! The level changes of a recording's channels, in order of time.

use crate::capture::error::CaptureError;

/// A moment in a recording, in samples or in the recording's unit of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(pub u64);

impl Tick {
    /// The number of ticks from this moment until `later`; 0 if `later` is not later.
    #[must_use]
    pub const fn until(self, later: Self) -> f64 {
        // Exact below 2^53, which a recording in picoseconds reaches after 2.5 hours.
        later.0.saturating_sub(self.0) as f64
    }
}

/// The levels of the requested channels, in the order of the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Levels(pub(super) u64);

/// The most channels that can be requested at once.
pub(super) const MOST_CHANNELS: usize = 64;

impl Levels {
    /// Whether the channel at `index` is high.
    pub(super) const fn is_high(self, index: usize) -> bool {
        index < MOST_CHANNELS && self.0 >> index & 1 == 1
    }

    /// The same levels with the channel at `index` high or low.
    pub(super) const fn with(self, index: usize, high: bool) -> Self {
        if index >= MOST_CHANNELS {
            return self;
        }
        Self(if high { self.0 | 1 << index } else { self.0 & !(1 << index) })
    }
}

/// The levels from a moment on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) at: Tick,
    pub(super) levels: Levels,
}

impl Change {
    /// The same change with inverted levels.
    pub(super) const fn inverted(self) -> Self {
        Self { levels: Levels(!self.levels.0), ..self }
    }
}

/// The changes of a recording in order of time. The first one has the initial levels. The last one marks the
/// end and repeats the levels. Nothing follows an error.
pub(super) trait Changes: Iterator<Item = Result<Change, CaptureError>> {}

impl<T: Iterator<Item = Result<Change, CaptureError>>> Changes for T {}

/// The activity of one channel at the beginning of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) starts_high: bool,
    pub(super) start: Tick,
    /// The moments at which the level changed. Neighbouring edges have opposite directions.
    pub(super) edges: Vec<Tick>,
    /// The end of the known activity.
    pub(super) end: Tick,
}

impl Line {
    /// Adds a change of the recording; `high` is this channel's level.
    pub(super) fn take(&mut self, is_first: bool, at: Tick, high: bool) {
        if is_first {
            *self = Self { starts_high: high, start: at, edges: Vec::new(), end: at };
        } else if self.is_high() != high {
            self.edges.push(at);
        }
        self.end = at;
    }

    /// The same activity with inverted levels.
    pub(super) fn inverted(&self) -> Self {
        Self { starts_high: !self.starts_high, ..self.clone() }
    }

    fn is_high(&self) -> bool {
        self.starts_high ^ !self.edges.len().is_multiple_of(2)
    }

    /// The lengths of all pulses: the times from each edge to the next one.
    pub(super) fn pulses(&self) -> impl Iterator<Item = f64> {
        self.edges.iter().zip(self.edges.iter().skip(1)).map(|(from, to)| from.until(*to))
    }

    /// Whether nearly all pulses have the same length: a line that toggles this evenly is a clock.
    pub(super) fn is_clock(&self) -> bool {
        let mut pulses = self.pulses().collect::<Vec<_>>();
        pulses.sort_by(f64::total_cmp);
        let Some(&median) = pulses.get(pulses.len() / 2) else { return false };
        let even = pulses.iter().filter(|pulse| (median * 0.65..median * 1.35).contains(*pulse)).count();
        even * 10 > pulses.len() * 9
    }

    /// The times from each edge to the next one in the same direction. Unlike pulses, periods do not depend
    /// on how much faster a line falls than it rises.
    pub(super) fn periods(&self) -> impl Iterator<Item = f64> {
        self.edges.iter().zip(self.edges.iter().skip(2)).map(|(from, to)| from.until(*to))
    }
}
