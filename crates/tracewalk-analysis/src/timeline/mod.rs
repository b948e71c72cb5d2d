//! Timelines: functions, exceptions, tasks and gaps along one axis.
//!
//! ```text
//! CallStack   flow elements → functions, exceptions and tasks that begin and end
//! Tracks      … as spans that enclose each other
//! Axis        … each at its place on the axis
//! ```
//!
//! The axis is time if there are timestamps, else cycles, else instructions; [`Probe`] determines which of them a trace has.
//! Items come in the order of the axis, so that writers only have to keep open spans.
//!
//! ```
//! use std::sync::Arc;
//! use tracewalk_analysis::clock::Unit;
//! use tracewalk_analysis::timeline::{Change, Item, Scale, Timeline};
//! use tracewalk_analysis::{Code, Window};
//!
//! # use tracewalk::{ids::Address, program::Program, protocol::etmv3, source::SourceConfig};
//! # use tracewalk_analysis::drive::{Carrier, Follower, Input, NoProgress, Stretch};
//! # let config = SourceConfig::Etmv3(etmv3::Config::for_core("cortex-m3").expect("a known core"));
//! # let mut program = Program::new();
//! # program.add(Address::new(0x100), &[0x00, 0xbf, 0x00, 0xbf])?;
//! # let trace = [0, 0, 0, 0, 0, 0x80, 0x08, 0x21, 0x01, 0x01, 0x00, 0x00, 0x84, 0x84];
//! # let carrier = Carrier::Stretches(vec![Stretch::all(trace.len())]);
//! # let input = Input { capture: &trace, carrier, rest: None, progress: &NoProgress };
//! // `config`, `program` and `input` are made as in the example of `drive`.
//! // A trace of two instructions.
//! let mut spans = Vec::new();
//! let mut sink = |item: Item| {
//!     if let Change::Begin(span) = item.change {
//!         spans.push((item.at.ticks, span.track));
//!     }
//! };
//! let scale = Scale::of(&[], Unit::Instructions, None);
//! let mut timeline = Timeline::new(Arc::new(Code::unknown()), &scale, &Window::default());
//! Follower::new(&config, &program).flow(&input, |record| {
//!     timeline.element(&record.element, record.at, &mut sink);
//!     Ok(())
//! })?;
//! timeline.finish(&mut sink);
//! assert_eq!(spans.first().map(|(ticks, _)| *ticks), Some(0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod axis;
mod item;
mod place;
mod reported;
mod scale;
mod spans;
mod tracks;

use std::sync::Arc;

use tracewalk::flow::{Element, EventKind, GapReason};
use tracewalk::span::CaptureOffset;

use super::call_stack::CallStack;
use super::clock::{CycleMeter, Spent};
use super::window::{Phase, Window, Windowed};
use crate::Code;
use crate::analysis::Repeated;
use crate::itm::{ItmEvent, Watched};
use axis::Axis;
use place::Place;
use spans::{Marks, Recorder};
use tracks::RowId;

pub use item::{Certainty, Change, Finish, Item, Mark, Moment, Span, SpanId, Start, Track, Unknown, What};
pub use reported::ReportedTimeline;
pub use scale::{Probe, Probing, Scale};

/// Puts one source's flow on an axis.
#[derive(Debug)]
pub struct Timeline {
    calls: CallStack<Marks>,
    meter: CycleMeter,
    windowed: Windowed,
    phase: Phase,
    recorder: Recorder,
    axis: Axis,
    watched: Watched,
    /// What was open, when the window began, in tasks that have not run since.
    asleep: Vec<Span>,
    /// Whether the window is the whole trace, so that no check is needed.
    is_whole: bool,
}

