//! What logs have before and within the output of debuggers: prompts, times and colours.

use std::borrow::Cow;

/// Removes prompts: if commands come from a file, their output follows the prompt on the same line.
pub(super) fn without_prompts(mut line: &str) -> &str {
    const PROMPTS: [&str; 4] = ["(gdb)", "J-Link>", "pyocd>", ">"];
    while let Some(rest) = PROMPTS.iter().find_map(|prompt| line.trim_start().strip_prefix(prompt)) {
        line = rest;
    }
    line
}

/// The text without escape sequences, and without the times or brackets that terminal programs put before most lines.
pub(super) fn cleaned(text: &str) -> Cow<'_, str> {
    let text = if text.contains('\x1b') { without_escapes(text).into() } else { Cow::Borrowed(text) };
    let lines = || text.lines().filter(|line| !line.trim().is_empty());
    let stamped = lines().filter(|line| after_stamp(line).is_some()).count();
    if stamped == 0 || stamped * 4 < lines().count() * 3 {
        return text;
    }
    let lines = text.lines().map(|line| after_stamp(line).unwrap_or(line));
    lines.flat_map(|line| [line, "\n"]).collect::<String>().into()
}

/// The text without escape sequences (ECMA-48, 5.3 and 5.4; those with an argument end in BEL, or in a sequence of their
/// own).
fn without_escapes(text: &str) -> String {
    let mut pieces = text.split('\x1b');
    let first = pieces.next().unwrap_or_default();
    let after = |piece: &'_ str| match piece.as_bytes().first() {
        Some(b'[') => piece.get(1..)?.find(|last: char| matches!(last, '@'..='~')).map(|last| last + 2),
        Some(b']') => piece.find('\x07').map(|end| end + 1),
        Some(b'(' | b')') => Some(2),
        _ => Some(1),
    };
    let rest = pieces.map(|piece| after(piece).and_then(|start| piece.get(start..)).unwrap_or_default());
    std::iter::once(first).chain(rest).collect()
}

/// The rest of a line after `[…]`, or after a time among its first words.
fn after_stamp(line: &str) -> Option<&str> {
    let is_time = |word: &str| {
        let mut parts = word.trim_end_matches([':', ',']).split(':');
        let mut number =
            || parts.next().is_some_and(|part| part.starts_with(|digit: char| digit.is_ascii_digit()));
        number() && number() && number() && word.len() <= 40
    };
    let rest = match line.strip_prefix('[') {
        Some(rest) => rest.split_once(']').filter(|(stamp, _)| stamp.len() <= 40)?.1,
        None => {
            let words = line.split_inclusive(' ').take(3).scan(0, |end, word| {
                *end += word.len();
                Some((*end, word.trim_end().rsplit('T').next().unwrap_or_default()))
            });
            let (end, _) = words.into_iter().find(|(_, word)| is_time(word))?;
            line.get(end..)?
        }
    };
    let rest = rest.strip_prefix(' ').unwrap_or(rest);
    Some(rest.strip_prefix("-> ").unwrap_or(rest))
}
