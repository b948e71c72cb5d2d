//! For people: the point at which the paths part, the functions that differ, the lines that run in only one.

use std::io::{self, Write};
use std::sync::Arc;

use super::{DiffReport, SourceDiff};
use crate::export::text::address_and_name;
use crate::layout::Fitted;
use crate::words::{CUT, counted};
use crate::{Look, Palette};
use tracewalk_analysis::clock::Unit;
use tracewalk_analysis::coverage::FileDifference;
use tracewalk_analysis::diff::{Aftermath, Called, Next};
use tracewalk_analysis::{Code, CodePlace};

/// Writes the differences, and one line for each source without any.
pub fn write_diff_text(out: &mut dyn Write, report: &DiffReport, look: Look) -> io::Result<()> {
    let out = &mut Fitted::new(out, look.width);
    let palette = &look.palette;
    let [a, b] = &report.names;
    let head = palette.head;
    for source in &report.sources {
        let id = match source.ids {
            [None, None] => String::new(),
            [Some(a), Some(b)] if a == b => format!(", trace ID {a}"),
            ids => {
                let [a, b] = ids.map(|id| id.map_or_else(|| "none".to_owned(), |id| id.to_string()));
                format!(", trace ID {a} in A, {b} in B")
            }
        };
        writeln!(out, "{head}A {a}, B {b}{id}{head:#}")?;
        let [in_a, in_b] = source.instructions;
        if source.is_same() {
            writeln!(out, "nothing differs in {}", counted(in_a, "instruction"))?;
            continue;
        }
        writeln!(out, "{in_a} instructions in A, {in_b} in B")?;
        parting(out, source, palette)?;
        functions(out, source, palette)?;
        coverage(out, source, palette)?;
        writeln!(out)?;
    }
    if report.complete { Ok(()) } else { writeln!(out, "{CUT}") }
}

fn parting(out: &mut dyn Write, source: &SourceDiff, palette: &Palette) -> io::Result<()> {
    let Some([a, b]) = &source.parting else {
        return writeln!(out, "\nboth took the same path");
    };
    let [code, _] = &source.code;
    let problem = palette.problem;
    let goes_on = match [a.ends(), b.ends()] {
        [true, false] => Some(("A", "B")),
        [false, true] => Some(("B", "A")),
        _ => None,
    };
    match a.last {
        Some(last) if goes_on.is_some() => {
            let (place, common) = (place(code, last), a.common);
            let (ends, other) = goes_on.unwrap_or_default();
            writeln!(
                out,
                "\n{problem}{ends} ends after {common} instructions, at {place}; up to there {other} is the same{problem:#}"
            )?;
        }
        Some(last) => {
            let place = place(code, last);
            writeln!(
                out,
                "\n{problem}the paths part after {} instructions, at {place}{problem:#}",
                a.common
            )?;
        }
        None => writeln!(out, "\n{problem}the paths differ from the beginning{problem:#}")?,
    }
    if a.stack == b.stack {
        stack(out, "in both", &a.stack, code, palette)?;
    }
    for (name, side, code) in [("A", a, &source.code[0]), ("B", b, &source.code[1])] {
        if a.stack != b.stack {
            stack(out, &format!("in {name}"), &side.stack, code, palette)?;
        }
        then(out, name, side, code)?;
    }
    Ok(())
}

fn stack(
    out: &mut dyn Write,
    whose: &str,
    stack: &[Called],
    code: &Code,
    palette: &Palette,
) -> io::Result<()> {
    if stack.is_empty() {
        return Ok(());
    }
    writeln!(out, "  the stack {whose}, innermost first:")?;
    for called in stack.iter().rev() {
        let style = palette.function;
        let name = called.function.name(code);
        let from = match (called.handles, called.site) {
            (Some(exception), _) => format!("  handles {}", exception_name(code, exception)),
            (None, Some(site)) => format!("  called at {}", place(code, site)),
            (None, None) => String::new(),
        };
        writeln!(out, "    {style}{name}{style:#}{from}")?;
    }
    Ok(())
}

fn then(out: &mut dyn Write, name: &str, side: &Aftermath, code: &Code) -> io::Result<()> {
    writeln!(out, "  then {name}")?;
    for next in &side.next {
        writeln!(out, "    {}", next_text(code, next))?;
    }
    Ok(())
}

/// The next event on a path, in words.
pub(super) fn next_text(code: &Code, next: &Next) -> String {
    match next {
        Next::Ran { start, instructions: 1 } => format!("runs 1 instruction at {}", place(code, *start)),
        Next::Ran { start, instructions } => {
            format!("runs {instructions} instructions from {}", place(code, *start))
        }
        Next::Exception(exception) => format!("takes {}", exception_name(code, *exception)),
        Next::Lost => "is not known".to_owned(),
        Next::Missing(at) => format!("reaches {at}, which no image holds"),
        Next::End => "ends".to_owned(),
    }
}

