//! The marks of an axis.

use std::fmt;

use tracewalk::flow::{Element, EventKind, Passage, PassageId, Totals};
use tracewalk::span::{CaptureOffset, StreamOffset};

use crate::clock::Unit;
use crate::quick::mix;
use crate::sink::Part;

/// An axis: its unit, and the unit's length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// The unit that the axis counts.
    pub unit: Unit,
    /// Whether places between timestamps are found by cycles; otherwise by instructions.
    pub counts_cycles: bool,
    /// The number of units in a second, if stated.
    pub frequency: Option<f64>,
}

impl Scale {
    /// An axis in this unit, for sources with these measures of time.
    #[must_use]
    pub fn of(probes: &[Probe], unit: Unit, frequency: Option<f64>) -> Self {
        let has_cycles = || probes.iter().all(|probe| probe.instructions == 0 || probe.cycle_counts > 0);
        let counts_cycles = unit == Unit::Cycles || (unit == Unit::Time && has_cycles());
        Self { unit, counts_cycles, frequency }
    }
}

/// Determines the measures of time that a trace has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    /// How many instructions ran.
    pub instructions: u64,
    /// How many cycle counts there are.
    pub cycle_counts: u64,
    /// How many timestamps there are.
    pub timestamps: u64,
}

impl Probe {
    /// Takes the next element.
    pub fn element(&mut self, element: &Element) {
        match element {
            Element::Block(block) => self.instructions += u64::from(block.instructions),
            Element::Event(event) => match event.kind {
                EventKind::Cycles(_) => self.cycle_counts += 1,
                EventKind::Timestamp(time) => self.timestamps += u64::from(time != 0),
                _ => {}
            },
            Element::Gap(_) | Element::Proof(_) => {}
        }
    }

    /// Adds the numbers of another probe.
    pub const fn add(&mut self, other: &Self) {
        self.instructions += other.instructions;
        self.cycle_counts += other.cycle_counts;
        self.timestamps += other.timestamps;
    }

    /// Whether there is an axis in this unit.
    #[must_use]
    pub const fn has(&self, unit: Unit) -> bool {
        match unit {
            Unit::Instructions => true,
            Unit::Cycles => self.cycle_counts > 0,
            // A single timestamp bounds neither the time before it nor the time after it.
            Unit::Time => self.timestamps > 1,
            Unit::Samples => false,
        }
    }

    /// The best axis that all sources of these captures have. Cycles are counted exactly, but only timestamps are common
    /// to several sources of one capture.
    #[must_use]
    pub fn best(captures: &[Vec<Self>]) -> Unit {
        let ran = |probes: &[Self]| probes.iter().filter(|probe| probe.instructions > 0).count();
        let all = captures.iter().flatten().filter(|probe| probe.instructions > 0);
        let has = |unit| all.clone().count() > 0 && all.clone().all(|probe| probe.has(unit));
        let order = match captures.iter().any(|probes| ran(probes) > 1) {
            true => [Unit::Time, Unit::Cycles],
            false => [Unit::Cycles, Unit::Time],
        };
        order.into_iter().find(|unit| has(*unit)).unwrap_or(Unit::Instructions)
    }
}

/// Makes a probe of a stream.
#[derive(Clone, Debug, Default)]
pub struct Probing {
    /// The probe so far.
    pub probe: Probe,
    /// Passages without cycle counts and timestamps, each at the place of its number; empty before the first.
    without: Box<[Option<PassageId>]>,
}

/// The number of passages that are noted: a power of two.
const NOTED: usize = 1 << 12;

impl Probing {
    /// Takes a passage that has other elements than blocks.
    #[inline(never)]
    fn mixed(&mut self, passage: &Passage<'_>) {
        let (id, instructions) = (passage.id(), passage.totals().instructions);
        let place = (mix(id.number()) >> 32) as usize % NOTED;
        if self.without.get(place) == Some(&Some(id)) {
            self.probe.instructions += u64::from(instructions);
            return;
        }
        let before = self.probe;
        passage.elements().for_each(|element| self.probe.element(&element));
        if before == (Probe { instructions: before.instructions, ..self.probe }) {
            if self.without.is_empty() {
                self.without = vec![None; NOTED].into();
            }
            self.without.get_mut(place).into_iter().for_each(|noted| *noted = Some(id));
        }
    }
}

