//! `flow`: every instruction that was executed, with its place in the source.

use std::io::{self, Write};
use std::rc::Rc;

use tracewalk::flow::{Block, BranchKind, Element, Ending, EventKind, Gap, GapReason};
use tracewalk::ids::{Address, Location};

use super::code::{Place, Rows, margin, scope_name};
use super::{gap_text, indent, marked_event, quiet_event, rule};
use crate::analysis::{Arrival, CallDepth};
use crate::export::{Export, FlowRecord};
use crate::section::Code;
use crate::{Palette, Section};

/// Writes a listing.
#[derive(Debug)]
pub struct Listing<W> {
    out: W,
    options: ListingOptions,
    code: Rc<Code>,
    rows: Rows,
    calls: CallDepth,
    /// Where the last instruction stands; `None` where the next one needs a heading.
    place: Option<Rc<Place>>,
    /// The address behind the last instruction.
    next: Option<Address>,
    /// Cycles that were spent on the run.
    cycles: u64,
    /// Cycles that are spent on the block to come.
    coming_cycles: u64,
    first_section: bool,
}

/// What a listing shows.
#[derive(Clone, Copy, Debug)]
pub struct ListingOptions {
    /// The colours.
    pub palette: Palette,
    /// Lines of source text between the instructions.
    pub source_lines: bool,
}

/// The column at which places in the source are noted behind the instructions.
const NOTE_COLUMN: usize = 44;

impl<W: Write> Listing<W> {
    /// Writes to `out`.
    pub fn new(out: W, options: ListingOptions) -> Self {
        Self {
            out,
            options,
            code: Rc::new(Code::unknown()),
            rows: Rows::default(),
            calls: CallDepth::default(),
            place: None,
            next: None,
            cycles: 0,
            coming_cycles: 0,
            first_section: true,
        }
    }

    fn block(&mut self, block: &Block, arrival: Arrival) -> io::Result<()> {
        // A branch to the next address goes straight on, as far as a reader is concerned.
        let straight =
            arrival == Arrival::Straight || (arrival == Arrival::Jump && self.next == Some(block.start));
        if !straight {
            self.end_run()?;
        }
        self.cycles = self.cycles.saturating_add(std::mem::take(&mut self.coming_cycles));
        let mut at = Location::new(block.start, block.isa);
        for _ in 0..block.instructions {
            let Some(row) = self.rows.row(&self.code, &self.options.palette, at) else { break };
            self.heading(&row.place, at.address)?;
            let outcome = if at.address == block.last { outcome(block.ending) } else { "" };
            self.instruction(at.address, &row, outcome)?;
            self.place = Some(Rc::clone(&row.place));
            at.address = row.next;
        }
        self.next = Some(block.end);
        Ok(())
    }

    /// Prints where the instruction at `address` stands, as far as the one before it does not say so.
    fn heading(&mut self, place: &Rc<Place>, address: Address) -> io::Result<()> {
        let same_scope = self.place.as_ref().is_some_and(|last| last.same_scope(place));
        if !same_scope {
            let palette = &self.options.palette;
            let margin = margin(self.calls.depth());
            write!(self.out, "{margin}{}", scope_name(place, address, palette))?;
            if let Some(position) = place.file_and_line() {
                write!(self.out, "  {}{position}{:#}", palette.quiet, palette.quiet)?;
            }
            writeln!(self.out)?;
        }
        let same_line =
            self.place.as_ref().is_some_and(|last| last.line == place.line && last.file == place.file);
        if self.options.source_lines
            && !same_line
            && let Some((line, text)) = self.source_line(place)
        {
            let style = self.options.palette.source;
            let margin = margin(self.calls.depth());
            writeln!(self.out, "{margin}{style}{line:>4} │ {text}{style:#}")?;
        }
        Ok(())
    }

    fn source_line(&self, place: &Place) -> Option<(u32, String)> {
        let line = place.line?;
        Some((line, self.code.symbols.source_line(place.file.as_deref()?, line)?))
    }

