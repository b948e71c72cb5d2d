//! The outcomes of many captures, for people.

use std::io::{self, Write};

use tracewalk_analysis::captures::{CaptureOutcome, Captures, OneOfMany};

use crate::words::CUT;
use crate::{Fitted, Look, counted};

/// The most captures with a problem that are listed; tables have all of them.
const LISTED: usize = 20;

/// Writes the number of captures that count, their totals, and those with a problem.
pub fn write_captures_text(out: &mut dyn Write, captures: &Captures, look: Look) -> io::Result<()> {
    let mut out = Fitted::new(out, look.width);
    let mut line = |indent: usize, text: &str| writeln!(out, "{:indent$}{text}", "");
    let sum = |of: fn(&OneOfMany) -> u64| captures.captures.iter().map(of).fold(0, u64::saturating_add);
    let all = captures.captures.len() as u64;
    line(0, &counted(all, "capture"))?;
    let outcomes = [
        (CaptureOutcome::Whole, "decoded completely"),
        (CaptureOutcome::Partial, "decoded partly"),
        (CaptureOutcome::Saved, "saved before"),
        (CaptureOutcome::LeftOut, "left out"),
    ];
    for (outcome, meaning) in outcomes {
        let count = captures.count(outcome);
        if count > 0 {
            line(2, &format!("{count} {meaning}"))?;
        }
    }
    let (bytes, instructions) = (sum(|capture| capture.bytes), sum(|capture| capture.instructions));
    line(0, &format!("{}, {}", counted(bytes, "byte"), counted(instructions, "instruction")))?;
    let problems = captures.captures.iter().filter_map(|capture| Some((capture, capture.problem.as_ref()?)));
    let problems = problems.collect::<Vec<_>>();
    for (OneOfMany { capture, outcome, .. }, (_, sentence)) in problems.iter().take(LISTED) {
        line(0, capture)?;
        let outcome = if *outcome == CaptureOutcome::LeftOut { "left out" } else { "decoded partly" };
        line(2, &format!("{outcome}: {sentence}"))?;
    }
    let more = problems.len().saturating_sub(LISTED) as u64;
    if more > 0 {
        line(0, &format!("{} more with a problem; the table lists all", counted(more, "capture")))?;
    }
    if captures.complete { Ok(()) } else { line(0, CUT) }
}
