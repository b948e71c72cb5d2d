//! Files of versions 1 and 2, which are read and no longer written:
//!
//! ```text
//! # tracewalk coverage 2                 the kind, and the version of its format
//! K cut                                  a capture was not decoded to its end; nothing otherwise
//! P build 2f3a…                          a program, by its images' build IDs, or `code` and a hash; the next lines belong to it
//! I fw.elf                               the name of an image
//! …                                      the program's lines
//! E 4711                                 the end, and the number of lines before it; not in version 1
//! ```
//!
//! One item a line, fields separated by one space; the first field is the kind of item.

use std::collections::BTreeSet;
use std::io::BufRead;

use tracewalk::ids::{Address, Exception, Isa};
use tracewalk::plain::plain;
use tracewalk::program::Scope;

use super::error::SavedErrorKind;
use super::reading::Input;
use super::words;
use crate::InDoubt;
use crate::call_stack::FunctionId;
use crate::programs::{Merge, ProgramId, Programs, SourceId};

/// Reads the lines of one program.
pub trait ReadLines: Default {
    /// The answer that is read.
    type Found: Merge;

    /// The next line that begins with `item`; `fields` is the rest of the line.
    fn line(&mut self, item: &str, fields: Fields<'_>) -> Result<(), SavedErrorKind>;

    /// There are no more lines of this program.
    fn finish(self) -> Self::Found;
}

/// The beginning of a file; the kind and the version follow.
pub(super) const MAGIC: &str = "# tracewalk ";

/// The version of a file with this first line; `None` if it is neither 1 nor 2.
pub(super) fn version(head: &[u8], kind: &str) -> Result<Option<u32>, SavedErrorKind> {
    let Some(rest) = head.strip_prefix(MAGIC.as_bytes()) else { return Ok(None) };
    let rest = String::from_utf8_lossy(rest);
    let (name, version) = rest.trim_end().split_once(' ').ok_or(SavedErrorKind::NotSaved)?;
    let plainly = |found: &str| plain(found.into()).into_owned();
    match version {
        _ if name != kind => Err(SavedErrorKind::Other { found: plainly(name) }),
        "1" => Ok(Some(1)),
        "2" => Ok(Some(2)),
        found => Err(SavedErrorKind::Version { found: plainly(found) }),
    }
}

/// Reads the lines after the first one.
pub(super) fn read<L: ReadLines>(
    input: &mut Input<impl BufRead>,
    version: u32,
) -> Result<Programs<L::Found>, SavedErrorKind> {
    let mut programs = Programs::<L::Found>::default();
    let mut program: Option<(ProgramId, BTreeSet<String>, L)> = None;
    loop {
        let line = match input.next()? {
            Some(line) => String::from_utf8_lossy(line),
            None if version == 1 => break,
            None => return Err(SavedErrorKind::CutOff),
        };
        let line = plain(line.trim_end_matches(['\r', '\n']).into());
        let (item, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let mut fields = Fields(rest);
        match (item, &mut program) {
            ("E", _) if version > 1 => {
                let expected = fields.decimal("number of lines")?;
                input.counts(expected)?;
                break;
            }
            ("K", None) => programs.complete = false,
            ("P", before) => {
                let next = (fields.program()?, BTreeSet::new(), L::default());
                before.replace(next).into_iter().for_each(|program| end(&mut programs, program));
            }
            ("I", Some((_, images, _))) => {
                images.insert(rest.to_owned());
            }
            (_, Some((.., lines))) => lines.line(item, fields)?,
            (_, None) => return Err(SavedErrorKind::Misplaced),
        }
    }
    program.into_iter().for_each(|program| end(&mut programs, program));
    Ok(programs)
}

fn end<L: ReadLines>(
    programs: &mut Programs<L::Found>,
    (id, images, lines): (ProgramId, BTreeSet<String>, L),
) {
    programs.add(id, images, lines.finish());
}

/// The unread fields of a line.
#[derive(Debug)]
pub struct Fields<'a>(&'a str);

impl<'a> Fields<'a> {
    /// The unread rest, as one text.
    pub(crate) const fn rest(self) -> &'a str {
        self.0
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn word(&mut self, field: &'static str) -> Result<&'a str, SavedErrorKind> {
        let (word, rest) = self.0.split_once(' ').unwrap_or((self.0, ""));
        self.0 = rest;
        if word.is_empty() {
            return Err(SavedErrorKind::Field { field, found: String::new() });
        }
        Ok(word)
    }

    pub(crate) fn parsed<T>(
        &mut self,
        field: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, SavedErrorKind> {
        let word = self.word(field)?;
        parse(word).ok_or_else(|| SavedErrorKind::Field { field, found: word.to_owned() })
    }

    /// Reads one of several words, each with its value.
    pub(crate) fn one_of<T: Copy>(
        &mut self,
        field: &'static str,
        all: &[T],
        word: impl Fn(T) -> &'static str,
    ) -> Result<T, SavedErrorKind> {
        self.parsed(field, |found| all.iter().copied().find(|known| word(*known) == found))
    }

    pub(crate) fn decimal(&mut self, field: &'static str) -> Result<u64, SavedErrorKind> {
        self.parsed(field, |word| word.parse().ok())
    }

    pub(crate) fn in_doubt(&mut self) -> Result<InDoubt, SavedErrorKind> {
        Ok(InDoubt {
            left_out: self.decimal("instructions left out")?,
            counted: self.decimal("instructions counted")?,
        })
    }

    pub(crate) fn address(&mut self, field: &'static str) -> Result<Address, SavedErrorKind> {
        self.parsed(field, words::address)
    }

    pub(crate) fn isa(&mut self) -> Result<Isa, SavedErrorKind> {
        self.parsed("isa", Isa::of_word)
    }

    /// `0x10 etmv3 1`, `- mtb 2`
    pub(crate) fn source_id(&mut self) -> Result<SourceId, SavedErrorKind> {
        let id = self.parsed("trace ID", or_dash(words::trace_id))?;
        let protocol = self.parsed("protocol", words::protocol)?;
        let number = self.parsed("source's number", |word| word.parse().ok().filter(|number| *number > 0))?;
        Ok(SourceId { id, protocol, number })
    }

    /// `context=0x42,vmid=0x1`, or a dash for all contexts.
    pub(crate) fn scope(&mut self, field: &'static str) -> Result<Scope, SavedErrorKind> {
        self.parsed(field, |word| {
            let mut scope = Scope::EVERYWHERE;
            for part in word.split(',').filter(|_| word != "-") {
                match part.split_once("=0x")? {
                    ("context", id) => scope.context_id = Some(words::context_id(id)?),
                    ("vmid", vmid) => scope.vmid = Some(words::vmid(vmid)?),
                    _ => return None,
                }
            }
            Some(scope)
        })
    }

    /// `named 8000306 -`
    pub(crate) fn function(&mut self) -> Result<FunctionId, SavedErrorKind> {
        let kind = self.word("kind of function")?;
        Ok(match kind {
            "named" => FunctionId::Named(self.address("address")?, self.scope("context")?),
            "unnamed" => FunctionId::Unnamed(self.address("address")?, self.scope("context")?),
            "missing" => FunctionId::Missing(self.address("address")?),
            "unknown" => FunctionId::Unknown,
            _ => {
                return Err(SavedErrorKind::Field { field: "kind of function", found: kind.to_owned() });
            }
        })
    }

    /// `m 15`, `ar 14`, or a dash.
    pub(crate) fn exception(&mut self) -> Result<Option<Exception>, SavedErrorKind> {
        const NUMBER: &str = "exception number";
        let profile = self.word("profile")?;
        if profile == "-" {
            return Ok(None);
        }
        // Only a known numbering has the number 0.
        if Exception::numbered(profile, 0).is_none() {
            return Err(SavedErrorKind::Field { field: "profile", found: profile.to_owned() });
        }
        self.parsed(NUMBER, |word| Exception::numbered(profile, word.parse().ok()?)).map(Some)
    }

    fn program(&mut self) -> Result<ProgramId, SavedErrorKind> {
        match self.word("kind of identity")? {
            "build" => {
                let mut ids = BTreeSet::from([self.parsed("build ID", words::bytes)?]);
                while !self.is_empty() {
                    ids.insert(self.parsed("build ID", words::bytes)?);
                }
                Ok(ProgramId::Builds(ids))
            }
            "code" => self.parsed("hash", |word| words::bytes(word)?.try_into().ok()).map(ProgramId::Code),
            found => Err(SavedErrorKind::Field { field: "kind of identity", found: found.to_owned() }),
        }
    }
}

/// Reads `-` as an absent value.
pub(crate) fn or_dash<T>(read: impl FnOnce(&str) -> Option<T>) -> impl FnOnce(&str) -> Option<Option<T>> {
    |word| if word == "-" { Some(None) } else { read(word).map(Some) }
}
