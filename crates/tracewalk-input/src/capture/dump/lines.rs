//! The beginnings of debuggers' lines: addresses.

pub(super) use super::super::prompts::{cleaned, without_prompts};

/// The lines, without debuggers' prompts.
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(|line| without_prompts(line).trim())
}

/// The address at the start of a line, whether it has a `0x`, and the rest of the line.
pub(super) fn split_address(line: &str) -> Option<(u64, bool, &str)> {
    let (digits, prefixed) = match line.strip_prefix("0x") {
        Some(digits) => (digits, true),
        None => (line, false),
    };
    let end = digits.find(|character: char| !character.is_ascii_hexdigit())?;
    // GDB prints an address without leading zeros; the other tools always print eight digits.
    let (address, rest) = digits.split_at_checked(end).filter(|_| prefixed || end == 8)?;
    Some((hexadecimal(address)?, prefixed, rest))
}

/// The text after the colon that GDB prints after an address, and whether a symbol precedes the colon.
pub(super) fn after_symbol(rest: &str) -> (&str, bool) {
    // A symbol may contain anything that C++ allows, including blanks and angle brackets.
    match rest.strip_prefix(" <").and_then(|rest| rest.rsplit_once(">:")) {
        Some((_, rest)) => (rest, true),
        None => (rest.strip_prefix(':').unwrap_or(""), false),
    }
}

/// The values that GDB could read: if it cannot read on, it prints its message in the middle of the line.
pub(super) fn readable(values: &str) -> &str {
    values.split("Cannot access memory").next().unwrap_or(values)
}

pub(super) fn hexadecimal(digits: &str) -> Option<u64> {
    // The standard library would accept a sign.
    let is_number = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_number.then(|| u64::from_str_radix(digits, 16).ok())?
}
