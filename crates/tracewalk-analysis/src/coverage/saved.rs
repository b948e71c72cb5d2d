//! Coverage in a file (docs/coverage.md); the lines beside those of all saved files:
//!
//! ```text
//! S 0x10 etmv3 every 5920 12345 1 0 run  a source: ID, protocol, conditions (every, branches), bytes, instructions, how
//!                                        often tracing began, how often of these after an overflow, the capture's name
//! L trace_lost 2 17                      of the source above: stretches that are lost, and their bytes
//! Q 12 0                                 of the source above: instructions in doubt that were left out, that were counted
//! N 20000000 3                           of the source above: a page of 4 KiB that no image holds, and how often it ran
//! B 8000306 8000316 t32 t 15             a block: start, end, isa, outcome (p passed, f failed, t taken, n not taken), count
//! W 8000306 8000316 t32 t 15             the same, of a source that tells of the conditions of branches alone
//! ```
//!
//! Addresses are hexadecimal, other numbers decimal.

use std::io::{self, Write};

use tracewalk::plain::plain;

use super::blocks::{BlockKey, Conditions, Outcome};
use super::collected::{ProgramCoverage, SourceSummary};
use super::losses::{Losses, Lost};
use crate::saved::{Fields, Format, ReadItems, Save, SavedErrorKind, address, isa_word, save_in_doubt};

impl Save for ProgramCoverage {
    const FORMAT: Format = Format { name: "coverage", version: "2", items: "S, L, Q, N, B or W" };

    type Reader = Reader;

    fn save_items(&self, out: &mut dyn Write) -> io::Result<()> {
        let on_one_line = |source: &SourceSummary| {
            let capture = plain(source.capture.as_str().into()).into_owned();
            SourceSummary { capture, ..source.clone() }
        };
        let mut sources = self.sources.iter().map(on_one_line).collect::<Vec<_>>();
        sources.sort();
        for source in &sources {
            save_source(source, out)?;
        }
        for (block, count) in &self.blocks {
            let BlockKey { start, end, isa, outcome, conditions } = block;
            let item = match conditions {
                Conditions::OfEvery => 'B',
                Conditions::OfBranches => 'W',
            };
            writeln!(
                out,
                "{item} {start:x} {end:x} {} {} {count}",
                isa_word(*isa),
                outcome_letter(*outcome)
            )?;
        }
        Ok(())
    }
}

/// What a source's losses are called, in the order in which they are written.
const LOSSES: [&str; 4] = ["trace_lost", "address_unknown", "contradictions", "undecodable"];

impl Losses {
    /// The losses that are stretches of trace, by the names of [`LOSSES`].
    pub(crate) fn named(&self) -> [(&'static str, Lost); 4] {
        let lost = [self.trace_lost, self.address_unknown, self.contradictions, self.undecodable];
        std::array::from_fn(|index| (LOSSES[index], lost[index]))
    }

    fn named_mut(&mut self, name: &str) -> Option<&mut Lost> {
        let lost = [
            &mut self.trace_lost,
            &mut self.address_unknown,
            &mut self.contradictions,
            &mut self.undecodable,
        ];
        LOSSES.iter().zip(lost).find_map(|(known, lost)| (*known == name).then_some(lost))
    }
}

impl Conditions {
    /// A short name for line formats.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OfEvery => "every",
            Self::OfBranches => "branches",
        }
    }
}

fn save_source(source: &SourceSummary, out: &mut dyn Write) -> io::Result<()> {
    let SourceSummary { capture, source, protocol, conditions, bytes, instructions, losses } = source;
    let Losses { begins, overflows, .. } = losses;
    writeln!(
        out,
        "S {source} {protocol} {} {bytes} {instructions} {begins} {overflows} {}",
        conditions.name(),
        capture
    )?;
    for (name, Lost { stretches, bytes }) in losses.named() {
        if stretches > 0 {
            writeln!(out, "L {name} {stretches} {bytes}")?;
        }
    }
    save_in_doubt(losses.in_doubt, out)?;
    for (page, count) in &losses.no_image {
        writeln!(out, "N {page:x} {count}")?;
    }
    Ok(())
}

const fn outcome_letter(outcome: Outcome) -> char {
    match outcome {
        Outcome::Passed => 'p',
        Outcome::Failed => 'f',
        Outcome::Taken => 't',
        Outcome::NotTaken => 'n',
    }
}

/// Reads the coverage of one program.
#[derive(Debug, Default)]
pub struct Reader(ProgramCoverage);

impl ReadItems for Reader {
    type Found = ProgramCoverage;

