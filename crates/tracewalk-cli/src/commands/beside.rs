//! What ITMs told, between the records of a source in the same frames.

use std::io;

use tracewalk::span::CaptureOffset;
use tracewalk_input::capture::Buffer;
use tracewalk_report::drive::{ItmRecord, ItmRecords};
use tracewalk_report::export::{Export, FlowRecord};

use super::itm;
use crate::messages::Messages;
use crate::work::{ItmJob, Job, Work};

/// The ITMs beside a source.
pub(super) struct Itms<'a> {
    itms: Vec<Beside<'a>>,
}

struct Beside<'a> {
    buffer: &'a Buffer,
    job: ItmJob,
    records: ItmRecords<'a>,
    /// The next record, with its place in the file.
    next: Option<ItmRecord>,
}

impl Beside<'_> {
    /// Gives the next record, and reads the one behind it.
    fn take(&mut self) -> Option<ItmRecord> {
        let next = self.records.next().map(|record| {
            let at = CaptureOffset(self.buffer.file_offset(record.at));
            ItmRecord { at, ..record }
        });
        std::mem::replace(&mut self.next, next)
    }
}

impl<'a> Itms<'a> {
    /// Those that are told with a job, where `exporter` shows them.
    pub(super) fn of(work: &'a Work, job: &Job, exporter: &dyn Export<FlowRecord>) -> Self {
        Self::new(work, if exporter.shows_itm() { work.itms_beside(job) } else { Vec::new() })
    }

    /// These.
    pub(super) fn new(work: &'a Work, jobs: Vec<ItmJob>) -> Self {
        let beside = |job: ItmJob| {
            let buffer = &work.capture.buffers[job.buffer];
            let mut beside = Beside { buffer, records: work.itm_records(&job), job, next: None };
            beside.take();
            beside
        };
        Self { itms: jobs.into_iter().map(beside).collect() }
    }

    /// Gives what was told up to a place in the file.
    #[inline]
    pub(super) fn before(
        &mut self,
        place: CaptureOffset,
        exporter: &mut dyn Export<FlowRecord>,
    ) -> io::Result<()> {
        if self.itms.is_empty() { Ok(()) } else { self.up_to(place, exporter) }
    }

    /// Gives what was told behind the source's last record.
    pub(super) fn rest(&mut self, exporter: &mut dyn Export<FlowRecord>) -> io::Result<()> {
        self.up_to(CaptureOffset(u64::MAX), exporter)
    }

    fn up_to(&mut self, place: CaptureOffset, exporter: &mut dyn Export<FlowRecord>) -> io::Result<()> {
        let at = |beside: &Beside<'_>| beside.next.as_ref().map(|record| record.at);
        loop {
            let waiting = self.itms.iter_mut().filter(|beside| at(beside).is_some_and(|at| at <= place));
            let Some(record) = waiting.min_by_key(|beside| at(beside)).and_then(Beside::take) else {
                return Ok(());
            };
            exporter.itm(&record)?;
        }
    }

    /// Says what of them could not be read.
    pub(super) fn tell(self, messages: &Messages) {
        for beside in &self.itms {
            itm::tell(&beside.job, beside.records.counts(), messages);
        }
    }
}
