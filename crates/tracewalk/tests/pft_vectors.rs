//! The packet vectors of the corpus, read by the PFT decoder.

use std::path::Path;

use serde_json::{Map, Value};
use tracewalk::protocol::timestamp::TimestampCoding;
use tracewalk::protocol::{Describe, Field, Item, Packets, pft};
use tracewalk::span::Span;

/// Vectors in which `expected` records how OpenCSD goes on behind an error, and why this decoder reads them otherwise.
const SKIPPED: [(&str, &str); 3] = [
    (
        "P-043",
        "OpenCSD goes on at the byte behind a short run of zeros; here decoding goes on at the next A-sync",
    ),
    (
        "P-044",
        "OpenCSD goes on at the byte behind a reserved header; here decoding goes on at the next A-sync",
    ),
    ("P-045", "OpenCSD takes the reserved atom headers 0x80 and 0x82 for one atom each"),
];

/// The corpus, or `None`, said aloud, where it is not there. In CI it has to be.
fn corpus() -> Option<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/vectors.json");
    let Ok(text) = std::fs::read_to_string(&path) else {
        assert!(std::env::var_os("CI").is_none(), "the corpus is missing: {}", path.display());
        eprintln!("skipped: the corpus is missing ({})", path.display());
        return None;
    };
    Some(serde_json::from_str(&text).expect("the corpus is JSON"))
}

fn number(value: &Value) -> u64 {
    let text = value.as_str().expect("the vectors' numbers are strings");
    let digits = text.strip_prefix("0x").expect("the vectors' numbers are hexadecimal");
    u64::from_str_radix(digits, 16).expect("hexadecimal digits")
}

fn bytes(vector: &Value) -> Vec<u8> {
    let digits = vector["bytes"].as_str().expect("bytes are a string");
    let pairs = (0..digits.len()).step_by(2).map(|at| &digits[at..at + 2]);
    pairs.map(|pair| u8::from_str_radix(pair, 16).expect("hexadecimal digits")).collect()
}

fn config(vector: &Value) -> pft::Config {
    let register = |name: &str| u32::try_from(number(&vector["config"][name])).ok();
    let registers = pft::Registers {
        etmcr: register("ETMCR"),
        etmidr: register("ETMIDR"),
        etmccer: register("ETMCCER"),
        etmtraceidr: None,
    };
    let mut config = pft::Config::from_registers(registers, None).expect("vectors have sound configurations");
    // The vectors hold a timestamp's bits as they were sent.
    config.timestamp.coding = TimestampCoding::Binary;
    config
}

/// A packet in the words of the vectors.
fn described(packet: &pft::Packet, offset: u64) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("kind".into(), packet.name().into());
    object.insert("offset".into(), offset.into());
    packet.fields(&mut |name, field| {
        let name = if name == "timestamp" { "ts" } else { name };
        let value = match field {
            Field::Number(number) => number.into(),
            Field::Address(address) => address.0.into(),
            Field::Text(text) => text.into(),
        };
        object.insert(name.into(), value);
    });
    if let pft::Packet::Branch(branch) = packet {
        let isa = branch.target.expect("vectors start with an I-sync").isa;
        object.insert("isa_after".into(), isa.name().into());
    }
    object
}

fn check(vector: &Value) {
    let id = &vector["id"];
    let mut packets = Packets::new(pft::Decoder::new(&config(vector)));
    let mut found = Vec::new();
    let mut sink = |item: Item<pft::Packet>, span: Span, _: &[u8]| match item {
        Item::Packet(packet) => found.push(described(&packet, span.start.0)),
        other => panic!("{id}: found {other:?} at {span}"),
    };
    packets.push(&bytes(vector), &mut sink);
    packets.finish(&mut sink);
    let expected = vector["expected"].as_array().expect("expected packets are a list");
    assert_eq!(found.len(), expected.len(), "{id}: {found:?}");
    for (found, expected) in found.iter().zip(expected) {
        for (name, expected) in expected.as_object().expect("packets are objects") {
            let expected = match expected.as_str() {
                Some(text) if text.starts_with("0x") => number(expected).into(),
                _ => expected.clone(),
            };
            assert_eq!(found.get(name), Some(&expected), "{id}: {name} in {found:?}");
        }
    }
}

#[test]
fn every_packet_vector_is_read_as_it_says() {
    let Some(corpus) = corpus() else { return };
    let vectors = corpus["vectors"].as_array().expect("vectors are a list").iter();
    let of_packets = vectors.filter(|vector| vector["protocol"] == "ptm" && vector["level"].is_null());
    let (skipped, checked) =
        of_packets.partition::<Vec<_>, _>(|vector| SKIPPED.iter().any(|(id, _)| vector["id"] == *id));
    assert_eq!(skipped.len(), SKIPPED.len(), "a skipped vector is not there");
    assert!(checked.len() >= 30, "only {} vectors are there", checked.len());
    checked.into_iter().for_each(check);
}
