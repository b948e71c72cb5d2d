//! The program with its counts: a function's instructions, a file's lines.

use serde_json::{Value, json};
use tracewalk::ids::Address;
use tracewalk_analysis::Code;
use tracewalk_analysis::coverage::Report;

use crate::figures::{Counts, state};
use crate::names::{address, hex, text};
use crate::query::Query;
use crate::recording::Recording;

/// The most instructions of a function that are shown. A longer function is shown around the place.
const MOST_INSTRUCTIONS: usize = 4000;
/// The most lines of a file that are shown.
const MOST_LINES: usize = 200_000;
/// The longest line that is shown; source has no longer ones.
const LONGEST_LINE: usize = 2000;

/// The function at an address, or at a step.
pub(crate) fn function(recording: &mut Recording<'_>, counts: &Counts, query: &Query) -> Option<Value> {
    let stated = query.address.as_deref().and_then(address);
    let here = match stated {
        Some(address) => address,
        None => {
            recording.cursor.seek_step(query.step);
            recording.cursor.current()?.instruction?.location.address
        }
    };
    let seen = if stated.is_some() { &*recording.code } else { recording.seen() };
    function_at(here, seen, counts)
}

/// The function at an address of a program.
pub(crate) fn function_at(here: Address, seen: &Code, counts: &Counts) -> Option<Value> {
    let (function, code) = counts.function(here, seen)?;
    let report: &Report = &counts.report;
    let all = function.instructions.iter().filter_map(|index| report.instructions.get(*index));
    let skipped = match function.instructions.len() > MOST_INSTRUCTIONS {
        true => all.clone().take_while(|counted| counted.instruction.at.address < here).count(),
        false => 0,
    };
    let skipped = skipped.saturating_sub(MOST_INSTRUCTIONS / 2);
    let instructions = all.skip(skipped).take(MOST_INSTRUCTIONS).map(|counted| {
        let at = counted.instruction.at;
        let place = code.symbols.innermost(at.address);
        let (mnemonic, operands) = text(at, code).unwrap_or_default();
        json!({
            "address": hex(at.address),
            "text": mnemonic,
            "operands": operands,
            "count": counted.instruction.passes.total(),
            "skipped": counted.instruction.passes.skipped,
            "file": place.as_ref().and_then(|place| place.file.clone()),
            "line": place.as_ref().and_then(|place| place.line),
        })
    });
    Some(json!({
        "name": function.name,
        "start": hex(function.start),
        "end": format!("0x{:08x}", function.end),
        "cut": function.instructions.len() > MOST_INSTRUCTIONS,
        "instructions": instructions.collect::<Vec<_>>(),
    }))
}

/// A source file with the counts of its lines.
pub(crate) fn file(counts: &Counts, query: &Query) -> Option<Value> {
    file_named(query.file.as_deref()?, counts)
}

/// The file with this name in debug information. Only such files are read.
pub(crate) fn file_named(name: &str, counts: &Counts) -> Option<Value> {
    let wanted = steps(name);
    let file = counts.report.files.iter().find(|file| file.name == name || steps(&file.name) == wanted)?;
    let text = counts.text(name);
    let text = text.as_deref().map(String::from_utf8_lossy);
    let lines = text.as_deref().map(|text| {
        let line = |line: &str| line.chars().take(LONGEST_LINE).collect::<String>();
        text.lines().take(MOST_LINES).map(line).collect::<Vec<_>>()
    });
    let counted = file.lines.iter().map(|line| (line.number, line.count, state(line.state)));
    Some(json!({
        "name": name,
        "lines": lines,
        "counts": counted.collect::<Vec<_>>(),
    }))
}

/// The folders and the name in a file's path: compilers write the same path in several ways.
fn steps(name: &str) -> Vec<&str> {
    let mut steps = Vec::new();
    for step in name.split(['/', '\\']) {
        match step {
            "." => {}
            ".." if steps.last().is_some_and(|last| !matches!(*last, "" | "..")) => _ = steps.pop(),
            step => steps.push(step),
        }
    }
    steps
}
