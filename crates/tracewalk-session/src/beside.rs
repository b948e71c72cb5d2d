//! The records of ITMs, between the records of a source in the same frames.

use std::io;

use tracewalk::flow::Element;
use tracewalk::source::Instrumentation;
use tracewalk::span::{CaptureOffset, StreamOffset};
use tracewalk_analysis::Section;
use tracewalk_analysis::analysis::{FlowSink, Repeated};
use tracewalk_analysis::drive::{ItmRecords, Places};
use tracewalk_analysis::itm::ItmCounts;
use tracewalk_analysis::record::{FlowRecord, ItmRecord};
use tracewalk_analysis::sink::Sink;
use tracewalk_analysis::stm::STM_LOSSES;
use tracewalk_input::capture::Buffer;

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

    /// Whether there are none.
    pub(crate) const fn is_empty(&self) -> bool {
        self.itms.is_empty()
    }

    /// Calls `look` with the records up to a place in the file.
    #[inline]
    pub(crate) fn before(
        &mut self,
        place: CaptureOffset,
        look: impl FnMut(&ItmRecord) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.itms.is_empty() { Ok(()) } else { self.up_to(place, look) }
    }

    /// The place of the next record in the file.
    fn next_place(&mut self) -> Option<CaptureOffset> {
        self.itms.iter_mut().for_each(Beside::fill);
        self.itms.iter().filter_map(|beside| beside.next.as_ref().map(|record| record.at)).min()
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

/// Hands elements and passages on to a sink, with the records of ITMs between them. Passages need no places: the place of the next
/// record is looked up in the source's trace.
pub(crate) struct Between<'s, 'a, S: ?Sized> {
    sink: &'s mut S,
    itms: &'s mut Itms<'a>,
    places: Places<'a>,
    buffer: &'a Buffer,
    /// The place of the next record in the file.
    next_place: Option<CaptureOffset>,
    /// Elements from here on come after the next record; `None` if no trace does.
    next: Option<StreamOffset>,
}

impl<'s, 'a, S: FlowSink + ?Sized> Between<'s, 'a, S> {
    pub(crate) fn new(
        sink: &'s mut S,
        itms: &'s mut Itms<'a>,
        places: Places<'a>,
        buffer: &'a Buffer,
    ) -> Self {
        let mut between = Self { sink, itms, places, buffer, next_place: None, next: None };
        between.look_ahead();
        between
    }

    fn look_ahead(&mut self) {
        let Self { itms, places, buffer, .. } = self;
        let in_file = |at: CaptureOffset| CaptureOffset(buffer.file_offset(at));
        self.next_place = itms.next_place();
        self.next = self.next_place.and_then(|place| places.first_from(|at| in_file(at) >= place));
    }

    /// Whether the next record comes before this element. An element without place and bytes is where the last one was, but for the
    /// gap that stands for what was left out.
    fn is_next(&self, FlowRecord { element, at }: &FlowRecord) -> bool {
        let span = element.span();
        match self.next_place {
            Some(place) if *at != CaptureOffset(0) => place <= *at,
            Some(_) if span.start < span.end || matches!(element, Element::Gap(_)) => {
                self.next.is_some_and(|next| span.start >= next)
            }
            _ => false,
        }
    }

    /// Hands on the records before an element.
    fn before(&mut self, record: &FlowRecord) -> io::Result<()> {
        while self.is_next(record)
            && let Some(place) = self.next_place
        {
            self.itms.before(place, |record| self.sink.itm(record))?;
            self.look_ahead();
        }
        Ok(())
    }
}

impl<S: FlowSink + ?Sized> Sink<FlowRecord> for Between<'_, '_, S> {
    fn section(&mut self, section: &Section) -> io::Result<()> {
        self.sink.section(section)
    }

    fn record(&mut self, record: FlowRecord) -> io::Result<()> {
        self.before(&record)?;
        self.sink.record(record)
    }

    fn left_out(&mut self, instructions: u64) {
        self.sink.left_out(instructions);
    }
}

impl<S: FlowSink + ?Sized> FlowSink for Between<'_, '_, S> {
    fn passage(&mut self, repeated: &Repeated<'_>) -> io::Result<()> {
        let is_before = |next: StreamOffset| repeated.elements().any(|element| element.span().start >= next);
        // Most passages end long before the next record.
        match self.next {
            Some(next) if repeated.end() > next && is_before(next) => {
                repeated.records().try_for_each(|record| self.record(record))
            }
            _ => self.sink.passage(repeated),
        }
    }

    fn needs_places(&self) -> bool {
        self.sink.needs_places()
    }

    fn weighs_doubt(&self) -> bool {
        self.sink.weighs_doubt()
    }

    fn doubtful(&mut self, record: FlowRecord) -> io::Result<()> {
        self.before(&record)?;
        self.sink.doubtful(record)
    }
}

/// Reports an ITM's malformed trace and overflows.
pub(crate) fn say_itm(itm: &Itm, counts: &ItmCounts, observer: &dyn Observer) {
    let source = itm.id;
    if counts.malformed > 0 {
        observer.say(NoticeKind::ItmMalformed { source, count: counts.malformed });
    }
    let number = |name| counts.packets.get(name).copied().unwrap_or_default();
    match itm.protocol() {
        Instrumentation::Itm if number("overflow") > 0 => {
            observer.say(NoticeKind::ItmOverflow { source, count: number("overflow") });
        }
        Instrumentation::Stm if STM_LOSSES.map(number) != [0; 2] => {
            observer.say(NoticeKind::StmLost { source, count: STM_LOSSES.map(number).iter().sum() });
        }
        Instrumentation::Itm | Instrumentation::Stm => {}
    }
}
