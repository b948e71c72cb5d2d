//! What is said on standard error.
//!
//! Three kinds: an error ends the command, a warning tells of something that is not as it should be and ends in what
//! to try, a note tells what was found out.

use std::fmt;
use std::io::{IsTerminal as _, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use anstyle::{AnsiColor, Style};
use tracewalk::plain::Plain;
use tracewalk_analysis::drive::Progress;
use tracewalk_session::{Late, Notice, Observer, Severity};

use crate::failure::Failure;
use crate::progress::Bar;
use crate::provenance::Record;
use crate::sentences::sentence;

/// Says things on standard error.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    quiet: bool,
    /// Whether something was said that makes the exit status 2.
    failed: AtomicBool,
    /// Whether decoding ended before the capture did.
    cut: AtomicBool,
    /// What is recorded for `--provenance`.
    record: Option<Mutex<Record>>,
    /// What arises when names are looked up, said at the end.
    late: Late,
}

impl Messages {
    pub(crate) fn new(quiet: bool, records: bool) -> Self {
        let record = records.then(Mutex::default);
        Self { quiet, record, ..Self::default() }
    }

    /// Adds to what is recorded for `--provenance`, if that was asked for.
    pub(crate) fn record(&self, add: impl FnOnce(&mut Record) -> Result<(), Failure>) -> Result<(), Failure> {
        match &self.record {
            Some(record) => add(&mut record.lock().unwrap_or_else(PoisonError::into_inner)),
            None => Ok(()),
        }
    }

    /// Whether `--provenance` was asked for.
    pub(crate) const fn records(&self) -> bool {
        self.record.is_some()
    }

    /// Something was found out.
    pub(crate) fn note(&self, text: impl fmt::Display) {
        if !self.quiet {
            say("note", AnsiColor::Cyan.on_default().bold(), &text);
        }
    }

    /// Something is not as it should be; the work goes on.
    #[allow(clippy::unused_self, reason = "warnings are said like the other messages")]
    pub(crate) fn warning(&self, text: impl fmt::Display) {
        say("warning", AnsiColor::Yellow.on_default().bold(), &text);
    }

    /// As a warning, of something that could not be read: the exit status will be 2.
    pub(crate) fn incomplete(&self, text: impl fmt::Display) {
        self.failed.store(true, Ordering::Relaxed);
        self.warning(text);
    }

    /// The command ends without what it was asked for.
    pub(crate) fn error(&self, text: impl fmt::Display) {
        self.failed.store(true, Ordering::Relaxed);
        say("error", AnsiColor::Red.on_default().bold(), &text);
    }

    /// Says what arose when names were looked up.
    pub(crate) fn say_late(&self) {
        self.late.take().into_iter().for_each(|notice| self.notice(notice));
    }

    /// Whether everything was decoded that there is.
    pub(crate) fn complete(&self) -> bool {
        !self.cut.load(Ordering::Relaxed)
    }

    /// Whether something could not be read.
    pub(crate) fn failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }
}

impl Observer for Messages {
    fn notice(&self, notice: Notice) {
        self.cut.fetch_or(notice.kind.is_cut(), Ordering::Relaxed);
        match notice.severity() {
            Severity::Note if self.quiet => {}
            Severity::Note => self.note(sentence(&notice)),
            Severity::Warning => self.warning(sentence(&notice)),
            Severity::Incomplete => self.incomplete(sentence(&notice)),
        }
        if let Some(record) = &self.record {
            record.lock().unwrap_or_else(PoisonError::into_inner).notice(&notice);
        }
    }

    fn work(&self, bytes: u64) -> Box<dyn Progress + '_> {
        let watched = std::io::stderr().is_terminal() && !std::io::stdout().is_terminal();
        Box::new(Bar::new(bytes, watched && !self.quiet))
    }

    fn late(&self) -> Late {
        self.late.clone()
    }
}

fn say(kind: &str, style: Style, text: &dyn fmt::Display) {
    // Whatever a message quotes, it is one line and nothing that the terminal obeys.
    // Where standard error is closed there is nobody to tell.
    let _ = writeln!(anstream::stderr(), "{style}{kind}:{style:#} {}", Plain(text));
}
