//! Decoding a source's packets.

use std::io;

use tracewalk::frame::PlaceMap;
use tracewalk::source::{PacketItem, PacketStream, SourceConfig};
use tracewalk::span::Span;

use super::{Ending, Input, Interruption, Look, Take};
use crate::Statistics;
use crate::record::PacketRecord;

impl Input<'_> {
    /// Decodes the source's packets and calls `look` with each. The first error of `look` ends the work.
    pub fn packets<F>(&self, config: &SourceConfig, look: F) -> io::Result<Statistics>
    where
        F: FnMut(PacketRecord<'_>) -> io::Result<()>,
    {
        let mut work = PacketWork {
            stream: PacketStream::new(config),
            places: PlaceMap::new(),
            look: Look::new(look),
            statistics: Statistics::default(),
        };
        let ending = self.feed(&mut work)?;
        let PacketWork { mut stream, mut places, mut look, mut statistics } = work;
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

impl<F: FnMut(PacketRecord<'_>) -> io::Result<()>> Look<F> {
    fn packet(&mut self, content: PacketItem<'_>, span: Span, bytes: &[u8], places: &mut PlaceMap) {
        if self.failed.is_none() {
            let at = self.locate(span, places);
            self.failed = (self.look)(PacketRecord { content, at, bytes }).err();
        }
    }
}

struct PacketWork<F> {
    stream: PacketStream,
    places: PlaceMap,
    look: Look<F>,
    statistics: Statistics,
}

impl<F: FnMut(PacketRecord<'_>) -> io::Result<()>> Take for PacketWork<F> {
    fn places(&mut self) -> &mut PlaceMap {
        &mut self.places
    }

    fn take(&mut self, bytes: &[u8]) {
        let Self { stream, places, look, statistics } = self;
        stream.push(bytes, &mut |item, span, bytes| {
            note_packet(statistics, item);
            look.packet(item, span, bytes, places);
        });
    }

    fn interrupt(&mut self, _: Interruption) {
        let Self { stream, places, look, statistics } = self;
        stream.lose_sync(&mut |item, span, bytes| {
            note_packet(statistics, item);
            look.packet(item, span, bytes, places);
        });
    }

    fn has_failed(&self) -> bool {
        self.look.failed.is_some()
    }
}

const fn note_packet(statistics: &mut Statistics, item: PacketItem<'_>) {
    match item {
        PacketItem::Packet(_) => statistics.packets += 1,
        PacketItem::Malformed(_) => statistics.malformed += 1,
        PacketItem::Unsynchronised => {}
    }
}
