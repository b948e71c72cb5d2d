//! A question of the page.

use serde::Deserialize;

/// What is asked for. What a question does not need is not looked at.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Query {
    /// The number of the source.
    pub(crate) source: usize,
    pub(crate) step: u64,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) count: u64,
    /// How many pixels there are.
    pub(crate) width: u64,
    pub(crate) address: Option<String>,
    pub(crate) file: Option<String>,
    /// By what to move, or what to look for.
    pub(crate) what: String,
    /// Whether to move or look backwards.
    pub(crate) back: bool,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The question is unknown.
    Question,
    /// Its subject does not exist.
    Nothing,
    /// Its subject is still being counted.
    Later,
}