impl Timeline {
    /// A timeline before the first element. Only items in the window are handed on; spans across its ends are cut there.
    #[must_use]
    pub fn new(code: Arc<Code>, scale: &Scale, window: &Window) -> Self {
        let windowed = window.begin(&code);
        let watched = Watched::new(Arc::clone(&code), [None; 4]);
        let calls = CallStack::new(code);
        let task = calls.task();
        Self {
            calls,
            meter: CycleMeter::default(),
            windowed,
            // Reports of an ITM before the first element belong to a window that begins with the trace.
            phase: if window.from.is_none() { Phase::Inside } else { Phase::Before },
            recorder: Recorder::new(task, scale.counts_cycles),
            axis: Axis::new(scale.unit),
            watched,
            asleep: Vec::new(),
            is_whole: *window == Window::default(),
        }
    }

    /// The same without spans of functions: only exceptions, tasks and gaps. Call it before the first element.
    #[must_use]
    pub const fn without_functions(mut self) -> Self {
        self.recorder.spans.functions = false;
        self
    }

    /// Takes a passage; calls `sink` with the items that are certain now. A passage for which no cycles are counted is taken by
    /// its outline.
    pub fn passage(&mut self, repeated: &Repeated<'_>, sink: &mut impl FnMut(Item)) {
        let is_inside = self.is_whole || self.is_ahead_inside(repeated);
        let is_plain = is_inside && self.meter.counts_nothing(repeated);
        let outlined = if is_plain { self.calls.outline(repeated, &mut self.recorder) } else { None };
        let Some(outlined) = outlined else {
            return repeated.elements().for_each(|element| self.element(&element, CaptureOffset(0), sink));
        };
        self.calls.follow(outlined, &mut self.recorder);
        if !self.is_whole {
            self.windowed.pass(repeated);
        }
        self.meter.pass(outlined.is_lost());
        self.give(sink);
    }

    /// Whether a passage is in the window, like the elements before it.
    #[inline(never)]
    fn is_ahead_inside(&mut self, repeated: &Repeated<'_>) -> bool {
        self.phase == Phase::Inside && self.windowed.ahead(repeated) == Some(Phase::Inside)
    }

    /// Takes the next element; calls `sink` with the items that are certain now.
    pub fn element(&mut self, element: &Element, at: CaptureOffset, sink: &mut impl FnMut(Item)) {
        let phase = self.windowed.element(element, at);
        self.enter(phase, sink);
        let spent = self.meter.element(element);
        let cycles = spent.map_or(0, Spent::cycles);
        match element {
            Element::Block(block) => {
                let count = if self.recorder.spans.by_cycles { cycles } else { block.instructions.into() };
                self.recorder.begin_block(count, block.instructions);
                self.follow(element);
                self.recorder.end_block();
            }
            Element::Proof(_) => {}
            Element::Gap(gap) => {
                self.follow(element);
                self.gap(Unknown::Gap(gap.reason), sink);
                self.recorder.spans.pass(cycles);
            }
            Element::Event(event) => match event.kind {
                EventKind::TraceOn(reason) => {
                    self.follow(element);
                    if self.recorder.spans.begun {
                        self.gap(Unknown::Untraced(reason), sink);
                    }
                    self.recorder.spans.pass(cycles);
                }
                EventKind::Timestamp(time) => {
                    self.give(sink);
                    if time != 0 {
                        self.axis.timestamp(self.recorder.spans.tracks.now.count, time, sink);
                    }
                }
                EventKind::Trigger => self.mark(Mark::Trigger),
                EventKind::Events(events) => self.mark(Mark::Events(events)),
                EventKind::Instrumentation(written) => self.mark(Mark::Instrumentation(written)),
                kind => {
                    if let EventKind::Transaction(transaction) = kind {
                        self.mark(Mark::Transaction(transaction));
                    }
                    self.recorder.spans.pass(cycles);
                    self.follow(element);
                }
            },
        }
        self.give(sink);
    }

    /// The trace unit reports something between the last instruction and the next one.
    fn mark(&mut self, mark: Mark) {
        let now = self.recorder.spans.tracks.now;
        self.recorder.mark(now, Change::Mark { track: Track::Events, mark });
    }

