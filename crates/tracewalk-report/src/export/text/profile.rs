//! `profile --format text`: tables of functions, lines, calls or binaries.

use std::io::{self, Write};

use crate::export::profile::{ProfileReport, ProfileTable, duration};
use crate::layout::Fitted;
use crate::words::{CUT, in_doubt, percent};
use crate::{Look, Palette};
use tracewalk_analysis::Section;
use tracewalk_analysis::clock::{Cost, Unit};
use tracewalk_analysis::profile::{Label, LabelId, LabelKind, Place, Profile, Tree};

/// How a table of a profile is printed.
#[derive(Clone, Copy, Debug)]
pub struct ProfileTextOptions {
    /// The colours and the width.
    pub look: Look,
    /// The rows.
    pub table: ProfileTable,
    /// The most rows that are printed.
    pub rows: Option<usize>,
}

/// Writes each source's table.
pub fn write_profile_text(
    out: &mut dyn Write,
    report: &ProfileReport,
    options: &ProfileTextOptions,
) -> io::Result<()> {
    let out = &mut Fitted::new(out, options.look.width);
    for (index, source) in report.sources.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        let tree = report.tree(source, options.table != ProfileTable::Functions);
        let mut table = Table { out, report, options, tree: &tree, whole: report.value(&tree.total()) };
        table.title(source)?;
        match options.table {
            ProfileTable::Functions => table.functions()?,
            ProfileTable::Lines => table.lines()?,
            ProfileTable::Calls => table.calls()?,
            ProfileTable::Binaries => table.binaries(source)?,
        }
        table.notes(&source.1)?;
    }
    if report.complete { Ok(()) } else { writeln!(out, "{CUT}") }
}

struct Table<'a> {
    out: &'a mut dyn Write,
    report: &'a ProfileReport,
    options: &'a ProfileTextOptions,
    tree: &'a Tree,
    whole: u64,
}

