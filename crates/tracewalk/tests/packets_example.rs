//! The example program that counts packets finds the packets that the source's trace had before framing.

use std::collections::BTreeMap;

use tracewalk::protocol::{Describe, Item, Packets, etmv3};
use tracewalk::span::{CaptureOffset, Span};

#[path = "../examples/packets.rs"]
#[expect(dead_code, reason = "its main function is the program's")]
mod example;

#[test]
fn the_example_counts_the_packets_of_the_bytes_without_frames() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/examples/a7-etmv3/trace.bin");
    let bytes = std::fs::read(file).expect("a file of the project");
    let registers = etmv3::Registers { etmcr: Some(0x5000), ..Default::default() };
    let config =
        etmv3::Config::from_registers(registers, etmv3::Core::named("cortex-a7")).expect("sound registers");
    let mut frames = Frames::default();
    let mut deframer = tracewalk::frame::Deframer::new(tracewalk::frame::Framing::Buffer);
    deframer.push(&bytes, &mut frames);
    deframer.finish(&mut frames);
    let mut counts = BTreeMap::new();
    let mut packets = Packets::new(etmv3::Decoder::new(&config));
    let mut note = |item: Item<etmv3::Packet>, _: Span, _: &[u8]| {
        let Item::Packet(packet) = item else { panic!("{item:?}") };
        *counts.entry(packet.name()).or_default() += 1_u64;
    };
    packets.push(&frames.0, &mut note);
    packets.finish(&mut note);
    assert!(counts["a_sync"] >= 5 && counts.len() >= 4, "{counts:?}");
    let found = example::packets().expect("the capture can be read").by_name;
    let first = |name: &str| found.get(name).and_then(|(_, first)| *first);
    // The frames begin with an ID byte and the 6 bytes of an A-sync. The 8 bytes of the I-sync and the frame's
    // auxiliary byte follow.
    let [a_sync, i_sync, timestamp] = ["a_sync", "i_sync", "timestamp"].map(first);
    assert_eq!([a_sync, i_sync, timestamp], [1, 7, 16].map(|at| Some(CaptureOffset(at))));
    let found = found.iter().map(|(name, (count, _))| (*name, *count));
    assert_eq!(found.collect::<BTreeMap<_, _>>(), counts);
}

/// The bytes of all sources: there is one.
#[derive(Default)]
struct Frames(Vec<u8>);

impl tracewalk::frame::FrameSink for Frames {
    fn data(&mut self, owner: tracewalk::frame::Owner, piece: tracewalk::frame::Piece<'_>) {
        if matches!(owner, tracewalk::frame::Owner::Source(_)) {
            piece.append_to(&mut self.0);
        }
    }

    fn discontinuity(&mut self, discontinuity: tracewalk::frame::Discontinuity) {
        panic!("{discontinuity}");
    }
}