pub(super) fn exception_name(code: &Code, exception: Option<tracewalk::ids::Exception>) -> String {
    exception.map_or_else(
        || "an exception".to_owned(),
        |exception| code.interrupts.describe(exception).to_string(),
    )
}

/// `0x08000316 <main+0x16> main.c:12`
fn place(code: &Code, place: CodePlace) -> String {
    let mut text = address_and_name(&*code.in_scope(place.scope).symbols, place.address);
    if let Some((file, line)) = line(code, place) {
        let name = file.rsplit(['/', '\\']).next().unwrap_or(&file);
        text.push_str(&format!(" {name}:{line}"));
    }
    text
}

/// The source line of an instruction.
pub(super) fn line(code: &Code, place: CodePlace) -> Option<(Arc<str>, u32)> {
    let frame = code.in_scope(place.scope).symbols.innermost(place.address)?;
    Some((frame.file?, frame.line?))
}

fn functions(out: &mut dyn Write, source: &SourceDiff, palette: &Palette) -> io::Result<()> {
    if source.functions.is_empty() {
        return writeln!(out, "\nall functions ran equally often and equally long");
    }
    let units = [Unit::Cycles, Unit::Time];
    let used = units.into_iter().filter(|unit| {
        source.functions.iter().any(|function| function.own.iter().any(|cost| cost.in_unit(*unit) > 0))
    });
    let columns = std::iter::once(Unit::Instructions).chain(used).collect::<Vec<_>>();
    let name = palette.name;
    write!(out, "\n{name}{:>10} {:>10} {:>8}", "calls A", "B", "")?;
    for unit in &columns {
        let unit = unit.name();
        write!(out, "  {:>14} {:>12} {:>10}", format!("{unit} A"), "B", "")?;
    }
    writeln!(out, "  function{name:#}")?;
    for function in &source.functions {
        let [a, b] = function.calls;
        write!(out, "{a:>10} {b:>10} {:>8}", change(a, b))?;
        for unit in &columns {
            let [a, b] = function.own.map(|cost| cost.in_unit(*unit));
            write!(out, "  {a:>14} {b:>12} {:>10}", change(a, b))?;
        }
        let style = palette.function;
        writeln!(out, "  {style}{}{style:#}", function.name)?;
    }
    if columns.contains(&Unit::Time) {
        let quiet = palette.quiet;
        writeln!(out, "{quiet}ticks are interpolated between timestamps{quiet:#}")?;
    }
    Ok(())
}

/// `+3`; empty without a change.
fn change(a: u64, b: u64) -> String {
    match a.cmp(&b) {
        std::cmp::Ordering::Less => format!("+{}", b - a),
        std::cmp::Ordering::Equal => String::new(),
        std::cmp::Ordering::Greater => format!("-{}", a - b),
    }
}

fn coverage(out: &mut dyn Write, source: &SourceDiff, palette: &Palette) -> io::Result<()> {
    let Some((difference, gained)) = &source.coverage else { return Ok(()) };
    let names = difference.files.keys().chain(gained.keys());
    let names = names.collect::<std::collections::BTreeSet<_>>();
    if names.is_empty() {
        return writeln!(out, "\nboth cover the same lines");
    }
    let head = palette.name;
    writeln!(out, "\n{head}coverage{head:#}")?;
    let nothing = FileDifference::default();
    for name in names {
        let file = difference.files.get(name).unwrap_or(&nothing);
        let gained = gained.get(name).map(Vec::as_slice).unwrap_or_default();
        for (what, lines, functions) in
            [("only in A", &file.lost, file.lost_functions.as_slice()), ("only in B", &file.gained, gained)]
        {
            if !lines.is_empty() {
                writeln!(out, "  {name}: {what}: lines {}", ranges(lines))?;
            }
            if !functions.is_empty() {
                writeln!(out, "  {name}: {what}: functions {}", functions.join(", "))?;
            }
        }
    }
    Ok(())
}

/// `3-5, 9`
fn ranges(lines: &[u32]) -> String {
    let mut ranges = Vec::<(u32, u32)>::new();
    for &line in lines {
        match ranges.last_mut().filter(|(_, last)| last.saturating_add(1) == line) {
            Some((_, last)) => *last = line,
            None => ranges.push((line, line)),
        }
    }
    let text = |(first, last): &(u32, u32)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    ranges.iter().map(text).collect::<Vec<_>>().join(", ")
}
