//! `flow --values --format jsonl`: an object for each instruction, with what was in registers and memory (docs/formats.md).

use std::fmt::Write as _;
use std::io::{self, Write};

use tracewalk::flow::Element;
use tracewalk::ids::Isa;
use tracewalk::span::CaptureOffset;
use tracewalk_analysis::Section;
use tracewalk_analysis::record::FlowRecord;
use tracewalk_analysis::sink::Sink;
use tracewalk_analysis::values::{
    Instruction, Proven, ProvenAccess, Register, Step, ValueSink, ValueSummary,
};

use super::FlowJsonl;

/// Writes JSON lines of instructions with values.
#[derive(Debug)]
pub struct ValuesJsonl<W> {
    /// Writes elements that are no instructions.
    others: FlowJsonl<W>,
    text: String,
}

impl<W: Write> ValuesJsonl<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self { others: FlowJsonl::new(out), text: String::new() }
    }
}

/// The name of a register.
#[must_use]
pub fn register_name(Register(number): Register, isa: Isa) -> String {
    match (isa, number) {
        (Isa::A64, 31) => "sp".to_owned(),
        (Isa::A64, number) => format!("x{number}"),
        (_, 13) => "sp".to_owned(),
        (_, 14) => "lr".to_owned(),
        (_, number) => format!("r{number}"),
    }
}

impl<W: Write> ValueSink for ValuesJsonl<W> {
    fn section(&mut self, section: &Section) -> io::Result<()> {
        self.others.section(section)
    }

    fn element(&mut self, record: &FlowRecord) -> io::Result<()> {
        match record.element {
            Element::Block(_) => {
                self.pass(record);
                Ok(())
            }
            _ => self.others.record(*record),
        }
    }

    fn pass(&mut self, record: &FlowRecord) {
        self.others.pass(record);
    }

    fn step(&mut self, at: CaptureOffset, step: &Step, proven: &Proven) -> io::Result<()> {
        let Step::Instruction(instruction) = step else { return Ok(()) };
        self.text.clear();
        // Writing into memory cannot fail.
        let _ = self.object(at, instruction, proven);
        self.others.line(self.text.as_bytes())
    }

    fn end_section(&mut self, _: &ValueSummary) -> io::Result<()> {
        Sink::<FlowRecord>::end_section(&mut self.others)
    }
}

impl<W: Write> ValuesJsonl<W> {
    fn object(&mut self, at: CaptureOffset, instruction: &Instruction, proven: &Proven) -> std::fmt::Result {
        let (id, doubt) = self.others.state();
        let text = &mut self.text;
        write!(text, "{{\"v\":1,\"offset\":{},\"id\":", at.0)?;
        match id {
            Some(id) => write!(text, "{}", id.get())?,
            None => text.push_str("null"),
        }
        let (address, isa) = (instruction.at.address, instruction.at.isa);
        write!(text, ",\"element\":\"instruction\",\"addr\":\"{address}\",\"isa\":\"{}\"", isa.name())?;
        match proven.executed {
            Some(executed) => write!(text, ",\"executed\":{executed}")?,
            None => text.push_str(",\"executed\":null"),
        }
        let name = |register| register_name(register, isa);
        text.push_str(",\"writes\":{");
        let known = proven.writes.iter().filter_map(|(register, value)| Some((*register, (*value)?)));
        for (index, (register, value)) in known.enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(text, "{comma}\"{}\":\"0x{value:x}\"", name(register))?;
        }
        text.push('}');
        let mut unknown = proven.writes.iter().filter(|(_, value)| value.is_none()).peekable();
        if unknown.peek().is_some() {
            text.push_str(",\"unknown\":[");
            for (index, (register, _)) in unknown.enumerate() {
                write!(text, "{}\"{}\"", if index > 0 { "," } else { "" }, name(*register))?;
            }
            text.push(']');
        }
        accesses(text, "loads", proven.accesses.iter().filter(|access| !access.is_store))?;
        accesses(text, "stores", proven.accesses.iter().filter(|access| access.is_store))?;
        if doubt.is_open() {
            text.push_str(",\"in_doubt\":true");
        }
        text.push_str("}\n");
        Ok(())
    }
}

fn accesses<'a>(
    text: &mut String,
    name: &str,
    accesses: impl Iterator<Item = &'a ProvenAccess>,
) -> std::fmt::Result {
    write!(text, ",\"{name}\":[")?;
    for (index, access) in accesses.enumerate() {
        text.push_str(if index > 0 { ",{\"addr\":" } else { "{\"addr\":" });
        match access.address {
            Some(address) => write!(text, "\"0x{address:08x}\"")?,
            None => text.push_str("null"),
        }
        write!(text, ",\"bytes\":{},\"value\":", access.bytes)?;
        match access.value {
            Some(value) => write!(text, "\"0x{value:x}\"}}")?,
            None => text.push_str("null}"),
        }
    }
    text.push(']');
    Ok(())
}
