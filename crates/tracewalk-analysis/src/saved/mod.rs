//! What was found of programs in a file, to be merged and reported later (docs/formats.md).
//!
//! ```text
//! # tracewalk coverage 2                 what is saved, and the version of its format
//! P build 2f3a…                          a program, by its images' build IDs, or `code` and a hash; what follows is of it
//! I fw.elf                               the name of an image
//! K cut                                  a capture was not decoded to its end; nothing otherwise
//! …                                      lines of what is saved
//! E 4711                                 the end, and how many lines stand before it
//! ```
//!
//! One item a line, fields separated by one space; what an item is stands first. The same findings are always the same text.

mod error;
mod fields;

use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, Write};

use tracewalk::plain::plain;

use super::programs::{Merge, OfProgram, ProgramId, Programs};

pub use error::SavedErrorKind;
pub use fields::Fields;
pub(super) use fields::{
    address, exception_words, function_words, isa_word, or_dash, save_in_doubt, scope_word, source_words,
};

/// How what is saved is called in its first line, and what its lines begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Its name.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The letters that its lines begin with, beside `P`, `I` and `E`.
    pub items: &'static str,
}

/// What was found of one program, and can be saved.
pub trait Save: Merge {
    /// The format of its files.
    const FORMAT: Format;

    /// What has to be remembered from one line to the next.
    type Reader: ReadItems<Found = Self>;

    /// Writes the lines that are its own.
    fn save_items(&self, out: &mut dyn Write) -> io::Result<()>;
}

/// Reads the lines of one program.
pub trait ReadItems: Default {
    /// What is read.
    type Found: Save;

    /// The next line that begins with `item`; `fields` is the rest of it.
    fn line(&mut self, item: &str, fields: Fields<'_>) -> Result<(), SavedErrorKind>;

    /// There are no more lines of this program.
    fn finish(self) -> Self::Found;
}

/// Why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedError {
    /// What was to be read.
    pub format: Format,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub kind: SavedErrorKind,
}

/// What every saved file begins with; what is saved follows, and the version.
const MAGIC: &str = "# tracewalk ";

/// The item of a result that is of a part of a capture. It stands in front of all programs.
const CUT: &str = "K";

/// The last line's item. A file that was cut off at the end of a line shows by having none.
const END: &str = "E";

/// What a file that begins like this is meant as, if it is one of these, of whatever version.
#[must_use]
pub fn saved_kind<'a>(head: &[u8], kinds: &[&'a str]) -> Option<&'a str> {
    let rest = head.strip_prefix(MAGIC.as_bytes())?;
    let is_kind = |kind: &&str| rest.strip_prefix(kind.as_bytes()).is_some_and(|rest| rest.starts_with(b" "));
    kinds.iter().copied().find(is_kind)
}

impl<T: Save> Programs<T> {
    /// Writes it down.
    pub fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        let out = &mut Counted { out, lines: 0 };
        writeln!(out, "{MAGIC}{} {}", T::FORMAT.name, T::FORMAT.version)?;
        if !self.complete {
            writeln!(out, "{CUT} cut")?;
        }
        for (id, OfProgram { images, found }) in &self.programs {
            writeln!(out, "P {id}")?;
            for image in images.iter().map(|image| plain(image.into())).collect::<BTreeSet<_>>() {
                writeln!(out, "I {image}")?;
            }
            found.save_items(out)?;
        }
        let lines = out.lines;
        writeln!(out, "{END} {lines}")
    }

    /// Reads what was written down.
    pub fn read(text: &str) -> Result<Self, SavedError> {
        let error = |line, kind| SavedError { format: T::FORMAT, line, kind };
        let mut lines = text.lines().zip(1..);
        let (head, _) = lines.next().unwrap_or(("", 1));
        check_head(head, T::FORMAT).map_err(|kind| error(1, kind))?;
        let cut_off = || error(text.lines().count(), SavedErrorKind::CutOff);
        if !text.ends_with('\n') {
            return Err(cut_off());
        }
        let mut programs = Self::default();
        let mut program: Option<Reading<T>> = None;
        let mut ended = false;
        for (line, number) in lines {
            let line = plain(line.into());
            let (item, rest) = line.split_once(' ').unwrap_or((&line, ""));
            let mut fields = Fields::new(rest);
            let read = match (item, &mut program) {
                _ if ended => Err(SavedErrorKind::BehindEnd),
                (END, _) => {
                    ended = true;
                    check_end(&mut fields, number)
                }
                (CUT, None) => {
                    programs.complete = false;
                    Ok(())
                }
                ("P", before) => fields.program().map(|id| {
                    let next = Reading { id, images: BTreeSet::new(), reader: T::Reader::default() };
                    before.replace(next).into_iter().for_each(|program| programs.end(program));
                }),
                ("I", Some(program)) => {
                    program.images.insert(rest.to_owned());
                    Ok(())
                }
                (_, Some(program)) => program.reader.line(item, fields),
                (_, None) => Err(SavedErrorKind::Misplaced),
            };
            read.map_err(|kind| error(number, kind))?;
        }
        if !ended {
            return Err(cut_off());
        }
        program.into_iter().for_each(|program| programs.end(program));
        Ok(programs)
    }

    fn end(&mut self, Reading { id, images, reader }: Reading<T>) {
        self.add(id, images, reader.finish());
    }
}

