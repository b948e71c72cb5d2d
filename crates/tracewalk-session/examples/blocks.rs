//! The executed blocks of a file of trace bytes, with their functions and source lines:
//!
//!     cargo run --package tracewalk-session --example blocks

use std::error::Error;
use std::io::{self, Write};
use std::sync::Arc;

use tracewalk::flow::Element;
use tracewalk_analysis::analysis::FlowSink;
use tracewalk_analysis::record::FlowRecord;
use tracewalk_analysis::sink::Sink;
use tracewalk_analysis::{Code, CodeInContext, Section};
use tracewalk_session::{Follow, Notices, Request, RunError, Session, Severity};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/examples/m3-etmv3");

/// Writes a line for each block: its address, number of instructions, function and source line.
struct Blocks<W> {
    out: W,
    code: CodeInContext,
}

impl<W: Write> Sink<FlowRecord> for Blocks<W> {
    fn section(&mut self, section: &Section) -> io::Result<()> {
        self.code = CodeInContext::new(Arc::clone(&section.code));
        Ok(())
    }

    fn record(&mut self, record: FlowRecord) -> io::Result<()> {
        self.code.element(&record.element);
        let Element::Block(block) = record.element else { return Ok(()) };
        let function = self.code.symbols.function(block.start).map_or("?", |function| function.name);
        let frames = self.code.symbols.frames(block.start);
        let place = frames.first().and_then(|frame| Some((frame.file.as_deref()?, frame.line?)));
        let (file, line) = place.unwrap_or(("?", 0));
        writeln!(self.out, "{} {} {function} {file}:{line}", block.start, block.instructions)
    }
}

impl<W: Write> FlowSink for Blocks<W> {}

/// Writes the blocks of all sources; returns whether nothing was lost.
pub(crate) fn write_blocks(out: impl Write) -> Result<bool, Box<dyn Error>> {
    let notices = Notices::default();
    let mut request = Request::new(format!("{EXAMPLE}/trace.bin"));
    request.images.push(format!("{EXAMPLE}/m3.elf").parse()?);
    // Optional: tracewalk infers the sources if none is stated.
    request.stated.sources.push("0x10=etmv3,cpu=cortex-m3".parse()?);
    let mut session = Session::open_observed(request, &notices)?;
    let mut blocks = Blocks { out, code: CodeInContext::new(Code::unknown().into()) };
    session.each_source(&notices, |session, source| {
        session.run_observed(source, &Follow::default(), &mut blocks, &notices)?;
        Ok::<(), RunError>(())
    })?;
    blocks.out.flush()?;
    Ok(notices.into_vec().iter().all(|notice| notice.severity() < Severity::Incomplete))
}

#[allow(dead_code, reason = "a test calls what is above")]
fn main() -> Result<(), Box<dyn Error>> {
    if !write_blocks(io::stdout().lock())? {
        eprintln!("a part of the trace could not be read, decoded or followed");
    }
    Ok(())
}
