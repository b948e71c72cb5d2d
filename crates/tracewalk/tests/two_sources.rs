//! The example program for a capture of two sources counts the instructions that each source is known to have
//! executed.

#[path = "../examples/two_sources.rs"]
#[expect(dead_code, reason = "its main function is the program's")]
mod example;

use object::{Object, ObjectSegment};
use tracewalk::frame::{
    Deframer, Discontinuity, Formatter, FormatterOptions, FrameSink, Framing, Owner, Piece,
};
use tracewalk::isa;
use tracewalk::{Address, Isa, Location, Program, TraceId};

const EXAMPLES: [(u8, &str); 2] = [(0x10, "a7-etmv3"), (0x13, "a15-pft")];

fn read(path: &str) -> Vec<u8> {
    std::fs::read(format!("{}/../../testdata/{path}", env!("CARGO_MANIFEST_DIR")))
        .expect("a file of the project")
}

/// The bytes of one trace ID.
struct Only(Owner, Vec<u8>);

impl FrameSink for Only {
    fn data(&mut self, owner: Owner, piece: Piece<'_>) {
        if owner == self.0 {
            piece.append_to(&mut self.1);
        }
    }

    fn discontinuity(&mut self, discontinuity: Discontinuity) {
        panic!("{discontinuity}");
    }
}

#[test]
fn the_capture_holds_the_sources_of_two_examples() {
    let sources = EXAMPLES.map(|(id, name)| {
        let id = TraceId::new(id).expect("a source's ID");
        let mut only = Only(Owner::Source(id), Vec::new());
        let mut deframer = Deframer::new(Framing::Buffer);
        deframer.push(&read(&format!("examples/{name}/trace.bin")), &mut only);
        deframer.finish(&mut only);
        (id, only.1)
    });
    let (mut formatter, mut capture) = (Formatter::new(FormatterOptions::default()), Vec::new());
    let mut pieces = sources.each_ref().map(|(id, bytes)| (*id, bytes.chunks(37)));
    while pieces.iter().any(|(_, pieces)| pieces.len() > 0) {
        for (id, pieces) in &mut pieces {
            if let Some(piece) = pieces.next() {
                formatter.write(*id, piece, &mut capture);
            }
        }
    }
    formatter.flush(&mut capture);
    assert!(capture == read("two-sources/trace.bin"), "the capture is not made of these examples");
}

#[test]
fn the_example_counts_the_instructions_of_the_runs_that_each_source_is_known_for() {
    let file = read("examples/a15-pft/a9.elf");
    let mut program = Program::new();
    for segment in object::File::parse(&*file).expect("an ELF file").segments() {
        program
            .add(Address::new(segment.address()), segment.data().expect("bytes"))
            .expect("they do not overlap");
    }
    let known = EXAMPLES.map(|(_, name)| {
        let runs = String::from_utf8(read(&format!("examples/{name}/runs.txt"))).expect("text");
        runs.lines()
            .filter_map(|line| line.strip_prefix("R "))
            .map(|run| instructions(&program, run))
            .sum::<u64>()
    });
    assert!(known.iter().all(|&known| known > 1000), "{known:?}");
    let counted = example::instructions().expect("the capture can be read");
    let ids = EXAMPLES.map(|(id, _)| TraceId::new(id).expect("a source's ID"));
    assert!(counted.into_iter().eq(ids.into_iter().zip(known)));
}

/// The number of instructions of a run `START END ISA`.
fn instructions(program: &Program, run: &str) -> u64 {
    let [start, end, isa] = run.split(' ').collect::<Vec<_>>()[..] else { panic!("{run}") };
    let address = |word| Address::new(u64::from_str_radix(word, 16).expect("a hexadecimal number"));
    let isa = [Isa::A32, Isa::T32]
        .into_iter()
        .find(|known| known.name().eq_ignore_ascii_case(isa))
        .expect("a known one");
    let (mut at, end, mut count) = (Location::new(address(start), isa), address(end), 0);
    while at.address != end {
        let code = program.code(at.address).expect("a run has code");
        at = at.after(isa::classify(code, at.address, isa).expect("it was followed").bytes.into());
        count += 1;
    }
    count
}
