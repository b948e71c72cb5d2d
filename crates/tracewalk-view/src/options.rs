//! Options of the page.

use std::path::PathBuf;

use tracewalk_analysis::Doubtful;
use tracewalk_session::{Follow, Keep, Trust};

/// Options of the page.
#[derive(Clone, Debug, Default)]
pub struct Options<'k> {
    /// The capture's name on the page.
    pub name: String,
    /// What tracewalk does for sums if trace and image disagree, or execution is in doubt. The listing shows
    /// everything, including steps in doubt.
    pub trust: Trust,
    /// Further directories to search for source files.
    pub source_dirs: Vec<PathBuf>,
    /// The most threads.
    pub threads: u16,
    /// A store for indexes and overviews, used when the capture is opened again.
    pub keep: Option<&'k dyn Keep>,
}

impl Options<'_> {
    /// How sources are followed for sums.
    pub(crate) fn counted(&self) -> Follow {
        let names = Some(self.source_dirs.clone());
        Follow { trust: self.trust, threads: self.threads, names, ..Follow::default() }
    }

    /// How sources are followed for the listing, which shows everything.
    pub(crate) fn shown(&self) -> Follow {
        let trust = Trust { doubtful: Doubtful::Keep, ..self.trust };
        Follow { trust, ..self.counted() }
    }
}
