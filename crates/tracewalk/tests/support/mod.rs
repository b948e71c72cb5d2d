//! Shared by the vector tests: the corpus beside the project, its vectors, and a listing of flow in their
//! notation.

pub(crate) mod runs;
pub(crate) mod snapshots;

use std::path::PathBuf;

use serde_json::{Map, Value, json};
use tracewalk::directive::{Transaction, TransferValue};
use tracewalk::flow::{Block, Element, Ending, Engine, EventKind, GapReason};
use tracewalk::ids::{Address, Location};
use tracewalk::isa;
use tracewalk::program::Program;
use tracewalk::protocol::Field;
use tracewalk::source::{FlowStream, PacketItem, PacketStream, SourceConfig};

/// The corpus, which lies beside the project and is not part of it.
pub(crate) fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus")
}

/// `vectors.json`.
pub(crate) fn vectors_file() -> Value {
    let text = std::fs::read_to_string(corpus().join("vectors.json")).expect("vectors.json is readable");
    serde_json::from_str(&text).expect("vectors.json is JSON")
}

/// The bytes of a string of hexadecimal digits.
pub(crate) fn hex(text: &Value) -> Vec<u8> {
    let text = text.as_str().expect("bytes are a string");
    let pairs = text.as_bytes().chunks(2).map(|pair| str::from_utf8(pair).expect("ASCII"));
    pairs.map(|pair| u8::from_str_radix(pair, 16).expect("hex digits")).collect()
}

/// A number, also as a string like `"0x10"`.
pub(crate) fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| u64::from_str_radix(value.as_str()?.strip_prefix("0x")?, 16).ok())
}

/// The memory that the flow vectors run in.
pub(crate) fn images(file: &Value) -> Program {
    let mut program = Program::new();
    for image in file["images"].as_array().expect("a list of images") {
        let at = number(&image["addr"]).and_then(|at| u32::try_from(at).ok()).expect("an address");
        program.add(Address::from(at), &hex(&image["hex"])).expect("images do not overlap");
    }
    program
}

/// Decodes in pieces of `size` bytes; each item as an object with `kind`, `offset`, `length` and the packet's fields.
pub(crate) fn packets(config: &SourceConfig, bytes: &[u8], size: usize) -> Vec<Map<String, Value>> {
    let mut items = Vec::new();
    let mut note = |item: PacketItem<'_>, span: tracewalk::span::Span, bytes: &[u8]| {
        assert_eq!(span.bytes(), bytes.len() as u64);
        let mut object = Map::new();
        object.insert("offset".into(), json!(span.start.0));
        object.insert("length".into(), json!(bytes.len()));
        match item {
            PacketItem::Packet(packet) => {
                object.insert("kind".into(), json!(packet.name()));
                packet.fields(&mut |name, field| {
                    // Consumers that look for times need not look into other packets.
                    assert!(name != "timestamp" || packet.name() == name, "{}", packet.name());
                    let value = match field {
                        Field::Number(number) | Field::Bits(number) => json!(number),
                        Field::Flag(flag) => json!(flag),
                        Field::Address(address) => json!(address.get()),
                        Field::Text(text) => json!(text),
                    };
                    object.insert(name.into(), value);
                });
            }
            PacketItem::Malformed(reason) => {
                object.insert("kind".into(), json!("malformed"));
                object.insert("reason".into(), json!(reason.name()));
            }
            PacketItem::Unsynchronised => {
                object.insert("kind".into(), json!("unsynced"));
            }
        }
        items.push(object);
    };
    let mut stream = PacketStream::new(config);
    bytes.chunks(size).for_each(|piece| stream.push(piece, &mut note));
    stream.finish(&mut note);
    items
}

