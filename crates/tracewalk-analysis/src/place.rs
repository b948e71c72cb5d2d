//! Places in an execution, as a user names them: after an amount (instructions, cycles, time, bytes), or the nth time that something
//! happens.
//!
//! A [`Place`] is the question. [`Happening::find`] looks up its addresses in one program, and in each view of the program separately,
//! because another process has other code at the same address.
//!
//! ```
//! use tracewalk::ids::Address;
//! use tracewalk_analysis::place::{Happening, Place, Position};
//!
//! let at_a_timestamp = Place::from(Position::Time(3_000_000));
//! assert_eq!(at_a_timestamp.position(), Some(Position::Time(3_000_000)));
//! let first_time_here = Place::first(Happening::Address(Address::new(0x0800_0306)));
//! assert_eq!(first_time_here.position(), None);
//! ```

mod parse;

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU64;

use tracewalk::ids::{Address, Exception};
use tracewalk::program::ViewId;
use tracewalk::span::CaptureOffset;

use crate::{Code, Interrupts};

pub use parse::{ParsePlaceError, number};

/// A place in a source's trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The place after an amount.
    Position(Position),
    /// The nth time that something happens.
    Happening {
        /// The event.
        what: Happening,
        /// The number of the time, from 1.
        nth: NonZeroU64,
    },
}

/// A position in a source's trace, by an amount before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// After this number of instructions.
    Instructions(u64),
    /// After this number of cycles.
    Cycles(u64),
    /// At the first timestamp that is not smaller, in ticks of the system's timestamp counter.
    Time(u64),
    /// At this byte of the capture.
    Capture(CaptureOffset),
}

/// Something that happens in an execution, perhaps often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// The instruction at an address is executed.
    Address(Address),
    /// A function is entered, or the instruction at an offset from its start is executed.
    Function {
        /// The function's name, as the program spells it or as the linker knows it.
        name: String,
        /// The offset from its start, in bytes.
        offset: u64,
    },
    /// Execution reaches the code of a line.
    Line {
        /// The end of the source file's path.
        file: String,
        /// The line, from 1.
        line: u32,
    },
    /// An exception is taken.
    Exception(ExceptionName),
}

/// A selection of exceptions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExceptionName {
    /// All exceptions.
    Any,
    /// Exceptions with this number, in the numbering of the source.
    Number(u16),
    /// Exceptions with this name, by the architecture or the chip's maker, in upper or lower case.
    Named(String),
}

/// A happening, resolved in one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The instructions at which it happens, sorted, in each view of the program.
    Instructions(BTreeMap<ViewId, Vec<Address>>),
    /// An exception.
    Exception(ExceptionName),
}

/// Why a happening does not exist in a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// No function has the name.
    Function,
    /// The function has fewer bytes.
    Offset {
        /// The function's bytes.
        bytes: u64,
    },
    /// No source file has the name.
    File,
    /// The line has no code. The nearest lines of the file with code, before it and after it.
    Line {
        /// The last line with code before this one.
        before: Option<u32>,
        /// The first line with code after this one.
        after: Option<u32>,
    },
}

impl Place {
    /// The first time that something happens.
    #[must_use]
    pub const fn first(what: Happening) -> Self {
        Self::Happening { what, nth: NonZeroU64::MIN }
    }

    /// The position, if the place is not a happening.
    #[must_use]
    pub const fn position(&self) -> Option<Position> {
        match self {
            Self::Position(position) => Some(*position),
            Self::Happening { .. } => None,
        }
    }

    /// Whether names or lines of the program are needed to find the place.
    #[must_use]
    pub const fn needs_names(&self) -> bool {
        matches!(self, Self::Happening { what: Happening::Function { .. } | Happening::Line { .. }, .. })
    }
}

impl From<Position> for Place {
    fn from(position: Position) -> Self {
        Self::Position(position)
    }
}

impl Position {
    /// Whether the position is before another one; `None` if they count different things.
    #[must_use]
    pub const fn is_before(self, other: Self) -> Option<bool> {
        match (self, other) {
            (Self::Instructions(one), Self::Instructions(other))
            | (Self::Cycles(one), Self::Cycles(other))
            | (Self::Time(one), Self::Time(other))
            | (Self::Capture(CaptureOffset(one)), Self::Capture(CaptureOffset(other))) => Some(one < other),
            _ => None,
        }
    }

