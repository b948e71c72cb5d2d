//! Costs of execution: instructions, cycles and time, and the code that the cycles were spent on.
//!
//! A cycle count precedes the block that it was spent on. Some counts have no block; the next element decides:
//!
//! ```text
//! before a block                 spent on the block
//! before an exception            on an instruction that the exception cancelled
//! before TraceOn                 on code that was not traced
//! before a gap, and after one up to the last count before a block
//!                                on code that could not be followed: each waypoint of it has a count and no block
//! ```
//!
//! ```
//! use tracewalk_analysis::clock::{Cost, Unit};
//!
//! // The cycles of a block, distributed over its three instructions.
//! let block = Cost { instructions: 3, cycles: 10, time: 0 };
//! let cycles = [0, 1, 2].map(|before| block.share(before, 1, 3).cycles);
//! assert_eq!(cycles.iter().sum::<u64>(), 10);
//! assert_eq!(Unit::Cycles.counted(cycles[0]), "3 cycles");
//! ```

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};
use tracewalk::flow::{Element, EventKind};
use tracewalk::span::Span;

use crate::analysis::Repeated;

/// An amount of cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Instructions that were executed or passed; in a sampled profile, samples.
    pub instructions: u64,
    /// Cycles, if they are traced.
    pub cycles: u64,
    /// Ticks of the timestamps' counter, if there are timestamps: distributed over the instructions between two of them.
    pub time: u64,
}

impl Cost {
    /// The part that is measured in `unit`.
    #[must_use]
    pub const fn in_unit(&self, unit: Unit) -> u64 {
        match unit {
            Unit::Instructions | Unit::Samples => self.instructions,
            Unit::Cycles => self.cycles,
            Unit::Time => self.time,
        }
    }

    /// Whether all parts are zero.
    #[must_use]
    pub const fn is_zero(&self) -> bool {
        self.instructions == 0 && self.cycles == 0 && self.time == 0
    }

    /// The cost multiplied by a number.
    #[must_use]
    pub(crate) const fn times(&self, times: u64) -> Self {
        Self {
            instructions: self.instructions.saturating_mul(times),
            cycles: self.cycles.saturating_mul(times),
            time: self.time.saturating_mul(times),
        }
    }

    /// The share of `part` of `whole` items, if the first `before` items have received theirs. The shares of all items add up to
    /// the whole.
    #[must_use]
    pub fn share(&self, before: u64, part: u64, whole: u64) -> Self {
        Self {
            instructions: share(self.instructions, before, part, whole),
            cycles: share(self.cycles, before, part, whole),
            time: share(self.time, before, part, whole),
        }
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.instructions = self.instructions.saturating_add(other.instructions);
        self.cycles = self.cycles.saturating_add(other.cycles);
        self.time = self.time.saturating_add(other.time);
    }
}

/// The unit in which cost is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Instructions: every trace has them.
    Instructions,
    /// Cycles, of a cycle-accurate trace.
    Cycles,
    /// Ticks of the timestamps' counter.
    #[serde(rename = "ticks")]
    Time,
    /// Samples of the program counter, which an ITM sends.
    Samples,
}

impl Unit {
    /// All units.
    pub const ALL: [Self; 4] = [Self::Instructions, Self::Cycles, Self::Time, Self::Samples];

    /// Whether the unit is one of a clock.
    #[must_use]
    pub const fn has_frequency(self) -> bool {
        matches!(self, Self::Cycles | Self::Time)
    }

    /// The name after a number.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::Cycles => "cycles",
            Self::Time => "ticks",
            Self::Samples => "samples",
        }
    }

    /// A number with the unit: `1 cycle`, `20 cycles`.
    #[must_use]
    pub fn counted(self, count: u64) -> String {
        let name = self.name();
        let name = name.strip_suffix('s').filter(|_| count == 1).unwrap_or(name);
        format!("{count} {name}")
    }
}

/// Assigns cycles to the code that they were spent on.
#[derive(Clone, Debug, Default)]
pub struct CycleMeter {
    /// Cycles that were counted and not charged yet.
    pending: u64,
    /// Set after a gap, while waypoints may be counted that have no block.
    lost: bool,
    /// Whether the pending count is incomplete: the next count completes it, and has its waypoint.
    unfinished: bool,
    /// The last timestamp's packet, which may have a count of its own.
    timestamp: Option<Span>,
    /// Whether cycles were counted yet.
    counted: bool,
}

