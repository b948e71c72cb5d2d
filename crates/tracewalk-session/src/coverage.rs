//! The report of coverage: the selected code of programs, under the names that the caller wants, and what a base covered more.

mod base;
mod names;
mod problem;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tracewalk_analysis::coverage::{
    Difference, File, Limit, ProgramCoverage, ProgramInput, Report, Stale, Tracefile, Unmet,
};
use tracewalk_analysis::programs::OfProgram;
use tracewalk_analysis::symbols::SourceFile;

use self::names::{Paths, Selection};
use crate::additive::Answered;
use crate::error::RunError;
use crate::request::Pattern;

pub use self::base::{BaseSources, CoverageBase};
pub use self::names::PathMap;
pub use self::problem::{CoverageError, CoverageNotice, Selects};

/// What a report of coverage shows, and what it is compared with.
#[derive(Clone, Debug, Default)]
pub struct CoverageRequest {
    /// The source files to include; if empty, all. Patterns are for the paths that the report shows.
    pub include: Vec<Pattern>,
    /// The source files to exclude.
    pub exclude: Vec<Pattern>,
    /// The functions to include; if empty, all.
    pub include_function: Vec<Pattern>,
    /// The functions to exclude.
    pub exclude_function: Vec<Pattern>,
    /// New beginnings of source paths. The first that matches counts.
    pub path_maps: Vec<PathMap>,
    /// What coverage is compared with.
    pub base: Option<CoverageBase>,
    /// The sources of the base, if it is of another revision.
    pub base_sources: Option<BaseSources>,
    /// Whether to report sources that were not found.
    pub needs_sources: bool,
    /// The files of traces, saved answers and images: the oldest one shows when the program was built or traced.
    pub dated: Vec<PathBuf>,
}

/// The report of coverage.
#[derive(Debug)]
pub struct Reported<'a> {
    /// The report.
    pub report: Report,
    /// The programs.
    pub inputs: Vec<ProgramInput<'a>>,
    /// The changes since the base.
    pub difference: Option<Difference>,
    paths: Paths,
}

impl CoverageRequest {
    /// The path of a source file in reports, if a map changes it, and the number of the map.
    fn renamed(&self, path: &str) -> Option<(usize, String)> {
        self.path_maps.iter().enumerate().find_map(|(number, map)| Some((number, map.apply(path)?)))
    }

    /// The report of an answer. `notice` receives what is worth knowing.
    ///
    /// # Errors
    ///
    /// If a program is not known, nothing is selected, or the base is not one of this program.
    pub fn report<'a>(
        &self,
        answered: &'a Answered<ProgramCoverage>,
        notice: &mut dyn FnMut(&CoverageNotice),
    ) -> Result<Reported<'a>, RunError> {
        let inputs = answered.programs.programs.iter().map(|(id, OfProgram { images, found })| {
            Ok(ProgramInput { id, images, coverage: found, code: answered.code(id)? })
        });
        let inputs = inputs.collect::<Result<Vec<_>, RunError>>()?;
        let selection = Selection::of(self);
        let mut report = Report { complete: answered.programs.complete, ..Report::of(&inputs, &selection) };
        let paths = Paths::of(&mut report, self);
        let missing = mark_stale(&mut report, &self.dated, |name| paths.found(&inputs, name));
        say_stale(&report, notice);
        if let Some(first) = missing.first().filter(|_| self.needs_sources) {
            let (missing, files, first) = (missing.len(), report.files.len(), first.clone());
            notice(&CoverageNotice::SourcesNotFound { missing, files, first });
        }
        // Without a program no pattern matches, and none is wrong.
        if !inputs.is_empty() {
            if report.files.is_empty() && selection.leaves_nothing() {
                return Err(CoverageError::NothingSelected.into());
            }
            let unused = selection.unused();
            unused.for_each(|(of, pattern)| notice(&CoverageNotice::UnusedPattern(of, pattern.clone())));
            let maps = paths.unused.iter().filter(|map| !selection.renamed_by(**map));
            let maps = maps.filter_map(|map| self.path_maps.get(*map));
            maps.for_each(|map| notice(&CoverageNotice::UnusedPathMap(map.clone())));
        }
        let mut reported = Reported { report, inputs, difference: None, paths };
        if let Some(base) = &self.base {
            if reported.inputs.is_empty() {
                return Err(CoverageError::NothingToCompare.into());
            }
            let base = base.tracefile(self, answered)?;
            let source = |file: &str| reported.source(file);
            let now = Tracefile::of(&reported.report, source);
            let text = |name: &str| source(name).map(|found| found.text);
            let mut difference = base::difference(self.base_sources.as_ref(), &base, &now, &text, notice)?;
            Paths::name_difference(&mut difference, &reported.report, source);
            reported.difference = Some(difference);
        }
        Ok(reported)
    }
}