/// A program whose lines are read.
struct Reading<T: Save> {
    id: ProgramId,
    images: BTreeSet<String>,
    reader: T::Reader,
}

/// Counts the lines that are written.
struct Counted<'a> {
    out: &'a mut dyn Write,
    lines: usize,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.lines += bytes.iter().take(written).filter(|byte| **byte == b'\n').count();
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Reads the line that ends a file, and compares how many lines stand before it.
fn check_end(fields: &mut Fields<'_>, number: usize) -> Result<(), SavedErrorKind> {
    let expected = fields.decimal("number of lines")?;
    let found = u64::try_from(number).unwrap_or(u64::MAX).saturating_sub(1);
    if found == expected { Ok(()) } else { Err(SavedErrorKind::Lines { found, expected }) }
}

fn check_head(head: &str, format: Format) -> Result<(), SavedErrorKind> {
    let rest = head.strip_prefix(MAGIC).ok_or(SavedErrorKind::NotSaved)?;
    match rest.split_once(' ') {
        Some((name, version)) if name == format.name && version == format.version => Ok(()),
        Some((name, found)) if name == format.name => {
            Err(SavedErrorKind::Version { found: found.to_owned() })
        }
        Some((name, _)) => Err(SavedErrorKind::Other { found: name.to_owned() }),
        None => Err(SavedErrorKind::NotSaved),
    }
}

impl fmt::Display for SavedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Format { name, version, items } = self.format;
        write!(f, "line {}: ", self.line)?;
        match &self.kind {
            SavedErrorKind::NotSaved => write!(f, "expected \"{MAGIC}{name} {version}\""),
            SavedErrorKind::Other { found } => write!(f, "found saved {found:?}, expected saved {name}"),
            SavedErrorKind::Version { found } => {
                write!(f, "found saved {name} of version {found:?}, expected {version}")
            }
            SavedErrorKind::CutOff => f.write_str("the file is cut off here"),
            SavedErrorKind::Lines { found, expected } => {
                write!(f, "found {found} lines before the end, expected {expected}")
            }
            SavedErrorKind::BehindEnd => f.write_str("the file has ended before it"),
            SavedErrorKind::UnknownItem { found } => {
                write!(f, "found an item {found:?}, expected P, I, E, {items}")
            }
            SavedErrorKind::Misplaced => f.write_str("the line that it belongs to does not stand before it"),
            SavedErrorKind::Field { field, found } if found.is_empty() => write!(f, "found no {field}"),
            SavedErrorKind::Field { field, found } => {
                write!(f, "found {found:?} where the {field} should be")
            }
        }
    }
}

impl std::error::Error for SavedError {}

/// A saved file with these lines and the one that ends it.
#[cfg(test)]
pub(super) fn ended(lines: &str) -> String {
    format!("{lines}{END} {}\n", lines.lines().count())
}
