//! Text from a file, made safe for messages and terminals.
//!
//! Names in a file may hold anything: a line break that makes two messages of one, an escape sequence that
//! the terminal obeys. [`Plain`] replaces such characters. Every message that quotes a file goes through
//! [`Plain`], and every name of a program when it is read.
//!
//! ```
//! use tracewalk::plain::Plain;
//!
//! assert_eq!(Plain("main\n\x1b[2J").to_string(), "main\u{fffd}\u{fffd}[2J");
//! ```

use alloc::borrow::Cow;
use alloc::string::{String, ToString as _};
use core::fmt::{self, Write as _};

/// Displays its content on one line. U+FFFD replaces each character that a terminal would obey.
#[derive(Clone, Copy, Debug)]
pub struct Plain<T>(pub T);

/// The text as [`Plain`] shows it.
#[must_use]
pub fn plain(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) || text.chars().all(is_plain) {
        return text;
    }
    Cow::Owned(text.chars().map(shown).collect::<String>())
}

/// The character that is shown for `character`: itself or U+FFFD.
#[must_use]
pub fn shown(character: char) -> char {
    if is_plain(character) { character } else { char::REPLACEMENT_CHARACTER }
}

/// Whether a character neither is a control character, nor ends a line, nor changes the direction of the text
/// after it.
fn is_plain(character: char) -> bool {
    !character.is_control()
        && !matches!(character, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

impl<T: fmt::Display> fmt::Display for Plain<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Padding needs the length of the whole text.
        if f.width().is_some() || f.precision().is_some() {
            return f.pad(&plain(self.0.to_string().into()));
        }
        write!(Writer(f), "{}", self.0)
    }
}

struct Writer<'a, 'f>(&'a mut fmt::Formatter<'f>);

impl fmt::Write for Writer<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write_str(&plain(text.into()))
    }

    fn write_char(&mut self, character: char) -> fmt::Result {
        self.0.write_char(shown(character))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    #[test]
    fn what_a_terminal_would_obey_is_replaced_and_all_else_is_kept() {
        let text = "a\nb\r\tc\u{1b}[31m\u{7f}\u{9b}\u{2028}\u{202e}äöü — 日本";
        let expected = "a\u{fffd}b\u{fffd}\u{fffd}c\u{fffd}[31m\u{fffd}\u{fffd}\u{fffd}\u{fffd}äöü — 日本";
        assert_eq!(plain(text.into()), expected);
        assert_eq!(Plain(format_args!("{text}{}", '\n')).to_string(), format!("{expected}\u{fffd}"));
        assert!(matches!(plain("operator<< <int>".into()), Cow::Borrowed(_)));
    }

    #[test]
    fn columns_are_padded() {
        assert_eq!(format!("{:4}|{:>4}|{:.1}", Plain("a\n"), Plain(7), Plain("abc")), "a\u{fffd}  |   7|a");
    }
}
