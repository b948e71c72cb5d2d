//! Decodes a formatted capture of two sources, a Cortex-A7's ETM and a Cortex-A15's PTM, and counts what each executed:
//!
//!     cargo run --package tracewalk --example two_sources

use std::{collections::BTreeMap, error::Error, fs};

use object::{Object, ObjectSegment};
use tracewalk::protocol::{etmv3, pft};
use tracewalk::{
    Address, CaptureDecoder, Element, SourceConfig, TraceId, frame::Framing, program::ProgramBuilder,
};

const TESTDATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata");

/// The number of instructions that each source executed.
pub(crate) fn instructions() -> Result<BTreeMap<TraceId, u64>, Box<dyn Error>> {
    let (capture, elf) =
        (format!("{TESTDATA}/two-sources/trace.bin"), format!("{TESTDATA}/examples/a15-pft/a9.elf"));
    let (capture, elf) = (fs::read(capture)?, fs::read(elf)?);
    let mut program = ProgramBuilder::new();
    for segment in object::File::parse(&*elf)?.segments() {
        program.add(Address::new(segment.address()), segment.data()?)?;
    }
    let program = program.build();
    let registers = |etmcr| etmv3::Registers { etmcr: Some(etmcr), ..Default::default() };
    let etm = etmv3::Config::of_core("cortex-a7".parse()?, registers(0x5000))?;
    let ptm = pft::Config::of_core("cortex-a15".parse()?, registers(0x2000_0000))?;
    let [a7, a15] = [0x10, 0x13].map(|id| TraceId::new(id).expect("a source's ID"));
    let sources = [(a7, SourceConfig::Etmv3(etm), &program), (a15, SourceConfig::Pft(ptm), &program)];
    let mut instructions = BTreeMap::new();
    for (id, element) in CaptureDecoder::new(Framing::Buffer, sources).elements(&capture) {
        if let Element::Block(block) = element {
            *instructions.entry(id).or_default() += u64::from(block.instructions);
        }
    }
    Ok(instructions)
}

fn main() -> Result<(), Box<dyn Error>> {
    instructions()?.iter().for_each(|(id, count)| println!("trace ID {id}: {count} instructions"));
    Ok(())
}
