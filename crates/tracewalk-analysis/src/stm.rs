//! The reports of an STM: data, flags and triggers with their senders, and the messages that Linux writes.
//!
//! Linux's `stm_p_basic` writes a message in pieces of at most the STM's size, the first with a time, and a flag after it. A message is
//! put together only if its beginning was seen, no write of its sender was lost, and its sizes are those of such pieces: an STM
//! that compresses data leaves leading zeros out.

use std::collections::BTreeMap;
use std::fmt;

use tracewalk::ids::Address;
use tracewalk::protocol::stm::{Decoder, Packet, Sender, Size};
use tracewalk::protocol::{Describe as _, Item, Malformation, Packets};
use tracewalk::source::Instrumentation;
use tracewalk::span::Span;

use crate::itm::{ItmCounts, ItmEvent};

/// A report of an STM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StmEvent {
    /// The writer.
    pub sender: Sender,
    /// The packet: data, a flag, a trigger, an error, or the frequency of the timestamps.
    pub packet: Packet,
    /// The message that a flag ends, if its content is understood.
    pub message: Option<Message>,
}

/// A message that Linux wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The time of its first packet that has one.
    pub time: Option<u64>,
    /// The content.
    pub content: MessageContent,
}

/// The content of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageContent {
    /// Text, as consoles and `echo` write it.
    Text(String),
    /// An entry of ftrace: a function was called.
    Function {
        /// The function.
        function: Address,
        /// The place it was called from.
        caller: Address,
        /// The process, if the kernel states it (since Linux 4.10).
        process: Option<u32>,
    },
}

/// The packets of an STM → events.
#[derive(Debug)]
pub(crate) struct Reader {
    packets: Packets<Decoder>,
    events: Events,
}

#[derive(Debug, Default)]
struct Events {
    counts: ItmCounts,
    sender: Sender,
    /// Whether there was data after the beginning, or after the last loss. The first data may be the end of a cut message.
    has_data: bool,
    /// The messages that are being written. A sender without one has not ended a message since the last loss.
    open: BTreeMap<Sender, Open>,
}

/// A message that is being written.
#[derive(Debug, Default)]
struct Open {
    time: Option<u64>,
    bytes: Vec<u8>,
    /// The size of the last piece; 0 before the first.
    last: u8,
    /// Whether the pieces cannot be put together.
    is_odd: bool,
    /// Whether the beginning may be missing.
    is_unsure: bool,
}

/// The longest message that is put together.
const LONGEST_MESSAGE: usize = 1 << 12;
/// The most senders whose messages are put together.
const MOST_SENDERS: usize = 1 << 12;
/// The packets that report lost writes.
pub const STM_LOSSES: [&str; 2] = ["merr", "gerr"];

impl Reader {
    pub(crate) fn new() -> Self {
        let counts = ItmCounts { protocol: Instrumentation::Stm, ..ItmCounts::default() };
        Self { packets: Packets::new(Decoder::new()), events: Events { counts, ..Events::default() } }
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
        events.lose();
    }

    /// Discards an incomplete packet at the end of the input.
    pub(crate) fn forget_incomplete(&mut self) {
        self.packets.forget_incomplete();
    }

    pub(crate) fn finish(&mut self, emit: &mut impl FnMut(Span, ItmEvent)) {
        let Self { packets, events } = self;
        packets.finish(&mut |item, span, _: &[u8]| events.item(item, span, emit));
    }
}

impl Events {
    fn item(&mut self, item: Item<Packet>, span: Span, emit: &mut impl FnMut(Span, ItmEvent)) {
        match item {
            Item::Packet(packet) => {
                *self.counts.packets.entry(packet.name()).or_default() += 1;
                self.sender = self.sender.after(&packet);
                if let Some(event) = self.event(packet) {
                    emit(span, ItmEvent::Stm(event));
                }
            }
            Item::Malformed(reason) => self.malformed(reason, span, emit),
            Item::Unsynchronised => {}
        }
    }

    /// Nothing that was begun can be completed.
    fn lose(&mut self) {
        self.open.clear();
        self.has_data = false;
    }

    fn malformed(&mut self, reason: Malformation, span: Span, emit: &mut impl FnMut(Span, ItmEvent)) {
        self.lose();
        if reason.is_damage() {
            self.counts.malformed += 1;
            emit(span, ItmEvent::Malformed { reason, bytes: span.bytes() });
        }
    }

