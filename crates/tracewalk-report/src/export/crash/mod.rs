//! How a program crashed, as text, JSON and Markdown: one screen.

mod json;
mod sheet;
mod tables;
mod text;
mod words;

use tracewalk_analysis::Section;
use tracewalk_analysis::crash::{
    Crash, CrashRecording, Doubt, NO_TRACE, PathItem, Snapshot, TraceEnd, Waiting,
};

pub use json::write_crash_json;
pub use tables::CRASH_TABLES;
pub use text::{write_crash_markdown, write_crash_text};

/// How the program of each source ended; `None` if no fault ended it.
#[derive(Debug)]
pub struct CrashReport {
    /// The sources.
    pub sources: Vec<(Section, Option<Crash>)>,
    /// The end of each source's trace, with the reasons to doubt it.
    pub ends: Vec<TraceEnd>,
    /// Whether every capture was decoded to its end.
    pub complete: bool,
    /// Whether no part of the trace is missing or unreadable, so that it ends where execution did.
    pub whole: bool,
}

impl CrashReport {
    /// The report of a recording whose sources' ends have these reasons to doubt them. See the fields for
    /// `complete` and `whole`.
    #[must_use]
    pub fn of(
        recording: CrashRecording,
        snapshot: &Snapshot,
        doubts: Vec<Vec<Doubt>>,
        (complete, whole): (bool, bool),
    ) -> Self {
        let ends = recording.ends(snapshot, doubts);
        let mut report = Self { sources: recording.finish(snapshot), ends, complete, whole };
        for ((_, crash), end) in report.sources.iter_mut().zip(&report.ends) {
            // Only the end of a whole trace shows that a program goes on no more.
            let is_certain = complete && whole && end.doubts.is_empty();
            *crash = crash.take().filter(|crash| is_certain || !crash.is_without_exception());
        }
        if !whole {
            report.doubt_hidden_ends();
        }
        report
    }

    /// The report about a program that nothing traced.
    #[must_use]
    pub fn untraced(section: Section, crash: Option<Crash>, doubts: Vec<Doubt>) -> Self {
        let ends = vec![TraceEnd { doubts, ..TraceEnd::default() }];
        Self { sources: vec![(section, crash)], ends, complete: true, whole: true }
    }

    /// Something is missing of the trace: a source whose end shows no crash, and nothing else to doubt, may lack its end.
    fn doubt_hidden_ends(&mut self) {
        for ((section, crash), end) in self.sources.iter().zip(&mut self.ends) {
            if end.doubts.is_empty() && !shows(crash.as_ref()) {
                let has_program = !section.code.program.is_empty();
                end.doubts.push(if has_program { Doubt::Incomplete } else { Doubt::NoProgram });
            }
        }
    }

    /// The sources, each with the end of its program and of its trace.
    fn each(&self) -> impl Iterator<Item = Source<'_>> {
        let ends = self.ends.iter().map(Some).chain(std::iter::repeat(None));
        self.sources.iter().zip(ends).map(|((section, crash), end)| Source {
            section,
            crash: crash.as_ref(),
            end,
        })
    }
}

/// A source's part of the report.
#[derive(Clone, Copy)]
struct Source<'a> {
    section: &'a Section,
    crash: Option<&'a Crash>,
    end: Option<&'a TraceEnd>,
}

impl<'a> Source<'a> {
    /// The reasons to doubt the end.
    fn doubts(self) -> &'a [Doubt] {
        self.end.map_or(&[], |end| &end.doubts)
    }

    /// The loop over a device's registers that the trace ends in, if nothing casts doubt on the end.
    fn polls(self) -> Option<&'a Waiting> {
        let end = self.end.filter(|end| end.doubts.is_empty() && self.crash.is_none());
        end.and_then(|end| end.polls.as_ref())
    }

    /// Whether nothing traced the program.
    fn lacks_trace(self) -> bool {
        self.section.protocol == NO_TRACE
    }

    /// The end of a trace that is in doubt and shows no crash: what ran before execution could not be followed.
    fn shown_end(self) -> Option<&'a TraceEnd> {
        self.end.filter(|end| !end.doubts.is_empty() && !shows(self.crash) && !self.lacks_trace())
    }
}

/// Whether a crash has the path to it.
fn shows(crash: Option<&Crash>) -> bool {
    crash.is_some_and(|crash| crash.path.iter().any(|item| !matches!(item, PathItem::Unknown)))
}
