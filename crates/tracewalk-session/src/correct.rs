//! A configuration that the trace contradicts: the wrong part, the first error, and the settings that fit better.

use tracewalk::span::CaptureOffset;
use tracewalk_analysis::drive::NoProgress;

use crate::infer::{self, Correction, Search};
use crate::model::Source;
use crate::notice::NoticeKind;
use crate::observer::{Observer, Say};
use crate::sample::Sample;
use crate::session::Session;

/// The fewest errors that justify a search for another configuration: damage causes fewer.
const FREQUENT: u64 = 8;

impl Session {
    /// Reports the statements about a source that do not fit.
    pub(crate) fn say_correction(&self, source: &Source, observer: &dyn Observer) {
        let Some(correction) = &source.correction else { return };
        let input = self.input(source, &NoProgress);
        let first = infer::first_error(&input, &source.config, self.known.program(&source.description));
        let at = first.map(|at| CaptureOffset(self.buffer(source).file_offset(at)));
        say(source, correction.clone(), at, observer);
    }

    /// Looks for a configuration that fits better from `first` on, the place in the file of the first error, and
    /// reports it. The beginning of the trace may have had no errors.
    pub fn reconsider(&self, source: &Source, errors: u64, first: CaptureOffset, observer: &dyn Observer) {
        if source.correction.is_some() || errors < FREQUENT {
            return;
        }
        let buffer = self.buffer(source);
        let sample = Sample::from_place(&buffer.bytes, &source.carrier, buffer.trace_offset(first));
        let mut search = Search::new(&sample, self.known.traced(&source.description), &self.known.units);
        if let Some(correction) = search.correction(&source.description) {
            say(source, correction, Some(first), observer);
        }
    }
}

fn say(source: &Source, correction: Correction, at: Option<CaptureOffset>, observer: &dyn Observer) {
    let kind = NoticeKind::StatementContradicted { source: source.id, correction: Box::new(correction) };
    match at {
        Some(at) => observer.say_at(at, kind),
        None => observer.say(kind),
    }
}
