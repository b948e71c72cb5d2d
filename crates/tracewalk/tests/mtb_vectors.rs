//! The MTB vectors of the shared corpus: short buffers and the packets that Arm's and NXP's descriptions read in them.

use serde_json::Value;
use tracewalk::ids::Address;
use tracewalk::protocol::mtb::order::{Dump, Layout, Piece, by_registers};
use tracewalk::protocol::mtb::{Config, Decoder, Packet, Registers};
use tracewalk::protocol::{Item, Packets};

use crate::support::{hex, number, vectors_file};

/// A register of the vector's configuration.
fn register(vector: &Value, name: &str) -> Option<u32> {
    number(&vector["config"][name]).map(|value| u32::try_from(value).expect("a register has 32 bits"))
}

fn address(value: &Value) -> Address {
    Address::from(number(value).and_then(|value| u32::try_from(value).ok()).expect("an address"))
}

fn packet(expected: &Value) -> Packet {
    assert_eq!(expected["kind"], "mtb_packet");
    let packet = Packet::new(address(&expected["source"]), address(&expected["dest"]));
    packet.with_atomic(expected["a"] == 1).with_start(expected["s"] == 1)
}

/// The packets in `pieces`, given to the decoder in pieces of `size` bytes.
fn packets<'a>(pieces: impl Iterator<Item = &'a [u8]>, size: usize) -> Vec<Packet> {
    let mut found = Vec::new();
    let mut note = |item: Item<Packet>, _, _: &[u8]| match item {
        Item::Packet(packet) => found.push(packet),
        other => panic!("found {other:?}, expected a packet"),
    };
    let mut packets = Packets::new(Decoder);
    for piece in pieces.flat_map(|piece| piece.chunks(size)) {
        packets.push(piece, &mut note);
    }
    packets.finish(&mut note);
    found
}

#[tracewalk_corpus::test]
fn every_mtb_vector_is_read_as_expected_however_it_is_cut_and_written_back() {
    let file = vectors_file();
    let vectors = file["vectors"].as_array().expect("a list of vectors");
    let mut tested = 0;
    for vector in vectors.iter().filter(|vector| vector["protocol"] == "mtb") {
        let name = &vector["id"];
        let data = hex(&vector["bytes"]);
        let expected = vector["expected"].as_array().expect("a list").iter().map(packet).collect::<Vec<_>>();
        let dump = Dump::new(&data, None);
        let layout = match (register(vector, "POSITION"), register(vector, "MASTER")) {
            (Some(position), Some(master)) => {
                let registers = Registers { position, master, flow: None, base: None };
                by_registers(dump, &Config::from_registers(registers)).expect("the dump holds the buffer")
            }
            _ => {
                Layout { pieces: vec![Piece { bytes: 0..data.len(), continues: false }], ..Layout::default() }
            }
        };
        let pieces = || layout.pieces.iter().map(|piece| &data[piece.bytes.clone()]);
        for size in 1..=data.len() {
            assert_eq!(packets(pieces(), size), expected, "{name} in pieces of {size}");
        }
        let written = expected.iter().flat_map(|packet| packet.to_bytes()).collect::<Vec<_>>();
        assert_eq!(written, pieces().collect::<Vec<_>>().concat(), "{name}");
        tested += 1;
    }
    assert!(tested >= 9, "only {tested} MTB vectors found");
}