/// The elements that cycles were spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spent {
    /// The block.
    OnBlock(u64),
    /// An instruction that the exception cancelled.
    OnCancelled(u64),
    /// Code that could not be followed.
    OnUnfollowed(u64),
    /// Code that was not traced.
    Untraced(u64),
}

impl CycleMeter {
    /// Takes the next element; returns the cycles that it settles.
    pub fn element(&mut self, element: &Element) -> Option<Spent> {
        let timestamp = match element {
            Element::Proof(_) => return None,
            _ => self.timestamp.take(),
        };
        let spent = match element {
            Element::Block(_) => {
                self.lost = false;
                Spent::OnBlock(self.take())
            }
            Element::Gap(_) => {
                self.lost = true;
                Spent::OnUnfollowed(self.take())
            }
            Element::Proof(_) => return None,
            Element::Event(event) => match event.kind {
                EventKind::Cycles(cycles) => {
                    let before = if self.lost && !self.unfinished { self.take() } else { 0 };
                    self.pending = self.pending.saturating_add(cycles);
                    self.counted = true;
                    // A timestamp passes no instruction.
                    let by_timestamp = timestamp == Some(event.span);
                    self.unfinished = by_timestamp;
                    Spent::OnUnfollowed(before)
                }
                EventKind::TraceOn(_) => {
                    self.lost = false;
                    Spent::Untraced(self.take())
                }
                EventKind::Exception { handler, .. } => {
                    let lost = std::mem::replace(&mut self.lost, handler.is_none());
                    match lost {
                        true => Spent::OnUnfollowed(self.take()),
                        false => Spent::OnCancelled(self.take()),
                    }
                }
                EventKind::Timestamp(_) => {
                    self.timestamp = Some(event.span);
                    return None;
                }
                // Other events take no cycles.
                _ => return None,
            },
        };
        Some(spent).filter(|spent| spent.cycles() > 0)
    }

    /// Whether no cycles were counted that wait for an element.
    #[inline]
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        // Without cycle counts, what was lost makes no difference.
        self.pending == 0 && !self.unfinished && !(self.lost && self.counted)
    }

    /// Whether no cycles wait for an element of this passage, and the state after it depends on the passage alone.
    #[inline]
    #[must_use]
    pub fn counts_nothing(&self, repeated: &Repeated<'_>) -> bool {
        self.is_idle() && repeated.waited_cycles() == 0 && !(self.lost && repeated.totals().blocks == 0)
    }

    /// Whether elements came after a gap, or after an exception without a known handler.
    #[inline]
    #[must_use]
    pub const fn is_lost(&self) -> bool {
        self.lost
    }

    /// A passage was taken that counts no cycles. `lost` is the state of [`CycleMeter::is_lost`] after it.
    #[inline]
    pub const fn pass(&mut self, lost: bool) {
        *self = Self { pending: 0, lost, unfinished: false, timestamp: None, counted: self.counted };
    }

    /// The trace ends here; returns the remaining cycles.
    pub fn finish(&mut self) -> Option<Spent> {
        Some(Spent::OnUnfollowed(self.take())).filter(|spent| spent.cycles() > 0)
    }

    fn take(&mut self) -> u64 {
        self.unfinished = false;
        std::mem::take(&mut self.pending)
    }
}

impl Spent {
    /// The number of cycles.
    #[must_use]
    pub const fn cycles(self) -> u64 {
        match self {
            Self::OnBlock(cycles)
            | Self::OnCancelled(cycles)
            | Self::OnUnfollowed(cycles)
            | Self::Untraced(cycles) => cycles,
        }
    }
}

