//! The vectors of ETMv4 and ETE of the shared corpus, packet by packet.

use serde_json::{Map, Value, json};
use tracewalk::protocol::etmv4::{Config, Decoder, Profile, Registers};
use tracewalk::protocol::{Describe, Field, Item, Packets};
use tracewalk::span::Span;

use crate::support::{self, hex, number};

fn vectors() -> Option<Vec<Value>> {
    let text = std::fs::read_to_string(support::corpus()?.join("vectors-etm4.json")).expect("it is readable");
    let mut file = serde_json::from_str::<Value>(&text).expect("vectors-etm4.json is JSON");
    let Value::Array(vectors) = file["vectors"].take() else { panic!("the vectors are a list") };
    Some(vectors)
}

fn config(vector: &Value) -> Config {
    let given = &vector["config"];
    let register = |name: &str| number(&given[name]).and_then(|value| u32::try_from(value).ok());
    let registers = Registers {
        trcconfigr: register("TRCCONFIGR"),
        trcdevarch: register("TRCDEVARCH"),
        trcidr0: register("TRCIDR0"),
        trcidr1: register("TRCIDR1"),
        trcidr2: register("TRCIDR2"),
        trcidr8: register("TRCIDR8"),
        trcidr12: register("TRCIDR12"),
        trcidr13: register("TRCIDR13"),
        ..Registers::default()
    };
    let core = given["core"].as_str().expect("a core's name");
    let is_m = ["Cortex-M", "ARMv7-M", "ARMv8-M"].iter().any(|prefix| core.starts_with(prefix));
    let profile = if is_m { Profile::M } else { Profile::Ar };
    Config::from_registers(registers, Some(profile)).expect("the vector's configuration is sound")
}

/// Each item as an object with `kind`, `offset`, `size` and the packet's fields, under the names of the vectors.
fn packets(config: &Config, bytes: &[u8], size: usize) -> Vec<Map<String, Value>> {
    let mut items = Vec::new();
    let mut note = |item, span: Span, bytes: &[u8]| {
        let mut object = Map::new();
        object.insert("offset".into(), json!(span.start.0));
        object.insert("size".into(), json!(bytes.len()));
        let kind = match item {
            Item::Packet(packet) => {
                Describe::fields(&packet, &mut |name, field| {
                    let value = match field {
                        Field::Number(number) => json!(number),
                        Field::Address(address) => json!(address.get()),
                        Field::Text(text) => json!(text),
                    };
                    object.insert(their_field(name).into(), value);
                });
                their_kind(Describe::name(&packet))
            }
            Item::Malformed(reason) => match reason.name() {
                "truncated" => "incomplete",
                "reserved_header" | "not_enabled" => "reserved",
                _ => "malformed",
            },
            Item::Unsynchronised => "unsynced",
        };
        object.insert("kind".into(), json!(kind));
        items.push(object);
    };
    let mut stream = Packets::new(Decoder::new(config));
    bytes.chunks(size).for_each(|piece| stream.push(piece, &mut note));
    stream.finish(&mut note);
    items
}

fn their_kind(name: &'static str) -> &'static str {
    match name {
        "conditional_instruction" => "cond_instruction",
        "conditional_result" => "cond_result",
        "conditional_flush" => "cond_flush",
        "data_synchronisation" => "data_sync_marker",
        name => name,
    }
}

fn their_field(name: &'static str) -> &'static str {
    match name {
        "timestamp" => "ts",
        "interpretation" => "interp",
        "advance" => "increment",
        "and_same" => "final",
        name => name,
    }
}

/// Whether a field that the vector names is what was found.
fn is_same(expected: &Value, found: Option<&Value>) -> bool {
    match expected {
        Value::String(text) => {
            found == Some(expected)
                || number(expected).is_some() && found.and_then(Value::as_u64) == number(&json!(text))
        }
        // Flags that are not set are not told.
        Value::Bool(flag) => found.and_then(Value::as_u64).unwrap_or(0) == u64::from(*flag),
        Value::Null => found.is_none(),
        _ => found == Some(expected),
    }
}

#[test]
fn every_packet_vector_is_read_as_expected_however_it_is_cut() {
    let Some(vectors) = vectors() else { return };
    let vectors = vectors.iter().filter(|vector| vector["level"] != "flow").collect::<Vec<_>>();
    assert!(vectors.len() >= 128, "only {} packet vectors found", vectors.len());
    for vector in vectors {
        let config = config(vector);
        let bytes = hex(&vector["bytes"]);
        let found = packets(&config, &bytes, bytes.len());
        for size in 1..bytes.len() {
            assert_eq!(packets(&config, &bytes, size), found, "{} in pieces of {size}", vector["id"]);
        }
        let expected = vector["expected"].as_array().expect("a list of packets");
        assert_eq!(found.len(), expected.len(), "{}: {found:?}", vector["id"]);
        for (expected, found) in expected.iter().zip(&found) {
            for (key, value) in expected.as_object().expect("a packet is an object") {
                // That it is the configuration which excludes a packet is for a unit test.
                let is_told = key != "for_config";
                assert!(
                    !is_told || is_same(value, found.get(key)),
                    "{} {}: {key} of {expected}, found {found:?}",
                    vector["id"],
                    vector["name"]
                );
            }
        }
    }
}
