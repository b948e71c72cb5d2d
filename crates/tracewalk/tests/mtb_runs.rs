//! MTB buffers of a program that ran in an emulator, against the emulator's own record of what it executed.

use std::path::Path;

use object::{Object, ObjectSegment};
use tracewalk::ids::Address;
use tracewalk::program::Program;
use tracewalk::protocol::mtb::order::{Dump, Layout, by_registers};
use tracewalk::protocol::mtb::{self, Config, Registers};
use tracewalk::source::{FlowStream, SourceConfig};

use crate::support::{corpus, runs};

/// The program ends by stopping the emulator, at this address.
const HALTED_AT: Address = Address::new(0xc6);

/// One capture of the corpus.
struct Case {
    data: Vec<u8>,
    config: Config,
    program: Program,
    /// The record's lines.
    record: Vec<String>,
}

impl Case {
    fn read(folder: &Path) -> Self {
        let read = |name: &str| std::fs::read(folder.join(name)).expect("the corpus is complete");
        let text = |name: &str| String::from_utf8(read(name)).expect("text");
        let registers = text("registers.txt");
        let register = |name: &str| {
            let line = registers.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix("=0x"));
            u32::from_str_radix(line.expect("the register is there"), 16).expect("hex digits")
        };
        let registers = Registers {
            position: register("MTB_POSITION"),
            master: register("MTB_MASTER"),
            flow: Some(register("MTB_FLOW")),
            base: Some(register("MTB_BASE")),
        };
        let record = text("runs.txt").lines().map(String::from).collect::<Vec<_>>();
        Self {
            data: read("mtb.bin"),
            config: Config::from_registers(registers),
            program: program(&read("program.elf")),
            record: runs::joined(record),
        }
    }

    fn dump(&self) -> Dump<'_> {
        Dump::new(&self.data, None)
    }

    /// The elements of flow, as lines of the runs format.
    fn runs(&self, layout: &Layout, halted_at: Option<Address>) -> Vec<String> {
        let mut lines = Vec::new();
        let mut note = |element| lines.extend(runs::line(&element));
        let mut flow = FlowStream::new(&SourceConfig::Mtb(mtb::Source { halted_at }));
        for piece in &layout.pieces {
            flow.push(&self.data[piece.bytes.clone()], &self.program, &mut note);
        }
        flow.finish(&self.program, &mut note);
        runs::joined(lines)
    }

    /// Checks that `runs` is the part of the record that ends `missing` lines before its end. Only the end of
    /// the first run is known.
    fn assert_end_of_record(&self, runs: &[String], missing: usize) {
        let end = self.record.len() - missing;
        let expected = &self.record[end - runs.len()..end];
        let last_word = |line: &str| line.rsplit(' ').nth(1).map(String::from);
        assert_eq!(last_word(&runs[0]), last_word(&expected[0]), "the first run ends as recorded");
        for (index, (found, expected)) in runs.iter().zip(expected).enumerate().skip(1) {
            assert_eq!(found, expected, "line {index} of {}", runs.len());
        }
    }
}

/// The segments of an ELF file, with the vector table at 0.
fn program(elf: &[u8]) -> Program {
    let file = object::File::parse(elf).expect("an ELF file");
    let mut program = Program::new();
    for segment in file.segments() {
        let at = Address::from(u32::try_from(segment.address()).expect("a 32-bit address"));
        program
            .add(at, segment.data().expect("the segment is in the file"))
            .expect("segments do not overlap");
    }
    program.set_vector_table(Address::new(0));
    program
}

fn case(name: &str) -> Case {
    Case::read(&corpus().join("synthetic").join(name))
}

#[tracewalk_corpus::test]
fn a_buffer_that_held_everything_holds_the_whole_record() {
    let case = case("mix-m0-mtb-full");
    let layout = by_registers(case.dump(), &case.config).expect("the dump holds the buffer");
    let runs = case.runs(&layout, None);
    // Execution after the last packet is known only if the halted program counter is.
    assert_eq!(runs.len(), case.record.len() - 1);
    case.assert_end_of_record(&runs, 1);
    let runs = case.runs(&layout, Some(HALTED_AT));
    assert_eq!(runs.len(), case.record.len());
    case.assert_end_of_record(&runs, 0);
}

#[tracewalk_corpus::test]
fn a_buffer_that_wrapped_holds_the_end_of_the_record() {
    let case = case("mix-m0-mtb-4k");
    let layout = by_registers(case.dump(), &case.config).expect("the dump holds the buffer");
    let runs = case.runs(&layout, Some(HALTED_AT));
    // 512 packets; each ends a run or, in pairs, a return.
    assert!(runs.len() > 400, "only {} lines", runs.len());
    case.assert_end_of_record(&runs, 0);
}
