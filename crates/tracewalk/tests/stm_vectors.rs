//! The STM vectors and captures of the shared corpus, whose packets OpenCSD's `trc_pkt_lister` reads alike.

use std::fs::File;
use std::io::Read as _;

use serde_json::{Map, Value, json};
use tracewalk::frame::{Discontinuity, FrameSink, Framing, Owner, Piece, RecoveringDeframer};
use tracewalk::ids::TraceId;
use tracewalk::protocol::stm::{Decoder, Packet, Sender};
use tracewalk::protocol::{Describe as _, Field, Item, Packets};

use crate::support::{corpus, hex, number};

/// The packets, and the data and flags with their senders, of bytes in pieces of `size`.
fn read(bytes: &[u8], size: usize) -> (Vec<Value>, Vec<Value>) {
    let (mut found, mut items, mut sender) = (Vec::new(), Vec::new(), Sender::default());
    let mut note = |item: Item<Packet>, _, _: &[u8]| match item {
        Item::Packet(packet) => {
            let mut object = Map::new();
            object.insert("packet".into(), json!(packet.name()));
            packet.fields(&mut |name, field| {
                let value = match field {
                    Field::Number(number) => json!(number),
                    Field::Bits(bits) => json!(format!("{bits:#x}")),
                    Field::Flag(flag) => json!(flag),
                    other => panic!("{other:?}"),
                };
                object.insert(name.into(), value);
            });
            found.push(Value::Object(object));
            sender = sender.after(&packet);
            let (bytes, value, marker) = match packet {
                Packet::Data { size, value, marker, .. } => {
                    (size.bytes(), json!(format!("{value:#x}")), marker)
                }
                Packet::Flag { .. } => (0, Value::Null, false),
                _ => return,
            };
            items.push(json!({
                "master": sender.master, "channel": sender.channel, "bytes": bytes, "value": value, "marker": marker,
                "flag": bytes == 0, "timestamp": packet.time(),
            }));
        }
        Item::Malformed(reason) if reason.is_damage() => found.push(json!({ "packet": "malformed" })),
        Item::Malformed(_) => found.push(json!({ "packet": "incomplete" })),
        Item::Unsynchronised => found.push(json!({ "packet": "unsynced" })),
    };
    let mut packets = Packets::new(Decoder::new());
    bytes.chunks(size).for_each(|piece| packets.push(piece, &mut note));
    packets.finish(&mut note);
    (found, items)
}

/// The expected packets, without fields that are null.
fn expected(list: &Value) -> Vec<Value> {
    let mut list = list.as_array().expect("a list").clone();
    let objects = list.iter_mut().filter_map(Value::as_object_mut);
    objects.for_each(|object| object.retain(|name, value| name != "timestamp" || !value.is_null()));
    list
}

#[tracewalk_corpus::test]
fn every_stm_vector_is_read_as_expected_however_it_is_cut() {
    let text = std::fs::read_to_string(corpus().join("stm/vectors.json")).expect("a readable file");
    let file: Value = serde_json::from_str(&text).expect("JSON");
    let vectors = file["vectors"].as_array().expect("a list of vectors");
    for vector in vectors {
        let data = hex(&vector["bytes"]);
        for size in [1, 2, 3, 7, data.len()] {
            let (packets, items) = read(&data, size);
            assert_eq!(packets, expected(&vector["packets"]), "{} in pieces of {size}", vector["id"]);
            assert_eq!(&json!(items), &vector["items"], "{} in pieces of {size}", vector["id"]);
        }
    }
    assert!(vectors.len() >= 31, "only {} vectors", vectors.len());
}

/// The bytes of one source.
struct Only(TraceId, Vec<u8>);

impl FrameSink for Only {
    fn data(&mut self, owner: Owner, piece: Piece<'_>) {
        if owner.trace_id() == Some(self.0) {
            self.1.extend_from_slice(piece.bytes);
        }
    }

    fn discontinuity(&mut self, _: Discontinuity) {}
}

#[tracewalk_corpus::test]
fn the_packets_of_stm_captures_are_those_expected() {
    for (folder, file) in [("stm_only-2", "cstraceitm.bin"), ("stm-issue-27", "stuck_trace.bin")] {
        let folder = corpus().join("stm").join(folder);
        let mut text = String::new();
        let packed = File::open(folder.join("expected.json.gz")).expect("a readable file");
        flate2::read::GzDecoder::new(packed).read_to_string(&mut text).expect("packed text");
        let file_expected: Value = serde_json::from_str(&text).expect("JSON");
        let id = number(&file_expected["trace_id"]).and_then(|id| TraceId::new(u8::try_from(id).ok()?));
        let mut only = Only(id.expect("a trace ID"), Vec::new());
        let mut deframer = RecoveringDeframer::new(Framing::Buffer);
        deframer.push(&std::fs::read(folder.join(file)).expect("a readable file"), &mut only);
        deframer.finish(&mut only);
        let (mut packets, items) = read(&only.1, 16);
        // OpenCSD lists it, the expected packets do not.
        packets.pop_if(|last| last["packet"] == "incomplete");
        assert_eq!(packets, expected(&file_expected["packets"]), "{}", folder.display());
        assert_eq!(&json!(items), &file_expected["items"], "{}", folder.display());
    }
}
