//! The fields of a line, and the words that they are written in.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, Write};

use tracewalk::ids::{Address, ContextId, Exception, Isa, TraceId, Vmid};
use tracewalk::program::Scope;

use super::error::SavedErrorKind;
use crate::InDoubt;
use crate::call_stack::FunctionId;
use crate::programs::{ProgramId, SourceId};

/// The fields of a line that were not read yet.
#[derive(Debug)]
pub struct Fields<'a>(&'a str);

impl<'a> Fields<'a> {
    pub(super) const fn new(line: &'a str) -> Self {
        Self(line)
    }

    /// All that is left, as one text.
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

    /// One of several words, each of which stands for something.
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
        self.parsed(field, address)
    }

    pub(crate) fn isa(&mut self) -> Result<Isa, SavedErrorKind> {
        self.one_of("isa", &[Isa::A32, Isa::T32, Isa::T32EE, Isa::Jazelle, Isa::A64], isa_word)
    }

    /// What [`source_words`] writes.
    pub(crate) fn source_id(&mut self) -> Result<SourceId, SavedErrorKind> {
        let id = self.parsed("trace ID", |word| match word {
            "-" => Some(None),
            word => u8::from_str_radix(word.strip_prefix("0x")?, 16).ok().and_then(TraceId::new).map(Some),
        })?;
        let protocol = self.one_of("protocol", &PROTOCOLS, |protocol| protocol)?;
        let number = self.parsed("source's number", |word| word.parse().ok().filter(|number| *number > 0))?;
        Ok(SourceId { id, protocol, number })
    }

    /// What [`scope_word`] writes.
    pub(crate) fn scope(&mut self, field: &'static str) -> Result<Scope, SavedErrorKind> {
        self.parsed(field, |word| {
            let mut scope = Scope::EVERYWHERE;
            for part in word.split(',').filter(|_| word != "-") {
                match part.split_once("=0x")? {
                    ("context", id) => {
                        scope.context_id = Some(ContextId(u32::from_str_radix(id, 16).ok()?));
                    }
                    ("vmid", vmid) => scope.vmid = Some(Vmid(u32::from_str_radix(vmid, 16).ok()?)),
                    _ => return None,
                }
            }
            Some(scope)
        })
    }

    /// What [`function_words`] writes.
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

    /// What [`exception_words`] writes.
    pub(crate) fn exception(&mut self) -> Result<Option<Exception>, SavedErrorKind> {
        const NUMBER: &str = "exception number";
        let profile = self.word("profile")?;
        if profile == "-" {
            return Ok(None);
        }
        // Only a numbering that is known has the number 0.
        if Exception::numbered(profile, 0).is_none() {
            return Err(SavedErrorKind::Field { field: "profile", found: profile.to_owned() });
        }
        self.parsed(NUMBER, |word| Exception::numbered(profile, word.parse().ok()?)).map(Some)
    }

    pub(super) fn program(&mut self) -> Result<ProgramId, SavedErrorKind> {
        match self.word("kind of identity")? {
            "build" => {
                let mut ids = BTreeSet::from([self.parsed("build ID", from_hex)?]);
                while !self.is_empty() {
                    ids.insert(self.parsed("build ID", from_hex)?);
                }
                Ok(ProgramId::Builds(ids))
            }
            "code" => self.parsed("hash", |word| from_hex(word)?.try_into().ok()).map(ProgramId::Code),
            found => Err(SavedErrorKind::Field { field: "kind of identity", found: found.to_owned() }),
        }
    }
}

/// A number in hexadecimal.
pub(crate) fn address(word: &str) -> Option<Address> {
    u64::from_str_radix(word, 16).ok().map(Address::new)
}

fn from_hex(word: &str) -> Option<Vec<u8>> {
    let digits = word.bytes().map(|digit| char::from(digit).to_digit(16)).collect::<Option<Vec<_>>>()?;
    let bytes = digits.chunks(2).map(|pair| match pair {
        [high, low] => u8::try_from(high << 4 | low).ok(),
        _ => None,
    });
    bytes.collect()
}

/// Writes the line of a source's instructions in doubt, if there are any.
pub(crate) fn save_in_doubt(in_doubt: InDoubt, out: &mut dyn Write) -> io::Result<()> {
    let InDoubt { left_out, counted } = in_doubt;
    if in_doubt == InDoubt::default() { Ok(()) } else { writeln!(out, "Q {left_out} {counted}") }
}

pub(crate) const fn isa_word(isa: Isa) -> &'static str {
    match isa {
        Isa::A32 => "a32",
        Isa::T32 => "t32",
        Isa::T32EE => "t32ee",
        Isa::Jazelle => "jazelle",
        Isa::A64 => "a64",
    }
}

/// The protocols that have sources of program flow.
const PROTOCOLS: [&str; 3] = ["etmv3", "pft", "mtb"];

/// `0x10 etmv3 1`, `- mtb 2`
pub(crate) fn source_words(source: SourceId) -> String {
    let id = source.id.map_or_else(|| "-".to_owned(), |id| id.to_string());
    format!("{id} {} {}", source.protocol, source.number)
}

/// The value, or a dash where there is none.
pub(crate) fn or_dash<T: fmt::LowerHex>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:x}"))
}

/// `context=0x42,vmid=0x1`, or a dash for all contexts.
pub(crate) fn scope_word(scope: Scope) -> String {
    let context = scope.context_id.map(|id| format!("context={id}"));
    let vmid = scope.vmid.map(|vmid| format!("vmid={vmid}"));
    match (context, vmid) {
        (None, None) => "-".to_owned(),
        (Some(one), None) | (None, Some(one)) => one,
        (Some(context), Some(vmid)) => format!("{context},{vmid}"),
    }
}

/// `named 8000306 -`
pub(crate) fn function_words(function: FunctionId) -> String {
    match function {
        FunctionId::Named(at, scope) => format!("named {at:x} {}", scope_word(scope)),
        FunctionId::Unnamed(at, scope) => format!("unnamed {at:x} {}", scope_word(scope)),
        FunctionId::Missing(at) => format!("missing {at:x}"),
        FunctionId::Unknown => "unknown".to_owned(),
    }
}

/// `m 15`, `ar 14`, or a dash.
pub(crate) fn exception_words(exception: Option<Exception>) -> String {
    exception.map_or_else(
        || "-".to_owned(),
        |exception| format!("{} {}", exception.numbering(), exception.number()),
    )
}
