//! The file format of a recorded path, the reference that decoders are compared with.
//!
//! Plain text, one item a line, in the order in which things happened. Numbers are hexadecimal without `0x`, lower
//! case, apart from exception numbers and sizes, which are decimal.
//!
//! ```text
//! # tracewalk record 1
//! P ar                              the processor's profile: m, or ar for A and R; a64 for A in AArch64
//! R 8000306 8000316 t32 !800030a    these addresses ran in order, end exclusive; isa: a32 t32 a64; the instructions
//!                                   after ! were passed over because their condition failed
//! D 800030c 20000010 4 r 1234       the instruction at 800030c, in the run above, loaded four bytes from 20000010
//!                                   that hold 1234; w for a store; - for an unknown value
//! C 8000310 2                       the instruction at 8000310, in the run above, set the Context ID register to 2
//! X 15 8000316 8000408              exception 15 was taken: preferred return address, first instruction of the handler
//! T                                 the last instruction returned from an exception
//! L 1 ns                            the exception level is 1 from here on, and the state Non-secure: where it is said
//! ```
//!
//! - `R` is as long as possible: it ends at a taken branch to anywhere but the next address, and at X and T.
//! - The X number is the architecture's for M profile, the trace unit's exception code for A and R profile,
//!   and ETMv4's exception type after `P a64`. The preferred return address is `-` if an M-profile exception
//!   replaced another one's return.
//! - An instruction that made a supervisor call or was undefined is in the R before the X. An instruction
//!   that aborted is not, and neither is a breakpoint instruction; the X names it as the preferred return
//!   address.

use std::fmt::{self, Display, Formatter};

pub use tracewalk::ids::Profile;
use tracewalk::ids::{Address, ContextId, Exception, Isa};

use crate::path::{Access, State, Taken};

/// A recorded path in its compact form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The profile, which determines the exception numbers.
    pub profile: Profile,
    /// The lines after the profile, in order.
    pub lines: Vec<Line>,
}

/// One line of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// `R`: instructions ran in order.
    Run(Run),
    /// `D`: an instruction of the run above accessed memory.
    Access {
        /// The instruction.
        instruction: Address,
        /// The access.
        access: Access,
    },
    /// `C`: an instruction of the run above set the Context ID register.
    ContextId {
        /// The instruction.
        instruction: Address,
        /// The new value.
        context_id: ContextId,
    },
    /// `X`: an exception was taken.
    Exception(Taken),
    /// `T`: the last instruction returned from an exception.
    ExceptionReturn,
    /// `L`: exception level and security state from here on.
    State(State),
}

/// Instructions that ran in the order of their addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The address of the first instruction.
    pub start: Address,
    /// The address after the last one.
    pub end: Address,
    /// The instruction set.
    pub isa: Isa,
    /// The instructions whose condition failed, in order.
    pub failed: Vec<Address>,
}

/// Why a text is not a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with the line.
    pub kind: ParseErrorKind,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParseErrorKind {
    /// The first line is not the format's name and version.
    NotARecord,
    /// The second line does not state the profile.
    NoProfile,
    /// The line begins with an unknown letter.
    UnknownItem {
        /// The first word of the line.
        found: String,
    },
    /// The line ends too early.
    Missing {
        /// The field that should come next.
        field: &'static str,
    },
    /// A field holds an invalid value.
    Invalid {
        /// The field.
        field: &'static str,
        /// The value.
        found: String,
    },
    /// Text follows the last field.
    Excess {
        /// The text.
        found: String,
    },
}

impl Display for ParseError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        match &self.kind {
            ParseErrorKind::NotARecord => write!(f, "not a record, expected \"{HEADER}\""),
            ParseErrorKind::NoProfile => write!(f, "expected the profile, \"P m\", \"P ar\" or \"P a64\""),
            ParseErrorKind::UnknownItem { found } => {
                write!(f, "found \"{found}\", expected R, D, C, X, T or L")
            }
            ParseErrorKind::Missing { field } => write!(f, "the {field} is missing"),
            ParseErrorKind::Invalid { field, found } => write!(f, "\"{found}\" is not a valid {field}"),
            ParseErrorKind::Excess { found } => write!(f, "found \"{found}\" after the last field"),
        }
    }
}

impl std::error::Error for ParseError {}

const HEADER: &str = "# tracewalk record 1";