    fn event(&mut self, packet: Packet) -> Option<StmEvent> {
        let sender = self.sender;
        let mut message = None;
        match packet {
            Packet::Data { size, value, marker, time } => self.data(size, value, marker, time),
            Packet::Flag { .. } => {
                let written = self.open.remove(&sender);
                message = written.and_then(|open| open.message(packet.time()));
                if self.open.len() < MOST_SENDERS {
                    self.open.insert(sender, Open::default());
                }
            }
            Packet::MasterError(_) => self.open.retain(|of, _| of.master != sender.master),
            Packet::GlobalError(_) => self.open.clear(),
            Packet::Trigger { .. } | Packet::Frequency { .. } => {}
            _ => return None,
        }
        Some(StmEvent { sender, packet, message })
    }

    /// Adds to the sender's message. A time or a marker begins one, if nothing of it is known.
    fn data(&mut self, size: Size, value: u64, marker: bool, time: Option<u64>) {
        let begins = time.is_some() || marker;
        if begins && self.open.len() < MOST_SENDERS {
            let is_unsure = !self.has_data;
            self.open.entry(self.sender).or_insert_with(|| Open { is_unsure, ..Open::default() });
        }
        self.has_data = true;
        let Some(open) = self.open.get_mut(&self.sender) else { return };
        open.time = open.time.or(time);
        open.is_odd |= size == Size::D4
            || open.last > 0 && size.bytes() > open.last
            || open.bytes.len() >= LONGEST_MESSAGE;
        open.last = size.bytes();
        if !open.is_odd {
            open.bytes.extend(value.to_le_bytes().iter().take(size.bytes().into()));
        }
    }
}

impl Open {
    /// The message, if its content is understood.
    fn message(&self, at_flag: Option<u64>) -> Option<Message> {
        /// Fields of an ftrace entry before the addresses: type, flags, preemption count and process (kernel/trace/trace.h).
        const HEADER: usize = 8;
        /// TRACE_FN.
        const FUNCTION: [u8; 2] = 1_u16.to_le_bytes();
        if self.is_odd {
            return None;
        }
        // A call has a known length, text has not.
        let text = text(&self.bytes).filter(|_| !self.is_unsure);
        let content = match (text, self.bytes.as_slice()) {
            (Some(text), _) => MessageContent::Text(text),
            (None, addresses) if addresses.len() == 16 => function(addresses, None)?,
            (None, entry) if entry.len() == HEADER + 16 && entry.starts_with(&FUNCTION) => {
                let (header, addresses) = entry.split_at(HEADER);
                function(addresses, header.last_chunk().map(|process| u32::from_le_bytes(*process)))?
            }
            _ => return None,
        };
        Some(Message { time: self.time.or(at_flag), content })
    }
}

/// The text, if the bytes are one, without zeros and line ends after it.
fn text(bytes: &[u8]) -> Option<String> {
    let text = str::from_utf8(bytes).ok()?.trim_end_matches(['\0', '\r', '\n']);
    let is_text =
        !text.is_empty() && text.chars().all(|c| !c.is_control() || matches!(c, '\t' | '\n' | '\r' | '\x1b'));
    is_text.then(|| text.to_owned())
}

/// A call, if both addresses are in the kernel's half of the memory.
fn function(addresses: &[u8], process: Option<u32>) -> Option<MessageContent> {
    const KERNEL: u64 = 0xffff << 48;
    let [function, caller] =
        [addresses.first_chunk()?, addresses.last_chunk()?].map(|bytes| u64::from_le_bytes(*bytes));
    let [function, caller] = [function, caller].map(|at| (at >= KERNEL).then(|| Address::new(at)));
    Some(MessageContent::Function { function: function?, caller: caller?, process })
}

impl StmEvent {
    /// A short name for line formats.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.packet.name()
    }
}

impl Message {
    /// The content in words; `name` gives the name of a place in the kernel.
    pub fn text(&self, name: impl Fn(Address) -> Option<String>) -> String {
        let named = |address| name(address).unwrap_or_else(|| Address::to_string(&address));
        match &self.content {
            MessageContent::Text(text) => text.escape_debug().to_string(),
            MessageContent::Function { function, caller, process } => {
                let process = process.map_or_else(String::new, |process| format!("process {process}: "));
                format!("{process}{} <- {}", named(*function), named(*caller))
            }
        }
    }
}

