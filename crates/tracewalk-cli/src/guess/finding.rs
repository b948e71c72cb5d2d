//! What was found out, what speaks for it, and what else it might have been.

use std::fmt;

/// An answer that nobody gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// What it is about, in few words.
    pub(crate) about: &'static str,
    pub(crate) best: Answer,
    /// The next best answer.
    pub(crate) runner_up: Option<Answer>,
    pub(crate) certainty: Certainty,
}

/// An answer and what was counted with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) evidence: String,
}

/// How certain an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Certainty {
    /// Every other answer reads worse.
    Certain,
    /// Another answer reads as well, and says the same.
    Indifferent,
    /// Another answer reads as well, and says that the same was executed, but not when.
    DoubtfulDetails,
    /// Another answer reads as well, and says something else.
    Doubtful,
}

impl Answer {
    pub(crate) fn new(text: impl Into<String>, evidence: impl fmt::Display) -> Self {
        Self { text: text.into(), evidence: evidence.to_string() }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.text, self.evidence)
    }
}