    /// Whether the position is the beginning of the trace.
    #[must_use]
    pub const fn is_beginning(self) -> bool {
        let (Self::Instructions(count)
        | Self::Cycles(count)
        | Self::Time(count)
        | Self::Capture(CaptureOffset(count))) = self;
        count == 0
    }
}

impl Happening {
    /// Resolves the happening in a program.
    ///
    /// # Errors
    ///
    /// If the program has no such function, file or line.
    pub fn find(&self, code: &Code) -> Result<Found, Unknown> {
        if let Self::Exception(name) = self {
            return Ok(Found::Exception(name.clone()));
        }
        let main = (ViewId::default(), code);
        let views = code.views.iter().map(|(view, code)| (*view, &**code));
        let (mut found, mut problem) = (BTreeMap::new(), None);
        for (view, code) in std::iter::once(main).chain(views) {
            match self.instructions(code) {
                Ok(mut addresses) => {
                    addresses.sort_unstable();
                    addresses.dedup();
                    found.insert(view, addresses);
                }
                Err(unknown) => problem = problem.or(Some(unknown)),
            }
        }
        match problem {
            Some(unknown) if found.is_empty() => Err(unknown),
            _ => Ok(Found::Instructions(found)),
        }
    }

    /// The instructions at which it happens, in one view of a program.
    fn instructions(&self, code: &Code) -> Result<Vec<Address>, Unknown> {
        match self {
            Self::Address(address) => Ok(vec![*address]),
            Self::Exception(_) => Ok(Vec::new()),
            Self::Function { name, offset } => {
                let functions = code.symbols.functions_named(name);
                let longest = functions.iter().map(|function| function.end - function.start.get()).max();
                let bytes = longest.ok_or(Unknown::Function)?;
                let inside = |function: &crate::symbols::Extent| {
                    let at = function.start.checked_add(*offset)?;
                    (*offset == 0 || at.get() < function.end).then_some(at)
                };
                let found = functions.iter().filter_map(inside).collect::<Vec<_>>();
                if found.is_empty() { Err(Unknown::Offset { bytes }) } else { Ok(found) }
            }
            Self::Line { file, line } => line_starts(code, file, *line),
        }
    }
}

/// The first addresses of the pieces of a line's code.
fn line_starts(code: &Code, file: &str, line: u32) -> Result<Vec<Address>, Unknown> {
    let (mut is_known, mut before, mut after) = (false, None::<u32>, None::<u32>);
    let mut rows = code.symbols.line_extents(&mut |name, number| {
        if !is_end_of(file, name) {
            return false;
        }
        is_known = true;
        if number < line {
            before = before.max(Some(number));
        } else if number > line {
            after = Some(after.map_or(number, |after| after.min(number)));
        }
        number == line
    });
    rows.sort_unstable_by_key(|row| (row.start, row.end));
    let mut starts = Vec::new();
    let mut end = None;
    for row in rows.iter().filter(|row| row.start.get() < row.end) {
        // Adjacent code is the same piece.
        if end.is_none_or(|end| row.start.get() > end) {
            starts.push(row.start);
        }
        end = end.max(Some(row.end));
    }
    match (starts.is_empty(), is_known) {
        (false, _) => Ok(starts),
        (true, false) => Err(Unknown::File),
        (true, true) => Err(Unknown::Line { before, after }),
    }
}

/// Whether a path ends in the folders and the name of `end`.
fn is_end_of(end: &str, path: &str) -> bool {
    let parts = |path: &str| {
        let parts = path.split(['/', '\\']).filter(|part| !matches!(*part, "" | ".")).rev();
        parts.map(str::to_owned).collect::<Vec<_>>()
    };
    let (end, path) = (parts(end), parts(path));
    !end.is_empty() && path.starts_with(&end)
}

