//! The reports of an ITM: text and values that software wrote, DWT events, and times.
//!
//! [`Input::itm`](crate::drive::Input::itm) gives the records of one ITM in the order of the capture. A record has the capture offset
//! of its first byte, so that it can be reported between records of other sources in the same frames.
//!
//! ```
//! use tracewalk_analysis::drive::{Carrier, Input, NoProgress, Stretch};
//! use tracewalk_analysis::itm::ItmEvent;
//!
//! // A synchronisation packet, and three bytes that software wrote to port 0.
//! let sent = [0, 0, 0, 0, 0, 0x80, 0x01, b'O', 0x01, b'K', 0x01, b'\n'];
//! let carrier = Carrier::Stretches(vec![Stretch::all(sent.len())]);
//! let input = Input { capture: &sent, carrier, rest: None, progress: &NoProgress };
//! let text = input.itm().find_map(|record| match record.event {
//!     ItmEvent::Text { port: 0, bytes } => Some(bytes),
//!     _ => None,
//! });
//! assert_eq!(text.as_deref(), Some(&b"OK\n"[..]));
//! ```

mod tables;
mod watched;

use std::fmt;

use tracewalk::ids::Exception;
use tracewalk::protocol::itm::{ExceptionAction, Packet, Size, TimestampDelay};
use tracewalk::protocol::{Describe as _, Item, Malformation, Packets, itm};
use tracewalk::source::Instrumentation;
use tracewalk::span::Span;

use crate::stm::StmEvent;

pub use tables::{ITM_TABLES, VALUES_TABLE, event_table, values_table};
pub use watched::Watched;

/// A report of an ITM or an STM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItmEvent {
    /// Software wrote text to a stimulus port, byte by byte: a line with its line end, or the text before another event.
    Text {
        /// The port, 0 to 255.
        port: u8,
        /// The bytes, at least one.
        bytes: Vec<u8>,
    },
    /// Software wrote a value other than text to a stimulus port.
    Value {
        /// The port, 0 to 255.
        port: u8,
        /// The size of the write.
        size: Size,
        /// The value written.
        value: u32,
    },
    /// A report of the DWT, or a loss of packets.
    Packet(Packet),
    /// The time of the previous events, in ticks since the last local time.
    LocalTime {
        /// The ticks.
        ticks: u64,
        /// Whether the timestamp, the packet before it, or both were delayed.
        delay: TimestampDelay,
        /// All ticks since the capture began.
        total: u64,
    },
    /// The global timestamp; bits that were not sent yet are 0.
    GlobalTime {
        /// The timestamp's value.
        value: u64,
        /// Whether the clock's rate changed since the last one.
        clock_changed: bool,
    },
    /// A report of an STM.
    Stm(StmEvent),
    /// Malformed bytes.
    Malformed {
        /// The reason.
        reason: Malformation,
        /// The number of bytes.
        bytes: u64,
    },
}

/// Counts of packets by kind, of malformed stretches and of bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ItmCounts {
    /// The protocol.
    pub protocol: Instrumentation,
    /// Packets by name.
    pub packets: std::collections::BTreeMap<&'static str, u64>,
    /// Malformed stretches.
    pub malformed: u64,
    /// Bytes that the ITM sent.
    pub bytes: u64,
}

/// Turns an ITM's bytes into events.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    packets: Packets<itm::Decoder>,
    events: Events,
}

/// The events that are made of packets.
#[derive(Clone, Debug, Default)]
struct Events {
    counts: ItmCounts,
    page: u8,
    /// Text that may continue, and where it began.
    text: Option<(Span, u8, Vec<u8>)>,
    /// Whether an event other than the text has no time yet.
    untimed: bool,
    /// The time of the text that may continue.
    time: Option<(Span, u64, TimestampDelay)>,
    total: u64,
    global: u64,
    clock_changed: bool,
}

/// The longest text of a record; longer text becomes several records.
const LONGEST_TEXT: usize = 1 << 10;
/// The bits of the global timestamp below those of its packet with the high bits.
const GLOBAL_LOW_BITS: u32 = 26;

impl Reader {
    pub(crate) fn new() -> Self {
        Self { packets: Packets::new(itm::Decoder::new()), events: Events::default() }
    }

    pub(crate) const fn counts(&self) -> &ItmCounts {
        &self.events.counts
    }

    pub(crate) fn push(&mut self, bytes: &[u8], emit: &mut impl FnMut(Span, ItmEvent)) {
        let Self { packets, events } = self;
        events.counts.bytes += bytes.len() as u64;
        packets.push(bytes, &mut |item, span, _: &[u8]| events.item(item, span, emit));
    }

    pub(crate) fn lose_sync(&mut self, emit: &mut impl FnMut(Span, ItmEvent)) {
        let Self { packets, events } = self;
        packets.lose_sync(&mut |item, span, _: &[u8]| events.item(item, span, emit));
        events.end_text(emit);
    }

