//! Text from a file, quoted in a message.

/// The beginning of a text that came from a file, for a message.
pub(crate) fn excerpt(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut excerpt =
        text.chars().take(LONGEST).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
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
        assert_eq!(excerpt(&"x".repeat(1000)).chars().count(), 61);
    }
}
