//! Coverage as a table for people: a row for each file, and the losses.

use std::io::{self, Write};

use anstyle::Style;

use crate::layout::Fitted;
use crate::words::{
    counted, in_doubt, natural_order, not_followed, outside_images, percent_covered, uncommitted, why_stale,
};
use crate::{Look, Palette};
use tracewalk_analysis::coverage::{
    Difference, FileDifference, Losses, Metric, Report, ReportedProgram, RunSummary, Stale, Tally, Totals,
};

/// Writes the table. Only a terminal gets bars.
pub fn write_coverage_text(
    report: &Report,
    difference: Option<&Difference>,
    look: Look,
    out: &mut dyn Write,
) -> io::Result<()> {
    let out = &mut Fitted::new(out, look.width);
    let table = Table::new(report, look);
    for program in &report.programs {
        head(program, &look.palette, out)?;
    }
    table.write(report, out)?;
    let notes = notes(report);
    if !notes.is_empty() {
        writeln!(out)?;
    }
    let quiet = look.palette.quiet;
    for Note { about, text } in notes {
        writeln!(out, "{quiet}{about}:{quiet:#} {text}")?;
    }
    write_runs(report, &look.palette, out)?;
    if let Some(difference) = difference {
        write_difference(difference, &look.palette, out)?;
    }
    Ok(())
}

/// The lines of each run.
fn write_runs(report: &Report, palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
    if report.runs.is_empty() {
        return Ok(());
    }
    let mut runs = report.runs.iter().collect::<Vec<_>>();
    runs.sort_by(|one, other| natural_order(&one.name, &other.name));
    let (head, quiet) = (palette.head, palette.quiet);
    writeln!(out, "\n{quiet}{:>8}  {:>8}  {quiet:#}{head}run{head:#}", "lines", "alone")?;
    for RunSummary { name, lines, alone } in runs {
        writeln!(out, "{lines:>8}  {alone:>8}  {name}")?;
    }
    let spare = report.runs.iter().filter(|run| run.alone == 0).count();
    if spare > 0 {
        let each = if spare == 1 { "it covers" } else { "each of them covers" };
        writeln!(
            out,
            "{quiet}{} no line: other runs cover all that {each}{quiet:#}",
            counted_with(spare as u64, "run", "adds", "add")
        )?;
    }
    Ok(())
}

/// `1 run has`, `3 runs have`
fn counted_with(count: u64, noun: &str, one: &str, several: &str) -> String {
    format!("{} {}", counted(count, noun), if count == 1 { one } else { several })
}

/// The most sources that are listed, of thousands of runs.
const MOST_SOURCES: usize = 8;

fn head(program: &ReportedProgram, palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
    let images = program.images.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let quiet = palette.quiet;
    writeln!(out, "{head}{images}{head:#} {quiet}({id}){quiet:#}", head = palette.head, id = program.id)?;
    for source in program.sources.iter().take(MOST_SOURCES) {
        let id = if source.source == "-" { String::new() } else { format!(", {}", source.source) };
        writeln!(
            out,
            "  {}{id}, {}: {} instructions in {} bytes",
            source.capture, source.protocol, source.instructions, source.bytes
        )?;
    }
    if let Some(more @ 1..) = program.sources.len().checked_sub(MOST_SOURCES) {
        writeln!(out, "  {quiet}… and {more} more{quiet:#}")?;
    }
    writeln!(out)
}

/// The columns.
struct Table {
    look: Look,
    /// The width of the column of names.
    name: usize,
    /// The width of a bar; 0 for none.
    bar: usize,
    /// The width of each metric's counts.
    counts: [usize; COLUMNS.len()],
}

const COLUMNS: [Metric; 3] = [Metric::Lines, Metric::Branches, Metric::Functions];
const TOTAL: &str = "total";
const LONGEST_BAR: usize = 20;
const SHORTEST_NAME: usize = 12;
/// `100.0%` and the spaces around it.
const PERCENT: usize = 8;

