//! The vectors of ETMv4 and ETE of the shared corpus, packet by packet and instruction by instruction.

use serde_json::{Map, Value, json};
use tracewalk::protocol::etmv4::{Config, Decoder, Profile, Registers};
use tracewalk::protocol::{Describe, Field, Item, Packets};
use tracewalk::source::SourceConfig;
use tracewalk::span::Span;

use crate::support::{self, hex, number};

fn file() -> Value {
    let text = std::fs::read_to_string(support::corpus().join("vectors-etm4.json")).expect("it is readable");
    serde_json::from_str(&text).expect("vectors-etm4.json is JSON")
}

fn vectors(file: &Value, of_flow: bool) -> Vec<&Value> {
    let vectors = file["vectors"].as_array().expect("the vectors are a list");
    vectors.iter().filter(|vector| (vector["level"] == "flow") == of_flow).collect()
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
                        Field::Number(number) | Field::Bits(number) => json!(number),
                        Field::Flag(flag) => json!(flag),
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

/// Whether the found field equals the vector's.
fn is_same(expected: &Value, found: Option<&Value>) -> bool {
    match expected {
        Value::String(text) => {
            found == Some(expected)
                || number(expected).is_some() && found.and_then(Value::as_u64) == number(&json!(text))
        }
        // Flags that are not set are not reported.
        Value::Bool(flag) => found.and_then(Value::as_u64).unwrap_or(0) == u64::from(*flag),
        Value::Null => found.is_none(),
        _ => found == Some(expected),
    }
}

#[tracewalk_corpus::test]
fn every_packet_vector_is_read_as_expected_however_it_is_cut() {
    let file = file();
    let vectors = vectors(&file, false);
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
                // A unit test covers packets that the configuration excludes.
                let is_compared = key != "for_config";
                assert!(
                    !is_compared || is_same(value, found.get(key)),
                    "{} {}: {key} of {expected}, found {found:?}",
                    vector["id"],
                    vector["name"]
                );
            }
        }
    }
}

/// A line of the vectors in our notation; `None` for lines that are compared elsewhere: the beginnings of
/// trace, contexts, times, and lines that flow does not list.
fn their_line(line: &str) -> Option<String> {
    let words = line.split(' ').collect::<Vec<_>>();
    let address = |text: &str| match text {
        "-" => "-".to_owned(),
        _ => format!("{:08X}", u64::from_str_radix(text, 16).expect("an address")),
    };
    match words[..] {
        ["exception", number, "ret", returns, ..] => {
            Some(format!("exception {number} ret {}", address(returns)))
        }
        ["no_memory", at] => Some(format!("no_memory {}", address(at))),
        ["exception_return"] | ["Q" | "event" | "transaction", ..] => Some(line.to_owned()),
        [at, "E" | "N" | "."] if u64::from_str_radix(at, 16).is_ok() => Some(line.to_owned()),
        _ => None,
    }
}

fn our_line(line: &str) -> Option<String> {
    (!matches!(line, "trace_on" | "timestamp")).then(|| line.to_owned())
}

/// Vectors whose bytes contradict their image, which flow reports, and the number of last expected lines that
/// flow does not reach.
///
/// TF-084: LE without LR is not taken. TF-088, TF-093, TF-096: a direct branch goes elsewhere. TF-095: there is no call before a return.
const CONTRADICTED: [(&str, usize); 5] =
    [("TF-084", 1), ("TF-088", 0), ("TF-093", 0), ("TF-095", 0), ("TF-096", 0)];

#[tracewalk_corpus::test]
fn every_flow_vector_is_followed_as_expected_however_it_is_cut() {
    let file = file();
    let program = support::images(&file);
    let vectors = vectors(&file, true);
    assert!(vectors.len() >= 70, "only {} flow vectors found", vectors.len());
    let mut wrong = Vec::new();
    for vector in vectors {
        let source = SourceConfig::Etmv4(config(vector));
        let bytes = hex(&vector["bytes"]);
        let elements = vector["expected"][0]["elements"].as_array().expect("a list of elements");
        let mut expected =
            elements.iter().filter_map(Value::as_str).filter_map(their_line).collect::<Vec<_>>();
        let contradicted = CONTRADICTED.iter().find(|(id, _)| vector["id"] == *id);
        if let Some((_, unreached)) = contradicted {
            expected.truncate(expected.len() - unreached);
        }
        for size in [bytes.len(), 1, 3] {
            let mut found = support::flow(&source, &bytes, &program, size);
            found = found.iter().filter_map(|line| our_line(line)).collect();
            let contradictions = found.extract_if(.., |line| line.starts_with("trace and image disagree"));
            let contradictions = contradictions.count();
            assert_eq!(contradictions, usize::from(contradicted.is_some()), "{}", vector["id"]);
            if found != expected {
                wrong.push(format!(
                    "{} {}: found {found:?}, expected {expected:?}",
                    vector["id"], vector["name"]
                ));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{} vectors:\n{}", wrong.len(), wrong.join("\n"));
}
