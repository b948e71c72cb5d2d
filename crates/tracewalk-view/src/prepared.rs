//! A source that can be shown.

use std::sync::Arc;

use tracewalk_analysis::Code;
use tracewalk_analysis::drive::FlowIndex;
use tracewalk_session::{Key, Session, Source};

use crate::coming::Coming;
use crate::options::Options;
use crate::overview::Growing;

/// A source that was followed.
pub(crate) struct PreparedSource {
    pub(crate) source: Source,
    pub(crate) name: String,
    /// The program as it was followed: nothing if it is not what was traced.
    pub(crate) code: Arc<Code>,
    /// The program that was to be followed.
    pub(crate) whole: Arc<Code>,
    pub(crate) overview: Growing,
    /// What is kept of it is kept under this.
    pub(crate) key: Option<Key>,
}

impl PreparedSource {
    /// How many bytes the buffer has that it is in.
    pub(crate) fn bytes(&self, session: &Session) -> u64 {
        session.buffer(&self.source).bytes.len() as u64
    }

    /// The index of the source.
    pub(crate) fn index<'a>(
        &'a self,
        session: &'a Session,
        options: &Options<'_>,
        coming: &'a Coming,
    ) -> FlowIndex<'a> {
        coming.begin(self.bytes(session));
        let keep = self.key.as_ref().zip(options.keep);
        session.index_kept(&self.source, &self.code, keep, coming, options.threads)
    }
}
