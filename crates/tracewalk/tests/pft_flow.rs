//! PFT captures of the corpus, from hardware and from an emulator, against the known execution.

use std::path::Path;

use serde_json::{Map, Value};
use tracewalk::flow::{BranchKind, Element, Ending, EventKind};
use tracewalk::frame::{Discontinuity, FrameSink, Framing, Owner, Piece, RecoveringDeframer};
use tracewalk::ids::{Address, TraceId};
use tracewalk::program::Program;
use tracewalk::protocol::pft::{Config, Registers};
use tracewalk::source::SourceConfig;

use crate::support::{corpus, number, packets, runs};

/// The ID registers of a Cortex-A15's PTM, with these values in all captures of the corpus.
const ETMIDR: u32 = 0x411c_f312;
const ETMCCER: u32 = 0x34c0_1ac2;

fn read(folder: &Path, name: &str) -> Vec<u8> {
    std::fs::read(folder.join(name)).expect("the corpus is complete")
}

fn config(etmcr: u32) -> SourceConfig {
    let registers =
        Registers { etmcr: Some(etmcr), etmidr: Some(ETMIDR), etmccer: Some(ETMCCER), etmtraceidr: None };
    SourceConfig::Pft(Config::from_registers(registers, None).expect("the capture's registers are sound"))
}

fn program(folder: &Path, images: &[(u32, &str)]) -> Program {
    let mut program = Program::new();
    for (at, name) in images {
        program.add(Address::from(*at), &read(folder, name)).expect("images do not overlap");
    }
    program
}

fn lines(elements: &[Element]) -> Vec<String> {
    runs::joined(elements.iter().filter_map(runs::line))
}

/// The expected lines of a capture.
fn expected(folder: &Path, name: &str) -> Vec<String> {
    let text = String::from_utf8(read(folder, name)).expect("text");
    runs::joined(text.lines().map(String::from))
}

fn assert_same(found: &[String], expected: &[String]) {
    for (number, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert_eq!(found, expected, "line {number}");
    }
    assert_eq!(found.len(), expected.len());
}

fn instructions(elements: &[Element]) -> u64 {
    let of_block = |element: &Element| match element {
        Element::Block(block) => u64::from(block.instructions),
        _ => 0,
    };
    elements.iter().map(of_block).sum()
}

/// The bytes of one source of a buffer.
struct Source {
    id: TraceId,
    bytes: Vec<u8>,
}

impl FrameSink for Source {
    fn data(&mut self, owner: Owner, piece: Piece<'_>) {
        if owner == Owner::Source(self.id) {
            self.bytes.extend_from_slice(piece.bytes);
        }
    }

    fn discontinuity(&mut self, discontinuity: Discontinuity) {
        panic!("found {discontinuity:?}, expected whole frames");
    }
}

/// A Cortex-A15 of a TC2 board, cycle-accurate, in a buffer that had wrapped; the image has only a part of
/// the executed code.
fn tc2() -> (Vec<Element>, Value) {
    let folder = corpus().join("real/TC2");
    let mut source = Source { id: TraceId::new(0x13).expect("a trace ID"), bytes: Vec::new() };
    let mut deframer = RecoveringDeframer::new(Framing::Buffer);
    deframer.push(&read(&folder, "cstrace.bin"), &mut source);
    deframer.finish(&mut source);
    let program = program(&folder, &[(0xc000_8000, "kernel_dump.bin")]);
    let elements =
        crate::support::elements(&config(0x1000_1000), &source.bytes, &program, source.bytes.len());
    assert_same(&lines(&elements), &expected(&folder, "runs-13.txt"));
    let totals = serde_json::from_slice::<Value>(&read(&folder, "totals.json")).expect("totals.json is JSON");
    (elements, totals["sources"]["0x13"].clone())
}

#[tracewalk_corpus::test]
fn tc2_executes_what_opencsd_and_ds_5_say() {
    let (elements, totals) = tc2();
    assert_eq!(Some(instructions(&elements)), totals["instructions"].as_u64());
    let events = |wanted: EventKind| {
        elements
            .iter()
            .filter(|element| matches!(element, Element::Event(event) if event.kind == wanted))
            .count()
    };
    assert_eq!(Some(events(EventKind::ExceptionReturn) as u64), totals["exception_returns"].as_u64());
}

#[tracewalk_corpus::test]
fn tc2_has_opencsds_timestamps() {
    let (elements, totals) = tc2();
    let timestamp = |element: &Element| match element {
        Element::Event(event) => match event.kind {
            EventKind::Timestamp(time) => Some(time),
            _ => None,
        },
        _ => None,
    };
    let expected = totals["timestamps"].as_array().expect("a list").iter().filter_map(number);
    assert!(elements.iter().filter_map(timestamp).eq(expected));
}

