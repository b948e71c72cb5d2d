//! Stand-ins for the formats that take long to build, if the feature `full` is off: each returns an error that names it.

use std::io::{self, Write};
use std::marker::PhantomData;

use super::profile::ProfileReport;
use super::timeline::TimelineExport;
use tracewalk_analysis::Section;
use tracewalk_analysis::coverage::{Difference, ProgramInput, Report};
use tracewalk_analysis::symbols::SourceFile;
use tracewalk_analysis::timeline::{Item, Scale};

/// Always fails: the feature `full` is off.
pub fn write_coverage_html(
    _: &Report,
    _: &[ProgramInput<'_>],
    _: Option<&Difference>,
    _: impl Fn(&str) -> Option<SourceFile>,
    _: &mut dyn Write,
) -> io::Result<()> {
    Err(lacking())
}

/// Always fails: the feature `full` is off.
pub fn write_firefox(_: &mut dyn Write, _: &ProfileReport) -> io::Result<()> {
    Err(lacking())
}

/// Always fails: the feature `full` is off.
pub fn write_pprof(_: &mut dyn Write, _: &ProfileReport) -> io::Result<()> {
    Err(lacking())
}

/// Always fails: the feature `full` is off.
#[derive(Debug)]
pub struct PerfettoTrace<W>(PhantomData<W>);

impl<W: Write> PerfettoTrace<W> {
    /// Writes nothing to `out`.
    pub fn new(_: W) -> Self {
        Self(PhantomData)
    }
}

impl<W: Write> TimelineExport for PerfettoTrace<W> {
    fn section(&mut self, _: &Section, _: &Scale) -> io::Result<()> {
        Err(lacking())
    }

    fn item(&mut self, _: &Item) -> io::Result<()> {
        Err(lacking())
    }
}

fn lacking() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "this format needs a build with the feature `full`")
}