impl Table<'_> {
    fn title(&mut self, (section, _): &(Section, Profile)) -> io::Result<()> {
        let head = self.options.look.palette.head;
        let measure = self.report.measure();
        let program = self.report.of_program(section);
        if self.whole == 0 {
            let unit = self.report.unit.name();
            return writeln!(self.out, "{head}{section}{program}{head:#}: no {unit} were counted");
        }
        write!(self.out, "{head}{section}{program}{head:#}: {} {measure}", self.whole)?;
        if let Some(seconds) = self.report.seconds(self.whole) {
            write!(self.out, ", {}", duration(seconds))?;
        }
        writeln!(self.out)
    }

    fn functions(&mut self) -> io::Result<()> {
        let functions = self.tree.functions(|cost| self.report.value(cost));
        let head = if self.has_cycles() { "  c/instr" } else { "" };
        let quiet = self.options.look.palette.quiet;
        write!(self.out, "{quiet}{:>12} {:>6}", "self", "")?;
        if !self.is_sampled() {
            write!(self.out, " {:>12} {:>6} {:>9}{head}", "total", "", "calls")?;
        }
        writeln!(self.out, "  function{quiet:#}")?;
        let rows = self.shown(functions.len());
        for function in functions.iter().take(rows) {
            self.cost(&function.own)?;
            if !self.is_sampled() {
                write!(self.out, " ")?;
                self.cost(&function.total)?;
                write!(self.out, " {:>9}", function.calls)?;
            }
            if self.has_cycles() {
                write!(self.out, "  {:>7}", per_instruction(&function.own))?;
            }
            write!(self.out, "  ")?;
            self.name(function.function)?;
            writeln!(self.out)?;
        }
        self.rest(functions.len() - rows, "functions")
    }

    fn lines(&mut self) -> io::Result<()> {
        let mut lines = self.tree.lines(|cost| self.report.value(cost));
        lines.retain(|line| self.report.value(&line.own) > 0);
        let quiet = self.options.look.palette.quiet;
        writeln!(self.out, "{quiet}{:>12} {:>6}  line  function{quiet:#}", "self", "")?;
        let rows = self.shown(lines.len());
        for line in lines.iter().take(rows) {
            let value = self.report.value(&line.own);
            let place = line.place.as_ref().map_or_else(|| "?".to_owned(), Place::short);
            write!(self.out, "{value:>12} {:>6}  {place}  ", percent(value, self.whole))?;
            let function = self.options.look.palette.function;
            let label = &self.tree.labels[line.function.index()];
            writeln!(self.out, "{function}{}{function:#}", label.text())?;
        }
        self.rest(lines.len() - rows, "lines")
    }

    fn calls(&mut self) -> io::Result<()> {
        let edges = self.tree.edges(|cost| self.report.value(cost));
        let Palette { quiet, function, .. } = self.options.look.palette;
        writeln!(self.out, "{quiet}{:>12} {:>6} {:>9}  caller → callee{quiet:#}", "total", "", "calls")?;
        let rows = self.shown(edges.len());
        for edge in edges.iter().take(rows) {
            let (value, percent) = self.known(self.report.value(&edge.total));
            let [caller, callee] =
                [edge.caller, edge.callee].map(|label| self.tree.labels[label.index()].text());
            let site = edge.site.as_ref().map_or_else(String::new, |site| format!(" ({})", site.short()));
            writeln!(
                self.out,
                "{value:>12} {percent:>6} {:>9}  {function}{caller}{function:#}{quiet}{site}{quiet:#} → \
                 {function}{callee}{function:#}",
                edge.calls
            )?;
        }
        self.rest(edges.len() - rows, "calls")
    }

    fn binaries(&mut self, (section, profile): &(Section, Profile)) -> io::Result<()> {
        let binaries = profile.binaries(&section.code, |cost| self.report.value(cost));
        let Palette { quiet, function, .. } = self.options.look.palette;
        let has_tasks = binaries.iter().any(|binary| binary.task.is_some());
        let head = if has_tasks { "  task" } else { "" };
        writeln!(self.out, "{quiet}{:>12} {:>6}  binary{head}{quiet:#}", "self", "")?;
        let rows = self.shown(binaries.len());
        for found in binaries.iter().take(rows) {
            let (value, percent) = self.known(self.report.value(&found.own));
            let binary = found.binary.as_deref().unwrap_or("?");
            write!(self.out, "{value:>12} {percent:>6}  {function}{binary}{function:#}")?;
            match &found.task {
                Some(task) => writeln!(self.out, "  {task}")?,
                None => writeln!(self.out)?,
            }
        }
        self.rest(binaries.len() - rows, "binaries")
    }

    /// A cost, and its part of the whole; a dash if it was not measured, which is unknown and not 0.
    fn known(&self, value: u64) -> (String, String) {
        let value_text = if self.whole == 0 { "-".to_owned() } else { value.to_string() };
        (value_text, percent(value, self.whole))
    }

    fn cost(&mut self, cost: &Cost) -> io::Result<()> {
        let (value, percent) = self.known(self.report.value(cost));
        write!(self.out, "{value:>12} {percent:>6}")
    }

    fn name(&mut self, label: LabelId) -> io::Result<()> {
        let Palette { quiet, function, .. } = self.options.look.palette;
        let label: &Label = &self.tree.labels[label.index()];
        write!(self.out, "{function}{}{function:#}", label.text())?;
        match &label.place {
            Some(place) if label.kind == LabelKind::Function => {
                write!(self.out, "  {quiet}{}{quiet:#}", place.short())
            }
            _ => Ok(()),
        }
    }

    /// Prints notes on the execution that the numbers leave out.
    fn notes(&mut self, profile: &Profile) -> io::Result<()> {
        let quiet = self.options.look.palette.quiet;
        let mut notes = Vec::from_iter(in_doubt(profile.in_doubt));
        if self.is_sampled() && self.whole > 0 {
            notes.push("a sample, not a measurement: samples show no calls, and can miss code that runs in step with them".to_owned());
        }
        let others = [
            (&profile.unfollowed, "not counted above: ", "of code that could not be followed"),
            (&profile.untraced, "not counted above: ", "while nothing was traced"),
            (
                &profile.unresolved(),
                "",
                "in an unresolved task, whose callers are unknown and lack them in their totals",
            ),
        ];
        for (cost, before, what) in others {
            let value = self.report.value(cost);
            if value > 0 {
                notes.push(format!("{before}{} {what}", self.report.unit.counted(value)));
            }
        }
        let tasks = self.tree.tasks();
        if tasks > 1 && !profile.switches.is_empty() {
            let evidence =
                profile.switches.iter().map(|(evidence, times)| format!("{} ({times}×)", evidence.text()));
            notes.push(format!(
                "{tasks} tasks were distinguished: {}",
                evidence.collect::<Vec<_>>().join(", ")
            ));
        }
        if profile.folded_calls > 0 {
            notes.push(format!(
                "there were more chains of calls than tracewalk distinguishes; {} calls are counted for their callers",
                profile.folded_calls
            ));
        }
        for note in notes {
            writeln!(self.out, "{quiet}· {note}{quiet:#}")?;
        }
        Ok(())
    }

    fn shown(&self, rows: usize) -> usize {
        self.options.rows.map_or(rows, |most| rows.min(most))
    }

    fn rest(&mut self, left_out: usize, what: &str) -> io::Result<()> {
        let quiet = self.options.look.palette.quiet;
        match left_out {
            0 => Ok(()),
            count => writeln!(self.out, "{quiet}… and {count} more {what}{quiet:#}"),
        }
    }

    fn is_sampled(&self) -> bool {
        self.report.unit == Unit::Samples
    }

    fn has_cycles(&self) -> bool {
        self.report.unit == Unit::Cycles
    }
}

/// Cycles for each instruction, rounded to two digits.
fn per_instruction(cost: &Cost) -> String {
    match cost.instructions {
        0 => "-".to_owned(),
        instructions => {
            let instructions = u128::from(instructions);
            let hundredths = (u128::from(cost.cycles) * 100 + instructions / 2) / instructions;
            format!("{}.{:02}", hundredths / 100, hundredths % 100)
        }
    }
}
