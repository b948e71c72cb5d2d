//! How a tree of calls is printed.

use crate::Look;
use tracewalk_analysis::Window;

/// How a tree of calls is printed.
#[derive(Clone, Debug)]
pub struct CallTreeOptions {
    /// The colours and the width.
    pub look: Look,
    /// Deeper functions are not printed; they count only in their callers.
    pub depth: Option<usize>,
    /// Whether consecutive calls that look the same share a line.
    pub fold: bool,
    /// The part to print; execution before it is followed as well, so that the calls at its start are known.
    pub window: Window,
}
