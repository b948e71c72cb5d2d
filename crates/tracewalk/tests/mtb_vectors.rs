//! The MTB vectors of the shared corpus: short buffers and the packets that Arm's and NXP's descriptions read in them.

use std::path::PathBuf;

use serde_json::Value;
use tracewalk::ids::Address;
use tracewalk::protocol::mtb::order::{Dump, by_evidence, by_registers, within_reach};
use tracewalk::protocol::mtb::{Config, Decoder, Packet, Registers};
use tracewalk::protocol::{Item, Packets};

/// The corpus, which lies beside the project and is not part of it.
fn corpus() -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    if path.is_dir() {
        return Some(path);
    }
    assert!(std::env::var_os("CI").is_none(), "{} is missing", path.display());
    eprintln!("skipped: {} is missing", path.display());
    None
}

fn hex(text: &Value) -> Vec<u8> {
    let text = text.as_str().expect("bytes are a string");
    let pairs = text.as_bytes().chunks(2).map(|pair| str::from_utf8(pair).expect("ASCII"));
    pairs.map(|pair| u8::from_str_radix(pair, 16).expect("hex digits")).collect()
}

fn number(text: &Value) -> Option<u32> {
    let text = text.as_str()?;
    Some(u32::from_str_radix(text.strip_prefix("0x")?, 16).expect("hex digits"))
}

fn packet(expected: &Value) -> Packet {
    assert_eq!(expected["kind"], "mtb_packet");
    let source = Address(number(&expected["source"]).expect("a source"));
    let destination = Address(number(&expected["dest"]).expect("a destination"));
    Packet::new(source, destination).with_atomic(expected["a"] == 1).with_start(expected["s"] == 1)
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

#[test]
fn every_mtb_vector_is_read_as_expected_however_it_is_cut_and_written_back() {
    let Some(corpus) = corpus() else { return };
    let text = std::fs::read_to_string(corpus.join("vectors.json")).expect("vectors.json is readable");
    let vectors: Value = serde_json::from_str(&text).expect("vectors.json is JSON");
    let vectors = vectors["vectors"].as_array().expect("a list of vectors");
    let mut tested = 0;
    for vector in vectors.iter().filter(|vector| vector["protocol"] == "mtb") {
        let name = &vector["id"];
        let data = hex(&vector["bytes"]);
        let expected = vector["expected"].as_array().expect("a list").iter().map(packet).collect::<Vec<_>>();
        let dump = Dump { data: &data, address: None };
        let layout = match (number(&vector["config"]["POSITION"]), number(&vector["config"]["MASTER"])) {
            (Some(position), Some(master)) => {
                let registers = Registers { position, master, flow: None, base: None };
                by_registers(dump, &Config::from_registers(registers)).expect("the dump holds the buffer")
            }
            _ => {
                let whole = tracewalk::protocol::mtb::order::Piece { bytes: 0..data.len(), continues: false };
                tracewalk::protocol::mtb::order::Layout { pieces: vec![whole], missing: 0 }
            }
        };
        let pieces = || layout.pieces.iter().map(|piece| &data[piece.bytes.clone()]);
        for size in 1..=data.len() {
            assert_eq!(packets(pieces(), size), expected, "{name} in pieces of {size}");
        }
        let written = expected.iter().flat_map(|packet| packet.to_bytes()).collect::<Vec<_>>();
        assert_eq!(written, pieces().collect::<Vec<_>>().concat(), "{name}");
        // The buffers with registers can be read without them too.
        if vector["config"]["POSITION"].is_string() {
            let guess = by_evidence(dump, within_reach).expect("there are packets");
            assert_eq!(guess.best.layout, layout, "{name}: {}", guess.best.evidence);
        }
        tested += 1;
    }
    assert!(tested >= 9, "only {tested} MTB vectors found");
}
