//! The terminal of standard output.

use std::io;

use anstream::{AutoStream, ColorChoice};

/// The properties of the terminal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terminal {
    /// The width in columns; `None` if unknown.
    pub(super) width: Option<usize>,
    pub(super) has_colours: bool,
}

impl Terminal {
    pub(super) fn of_standard_output() -> Self {
        let size = terminal_size::terminal_size_of(io::stdout());
        // COLUMNS is about terminals; other outputs have no columns.
        let stated = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|columns| *columns > 0);
        let width = size.map(|(terminal_size::Width(width), _)| stated().unwrap_or(width.into()));
        let has_colours = AutoStream::choice(&io::stdout()) != ColorChoice::Never;
        Self { width, has_colours }
    }
}
