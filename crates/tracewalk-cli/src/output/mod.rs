//! Standard output, and files that are written instead.

mod check;
mod file;
mod folder;
pub(crate) mod pager;
mod terminal;

use std::cell::RefCell;
use std::io::{self, BufWriter, StdoutLock, Write};
use std::path::Path;
use std::rc::Rc;

use anstream::ColorChoice;
use tracewalk_report::{Look, Palette};
use tracewalk_session::Session;

use crate::args::When;
use crate::failure::Failure;

pub(crate) use check::{Destination, DestinationKind, Replaced, check, spare_from_standard_output};
use file::{OutputFile, is_standard};
pub(crate) use folder::OutputFolder;
use terminal::Terminal;

/// Standard output, buffered. Clones share the buffer: one writes, another one flushes.
#[derive(Clone, Debug)]
pub(crate) struct Output(Rc<RefCell<BufWriter<StdoutLock<'static>>>>);

/// The size of the buffer, in bytes.
const BUFFER: usize = 1 << 16;

pub(crate) fn standard_output() -> Output {
    Output(Rc::new(RefCell::new(BufWriter::with_capacity(BUFFER, io::stdout().lock()))))
}

impl Write for Output {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.borrow_mut().write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.borrow_mut().flush()
    }
}

/// The file of an output; `None` for standard output, under any of its names.
pub(crate) fn file(path: Option<&Path>) -> Option<&Path> {
    path.filter(|path| !is_standard(path))
}

/// Writes to a file, or to standard output. The file gets its name when it is complete.
pub(crate) fn write_to<E: Into<Failure>>(
    path: Option<&Path>,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), Failure> {
    let Some(path) = file(path) else {
        let mut out = standard_output();
        write(&mut out).map_err(Into::into)?;
        return Ok(out.flush()?);
    };
    let failure = |error| Failure::write(path, error);
    let mut out = OutputFile::create(path).map_err(failure)?;
    write(&mut out).map_err(|error| match error.into() {
        Failure::Output(error) => failure(error),
        other => other,
    })?;
    out.finish().map_err(failure)
}

/// The output of a command that prints as it goes: standard output shows everything as soon as nothing arrives any more.
pub(crate) struct Stream<'a> {
    file: Option<&'a Path>,
    out: Output,
    /// Whether the capture is still arriving, and is printed at once.
    pub(crate) at_once: bool,
}

impl<'a> Stream<'a> {
    /// Goes to a file, or to standard output.
    pub(crate) fn to(path: Option<&'a Path>, session: &Session) -> Self {
        let (file, out) = (file(path), standard_output());
        let shown = out.clone();
        let at_once = file.is_none() && session.on_quiet(move || shown.clone().flush());
        Self { file, out, at_once }
    }

    /// Writes everything.
    pub(crate) fn write(
        self,
        write: impl FnOnce(&mut dyn Write) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let Self { file, mut out, .. } = self;
        if file.is_some() {
            drop(out);
            return write_to(file, write);
        }
        let written = write(&mut out);
        out.flush()?;
        written
    }
}

/// Follows the user's wish from here on; without one, NO_COLOR and the terminal decide.
pub(crate) fn set_colours(when: When) {
    match when {
        When::Auto => {}
        When::Always => ColorChoice::Always.write_global(),
        When::Never => ColorChoice::Never.write_global(),
    }
}

/// The terminal that the pager writes to, or that of standard output.
fn seen_on() -> Terminal {
    pager::terminal().unwrap_or_else(Terminal::of_standard_output)
}

/// How text looks on standard output.
pub(crate) fn look() -> Look {
    let Terminal { width, has_colours } = seen_on();
    Look { palette: if has_colours { Palette::COLOUR } else { Palette::PLAIN }, width }
}

/// How text looks in an output that may be a file.
pub(crate) fn look_for(path: Option<&Path>) -> Look {
    match file(path) {
        Some(_) => Look::PLAIN,
        None => look(),
    }
}
