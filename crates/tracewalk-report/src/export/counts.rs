//! Counts for people: what was kept at each step from the trace to the counts, and what was not.

use std::io::{self, Write};

use tracewalk_analysis::counts::{CountedSource, CountsReport, ReportedBinary};

use crate::counted;

/// Writes for each binary what was counted of it, and of each source what became of its bytes.
pub fn write_counts_text(out: &mut dyn Write, report: &CountsReport<'_>) -> io::Result<()> {
    for (index, ReportedBinary { id, name, found }) in report.binaries.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        let name = if name.is_empty() { "no name" } else { name };
        writeln!(out, "{name} ({id})")?;
        let taken = found.branches.keys().filter(|(.., way)| way.is_taken()).count() as u64;
        writeln!(
            out,
            "  {} and {} that were taken",
            counted(found.ranges.len() as u64, "range"),
            counted(taken, "branch"),
        )?;
        for source in &found.sources {
            write_source(out, source)?;
        }
    }
    Ok(())
}

fn write_source(out: &mut dyn Write, source: &CountedSource) -> io::Result<()> {
    let CountedSource { capture, source: id, protocol, bytes, packets, malformed, .. } = source;
    writeln!(out, "  source {id}, {protocol}, of {capture}")?;
    let steps = [
        ("trace", counted(*bytes, "byte"), String::new()),
        ("packets", counted(*packets, "packet"), lost(*malformed, "malformed stretch", "")),
        (
            "flow",
            counted(source.followed, "instruction"),
            [
                lost(source.gaps, "gap", ""),
                lost(source.left_out, "instruction", " in doubt left out"),
                lost(source.untold, "branch", " to where the trace does not tell"),
            ]
            .concat(),
        ),
        (
            "this binary",
            counted(source.counted, "instruction"),
            lost(source.followed.saturating_sub(source.counted), "instruction", " in other binaries"),
        ),
    ];
    steps.into_iter().try_for_each(|(step, kept, lost)| writeln!(out, "    {step:<11}  {kept}{lost}"))
}

/// What was lost at a step, if something was.
fn lost(count: u64, thing: &str, how: &str) -> String {
    if count == 0 { String::new() } else { format!("; {}{how}", counted(count, thing)) }
}
