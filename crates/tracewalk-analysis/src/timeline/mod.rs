//! When what ran: functions, exceptions, tasks, and where the trace does not tell, along one axis.
//!
//! ```text
//! CallStack   flow elements → functions, exceptions and tasks that begin and end
//! Tracks      … as spans that enclose each other
//! Axis        … each at its place on the axis
//! ```
//!
//! The axis is time where there are timestamps, else cycles, else instructions; [`Probe`] finds out which of them a trace
//! has. Items come in the order of the axis, so that writers keep no more than what is open.

mod axis;
mod item;
mod scale;
mod tracks;

use std::sync::Arc;

use tracewalk::flow::{Element, EventKind, GapReason};
use tracewalk::span::CaptureOffset;

use super::call_stack::{
    CallStack, Entry, Evidence, Frame, FrameKind, FunctionId, Left, Observer, Piece, Task,
};
use super::clock::{CycleMeter, Spent, share};
use super::window::{Phase, Window, Windowed};
use crate::Code;
use axis::{Axis, Place};
use tracks::Tracks;

pub use item::{Certainty, Change, Finish, Item, Mark, Moment, Span, SpanId, Start, Track, Unknown, What};
pub use scale::{Probe, Scale};

/// Puts one source's flow on an axis.
#[derive(Debug)]
pub struct Timeline {
    calls: CallStack<Marks>,
    meter: CycleMeter,
    windowed: Windowed,
    phase: Phase,
    recorder: Recorder,
    axis: Axis,
}

/// What is remembered of a running function.
#[derive(Clone, Copy, Debug)]
struct Marks {
    track: Track,
    function: SpanId,
    /// The exception that its frame handles.
    exception: Option<(SpanId, Track)>,
}

#[derive(Debug)]
struct Recorder {
    tracks: Tracks,
    task: Task,
    /// Whether places are counted in cycles.
    by_cycles: bool,
    now: Place,
    /// Of the block that runs: where it ends, and how many instructions are left of it.
    block_end: u64,
    block_rest: u64,
    /// The exception whose handler's frame is being taken over.
    replaced: Option<(SpanId, Track)>,
    /// Whether anything has run.
    begun: bool,
    /// What changed, and where.
    changes: Vec<(Place, Change)>,
}

impl Timeline {
    /// Nothing has run yet. Only what is in the window is given out; spans that reach over its ends are cut there.
    #[must_use]
    pub fn new(code: Arc<Code>, scale: &Scale, window: Window) -> Self {
        let calls = CallStack::new(code);
        let task = calls.task();
        Self {
            calls,
            meter: CycleMeter::default(),
            windowed: window.begin(),
            phase: Phase::Before,
            recorder: Recorder {
                tracks: Tracks::default(),
                task,
                by_cycles: scale.counts_cycles,
                now: Place::default(),
                block_end: 0,
                block_rest: 0,
                replaced: None,
                begun: false,
                changes: Vec::new(),
            },
            axis: Axis::new(scale.unit),
        }
    }

    /// Takes the next element; calls `sink` with what is certain of the timeline now.
    pub fn element(&mut self, element: &Element, at: CaptureOffset, sink: &mut dyn FnMut(Item)) {
        let phase = self.windowed.element(element, at);
        self.enter(phase, sink);
        let spent = self.meter.element(element);
        let cycles = spent.map_or(0, Spent::cycles);
        match element {
            Element::Block(block) => {
                let count = if self.recorder.by_cycles { cycles } else { block.instructions.into() };
                self.recorder.block_end = self.recorder.now.count.saturating_add(count);
                self.recorder.block_rest = block.instructions.into();
                self.follow(element);
                self.recorder.now = Place { count: self.recorder.block_end, certainty: Certainty::Exact };
                self.recorder.begun = true;
            }
            Element::Proof(_) => {}
            Element::Gap(gap) => {
                self.follow(element);
                self.gap(Unknown::Gap(gap.reason), sink);
                self.recorder.pass(cycles);
            }
            Element::Event(event) => match event.kind {
                EventKind::TraceOn(reason) => {
                    self.follow(element);
                    if self.recorder.begun {
                        self.gap(Unknown::Untraced(reason), sink);
                    }
                    self.recorder.pass(cycles);
                }
                EventKind::Timestamp(time) => {
                    self.give(sink);
                    if time != 0 {
                        self.axis.timestamp(self.recorder.now.count, time, sink);
                    }
                }
                EventKind::Trigger => {
                    let mark = Change::Mark { track: Track::Events, mark: Mark::Trigger };
                    self.recorder.changes.push((self.recorder.now, mark));
                }
                _ => {
                    self.recorder.pass(cycles);
                    self.follow(element);
                }
            },
        }
        self.give(sink);
    }

    /// The program wrote something, between the last element and the next one: by what the capture tells first.
    pub fn text(&mut self, port: u8, text: String, sink: &mut dyn FnMut(Item)) {
        let now = Place { certainty: Certainty::Estimated, ..self.recorder.now };
        self.recorder.changes.push((now, Change::Mark { track: Track::Text(port), mark: Mark::Text(text) }));
        self.give(sink);
    }

    /// The trace ends here.
    pub fn finish(&mut self, sink: &mut dyn FnMut(Item)) {
        let cycles = self.meter.finish().map_or(0, Spent::cycles);
        self.recorder.pass(cycles);
        self.calls.finish(&mut self.recorder);
        self.recorder.take_changes();
        for track in [Track::Running, Track::Gaps] {
            self.recorder.tracks.end_all(track, Finish::Lost);
        }
        self.recorder.take_changes();
        self.give(sink);
        self.axis.flush(sink);
    }