    /// Discards an incomplete packet at the end of the input.
    pub(crate) fn forget_incomplete(&mut self) {
        self.packets.forget_incomplete();
    }

    pub(crate) fn finish(&mut self, emit: &mut impl FnMut(Span, ItmEvent)) {
        let Self { packets, events } = self;
        packets.finish(&mut |item, span, _: &[u8]| events.item(item, span, emit));
        events.end_text(emit);
    }
}

impl Events {
    fn item(&mut self, item: Item<Packet>, span: Span, emit: &mut impl FnMut(Span, ItmEvent)) {
        match item {
            Item::Packet(packet) => {
                *self.counts.packets.entry(packet.name()).or_default() += 1;
                self.packet(packet, span, emit);
            }
            Item::Malformed(reason) => {
                self.counts.malformed += 1;
                self.end_text(emit);
                emit(span, ItmEvent::Malformed { reason, bytes: span.bytes() });
            }
            Item::Unsynchronised => {}
        }
    }

    fn packet(&mut self, packet: Packet, span: Span, emit: &mut impl FnMut(Span, ItmEvent)) {
        match packet {
            Packet::Sync => {}
            Packet::StimulusPage(page) => self.page = page,
            Packet::LocalTimestamp { delay, ticks } => {
                let ticks = u64::from(ticks);
                self.total = self.total.saturating_add(ticks);
                let (first, before) = self.time.map_or((span, 0), |(first, ticks, _)| (first, ticks));
                self.time = Some((first, before + ticks, delay));
                if self.text.is_none() || self.untimed {
                    self.end_text(emit);
                }
            }
            Packet::GlobalTimestampLow { value, bits, clock_changed, wrapped } => {
                let mask = (1_u64 << bits) - 1;
                self.global = self.global & !mask | u64::from(value);
                self.clock_changed |= clock_changed;
                if !wrapped {
                    self.emit_global(span, emit);
                }
            }
            Packet::GlobalTimestampHigh { value, .. } => {
                self.global = value << GLOBAL_LOW_BITS | self.global & ((1 << GLOBAL_LOW_BITS) - 1);
                self.emit_global(span, emit);
            }
            Packet::Stimulus { port, size, value } => self.stimulus(port, size, value, span, emit),
            Packet::Overflow
            | Packet::Extension { .. }
            | Packet::EventCounters(_)
            | Packet::Exception { .. }
            | Packet::PcSample(_)
            | Packet::DataPc { .. }
            | Packet::DataAddress { .. }
            | Packet::DataValue { .. } => {
                self.end_text(emit);
                emit(span, ItmEvent::Packet(packet));
                self.untimed = true;
            }
        }
    }

    fn stimulus(
        &mut self,
        port: u8,
        size: Size,
        value: u32,
        span: Span,
        emit: &mut impl FnMut(Span, ItmEvent),
    ) {
        let port = self.page << 5 | port;
        let text = u8::try_from(value).ok().filter(|byte| size == Size::Byte && is_text(*byte));
        let Some(byte) = text else {
            self.end_text(emit);
            emit(span, ItmEvent::Value { port, size, value });
            self.untimed = true;
            return;
        };
        if self.text.as_ref().is_some_and(|(_, of, _)| *of != port) {
            self.end_text(emit);
        }
        let (_, _, bytes) = self.text.get_or_insert_with(|| (span, port, Vec::new()));
        bytes.push(byte);
        if byte == b'\n' || bytes.len() >= LONGEST_TEXT {
            self.end_text(emit);
        }
    }

    fn end_text(&mut self, emit: &mut impl FnMut(Span, ItmEvent)) {
        if let Some((span, port, bytes)) = self.text.take() {
            emit(span, ItmEvent::Text { port, bytes });
        }
        self.emit_time(emit);
    }

    fn emit_time(&mut self, emit: &mut impl FnMut(Span, ItmEvent)) {
        if let Some((span, ticks, delay)) = self.time.take() {
            self.untimed = false;
            emit(span, ItmEvent::LocalTime { ticks, delay, total: self.total });
        }
    }

    fn emit_global(&mut self, span: Span, emit: &mut impl FnMut(Span, ItmEvent)) {
        self.end_text(emit);
        let clock_changed = std::mem::take(&mut self.clock_changed);
        emit(span, ItmEvent::GlobalTime { value: self.global, clock_changed });
    }
}

/// Whether a byte may belong to a text: printable, a part of a longer character, or a blank or line end.
const fn is_text(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~' | 0x80..)
}

impl ItmEvent {
    /// A short name for line formats.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Text { .. } => "text",
            Self::Value { .. } => "value",
            Self::Packet(packet) => packet.name(),
            Self::LocalTime { .. } => "local_time",
            Self::GlobalTime { .. } => "global_time",
            Self::Stm(event) => event.name(),
            Self::Malformed { .. } => "malformed",
        }
    }
}