impl Table {
    fn new(report: &Report, look: Look) -> Self {
        let names = report.files.iter().map(|file| file.name.chars().count());
        let longest = names.chain([TOTAL.len()]).max().unwrap_or(0);
        let width = |tally: Tally| counts(tally).len();
        let counts = COLUMNS.map(|metric| {
            let files = report.files.iter().map(|file| width(file.totals.of(metric)));
            // The head of the column needs room as well, with two spaces before it.
            let head = (metric.name().len() + 2).saturating_sub(PERCENT);
            files.chain([width(report.totals.of(metric)), head]).max().unwrap_or(0)
        });
        let needed: usize = counts.iter().map(|counts| counts + PERCENT).sum();
        let (name, bar) = match look.width {
            None => (longest, 0),
            Some(width) => {
                let name = longest.min(width.saturating_sub(needed)).max(SHORTEST_NAME);
                (name, width.saturating_sub(needed + name + 2).min(LONGEST_BAR))
            }
        };
        // A bar of a few steps adds nothing to the number.
        Self { look, name, bar: if bar < 5 { 0 } else { bar }, counts }
    }

    fn write(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        let quiet = self.look.palette.quiet;
        let mut line = format!("{:name$}", "", name = self.name);
        for (metric, counts) in COLUMNS.into_iter().zip(self.counts) {
            let bar = if metric == Metric::Lines && self.bar > 0 { self.bar + 2 } else { 0 };
            line += &format!("{:>width$}", metric.name(), width = bar + counts + PERCENT);
        }
        writeln!(out, "{quiet}{line}{quiet:#}")?;
        for file in &report.files {
            self.row(&file.name, &file.totals, Style::new(), out)?;
        }
        self.row(TOTAL, &report.totals, self.look.palette.name, out)
    }

    fn row(&self, name: &str, totals: &Totals, style: Style, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "{style}{:name$}{style:#}", shortened(name, self.name), name = self.name)?;
        for (metric, width) in COLUMNS.into_iter().zip(self.counts) {
            let tally = totals.of(metric);
            let colour = self.colour(tally);
            if metric == Metric::Lines && self.bar > 0 {
                write!(out, "  {colour}{}{colour:#}", bar(tally, self.bar))?;
            }
            write!(
                out,
                "  {colour}{:>6}{colour:#}{:>width$}",
                percent_covered(tally).unwrap_or_else(|| "-".to_owned()),
                counts(tally)
            )?;
        }
        writeln!(out)
    }

    fn colour(&self, tally: Tally) -> Style {
        match tally.permille() {
            None => self.look.palette.quiet,
            Some(900..) => self.look.palette.function,
            Some(500..) => self.look.palette.skipped,
            Some(_) => self.look.palette.problem,
        }
    }
}

/// The end of a name that is too long: names of files matter more than those of folders.
fn shortened(name: &str, width: usize) -> String {
    let length = name.chars().count();
    if length <= width {
        return name.to_owned();
    }
    let end = name.chars().skip(length + 1 - width);
    std::iter::once('…').chain(end).collect()
}

fn counts(tally: Tally) -> String {
    if tally.found == 0 { String::new() } else { format!(" {}/{}", tally.covered, tally.found) }
}

/// A bar in eighths of a character.
fn bar(tally: Tally, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let rate = tally.covered.saturating_mul(width as u64 * 8).checked_div(tally.found);
    let eighths = usize::try_from(rate.unwrap_or(0)).unwrap_or(0);
    let (full, rest) = (eighths / 8, eighths % 8);
    let last = EIGHTHS.get(rest).copied().unwrap_or("");
    let empty = width - full - usize::from(rest > 0);
    format!("{}{last}{}", "█".repeat(full), "·".repeat(empty))
}

/// A note on what the numbers do not show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Note {
    /// The subject, in a word or two.
    pub(super) about: &'static str,
    pub(super) text: String,
}

impl Note {
    const fn new(about: &'static str, text: String) -> Self {
        Self { about, text }
    }
}