impl Reported<'_> {
    /// The source file of a name in the report.
    #[must_use]
    pub fn source(&self, name: &str) -> Option<SourceFile> {
        self.paths.source(&self.inputs, name)
    }

    /// The checks that do not hold: limits, and on request regressions against the base.
    #[must_use]
    pub fn unmet(&self, limits: &[Limit], on_regression: bool) -> Vec<Unmet> {
        let changed = self.difference.as_ref().and_then(|difference| difference.changed);
        let mut unmet = Limit::unmet(limits, &self.report, changed);
        let regressions = self.difference.iter().filter(|_| on_regression);
        unmet.extend(regressions.flat_map(Difference::regressions));
        unmet
    }
}

/// Reports sources that were not compiled, once for each reason.
fn say_stale(report: &Report, notice: &mut dyn FnMut(&CoverageNotice)) {
    for why in [Stale::Checksum, Stale::Shorter, Stale::Newer] {
        let mut files = report.stale().filter(|(_, reason)| *reason == why).map(|(file, _)| &file.name);
        if let Some(first) = files.next().cloned() {
            notice(&CoverageNotice::StaleSource { why, first, others: files.count() });
        }
    }
}

/// The times of files from one checkout or archive differ by at most this much.
const TOGETHER: Duration = Duration::from_secs(10);

/// Marks the files whose source is not the one that was compiled: by the checksum that the program has of it, or else by its
/// length and its time. The earliest time of the files in `dated` shows when the program was built or traced. Returns the names
/// of the files whose source was not found.
fn mark_stale(
    report: &mut Report,
    dated: &[PathBuf],
    source: impl Fn(&str) -> Option<SourceFile>,
) -> Vec<String> {
    let recorded = dated.iter().filter_map(|file| modified(file)).min();
    let mut missing = Vec::new();
    for file in &mut report.files {
        match source(&file.name) {
            Some(found) => file.stale = why(file, &found, recorded),
            None => missing.push(file.name.clone()),
        }
    }
    missing
}

fn why(file: &File, found: &SourceFile, recorded: Option<SystemTime>) -> Option<Stale> {
    if !file.checksums.is_empty() {
        return (!found.is_text_of(&file.checksums)).then_some(Stale::Checksum);
    }
    if is_shorter(file, &found.text) {
        return Some(Stale::Shorter);
    }
    is_newer(&found.path, recorded).then_some(Stale::Newer)
}

fn is_shorter(file: &File, text: &[u8]) -> bool {
    let lines = text.split(|byte| *byte == b'\n').count();
    file.lines.last().is_some_and(|last| usize::try_from(last.number).is_ok_and(|number| number > lines))
}

fn is_newer(path: &str, recorded: Option<SystemTime>) -> bool {
    let modified = modified(Path::new(path));
    modified.zip(recorded).is_some_and(|(modified, recorded)| modified > recorded + TOGETHER)
}

/// The time of a file's last change; `None` if it is not a file.
fn modified(path: &Path) -> Option<SystemTime> {
    let found = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    found.modified().ok()
}
