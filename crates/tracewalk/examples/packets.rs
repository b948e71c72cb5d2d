//! Deframes a formatted capture, decodes the packets of one source, and counts them by name:
//!
//!     cargo run --package tracewalk --example packets

use std::{collections::BTreeMap, error::Error, fs};

use tracewalk::frame::{Discontinuity, FrameSink, Framing, Owner, Piece, PlaceMap, RecoveringDeframer};
use tracewalk::protocol::etmv3;
use tracewalk::source::PacketItem;
use tracewalk::span::{CaptureOffset, Span};
use tracewalk::{PacketStream, SourceConfig, TraceId};

/// Takes the bytes of one source.
struct Counter {
    id: TraceId,
    stream: PacketStream,
    packets: Packets,
}

/// The number of packets of each name, and the place of the first one in the capture.
#[derive(Default)]
pub(crate) struct Packets {
    places: PlaceMap,
    pub(crate) by_name: BTreeMap<&'static str, (u64, Option<CaptureOffset>)>,
}

impl FrameSink for Counter {
    fn data(&mut self, owner: Owner, piece: Piece<'_>) {
        if owner != Owner::Source(self.id) {
            return;
        }
        let mut bytes = Vec::new();
        piece.append_to(&mut bytes);
        self.packets.places.append(piece);
        self.stream.push(&bytes, &mut |item, span, _| self.packets.count(item, span));
    }

    fn discontinuity(&mut self, _: Discontinuity) {
        self.stream.lose_sync(&mut |item, span, _| self.packets.count(item, span));
    }
}

impl Packets {
    fn count(&mut self, item: PacketItem<'_>, span: Span) {
        let name = match item {
            PacketItem::Packet(packet) => packet.name(),
            PacketItem::Malformed(_) => "malformed",
            PacketItem::Unsynchronised => "unsynchronised",
        };
        let place = self.places.locate(span.start);
        self.places.trim(span.start);
        self.by_name.entry(name).or_insert((0, place)).0 += 1;
    }
}

/// The packets that the Cortex-A7 sent.
pub(crate) fn packets() -> Result<Packets, Box<dyn Error>> {
    let capture = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/two-sources/trace.bin"))?;
    let registers = etmv3::Registers { etmcr: Some(0x5000), ..Default::default() };
    let config = SourceConfig::Etmv3(etmv3::Config::of_core("cortex-a7".parse()?, registers)?);
    let id = TraceId::new(0x10).expect("a source's ID");
    let mut counter = Counter { id, stream: PacketStream::new(&config), packets: Packets::default() };
    let mut deframer = RecoveringDeframer::new(Framing::Buffer);
    deframer.push(&capture, &mut counter);
    deframer.finish(&mut counter);
    let Counter { mut stream, mut packets, .. } = counter;
    stream.finish(&mut |item, span, _| packets.count(item, span));
    Ok(packets)
}

fn main() -> Result<(), Box<dyn Error>> {
    for (name, (count, first)) in packets()?.by_name {
        let first = first.ok_or("a packet without bytes")?;
        println!("{count:>6} {name}, the first at {first}");
    }
    Ok(())
}
