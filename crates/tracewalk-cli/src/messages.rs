//! Messages on standard error.
//!
//! Three severities: an error ends the command, a warning reports a problem and ends in a remedy, a note states what was
//! inferred.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{IsTerminal as _, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

use anstyle::{AnsiColor, Style};
use serde::Serialize;
use tracewalk::plain::Plain;
use tracewalk::span::CaptureOffset;
use tracewalk_analysis::Statistics;
use tracewalk_analysis::drive::Progress;
use tracewalk_analysis::itm::ItmCounts;
use tracewalk_session::{Followed, Itm, Late, Notice, Observer, Session, Severity, Source};

use crate::args::{MessageFormat, WorkArgs};
use crate::failure::Failure;
use crate::output::Replaced;
use crate::progress::Bar;
use crate::provenance::Record;
use tracewalk_sentences::sentence;

/// Prints messages on standard error.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    quiet: bool,
    format: MessageFormat,
    /// Whether a message made the exit status 2.
    failed: AtomicBool,
    /// Whether decoding ended before the capture did.
    cut: AtomicBool,
    /// The record for `--provenance`.
    record: Option<Mutex<Record>>,
    /// Notices that arise when names are looked up, printed at the end.
    late: Late,
    /// For `--stats`: the start of the work, its threads, and what was followed.
    started: OnceLock<(Instant, u16)>,
    total: Mutex<Statistics>,
    /// The capture that notices are about, if it is one of several, and the notes on the earlier ones.
    about: Mutex<(Option<String>, BTreeSet<String>)>,
    /// The files that results replace.
    pub(crate) replaced: Replaced,
}

impl Messages {
    pub(crate) fn new(quiet: bool, format: MessageFormat, records: bool) -> Self {
        let record = records.then(Mutex::default);
        Self { quiet, format, record, ..Self::default() }
    }

