//! A configuration that the trace contradicts: which part of it, from where on, and what fits better.

use tracewalk::span::CaptureOffset;
use tracewalk_analysis::drive::NoProgress;

use super::{Job, Work};
use crate::guess::{self, Change, Correction, Sample, Search};
use crate::messages::Messages;
use crate::sources::as_option;

/// With fewer errors in a source it is not worth to look for another configuration: damage has that many.
const FREQUENT: u64 = 8;

impl Work {
    /// Says what does not fit in what was said of a source.
    pub(super) fn tell_correction(&self, job: &Job, messages: &Messages) {
        let Some(correction) = &job.correction else { return };
        let input = self.input(job, &NoProgress);
        let first = guess::first_error(&input, &job.config, self.known.program(&job.description));
        let at = first.map(|at| CaptureOffset(self.buffer(job).file_offset(at)));
        tell(job, correction, at, messages);
    }

    /// Looks for a configuration that fits better from `first` on, the place in the file of the first of so many errors,
    /// and says which. The beginning of the trace may have had no errors.
    pub(crate) fn reconsider(&self, job: &Job, errors: u64, first: CaptureOffset, messages: &Messages) {
        if job.correction.is_some() || errors < FREQUENT {
            return;
        }
        let buffer = self.buffer(job);
        let sample = Sample::from_place(&buffer.bytes, &job.carrier, buffer.trace_offset(first));
        let program = self.known.program(&job.description);
        let mut search = Search::new(&sample, program, &self.known.units);
        if let Some(correction) = search.correction(&job.description) {
            tell(job, &correction, Some(first), messages);
        }
    }
}

fn tell(job: &Job, correction: &Correction, at: Option<CaptureOffset>, messages: &Messages) {
    let Correction { changes, stated, source, reading } = correction;
    let change = |Change { about, register, said, by, fits }: &Change| {
        format!("{about} {said} by {register} ({by}), where {fits} fits")
    };
    let changes = changes.iter().map(change).collect::<Vec<_>>().join("; ");
    let from = at.map_or_else(String::new, |at| format!(" from {at} on"));
    messages.incomplete(format_args!(
        "{}: the trace contradicts what was said of it{from}: {changes}: {stated}, against {reading}; try {}",
        job.name(),
        as_option(source),
    ));
}
