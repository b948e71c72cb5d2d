//! Coverage in a file, to be merged and reported later (docs/coverage.md).
//!
//! ```text
//! # tracewalk coverage 1
//! P build 2f3a…                          a program, by its images' build IDs, or `code` and a hash; what follows is of it
//! I fw.elf                               the name of an image
//! S 0x10 etmv3 every 5920 12345 1 0 run  a source: ID, protocol, conditions (every, branches), bytes, instructions, how
//!                                        often tracing began, how often of these after an overflow, the capture's name
//! L trace_lost 2 17                      of the source above: stretches that are lost, and their bytes
//! N 20000000 3                           of the source above: a page of 4 KiB that no image holds, and how often it ran
//! B 8000306 8000316 t32 t 15             a block: start, end, isa, outcome (p passed, f failed, t taken, n not taken), count
//! W 8000306 8000316 t32 t 15             the same, of a source that tells of the conditions of branches alone
//! ```
//!
//! Addresses are hexadecimal, other numbers decimal. The same coverage is always the same text.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, Write};

use tracewalk::ids::{Address, Isa};

use super::blocks::{BlockKey, Conditions, Outcome};
use super::collected::{Coverage, ProgramCoverage, ProgramId, SourceSummary};
use super::recorder::{Losses, Lost};

/// What every file of saved coverage begins with; the version follows.
const MAGIC: &str = "# tracewalk coverage ";
const VERSION: &str = "1";

/// Why a file is not saved coverage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub kind: SavedErrorKind,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SavedErrorKind {
    /// The file does not begin as saved coverage does.
    NotCoverage,
    /// It is of another version.
    Version {
        /// Which.
        found: String,
    },
    /// The line begins with something else than the letters that exist.
    UnknownItem {
        /// What it begins with.
        found: String,
    },
    /// The line says something of a program or a source, and none came before.
    Misplaced,
    /// A field is missing, or holds something that it may not.
    Field {
        /// The field.
        field: &'static str,
        /// What it holds.
        found: String,
    },
}

impl Coverage {
    /// Whether a file that begins like this is meant as saved coverage, of whatever version.
    #[must_use]
    pub fn is_saved(head: &[u8]) -> bool {
        head.starts_with(MAGIC.as_bytes())
    }

    /// Writes it down.
    pub fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{MAGIC}{VERSION}")?;
        for (id, program) in &self.programs {
            writeln!(out, "P {id}")?;
            for image in &program.images {
                writeln!(out, "I {}", one_line(image))?;
            }
            for source in &program.sources {
                save_source(source, out)?;
            }
            for (block, count) in &program.blocks {
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
        }
        Ok(())
    }

    /// Reads what was written down.
    pub fn read(text: &str) -> Result<Self, SavedError> {
        let mut reader = Reader::default();
        let mut lines = text.lines().zip(1..);
        let (head, _) = lines.next().unwrap_or(("", 1));
        check_head(head).map_err(|kind| SavedError { line: 1, kind })?;
        for (line, number) in lines {
            reader.line(line).map_err(|kind| SavedError { line: number, kind })?;
        }
        reader.end_program();
        Ok(reader.coverage)
    }
}

fn check_head(head: &str) -> Result<(), SavedErrorKind> {
    match head.strip_prefix(MAGIC) {
        Some(VERSION) => Ok(()),
        Some(found) => Err(SavedErrorKind::Version { found: found.to_owned() }),
        None => Err(SavedErrorKind::NotCoverage),
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
        one_line(capture)
    )?;
    for (name, Lost { stretches, bytes }) in losses.named() {
        if stretches > 0 {
            writeln!(out, "L {name} {stretches} {bytes}")?;
        }
    }
    for (page, count) in &losses.no_image {
        writeln!(out, "N {page:x} {count}")?;
    }
    Ok(())
}

/// A name without what would end its line.
fn one_line(name: &str) -> String {
    name.replace(char::is_control, "?")
}

const fn isa_word(isa: Isa) -> &'static str {
    match isa {
        Isa::A32 => "a32",
        Isa::T32 => "t32",
        Isa::T32EE => "t32ee",
        Isa::Jazelle => "jazelle",
    }
}

