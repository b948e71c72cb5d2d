//! A parallel trace port: TRACECLK and 1, 2, 4, 8 or 16 TRACEDATA pins, with data at both edges of the clock.
//!
//! Each clock edge carries one bit for each pin, the lowest on pin 0; the low bits of a byte come first. Full
//! synchronisation (FSYNC, 31 ones and a zero) shows where a byte starts: a frame cannot contain FSYNC at any
//! bit offset, because each mixed byte holds a zero (ID 0x7f is never used).
//!
//! Some ports change their data halfway between clock edges, as the architecture specifies; others change
//! them at the clock edge. `measure` detects which and sets the moment of sampling accordingly.

use tracewalk::frame::FSYNC;

use super::Receiver;
use super::changes::{Change, Levels, Tick};

/// The parameters for reading a port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Setup {
    /// The number of data pins.
    pub(super) pins: u8,
    /// The delay from a clock edge to the sampling of its data, in ticks; 0 samples at the edge itself.
    pub(super) delay: f64,
    /// The number of bits before the first byte.
    pub(super) skew: u32,
    /// Whether synchronisation confirms `skew`.
    pub(super) is_aligned: bool,
}

/// The index of TRACECLK and of the first data pin among the levels.
const CLOCK: usize = 0;
const DATA: usize = 1;

/// FSYNC as the last 32 bits, the newest one highest.
const FSYNC_BITS: u32 = u32::from_le_bytes(FSYNC);

/// HSYNC as the last 16 bits.
const HSYNC_BITS: u32 = FSYNC_BITS >> 16;

/// Reads bytes from the changes of a port's pins.
#[derive(Clone, Debug)]
pub(super) struct Port {
    setup: Setup,
    levels: Levels,
    /// A clock edge whose data have not been sampled yet.
    pending: Option<Tick>,
    /// The last 32 bits, the newest one highest.
    last_bits: u32,
    /// The number of bits in the incomplete byte; negative before the first byte.
    filled: i32,
    /// The moment at which the incomplete byte began.
    began: Tick,
    /// The number of bits so far; saturates.
    seen: u32,
}

impl Port {
    /// A reader of a port whose pins start with these levels.
    pub(super) fn new(setup: Setup, levels: Levels) -> Self {
        let filled = -i32::try_from(setup.skew).unwrap_or(0);
        Self { setup, levels, pending: None, last_bits: 0, filled, began: Tick(0), seen: 0 }
    }

    /// Takes a change of the pins' levels.
    pub(super) fn change(&mut self, change: Change, receiver: &mut impl Receiver) {
        if let Some(edge) = self.pending.filter(|edge| edge.until(change.at) > self.setup.delay) {
            self.pending = None;
            self.sample(edge, receiver);
        }
        if change.levels.is_high(CLOCK) != self.levels.is_high(CLOCK) {
            if self.setup.delay == 0.0 {
                // Data that change in the same sample belong to the next edge.
                self.sample(change.at, receiver);
            } else {
                if let Some(edge) = self.pending.take() {
                    // The clock became faster.
                    self.sample(edge, receiver);
                }
                self.pending = Some(change.at);
            }
        }
        self.levels = change.levels;
    }

    /// Ends the recording.
    pub(super) fn finish(&mut self, end: Tick, receiver: &mut impl Receiver) {
        if let Some(edge) = self.pending.take().filter(|edge| edge.until(end) > self.setup.delay) {
            self.sample(edge, receiver);
        }
    }

    /// Samples the data pins' levels, which belong to the clock edge at `at`.
    fn sample(&mut self, at: Tick, receiver: &mut impl Receiver) {
        for pin in 0..usize::from(self.setup.pins) {
            if self.filled == 0 {
                self.began = at;
            }
            self.last_bits = self.last_bits >> 1 | u32::from(self.levels.is_high(DATA + pin)) << 31;
            self.filled += 1;
            self.seen = self.seen.saturating_add(1);
            if self.filled == 8 {
                self.filled = 0;
                receiver.byte(self.last_bits.to_be_bytes()[0], self.began);
            }
            if self.last_bits == FSYNC_BITS && self.seen >= u32::BITS && self.filled != 0 {
                self.realign(at, receiver);
            }
        }
    }