    fn line(&mut self, item: &str, mut fields: Fields<'_>) -> Result<(), SavedErrorKind> {
        match item {
            "S" => self.0.sources.push(source(fields)?),
            "L" => {
                let name = fields.word("reason")?;
                let lost = Lost { stretches: fields.decimal("stretches")?, bytes: fields.decimal("bytes")? };
                let unknown = || SavedErrorKind::Field { field: "reason", found: name.to_owned() };
                *self.losses()?.named_mut(name).ok_or_else(unknown)? = lost;
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

impl Reader {
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
    let end = fields.parsed("end", |word| address(word).filter(|end| *end > start))?;
    let isa = fields.isa()?;
    let outcomes = [Outcome::Passed, Outcome::Failed, Outcome::Taken, Outcome::NotTaken];
    let outcome = fields.parsed("outcome", |word| {
        outcomes.into_iter().find(|outcome| word.chars().eq([outcome_letter(*outcome)]))
    })?;
    Ok((BlockKey { start, end, isa, outcome, conditions }, fields.decimal("count")?))
}

#[cfg(test)]
mod tests {
    use crate::coverage::Coverage;
    use crate::saved::ended;

    const SAVED: &str = "\
# tracewalk coverage 2
P build 0abc ff
I a name with spaces.elf
S 0x10 etmv3 every 5920 12345 2 1 a capture
L trace_lost 2 17
Q 12 0
N 20000000 3
S - mtb branches 1024 300 1 0 mtb.bin
B 100 104 t32 t 15
W 100 104 t32 t 18446744073709551615
B 100 108 a32 f 1
P code 0101010101010101010101010101010101010101010101010101010101010101
E 12
";

    fn saved(coverage: &Coverage) -> String {
        let mut out = Vec::new();
        coverage.save(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_was_saved_is_read_and_saved_again_in_order() {
        let coverage = Coverage::read(SAVED).unwrap();
        let text = saved(&coverage);
        let sorted = |text: &str| {
            let mut lines = text.lines().map(str::to_owned).collect::<Vec<_>>();
            lines.sort();
            lines
        };
        assert_eq!(sorted(&text), sorted(SAVED));
        assert_eq!(Coverage::read(&text).as_ref(), Ok(&coverage));
        assert_eq!(saved(&Coverage::read(&text).unwrap()), text);
    }

    #[test]
    fn what_is_of_a_part_of_a_capture_stays_so_when_it_is_saved_and_merged() {
        let whole = Coverage::read(SAVED).unwrap();
        assert!(whole.complete && !saved(&whole).contains("\nK"));
        let cut = Coverage { complete: false, ..whole.clone() };
        assert_eq!(Coverage::read(&saved(&cut)).as_ref(), Ok(&cut));
        let mut sum = whole;
        sum.merge(cut).unwrap();
        assert!(!sum.complete && !Coverage::read(&saved(&sum)).unwrap().complete);
    }

    #[test]
    fn names_that_would_break_their_line_do_not_change_the_order_when_they_are_read_again() {
        let source = "S - mtb every 1 1 1 0";
        let text = format!(
            "# tracewalk coverage 2\nP build 0a\nI a\u{1}.elf\nI a!.elf\n{source} b\u{1}\n{source} b!\n"
        );
        let text = saved(&Coverage::read(&ended(&text)).unwrap());
        assert!(text.contains("I a!.elf\nI a\u{fffd}.elf\n") && text.contains(" b!\n"), "{text}");
        assert_eq!(saved(&Coverage::read(&text).unwrap()), text);
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        let with = |line: &str| format!("# tracewalk coverage 2\nP build 0a\n{line}\n");
        let cases = [
            ("", "line 1: expected \"# tracewalk coverage 2\""),
            ("# tracewalk profile 1\n", "line 1: found saved \"profile\", expected saved coverage"),
            ("# tracewalk coverage 1\n", "line 1: found saved coverage of version \"1\", expected 2"),
            (
                "# tracewalk coverage 2\nB 0 2 t32 p 1\n",
                "line 2: the line that it belongs to does not stand before it",
            ),
            (&with("N 0 1"), "line 3: the line that it belongs to does not stand before it"),
            (&with("Z 1"), "line 3: found an item \"Z\", expected P, I, E, S, L, Q, N, B or W"),
            (&with("B 2 2 t32 p 1"), "line 3: found \"2\" where the end should be"),
            (&with("B 2 4 t33 p 1"), "line 3: found \"t33\" where the isa should be"),
            (&with("B 2 4 t32 p"), "line 3: found no count"),
            (&with("P code 00"), "line 3: found \"00\" where the hash should be"),
            (&with("P build abc"), "line 3: found \"abc\" where the build ID should be"),
            (&with("S - mtb some 1 1 1 1 x"), "line 3: found \"some\" where the conditions should be"),
        ];
        for (text, message) in cases {
            assert_eq!(Coverage::read(text).unwrap_err().to_string(), message);
        }
    }
}