const fn outcome_letter(outcome: Outcome) -> char {
    match outcome {
        Outcome::Passed => 'p',
        Outcome::Failed => 'f',
        Outcome::Taken => 't',
        Outcome::NotTaken => 'n',
    }
}

#[derive(Default)]
struct Reader {
    coverage: Coverage,
    /// The program whose lines are read.
    program: Option<(ProgramId, ProgramCoverage)>,
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<(), SavedErrorKind> {
        let (item, rest) = line.split_once(' ').unwrap_or((line, ""));
        let mut fields = Fields(rest);
        match item {
            "P" => {
                self.end_program();
                self.program = Some((fields.program()?, ProgramCoverage::default()));
            }
            "I" => drop(self.program()?.images.insert(rest.to_owned())),
            "S" => {
                let source = fields.source()?;
                self.program()?.sources.push(source);
            }
            "L" => {
                let name = fields.word("reason")?;
                let lost = Lost { stretches: fields.decimal("stretches")?, bytes: fields.decimal("bytes")? };
                let unknown = || SavedErrorKind::Field { field: "reason", found: name.to_owned() };
                *self.losses()?.named_mut(name).ok_or_else(unknown)? = lost;
            }
            "N" => {
                let (page, count) = (fields.address("page")?, fields.decimal("count")?);
                self.losses()?.no_image.insert(page, count);
            }
            "B" | "W" => {
                let conditions = if item == "B" { Conditions::OfEvery } else { Conditions::OfBranches };
                let (block, count) = fields.block(conditions)?;
                let sum = self.program()?.blocks.entry(block).or_default();
                *sum = sum.saturating_add(count);
            }
            _ => return Err(SavedErrorKind::UnknownItem { found: item.to_owned() }),
        }
        Ok(())
    }

    fn program(&mut self) -> Result<&mut ProgramCoverage, SavedErrorKind> {
        self.program.as_mut().map(|(_, coverage)| coverage).ok_or(SavedErrorKind::Misplaced)
    }

    fn losses(&mut self) -> Result<&mut Losses, SavedErrorKind> {
        let source = self.program()?.sources.last_mut();
        source.map(|source| &mut source.losses).ok_or(SavedErrorKind::Misplaced)
    }

    fn end_program(&mut self) {
        if let Some((id, coverage)) = self.program.take() {
            self.coverage.programs.entry(id).or_default().merge(coverage);
        }
    }
}

/// The fields of a line that were not read yet.
struct Fields<'a>(&'a str);

