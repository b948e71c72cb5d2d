//! SWO in its Manchester form: packets of one to eight bytes; each bit has a change in its middle.
//!
//! "CoreSight Components TRM" (DDI 0314H), 11.11.2, table 11.11:
//!
//! | | first half, second half |
//! |---|---|
//! | 0 | low, high |
//! | 1 | high, low |
//! | idle, and the stop bit | low, low |
//!
//! A packet is a start bit 1, one to eight bytes with the lowest bit first, and a stop bit.

use super::Receiver;
use super::changes::Tick;

/// Reads bytes from the edges of a line.
#[derive(Clone, Debug)]
pub(super) struct Manchester {
    /// The length of half a bit, in ticks.
    half: f64,
    state: State,
    /// The last edge, or the start of the recording.
    last: Tick,
    /// The line's level since the last edge.
    high: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Between packets, or at the start of the recording. A packet starts after the line has been low for a
    /// while.
    Between,
    /// The first half of a start bit.
    Start,
    /// In a packet.
    Packet {
        /// The middle of the last bit.
        middle: Tick,
        /// Whether the edge between the last bit and the next one has passed.
        passed_border: bool,
        /// The bits of the incomplete byte, the newest one highest, and their number in the packet.
        byte: u8,
        bits: u32,
        /// The moment at which the byte began.
        began: Tick,
    },
}

/// The most bits in a packet.
const MOST_BITS: u32 = 64;

impl Manchester {
    /// A reader of a line with the level `high` at `start`.
    pub(super) const fn new(half: f64, start: Tick, high: bool) -> Self {
        Self { half, state: State::Between, last: start, high }
    }

    /// Takes an edge: the line changes its level.
    pub(super) fn edge(&mut self, at: Tick, receiver: &mut impl Receiver) {
        let rises = !self.high;
        // Within a packet, no level lasts longer than a bit.
        let was_long = self.last.until(at) >= 2.5 * self.half;
        self.state = match self.state {
            State::Between if rises && was_long => State::Start,
            State::Between => State::Between,
            State::Start => {
                let width = self.last.until(at) / self.half;
                if (0.5..1.5).contains(&width) {
                    State::Packet { middle: at, passed_border: false, byte: 0, bits: 0, began: at }
                } else {
                    receiver.error(at);
                    State::Between
                }
            }
            State::Packet { middle, bits, .. } if middle.until(at) >= 2.5 * self.half => {
                // A stop bit is low, so only a rising edge can end it.
                if !rises || !bits.is_multiple_of(8) || bits == 0 {
                    receiver.error(at);
                }
                if rises { State::Start } else { State::Between }
            }
            State::Packet { middle, passed_border, byte, bits, began } => {
                let distance = middle.until(at) / self.half;
                let is_border = (0.5..1.5).contains(&distance);
                if is_border && !passed_border {
                    State::Packet { middle, passed_border: true, byte, bits, began }
                } else if distance >= 1.5 && bits < MOST_BITS {
                    bit(!rises, at, (byte, bits, began), receiver)
                } else {
                    receiver.error(at);
                    State::Between
                }
            }
        };
        self.high = rises;
        self.last = at;
    }

    /// Ends the recording.
    pub(super) fn finish(&self, end: Tick, receiver: &mut impl Receiver) {
        if let State::Packet { middle, bits, .. } = self.state
            && middle.until(end) >= 2.5 * self.half
            && (self.high || !bits.is_multiple_of(8) || bits == 0)
        {
            receiver.error(end);
        }
    }
}

/// Takes the next bit of a packet, whose middle is at `at`.
fn bit(one: bool, at: Tick, (byte, bits, began): (u8, u32, Tick), receiver: &mut impl Receiver) -> State {
    let began = if bits.is_multiple_of(8) { at } else { began };
    let byte = byte >> 1 | u8::from(one) << 7;
    let bits = bits + 1;
    if bits.is_multiple_of(8) {
        receiver.byte(byte, began);
    }
    State::Packet { middle: at, passed_border: false, byte, bits, began }
}
