//! Standard output.

use std::io::{self, BufWriter, StdoutLock};

use anstream::{AutoStream, ColorChoice};
use tracewalk_report::Palette;

use crate::args::When;

/// Standard output, buffered.
pub(crate) type Output = BufWriter<StdoutLock<'static>>;

/// How much is written at once.
const BUFFER: usize = 1 << 16;

pub(crate) fn standard_output() -> Output {
    BufWriter::with_capacity(BUFFER, io::stdout().lock())
}

/// Follows the user's wish from here on; without one, NO_COLOR and the terminal decide.
pub(crate) fn set_colours(when: When) {
    match when {
        When::Auto => {}
        When::Always => ColorChoice::Always.write_global(),
        When::Never => ColorChoice::Never.write_global(),
    }
}

/// The columns of the terminal that standard output is.
pub(crate) fn terminal_width() -> Option<usize> {
    let (terminal_size::Width(width), _) = terminal_size::terminal_size_of(io::stdout())?;
    Some(width.into())
}

/// The colours for standard output.
pub(crate) fn palette() -> Palette {
    match AutoStream::choice(&io::stdout()) {
        ColorChoice::Never => Palette::PLAIN,
        _ => Palette::COLOUR,
    }
}