    fn instruction(&mut self, address: Address, row: &super::code::Row, outcome: &str) -> io::Result<()> {
        let Palette { quiet, skipped, .. } = self.options.palette;
        let indent = indent(self.calls.depth()) + 2;
        write!(self.out, "{quiet}{address:08x}  {:9}{quiet:#} {:indent$}{}", row.code, "", row.text)?;
        let mut width = row.width;
        if !outcome.is_empty() {
            write!(self.out, "  {skipped}{outcome}{skipped:#}")?;
            width += 2 + outcome.len();
        }
        let moved_on = self.place.as_ref().is_some_and(|last| {
            last.same_scope(&row.place) && (last.line != row.place.line || last.file != row.place.file)
        });
        if moved_on
            && !self.options.source_lines
            && let Some(position) = row.place.file_and_line()
        {
            let padding = NOTE_COLUMN.saturating_sub(width);
            write!(self.out, "{:padding$}  {quiet}; {position}{quiet:#}", "")?;
        }
        writeln!(self.out)
    }

    fn event(&mut self, event: &EventKind) -> io::Result<()> {
        if let EventKind::Cycles(count) = event {
            self.coming_cycles = self.coming_cycles.saturating_add(*count);
        }
        if let Some(text) = marked_event(&self.code, event) {
            self.end_run()?;
            let style = match event {
                EventKind::TraceOn(_) => {
                    self.untraced_cycles()?;
                    self.options.palette.quiet
                }
                _ => self.options.palette.exception,
            };
            writeln!(self.out, "{style}{}{style:#}", rule(&text))?;
        }
        if let Some(text) = quiet_event(event) {
            self.quiet(&text)?;
        }
        Ok(())
    }

    fn gap(&mut self, gap: &Gap) -> io::Result<()> {
        self.end_run()?;
        match gap.reason {
            // Without any image this is all that is known, not a defect.
            GapReason::NoCode(at) if self.code.program.is_empty() => {
                writeln!(self.out, "{at:#}", at = Target(at))
            }
            _ => {
                let style = self.options.palette.problem;
                writeln!(self.out, "{style}{}{style:#}", rule(&gap_text(gap)))
            }
        }
    }

    fn quiet(&mut self, text: &str) -> io::Result<()> {
        let quiet = self.options.palette.quiet;
        writeln!(self.out, "{}{quiet}· {text}{quiet:#}", margin(self.calls.depth()))
    }

    /// The next instruction does not stand behind the last one.
    fn end_run(&mut self) -> io::Result<()> {
        self.place = None;
        self.next = None;
        match std::mem::take(&mut self.cycles) {
            0 => Ok(()),
            1 => self.quiet("1 cycle"),
            cycles => self.quiet(&format!("{cycles} cycles")),
        }
    }

    /// Cycles that were counted before tracing began.
    fn untraced_cycles(&mut self) -> io::Result<()> {
        match std::mem::take(&mut self.coming_cycles) {
            0 => Ok(()),
            1 => self.quiet("1 cycle that was not traced"),
            cycles => self.quiet(&format!("{cycles} cycles that were not traced")),
        }
    }
}

/// What became of a block's last instruction, where that is not what its text says.
fn outcome(ending: Ending) -> &'static str {
    match ending {
        Ending::ConditionFailed => "(condition failed)",
        Ending::Branch { kind: BranchKind::Barrier, taken: false, .. } => "(condition failed)",
        Ending::Branch { taken: false, .. } => "(not taken)",
        Ending::Branch { taken: true, .. } | Ending::Interrupted => "",
    }
}

/// A place where execution is known to have been, and nothing else is.
struct Target(Location);

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:08x}  … {}", self.0.address, self.0.isa)
    }
}

impl<W: Write> Export<FlowRecord> for Listing<W> {
    fn section(&mut self, section: &Section) -> io::Result<()> {
        let head = self.options.palette.head;
        if !std::mem::take(&mut self.first_section) {
            writeln!(self.out)?;
        }
        writeln!(self.out, "{head}{section}{head:#}")?;
        self.code = Rc::clone(&section.code);
        self.rows = Rows::default();
        self.calls = CallDepth::default();
        Ok(())
    }

    fn record(&mut self, record: FlowRecord) -> io::Result<()> {
        // A gap or an event may change the depth, and is printed at the new one.
        let arrival = self.calls.element(&record.element);
        match &record.element {
            Element::Block(block) => self.block(block, arrival.unwrap_or(Arrival::Unknown)),
            Element::Event(event) => self.event(&event.kind),
            Element::Gap(gap) => self.gap(gap),
        }
    }

    fn end_section(&mut self) -> io::Result<()> {
        self.end_run()
    }
}