impl fmt::Display for StmEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sender { master, channel } = self.sender;
        if let Some(time) = self.packet.time() {
            write!(f, "time {time} ")?;
        }
        match self.packet {
            Packet::MasterError(_) => return write!(f, "master {master}: writes were lost"),
            Packet::GlobalError(_) => return f.write_str("writes of several masters were lost"),
            Packet::Frequency { hertz: 0, .. } => {
                return f.write_str("the frequency of the times is not set");
            }
            Packet::Frequency { hertz, .. } => return write!(f, "times in {hertz} Hz"),
            _ => write!(f, "master {master} channel {channel}: ")?,
        }
        match self.packet {
            Packet::Data { size, value, marker, .. } => {
                let marker = if marker { " marked" } else { "" };
                write!(f, "0x{value:0width$x}{marker}", width = size.nibbles())
            }
            Packet::Trigger { value, .. } => write!(f, "trigger 0x{value:02x}"),
            _ => match &self.message {
                Some(message) => write!(f, "flag, ends {}", message.text(|_| None)),
                None => f.write_str("flag"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracewalk::protocol::stm::Encoder;
    use tracewalk::protocol::timestamp::TimestampCoding;

    const fn data(size: Size, value: u64, time: Option<u64>) -> Packet {
        Packet::Data { size, value, marker: false, time }
    }

    fn messages(packets: &[Packet]) -> Vec<String> {
        let (mut encoder, mut bytes) = (Encoder::new(), Vec::new());
        let [other, back] = [9, 0].map(|master| Packet::Master { master, wide: false });
        let version = Packet::Version(TimestampCoding::Binary);
        let sync = [Packet::Async, version, other, data(Size::D8, 1, None), back];
        sync.iter().chain(packets).for_each(|packet| encoder.encode(packet, &mut bytes));
        encoder.finish(&mut bytes);
        let (mut reader, mut found) = (Reader::new(), Vec::new());
        let mut note = |_, event| {
            if let ItmEvent::Stm(StmEvent { message: Some(message), .. }) = event {
                found.push(message.text(|_| None));
            }
        };
        bytes.chunks(3).for_each(|piece| reader.push(piece, &mut note));
        reader.finish(&mut note);
        found
    }

    const FLAG: Packet = Packet::Flag { time: None };

    /// `echo hello` into a `stm_p_basic` source.
    #[test]
    fn a_message_is_put_together_if_its_beginning_was_seen() {
        let word = u32::from_le_bytes(*b"hell").into();
        let [start, end] = [data(Size::D32, word, Some(5)), data(Size::D8, b'o'.into(), None)];
        assert_eq!(messages(&[start, end, FLAG]), ["hello"]);
        let untimed = [data(Size::D32, word, None), end, FLAG];
        assert!(messages(&untimed).is_empty());
        assert_eq!(messages(&[&untimed[..], &untimed].concat()), ["hello"]);
        // A larger piece after a smaller one: leading zeros were left out.
        assert!(messages(&[start, end, data(Size::D16, 0x4141, None), FLAG]).is_empty());
        // A loss, and another master between.
        assert!(messages(&[start, Packet::MasterError(1), end, FLAG]).is_empty());
        let [other, back] = [1, 0].map(|master| Packet::Master { master, wide: false });
        assert_eq!(messages(&[start, other, start, back, end, FLAG]), ["hello"]);
    }

    /// 24 bytes: TRACE_FN, flags, preemption count, process; then the function and its caller (Linux since 4.10).
    #[test]
    fn an_entry_of_ftrace_is_a_call() {
        let words = [1, 0x1234, 0x0035_9ff8, 0xffff_ffc0, 0x0022_4800, 0xffff_ffc0];
        let entry = words.map(|word| data(Size::D32, word, Some(7)));
        let call = "0xffffffc000359ff8 <- 0xffffffc000224800";
        assert_eq!(messages(&[&entry[2..], &[FLAG]].concat()), [call]);
        assert_eq!(messages(&[&entry[..], &[FLAG]].concat()), [format!("process 4660: {call}")]);
        // Not in the kernel's half, and of another length.
        assert!(messages(&[&entry[1..], &[FLAG]].concat()).is_empty());
        assert!(messages(&[entry[2], entry[2], entry[2], entry[2], FLAG]).is_empty());
    }
}