    fn follow(&mut self, element: &Element) {
        self.calls.element(element, &mut self.recorder);
        self.recorder.take_changes();
    }

    /// Execution is not known from here on.
    fn gap(&mut self, why: Unknown, sink: &mut dyn FnMut(Item)) {
        let recorder = &mut self.recorder;
        let code_is_missing = matches!(why, Unknown::Gap(GapReason::NoCode(_) | GapReason::Undecodable(..)));
        if !code_is_missing {
            recorder.tracks.end_all(Track::Running, Finish::Lost);
        }
        if !recorder.tracks.is_open(Track::Gaps) {
            recorder.tracks.begin(Track::Gaps, What::Gap(why), Start::Here);
        }
        recorder.take_changes();
        // What a contradiction hides has no length: the trace goes on at once.
        if !matches!(why, Unknown::Gap(GapReason::Contradiction(_))) {
            self.give(sink);
            self.axis.unknown();
        }
    }

    /// The next element is in this part of the trace.
    fn enter(&mut self, phase: Phase, sink: &mut dyn FnMut(Item)) {
        let before = std::mem::replace(&mut self.phase, phase);
        let now = self.recorder.now;
        if before == Phase::Before && phase == Phase::Inside {
            for span in self.recorder.tracks.spans() {
                self.axis.push(now, Change::Begin(Span { start: Start::Clipped, ..span }), sink);
            }
        } else if before == Phase::Inside && phase == Phase::After {
            for Span { id, track, .. } in self.recorder.tracks.spans().into_iter().rev() {
                self.axis.push(now, Change::End { id, track, finish: Finish::Clipped }, sink);
            }
        }
    }

    fn give(&mut self, sink: &mut dyn FnMut(Item)) {
        if self.phase != Phase::Inside {
            self.recorder.changes.clear();
        }
        for (place, change) in self.recorder.changes.drain(..) {
            self.axis.push(place, change, sink);
        }
    }
}

impl Recorder {
    /// Cycles passed without any instruction that is known.
    fn pass(&mut self, cycles: u64) {
        if self.by_cycles {
            self.now.count = self.now.count.saturating_add(cycles);
            self.now.certainty = Certainty::Exact;
        }
    }

    /// What changed happened now.
    fn take_changes(&mut self) {
        let now = self.now;
        self.changes.extend(self.tracks.changes.drain(..).map(|change| (now, change)));
    }

    fn enter_frame(
        &mut self,
        below: Option<&Frame<Marks>>,
        frame: (FrameKind, FunctionId),
        entry: Entry,
    ) -> Marks {
        let (kind, function) = frame;
        let start = match entry {
            Entry::Found | Entry::Regained => Start::Earlier,
            Entry::Called | Entry::TailCalled | Entry::Joined | Entry::Interrupting => Start::Here,
        };
        let replaced = self.replaced.take();
        let exception = match kind {
            FrameKind::Exception(interruption) => Some(replaced.unwrap_or_else(|| {
                let track = Track::Exception(interruption.exception);
                (self.tracks.begin(track, What::Exception(interruption), start), track)
            })),
            FrameKind::Root | FrameKind::Call { .. } => None,
        };
        let track = match (exception, below) {
            (Some((_, track)), _) => track,
            (None, Some(below)) => below.mark.track,
            (None, None) => self.tracks.of_task(self.task),
        };
        let function = self.tracks.begin(track, What::Function { function, entry }, start);
        Marks { track, function, exception }
    }
}

impl Observer for Recorder {
    type Mark = Marks;

    fn enter(
        &mut self,
        below: Option<&mut Frame<Marks>>,
        kind: FrameKind,
        function: FunctionId,
        entry: Entry,
    ) -> Marks {
        self.enter_frame(below.as_deref(), (kind, function), entry)
    }

    fn regain(&mut self, below: Option<&mut Frame<Marks>>, frame: &mut Frame<Marks>) {
        frame.mark = self.enter_frame(below.as_deref(), (frame.kind, frame.function), Entry::Regained);
    }

    fn run(&mut self, _: &mut Frame<Marks>, piece: &Piece) {
        if !self.tracks.is_open(Track::Running) {
            self.tracks.begin(Track::Running, What::Task(self.task), Start::Here);
        }
        self.tracks.end_all(Track::Gaps, Finish::Returned);
        self.take_changes();
        let rest = self.block_end.saturating_sub(self.now.count);
        let instructions = u64::from(piece.instructions);
        self.now.count += share(rest, 0, instructions, self.block_rest);
        self.block_rest = self.block_rest.saturating_sub(instructions);
        let is_counted = self.block_rest == 0 || !self.by_cycles;
        self.now.certainty = if is_counted { Certainty::Exact } else { Certainty::Interpolated };
    }

    fn leave(&mut self, frame: &mut Frame<Marks>, _: Option<&mut Frame<Marks>>, how: Left) {
        let Marks { track, function, exception } = frame.mark;
        self.tracks.end(function, track, how.into());
        match (exception, how) {
            (None, _) => {}
            (Some(exception), Left::Replaced) => self.replaced = Some(exception),
            (Some((id, track)), _) => self.tracks.end(id, track, how.into()),
        }
    }

    fn switch(&mut self, from: Task, to: Task, _: Evidence) {
        self.tracks.end_all(Track::Running, Finish::Suspended);
        self.tracks.switch(from, to);
        self.task = to;
    }
}

#[cfg(test)]
mod tests;
