//! What is said on standard error.
//!
//! Three kinds: an error ends the command, a warning tells of something that is not as it should be and ends in what
//! to try, a note tells what was found out.

use std::fmt;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use anstyle::{AnsiColor, Style};
use tracewalk::plain::Plain;
use tracewalk_analysis::itm::ItmCounts;

use crate::failure::Failure;
use crate::provenance::Record;
use crate::work::ItmJob;

/// Says things on standard error.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    quiet: bool,
    /// Whether nothing is said at all.
    muted: bool,
    /// Whether something was said that makes the exit status 2.
    failed: AtomicBool,
    /// Whether decoding ended before the capture did.
    cut: AtomicBool,
    /// What is recorded for `--provenance`.
    record: Option<Mutex<Record>>,
}

impl Messages {
    pub(crate) fn new(quiet: bool, records: bool) -> Self {
        let record = records.then(Mutex::default);
        Self { quiet, record, ..Self::default() }
    }

    /// Adds to what is recorded for `--provenance`, where that was asked for.
    pub(crate) fn record(&self, add: impl FnOnce(&mut Record) -> Result<(), Failure>) -> Result<(), Failure> {
        match &self.record {
            Some(record) => add(&mut record.lock().unwrap_or_else(PoisonError::into_inner)),
            None => Ok(()),
        }
    }

    /// Records what of an ITM was lost.
    pub(crate) fn note_itm(&self, itm: &ItmJob, counts: &ItmCounts) {
        if let Some(record) = &self.record {
            record.lock().unwrap_or_else(PoisonError::into_inner).itm(itm, counts);
        }
    }

    /// Whether `--provenance` was asked for.
    pub(crate) const fn records(&self) -> bool {
        self.record.is_some()
    }

    /// Says nothing: for a try.
    pub(crate) fn muted() -> Self {
        Self { quiet: true, muted: true, ..Self::default() }
    }

    /// Something was found out.
    pub(crate) fn note(&self, text: impl fmt::Display) {
        if !self.quiet {
            say("note", AnsiColor::Cyan.on_default().bold(), &text);
        }
    }

    /// Something is not as it should be; the work goes on.
    pub(crate) fn warning(&self, text: impl fmt::Display) {
        if self.muted {
            return;
        }
        warn(text);
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

    /// Decoding ended before the capture did: the result is of a part of it.
    pub(crate) fn cut(&self) {
        self.cut.store(true, Ordering::Relaxed);
    }

    /// Whether everything was decoded that there is.
    pub(crate) fn complete(&self) -> bool {
        !self.cut.load(Ordering::Relaxed)
    }

    /// Whether notes and progress are unwanted.
    pub(crate) const fn quiet(&self) -> bool {
        self.quiet
    }

    /// Whether something could not be read.
    pub(crate) fn failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }
}

/// A warning of what is found out where nobody has the messages at hand. The work goes on.
pub(crate) fn warn(text: impl fmt::Display) {
    say("warning", AnsiColor::Yellow.on_default().bold(), &text);
}

fn say(kind: &str, style: Style, text: &dyn fmt::Display) {
    // Whatever a message quotes, it is one line and nothing that the terminal obeys.
    // Where standard error is closed there is nobody to tell.
    let _ = writeln!(anstream::stderr(), "{style}{kind}:{style:#} {}", Plain(text));
}

/// `1 packet`, `2 packets`.
pub(crate) fn counted(count: u64, thing: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{plural}")
}