impl fmt::Display for ItmEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text { port, bytes } => {
                let text = String::from_utf8_lossy(bytes);
                write!(f, "port {port}: {}", text.trim_end_matches(['\r', '\n']).escape_debug())
            }
            Self::Value { port, size, value } => {
                write!(f, "port {port}: 0x{value:0width$x}", width = 2 * usize::from(size.bytes()))
            }
            Self::Packet(packet) => packet_text(f, *packet),
            Self::LocalTime { ticks, delay, total } => {
                write!(f, "time +{ticks} = {total}")?;
                match delay {
                    TimestampDelay::None => Ok(()),
                    TimestampDelay::Timestamp => f.write_str(" (late)"),
                    TimestampDelay::Packet => f.write_str(" (of a late packet)"),
                    TimestampDelay::Both => f.write_str(" (late, of a late packet)"),
                }
            }
            Self::GlobalTime { value, clock_changed } => {
                let changed = if *clock_changed { ", at another rate from here on" } else { "" };
                write!(f, "global time {value}{changed}")
            }
            Self::Stm(event) => event.fmt(f),
            Self::Malformed { reason, bytes } => write!(f, "malformed, {bytes} bytes: {reason}"),
        }
    }
}

fn packet_text(f: &mut fmt::Formatter<'_>, packet: Packet) -> fmt::Result {
    match packet {
        Packet::Overflow => f.write_str("overflow: packets were lost"),
        Packet::EventCounters(counters) => {
            let names = counters.names().collect::<Vec<_>>().join(", ");
            write!(f, "counters wrapped: {names}")
        }
        Packet::Exception { number, action } => {
            match number {
                0 => f.write_str("thread mode")?,
                number => write!(f, "{}", Exception::M(number))?,
            }
            f.write_str(match action {
                ExceptionAction::Entered => " entered",
                ExceptionAction::Exited => " exited",
                ExceptionAction::Returned => " returned to",
            })
        }
        Packet::PcSample(Some(address)) => write!(f, "program counter {address}"),
        Packet::PcSample(None) => f.write_str("program counter: asleep"),
        Packet::DataPc { comparator, address } => {
            write!(f, "comparator {comparator}: access by {address}")
        }
        Packet::DataAddress { comparator, low_half } => {
            write!(f, "comparator {comparator}: access at 0x....{low_half:04x}")
        }
        Packet::DataValue { comparator, write, size, value } => {
            let what = if write { "written" } else { "read" };
            let width = 2 * usize::from(size.bytes());
            write!(f, "comparator {comparator}: 0x{value:0width$x} {what}")
        }
        other => f.write_str(other.name()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(bytes: &[u8]) -> Vec<String> {
        let mut reader = Reader::new();
        let mut events = Vec::new();
        let mut last = Span::default().start;
        let mut emit = |span: Span, event: ItmEvent| {
            assert!(span.start >= last, "{event}");
            last = span.start;
            events.push(event.to_string());
        };
        bytes.chunks(3).for_each(|piece| reader.push(piece, &mut emit));
        reader.finish(&mut emit);
        events
    }

    #[test]
    fn bytes_become_lines_and_times_do_not_cut_them() {
        let bytes = [
            1, b'h', 0xc0, 5, 1, b'i', 0x30, 1, b'\n', // a line with times in it
            1, b'a', 0x0e, 15, 0x10, 1, b'b', // cut by SysTick
            9, b'c', 0x18, 1, b'd', // port 1; page 1, port 32
            3, 1, 2, 3, 4, 0x70, 0x17, 6, 3, 0, 8, 0x15, 0,
        ];
        let expected = [
            "port 0: hi",
            "time +8 = 8",
            "port 0: a",
            "SysTick entered",
            "port 0: b",
            "port 1: c",
            "port 32: d",
            "port 32: 0x04030201",
            "overflow: packets were lost",
            "program counter 0x08000306",
            "program counter: asleep",
        ];
        assert_eq!(events(&bytes), expected);
    }

    #[test]
    fn the_global_time_is_put_together() {
        let low = [0x94, 0x81, 0x80, 0x80, 0b0100_0000];
        let high = [0xb4, 0x83, 0x80, 0x80, 0x00];
        let changed = [0x94, 0x05];
        let expected =
            [format!("global time {}", (3_u64 << 26) + 1), format!("global time {}", (3_u64 << 26) + 5)];
        assert_eq!(events(&[&low[..], &high, &changed].concat()), expected);
    }

    #[test]
    fn a_timestamp_after_a_text_belongs_to_the_events_before_the_text_as_well() {
        let found = events(&[0x0e, 0x0f, 0x10, 0x01, b'a', 0x10, 0x01, b'b', 0x20, 0x01, b'c', 0x30]);
        let expected = ["SysTick entered", "port 0: a", "time +1 = 1", "port 0: bc", "time +5 = 6"];
        assert_eq!(found, expected);
    }
}
