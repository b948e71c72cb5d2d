//! Text that fits a terminal.

mod fitted;

use std::borrow::Cow;

use unicode_width::UnicodeWidthChar as _;

pub use fitted::Fitted;

/// A character as a terminal shows it, or an escape sequence, which takes no room.
#[derive(Clone, Copy, Debug)]
struct Glyph<'text> {
    text: &'text str,
    columns: usize,
}

/// A text's glyphs. Only escape sequences for colours are recognised.
fn glyphs(text: &str) -> impl Iterator<Item = Glyph<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let sequence =
            rest.strip_prefix("\x1b[").and_then(|sequence| sequence.find(|end| ('@'..='~').contains(&end)));
        let (length, columns) = match sequence {
            Some(end) => (end + 3, 0),
            None => (first.len_utf8(), first.width().unwrap_or(0)),
        };
        let (text, others) = rest.split_at(length);
        rest = others;
        Some(Glyph { text, columns })
    })
}

/// The columns of a text.
fn columns(text: &str) -> usize {
    glyphs(text).map(|glyph| glyph.columns).sum()
}

/// A text in at most this number of columns: without its middle, if it has more.
pub(crate) fn without_middle(text: &str, columns: usize) -> Cow<'_, str> {
    let count = text.chars().count();
    if count <= columns {
        return text.into();
    }
    let kept = columns.saturating_sub(1);
    // The end matters more: it is the line of a position.
    let head = if kept < 8 { 0 } else { kept / 3 };
    let tail = kept - head;
    let start = text.chars().take(head);
    let end = text.chars().skip(count - tail);
    start.chain("…".chars()).chain(end).collect::<String>().into()
}

/// A text in lines of at most this number of columns, which end between words. A longer word has a line of its own.
pub(crate) fn in_lines(text: &str, columns: usize) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = text;
    while rest.chars().count() > columns {
        let end = rest.char_indices().nth(columns).map_or(rest.len(), |(at, _)| at);
        let fitting = rest.get(..end).unwrap_or_default();
        // The blank after the last word that fits, or after the first word.
        let next = rest.get(end..).unwrap_or_default();
        let blank = if next.starts_with(' ') { Some(end) } else { fitting.rfind(' ').filter(|at| *at > 0) };
        let Some(blank) = blank.or_else(|| next.find(' ').map(|at| end + at)) else { break };
        lines.extend(rest.get(..blank));
        rest = rest.get(blank + 1..).unwrap_or_default();
    }
    lines.push(rest);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_between_words_and_hold_all_of_them() {
        assert_eq!(in_lines("one two three", 99), ["one two three"]);
        assert_eq!(in_lines("one two three", 7), ["one two", "three"]);
        assert_eq!(in_lines("one two three", 8), ["one two", "three"]);
        assert_eq!(in_lines("überlanges wort da", 4), ["überlanges", "wort", "da"]);
        assert_eq!(in_lines("", 4), [""]);
        for columns in 1..15 {
            assert_eq!(in_lines("one two three", columns).join(" "), "one two three");
        }
    }

    #[test]
    fn the_middle_of_a_text_goes_and_its_end_stays() {
        assert_eq!(without_middle("quicksort.c:56", 14), "quicksort.c:56");
        assert_eq!(without_middle("quicksort.c:56", 10), "qui…t.c:56");
        assert_eq!(without_middle("übermäßig.c:7", 6), "…g.c:7");
        for columns in 1..20 {
            let text = without_middle("quicksort.c:56", columns);
            assert_eq!(text.chars().count(), columns.min(14), "{text}");
        }
    }
}