    /// Adds to the record for `--provenance`, if requested.
    pub(crate) fn record<T>(&self, add: impl FnOnce(&mut Record) -> T) -> Option<T> {
        let record = self.record.as_ref()?;
        Some(add(&mut record.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Whether `--provenance` was requested.
    pub(crate) const fn records(&self) -> bool {
        self.record.is_some()
    }

    /// Notices are about this capture from here on, one of several; or about no certain one.
    pub(crate) fn speak_of(&self, capture: Option<&Path>) {
        self.about.lock().unwrap_or_else(PoisonError::into_inner).0 =
            capture.map(|capture| capture.display().to_string());
    }

    /// Reports an inference.
    pub(crate) fn note(&self, kind: &str, text: impl fmt::Display) {
        self.say(Severity::Note, kind, None, &text);
    }

    /// Reports a problem; the work continues.
    pub(crate) fn warning(&self, kind: &str, text: impl fmt::Display) {
        self.say(Severity::Warning, kind, None, &text);
    }

    /// As a warning, for an incomplete result: the exit status will be 2.
    pub(crate) fn incomplete(&self, kind: &str, text: impl fmt::Display) {
        self.say(Severity::Incomplete, kind, None, &text);
    }

    /// Reports that the command failed.
    pub(crate) fn error(&self, failure: &Failure) {
        self.failed.store(true, Ordering::Relaxed);
        write(self.format, Label::Error, failure.kind(), None, failure);
    }

    /// Prints a message.
    pub(crate) fn say(
        &self,
        severity: Severity,
        kind: &str,
        at: Option<CaptureOffset>,
        text: &dyn fmt::Display,
    ) {
        let label = match severity {
            Severity::Note if self.quiet => return,
            Severity::Note => Label::Note,
            Severity::Warning => Label::Warning,
            Severity::Incomplete => {
                self.failed.store(true, Ordering::Relaxed);
                Label::Warning
            }
        };
        write(self.format, label, kind, at, text);
    }

    /// The work begins; its totals are printed at the end if they are asked for.
    pub(crate) fn measure(&self, work: WorkArgs) {
        if work.stats {
            let _ = self.started.set((Instant::now(), work.threads));
        }
    }

    /// Adds to the totals, besides the sources that are [`followed`](Observer::followed).
    pub(crate) fn add(&self, statistics: &Statistics) {
        self.total.lock().unwrap_or_else(PoisonError::into_inner).add(statistics);
    }

    /// Prints the totals.
    pub(crate) fn say_statistics(&self) {
        #[derive(Serialize)]
        struct Line {
            bytes: u64,
            packets: u64,
            ranges: u64,
            instructions: u64,
            gaps: u64,
            malformed: u64,
            seconds: f64,
            threads: u16,
            complete: bool,
        }
        let Some(&(start, threads)) = self.started.get() else { return };
        let Statistics { bytes, packets, malformed, ranges, instructions, gaps } =
            *self.total.lock().unwrap_or_else(PoisonError::into_inner);
        let (seconds, complete) = (start.elapsed().as_secs_f64(), self.complete());
        let line = Line { bytes, packets, ranges, instructions, gaps, malformed, seconds, threads, complete };
        // If standard error is closed, the error cannot be reported.
        let _ = serde_json::to_string(&line).map(|line| writeln!(std::io::stderr(), "{line}"));
    }

    /// Shows how many of the captures are done.
    pub(crate) fn captures(&self, all: usize) -> Box<dyn Progress> {
        Box::new(Bar::of_captures(all as u64, std::io::stderr().is_terminal() && !self.quiet))
    }

    /// Prints the notices of name look-ups.
    pub(crate) fn say_late(&self) {
        self.late.take().into_iter().for_each(|notice| self.notice(notice));
    }

    /// Whether the whole capture was decoded.
    pub(crate) fn complete(&self) -> bool {
        !self.cut.load(Ordering::Relaxed)
    }

    /// Whether an input could not be read in full.
    pub(crate) fn failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }
}

impl Observer for Messages {
    fn notice(&self, notice: Notice) {
        self.cut.fetch_or(notice.kind.is_cut(), Ordering::Relaxed);
        let (severity, text) = (notice.severity(), sentence(&notice));
        let (capture, said) = &mut *self.about.lock().unwrap_or_else(PoisonError::into_inner);
        let capture = capture.as_deref().filter(|capture| !text.starts_with(capture));
        // What is inferred of each of many runs is mostly the same.
        if capture.is_none() || severity != Severity::Note || said.insert(text.clone()) {
            let text = capture.map_or_else(|| text.clone(), |capture| format!("{capture}: {text}"));
            self.say(severity, notice.kind.name(), notice.at, &text);
        }
        if let Some(record) = &self.record {
            record.lock().unwrap_or_else(PoisonError::into_inner).notice(&notice);
        }
    }

    fn work(&self, bytes: u64) -> Box<dyn Progress + '_> {
        let watched = std::io::stderr().is_terminal() && !std::io::stdout().is_terminal();
        Box::new(Bar::new(bytes, watched && !self.quiet))
    }

    fn followed(&self, session: &Session, source: &Source, followed: &Followed<'_>) {
        self.add(followed.statistics);
        if let Some(record) = &self.record {
            record.lock().unwrap_or_else(PoisonError::into_inner).followed(session, source, followed);
        }
    }

    fn heard(&self, itm: &Itm, counts: &ItmCounts, statistics: &Statistics) {
        self.add(statistics);
        self.record(|record| record.itm(itm, counts));
    }

    fn late(&self) -> Late {
        self.late.clone()
    }
}

/// The label of a message.
#[derive(Clone, Copy, Debug)]
enum Label {
    Note,
    Warning,
    Error,
}

impl Label {
    const fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }

    const fn style(self) -> Style {
        match self {
            Self::Note => AnsiColor::Cyan.on_default(),
            Self::Warning => AnsiColor::Yellow.on_default(),
            Self::Error => AnsiColor::Red.on_default(),
        }
        .bold()
    }
}

/// Prints an error of the arguments as JSON.
pub(crate) fn refuse(error: &clap::Error) {
    let text = error.render().to_string();
    // A paragraph each for the mistake, for tips, and for the usage.
    let lines = text.trim_start_matches("error: ").lines().map(str::trim).filter(|line| !line.is_empty());
    let text = lines.collect::<Vec<_>>().join("; ");
    write(MessageFormat::Json, Label::Error, "arguments", None, &text);
}

fn write(
    format: MessageFormat,
    label: Label,
    kind: &str,
    at: Option<CaptureOffset>,
    text: &dyn fmt::Display,
) {
    #[derive(Serialize)]
    struct Message<'a> {
        severity: &'static str,
        kind: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        offset: Option<u64>,
        message: String,
    }
    let (severity, style) = (label.name(), label.style());
    // A message is one line without control characters, even if it quotes some. If standard error is closed, messages cannot be
    // shown.
    let _ = match format {
        MessageFormat::Text => {
            writeln!(anstream::stderr(), "{style}{severity}:{style:#} {}", Plain(text))
        }
        MessageFormat::Json => {
            let offset = at.map(|CaptureOffset(at)| at);
            let message = Message { severity, kind, offset, message: Plain(text).to_string() };
            serde_json::to_string(&message).map_or(Ok(()), |line| writeln!(std::io::stderr(), "{line}"))
        }
    };
}
