//! A table for people: three lines for each exception and function.

use std::io::{self, Write};

use super::{InterruptReport, Row, is_of_itm, rows};
use crate::layout::Fitted;
use crate::words::{CUT, in_doubt};
use crate::{Look, Palette};
use tracewalk_analysis::interrupts::{Activities, Lengths};
use tracewalk_analysis::timeline::Scale;

/// Writes the tables.
pub fn write_interrupts_text(out: &mut dyn Write, report: &InterruptReport, look: Look) -> io::Result<()> {
    let out = &mut Fitted::new(out, look.width);
    let palette = &look.palette;
    for (index, (section, activities)) in report.sources.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        let head = palette.head;
        writeln!(out, "{head}{section}{}, {}{head:#}", report.of_program(section), report.title())?;
        let is_in_itm = report.sources.iter().any(|(section, _)| is_of_itm(section));
        // Tracing may have been off, which an ITM's reports do not show.
        if activities.exceptions.is_empty() && is_of_itm(section) {
            writeln!(out, "the ITM reports no exceptions")?;
        } else if activities.exceptions.is_empty() && is_in_itm {
            writeln!(out, "no exceptions were traced; reports of an ITM are listed separately")?;
        } else if activities.exceptions.is_empty() {
            writeln!(out, "no exceptions were taken")?;
        }
        write_rows(
            out,
            rows(&section.code, activities).filter(|row| row.function.is_none()),
            "exception",
            (report, look),
        )?;
        write_rows(
            out,
            rows(&section.code, activities).filter(|row| row.function.is_some()),
            "function",
            (report, look),
        )?;
        write_notes(out, activities, palette)?;
        let is_unknown = activities.exceptions.values().all(|activity| activity.with_preemption.count() == 0);
        if is_of_itm(section) && is_unknown && !activities.exceptions.is_empty() {
            let quiet = palette.quiet;
            writeln!(
                out,
                "\n{quiet}counted by the entries that the ITM reports; their durations are unknown{quiet:#}"
            )?;
        }
    }
    if report.complete { Ok(()) } else { writeln!(out, "{CUT}") }
}

fn write_rows<'a>(
    out: &mut dyn Write,
    rows: impl Iterator<Item = Row<'a>>,
    kind: &str,
    (report, look): (&InterruptReport, Look),
) -> io::Result<()> {
    let Palette { name, .. } = look.palette;
    let rows = rows.collect::<Vec<_>>();
    let labels = rows.iter().map(|row| label(row).chars().count());
    let longest = labels.chain([kind.len()]).max().unwrap_or(0);
    // Names and measures share a line if there is room.
    let is_narrow = look.width.is_some_and(|columns| longest + BESIDE_NAMES > columns);
    let width = if look.width.is_some() { longest } else { longest.min(WIDEST_NAME) };
    if !rows.is_empty() {
        let head =
            if is_narrow { format!("{kind}, count") } else { format!("{kind:<width$}  {:>9}", "count") };
        let head = if is_narrow { format!("{head:<MEASURE_COLUMN$}") } else { format!("{head}  {:<18}", "") };
        writeln!(out, "\n{name}{head}  {:>12}  {:>12}  {:>12}  {:>12}{name:#}", "min", "mean", "p99", "max")?;
    }
    for row in &rows {
        let style = if row.function.is_some() { look.palette.function } else { look.palette.exception };
        let (label, count) = (label(row), row.activity.count);
        let mut beside = format!("{style}{label:<width$}{style:#}  {count:>9}  ");
        let mut below = format!("{:width$}  {:>9}  ", "", "");
        if is_narrow {
            writeln!(out, "{style}{label}{style:#}, {count}")?;
            beside = "  ".to_owned();
            below.clone_from(&beside);
        }
        for (measure, lengths) in [
            ("with preemption", &row.activity.with_preemption),
            ("without preemption", &row.activity.without_preemption),
            ("from entry to entry", &row.activity.inter_arrival),
        ] {
            let [min, mean, p99, max] = columns(lengths, &report.scale);
            writeln!(out, "{beside}{measure:<19} {min:>12}  {mean:>12}  {p99:>12}  {max:>12}")?;
            beside.clone_from(&below);
        }
    }
    Ok(())
}

/// `SysTick 15`, or a function's name.
fn label(row: &Row<'_>) -> String {
    match row.exception {
        Some(exception) => format!("{} {}", row.name, exception.number()),
        None => row.name.clone(),
    }
}

fn columns(lengths: &Lengths, scale: &Scale) -> [String; 4] {
    let whole = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |value| length(value, scale));
    let mean = match (lengths.mean(), scale.frequency) {
        (None, _) => "-".to_owned(),
        (Some(mean), None) => format!("{mean:.1}"),
        (Some(mean), Some(frequency)) => seconds(mean / frequency),
    };
    [whole(lengths.min()), mean, whole(lengths.percentile(99)), whole(lengths.max())]
}

fn length(ticks: u64, scale: &Scale) -> String {
    match scale.frequency {
        None => ticks.to_string(),
        // Lengths are far below 2^52 ticks.
        Some(frequency) => seconds(ticks as f64 / frequency),
    }
}

fn seconds(seconds: f64) -> String {
    let units = [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs")];
    let (factor, unit) = units.into_iter().find(|(factor, _)| seconds >= *factor).unwrap_or((1e-9, "ns"));
    format!("{:.3} {unit}", seconds / factor)
}

fn write_notes(out: &mut dyn Write, activities: &Activities, palette: &Palette) -> io::Result<()> {
    let exceptions = || activities.exceptions.values();
    let sum = |of: fn(&tracewalk_analysis::interrupts::Activity) -> u64| {
        exceptions().map(of).fold(0, u64::saturating_add)
    };
    let quiet = palette.quiet;
    let notes = [
        (sum(|activity| activity.tail_chained), "tail-chained to the previous one"),
        (sum(|activity| activity.preempting), "taken in the handler of another one"),
        (
            sum(|activity| activity.cut),
            "excluded from durations: the trace has a gap, lacks the entry, the exit or their times, or there is no program \
             to count instructions by",
        ),
        (
            activities.functions.values().map(|activity| activity.cut).fold(0, u64::saturating_add),
            "calls of functions excluded from durations: the trace has a gap, lacks the call or the return, or there is no \
             program to count instructions by",
        ),
    ];
    if let Some(in_doubt) = in_doubt(activities.in_doubt) {
        writeln!(out, "\n{quiet}{in_doubt}{quiet:#}")?;
    }
    for (index, (count, what)) in notes.into_iter().filter(|(count, _)| *count > 0).enumerate() {
        if index == 0 {
            writeln!(out)?;
        }
        writeln!(out, "{quiet}{count} {what}{quiet:#}")?;
    }
    let all = activities.exceptions.values().chain(activities.functions.values());
    if all
        .into_iter()
        .any(|activity| activity.with_preemption.is_rounded() || activity.inter_arrival.is_rounded())
    {
        writeln!(
            out,
            "{quiet}p99 is rounded down to ten bits if there are very many different values{quiet:#}"
        )?;
    }
    Ok(())
}

/// Longer names push the columns to the right, if no terminal limits the width.
const WIDEST_NAME: usize = 32;

/// The number of columns to the right of the names.
const BESIDE_NAMES: usize = 87;

/// The number of columns to the left of the numbers if names have lines of their own.
const MEASURE_COLUMN: usize = 20;
