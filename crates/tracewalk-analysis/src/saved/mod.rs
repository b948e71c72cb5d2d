//! Answers in files, to be merged and reported later (docs/formats.md).
//!
//! ```text
//! {"saved":"coverage","version":1,"complete":true}        the kind, and whether all captures were decoded to their ends
//! {"program":{"id":{"build":["2f3a…"]},"images":["fw.elf"]}}  a program, and the names of its images; the next lines are its own
//! …                                                       the program's items
//! {"end":[4711,907060870]}                                the end, the number of lines before it, and the CRC-32 of their bytes
//! ```
//!
//! Each line is one JSON value: an item by its name. Equal answers give equal text. serde writes the items by their types, which
//! each analysis declares.
//!
//! ```
//! use tracewalk_analysis::coverage::{Coverage, ProgramCoverage};
//! use tracewalk_analysis::programs::ProgramId;
//!
//! let mut coverage = Coverage::default();
//! coverage.add(ProgramId::Builds([vec![0x2f, 0x3a]].into()), ["fw.elf".to_owned()], ProgramCoverage::default());
//! let mut file = Vec::new();
//! coverage.save(&mut file)?;
//! assert!(file.starts_with(br#"{"saved":"coverage","version":1"#));
//! assert_eq!(Coverage::read(&*file)?, coverage);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod reading;
pub(crate) mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tracewalk::plain::plain;

use super::programs::{Merge, OfProgram, ProgramId, Programs};

pub use error::{SavedError, SavedErrorKind};
use reading::Input;

/// An answer about one program that can be saved.
pub trait Save: Merge {
    /// The answer's kind, in the first line of its files.
    const KIND: &'static str;

    /// Builds the answer from its items.
    type Items: ReadItems<Found = Self>;

    /// Whether a report needs the program.
    const NEEDS_PROGRAM: bool = true;

    /// The names of its runs, if it keeps them.
    fn runs(&self) -> &[String] {
        &[]
    }

    /// Names its single run, unless it keeps runs already.
    fn name_run(&mut self, name: &str) {
        let _ = name;
    }

    /// The names of its captures, if it keeps them.
    fn captures(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Renames its captures: `names` has the new names by the old ones.
    fn rename_captures(&mut self, names: &BTreeMap<String, String>) {
        let _ = names;
    }

    /// Writes its items.
    fn save_items(&self, out: &mut Saving<'_>) -> io::Result<()>;
}

/// Builds an answer about one program from items.
pub trait ReadItems: Default {
    /// An item, as serde reads it.
    type Item: DeserializeOwned;
    /// The answer.
    type Found;

    /// The next item.
    fn item(&mut self, item: Self::Item) -> Result<(), SavedErrorKind>;

    /// There are no more items of this program.
    fn finish(self) -> Self::Found;
}

/// The version of the format.
const VERSION: u32 = 1;

/// The kind of a saved file with this beginning, of any version, if it is one of these.
#[must_use]
pub fn saved_kind<'a>(head: &[u8], kinds: &[&'a str]) -> Option<&'a str> {
    let begins = |kind: &&str| head.starts_with(format!("{{\"saved\":\"{kind}\"").as_bytes());
    kinds.iter().copied().find(begins)
}

/// Whether a file with this beginning is of this kind and keeps runs apart. The first line is enough.
pub(crate) fn keeps_runs(head: &[u8], kind: &str) -> bool {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    serde_json::from_slice(line).is_ok_and(|Head { saved, runs, .. }| saved == kind && runs)
}

/// The first line of a file.
#[derive(Serialize, Deserialize)]
struct Head {
    saved: String,
    version: u32,
    /// `None` if a later version replaced the field.
    complete: Option<bool>,
    /// Whether runs are kept apart.
    #[serde(default, skip_serializing_if = "is_false")]
    runs: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// A line that is the same in all files.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Frame {
    /// A program: the next items belong to it.
    Program { id: ProgramId, images: BTreeSet<String> },
    /// The last line: the number of lines before it, and the CRC-32 of their bytes.
    End(u64, u32),
}

