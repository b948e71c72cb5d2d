//! The base of a comparison, and its lines in another revision: by a diff of the sources, or by the base's sources.

use std::path::{Path, PathBuf};

use tracewalk_analysis::coverage::{
    Difference, ProgramCoverage, ProgramInput, Report, Revisions, SourceDiff, TextOf, Tracefile,
    common_folder,
};
use tracewalk_analysis::programs::{OfProgram, Programs};
use tracewalk_analysis::saved::Save as _;

use super::names::{Paths, Selection};
use super::{CoverageError, CoverageNotice, CoverageRequest};
use crate::additive::Answered;
use crate::error::RunError;
use crate::gather::{PlacesErrorKind, read_saved, saved_kind_of};
use crate::program::FollowedProgram;

/// The longest text file that is not a saved file.
const LONGEST_TEXT: u64 = 256 << 20;
/// The longest source file.
const LONGEST_SOURCE: u64 = 16 << 20;

/// What coverage is compared with.
#[derive(Clone, Debug)]
pub enum CoverageBase {
    /// A report of coverage.
    Tracefile(Tracefile),
    /// A saved answer.
    Saved {
        /// The file.
        file: PathBuf,
        /// The answer.
        found: Programs<ProgramCoverage>,
        /// Its programs, if they are of another revision.
        programs: Vec<FollowedProgram>,
    },
}

/// The sources of a base of another revision.
#[derive(Clone, Debug)]
pub enum BaseSources {
    /// The changes since, and their file.
    Diff(PathBuf, SourceDiff),
    /// The directory of the base's sources.
    Directory(PathBuf),
}

impl CoverageBase {
    /// Reads a base: a saved file, or a text that `parse` understands. Any other file is refused: compared with an empty base,
    /// nothing is ever lost. `programs` are those of a base of another revision.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or is no base.
    pub fn read(
        file: &Path,
        parse: fn(&str) -> Result<Tracefile, String>,
        programs: Vec<FollowedProgram>,
    ) -> Result<Self, RunError> {
        let refused = |problem| CoverageError::NotABase(file.to_owned(), problem);
        match saved_kind_of(file) {
            Some(kind) if kind == ProgramCoverage::KIND => {
                Ok(Self::Saved { file: file.to_owned(), found: read_saved(file)?, programs })
            }
            Some(kind) => Err(refused(format!("found saved {kind}")).into()),
            None => {
                let unreadable = |problem| PlacesErrorKind::Unreadable(problem).at(file);
                let text = tracewalk_input::read_text(file, LONGEST_TEXT).map_err(unreadable)?;
                Ok(Self::Tracefile(parse(&text).map_err(refused)?))
            }
        }
    }

    /// The lines of the base.
    pub(super) fn tracefile(
        &self,
        request: &CoverageRequest,
        answered: &Answered<ProgramCoverage>,
    ) -> Result<Tracefile, CoverageError> {
        let (file, found, programs) = match self {
            Self::Tracefile(tracefile) => return Ok(tracefile.clone()),
            Self::Saved { file, found, programs } => (file, found, programs),
        };
        let inputs = found.programs.iter().map(|(id, OfProgram { images, found })| {
            let older = programs.iter().find(|program| program.id == *id).map(|program| &program.code);
            let code = older.or_else(|| answered.code.get(id));
            let code = code.ok_or_else(|| CoverageError::OtherProgram(file.clone(), id.clone()))?;
            Ok(ProgramInput { id, images, coverage: found, code })
        });
        let inputs = inputs.collect::<Result<Vec<_>, CoverageError>>()?;
        if inputs.is_empty() {
            return Err(CoverageError::NotABase(file.clone(), "it contains no program".to_owned()));
        }
        let mut report = Report::of(&inputs, &Selection::of(request));
        let paths = Paths::of(&mut report, request);
        // The current sources do not have the lines of another revision.
        let is_older = request.base_sources.is_some();
        Ok(Tracefile::of(&report, |name| if is_older { None } else { paths.source(&inputs, name) }))
    }
}

/// The difference from `base` to `now`, by the sources of the base.
pub(super) fn difference(
    sources: Option<&BaseSources>,
    base: &Tracefile,
    now: &Tracefile,
    text: TextOf<'_>,
    notice: &mut dyn FnMut(&CoverageNotice),
) -> Result<Difference, CoverageError> {
    let found = match sources {
        None => return Ok(Difference::between(base, now)),
        Some(BaseSources::Diff(file, diff)) => {
            let found = Difference::between_revisions(base, now, Revisions::Diff(diff), text);
            if found.is_ok() && !diff.files.is_empty() && !touches(diff, now) {
                notice(&CoverageNotice::DiffOfNothing(file.clone()));
            }
            found
        }
        Some(BaseSources::Directory(directory)) => {
            let least = least_parts(base);
            let old = |name: &str| source_in(directory, name, least(name));
            Difference::between_revisions(base, now, Revisions::BaseSources(&old), text)
        }
    };
    let by_diff = matches!(sources, Some(BaseSources::Diff(..)));
    found.map_err(|error| CoverageError::Revision { error, by_diff })
}

/// Whether a file of the diff has the name of one of the program.
fn touches(diff: &SourceDiff, now: &Tracefile) -> bool {
    let name_of = |path: &str| path.rsplit('/').next().map(str::to_owned);
    let names = now.files.keys().map(|name| name_of(name)).collect::<std::collections::HashSet<_>>();
    let paths = diff.files.iter().flat_map(|file| file.old.iter().chain(&file.new));
    paths.into_iter().any(|path| names.contains(&name_of(&path.path)))
}

/// The number of folders and names at the end of a base's file that have to match: all below the folder that its files share, so
/// that no file is mistaken for another one of the same name.
fn least_parts(base: &Tracefile) -> impl Fn(&str) -> usize + use<'_> {
    let root = common_folder(base.files.keys());
    move |name| parts(name.strip_prefix(root).unwrap_or(name)).len()
}

fn parts(name: &str) -> Vec<&str> {
    name.split(['/', '\\']).filter(|part| !matches!(*part, "" | "." | "..")).collect()
}

/// The text of the file in a directory that shares the most folders with a name, and at least `least` folders and names.
fn source_in(directory: &Path, name: &str, least: usize) -> Option<Vec<u8>> {
    let parts = parts(name);
    let ends = (0..=parts.len().checked_sub(least.max(1))?).filter_map(|skipped| parts.get(skipped..));
    let path = ends.map(|end| directory.join(end.iter().collect::<PathBuf>())).find(|path| {
        std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() <= LONGEST_SOURCE)
    })?;
    std::fs::read(path).ok()
}
