//! Counts for people: the amounts kept and lost at each step from the trace to the counts.

use std::io::{self, Write};

use tracewalk_analysis::counts::{CountedSource, CountsReport, ReportedBinary};

use crate::layout::without_middle;
use crate::words::CUT;
use crate::{Look, counted};

/// Writes the counts of each binary, and the steps from each source's bytes to them.
pub fn write_counts_text(out: &mut dyn Write, report: &CountsReport<'_>, look: Look) -> io::Result<()> {
    let mut line = |indent: usize, text: &str| {
        let columns = look.width.map_or(usize::MAX, |width| width.saturating_sub(indent));
        writeln!(out, "{:indent$}{}", "", without_middle(text, columns))
    };
    for (index, ReportedBinary { id, name, found }) in report.binaries.iter().enumerate() {
        if index > 0 {
            line(0, "")?;
        }
        let name = if name.is_empty() { "no name" } else { name };
        line(0, &format!("{name} ({id})"))?;
        let taken = found.branches.keys().filter(|(.., way)| way.is_taken()).count() as u64;
        let (ranges, taken) = (counted(found.ranges.len() as u64, "range"), counted(taken, "taken branch"));
        line(2, &format!("{ranges} and {taken}"))?;
        for source in &found.sources {
            let CountedSource { capture, source: id, protocol, .. } = source;
            line(2, &format!("source {id}, {protocol}, of {capture}"))?;
            for (step, kept) in steps(source) {
                line(4, &format!("{step:<11}  {kept}"))?;
            }
        }
    }
    if report.complete { Ok(()) } else { line(0, CUT) }
}

/// The amounts of a source that were kept and lost at each step.
fn steps(source: &CountedSource) -> [(&'static str, String); 4] {
    let CountedSource { bytes, packets, malformed, .. } = source;
    let steps = [
        ("trace", counted(*bytes, "byte"), String::new()),
        ("packets", counted(*packets, "packet"), lost(*malformed, "malformed stretch", "")),
        (
            "flow",
            counted(source.followed, "instruction"),
            [
                lost(source.gaps, "gap", ""),
                lost(source.left_out, "instruction", " in doubt left out"),
                lost(source.uncommitted, "instruction", " of transactions without a commit left out"),
                lost(source.unrecorded, "branch", " with an unknown destination"),
            ]
            .concat(),
        ),
        (
            "this binary",
            counted(source.counted, "instruction"),
            lost(source.followed.saturating_sub(source.counted), "instruction", " in other binaries"),
        ),
    ];
    steps.map(|(step, kept, lost)| (step, kept + &lost))
}

/// The loss at a step; empty if there is none.
fn lost(count: u64, thing: &str, how: &str) -> String {
    if count == 0 { String::new() } else { format!("; {}{how}", counted(count, thing)) }
}
