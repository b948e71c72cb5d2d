//! How a tree of calls is printed.

use crate::Look;
use tracewalk_analysis::Window;

/// How a tree of calls is printed.
#[derive(Clone, Debug)]
pub struct CallTreeOptions {
    /// The colours and the width.
    pub look: Look,
    /// Functions deeper than this are not printed, only counted in those that called them.
    pub depth: Option<usize>,
    /// Whether calls that look the same and come one after the other share a line.
    pub fold: bool,
    /// What is printed; what runs before it is followed nevertheless, so that its calls are known.
    pub window: Window,
}
