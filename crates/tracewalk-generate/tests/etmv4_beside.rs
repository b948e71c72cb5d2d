//! ETMv4 packets that say nothing about where execution went: conditional instructions with their results,
//! and the markers that place data trace. Inserted between any two packets of a trace, they do not change the
//! flow.

use std::collections::BTreeMap;

use tracewalk::protocol::etmv4::{
    ConditionalInstruction, ConditionalResult, Config, Core, DataSynchronisation, Encoder, KeyedResult,
    Packet, Registers,
};
use tracewalk::source::{PacketItem, PacketStream, SourceConfig};
use tracewalk_generate::a64;
use tracewalk_generate::etmv4::{Options, encode};
use tracewalk_generate::firmware::Firmware;
use tracewalk_generate::found::{Found, first_difference};

use crate::common::firmware;

/// TRCIDR0: conditional instructions are traced, and data.
const CONDITIONAL: u32 = 1 << 6;
const DATA: u32 = 0b11 << 3;
/// TRCCONFIGR: all conditional instructions.
const ALL_CONDITIONAL: u32 = 0b111 << 8;
const CYCLES: u32 = 1 << 4;
const RETURN_STACK: u32 = 1 << 12;

fn config(core: &str, trcconfigr: u32, speculation: u32) -> Config {
    let core = Core::named(core).unwrap();
    let usual = Registers::default().or_usual_of(core);
    let registers = Registers {
        trcconfigr: Some(1 | ALL_CONDITIONAL | trcconfigr),
        trcidr0: usual.trcidr0.map(|trcidr0| trcidr0 | CONDITIONAL | DATA),
        trcidr8: Some(speculation),
        ..usual
    };
    Config::from_registers(registers, Some(core.profile())).unwrap()
}

/// Every format of every packet that flow ignores.
fn beside() -> Vec<Packet> {
    use ConditionalInstruction as Instruction;
    use ConditionalResult as Result;
    let result = |key, result| KeyedResult { key, result, ci: key % 2 == 0 };
    let instructions = [
        Instruction::Key(5),
        Instruction::Key(1 << 20),
        Instruction::Next,
        Instruction::Same,
        Instruction::NextAndSame,
        Instruction::Successive { count: 63, and_same: true },
        Instruction::Successive { count: 1, and_same: false },
    ];
    let results = [
        Result::Keys(result(3, 1), None),
        Result::Keys(result(1 << 12, 0b1010), Some(result(6, 0))),
        Result::Token { advance: 1, token: 2 },
        Result::Token { advance: 2, token: 0 },
        Result::Tokens(0x80f),
        Result::Previous(1),
    ];
    let markers = [DataSynchronisation::Numbered(7), DataSynchronisation::Unnumbered(4)];
    let instructions = instructions.map(Packet::ConditionalInstruction);
    let results = results.map(Packet::ConditionalResult);
    let markers = markers.map(Packet::DataSynchronisation);
    [&instructions[..], &[Packet::ConditionalFlush], &results, &markers].concat()
}

/// The starts of packets, and how often each packet's name occurs.
fn packets(config: &SourceConfig, bytes: &[u8]) -> (Vec<usize>, BTreeMap<&'static str, usize>) {
    let (mut starts, mut names) = (Vec::new(), BTreeMap::new());
    let mut note = |item: PacketItem<'_>, span: tracewalk::span::Span, _: &[u8]| match item {
        PacketItem::Packet(packet) => {
            starts.push(usize::try_from(span.start.0).unwrap());
            *names.entry(packet.name()).or_default() += 1;
        }
        item => panic!("{item:?} at {span:?}"),
    };
    let mut stream = PacketStream::new(config);
    stream.push(bytes, &mut note);
    stream.finish(&mut note);
    (starts, names)
}

fn check(name: &str, firmware: &Firmware, config: &Config, options: &Options) {
    let Firmware { elf, path } = firmware;
    let trace = encode(path, &elf.program, config, options).unwrap();
    let source = SourceConfig::Etmv4(*config);
    let (starts, names) = packets(&source, &trace.bytes);
    let mut encoder = Encoder::new(config);
    let beside = beside();
    let mut inserted = BTreeMap::<_, usize>::new();
    let mut woven = Vec::new();
    let ends = starts.iter().skip(1).copied().chain([trace.bytes.len()]);
    for ((start, end), packet) in starts.iter().zip(ends).zip(beside.iter().cycle()) {
        woven.extend_from_slice(&trace.bytes[*start..end]);
        encoder.encode(packet, &mut woven).unwrap();
        let name = match packet {
            Packet::ConditionalInstruction(_) => "conditional_instruction",
            Packet::ConditionalFlush => "conditional_flush",
            Packet::ConditionalResult(_) => "conditional_result",
            _ => "data_synchronisation",
        };
        *inserted.entry(name).or_default() += 1;
    }
    assert_eq!(inserted.len(), 4, "{name}");
    let mut expected = names;
    expected.extend(inserted);
    assert_eq!(packets(&source, &woven).1, expected, "{name}");
    let plain = Found::of(&source, &trace.bytes, &elf.program);
    let found = Found::of(&source, &woven, &elf.program);
    assert_eq!(first_difference(elf.profile, &plain.path, &found.path), None, "{name}");
    assert_eq!(first_difference(elf.profile, &trace.path, &found.path), None, "{name}");
    let beside_path =
        |found: &Found| (found.cycles, found.timestamps.clone(), found.contexts.clone(), found.starts);
    assert_eq!(beside_path(&found), beside_path(&plain), "{name}");
    assert_eq!(found.gaps, [], "{name}");
    assert!(found.path.instructions().count() > 1000, "{name}");
}

#[test]
fn conditional_and_data_packets_between_any_two_packets_change_nothing() {
    let programs = [
        ("a9", firmware("a9"), "cortex-r8"),
        ("a15", firmware("a15"), "cortex-r52"),
        ("m3", firmware("m3"), "cortex-m7"),
        ("m33", firmware("m33"), "cortex-m33"),
        ("a64", a64::firmware(3), "cortex-r82"),
    ];
    for (name, firmware, core) in &programs {
        for (trcconfigr, speculation) in [(0, 0), (RETURN_STACK | CYCLES, 0), (RETURN_STACK, 30)] {
            let config = config(core, trcconfigr, speculation);
            let usual =
                Options { synchronise_every: Some(200), timestamp_every: Some(90), ..Options::default() };
            for options in [usual, Options { late_addresses: true, event_every: Some(70), ..usual }] {
                check(name, firmware, &config, &options);
            }
        }
    }
}