/// Notes on what the numbers do not show, in this order: code that is not observable, lost trace, code without an image, untraced
/// execution, and then unreached code.
pub(super) fn notes(report: &Report) -> Vec<Note> {
    let mut notes = Vec::new();
    if !report.complete {
        notes.push(Note::new(
            "not decoded",
            "the end of a capture: memory ran out, or it was interrupted".to_owned(),
        ));
    }
    for reason in [Stale::Checksum, Stale::Shorter, Stale::Newer] {
        let files = report.stale().filter(|(_, why)| *why == reason).map(|(file, _)| file.name.as_str());
        let files = files.collect::<Vec<_>>().join(", ");
        if !files.is_empty() {
            let name = if reason == Stale::Newer { "possibly another source" } else { "another source" };
            notes.push(Note::new(name, format!("{files}: {}; line numbers may differ", why_stale(reason))));
        }
    }
    notes.extend(not_observable(&report.totals));
    for program in &report.programs {
        let of_program = [
            in_doubt(program.losses.in_doubt).map(|text| Note::new("in doubt", text)),
            uncommitted(program.losses.uncommitted).map(|text| Note::new("undone", text)),
            lost(&program.losses),
            without_image(&program.losses),
            not_traced(program),
        ];
        // The binaries of one recording share its trace.
        let new = of_program.into_iter().flatten().filter(|note| !notes.contains(note)).collect::<Vec<_>>();
        notes.extend(new);
    }
    let elsewhere = elsewhere(report);
    if elsewhere.found > 0 {
        let instructions = counted(elsewhere.found, "instruction");
        notes.push(Note::new(
            "in no source line",
            format!("{instructions}, of which {} ran", elsewhere.covered),
        ));
    }
    notes.extend(not_reached(report));
    notes
}

fn not_observable(totals: &Totals) -> Option<Note> {
    let Totals { lines, branches, instructions, .. } = totals;
    if instructions.unrecorded == 0 && branches.unrecorded == 0 {
        return None;
    }
    let parts = [
        (branches.unrecorded, "outcome", " of conditions"),
        (instructions.unrecorded, "instruction", ""),
        (lines.unrecorded, "line", ""),
    ];
    let parts = parts.into_iter().filter(|(count, ..)| *count > 0);
    let parts = parts.map(|(count, thing, rest)| counted(count, thing) + rest).collect::<Vec<_>>().join(", ");
    let text = format!(
        "{parts}: the trace records only for branches whether a condition passed; none of these counts as covered or as \
         not covered"
    );
    Some(Note::new("not observable", text))
}

/// Stretches of trace that could not be followed: code may have run there without being seen.
fn lost(losses: &Losses) -> Option<Note> {
    let parts = not_followed(losses);
    let code = "code that is reported as not run may have run there";
    (!parts.is_empty()).then(|| Note::new("not followed", format!("{}; {code}", parts.join(", "))))
}

/// Addresses that execution reached and for which there is no code.
fn without_image(losses: &Losses) -> Option<Note> {
    let regions = outside_images(losses);
    let text = format!("execution went to {regions}; code that ran there is not counted");
    (!losses.no_image.is_empty()).then(|| Note::new("in no image", text))
}

/// Code that ran while tracing was off. The trace of each run begins once; every further beginning follows an interruption.
fn not_traced(program: &ReportedProgram) -> Option<Note> {
    let begins = program.sources.iter().map(|source| source.losses.begins).filter(|begins| *begins > 0);
    let (traces, again) =
        begins.fold((0, 0_u64), |(traces, again), begins| (traces + 1, again.saturating_add(begins - 1)));
    let before = match traces {
        0 => return None,
        1 => "code that ran before the trace begins".to_owned(),
        traces => format!("code that ran before each of the {traces} traces begins"),
    };
    let between = match again {
        0 => String::new(),
        again => format!(", and in between: tracing began again {}", counted(again, "time")),
    };
    Some(Note::new("not traced", before + &between))
}

fn not_reached(report: &Report) -> Option<Note> {
    let never = report.instructions.iter().filter(|counted| counted.instruction.passes.total() == 0).count();
    if never == 0 {
        return None;
    }
    let instructions = counted(never as u64, "instruction");
    let idle = idle_functions(report);
    const MOST: usize = 12;
    let names = idle.iter().take(MOST).copied().collect::<Vec<_>>().join(", ");
    let text = match idle.len() {
        0 => instructions,
        count @ 1..=MOST => {
            format!("{instructions}, including all of {}: {names}", counted(count as u64, "function"))
        }
        count => {
            format!("{instructions}, including all of {count} functions: {names} and {} more", count - MOST)
        }
    };
    Some(Note::new("not reached", text))
}

