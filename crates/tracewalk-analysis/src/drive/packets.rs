//! Decoding a source's packets.

use std::io;

use tracewalk::frame::PlaceMap;
use tracewalk::source::{PacketItem, PacketStream, SourceConfig};
use tracewalk::span::Span;

use super::follower::{FlowWork, Follower};
use super::{Ending, Input, Interruption, Look, Take};
use crate::Statistics;
use crate::record::{FlowRecord, PacketRecord};

impl Input<'_> {
    /// Decodes the source's packets and calls `look` with each.
    ///
    /// # Errors
    ///
    /// The first error of `look`, which ends the work, or of the [rest](Input::rest) of the capture.
    pub fn packets<F>(&self, config: &SourceConfig, mut look: F) -> io::Result<Statistics>
    where
        F: FnMut(PacketRecord<'_>) -> io::Result<()>,
    {
        self.packets_of(PacketStream::new(config), &mut look)
    }

    /// As [`Input::packets`], by any stream from the source's first byte.
    ///
    /// # Errors
    ///
    /// As [`Input::packets`].
    pub fn packets_of(&self, stream: PacketStream, look: LookAtPackets<'_>) -> io::Result<Statistics> {
        let mut work = PacketWork { places: PlaceMap::new(), packets: Packets::new(stream, look) };
        let ending = self.feed(&mut work)?;
        let PacketWork { places, packets } = work;
        packets.end(ending, places)
    }
}

impl Follower<'_> {
    /// As [`Follower::flow`], and calls `look_at_packets` with each packet: the capture is read once. Packets come before the
    /// elements that they prove.
    ///
    /// # Errors
    ///
    /// The first error of `look` or `look_at_packets`, or of the [rest](Input::rest) of the capture.
    pub fn flow_and_packets<F, G>(
        &mut self,
        input: &Input<'_>,
        mut look: F,
        mut look_at_packets: G,
    ) -> io::Result<Statistics>
    where
        F: FnMut(FlowRecord) -> io::Result<()>,
        G: FnMut(PacketRecord<'_>) -> io::Result<()>,
    {
        let packets = Packets::new(PacketStream::new(self.config), &mut look_at_packets);
        let mut both = Both { flow: FlowWork::new(self, &mut look), packets };
        let ending = input.feed(&mut both)?;
        let Both { flow, packets } = both;
        packets.end(ending, flow.places.clone())?;
        flow.end(ending)
    }
}

/// A consumer of packets.
type LookAtPackets<'a> = &'a mut dyn FnMut(PacketRecord<'_>) -> io::Result<()>;

impl Look<LookAtPackets<'_>> {
    fn packet(&mut self, content: PacketItem<'_>, span: Span, bytes: &[u8], places: &mut PlaceMap) {
        if self.failed.is_none() {
            let at = self.locate(span, places);
            self.failed = (self.look)(PacketRecord { content, at, bytes }).err();
        }
    }
}

/// A source's packets, and their consumer.
struct Packets<'a> {
    stream: PacketStream,
    look: Look<LookAtPackets<'a>>,
    statistics: Statistics,
}

impl<'a> Packets<'a> {
    fn new(stream: PacketStream, look: LookAtPackets<'a>) -> Self {
        Self { stream, look: Look::new(look), statistics: Statistics::default() }
    }

    fn take(&mut self, bytes: &[u8], places: &mut PlaceMap) {
        let Self { stream, look, statistics } = self;
        stream.push(bytes, &mut |item, span, bytes| {
            note_packet(statistics, item);
            look.packet(item, span, bytes, places);
        });
    }

    fn interrupt(&mut self, places: &mut PlaceMap) {
        let Self { stream, look, statistics } = self;
        stream.lose_sync(&mut |item, span, bytes| {
            note_packet(statistics, item);
            look.packet(item, span, bytes, places);
        });
    }

    /// The source ends.
    fn end(self, ending: Ending, mut places: PlaceMap) -> io::Result<Statistics> {
        let Self { mut stream, mut look, mut statistics } = self;
        statistics.bytes = places.end().0;
        if ending == Ending::Open {
            stream.forget_incomplete();
        }
        stream.finish(&mut |item, span, bytes| {
            note_packet(&mut statistics, item);
            look.packet(item, span, bytes, &mut places);
        });
        look.end(statistics)
    }
}

struct PacketWork<'a> {
    places: PlaceMap,
    packets: Packets<'a>,
}

impl Take for PacketWork<'_> {
    fn places(&mut self) -> &mut PlaceMap {
        &mut self.places
    }

    fn take(&mut self, bytes: &[u8]) {
        self.packets.take(bytes, &mut self.places);
    }

    fn interrupt(&mut self, _: Interruption) {
        self.packets.interrupt(&mut self.places);
    }

    fn has_failed(&self) -> bool {
        self.packets.look.failed.is_some()
    }
}

/// Flow and packets in one pass.
struct Both<'a> {
    flow: FlowWork<'a>,
    packets: Packets<'a>,
}

impl Take for Both<'_> {
    fn places(&mut self) -> &mut PlaceMap {
        &mut self.flow.places
    }

    fn take(&mut self, bytes: &[u8]) {
        self.packets.take(bytes, &mut self.flow.places);
        self.flow.take(bytes);
    }

    fn interrupt(&mut self, why: Interruption) {
        self.packets.interrupt(&mut self.flow.places);
        self.flow.interrupt(why);
    }

    fn has_failed(&self) -> bool {
        self.packets.look.failed.is_some() || self.flow.has_failed()
    }
}

const fn note_packet(statistics: &mut Statistics, item: PacketItem<'_>) {
    match item {
        PacketItem::Packet(_) => statistics.packets += 1,
        PacketItem::Malformed(reason) if reason.is_damage() => statistics.malformed += 1,
        PacketItem::Malformed(_) | PacketItem::Unsynchronised => {}
    }
}
