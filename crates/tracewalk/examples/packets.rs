//! Deframes a formatted capture, decodes the packets of one source, and counts them by name:
//!
//!     cargo run --package tracewalk --example packets

use std::{collections::BTreeMap, error::Error, fs};

use tracewalk::frame::{Discontinuity, FrameSink, Framing, Owner, Piece, RecoveringDeframer};
use tracewalk::protocol::etmv3;
use tracewalk::source::PacketItem;
use tracewalk::{PacketStream, SourceConfig, TraceId};

/// The packets of one source, by name.
struct Counter {
    id: TraceId,
    stream: PacketStream,
    counts: BTreeMap<&'static str, u64>,
}

impl FrameSink for Counter {
    fn data(&mut self, owner: Owner, piece: Piece<'_>) {
        let mut bytes = Vec::new();
        if owner == Owner::Source(self.id) {
            piece.append_to(&mut bytes);
        }
        self.stream.push(&bytes, &mut |item, _, _| count(&mut self.counts, item));
    }

    fn discontinuity(&mut self, _: Discontinuity) {
        self.stream.lose_sync(&mut |item, _, _| count(&mut self.counts, item));
    }
}

fn count(counts: &mut BTreeMap<&'static str, u64>, item: PacketItem<'_>) {
    let name = match item {
        PacketItem::Packet(packet) => packet.name(),
        PacketItem::Malformed(_) => "malformed",
        PacketItem::Unsynchronised => "unsynchronised",
    };
    *counts.entry(name).or_default() += 1;
}

/// The number of packets of each name that the Cortex-A7 sent.
pub(crate) fn counts() -> Result<BTreeMap<&'static str, u64>, Box<dyn Error>> {
    let capture = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/two-sources/trace.bin"))?;
    let registers = etmv3::Registers { etmcr: Some(0x5000), ..Default::default() };
    let config = SourceConfig::Etmv3(etmv3::Config::of_core("cortex-a7".parse()?, registers)?);
    let id = TraceId::new(0x10).expect("a source's ID");
    let mut counter = Counter { id, stream: PacketStream::new(&config), counts: BTreeMap::new() };
    let mut deframer = RecoveringDeframer::new(Framing::Buffer);
    deframer.push(&capture, &mut counter);
    deframer.finish(&mut counter);
    let Counter { mut stream, mut counts, .. } = counter;
    stream.finish(&mut |item, _, _| count(&mut counts, item));
    Ok(counts)
}

fn main() -> Result<(), Box<dyn Error>> {
    counts()?.iter().for_each(|(name, count)| println!("{count:>6} {name}"));
    Ok(())
}
