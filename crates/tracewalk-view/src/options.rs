//! What whoever shows a capture asks for.

use std::path::PathBuf;

use tracewalk_analysis::Doubtful;
use tracewalk_session::{Follow, Keep, Trust};

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub struct Options<'k> {
    /// What the capture is called.
    pub name: String,
    /// What is believed where things are counted. The listing shows everything, what is in doubt too.
    pub trust: Trust,
    /// Where else source files are looked for.
    pub source_dirs: Vec<PathBuf>,
    /// On how many threads, at most.
    pub threads: u16,
    /// Who keeps what takes long to make, for the next time.
    pub keep: Option<&'k dyn Keep>,
}

impl Options<'_> {
    /// How sources are followed to count.
    pub(crate) fn counted(&self) -> Follow {
        let names = Some(self.source_dirs.clone());
        Follow { trust: self.trust, threads: self.threads, names, ..Follow::default() }
    }

    /// How sources are followed to show everything.
    pub(crate) fn shown(&self) -> Follow {
        let trust = Trust { doubtful: Doubtful::Keep, ..self.trust };
        Follow { trust, ..self.counted() }
    }
}
