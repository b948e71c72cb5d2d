//! Findings: the inferred value, its evidence, and the next best value.

use std::fmt;

/// An inferred setting, with its evidence and the next best answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The subject, in few words.
    pub about: &'static str,
    /// The answer.
    pub best: Answer,
    /// The next best answer.
    pub runner_up: Option<Answer>,
    /// How certain the answer is.
    pub certainty: Certainty,
}

/// An answer, with its evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The answer.
    pub text: String,
    /// The counts that support the answer.
    pub evidence: String,
}

/// How certain an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// Every other answer reads worse.
    Certain,
    /// Another answer reads as well, and gives the same result.
    Indifferent,
    /// Another answer reads as well, and gives the same execution at other times or in other contexts.
    DoubtfulDetails,
    /// Another answer reads as well, and gives another execution.
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
