//! Places as users write them: one grammar for every option and argument that takes one.

use std::error::Error;
use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use tracewalk::ids::Address;
use tracewalk::span::CaptureOffset;

use super::{ExceptionName, Happening, Place, Position};

/// The expected notation, for error messages.
const EXPECTED: &str = "expected a number of instructions (2000), of cycles (2000c), a timestamp (2000t), a byte of the capture (@0x7d0), \
                        an address (0x8000306), a function (main, main+0x10), a line (main.c:33) or an exception \
                        (exception:SysTick, exception:15, exception:any), with #2 appended for the second time";

impl FromStr for Place {
    type Err = ParsePlaceError;

    /// ```
    /// use tracewalk_analysis::{Place, Position};
    ///
    /// assert_eq!("2000c".parse(), Ok(Place::from(Position::Cycles(2000))));
    /// assert_eq!("main#2".parse::<Place>()?.to_string(), "main#2");
    /// # Ok::<(), tracewalk_analysis::place::ParsePlaceError>(())
    /// ```
    fn from_str(text: &str) -> Result<Self, ParsePlaceError> {
        place(text).map_err(ParsePlaceError)
    }
}

/// Why a text is not a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsePlaceError(String);

impl fmt::Display for ParsePlaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for ParsePlaceError {}

/// A number of at most 64 bits, in hexadecimal with 0x or in decimal; underscores may group the digits.
#[must_use]
pub fn number(text: &str) -> Option<u64> {
    let digits = text.replace('_', "");
    let number = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) if !hex.starts_with('+') => u64::from_str_radix(hex, 16),
        Some(_) => return None,
        None if digits.starts_with('+') => return None,
        None => digits.parse(),
    };
    number.ok()
}

/// Reads a place.
fn place(text: &str) -> Result<Place, String> {
    let text = text.trim();
    let (what, nth) = match text.rsplit_once('#') {
        Some((what, nth)) if is_number(nth) => (what, Some(nth)),
        _ => (text, None),
    };
    let nth = match nth.map(|nth| number(nth).and_then(NonZeroU64::new)) {
        Some(None) => return Err("the count after # starts at 1".to_owned()),
        Some(nth) => nth,
        None => None,
    };
    match (position(what), happening(what)) {
        (Some(_), _) if nth.is_some() => Err(format!("`{what}` occurs only once: leave out #")),
        (Some(position), _) => Ok(position.into()),
        (None, Some(what)) => Ok(Place::Happening { what, nth: nth.unwrap_or(NonZeroU64::MIN) }),
        (None, None) => Err(EXPECTED.to_owned()),
    }
}

fn position(text: &str) -> Option<Position> {
    if let Some(offset) = text.strip_prefix('@') {
        return number(offset).map(|at| Position::Capture(CaptureOffset(at)));
    }
    let counted = |digits: &str| number(digits).filter(|_| is_number(digits));
    match text.strip_suffix(['c', 't']) {
        Some(digits) if text.ends_with('c') => counted(digits).map(Position::Cycles),
        Some(digits) => counted(digits).map(Position::Time),
        None => counted(text).map(Position::Instructions),
    }
}

fn happening(text: &str) -> Option<Happening> {
    if let Some(name) = text.strip_prefix("exception:") {
        return exception(name).map(Happening::Exception);
    }
    if text.starts_with("0x") || text.starts_with("0X") {
        // Bit 0 of a pointer to Thumb code is not part of the address.
        return number(text).map(|address| Happening::Address(Address::new(address & !1)));
    }
    if let Some((file, line)) = text.rsplit_once(':')
        && is_number(line)
        && !file.is_empty()
    {
        let line = number(line).and_then(|line| u32::try_from(line).ok())?;
        return Some(Happening::Line { file: file.to_owned(), line });
    }
    let offset = text.rsplit_once('+').and_then(|(name, offset)| Some((name, number(offset)?)));
    let (name, offset) = offset.filter(|(name, _)| !name.is_empty()).unwrap_or((text, 0));
    let begins_a_name =
        |first: char| !first.is_ascii_digit() && !matches!(first, '-' | '+' | '@' | '#' | ':');
    name.starts_with(begins_a_name).then(|| Happening::Function { name: name.to_owned(), offset })
}

fn exception(name: &str) -> Option<ExceptionName> {
    Some(match name {
        "" => return None,
        "any" => ExceptionName::Any,
        _ if is_number(name) => {
            ExceptionName::Number(number(name).and_then(|number| u16::try_from(number).ok())?)
        }
        _ => ExceptionName::Named(name.to_owned()),
    })
}

/// Whether a text is a decimal number.
fn is_number(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_digit() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_written_with_their_unit() {
        let cases = [
            ("2000", Position::Instructions(2000)),
            ("2_000", Position::Instructions(2000)),
            ("7c", Position::Cycles(7)),
            ("5000000000t", Position::Time(5_000_000_000)),
            ("@0x20", Position::Capture(CaptureOffset(0x20))),
            ("@32", Position::Capture(CaptureOffset(32))),
        ];
        for (text, expected) in cases {
            assert_eq!(place(text), Ok(expected.into()), "{text}");
        }
    }

    #[test]
    fn what_happens_is_an_address_a_function_a_line_or_an_exception() {
        let function = |name: &str, offset| Happening::Function { name: name.to_owned(), offset };
        let line = |file: &str, line| Happening::Line { file: file.to_owned(), line };
        let named = |name: &str| Happening::Exception(ExceptionName::Named(name.to_owned()));
        let cases = [
            ("0x10c", Happening::Address(Address::new(0x10c))),
            ("0x0800_0307", Happening::Address(Address::new(0x0800_0306))),
            ("main", function("main", 0)),
            ("main+0x10", function("main", 16)),
            ("_start", function("_start", 0)),
            ("operator+", function("operator+", 0)),
            ("core::fmt::write", function("core::fmt::write", 0)),
            ("c", function("c", 0)),
            ("main.c:33", line("main.c", 33)),
            ("src/main.c:33", line("src/main.c", 33)),
            ("C:\\src\\main.c:7", line("C:\\src\\main.c", 7)),
            ("exception:SysTick", named("SysTick")),
            ("exception:15", Happening::Exception(ExceptionName::Number(15))),
            ("exception:any", Happening::Exception(ExceptionName::Any)),
        ];
        for (text, expected) in cases {
            assert_eq!(place(text), Ok(Place::first(expected.clone())), "{text}");
            let third = Place::Happening { what: expected, nth: NonZeroU64::new(3).unwrap() };
            assert_eq!(place(&format!("{text}#3")), Ok(third), "{text}");
        }
    }

    #[test]
    fn what_is_no_place_is_refused() {
        for wrong in
            ["", "@", "-1", "+1", "1.5", "20s", "0xg", "#2", "main#0", "2000#2", "@7#1", "exception:", ":3"]
        {
            assert!(place(wrong).is_err(), "{wrong}");
        }
    }
}