    /// An ITM reported something between the last element and the next one, in the order of the capture.
    pub fn itm(&mut self, event: &ItmEvent, sink: &mut impl FnMut(Item)) {
        let Some((track, mark)) = Mark::of_itm(event, &mut self.watched) else { return };
        let now = Place { certainty: Certainty::Estimated, ..self.recorder.spans.tracks.now };
        self.recorder.mark(now, Change::Mark { track, mark });
        self.give(sink);
    }

    /// Whether the current place is in the window.
    #[must_use]
    pub fn is_inside(&self) -> bool {
        self.phase == Phase::Inside
    }

    /// The trace ends here.
    pub fn finish(&mut self, sink: &mut impl FnMut(Item)) {
        let cycles = self.meter.finish().map_or(0, Spent::cycles);
        self.recorder.spans.pass(cycles);
        self.calls.finish(&mut self.recorder);
        for row in [RowId::RUNNING, RowId::GAPS] {
            self.recorder.end_all(row, Finish::Lost);
        }
        self.give(sink);
        self.axis.flush(sink);
    }

    fn follow(&mut self, element: &Element) {
        self.calls.element(element, &mut self.recorder);
    }

    /// Execution is not known from here on.
    fn gap(&mut self, why: Unknown, sink: &mut impl FnMut(Item)) {
        let recorder = &mut self.recorder;
        let code_is_missing = matches!(why, Unknown::Gap(GapReason::NoCode(_) | GapReason::Undecodable(..)));
        if !code_is_missing {
            recorder.end_all(RowId::RUNNING, Finish::Lost);
        }
        if !recorder.spans.tracks.is_open(RowId::GAPS) {
            recorder.begin(RowId::GAPS, What::Gap(why));
        }
        // A contradiction has no length: the trace continues at once.
        if !matches!(why, Unknown::Gap(GapReason::Contradiction(_))) {
            self.give(sink);
            self.axis.unknown();
        }
    }

    /// The next element is in this part of the trace.
    fn enter(&mut self, phase: Phase, sink: &mut impl FnMut(Item)) {
        let before = std::mem::replace(&mut self.phase, phase);
        let now = self.recorder.spans.tracks.now;
        if before == Phase::Before && phase == Phase::Inside {
            let task = self.recorder.spans.task;
            let sleeps = |span: &Span| matches!(span.track, Track::Task(other) if other != task);
            let spans = self.recorder.spans.tracks.spans().into_iter();
            let spans = spans.map(|span| Span { start: Start::Clipped, ..span });
            let (asleep, awake) = spans.partition(sleeps);
            self.asleep = asleep;
            for span in awake {
                self.axis.push(now, Change::Begin(span), sink);
            }
        } else if before == Phase::Inside && phase == Phase::After {
            for Span { id, track, .. } in self.recorder.spans.tracks.spans().into_iter().rev() {
                self.push(now, Change::End { id, track, finish: Finish::Clipped }, sink);
            }
        }
    }

    /// Hands on a change. What was open in a task that slept when the window began, begins when the task runs.
    fn push(&mut self, place: Place, change: Change, sink: &mut impl FnMut(Item)) {
        match change {
            Change::Begin(Span { what: What::Task(task), .. }) => {
                for span in self.asleep.extract_if(.., |span| span.track == Track::Task(task)) {
                    self.axis.push(place, Change::Begin(span), sink);
                }
            }
            Change::End { id, .. } if self.asleep.iter().any(|span| span.id == id) => {
                return self.asleep.retain(|span| span.id != id);
            }
            _ => {}
        }
        self.axis.push(place, change, sink);
    }

    #[inline]
    fn give(&mut self, sink: &mut impl FnMut(Item)) {
        if self.recorder.changes.is_empty() {
            return;
        }
        if self.phase != Phase::Inside {
            self.recorder.changes.clear();
        }
        let mut changes = std::mem::take(&mut self.recorder.changes);
        for (place, change) in changes.drain(..) {
            self.push(place, change, sink);
        }
        self.recorder.changes = changes;
    }
}

#[cfg(test)]
mod tests;
