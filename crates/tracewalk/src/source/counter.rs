//! Counting a source's packets.

use crate::protocol::{Item, Malformation, TakeItem};
use crate::span::Span;

use super::{PacketChain, PacketCounts, PacketStream, SourceConfig};

/// Counts a source's packets. What they say is passed over, which is much quicker than a [`PacketStream`].
#[derive(Clone, Debug)]
pub struct PacketCounter {
    chain: PacketChain,
    counts: PacketCounts,
}

/// Counts items, and hands out what is malformed.
struct Counting<'a, F> {
    counts: &'a mut PacketCounts,
    malformed: &'a mut F,
}

impl PacketCounter {
    /// A counter from the source's first byte.
    #[must_use]
    pub fn new(config: &SourceConfig) -> Self {
        Self { chain: PacketStream::new(config).0, counts: PacketCounts::default() }
    }

    /// Takes the next bytes; calls `malformed` with each stretch that is no packet. What was found in an address depends on
    /// packets that were passed over, and may be another value than a [`PacketStream`] finds.
    pub fn push(&mut self, bytes: &[u8], malformed: &mut impl FnMut(Malformation, Span)) {
        let taker = &mut Counting { counts: &mut self.counts, malformed };
        match &mut self.chain {
            PacketChain::Etmv3(packets) => packets.push_to(bytes, taker),
            PacketChain::Mtb(packets) => packets.push_to(bytes, taker),
            PacketChain::Pft(packets) => packets.push_to(bytes, taker),
        }
    }

    /// Bytes were lost before the next ones.
    pub fn lose_sync(&mut self, malformed: &mut impl FnMut(Malformation, Span)) {
        let taker = &mut Counting { counts: &mut self.counts, malformed };
        match &mut self.chain {
            PacketChain::Etmv3(packets) => packets.lose_sync_to(taker),
            PacketChain::Mtb(packets) => packets.lose_sync_to(taker),
            PacketChain::Pft(packets) => packets.lose_sync_to(taker),
        }
    }

    /// The source ends here.
    pub fn finish(&mut self, malformed: &mut impl FnMut(Malformation, Span)) {
        let taker = &mut Counting { counts: &mut self.counts, malformed };
        match &mut self.chain {
            PacketChain::Etmv3(packets) => packets.finish_to(taker),
            PacketChain::Mtb(packets) => packets.finish_to(taker),
            PacketChain::Pft(packets) => packets.finish_to(taker),
        }
    }

    /// Nobody waits for the rest of a packet that has begun.
    pub fn forget_incomplete(&mut self) {
        match &mut self.chain {
            PacketChain::Etmv3(packets) => packets.forget_incomplete(),
            PacketChain::Mtb(packets) => packets.forget_incomplete(),
            PacketChain::Pft(packets) => packets.forget_incomplete(),
        };
    }

    /// How many there were so far.
    #[must_use]
    pub const fn counts(&self) -> PacketCounts {
        self.counts
    }
}

impl<P, F: FnMut(Malformation, Span)> TakeItem<P> for Counting<'_, F> {
    const COUNTS: bool = true;

    fn take(&mut self, item: Item<P>, span: Span, _bytes: &[u8]) {
        self.counts.count(&item);
        if let Item::Malformed(reason) = item {
            (self.malformed)(reason, span);
        }
    }

    fn skimmed(&mut self, packets: u64) {
        self.counts.packets += packets;
    }
}
