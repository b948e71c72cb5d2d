//! The items of a packet stream.

use core::ops::Range;

use crate::span::{Span, StreamOffset};

use super::malformation::Malformation;

/// One item of a packet stream. Together the items cover every byte of the source exactly once, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<P> {
    /// A packet.
    Packet(P),
    /// Bytes that are not a packet, up to the place at which decoding continues.
    Malformed(Malformation),
    /// Bytes skipped before the first synchronisation, or the continuation of a long malformed stretch.
    Unsynchronised,
}

/// Receives the items of a packet stream. Closures implement it; implement it yourself to force inlining.
pub trait TakeItem<P> {
    /// Takes the next item, where it stands and its bytes.
    fn take(&mut self, item: Item<P>, span: Span, bytes: &[u8]);

    /// Takes the packet in the bytes `at` of `input`, which starts at `start`.
    #[inline(always)]
    fn take_packet(&mut self, packet: P, input: &[u8], start: StreamOffset, at: Range<usize>) {
        let span = Span::new(StreamOffset(start.0 + at.start as u64), at.len() as u64);
        self.take(Item::Packet(packet), span, input.get(at).unwrap_or_default());
    }
}

impl<P, F: FnMut(Item<P>, Span, &[u8])> TakeItem<P> for F {
    #[inline(always)]
    fn take(&mut self, item: Item<P>, span: Span, bytes: &[u8]) {
        self(item, span, bytes);
    }
}
