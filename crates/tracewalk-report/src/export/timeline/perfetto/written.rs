//! Caches packets without their times.
//!
//! Most items of a timeline equal an earlier one apart from the time: a call of the same function, an end on the same track.
//! The cache keeps an item's bytes, so that an equal item is a copy.

use std::io;

use prost::Message;
use prost::encoding::{encode_varint, encoded_len_varint};

use super::messages::Packet;
use tracewalk_analysis::quick::hash;
use tracewalk_analysis::timeline::{Certainty, Change, Finish, Item, Start, Track, What};

/// The number of packets that are kept: a power of two. A packet has some dozens of bytes.
const KEPT: usize = 1 << 12;

/// The header of `Trace.packet`.
const PACKET_HEADER: u8 = 0b0000_1010;

/// The header of `TracePacket.timestamp`, the first of the fields in use.
const TIMESTAMP_HEADER: u8 = 0b0100_0000;

/// The key of a packet without new names: everything that it depends on apart from the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Content {
    Begin { track: Track, what: What, start: Start, certainty: Certainty },
    End { track: Track, finish: Finish, certainty: Certainty },
}

/// A packet without its time.
#[derive(Debug)]
struct Known {
    content: Content,
    bytes: Vec<u8>,
}

/// A direct-mapped cache of the last packets of one source.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// Empty before the first.
    slots: Box<[Option<Known>]>,
}

impl Content {
    /// The key of an item; `None` for a mark, whose text may be anything.
    #[inline]
    pub(super) fn of(item: &Item) -> Option<Self> {
        let certainty = item.at.certainty;
        match item.change {
            Change::Begin(span) => {
                Some(Self::Begin { track: span.track, what: span.what, start: span.start, certainty })
            }
            Change::End { track, finish, .. } => Some(Self::End { track, finish, certainty }),
            Change::Mark { .. } => None,
        }
    }

    #[inline]
    fn slot(&self) -> usize {
        (hash(self) >> 20) as usize % KEPT
    }
}

impl Written {
    /// The bytes of a packet after its time, if it is cached.
    #[inline]
    pub(super) fn get(&self, content: &Content) -> Option<&[u8]> {
        let known = self.slots.get(content.slot())?.as_ref()?;
        (known.content == *content).then_some(&known.bytes)
    }

    /// Keeps the bytes of a packet after its time.
    pub(super) fn keep(&mut self, content: Content, bytes: Vec<u8>) {
        if self.slots.is_empty() {
            self.slots = std::iter::repeat_with(|| None).take(KEPT).collect();
        }
        if let Some(slot) = self.slots.get_mut(content.slot()) {
            *slot = Some(Known { content, bytes });
        }
    }
}

/// The bytes of a packet after its time.
pub(super) fn without_time(packet: &Packet) -> Vec<u8> {
    debug_assert_eq!(packet.timestamp, None);
    packet.encode_to_vec()
}

/// Appends a packet with these bytes after its time.
#[inline]
pub(super) fn append_at(time: u64, bytes: &[u8], to: &mut Vec<u8>) {
    to.push(PACKET_HEADER);
    encode_varint((1 + encoded_len_varint(time) + bytes.len()) as u64, to);
    to.push(TIMESTAMP_HEADER);
    encode_varint(time, to);
    to.extend_from_slice(bytes);
}

/// Appends a packet.
pub(super) fn append(packet: &Packet, to: &mut Vec<u8>) -> io::Result<()> {
    to.push(PACKET_HEADER);
    Ok(packet.encode_length_delimited(to)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_in_two_parts_is_that_packet() {
        for time in [0, 1, 127, 128, 1 << 34, u64::MAX] {
            let rest =
                Packet { trusted_packet_sequence_id: Some(7), sequence_flags: Some(2), ..Packet::default() };
            let whole = Packet { timestamp: Some(time), ..rest.clone() };
            let (mut one, mut other) = (Vec::new(), Vec::new());
            append(&whole, &mut one).unwrap();
            append_at(time, &without_time(&rest), &mut other);
            assert_eq!(one, other);
        }
    }
}