impl Record {
    /// Reads a record.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let at = |line: usize| move |kind| ParseError { line, kind };
        let mut lines = text.lines().zip(1..);
        if lines.next().is_none_or(|(line, _)| line != HEADER) {
            return Err(at(1)(ParseErrorKind::NotARecord));
        }
        let numbers = match lines.next() {
            Some(("P m", _)) => Numbers::M,
            Some(("P ar", _)) => Numbers::Ar,
            Some(("P a64", _)) => Numbers::Types,
            _ => return Err(at(2)(ParseErrorKind::NoProfile)),
        };
        let lines = lines
            .map(|(line, number)| parse_line(line, numbers).map_err(at(number)))
            .collect::<Result<_, _>>()?;
        let profile = if matches!(numbers, Numbers::M) { Profile::M } else { Profile::Ar };
        Ok(Self { profile, lines })
    }

    /// The record in the `runs` format of `tracewalk flow`, without the lines that name a source.
    #[must_use]
    pub fn runs(&self) -> Runs<'_> {
        Runs(self)
    }
}

impl Display for Record {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEADER}")?;
        let has_type =
            |line: &Line| matches!(line, Line::Exception(Taken { exception: Exception::ArType(_), .. }));
        let profile = match self.profile {
            Profile::M => "m",
            Profile::Ar if self.lines.iter().any(has_type) => "a64",
            Profile::Ar => "ar",
        };
        writeln!(f, "P {profile}")?;
        for line in &self.lines {
            match line {
                Line::Run(run) => {
                    write!(f, "R {} {} {}", Hex(run.start), Hex(run.end), run.isa.word())?;
                    for failed in &run.failed {
                        write!(f, " !{}", Hex(*failed))?;
                    }
                    writeln!(f)?;
                }
                Line::Access { instruction, access } => {
                    let direction = if access.store { 'w' } else { 'r' };
                    write!(
                        f,
                        "D {} {} {} {direction}",
                        Hex(*instruction),
                        Hex(access.address),
                        access.bytes
                    )?;
                    match access.value {
                        Some(value) => writeln!(f, " {value:x}")?,
                        None => writeln!(f, " -")?,
                    }
                }
                Line::ContextId { instruction, context_id } => {
                    writeln!(f, "C {} {:x}", Hex(*instruction), context_id.0)?;
                }
                Line::Exception(taken) => {
                    write_exception(f, taken)?;
                    writeln!(f, " {}", Hex(taken.handler))?;
                }
                Line::ExceptionReturn => writeln!(f, "T")?,
                Line::State(state) => {
                    writeln!(f, "L {}{}", state.level, if state.non_secure { " ns" } else { "" })?;
                }
            }
        }
        Ok(())
    }
}

/// The numbering of a record's exceptions.
#[derive(Clone, Copy)]
enum Numbers {
    M,
    Ar,
    /// ETMv4's exception types.
    Types,
}

/// Displays a record in the `runs` format.
#[derive(Clone, Copy, Debug)]
pub struct Runs<'a>(&'a Record);

impl Display for Runs<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for line in &self.0.lines {
            match line {
                Line::Run(run) => writeln!(f, "R {} {} {}", Hex(run.start), Hex(run.end), run.isa.word())?,
                Line::Exception(taken) => {
                    write_exception(f, taken)?;
                    writeln!(f)?;
                }
                Line::ExceptionReturn => writeln!(f, "T")?,
                Line::Access { .. } | Line::ContextId { .. } | Line::State(_) => {}
            }
        }
        Ok(())
    }
}

/// Writes the exception number and the preferred return address, which both formats share.
fn write_exception(f: &mut Formatter<'_>, taken: &Taken) -> fmt::Result {
    write!(f, "X {} ", taken.exception.number())?;
    match taken.preferred_return {
        Some(address) => write!(f, "{}", Hex(address)),
        None => write!(f, "-"),
    }
}

/// An address as `tracewalk flow` writes it: with all its digits from 2^32 on.
struct Hex(Address);

impl Display for Hex {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match u32::try_from(self.0.get()) {
            Ok(low) => write!(f, "{low:x}"),
            Err(_) => write!(f, "{:016x}", self.0.get()),
        }
    }
}

fn parse_line(line: &str, numbers: Numbers) -> Result<Line, ParseErrorKind> {
    let mut words = Words(line.split(' '));
    let item = match words.next("item")? {
        "R" => Line::Run(words.run()?),
        "D" => Line::Access {
            instruction: words.address("instruction")?,
            access: Access {
                address: words.address("address")?,
                bytes: words
                    .parse("size", |word| word.parse().ok().filter(|size| [1, 2, 4, 8].contains(size)))?,
                store: words.parse("direction", |word| match word {
                    "r" => Some(false),
                    "w" => Some(true),
                    _ => None,
                })?,
                value: words.parse("value", or_dash(|word| u64::from_str_radix(word, 16).ok()))?,
            },
        },
        "C" => Line::ContextId {
            instruction: words.address("instruction")?,
            context_id: ContextId(words.parse("context ID", |word| u32::from_str_radix(word, 16).ok())?),
        },
        "X" => Line::Exception(Taken {
            exception: words.parse("exception number", |word| match numbers {
                Numbers::M => word.parse().ok().map(Exception::M),
                Numbers::Ar => word.parse().ok().map(Exception::Ar),
                Numbers::Types => word.parse().ok().map(Exception::ArType),
            })?,
            preferred_return: words.parse("preferred return address", or_dash(hexadecimal))?,
            handler: words.address("handler")?,
        }),
        "T" => Line::ExceptionReturn,
        "L" => Line::State(State {
            level: words
                .parse("exception level", |word| word.parse().ok().filter(|&level: &u8| level < 4))?,
            non_secure: match words.0.next() {
                None => false,
                Some("ns") => true,
                Some(excess) => return Err(ParseErrorKind::Excess { found: excess.to_owned() }),
            },
        }),
        other => return Err(ParseErrorKind::UnknownItem { found: other.to_owned() }),
    };
    match words.0.next() {
        Some(excess) => Err(ParseErrorKind::Excess { found: excess.to_owned() }),
        None => Ok(item),
    }
}

