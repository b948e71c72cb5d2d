//! The spans that are open, track by track.
//!
//! Ensures that only the innermost span of a track ends, whatever the trace contains: writers rely on it.

use std::collections::{BTreeSet, HashMap};

use tracewalk::ids::Exception;

use super::item::{Change, Finish, Span, SpanId, Start, Track, What};
use super::place::Place;
use crate::call_stack::Task;
use crate::quick::QuickMap;

/// The most tasks with a track of their own.
const MOST_TASKS: usize = 1024;

/// The open spans.
#[derive(Debug)]
pub(super) struct Tracks {
    /// Each track with its open spans, in the order in which tracks were first used.
    rows: Vec<Row>,
    index: QuickMap<Track, RowId>,
    /// The rows of the exceptions that were looked up last.
    recent: [(Option<Exception>, RowId); 2],
    /// Spans of exceptions that wait for their task.
    waiting: HashMap<Task, Vec<Span>>,
    tasks: BTreeSet<Task>,
    last: SpanId,
    /// The place of the next change.
    pub(super) now: Place,
}

/// The index of a track, in the order of first use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowId(u32);

/// The open spans of a track.
#[derive(Debug)]
struct Row {
    track: Track,
    spans: Vec<Span>,
}

impl RowId {
    pub(super) const RUNNING: Self = Self(0);
    pub(super) const GAPS: Self = Self(1);
    const NONE: Self = Self(u32::MAX);
}

impl Default for Tracks {
    fn default() -> Self {
        let mut tracks = Self {
            rows: Vec::new(),
            index: QuickMap::default(),
            recent: [(None, RowId::NONE); 2],
            waiting: HashMap::new(),
            tasks: BTreeSet::new(),
            last: SpanId::default(),
            now: Place::default(),
        };
        // In the order of their numbers.
        for track in [Track::Running, Track::Gaps] {
            tracks.new_row(track);
        }
        tracks
    }
}

impl Tracks {
    /// The row of a task's functions.
    pub(super) fn row_of_task(&mut self, task: Task) -> RowId {
        if self.tasks.len() >= MOST_TASKS && !self.tasks.contains(&task) {
            return self.row(Track::OtherTasks);
        }
        self.tasks.insert(task);
        self.row(Track::Task(task))
    }

    /// Begins a span, inside those that are open there.
    #[inline]
    pub(super) fn begin(
        &mut self,
        row: RowId,
        what: What,
        start: Start,
        out: &mut impl FnMut(Place, Change),
    ) -> SpanId {
        self.last.0 += 1;
        let Some(row) = self.rows.get_mut(row.0 as usize) else { return self.last };
        let span = Span { id: self.last, track: row.track, what, start };
        row.spans.push(span);
        out(self.now, Change::Begin(span));
        self.last
    }

    /// Ends a span, and the spans open inside it; nothing if it has ended.
    #[inline]
    pub(super) fn end(
        &mut self,
        id: SpanId,
        row: RowId,
        finish: Finish,
        out: &mut impl FnMut(Place, Change),
    ) {
        let now = self.now;
        let Some(Row { track, spans }) = self.rows.get_mut(row.0 as usize) else { return };
        let track = *track;
        if spans.pop_if(|innermost| innermost.id == id).is_some() {
            return out(now, Change::End { id, track, finish });
        }
        let Some(index) = spans.iter().rposition(|span| span.id == id) else {
            // The span's task does not run: the span was cut when the task stopped.
            self.waiting.values_mut().for_each(|spans| spans.retain(|span| span.id != id));
            return;
        };
        while spans.len() > index + 1
            && let Some(inner) = spans.pop()
        {
            out(now, Change::End { id: inner.id, track, finish: Finish::Lost });
        }
        spans.pop();
        out(now, Change::End { id, track, finish });
    }

    /// Whether a span is open there.
    #[inline]
    pub(super) fn is_open(&self, row: RowId) -> bool {
        self.rows.get(row.0 as usize).is_some_and(|row| !row.spans.is_empty())
    }

    /// All open spans, the outer ones first.
    pub(super) fn spans(&self) -> Vec<Span> {
        let mut spans = self.rows.iter().flat_map(|row| &row.spans).copied().collect::<Vec<_>>();
        spans.sort_by_key(|span| span.id);
        spans
    }

    /// Ends everything that is open on a track.
    pub(super) fn end_all(&mut self, row: RowId, finish: Finish, out: &mut impl FnMut(Place, Change)) {
        let outermost = self.rows.get(row.0 as usize).and_then(|row| row.spans.first());
        if let Some(outermost) = outermost.map(|span| span.id) {
            self.end(outermost, row, finish, out);
        }
    }

    /// Another task runs. Exceptions that have not returned belong to the previous task, and are resumed with it.
    pub(super) fn switch(&mut self, from: Task, to: Task, out: &mut impl FnMut(Place, Change)) {
        let mut cut = Vec::new();
        for Row { track, spans } in &mut self.rows {
            if matches!(track, Track::Exception(_)) {
                cut.append(spans);
            }
        }
        cut.sort_by_key(|span| span.id);
        let now = self.now;
        for Span { id, track, .. } in cut.iter().rev().copied() {
            out(now, Change::End { id, track, finish: Finish::Suspended });
        }
        if !cut.is_empty() && self.waiting.len() < MOST_TASKS {
            self.waiting.insert(from, cut);
        }
        for span in self.waiting.remove(&to).unwrap_or_default() {
            let (row, span) = (self.row(span.track), Span { start: Start::Resumed, ..span });
            if let Some(row) = self.rows.get_mut(row.0 as usize) {
                row.spans.push(span);
            }
            out(now, Change::Begin(span));
        }
    }

    /// The row of an exception.
    #[inline]
    pub(super) fn row_of_exception(&mut self, exception: Option<Exception>) -> RowId {
        let known = self.recent.iter().find(|(known, row)| *known == exception && *row != RowId::NONE);
        match known {
            Some((_, row)) => *row,
            None => self.look_up(exception),
        }
    }

    #[inline(never)]
    fn look_up(&mut self, exception: Option<Exception>) -> RowId {
        let row = self.row(Track::Exception(exception));
        self.recent = [(exception, row), self.recent[0]];
        row
    }

    /// The row of any track.
    pub(super) fn row(&mut self, track: Track) -> RowId {
        self.index.get(&track).copied().unwrap_or_else(|| self.new_row(track))
    }

    #[cold]
    fn new_row(&mut self, track: Track) -> RowId {
        let row = RowId(u32::try_from(self.rows.len()).unwrap_or(u32::MAX));
        self.rows.push(Row { track, spans: Vec::new() });
        self.index.insert(track, row);
        row
    }
}
