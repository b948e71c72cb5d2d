//! Wraps lines that are too long for a terminal.

use std::io::{self, Write};

use super::{Glyph, columns, glyphs};

/// A writer of text for people, which continues a line that is too wide below the column that it belongs to.
///
/// Lines end between columns (two blanks or more), else between words; a word that no line holds is divided. A rule is
/// shortened. Escape sequences of colours need no room.
#[derive(Debug)]
pub struct Fitted<W> {
    out: W,
    width: Option<usize>,
    /// The incomplete line.
    line: Vec<u8>,
}

/// The fewest columns for which lines are broken: columns of a few letters are unreadable.
const NARROWEST: usize = 20;

impl<W> Fitted<W> {
    /// Writes to `out` in at most `width` columns; without a width, lines are not broken.
    #[must_use]
    pub const fn new(out: W, width: Option<usize>) -> Self {
        let width = match width {
            Some(width) if width >= NARROWEST => Some(width),
            _ => None,
        };
        Self { out, width, line: Vec::new() }
    }
}

impl<W: Write> Write for Fitted<W> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(width) = self.width else { return self.out.write_all(bytes) };
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            match piece.strip_suffix(b"\n") {
                Some(end) => {
                    self.line.extend_from_slice(end);
                    let line = String::from_utf8_lossy(&self.line);
                    write_fitted(&mut self.out, &line, width)?;
                    self.out.write_all(b"\n")?;
                    self.line.clear();
                }
                None => self.line.extend_from_slice(piece),
            }
        }
        Ok(())
    }

    /// Shows a line that has no end yet, as it is.
    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.line)?;
        self.line.clear();
        self.out.flush()
    }
}

fn write_fitted(out: &mut impl Write, line: &str, width: usize) -> io::Result<()> {
    if line.len() <= width || columns(line) <= width {
        return out.write_all(line.as_bytes());
    }
    let mut rest = without_filling(line, width);
    let margin = margin(&rest, width);
    let mut indent = 0;
    loop {
        write!(out, "{:indent$}", "")?;
        let room = width - indent;
        let Some(end) = line_end(&rest, room, margin.saturating_sub(indent)) else {
            return write_seen(out, &rest, room);
        };
        let (head, tail) = rest.split_at(end);
        write_seen(out, head, room)?;
        out.write_all(b"\n")?;
        rest = tail.trim_start_matches(' ').to_owned();
        indent = margin;
    }
}

/// A text without the blanks at its end.
fn write_seen(out: &mut impl Write, text: &str, room: usize) -> io::Result<()> {
    let seen = glyphs(text).scan(0, |at, glyph| {
        *at += glyph.columns;
        Some((*at, glyph))
    });
    let seen_to = seen.filter(|(_, glyph)| glyph.columns > 0 && glyph.text != " ").map(|(at, _)| at).last();
    let (mut at, end) = (0, seen_to.unwrap_or(0).min(room));
    for glyph in glyphs(text) {
        at += glyph.columns;
        if at <= end || glyph.columns == 0 {
            out.write_all(glyph.text.as_bytes())?;
        }
    }
    Ok(())
}

/// A rule, shortened to the width.
fn without_filling(line: &str, width: usize) -> String {
    const FILLING: char = '─';
    let mut text = line.to_owned();
    while columns(&text) > width {
        let Some(last) = text.rfind(FILLING) else { break };
        let ends_so = glyphs(&text[last + FILLING.len_utf8()..]).all(|glyph| glyph.columns == 0);
        if !ends_so || !text[..last].ends_with(FILLING) {
            break;
        }
        text.remove(last);
    }
    text
}