/// The flow of `bytes`, in pieces of `size` bytes. Both engines follow it, and have to agree element for element.
pub(crate) fn elements(config: &SourceConfig, bytes: &[u8], program: &Program, size: usize) -> Vec<Element> {
    let by = |engine| {
        let mut elements = Vec::new();
        let mut note = |element| elements.push(element);
        let mut stream = FlowStream::with_engine(config, engine);
        bytes.chunks(size).for_each(|piece| stream.push(piece, program, &mut note));
        stream.finish(program, &mut note);
        elements
    };
    let (by_graph, by_walk) = (by(Engine::Graph), by(Engine::Walk));
    for (graph, walk) in by_graph.iter().zip(&by_walk) {
        assert_eq!(graph, walk, "the graph (left) and the walk (right) disagree");
    }
    assert_eq!(by_graph.len(), by_walk.len(), "the graph and the walk disagree");
    by_graph
}

/// Decodes in pieces of `size` bytes; the elements in the vectors' notation.
pub(crate) fn flow(config: &SourceConfig, bytes: &[u8], program: &Program, size: usize) -> Vec<String> {
    let mut listing = Vec::new();
    let mut note = |element| match element {
        Element::Block(block) => instructions(&block, config, program, &mut listing),
        Element::Event(event) => match event.kind {
            EventKind::TraceOn(_) => listing.push("trace_on".into()),
            EventKind::ExceptionReturn => listing.push("exception_return".into()),
            EventKind::Timestamp(_) => listing.push("timestamp".into()),
            EventKind::Exception { exception, preferred_return, .. } => {
                let number = exception.map_or(0, tracewalk::ids::Exception::number);
                let returns = preferred_return.map_or("-".into(), |at| format!("{:08X}", at.get()));
                listing.push(format!("exception {number} ret {returns}"));
            }
            EventKind::Data(transfer) => {
                let value = match transfer.value {
                    TransferValue::Value(value) => format!("{value:x}"),
                    other => format!("{other:?}"),
                };
                listing.push(format!("data {:?} {value}", transfer.address));
            }
            EventKind::Transaction(transaction) => listing.push(
                match transaction {
                    Transaction::Started => "transaction start",
                    Transaction::UnderWay => "transaction in_transaction",
                    Transaction::Committed => "transaction commit",
                    Transaction::Failed => "transaction failure",
                    other => other.name(),
                }
                .into(),
            ),
            EventKind::Events(events) => listing.push(format!("event {events}")),
            EventKind::Instrumentation(written) => {
                listing.push(format!("instrumentation {} {:x}", written.level.number(), written.value));
            }
            // The vectors do not list other events.
            _ => {}
        },
        Element::Gap(gap) => listing.push(match gap.reason {
            GapReason::AddressUnknown => "address_unknown".into(),
            GapReason::NoCode(at) => format!("no_memory {:08X}", at.address.get()),
            GapReason::Unseen { from, instructions, then } => {
                let from = from.map_or("-".into(), |from| format!("{:x}", from.address.get()));
                format!("Q {from} {:x} {}", then.address.get(), instructions.unwrap_or(0))
            }
            other => other.to_string(),
        }),
        Element::Proof(_) => {}
    };
    elements(config, bytes, program, size).into_iter().for_each(&mut note);
    listing
}

/// `ADDRESS E` for executed, `ADDRESS N` for a failed condition, `ADDRESS .` if the protocol does not report
/// which.
fn instructions(block: &Block, config: &SourceConfig, program: &Program, listing: &mut Vec<String>) {
    let inside = if config.protocol() == "etmv3" { 'E' } else { '.' };
    let mut at = block.start;
    while at != block.end {
        let code = program.code(at).expect("executed code is known");
        let instruction = isa::classify(code, at, block.isa).expect("executed code can be decoded");
        let result = match block.ending {
            _ if at != block.last => inside,
            Ending::Branch { taken: false, .. } | Ending::ConditionFailed => 'N',
            Ending::Branch { taken: true, .. } => 'E',
            Ending::Interrupted => inside,
        };
        listing.push(format!("{:08X} {result}", at.get()));
        at = Location::new(at, block.isa).after(instruction.bytes.into()).address;
    }
}