/// OpenCSD counts no cycles for waypoints in code that no image holds. Flow reports these cycles all the
/// same. A count is for the next element. If that element is neither a block nor the start of tracing, it is
/// unknown what the cycles were spent on.
#[tracewalk_corpus::test]
fn tc2_has_opencsds_cycles_where_the_code_is_known() {
    let (elements, totals) = tc2();
    let (mut followed, mut unfollowed, mut pending) = (0, 0, 0);
    for element in &elements {
        match element {
            Element::Event(event) => match event.kind {
                EventKind::Cycles(cycles) => {
                    unfollowed += pending;
                    pending = cycles;
                }
                EventKind::TraceOn(_) => followed += std::mem::take(&mut pending),
                _ => {}
            },
            Element::Block(_) => followed += std::mem::take(&mut pending),
            Element::Gap(_) => unfollowed += std::mem::take(&mut pending),
            Element::Proof(_) => {}
        }
    }
    assert_eq!(Some(followed), totals["cycles"].as_u64());
    // The rest of all counts in the trace's packets, 172,579.
    assert_eq!(unfollowed + pending, 8_672);
}

/// Another Cortex-A15, with the return stack, A32 and T32.
#[tracewalk_corpus::test]
fn tc2_with_the_return_stack_executes_what_opencsd_and_ds_5_say() {
    let corpus = corpus();
    let folder = corpus.join("real/tc2-ptm-rstk-t32");
    let images = [
        (0x8000_0000, "mem_Cortex-A15_0_0_VECTORS.bin"),
        (0x8000_0278, "mem_Cortex-A15_0_1_RO_CODE.bin"),
        (0x8000_1c28, "mem_Cortex-A15_0_2_RO_DATA.bin"),
    ];
    let (bytes, program) = (read(&folder, "PTM_0_2.bin"), program(&folder, &images));
    let elements = crate::support::elements(&config(0x2000_0400), &bytes, &program, bytes.len());
    assert_same(&lines(&elements), &expected(&folder, "runs-02.txt"));
    assert!(!elements.iter().any(|element| matches!(element, Element::Gap(_))));
    let indirect = |element: &&Element| match element {
        Element::Block(block) => {
            matches!(block.ending, Ending::Branch { kind: BranchKind::Indirect, taken: true, .. })
        }
        _ => false,
    };
    let targets = |item: &&Map<String, Value>| item["kind"] == "branch" && !item.contains_key("exception");
    let items = packets(&config(0x2000_0400), &bytes, bytes.len());
    let predicted = elements.iter().filter(indirect).count() - items.iter().filter(targets).count();
    assert_eq!(predicted, 8_881);
    assert_eq!(
        crate::support::elements(&config(0x2000_0400), &bytes, &program, 7),
        elements,
        "in pieces of 7 bytes"
    );
}

/// Without the return stack the same bytes are contradictory: nothing is guessed.
#[tracewalk_corpus::test]
fn returns_that_nothing_predicts_are_gaps() {
    let corpus = corpus();
    let folder = corpus.join("real/tc2-ptm-rstk-t32");
    let program = program(&folder, &[(0x8000_0278, "mem_Cortex-A15_0_1_RO_CODE.bin")]);
    let bytes = read(&folder, "PTM_0_2.bin");
    let elements = crate::support::elements(&config(0x0000_0400), &bytes, &program, bytes.len());
    let gaps = elements.iter().filter(|element| matches!(element, Element::Gap(_))).count();
    assert!(gaps > 1000, "only {gaps} gaps");
}

/// A program that ran in an emulator. The record continues a little after the end of the trace.
#[tracewalk_corpus::test]
fn the_emulated_program_executes_what_the_emulator_recorded() {
    let corpus = corpus();
    let folder = corpus.join("synthetic/mix-a9-ptm");
    let (bytes, program) = (read(&folder, "trace.bin"), program(&folder, &[(0x6001_0000, "program.bin")]));
    let elements = crate::support::elements(&config(0x0000_0400), &bytes, &program, bytes.len());
    let mut record = expected(&folder, "runs.txt");
    assert!(record.pop().is_some_and(|line| line.starts_with("R ")));
    assert_same(&lines(&elements), &record);
    assert_eq!(crate::support::elements(&config(0x0000_0400), &bytes, &program, 1), elements, "byte by byte");
}