/// The instructions without a line.
fn elsewhere(report: &Report) -> Tally {
    let mut rest = report.totals.instructions;
    for file in &report.files {
        rest.found = rest.found.saturating_sub(file.totals.instructions.found);
        rest.covered = rest.covered.saturating_sub(file.totals.instructions.covered);
    }
    rest
}

fn idle_functions(report: &Report) -> Vec<&str> {
    let idle = report.functions.iter().filter(|function| function.totals.functions.covered == 0);
    idle.filter_map(|function| function.name.as_deref()).collect()
}

fn write_difference(difference: &Difference, palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
    let Palette { problem, function: good, name: bold, .. } = palette;
    writeln!(out)?;
    let functions_kept = difference.files.values().all(|file| file.lost_functions.is_empty());
    if difference.lost_lines() + difference.lost_branches() == 0 && functions_kept {
        writeln!(out, "{good}no coverage of the base was lost{good:#}")?;
    }
    for (name, change) in &difference.files {
        let FileDifference {
            lost, lost_branches, gained, new_uncovered, new_covered, lost_functions, ..
        } = change;
        writeln!(out, "{bold}{name}{bold:#}")?;
        if let Some(old) = &change.renamed_from {
            writeln!(out, "  was        {old}")?;
        }
        if !lost.is_empty() {
            writeln!(out, "  {problem}lost{problem:#}       {}", ranges(lost))?;
        }
        if !lost_branches.is_empty() {
            writeln!(
                out,
                "  {problem}lost{problem:#}       outcomes of conditions at {}",
                ranges(lost_branches)
            )?;
        }
        if !lost_functions.is_empty() {
            writeln!(out, "  {problem}lost{problem:#}       {}", lost_functions.join(", "))?;
        }
        if !gained.is_empty() {
            writeln!(out, "  {good}gained{good:#}     {}", ranges(gained))?;
        }
        let what = if difference.changed.is_some() { "changed" } else { "new" };
        write_new(what, *new_covered, new_uncovered, out)?;
        write_new("new code", change.new_code_covered, &change.new_code_uncovered, out)?;
        if !change.unjudged.is_empty() {
            writeln!(
                out,
                "  unjudged   {}: ran in the base, but has no code or is not observable now",
                ranges(&change.unjudged)
            )?;
        }
        if change.deleted > 0 {
            writeln!(out, "  deleted    {} with code changed or deleted", counted(change.deleted, "line"))?;
        }
    }
    for name in &difference.gone {
        writeln!(out, "{bold}{name}{bold:#}\n  not in this report")?;
    }
    if let Some(changed) = difference.changed {
        let lines = counted(changed.found, "line");
        writeln!(out, "changed lines with code: {} of {lines} covered", changed.covered)?;
    }
    Ok(())
}

/// Writes how many of some lines are covered, and lists the others.
fn write_new(what: &str, covered: u64, uncovered: &[u32], out: &mut dyn Write) -> io::Result<()> {
    let all = covered.saturating_add(uncovered.len() as u64);
    if all == 0 {
        return Ok(());
    }
    write!(out, "  {what:10} {covered} of {} covered", counted(all, "line"))?;
    match uncovered {
        [] => writeln!(out),
        lines => writeln!(out, ", not {}", ranges(lines)),
    }
}

/// Lines as in `3, 5-8`.
fn ranges(lines: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &line in lines {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == line => *last = line,
            _ => ranges.push((line, line)),
        }
    }
    let text =
        |(first, last): (u32, u32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    ranges.into_iter().map(text).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_grow_by_eighths() {
        let bar = |covered| bar(Tally { found: 80, covered, unrecorded: 0 }, 10);
        assert_eq!(bar(0), "··········");
        assert_eq!(bar(1), "▏·········");
        assert_eq!(bar(79), "█████████▉");
        assert_eq!(bar(80), "██████████");
        assert_eq!(super::bar(Tally::default(), 3), "···");
    }

    #[test]
    fn long_names_keep_their_ends() {
        assert_eq!(shortened("src/drivers/uart.c", 10), "…rs/uart.c");
        assert_eq!(shortened("uart.c", 10), "uart.c");
    }

    #[test]
    fn lines_are_joined_to_ranges() {
        assert_eq!(ranges(&[1, 2, 3, 7, 9, 10]), "1-3, 7, 9-10");
    }
}
