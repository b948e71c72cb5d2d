//! Numbers of things.

/// `1 packet`, `2 packets`, `2 stretches`, `2 discontinuities`.
pub(crate) fn counted(count: u64, thing: &str) -> String {
    match (count, thing.strip_suffix('y')) {
        (1, _) => format!("1 {thing}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) if thing.ends_with("ch") => format!("{count} {thing}es"),
        (_, None) => format!("{count} {thing}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plurals_are_regular() {
        assert_eq!(counted(1, "discontinuity"), "1 discontinuity");
        assert_eq!(counted(0, "discontinuity"), "0 discontinuities");
        assert_eq!(counted(2, "malformed stretch"), "2 malformed stretches");
        assert_eq!(counted(3, "byte"), "3 bytes");
    }
}