impl<'a> Fields<'a> {
    fn word(&mut self, field: &'static str) -> Result<&'a str, SavedErrorKind> {
        let (word, rest) = self.0.split_once(' ').unwrap_or((self.0, ""));
        self.0 = rest;
        if word.is_empty() {
            return Err(SavedErrorKind::Field { field, found: String::new() });
        }
        Ok(word)
    }

    fn parsed<T>(
        &mut self,
        field: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, SavedErrorKind> {
        let word = self.word(field)?;
        parse(word).ok_or_else(|| SavedErrorKind::Field { field, found: word.to_owned() })
    }

    fn decimal(&mut self, field: &'static str) -> Result<u64, SavedErrorKind> {
        self.parsed(field, |word| word.parse().ok())
    }

    fn address(&mut self, field: &'static str) -> Result<Address, SavedErrorKind> {
        self.parsed(field, |word| u32::from_str_radix(word, 16).ok().map(Address))
    }

    fn conditions(&mut self) -> Result<Conditions, SavedErrorKind> {
        let all = [Conditions::OfEvery, Conditions::OfBranches];
        self.parsed("conditions", |word| all.into_iter().find(|known| known.name() == word))
    }

    fn program(&mut self) -> Result<ProgramId, SavedErrorKind> {
        match self.word("kind of identity")? {
            "build" => {
                let mut ids = BTreeSet::from([self.parsed("build ID", from_hex)?]);
                while !self.0.is_empty() {
                    ids.insert(self.parsed("build ID", from_hex)?);
                }
                Ok(ProgramId::Builds(ids))
            }
            "code" => self.parsed("hash", |word| from_hex(word)?.try_into().ok()).map(ProgramId::Code),
            found => Err(SavedErrorKind::Field { field: "kind of identity", found: found.to_owned() }),
        }
    }

    fn source(&mut self) -> Result<SourceSummary, SavedErrorKind> {
        Ok(SourceSummary {
            source: self.word("source")?.to_owned(),
            protocol: self.word("protocol")?.to_owned(),
            conditions: self.conditions()?,
            bytes: self.decimal("bytes")?,
            instructions: self.decimal("instructions")?,
            losses: Losses {
                begins: self.decimal("begins")?,
                overflows: self.decimal("overflows")?,
                ..Losses::default()
            },
            capture: self.0.to_owned(),
        })
    }

    fn block(&mut self, conditions: Conditions) -> Result<(BlockKey, u64), SavedErrorKind> {
        let start = self.address("start")?;
        let end = self.parsed("end", |word| {
            u32::from_str_radix(word, 16).ok().map(Address).filter(|end| *end > start)
        })?;
        let isas = [Isa::A32, Isa::T32, Isa::T32EE, Isa::Jazelle];
        let isa = self.parsed("isa", |word| isas.into_iter().find(|isa| isa_word(*isa) == word))?;
        let outcomes = [Outcome::Passed, Outcome::Failed, Outcome::Taken, Outcome::NotTaken];
        let outcome = self.parsed("outcome", |word| {
            outcomes.into_iter().find(|outcome| word.chars().eq([outcome_letter(*outcome)]))
        })?;
        Ok((BlockKey { start, end, isa, outcome, conditions }, self.decimal("count")?))
    }
}

fn from_hex(word: &str) -> Option<Vec<u8>> {
    let digits = word.bytes().map(|digit| char::from(digit).to_digit(16)).collect::<Option<Vec<_>>>()?;
    let bytes = digits.chunks(2).map(|pair| match pair {
        [high, low] => u8::try_from(high << 4 | low).ok(),
        _ => None,
    });
    bytes.collect()
}

impl fmt::Display for SavedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        match &self.kind {
            SavedErrorKind::NotCoverage => write!(f, "expected \"{MAGIC}{VERSION}\""),
            SavedErrorKind::Version { found } => {
                write!(f, "found saved coverage of version {found:?}, expected {VERSION}")
            }
            SavedErrorKind::UnknownItem { found } => {
                write!(f, "found an item {found:?}, expected P, I, S, L, N, B or W")
            }
            SavedErrorKind::Misplaced => f.write_str("expected a P line before, and for L and N an S line"),
            SavedErrorKind::Field { field, found } if found.is_empty() => write!(f, "found no {field}"),
            SavedErrorKind::Field { field, found } => {
                write!(f, "found {found:?} where the {field} should be")
            }
        }
    }
}

impl std::error::Error for SavedError {}

#[cfg(test)]
mod tests {
    use super::*;

    const SAVED: &str = "\
# tracewalk coverage 1
P build 0abc ff
I a name with spaces.elf
S 0x10 etmv3 every 5920 12345 2 1 a capture
L trace_lost 2 17
N 20000000 3
S - mtb branches 1024 300 1 0 mtb.bin
B 100 104 t32 t 15
W 100 104 t32 t 18446744073709551615
B 100 108 a32 f 1
P code 0101010101010101010101010101010101010101010101010101010101010101
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
        assert!(Coverage::is_saved(text.as_bytes()));
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        let with = |line: &str| format!("# tracewalk coverage 1\nP build 0a\n{line}\n");
        let cases = [
            ("", "line 1: expected \"# tracewalk coverage 1\""),
            ("# tracewalk coverage 2\n", "line 1: found saved coverage of version \"2\", expected 1"),
            (
                "# tracewalk coverage 1\nB 0 2 t32 p 1",
                "line 2: expected a P line before, and for L and N an S line",
            ),
            (&with("N 0 1"), "line 3: expected a P line before, and for L and N an S line"),
            (&with("Q 1"), "line 3: found an item \"Q\", expected P, I, S, L, N, B or W"),
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
