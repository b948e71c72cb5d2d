//! A source that can be shown.

use std::sync::Arc;

use tracewalk_analysis::Code;
use tracewalk_analysis::drive::FlowIndex;
use tracewalk_analysis::values::ValueSetup;
use tracewalk_session::{Key, Session, Source};

use crate::coming::Coming;
use crate::options::Options;
use crate::overview::Growing;

/// A source that was followed.
pub(crate) struct PreparedSource {
    pub(crate) source: Source,
    pub(crate) name: String,
    /// The program that was followed: an empty one if it is not the traced program.
    pub(crate) code: Arc<Code>,
    /// The program that should be followed.
    pub(crate) whole: Arc<Code>,
    pub(crate) overview: Growing,
    pub(crate) values: ValueSetup,
    /// The key under which the source's data is kept.
    pub(crate) key: Option<Key>,
}

impl PreparedSource {
    /// The size of the source's buffer in bytes.
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