/// The part of `amount` that belongs to `part` of `whole` items after the first `before`.
#[must_use]
pub fn share(amount: u64, before: u64, part: u64, whole: u64) -> u64 {
    // Most amounts are zero, or belong to one item.
    if amount == 0 || whole == 0 {
        return 0;
    }
    if before == 0 && part == whole {
        return amount;
    }
    let up_to = |items: u64| match u128::from(whole) {
        0 => 0,
        whole => u128::from(amount) * u128::from(items) / whole,
    };
    // Both are at most `amount`, as long as there are no more items than `whole`.
    u64::try_from(up_to(before.saturating_add(part)) - up_to(before)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{block, event, exception, gap, interrupted, taken};
    use tracewalk::directive::BeginReason;
    use tracewalk::flow::{Event, GapReason};
    use tracewalk::ids::{Address, Exception, Isa, Location};
    use tracewalk::span::StreamOffset;

    fn spent(elements: &[Element]) -> Vec<Spent> {
        let mut meter = CycleMeter::default();
        let mut found = elements.iter().filter_map(|element| meter.element(element)).collect::<Vec<_>>();
        found.extend(meter.finish());
        found
    }

    fn cycles(count: u64) -> Element {
        // Each in a packet of its own.
        Element::Event(Event {
            kind: EventKind::Cycles(count),
            span: Span::new(StreamOffset(100 + count), 1),
        })
    }

    fn no_code() -> Element {
        gap(GapReason::NoCode(Location::new(Address::new(0x800), Isa::T32)))
    }

    #[test]
    fn counts_in_front_of_a_block_are_spent_on_it() {
        let found = spent(&[
            cycles(2),
            cycles(3),
            block(0x100, 0x104, taken()),
            cycles(4),
            block(0x104, 0x106, taken()),
        ]);
        assert_eq!(found, [Spent::OnBlock(5), Spent::OnBlock(4)]);
    }

    #[test]
    fn waypoints_whose_code_no_image_holds_are_not_charged_to_the_next_block() {
        let found = spent(&[
            cycles(1),
            block(0x100, 0x104, taken()),
            cycles(20),
            no_code(),
            cycles(30),
            cycles(40),
            cycles(5),
            block(0x104, 0x106, taken()),
        ]);
        let expected = [
            Spent::OnBlock(1),
            Spent::OnUnfollowed(20),
            Spent::OnUnfollowed(30),
            Spent::OnUnfollowed(40),
            Spent::OnBlock(5),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_timestamps_count_goes_with_the_waypoint_after_it() {
        let stamp = Span::new(StreamOffset(50), 4);
        let found = spent(&[
            no_code(),
            cycles(7),
            Element::Event(Event { kind: EventKind::Timestamp(9), span: stamp }),
            Element::Event(Event { kind: EventKind::Cycles(2), span: stamp }),
            cycles(3),
            block(0x100, 0x104, taken()),
        ]);
        assert_eq!(found, [Spent::OnUnfollowed(7), Spent::OnBlock(5)]);
    }

    #[test]
    fn cycles_of_a_cancelled_instruction_and_of_what_was_not_traced_are_distinguished() {
        let found = spent(&[
            cycles(9),
            event(EventKind::TraceOn(BeginReason::Enabled)),
            cycles(1),
            block(0x100, 0x104, interrupted()),
            cycles(6),
            exception(Exception::M(15), Some(0x104), 0x800),
            cycles(2),
            block(0x800, 0x802, taken()),
            cycles(8),
        ]);
        let expected = [
            Spent::Untraced(9),
            Spent::OnBlock(1),
            Spent::OnCancelled(6),
            Spent::OnBlock(2),
            Spent::OnUnfollowed(8),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_was_lost_makes_no_difference_before_cycles_are_counted() {
        let mut meter = CycleMeter::default();
        meter.element(&no_code());
        // Only a block shows that execution is followed again.
        assert!(meter.is_lost() && meter.is_idle());
        meter.element(&cycles(3));
        assert!(!meter.is_idle());
        meter.element(&block(0x100, 0x104, taken()));
        assert!(!meter.is_lost() && meter.is_idle());
        meter.pass(true);
        assert!(meter.is_lost() && !meter.is_idle());
    }

    #[test]
    fn shares_add_up_to_the_whole() {
        for (amount, whole) in [(10, 3), (1, 7), (u64::MAX, 5), (0, 4)] {
            let sum: u64 = (0..whole).map(|before| share(amount, before, 1, whole)).sum();
            assert_eq!(sum, amount);
        }
    }
}
