//! A source's bytes to packets.

use core::fmt;

use crate::protocol::{Describe, Item, Malformation};
use crate::span::Span;

use super::dispatch::{Instrumentation, PacketChain, SourceConfig, each_packets};

/// One item of a packet stream; packets are visible only through their descriptions.
#[derive(Clone, Copy)]
pub enum PacketItem<'a> {
    /// A packet.
    Packet(&'a dyn Describe),
    /// Bytes that are not a packet, up to the place at which decoding continues.
    Malformed(Malformation),
    /// Bytes skipped in the search for synchronisation, or the continuation of a long malformed stretch.
    Unsynchronised,
}

/// Takes an item of a packet stream, its place and its bytes. It is a reference, so that each decoder is compiled once and not for
/// every consumer.
type TakePackets<'a> = dyn FnMut(PacketItem<'_>, Span, &[u8]) + 'a;

/// A source's bytes to packets.
#[derive(Clone, Debug)]
pub struct PacketStream(PacketChain);

impl PacketStream {
    /// A stream from the source's first byte.
    #[must_use]
    pub fn new(config: &SourceConfig) -> Self {
        Self(PacketChain::new(config))
    }

    /// A stream of packets without program flow, from the source's first byte.
    #[must_use]
    pub fn of(instrumentation: Instrumentation) -> Self {
        Self(instrumentation.into())
    }

    /// Takes the next bytes; calls `sink` with each item, its place and its bytes. The [`Span`] counts the
    /// source's bytes; a [`PlaceMap`](crate::frame::PlaceMap) gives their offsets in the capture.
    pub fn push(&mut self, bytes: &[u8], sink: &mut TakePackets<'_>) {
        each_packets!(&mut self.0, packets => packets.push(bytes, &mut described(sink)));
    }

    /// Bytes were lost before the next ones.
    pub fn lose_sync(&mut self, sink: &mut TakePackets<'_>) {
        each_packets!(&mut self.0, packets => packets.lose_sync(&mut described(sink)));
    }

    /// The source ends here.
    pub fn finish(&mut self, sink: &mut TakePackets<'_>) {
        each_packets!(&mut self.0, packets => packets.finish(&mut described(sink)));
    }

    /// Discards an incomplete packet at the end of the input: see
    /// [`Packets::forget_incomplete`](crate::protocol::Packets::forget_incomplete).
    pub fn forget_incomplete(&mut self) -> usize {
        each_packets!(&mut self.0, packets => packets.forget_incomplete())
    }
}

/// Adapts `sink` to a protocol's items.
fn described<P: Describe>(sink: &mut TakePackets<'_>) -> impl FnMut(Item<P>, Span, &[u8]) {
    |item, span, bytes| match item {
        Item::Packet(packet) => sink(PacketItem::Packet(&packet), span, bytes),
        Item::Malformed(reason) => sink(PacketItem::Malformed(reason), span, bytes),
        Item::Unsynchronised => sink(PacketItem::Unsynchronised, span, bytes),
    }
}

impl fmt::Debug for PacketItem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packet(packet) => {
                let mut shown = f.debug_struct(packet.name());
                packet.fields(&mut |name, value| _ = shown.field(name, &value));
                shown.finish()
            }
            Self::Malformed(reason) => f.debug_tuple("Malformed").field(reason).finish(),
            Self::Unsynchronised => f.write_str("Unsynchronised"),
        }
    }
}
