//! The ETMv3 vectors of the shared corpus, packet by packet and instruction by instruction.

use serde_json::{Map, Value};
use tracewalk::protocol::etmv3::{Config, Core, Registers};
use tracewalk::source::SourceConfig;

use crate::support::{flow, hex, images, number, packets, vectors_file};

fn config(vector: &Value) -> Config {
    let register = |name: &str| number(&vector["config"][name]).and_then(|value| u32::try_from(value).ok());
    let registers = Registers {
        etmcr: register("ETMCR"),
        etmidr: register("ETMIDR"),
        etmccer: register("ETMCCER"),
        etmtraceidr: None,
    };
    let core = vector["config"]["core"].as_str().and_then(Core::named);
    Config::from_registers(registers, core).expect("the vector's configuration is sound")
}

fn vectors(file: &Value) -> impl Iterator<Item = &Value> {
    let all = file["vectors"].as_array().expect("a list of vectors");
    all.iter().filter(|vector| vector["protocol"] == "etmv3")
}

/// Compares one packet with the vector's: every field that the vector names, under our name for it.
fn compare(vector: &Value, config: &Config, expected: &Map<String, Value>, found: &Map<String, Value>) {
    let name = &vector["id"];
    for (key, value) in expected {
        let context = format!("{name}: {key} of {expected:?}, found {found:?}");
        match key.as_str() {
            // The instruction set of a short branch and the exception's name are not packet fields; flow and a unit
            // test cover them.
            "isa_after" | "exception_name" => {}
            // For a P-header: the number of W among its atoms.
            "cycles" if found["kind"] == "p_header" => {
                let atoms = found["atoms"].as_str().expect("a P-header has atoms");
                assert_eq!(Some(atoms.matches('W').count() as u64), number(value), "{context}");
            }
            "kind" if value == "reserved" => assert_eq!(found["kind"], "malformed", "{context}"),
            "be" => assert_eq!(number(&found["big_endian"]), number(value), "{context}"),
            "ts" => {
                // The vectors have the bits as sent, even if ETMCCER states a Gray code.
                let time = found["timestamp"].as_u64().expect("a timestamp has a value");
                assert_eq!(Some(config.timestamp().raw(time)), number(value).map(raw), "{context}");
            }
            // `0x??????28`: only a part is known, which is not an address.
            "addr" if value.as_str().is_some_and(|text| text.contains('?')) => {
                assert_eq!(found.get("addr"), None, "{context}");
            }
            "kind" | "atoms" | "isa" => assert_eq!(found.get(key), Some(value), "{context}"),
            _ => assert_eq!(found.get(key).and_then(number), number(value), "{context}"),
        }
    }
}

/// A timestamp's bits in a format that does not change them.
fn raw(bits: u64) -> tracewalk::protocol::timestamp::RawTimestamp {
    use tracewalk::protocol::timestamp::{TimestampCoding, TimestampFormat, TimestampWidth};
    TimestampFormat { width: TimestampWidth::Bits64, coding: TimestampCoding::Binary }.raw(bits)
}

#[tracewalk_corpus::test]
fn every_packet_vector_is_read_as_expected_however_it_is_cut() {
    let file = vectors_file();
    let mut tested = 0;
    for vector in vectors(&file).filter(|vector| vector["level"] != "flow") {
        let config = config(vector);
        let source = SourceConfig::Etmv3(config);
        let bytes = hex(&vector["bytes"]);
        let found = packets(&source, &bytes, bytes.len());
        for size in 1..bytes.len() {
            assert_eq!(packets(&source, &bytes, size), found, "{} in pieces of {size}", vector["id"]);
        }
        let length: u64 = found.iter().filter_map(|item| item["length"].as_u64()).sum();
        assert_eq!(length, bytes.len() as u64, "{} is tiled", vector["id"]);
        let expected = vector["expected"].as_array().expect("a list of packets");
        assert_eq!(found.len(), expected.len(), "{}: {found:?}", vector["id"]);
        for (expected, found) in expected.iter().zip(&found) {
            compare(vector, &config, expected.as_object().expect("a packet is an object"), found);
        }
        tested += 1;
    }
    assert!(tested >= 60, "only {tested} packet vectors found");
}

#[tracewalk_corpus::test]
fn every_flow_vector_is_followed_as_expected_however_it_is_cut() {
    let file = vectors_file();
    let program = images(&file);
    let mut tested = 0;
    for vector in vectors(&file).filter(|vector| vector["level"] == "flow") {
        let source = SourceConfig::Etmv3(config(vector));
        let bytes = hex(&vector["bytes"]);
        let expected = vector["expected"][0]["elements"].as_array().expect("a list of elements");
        for size in 1..=bytes.len() {
            let found = flow(&source, &bytes, &program, size);
            assert_eq!(found, *expected, "{} {} in pieces of {size}", vector["id"], vector["name"]);
        }
        tested += 1;
    }
    assert!(tested >= 16, "only {tested} flow vectors found");
}
