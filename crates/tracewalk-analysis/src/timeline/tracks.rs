//! The spans that are open, track by track.
//!
//! Writers rely on it that only the innermost span of a track ends, whatever the trace says: this is where that is made
//! true.

use std::collections::{BTreeSet, HashMap};

use super::axis::Place;
use super::item::{Change, Finish, Span, SpanId, Start, Track, What};
use crate::call_stack::Task;
use crate::quick::QuickMap;

/// More tasks than these share a track.
const MOST_TASKS: usize = 1024;

/// The open spans.
#[derive(Debug, Default)]
pub(super) struct Tracks {
    /// Each track with its open spans, in the order in which tracks were first used.
    rows: Vec<Row>,
    index: QuickMap<Track, usize>,
    /// The row that was used last.
    recent: usize,
    /// Whether something is open on the tracks that are asked about all the time.
    is_running: bool,
    is_in_gap: bool,
    /// Spans of exceptions that wait for their task.
    waiting: HashMap<Task, Vec<Span>>,
    tasks: BTreeSet<Task>,
    last: SpanId,
    /// Where what changes happens.
    pub(super) now: Place,
    /// What changed and was not taken yet.
    pub(super) changes: Vec<(Place, Change)>,
}

/// The open spans of a track.
#[derive(Debug)]
struct Row {
    track: Track,
    spans: Vec<Span>,
}

impl Tracks {
    /// The track of a task's functions.
    pub(super) fn of_task(&mut self, task: Task) -> Track {
        if self.tasks.len() >= MOST_TASKS && !self.tasks.contains(&task) {
            return Track::OtherTasks;
        }
        self.tasks.insert(task);
        Track::Task(task)
    }

    pub(super) fn begin(&mut self, track: Track, what: What, start: Start) -> SpanId {
        self.last.0 += 1;
        self.open_span(Span { id: self.last, track, what, start });
        self.last
    }

    /// Ends a span, and what is open inside it; nothing where it has ended.
    pub(super) fn end(&mut self, id: SpanId, track: Track, finish: Finish) {
        let now = self.now;
        let Some(open) = self.row(track).and_then(|row| self.rows.get_mut(row)) else { return };
        let open = &mut open.spans;
        let Some(index) = open.iter().rposition(|span| span.id == id) else {
            // Its task does not run: it was cut there.
            self.waiting.values_mut().for_each(|spans| spans.retain(|span| span.id != id));
            return;
        };
        while open.len() > index + 1
            && let Some(inner) = open.pop()
        {
            self.changes.push((now, Change::End { id: inner.id, track, finish: Finish::Lost }));
        }
        open.pop();
        let is_open = !open.is_empty();
        self.note(track, is_open);
        self.changes.push((now, Change::End { id, track, finish }));
    }

    /// Whether something is open there.
    pub(super) fn is_open(&self, track: Track) -> bool {
        match track {
            Track::Running => self.is_running,
            Track::Gaps => self.is_in_gap,
            _ => self.spans_of(track).is_some_and(|open| !open.is_empty()),
        }
    }

    const fn note(&mut self, track: Track, is_open: bool) {
        match track {
            Track::Running => self.is_running = is_open,
            Track::Gaps => self.is_in_gap = is_open,
            _ => {}
        }
    }

    /// Everything that is open, the outer spans first.
    pub(super) fn spans(&self) -> Vec<Span> {
        let mut spans = self.rows.iter().flat_map(|row| &row.spans).copied().collect::<Vec<_>>();
        spans.sort_by_key(|span| span.id);
        spans
    }

    /// Ends everything that is open on a track.
    pub(super) fn end_all(&mut self, track: Track, finish: Finish) {
        if let Some(outermost) = self.spans_of(track).and_then(|open| open.first()).map(|span| span.id) {
            self.end(outermost, track, finish);
        }
    }

    /// Another task runs. Exceptions that have not returned belong to the one before, and go on with it.
    pub(super) fn switch(&mut self, from: Task, to: Task) {
        let mut cut = Vec::new();
        for Row { track, spans } in &mut self.rows {
            if matches!(track, Track::Exception(_)) {
                cut.append(spans);
            }
        }
        cut.sort_by_key(|span| span.id);
        let ends = cut.iter().rev();
        let now = self.now;
        self.changes.extend(
            ends.map(|span| (now, Change::End { id: span.id, track: span.track, finish: Finish::Suspended })),
        );
        if !cut.is_empty() && self.waiting.len() < MOST_TASKS {
            self.waiting.insert(from, cut);
        }
        for span in self.waiting.remove(&to).unwrap_or_default() {
            self.open_span(Span { start: Start::Resumed, ..span });
        }
    }

    fn open_span(&mut self, span: Span) {
        self.note(span.track, true);
        let row = self.row(span.track).unwrap_or_else(|| self.new_row(span.track));
        if let Some(row) = self.rows.get_mut(row) {
            row.spans.push(span);
        }
        self.changes.push((self.now, Change::Begin(span)));
    }

    /// Which row a track has, if it was used before.
    #[inline]
    fn row(&mut self, track: Track) -> Option<usize> {
        if self.rows.get(self.recent).is_none_or(|row| row.track != track) {
            self.recent = *self.index.get(&track)?;
        }
        Some(self.recent)
    }

    #[cold]
    fn new_row(&mut self, track: Track) -> usize {
        self.recent = self.rows.len();
        self.rows.push(Row { track, spans: Vec::new() });
        self.index.insert(track, self.recent);
        self.recent
    }

    fn spans_of(&self, track: Track) -> Option<&[Span]> {
        let row = self.index.get(&track)?;
        self.rows.get(*row).map(|row| &*row.spans)
    }
}
