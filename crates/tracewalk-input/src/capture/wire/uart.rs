//! SWO in its UART form: a start bit (low), eight data bits with the lowest first, a stop bit (high).
//!
//! "CoreSight Components TRM" (DDI 0314H), 11.11.2. The line is high when idle. Every byte is timed from its
//! own start edge, so the bit time needs an accuracy of only about a twentieth.
//!
//! A low stop bit is a framing error: a wrong edge was taken for a start. The reader then tries each nearby
//! edge and continues at the one that the most good bytes follow.

use std::collections::VecDeque;

use super::Receiver;
use super::changes::Tick;

/// Reads bytes from the edges of a line.
#[derive(Clone, Debug)]
pub(super) struct Uart {
    /// The length of a bit, in ticks.
    bit: f64,
    /// The edges that are still needed. Neighbours have opposite directions.
    edges: VecDeque<Tick>,
    /// Whether the first of `edges` falls; if there are none, whether the next edge will fall.
    falls: bool,
    /// The moment since which the line has been high before the first of `edges`, if it is high.
    high_since: Tick,
    /// Whether the start of bytes is known.
    synchronised: bool,
}

/// This many good bytes confirm where bytes start.
const ENOUGH_FRAMES: usize = 16;

/// The number of edges to look ahead: ten for each byte checked, and the candidates for a start.
const LOOKAHEAD: usize = 10 * (ENOUGH_FRAMES + 2);

/// The length of a byte on the wire, and the middle of its stop bit, in bits.
const FRAME: f64 = 10.0;
const STOP: f64 = 9.5;

/// The byte that starts at some edge.
#[derive(Clone, Copy, Debug)]
struct Frame {
    data: u8,
    starts_low: bool,
    stops_high: bool,
    /// The index of the first edge after the middle of the stop bit.
    next: usize,
}

impl Uart {
    /// A reader of a line with the level `high` at `start`.
    pub(super) fn new(bit: f64, start: Tick, high: bool) -> Self {
        Self { bit, edges: VecDeque::new(), falls: high, high_since: start, synchronised: false }
    }

    /// Takes an edge: the line changes its level.
    pub(super) fn edge(&mut self, at: Tick, receiver: &mut impl Receiver) {
        self.edges.push_back(at);
        // Work in batches, so that looking ahead costs little.
        if self.edges.len() >= 2 * LOOKAHEAD {
            while self.edges.len() > LOOKAHEAD {
                self.read_frame(None, receiver);
            }
        }
    }

    /// Ends the recording.
    pub(super) fn finish(&mut self, end: Tick, receiver: &mut impl Receiver) {
        while !self.edges.is_empty() {
            self.read_frame(Some(end), receiver);
        }
    }

    /// Reads one byte, or skips edges that form none. Consumes at least one edge.
    fn read_frame(&mut self, end: Option<Tick>, receiver: &mut impl Receiver) {
        if !self.falls {
            self.drop_edges(1);
            return;
        }
        if !self.synchronised {
            self.synchronise();
        }
        let Some(&start) = self.edges.front() else { return };
        let frame = self.frame(0);
        if end.is_some_and(|end| start.until(end) < STOP * self.bit) {
            // The recording ends within the byte.
            self.edges.clear();
        } else if frame.starts_low && frame.stops_high {
            receiver.byte(frame.data, start);
            self.drop_edges(frame.next);
        } else {
            receiver.error(start);
            self.resynchronise(start, frame, receiver);
        }
    }

    /// Finds the first byte. Skipped edges belong to a byte that started before the recording.
    fn synchronise(&mut self) {
        let Some(start) = self.edges.front() else { return };
        self.synchronised = true;
        if self.high_since.until(*start) < FRAME * self.bit {
            let best = self.best_start(0);
            self.drop_edges(best);
        }
    }

    /// Resumes after a malformed byte.
    fn resynchronise(&mut self, start: Tick, frame: Frame, receiver: &mut impl Receiver) {
        let best = self.best_start(2);
        let stays_low = self.edges.get(1).is_none_or(|rise| start.until(*rise) > STOP * self.bit);
        let was_in_place = self.edges.get(best).is_some_and(|next| start.until(*next) > STOP * self.bit);
        // A disturbed stop bit does not affect the data. A line that stays low sends nothing.
        if frame.starts_low && was_in_place && !stays_low {
            receiver.byte(frame.data, start);
        }
        self.drop_edges(best.max(1));
    }

    /// The nearby falling edge, from `first` on, that the most good bytes follow.
    fn best_start(&self, first: usize) -> usize {
        let Some(&start) = self.edges.front() else { return first };
        let is_near = |index: &usize| {
            self.edges.get(*index).is_some_and(|edge| start.until(*edge) <= (FRAME + 1.0) * self.bit)
        };
        let near = (first..self.edges.len()).step_by(2).take_while(is_near);
        // `max_by_key` returns the last of equal candidates; reversing the order selects the first one.
        near.collect::<Vec<_>>()
            .into_iter()
            .rev()
            .max_by_key(|&index| self.good_frames(index))
            .unwrap_or(first)
    }

    /// The number of bytes without an error that follow if one starts at this edge.
    fn good_frames(&self, first: usize) -> usize {
        let mut index = first;
        for count in 0..ENOUGH_FRAMES {
            if index >= self.edges.len() {
                // The edges end here without an error.
                return ENOUGH_FRAMES;
            }
            let frame = self.frame(index);
            if !frame.starts_low || !frame.stops_high {
                return count;
            }
            index = frame.next;
        }
        ENOUGH_FRAMES
    }

    /// The byte that starts at the falling edge at `index`.
    fn frame(&self, index: usize) -> Frame {
        let start = self.edges.get(index).copied().unwrap_or_default();
        let mut frame = Frame { data: 0, starts_low: true, stops_high: false, next: index + 1 };
        let mut high = false;
        for bit in 0_u8..10 {
            let middle = (f64::from(bit) + 0.5) * self.bit;
            while self.edges.get(frame.next).is_some_and(|edge| start.until(*edge) <= middle) {
                high = !high;
                frame.next += 1;
            }
            match bit {
                0 => frame.starts_low = !high,
                9 => frame.stops_high = high,
                _ => frame.data = frame.data >> 1 | u8::from(high) << 7,
            }
        }
        frame
    }

    fn drop_edges(&mut self, count: usize) {
        let count = count.min(self.edges.len());
        if let Some(last) = count.checked_sub(1).and_then(|last| self.edges.get(last)) {
            self.high_since = *last;
        }
        self.edges.drain(..count);
        self.falls ^= !count.is_multiple_of(2);
    }
}