impl ExceptionName {
    /// Whether an exception matches. An exception without a number matches only [`ExceptionName::Any`].
    #[must_use]
    pub fn is(&self, exception: Option<Exception>, names: &Interrupts) -> bool {
        match (self, exception) {
            (Self::Any, _) => true,
            (_, None) => false,
            (Self::Number(number), Some(exception)) => exception.number() == *number,
            (Self::Named(name), Some(exception)) => {
                exception.to_string().eq_ignore_ascii_case(name)
                    || names.name(exception).is_some_and(|known| known.eq_ignore_ascii_case(name))
            }
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Instructions(count) => write!(f, "{count} instructions"),
            Self::Cycles(count) => write!(f, "{count} cycles"),
            Self::Time(time) => write!(f, "timestamp {time}"),
            Self::Capture(at) => write!(f, "byte {at}"),
        }
    }
}

impl fmt::Display for Happening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => write!(f, "{address}"),
            Self::Function { name, offset: 0 } => f.write_str(name),
            Self::Function { name, offset } => write!(f, "{name}+0x{offset:x}"),
            Self::Line { file, line } => write!(f, "{file}:{line}"),
            Self::Exception(ExceptionName::Any) => f.write_str("exception:any"),
            Self::Exception(ExceptionName::Number(number)) => write!(f, "exception:{number}"),
            Self::Exception(ExceptionName::Named(name)) => write!(f, "exception:{name}"),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Position(position) => position.fmt(f),
            Self::Happening { what, nth } if *nth == NonZeroU64::MIN => what.fmt(f),
            Self::Happening { what, nth } => write!(f, "{what}#{nth}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{page, pages};

    #[test]
    fn a_path_ends_in_whole_names() {
        for (end, path, expected) in [
            ("main.c", "/home/user/src/main.c", true),
            ("src/main.c", "C:\\user\\src\\main.c", true),
            ("main.c", "/home/user/src/domain.c", false),
            ("./main.c", "main.c", true),
            ("src/main.c", "main.c", false),
            ("", "main.c", false),
        ] {
            assert_eq!(is_end_of(end, path), expected, "{end} {path}");
        }
    }

    #[test]
    fn what_happens_is_looked_up_in_the_program() {
        let code = pages();
        let function = |name: &str, offset| Happening::Function { name: name.to_owned(), offset };
        let at = |address: u32| {
            Ok(Found::Instructions(BTreeMap::from([(ViewId::default(), vec![Address::from(address)])])))
        };
        assert_eq!(function("sort", 0).find(&code), at(page("sort")));
        assert_eq!(function("sort", 0x10).find(&code), at(page("sort") + 0x10));
        assert_eq!(function("sort", 0x100).find(&code), Err(Unknown::Offset { bytes: 0x100 }));
        assert_eq!(function("nobody", 0).find(&code), Err(Unknown::Function));
        let line = |file: &str, line| Happening::Line { file: file.to_owned(), line };
        // Line 2 of the samples has two pieces, one with two rows.
        let two = vec![Address::from(page("main") + 4), Address::from(page("main") + 0x20)];
        let found = Found::Instructions(BTreeMap::from([(ViewId::default(), two)]));
        assert_eq!(line("main.c", 2).find(&code), Ok(found));
        assert_eq!(line("other.c", 2).find(&code), Err(Unknown::File));
        let near = Unknown::Line { before: Some(2), after: Some(7) };
        assert_eq!(line("src/main.c", 5).find(&code), Err(near));
    }

    #[test]
    fn exceptions_have_numbers_and_names() {
        let names = Interrupts::from_iter([(28, "TIM2".to_owned())]);
        let named = |name: &str| ExceptionName::Named(name.to_owned());
        let tim2 = Some(Exception::M(44));
        for (name, expected) in [
            (named("tim2"), true),
            (named("IRQ28"), true),
            (named("IRQ2"), false),
            (ExceptionName::Number(44), true),
            (ExceptionName::Number(28), false),
            (ExceptionName::Any, true),
        ] {
            assert_eq!(name.is(tim2, &names), expected, "{name:?}");
        }
        assert!(ExceptionName::Any.is(None, &names) && !named("TIM2").is(None, &names));
    }
}
