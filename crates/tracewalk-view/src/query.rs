//! A question of the page.

use serde::Deserialize;

/// The parameters of a question. A question ignores those that it does not need.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Query {
    /// The number of the source.
    pub(crate) source: usize,
    pub(crate) step: u64,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) count: u64,
    /// The width in pixels.
    pub(crate) width: u64,
    pub(crate) address: Option<String>,
    pub(crate) file: Option<String>,
    /// The unit of a move, or the target of a search.
    pub(crate) what: String,
    /// Whether to move or search backwards.
    pub(crate) back: bool,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The question is unknown.
    Question,
    /// The subject does not exist.
    Nothing,
    /// The answer is still being counted.
    Later,
}
