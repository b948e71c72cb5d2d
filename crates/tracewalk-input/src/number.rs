//! Numbers in the notations of options and descriptions.

/// Parses `0x1f`, `0b11111`, `0o37` or `31`, with optional `_` between digits.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let (digits, radix) = match lower.get(..2) {
        Some("0x") => (&lower[2..], 16),
        Some("0b") => (&lower[2..], 2),
        Some("0o") => (&lower[2..], 8),
        _ => (lower.as_str(), 10),
    };
    if !digits.starts_with(|first: char| first.is_digit(radix)) {
        return None; // the standard library would take a sign
    }
    u64::from_str_radix(&digits.replace('_', ""), radix).ok()
}

/// Parses a number of at most 32 bits.
pub(crate) fn parse_u32(text: &str) -> Option<u32> {
    parse(text).and_then(|number| number.try_into().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_the_usual_bases() {
        assert_eq!(parse("0x0800_0000"), Some(0x0800_0000));
        assert_eq!(parse("0XfF"), Some(255));
        assert_eq!(parse("0b101"), Some(5));
        assert_eq!(parse("12"), Some(12));
        assert_eq!(parse("0"), Some(0));
        assert_eq!(parse("0xffffffffffffffff"), Some(u64::MAX));
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in ["", "0x", "+1", "0x+1", "-1", "1.5", "0x1g", "_1", "0x1_0000_0000_0000_0000", "é", "0é"]
        {
            assert_eq!(parse(text), None, "{text:?}");
        }
        assert_eq!(parse_u32("0x1_0000_0000"), None);
    }
}
