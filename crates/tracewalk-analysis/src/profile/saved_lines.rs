//! Profiles in files of versions 1 and 2; the lines beside those of all saved files:
//!
//! ```text
//! S 0x10 etmv3 1               a source: trace ID, protocol, number among equal ones; the next lines belong to it
//! M 120 0 3 0 3400             cycle counts, instructions of captures without any, timestamps, instructions of captures
//!                              without time, instructions whose time is known
//! Q 12 0                       instructions in doubt that were left out, and that were counted
//! U 0 12 0                     instructions, cycles and ticks of code that could not be followed
//! O 0 3 0                      the same while nothing was traced
//! W pendsv 21                  task switches: evidence, number
//! D 7                          calls that were counted to their callers
//! T 0 number 1                 a task: how many links of the chain of calls are outside, which: a number, `unresolved`, or
//!                              `within context=0x42,vmid=0x1`
//! X 1 65 m 15                  an exception: links outside, how often, profile and number
//! F 2 3 8000112 named 8000306 -
//!                              a function: links outside, how often it was called, from where, which (`named`, `unnamed`
//!                              or `missing` with its address, `unknown`), and for the first two in which contexts
//! C 8000306 8000316 t32 8 120 340 0
//!                              of the link above: a piece of code, its instructions, and its cost in instructions,
//!                              cycles and ticks
//! ```
//!
//! Each link of a chain of calls comes after those outside. Addresses are hexadecimal, other numbers decimal.

use super::saved_parts::Parts;
use super::{Measures, NodeKind, ProgramProfiles};
use crate::call_stack::{Evidence, Piece, Task};
use crate::clock::Cost;
use crate::saved::{Fields, ReadLines, SavedErrorKind, or_dash, words};

/// Reads the profiles of one program.
#[derive(Debug, Default)]
pub struct Lines(Parts);

impl ReadLines for Lines {
    type Found = ProgramProfiles;

    fn line(&mut self, item: &str, mut fields: Fields<'_>) -> Result<(), SavedErrorKind> {
        let parts = &mut self.0;
        if item == "S" {
            parts.source(fields.source_id()?);
            return Ok(());
        }
        match item {
            "M" => parts.profile()?.measures += measures(&mut fields)?,
            "Q" => parts.profile()?.in_doubt.add(fields.in_doubt()?),
            "U" => {
                let cost = parts.cost(cost(&mut fields)?)?;
                parts.profile()?.unfollowed += cost;
            }
            "O" => {
                let cost = parts.cost(cost(&mut fields)?)?;
                parts.profile()?.untraced += cost;
            }
            "W" => {
                let evidence = fields.one_of("evidence", &Evidence::ALL, Evidence::name)?;
                let switches = parts.profile()?.switches.entry(evidence).or_default();
                *switches = switches.saturating_add(fields.decimal("count")?);
            }
            "D" => {
                let folded = &mut parts.profile()?.folded_calls;
                *folded = folded.saturating_add(fields.decimal("count")?);
            }
            "T" | "X" | "F" => link(parts, item, fields)?,
            "C" => {
                let piece = piece(&mut fields)?;
                parts.code(piece, cost(&mut fields)?)?;
            }
            _ => return Err(SavedErrorKind::UnknownItem { found: item.to_owned() }),
        }
        Ok(())
    }

    fn finish(self) -> ProgramProfiles {
        self.0.finish()
    }
}

/// A link of a chain of calls.
fn link(parts: &mut Parts, item: &str, mut fields: Fields<'_>) -> Result<(), SavedErrorKind> {
    let depth = fields.parsed("number of links", |word| word.parse().ok())?;
    let (kind, calls) = match item {
        "T" => (NodeKind::Task(task(&mut fields)?), 0),
        "X" => {
            let calls = fields.decimal("count")?;
            (NodeKind::Exception(fields.exception()?), calls)
        }
        _ => {
            let calls = fields.decimal("count")?;
            let site = fields.parsed("call's address", or_dash(words::address))?;
            (NodeKind::Function { function: fields.function()?, site }, calls)
        }
    };
    parts.link(depth, kind, calls)
}

fn measures(fields: &mut Fields<'_>) -> Result<Measures, SavedErrorKind> {
    Ok(Measures {
        cycle_counts: fields.decimal("cycle counts")?,
        without_cycles: fields.decimal("instructions without cycles")?,
        timestamps: fields.decimal("timestamps")?,
        without_time: fields.decimal("instructions without time")?,
        timed_instructions: fields.decimal("timed instructions")?,
    })
}

fn cost(fields: &mut Fields<'_>) -> Result<Cost, SavedErrorKind> {
    Ok(Cost {
        instructions: fields.decimal("instructions")?,
        cycles: fields.decimal("cycles")?,
        time: fields.decimal("ticks")?,
    })
}

fn task(fields: &mut Fields<'_>) -> Result<Task, SavedErrorKind> {
    match fields.word("task")? {
        "number" => fields.parsed("task's number", |word| word.parse().ok()).map(Task::Number),
        "within" => fields.scope("context").map(Task::Context),
        "unresolved" => Ok(Task::Unresolved),
        found => Err(SavedErrorKind::field("task", found)),
    }
}

fn piece(fields: &mut Fields<'_>) -> Result<Piece, SavedErrorKind> {
    Ok(Piece {
        start: fields.address("start")?,
        end: fields.address("end")?,
        isa: fields.isa()?,
        instructions: fields.parsed("number of instructions", |word| word.parse().ok())?,
    })
}