/// The indentation of continued lines: the last column that begins in the first two thirds, or slightly more than the line's own
/// margin.
fn margin(line: &str, width: usize) -> usize {
    let (mut at, mut blanks, mut begun, mut found) = (0, 0, None, None);
    for glyph in glyphs(line).filter(|glyph| glyph.columns > 0) {
        if glyph.text == " " {
            blanks += 1;
        } else {
            if begun.is_none() {
                begun = Some(at);
            } else if blanks >= 2 && at <= width * 2 / 3 {
                found = Some(at);
            }
            blanks = 0;
        }
        at += glyph.columns;
    }
    let least = begun.unwrap_or(0) + 2;
    found.unwrap_or(least).min(width * 2 / 3)
}

/// The length in bytes of the first line of this text, if it takes more than one. Text before `fixed` columns is never broken.
fn line_end(text: &str, room: usize, fixed: usize) -> Option<usize> {
    let (mut at, mut bytes, mut blanks) = (0, 0, 0);
    let (mut word, mut cell, mut last) = (None, None, 0);
    for glyph in glyphs(text) {
        if glyph.columns > 0 && glyph.text != " " {
            if at + glyph.columns > room {
                let enough = |(column, _): &(usize, usize)| *column > room / 2;
                let (_, end) = cell.filter(enough).or(word).unwrap_or((at, last));
                return Some(end.max(first_glyph(text)));
            }
            blanks = 0;
        } else if glyph.text == " " {
            if at > fixed {
                match blanks {
                    0 => word = Some((at, bytes)),
                    1 => cell = word,
                    _ => {}
                }
            }
            blanks += 1;
        }
        at += glyph.columns;
        bytes += glyph.text.len();
        last = bytes;
    }
    None
}

/// The bytes of the first glyph that is seen: a line holds at least that one.
fn first_glyph(text: &str) -> usize {
    let mut bytes = 0;
    for Glyph { text, columns } in glyphs(text) {
        bytes += text.len();
        if columns > 0 {
            break;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fitted(text: &str, width: usize) -> String {
        let mut out = Vec::new();
        let mut fitted = Fitted::new(&mut out, Some(width));
        // In pieces, as formatted writing comes.
        for piece in text.as_bytes().chunks(7) {
            fitted.write_all(piece).unwrap();
        }
        fitted.flush().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_line_goes_on_below_the_column_that_it_left() {
        let line = "     118  f5 42 1e  branch  addr 0x00000174  exception 15  cancel 0\n";
        assert_eq!(
            fitted(line, 44),
            "     118  f5 42 1e  branch  addr 0x00000174\n                            exception 15\n                            cancel 0\n"
        );
        assert_eq!(fitted(line, 99), line);
        assert_eq!(fitted("one two three four five six\n", 20), "one two three four\n  five six\n");
        assert_eq!(fitted("abcdefghijklmnopqrstuvwxyz\n", 20), "abcdefghijklmnopqrst\n  uvwxyz\n");
        assert_eq!(fitted("no end", 20), "no end");
    }

    #[test]
    fn a_rule_is_shortened_and_colours_need_no_room() {
        assert_eq!(fitted("── here ─────────────────\n", 20), "── here ────────────\n");
        let coloured = "\x1b[1m── here ─────────────────\x1b[0m\n";
        assert_eq!(fitted(coloured, 20), "\x1b[1m── here ────────────\x1b[0m\n");
        let coloured = "\x1b[1m\x1b[36m12345678901234567890\x1b[0m\n";
        assert_eq!(fitted(coloured, 20), coloured);
    }

    proptest! {
        #[test]
        fn no_line_is_too_wide_and_no_word_is_lost(
            lines in prop::collection::vec("( {0,9}(\x1b\\[[0-9]m)?[a-zµ写…:/─-]{0,30}){0,12}", 0..4),
            width in 20_usize..120,
        ) {
            let text = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
            let fitted = fitted(&text, width);
            for line in fitted.lines() {
                prop_assert!(columns(line) <= width, "{line:?}");
            }
            let letters = |text: &str| text.chars().filter(|char| !" \n─".contains(*char)).collect::<String>();
            prop_assert_eq!(letters(&fitted), letters(&text));
        }
    }
}
