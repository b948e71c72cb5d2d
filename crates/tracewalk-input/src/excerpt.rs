//! Text from a file, quoted in a message.

use tracewalk::plain;

/// The beginning of a text from a file, to be quoted in a message; a placeholder if the text is empty.
pub(crate) fn excerpt(text: &str) -> String {
    const LONGEST: usize = 60;
    if text.is_empty() {
        return "(empty)".to_owned();
    }
    let mut excerpt = text.chars().take(LONGEST).map(plain::shown).collect();
    if text.chars().nth(LONGEST).is_some() {
        excerpt = format!("{excerpt}…");
    }
    excerpt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_in_a_message_is_short_and_printable() {
        assert_eq!(excerpt("a\u{1b}[31mb"), "a\u{fffd}[31mb");
        assert_eq!(excerpt(""), "(empty)");
        assert_eq!(excerpt(&"x".repeat(1000)).chars().count(), 61);
    }
}
