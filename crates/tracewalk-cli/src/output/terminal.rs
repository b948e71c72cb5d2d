//! What standard output is like where it is a terminal.

use std::io;

use anstream::{AutoStream, ColorChoice};

/// What is known of the terminal that somebody looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terminal {
    /// How many columns it has; `None` if nothing says it.
    pub(super) width: Option<usize>,
    pub(super) has_colours: bool,
}

impl Terminal {
    pub(super) fn of_standard_output() -> Self {
        let size = terminal_size::terminal_size_of(io::stdout());
        // COLUMNS is what somebody says of a terminal, and nothing else has columns.
        let stated = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|columns| *columns > 0);
        let width = size.map(|(terminal_size::Width(width), _)| stated().unwrap_or(width.into()));
        let has_colours = AutoStream::choice(&io::stdout()) != ColorChoice::Never;
        Self { width, has_colours }
    }
}
