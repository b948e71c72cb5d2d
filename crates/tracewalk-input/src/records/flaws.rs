//! Damage in a file of records.

use super::problem::MemoryProblem;

/// The unreadable parts of a file whose other parts are usable.
#[derive(Debug, Default)]
pub(crate) struct Flaws(Vec<(Option<u32>, MemoryProblem)>);

impl Flaws {
    pub(super) fn add(&mut self, line: Option<u32>, problem: MemoryProblem) {
        self.0.push((line, problem));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each flaw with its line, in the file's order.
    pub(crate) fn all(self) -> impl Iterator<Item = (Option<u32>, MemoryProblem)> {
        self.0.into_iter()
    }
}
