//! Patterns for the names of files and functions.

use std::fmt;
use std::sync::Arc;

/// A pattern for names: its text, for messages, and the names that it matches. The front end chooses the syntax.
#[derive(Clone)]
pub struct Pattern {
    text: String,
    matches: Arc<dyn Fn(&str) -> bool + Send + Sync>,
}

impl Pattern {
    /// The pattern of this text, which matches the names for which `matches` is true.
    #[must_use]
    pub fn new(text: impl Into<String>, matches: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self { text: text.into(), matches: Arc::new(matches) }
    }

    /// Whether a name matches.
    #[must_use]
    pub fn is_match(&self, name: &str) -> bool {
        (self.matches)(name)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({})", self.text)
    }
}