impl Part for Probing {
    fn with_tables(&mut self) -> Self {
        Self { probe: Probe::default(), without: std::mem::take(&mut self.without) }
    }

    fn take_tables(&mut self, from: &mut Self) {
        self.without = std::mem::take(&mut from.without);
    }

    #[inline]
    fn element(&mut self, element: &Element, _: impl FnOnce() -> CaptureOffset) {
        self.probe.element(element);
    }

    #[inline]
    fn passage(&mut self, passage: &Passage<'_>, _: impl FnMut(StreamOffset) -> CaptureOffset) {
        // A passage of blocks alone needs no look at its elements.
        let Totals { blocks, instructions, .. } = passage.totals();
        if u64::from(blocks) < passage.len() {
            self.mixed(passage);
        } else {
            self.probe.instructions += u64::from(instructions);
        }
    }
}

impl Scale {
    /// The nanoseconds of a number of ticks; a tick is one nanosecond if the frequency is not stated.
    #[must_use]
    pub fn nanoseconds(&self, ticks: u64) -> u64 {
        match self.frequency {
            None => ticks,
            Some(frequency) => {
                // A float holds 50 days of nanoseconds (2^52) exactly; longer times are rounded.
                let nanoseconds = ticks as f64 * 1e9 / frequency;
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
                let rounded = nanoseconds.round() as u64;
                rounded
            }
        }
    }

    /// The title of the axis of a source with this protocol. An ITM's reports have timestamps of their own.
    #[must_use]
    pub fn title(&self, protocol: &str) -> String {
        match (protocol, self.unit) {
            ("itm", Unit::Time) => format!("{TICKS}{}", At(self.frequency)),
            _ => self.to_string(),
        }
    }

    /// Whether the axis is one of seconds.
    #[must_use]
    pub const fn is_in_seconds(&self) -> bool {
        self.frequency.is_some()
    }
}

/// The text for titles: `in cycles at 72 MHz`.
impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.unit, self.frequency) {
            (Unit::Instructions, _) => f.write_str("in instructions (not time)"),
            (Unit::Samples, _) => f.write_str("in samples (not time)"),
            (Unit::Cycles, frequency) => write!(f, "in cycles{}", At(frequency)),
            (Unit::Time, frequency) => {
                let between = if self.counts_cycles { "cycles" } else { "instructions" };
                write!(f, "{TICKS}{}, interpolated between them by {between}", At(frequency))
            }
        }
    }
}

const TICKS: &str = "in ticks of the timestamps";

/// ` at 72 MHz`, if the frequency is stated.
struct At(Option<f64>);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1e9, "GHz"), (1e6, "MHz"), (1e3, "kHz")];
        let Some(hertz) = self.0 else { return Ok(()) };
        match units.into_iter().find(|(factor, _)| hertz >= *factor) {
            Some((factor, unit)) => write!(f, " at {} {unit}", hertz / factor),
            None => write!(f, " at {hertz} Hz"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_title_says_what_the_axis_counts() {
        let title = |unit, counts_cycles, frequency| Scale { unit, counts_cycles, frequency }.to_string();
        assert_eq!(title(Unit::Instructions, false, None), "in instructions (not time)");
        assert_eq!(title(Unit::Cycles, true, Some(72e6)), "in cycles at 72 MHz");
        assert_eq!(
            title(Unit::Time, false, None),
            "in ticks of the timestamps, interpolated between them by instructions"
        );
    }

    #[test]
    fn cycles_are_best_for_one_source_and_timestamps_for_several() {
        let both = Probe { instructions: 1, cycle_counts: 1, timestamps: 2 };
        let time = Probe { cycle_counts: 0, ..both };
        let nothing = Probe { timestamps: 1, ..time };
        let idle = Probe::default();
        assert_eq!(Probe::best(&[vec![both]]), Unit::Cycles);
        assert_eq!(Probe::best(&[vec![both, idle]]), Unit::Cycles);
        assert_eq!(Probe::best(&[vec![both, time]]), Unit::Time);
        assert_eq!(Probe::best(&[vec![both, both]]), Unit::Time);
        assert_eq!(Probe::best(&[vec![both], vec![both]]), Unit::Cycles);
        assert_eq!(Probe::best(&[vec![both], vec![time]]), Unit::Time);
        assert_eq!(Probe::best(&[vec![nothing]]), Unit::Instructions);
        assert_eq!(Probe::best(&[]), Unit::Instructions);
    }
}