/// The output of items.
pub struct Saving<'a> {
    out: &'a mut dyn Write,
    line: Vec<u8>,
    lines: u64,
    checksum: crc32fast::Hasher,
}

impl Saving<'_> {
    /// Writes an item.
    pub(crate) fn item(&mut self, item: &impl Serialize) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, item)?;
        self.line.push(b'\n');
        self.lines += 1;
        self.checksum.update(&self.line);
        self.out.write_all(&self.line)
    }
}

impl<T: Save> Programs<T> {
    /// Writes the answers.
    ///
    /// # Errors
    ///
    /// If `out` fails.
    pub fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut out = Saving { out, line: Vec::new(), lines: 0, checksum: crc32fast::Hasher::new() };
        let runs = self.programs.values().any(|program| !program.found.runs().is_empty());
        let (saved, complete) = (T::KIND.to_owned(), Some(self.complete));
        let head = Head { saved, version: VERSION, complete, runs };
        out.item(&head)?;
        for (id, OfProgram { images, found }) in &self.programs {
            let images = images.iter().map(|image| plain(image.into()).into_owned()).collect();
            out.item(&Frame::Program { id: id.clone(), images })?;
            found.save_items(&mut out)?;
        }
        let checksum = out.checksum.clone().finalize();
        out.item(&Frame::End(out.lines, checksum))
    }

    /// Reads answers, line by line.
    ///
    /// # Errors
    ///
    /// If `input` fails, has other contents or an unknown version, or is malformed or cut off.
    pub fn read(input: impl BufRead) -> Result<Self, SavedError> {
        let mut input = Input::new(input);
        let read = Self::read_from(&mut input);
        read.map_err(|kind| SavedError { saved: T::KIND, line: input.number(), kind })
    }

    fn read_from(input: &mut Input<impl BufRead>) -> Result<Self, SavedErrorKind> {
        let head: Head = serde_json::from_slice(input.head()?).map_err(|_| SavedErrorKind::NotSaved)?;
        if head.saved != T::KIND {
            return Err(SavedErrorKind::Other { found: plain(head.saved.into()).into_owned() });
        }
        let complete = match (head.version, head.complete) {
            (found, _) if found != VERSION => return Err(SavedErrorKind::Version { found }),
            (_, Some(complete)) => complete,
            (_, None) => return Err(SavedErrorKind::NotSaved),
        };
        let mut programs = Self { complete, ..Self::default() };
        let mut program: Option<(ProgramId, BTreeSet<String>, T::Items)> = None;
        loop {
            let line = input.next()?.ok_or(SavedErrorKind::CutOff)?;
            if !is_frame(line) {
                let (.., items) = program.as_mut().ok_or(SavedErrorKind::Misplaced)?;
                items.item(parsed(line)?)?;
                continue;
            }
            match parsed(line)? {
                Frame::Program { id, images } => {
                    let images = images.into_iter().map(|image| plain(image.into()).into_owned()).collect();
                    let before = program.replace((id, images, T::Items::default()));
                    before
                        .into_iter()
                        .for_each(|(id, images, items)| programs.add(id, images, items.finish()));
                }
                Frame::End(lines, checksum) => {
                    input.check(lines, checksum)?;
                    program
                        .into_iter()
                        .for_each(|(id, images, items)| programs.add(id, images, items.finish()));
                    input.end()?;
                    return Ok(programs);
                }
            }
        }
    }
}

/// Parses a line. UTF-8 is checked once: serde would check each string.
fn parsed<T: DeserializeOwned>(line: &[u8]) -> Result<T, SavedErrorKind> {
    let text = std::str::from_utf8(line).map_err(|error| SavedErrorKind::Item {
        column: error.valid_up_to() + 1,
        problem: "is not UTF-8".to_owned(),
    })?;
    Ok(serde_json::from_str(text)?)
}

/// Whether a line is a frame. Decided by the text, because serde would have to read an item twice.
fn is_frame(line: &[u8]) -> bool {
    line.starts_with(br#"{"program":"#) || line.starts_with(br#"{"end":"#)
}

#[cfg(test)]
pub(crate) mod tests;
