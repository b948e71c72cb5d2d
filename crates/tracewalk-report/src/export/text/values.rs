//! `flow --values`: every instruction with what is proven of registers and memory.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::rc::Rc;

use tracewalk::flow::Element;
use tracewalk::span::CaptureOffset;
use tracewalk_analysis::record::FlowRecord;
use tracewalk_analysis::values::{HaltUse, Instruction, Proven, Step, ValueSink, ValueSummary};
use tracewalk_analysis::{CodeInContext, Section};

use super::code::{Place, Rows};
use super::{gap_text, marked_event, rule};
use crate::Look;
use crate::export::register_name;

/// The column of values.
const VALUES: usize = 36;

/// Writes a listing with values.
#[derive(Debug)]
pub struct ValuesText<W> {
    out: W,
    look: Look,
    code: CodeInContext,
    rows: Rows,
    place: Option<Rc<Place>>,
}

impl<W: Write> ValuesText<W> {
    /// Writes to `out`.
    pub fn new(out: W, look: Look) -> Self {
        let code = CodeInContext::new(tracewalk_analysis::Code::unknown().into());
        Self { out, look, code, rows: Rows::default(), place: None }
    }
}

impl<W: Write> ValueSink for ValuesText<W> {
    fn section(&mut self, section: &Section) -> io::Result<()> {
        let head = self.look.palette.head;
        self.code = CodeInContext::new(section.code.clone());
        (self.rows, self.place) = (Rows::default(), None);
        writeln!(self.out, "{head}{section}{head:#}")
    }

    fn element(&mut self, record: &FlowRecord) -> io::Result<()> {
        self.code.element(&record.element);
        let (style, text) = match &record.element {
            Element::Event(event) => match marked_event(&self.code, &event.kind) {
                Some(text) => (self.look.palette.exception, text),
                None => return Ok(()),
            },
            Element::Gap(gap) => (self.look.palette.problem, gap_text(gap)),
            _ => return Ok(()),
        };
        self.place = None;
        writeln!(self.out, "{style}{}{style:#}", rule(&text))
    }

    fn pass(&mut self, record: &FlowRecord) {
        self.code.element(&record.element);
    }

    fn step(&mut self, _: CaptureOffset, step: &Step, proven: &Proven) -> io::Result<()> {
        let Step::Instruction(instruction) = step else { return Ok(()) };
        let palette = &self.look.palette;
        let Some(row) = self.rows.row(&self.code, palette, instruction.at) else { return Ok(()) };
        if !self.place.as_ref().is_some_and(|last| last.same_scope(&row.place)) {
            writeln!(self.out, "{}", row.heading_within(None, palette))?;
        }
        self.place = Some(Rc::clone(&row.place));
        let padding = VALUES.saturating_sub(row.width);
        write!(self.out, "{}  {}", row.head, row.text)?;
        let facts = facts(instruction, proven);
        if !facts.is_empty() {
            let quiet = palette.quiet;
            write!(self.out, "{:padding$}  {quiet}; {facts}{quiet:#}", "")?;
        }
        writeln!(self.out)
    }

    fn end_section(&mut self, summary: &ValueSummary) -> io::Result<()> {
        let head = self.look.palette.head;
        let proven = summary.proven;
        let mut text =
            format!("{} of {} written register values are known", proven.known_writes, proven.writes);
        let start = if summary.from_begin { "from the program's start" } else { "from an unknown state" };
        let _ = write!(text, "; {start}");
        let _ = match summary.halt {
            None => write!(text, ", without a state at the end"),
            Some(HaltUse::Used) => write!(text, ", with the state at the end"),
            Some(HaltUse::Contradicts) => {
                write!(text, "; the state at the end was not used, because it contradicts the path")
            }
            Some(HaltUse::Elsewhere { path: Some(path), halted }) => {
                write!(
                    text,
                    "; the state at the end was not used: halted at {halted}, the path ends at {path}"
                )
            }
            Some(HaltUse::Elsewhere { path: None, halted }) => {
                write!(
                    text,
                    "; the state at the end was not used: halted at {halted}, the end of the path is unknown"
                )
            }
        };
        writeln!(self.out, "{head}{text}{head:#}")
    }
}

/// What is known: registers that were written, and memory that was loaded or stored.
fn facts(instruction: &Instruction, proven: &Proven) -> String {
    let mut text = String::new();
    if proven.executed.is_none() {
        text.push_str("(executed or not)");
    }
    let separate = |text: &mut String| {
        if !text.is_empty() {
            text.push_str(", ");
        }
    };
    // Writing to a string cannot fail.
    for (register, value) in &proven.writes {
        separate(&mut text);
        let name = register_name(*register, instruction.at.isa);
        let _ = match value {
            Some(value) => write!(text, "{name} = 0x{value:x}"),
            None => write!(text, "{name} = ?"),
        };
    }
    for access in &proven.accesses {
        separate(&mut text);
        let verb = if access.is_store { "stores" } else { "loads" };
        let _ = match access.value {
            Some(value) => write!(text, "{verb} 0x{value:x}"),
            None => write!(text, "{verb} ?"),
        };
        let _ = match access.address {
            Some(address) => write!(text, " at 0x{address:08x}"),
            None => write!(text, " at ?"),
        };
    }
    text
}
