//! Decodes a formatted capture of two sources, a Cortex-A7's ETM and a Cortex-A15's PTM, and counts what each executed:
//!
//!     cargo run --package tracewalk --example two_sources

use object::{Object, ObjectSegment};
use tracewalk::frame::Framing;
use tracewalk::program::ProgramBuilder;
use tracewalk::protocol::{etmv3, pft};
use tracewalk::{Address, CaptureDecoder, Element, Program, SourceConfig, TraceId};

const TESTDATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata");

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let [a7, a15] = instructions()?;
    println!("Cortex-A7: {a7} instructions, Cortex-A15: {a15} instructions");
    Ok(())
}

/// How many instructions each source executed.
pub(crate) fn instructions() -> Result<[u64; 2], Error> {
    let (program, capture) = (program()?, std::fs::read(format!("{TESTDATA}/two-sources/trace.bin"))?);
    let [a7, a15] = [0x10, 0x13].map(|id| TraceId::new(id).expect("a source's ID"));
    let registers = |etmcr| etmv3::Registers { etmcr: Some(etmcr), ..Default::default() };
    let etm = etmv3::Config::from_registers(registers(0x5000), etmv3::Core::named("cortex-a7"))?;
    let ptm = pft::Config::from_registers(registers(0x2000_0000), pft::Core::named("cortex-a15"))?;
    let sources = [(a7, SourceConfig::Etmv3(etm), &program), (a15, SourceConfig::Pft(ptm), &program)];

    let mut instructions = [0; 2];
    for (id, element) in CaptureDecoder::new(Framing::Buffer, sources).elements(&capture) {
        match element {
            Element::Block(block) => instructions[usize::from(id == a15)] += u64::from(block.instructions),
            Element::Gap(gap) => eprintln!("trace ID {id}: {}", gap.reason),
            _ => {}
        }
    }
    Ok(instructions)
}

/// The code of the program that both processors executed.
fn program() -> Result<Program, Error> {
    let file = std::fs::read(format!("{TESTDATA}/examples/a15-pft/a9.elf"))?;
    let mut program = ProgramBuilder::new();
    for segment in object::File::parse(&*file)?.segments() {
        program.add(Address::new(segment.address()), segment.data()?)?;
    }
    Ok(program.build())
}
