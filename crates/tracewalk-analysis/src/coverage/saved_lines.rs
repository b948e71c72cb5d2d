//! Coverage in files of versions 1 and 2; the lines beside those of all saved files:
//!
//! ```text
//! S 0x10 etmv3 every 5920 12345 1 0 run  a source: ID, protocol, conditions (every, branches), bytes, instructions, how
//!                                        often tracing began, how often after an overflow, the capture's name
//! L trace_lost 2 17                      of the source above: stretches that are lost, and their bytes
//! Q 12 0                                 of the source above: instructions in doubt that were left out, that were counted
//! N 20000000 3                           of the source above: a page of 4 KiB that no image holds, and how often it ran
//! B 8000306 8000316 t32 t 15             a block: start, end, isa, outcome (p passed, f failed, t taken, n not taken), count
//! W 8000306 8000316 t32 t 15             the same, of a source that records only the conditions of branches
//! ```
//!
//! Addresses are hexadecimal, other numbers decimal.

use super::blocks::{BlockKey, Conditions, Outcome};
use super::collected::{ProgramCoverage, SourceSummary};
use super::losses::{Losses, Lost};
use crate::saved::{Fields, ReadLines, SavedErrorKind, words};

/// Reads the coverage of one program.
#[derive(Debug, Default)]
pub struct Lines(ProgramCoverage);

impl ReadLines for Lines {
    type Found = ProgramCoverage;

    fn line(&mut self, item: &str, mut fields: Fields<'_>) -> Result<(), SavedErrorKind> {
        match item {
            "S" => self.0.sources.push(source(fields)?),
            "L" => {
                let name = fields.word("reason")?;
                let lost = Lost { stretches: fields.decimal("stretches")?, bytes: fields.decimal("bytes")? };
                let losses = self.losses()?;
                let of = match name {
                    "trace_lost" => &mut losses.trace_lost,
                    "address_unknown" => &mut losses.address_unknown,
                    "contradictions" => &mut losses.contradictions,
                    "undecodable" => &mut losses.undecodable,
                    found => return Err(SavedErrorKind::field("reason", found)),
                };
                *of = lost;
            }
            "Q" => self.losses()?.in_doubt.add(fields.in_doubt()?),
            "N" => {
                let (page, count) = (fields.address("page")?, fields.decimal("count")?);
                self.losses()?.no_image.insert(page, count);
            }
            "B" | "W" => {
                let conditions = if item == "B" { Conditions::OfEvery } else { Conditions::OfBranches };
                let (block, count) = block(fields, conditions)?;
                let sum = self.0.blocks.entry(block).or_default();
                *sum = sum.saturating_add(count);
            }
            _ => return Err(SavedErrorKind::UnknownItem { found: item.to_owned() }),
        }
        Ok(())
    }

    fn finish(self) -> ProgramCoverage {
        self.0
    }
}

impl Lines {
    fn losses(&mut self) -> Result<&mut Losses, SavedErrorKind> {
        let source = self.0.sources.last_mut();
        source.map(|source| &mut source.losses).ok_or(SavedErrorKind::Misplaced)
    }
}

fn source(mut fields: Fields<'_>) -> Result<SourceSummary, SavedErrorKind> {
    Ok(SourceSummary {
        source: fields.word("source")?.to_owned(),
        protocol: fields.word("protocol")?.to_owned(),
        conditions: fields.one_of(
            "conditions",
            &[Conditions::OfEvery, Conditions::OfBranches],
            Conditions::name,
        )?,
        bytes: fields.decimal("bytes")?,
        instructions: fields.decimal("instructions")?,
        losses: Losses {
            begins: fields.decimal("begins")?,
            overflows: fields.decimal("overflows")?,
            ..Losses::default()
        },
        capture: fields.rest().to_owned(),
    })
}

fn block(mut fields: Fields<'_>, conditions: Conditions) -> Result<(BlockKey, u64), SavedErrorKind> {
    let start = fields.address("start")?;
    let end = fields.parsed("end", |word| words::address(word).filter(|end| *end > start))?;
    let isa = fields.isa()?;
    let outcome = fields.parsed("outcome", |word| match word {
        "p" => Some(Outcome::Passed),
        "f" => Some(Outcome::Failed),
        "t" => Some(Outcome::Taken),
        "n" => Some(Outcome::NotTaken),
        _ => None,
    })?;
    Ok((BlockKey { start, end, isa, outcome, conditions }, fields.decimal("count")?))
}