/// The words of a line.
struct Words<'a>(std::str::Split<'a, char>);

impl<'a> Words<'a> {
    fn next(&mut self, field: &'static str) -> Result<&'a str, ParseErrorKind> {
        self.0.next().ok_or(ParseErrorKind::Missing { field })
    }

    fn parse<T>(
        &mut self,
        field: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, ParseErrorKind> {
        let word = self.next(field)?;
        read(word).ok_or_else(|| ParseErrorKind::Invalid { field, found: word.to_owned() })
    }

    fn address(&mut self, field: &'static str) -> Result<Address, ParseErrorKind> {
        self.parse(field, hexadecimal)
    }

    fn run(&mut self) -> Result<Run, ParseErrorKind> {
        let start = self.address("start")?;
        let end = self.address("end")?;
        let isa = self.parse("instruction set", Isa::of_word)?;
        let mut failed = Vec::new();
        for word in self.0.by_ref() {
            let address = word.strip_prefix('!').and_then(hexadecimal);
            failed.push(address.ok_or_else(|| ParseErrorKind::Invalid {
                field: "failed instruction",
                found: word.to_owned(),
            })?);
        }
        Ok(Run { start, end, isa, failed })
    }
}

fn hexadecimal(word: &str) -> Option<Address> {
    u64::from_str_radix(word, 16).ok().map(Address::new)
}

/// Reads `-` as `None`.
fn or_dash<T>(read: impl FnOnce(&str) -> Option<T>) -> impl FnOnce(&str) -> Option<Option<T>> {
    |word| if word == "-" { Some(None) } else { read(word).map(Some) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = "\
# tracewalk record 1
P m
R 8000306 8000316 t32 !800030a
D 800030c 20000010 4 r 1234
D 800030e e000e010 1 w -
C 8000310 2
X 15 8000316 8000408
R 8000408 800040a t32
T
X 14 - 8000410
";

    #[test]
    fn a_record_is_written_as_it_was_read() {
        assert_eq!(Record::parse(EXAMPLE).unwrap().to_string(), EXAMPLE);
    }

    #[test]
    fn runs_leave_out_what_the_runs_format_has_not() {
        let runs = Record::parse(EXAMPLE).unwrap().runs().to_string();
        assert_eq!(runs, "R 8000306 8000316 t32\nX 15 8000316\nR 8000408 800040a t32\nT\nX 14 -\n");
    }

    #[test]
    fn levels_and_types_of_exceptions_are_written_as_they_were_read() {
        let text = "# tracewalk record 1\nP a64\nL 3\nR 100 104 a64\nX 2 104 200\nL 1 ns\nR 200 204 a64\nT\nL 0 ns\n";
        let record = Record::parse(text).unwrap();
        assert_eq!(record.to_string(), text);
        assert_eq!(record.runs().to_string(), "R 100 104 a64\nX 2 104\nR 200 204 a64\nT\n");
    }

    #[test]
    fn errors_name_the_line_and_what_stands_there() {
        let error = |text: &str| Record::parse(text).unwrap_err().to_string();
        assert_eq!(error("# tracewalk runs 1\n"), "line 1: not a record, expected \"# tracewalk record 1\"");
        let line_3 = |line: &str| error(&format!("# tracewalk record 1\nP ar\n{line}\n"));
        assert_eq!(line_3("Q 1"), "line 3: found \"Q\", expected R, D, C, X, T or L");
        assert_eq!(line_3("R 0 4"), "line 3: the instruction set is missing");
        assert_eq!(line_3("R 0 4 a32 2"), "line 3: \"2\" is not a valid failed instruction");
        assert_eq!(line_3("D 0 4 3 r 0"), "line 3: \"3\" is not a valid size");
        assert_eq!(line_3("X 256 0 8"), "line 3: \"256\" is not a valid exception number");
        assert_eq!(line_3("T T"), "line 3: found \"T\" after the last field");
    }
}
