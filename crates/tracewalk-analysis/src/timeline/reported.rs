//! What an ITM reports without program flow beside it, on an axis of its local timestamps.
//!
//! A timestamp belongs to the packets since the one before it. Packets without a later timestamp are at the last known time, as
//! estimates.

use tracewalk::ids::Exception;
use tracewalk::protocol::itm::{ExceptionAction, Packet};

use super::item::{Certainty, Change, Finish, Item, Mark, Moment, Span, SpanId, Start, Track, Unknown, What};
use crate::call_stack::Interruption;
use crate::itm::{ItmEvent, Watched};

/// Puts the reports of an ITM on an axis.
#[derive(Debug)]
pub struct ReportedTimeline {
    watched: Watched,
    /// The events since the last timestamp.
    waiting: Vec<ItmEvent>,
    /// The handlers that have not exited, the innermost last.
    handlers: Vec<(Exception, SpanId)>,
    /// Whether a handler has exited, and nothing was entered or returned to since.
    exited: bool,
    at: Moment,
    last: SpanId,
}

/// The most events that wait for a timestamp.
const MOST_WAITING: usize = 1 << 16;

impl ReportedTimeline {
    /// A timeline before the first event, with names of watched data.
    #[must_use]
    pub const fn new(watched: Watched) -> Self {
        let at = Moment { ticks: 0, certainty: Certainty::Estimated };
        Self { watched, waiting: Vec::new(), handlers: Vec::new(), exited: false, at, last: SpanId(0) }
    }

    /// Takes the next event; calls `sink` with the items whose time is known now.
    pub fn event(&mut self, event: &ItmEvent, sink: &mut impl FnMut(Item)) {
        match event {
            ItmEvent::LocalTime { total, .. } => self.give(*total, Certainty::Exact, sink),
            ItmEvent::GlobalTime { .. } | ItmEvent::Stm(_) => {}
            ItmEvent::Packet(Packet::PcSample(_) | Packet::EventCounters(_)) => {}
            ItmEvent::Text { .. }
            | ItmEvent::Value { .. }
            | ItmEvent::Malformed { .. }
            | ItmEvent::Packet(_) => {
                self.waiting.push(event.clone());
                if self.waiting.len() >= MOST_WAITING {
                    self.give(self.at.ticks, Certainty::Estimated, sink);
                }
            }
        }
    }

    /// The trace ends here.
    pub fn finish(&mut self, sink: &mut impl FnMut(Item)) {
        self.give(self.at.ticks, Certainty::Estimated, sink);
        self.lose(0, sink);
    }

    fn give(&mut self, ticks: u64, certainty: Certainty, sink: &mut impl FnMut(Item)) {
        let mut waiting = std::mem::take(&mut self.waiting);
        for event in waiting.drain(..) {
            self.at = Moment { ticks, certainty };
            self.report(&event, sink);
        }
        self.waiting = waiting;
        self.at = Moment { ticks, certainty: Certainty::Estimated };
    }

    fn report(&mut self, event: &ItmEvent, sink: &mut impl FnMut(Item)) {
        match event {
            ItmEvent::Packet(Packet::Exception { number, action }) => {
                let exception = Exception::M(*number);
                match action {
                    ExceptionAction::Entered => self.enter(exception, sink),
                    ExceptionAction::Exited => self.exit(exception, sink),
                    ExceptionAction::Returned => self.return_to(exception, sink),
                }
            }
            ItmEvent::Packet(Packet::Overflow) | ItmEvent::Malformed { .. } => {
                // The packets were lost at any time since the last timestamp.
                self.at.certainty = Certainty::Estimated;
                self.lose(0, sink);
                self.exited = false;
                let id = self.begin(Track::Gaps, What::Gap(Unknown::Reports), sink);
                self.change(Change::End { id, track: Track::Gaps, finish: Finish::Returned }, sink);
            }
            other => {
                if let Some((track, mark)) = Mark::of_itm(other, &mut self.watched) {
                    self.change(Change::Mark { track, mark }, sink);
                }
            }
        }
    }

    fn enter(&mut self, exception: Exception, sink: &mut impl FnMut(Item)) {
        // An active exception cannot be taken again: its exit was not seen.
        if let Some(active) = self.position(exception) {
            self.lose(active, sink);
        }
        let chained = std::mem::take(&mut self.exited);
        let exception = (exception, Interruption { exception: Some(exception), returns_to: None, chained });
        let id = self.begin(Track::Exception(Some(exception.0)), What::Exception(exception.1), sink);
        self.handlers.push((exception.0, id));
    }

    fn exit(&mut self, exception: Exception, sink: &mut impl FnMut(Item)) {
        self.exited = true;
        let Some(active) = self.position(exception) else { return self.lose(0, sink) };
        self.lose(active + 1, sink);
        if let Some((_, id)) = self.handlers.pop() {
            let track = Track::Exception(Some(exception));
            self.change(Change::End { id, track, finish: Finish::Returned }, sink);
        }
    }

    fn return_to(&mut self, exception: Exception, sink: &mut impl FnMut(Item)) {
        self.exited = false;
        self.lose(self.position(exception).map_or(0, |active| active + 1), sink);
        // Number 0 means thread mode.
        let exception = Some(exception).filter(|exception| exception.number() != 0);
        let mark = Mark::Exception(exception, ExceptionAction::Returned);
        self.change(Change::Mark { track: Track::Reported, mark }, sink);
    }

    fn position(&self, exception: Exception) -> Option<usize> {
        self.handlers.iter().rposition(|(active, _)| *active == exception)
    }

    /// The ends of all handlers except for the `outer` outermost ones are not known.
    fn lose(&mut self, outer: usize, sink: &mut impl FnMut(Item)) {
        while self.handlers.len() > outer
            && let Some((exception, id)) = self.handlers.pop()
        {
            let track = Track::Exception(Some(exception));
            self.change(Change::End { id, track, finish: Finish::Lost }, sink);
        }
    }

    fn begin(&mut self, track: Track, what: What, sink: &mut impl FnMut(Item)) -> SpanId {
        self.last.0 += 1;
        let id = self.last;
        self.change(Change::Begin(Span { id, track, what, start: Start::Here }), sink);
        id
    }

    fn change(&self, change: Change, sink: &mut impl FnMut(Item)) {
        sink(Item { at: self.at, change });
    }
}
