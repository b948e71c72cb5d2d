//! Problems that keep symbols from being found.

use std::fmt;
use std::path::PathBuf;

use tracewalk::plain::Plain;

/// A problem in an image that keeps symbols or lines from being found. Following execution does not depend on
/// symbols.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolNote {
    /// The image's file.
    pub file: PathBuf,
    /// The problem, in one clause.
    pub problem: String,
}

impl fmt::Display for SymbolNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", Plain(self.file.display()), Plain(&self.problem))
    }
}