    /// Realigns to an FSYNC that ends within a byte: clock edges were missed. The whole FSYNC is output
    /// again, so that the decoder finds the frames after it.
    fn realign(&mut self, at: Tick, receiver: &mut impl Receiver) {
        // Before the first byte nothing was output, so nothing can be wrong.
        if self.filled > 0 {
            receiver.error(at);
        }
        for byte in FSYNC {
            receiver.byte(byte, at);
        }
        self.filled = 0;
    }
}

/// Measures the parameters of a port at the beginning of a recording.
pub(super) fn measure(head: &[Change], pins: u8) -> Option<Setup> {
    let delay = delay(head)?;
    let mut setup = Setup { pins, delay, skew: 0, is_aligned: false };
    let first = head.first()?;
    let mut port = Port::new(setup, first.levels);
    let mut alignments = Alignments::default();
    for change in head.iter().skip(1) {
        port.change(*change, &mut alignments);
        alignments.look(&port);
    }
    if let Some(skew) = alignments.best() {
        setup.skew = skew;
        setup.is_aligned = true;
    }
    Some(setup)
}

/// The delay from a clock edge to a moment at which data are stable: 0 if data change between the edges, else
/// half the distance of two edges.
fn delay(head: &[Change]) -> Option<f64> {
    let mut distances = Vec::new();
    let mut data_changes = Vec::new();
    let mut clock_edge = None;
    for (before, after) in head.iter().zip(head.iter().skip(1)) {
        let differ = before.levels.0 ^ after.levels.0;
        if differ & !1 != 0
            && let Some(edge) = clock_edge
        {
            data_changes.push(if differ & 1 == 0 { Tick::until(edge, after.at) } else { 0.0 });
        }
        if differ & 1 != 0 {
            distances.extend(clock_edge.map(|edge: Tick| edge.until(after.at)));
            clock_edge = Some(after.at);
        }
    }
    distances.sort_by(f64::total_cmp);
    let half = *distances.get(distances.len() / 2)?;
    // A change just before an edge counts as a change at the edge.
    let is_at_edge = |after: &&f64| (**after / half - (**after / half).round()).abs() < 0.25;
    let at_edge = data_changes.iter().filter(is_at_edge).count();
    Some(if at_edge * 2 > data_changes.len() { half / 2.0 } else { 0.0 })
}

/// The bit positions, modulo 8, at which synchronisation ends.
#[derive(Default)]
struct Alignments {
    /// The first FSYNC. Missed clock edges can put later ones at other positions.
    full: Option<u32>,
    /// The number of HSYNCs at each position.
    half: [u64; 8],
    looked: u32,
}

impl Alignments {
    fn look(&mut self, port: &Port) {
        if port.seen == self.looked {
            return;
        }
        self.looked = port.seen;
        let place = port.seen % 8;
        if port.seen >= 32 && port.last_bits == FSYNC_BITS {
            self.full.get_or_insert(place);
        } else if port.seen >= 16
            && port.last_bits >> 16 == HSYNC_BITS
            && let Some(count) = self.half.get_mut(place as usize)
        {
            *count += 1;
        }
    }

    /// The number of bits before the first byte.
    fn best(&self) -> Option<u32> {
        /// Fewer HSYNCs than this can be data.
        const FEW: u64 = 4;
        let most = || (0..).zip(self.half).max_by_key(|(_, count)| *count).filter(|(_, count)| *count >= FEW);
        self.full.or_else(|| most().map(|(place, _)| place))
    }
}

impl Receiver for Alignments {
    fn byte(&mut self, _byte: u8, _at: Tick) {}
    fn error(&mut self, _at: Tick) {}
}
