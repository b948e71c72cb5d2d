//! What ITMs told, between the records of a source in the same frames.

use std::io;

use tracewalk::span::CaptureOffset;
use tracewalk_analysis::drive::ItmRecords;
use tracewalk_analysis::itm::ItmCounts;
use tracewalk_analysis::record::{FlowRecord, ItmRecord};
use tracewalk_analysis::sink::Sink;

use super::itm;
use crate::messages::Messages;
use crate::work::{ItmJob, Job, Work};

/// The ITMs beside a source.
pub(super) struct Itms<'a> {
    itms: Vec<Beside<'a>>,
}

struct Beside<'a> {
    work: &'a Work,
    job: ItmJob,
    /// `None` where the capture is still coming.
    records: Option<ItmRecords<'a>>,
    /// The next record, with its place in the file.
    next: Option<ItmRecord>,
}

impl Beside<'_> {
    /// Reads the next record, if there is one.
    fn fill(&mut self) {
        if self.next.is_none() {
            let Self { work, job, records, .. } = self;
            let next = records.as_mut().map_or_else(|| work.heard(job), Iterator::next);
            let buffer = &work.capture.buffers[job.buffer];
            self.next =
                next.map(|record| ItmRecord { at: CaptureOffset(buffer.file_offset(record.at)), ..record });
        }
    }

    fn counts(&self) -> ItmCounts {
        let counts = self.records.as_ref().map(|records| records.counts().clone());
        counts.or_else(|| self.work.heard_counts(&self.job)).unwrap_or_default()
    }
}

impl<'a> Itms<'a> {
    /// Those that are told with a job, where `exporter` shows them.
    pub(super) fn of(work: &'a Work, job: &Job, exporter: &dyn Sink<FlowRecord>) -> Self {
        Self::new(work, if exporter.shows_itm() { work.itms_beside(job) } else { Vec::new() })
    }

    /// These.
    pub(super) fn new(work: &'a Work, jobs: Vec<ItmJob>) -> Self {
        if work.is_live() {
            work.listen(&jobs);
        }
        let beside = |job: ItmJob| {
            let records = (!work.is_live()).then(|| work.itm_records(&job));
            Beside { work, job, records, next: None }
        };
        Self { itms: jobs.into_iter().map(beside).collect() }
    }

    /// Gives what was told up to a place in the file.
    #[inline]
    pub(super) fn before(
        &mut self,
        place: CaptureOffset,
        exporter: &mut dyn Sink<FlowRecord>,
    ) -> io::Result<()> {
        if self.itms.is_empty() { Ok(()) } else { self.up_to(place, |record| exporter.itm(record)) }
    }

    /// Gives what was told behind the source's last record.
    pub(super) fn rest(&mut self, exporter: &mut dyn Sink<FlowRecord>) -> io::Result<()> {
        self.each(|record| exporter.itm(record))
    }

    /// Gives all that is told and was not given yet.
    pub(super) fn each(&mut self, look: impl FnMut(&ItmRecord) -> io::Result<()>) -> io::Result<()> {
        self.up_to(CaptureOffset(u64::MAX), look)
    }

    fn up_to(
        &mut self,
        place: CaptureOffset,
        mut look: impl FnMut(&ItmRecord) -> io::Result<()>,
    ) -> io::Result<()> {
        let at = |beside: &Beside<'_>| beside.next.as_ref().map(|record| record.at);
        loop {
            self.itms.iter_mut().for_each(Beside::fill);
            let waiting = self.itms.iter_mut().filter(|beside| at(beside).is_some_and(|at| at <= place));
            let first = waiting.min_by_key(|beside| at(beside));
            let Some(record) = first.and_then(|beside| beside.next.take()) else { return Ok(()) };
            look(&record)?;
        }
    }

    /// Says what of them could not be read.
    pub(super) fn tell(self, messages: &Messages) {
        for beside in &self.itms {
            itm::tell(&beside.job, &beside.counts(), messages);
        }
    }
}
