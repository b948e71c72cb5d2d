//! The records of ITMs, between the records of a source in the same frames.

use std::io;

use tracewalk::span::CaptureOffset;
use tracewalk_analysis::drive::ItmRecords;
use tracewalk_analysis::itm::ItmCounts;
use tracewalk_analysis::record::{FlowRecord, ItmRecord};
use tracewalk_analysis::sink::Sink;

use crate::model::Itm;
use crate::notice::NoticeKind;
use crate::observer::{Observer, Say};
use crate::session::Session;

/// The ITMs of a capture, or those beside a source, with their records in the order of the capture.
pub struct Itms<'a> {
    itms: Vec<Beside<'a>>,
}

struct Beside<'a> {
    session: &'a Session,
    itm: Itm,
    /// `None` while the capture is still arriving.
    records: Option<ItmRecords<'a>>,
    /// The next record, with its place in the file.
    next: Option<ItmRecord>,
}

impl Beside<'_> {
    /// Reads the next record, if there is one.
    fn fill(&mut self) {
        if self.next.is_none() {
            let Self { session, itm, records, .. } = self;
            let next = records.as_mut().map_or_else(|| session.heard(itm), Iterator::next);
            let buffer = &session.capture().buffers[itm.buffer];
            self.next =
                next.map(|record| ItmRecord { at: CaptureOffset(buffer.file_offset(record.at)), ..record });
        }
    }

    fn counts(&self) -> ItmCounts {
        let counts = self.records.as_ref().map(|records| records.counts().clone());
        counts.or_else(|| self.session.heard_counts(&self.itm)).unwrap_or_default()
    }
}

impl<'a> Itms<'a> {
    /// The records of these ITMs.
    #[must_use]
    pub fn new(session: &'a Session, itms: Vec<Itm>) -> Self {
        if session.is_live() {
            session.listen(&itms);
        }
        let beside = |itm: Itm| {
            let records = (!session.is_live()).then(|| session.itm_records(&itm));
            Beside { session, itm, records, next: None }
        };
        Self { itms: itms.into_iter().map(beside).collect() }
    }

    /// Hands `sink` the records up to a place in the file. Errors come from `sink`.
    #[inline]
    pub(crate) fn before(&mut self, place: CaptureOffset, sink: &mut dyn Sink<FlowRecord>) -> io::Result<()> {
        if self.itms.is_empty() { Ok(()) } else { self.up_to(place, |record| sink.itm(record)) }
    }

    /// Calls `look` with each record that was sent and not yet handed out.
    ///
    /// # Errors
    ///
    /// The first error of `look`.
    pub fn each(&mut self, look: impl FnMut(&ItmRecord) -> io::Result<()>) -> io::Result<()> {
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

    /// Gives `observer` a notice for malformed trace and overflows. Returns each ITM's counts.
    pub fn finish(self, observer: &dyn Observer) -> Vec<(Itm, ItmCounts)> {
        let counts = self.itms.into_iter().map(|beside| (beside.counts(), beside.itm));
        let counts = counts.map(|(counts, itm)| (itm, counts)).collect::<Vec<_>>();
        counts.iter().for_each(|(itm, counts)| say_itm(itm, counts, observer));
        counts
    }
}

/// Reports an ITM's malformed trace and overflows.
pub(crate) fn say_itm(itm: &Itm, counts: &ItmCounts, observer: &dyn Observer) {
    let source = itm.id;
    if counts.malformed > 0 {
        observer.say(NoticeKind::ItmMalformed { source, count: counts.malformed });
    }
    let count = counts.packets.get("overflow").copied().unwrap_or_default();
    if count > 0 {
        observer.say(NoticeKind::ItmOverflow { source, count });
    }
}
