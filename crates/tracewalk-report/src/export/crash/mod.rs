//! How a program crashed, as text, JSON and Markdown: one screen.

mod json;
mod sheet;
mod tables;
mod text;
mod words;

use tracewalk_analysis::Section;
use tracewalk_analysis::crash::Crash;

pub use json::write_crash_json;
pub use tables::CRASH_TABLES;
pub use text::{write_crash_markdown, write_crash_text};

/// How the program of each source ended; `None` if no fault ended it.
#[derive(Debug)]
pub struct CrashReport {
    /// The sources.
    pub sources: Vec<(Section, Option<Crash>)>,
    /// Whether every capture was decoded to its end.
    pub complete: bool,
    /// Whether no part of the trace is missing or unreadable, so that it ends where execution did.
    pub whole: bool,
}
