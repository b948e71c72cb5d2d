//! The base of a comparison: an LCOV tracefile, a saved file, or a JSON document.

use std::path::Path;

use tracewalk_analysis::coverage::{ProgramCoverage, ProgramInput, Report, Tracefile};
use tracewalk_analysis::programs::{OfProgram, Programs};
use tracewalk_analysis::saved::Save;
use tracewalk_report::export::read_base;
use tracewalk_session::{FollowedProgram, Gathered, PlacesError, read_saved, saved_kind_of};

use super::paths::Paths;
use super::selection::Selection;
use crate::args::{CaptureArgs, Coverage};
use crate::failure::Failure;
use crate::messages::Messages;

/// The longest text file that is not a saved file.
const LONGEST_TEXT: u64 = 256 << 20;

/// Reads a base. Any other file is refused: compared with an empty base, nothing is ever lost.
pub(super) fn read(
    file: &Path,
    args: &Coverage,
    gathered: &Gathered<ProgramCoverage>,
    messages: &Messages,
) -> Result<Tracefile, Failure> {
    match saved_kind_of(file) {
        Some(kind) if kind == ProgramCoverage::KIND => {
            saved(file, &read_saved(file)?, args, gathered, messages)
        }
        Some(kind) => Err(refused(file, format_args!("found saved {kind}"))),
        None => {
            let text = tracewalk_input::read_text(file, LONGEST_TEXT);
            let text = text.map_err(|problem| PlacesError::Unreadable(file.to_owned(), problem))?;
            read_base(&text).map_err(|problem| refused(file, problem))
        }
    }
}

/// The coverage of the current programs in a saved file.
fn saved(
    file: &Path,
    part: &Programs<ProgramCoverage>,
    args: &Coverage,
    gathered: &Gathered<ProgramCoverage>,
    messages: &Messages,
) -> Result<Tracefile, Failure> {
    let older = older_programs(args, messages)?;
    let inputs = part.programs.iter().map(|(id, OfProgram { images, found })| {
        let older = older.iter().find(|program| program.id == *id).map(|program| &program.code);
        let code = older.or_else(|| gathered.answered.code.get(id)).ok_or_else(|| {
            let problem = format!("{}: was saved from another program ({id})", file.display());
            Failure::input(
                "other_program",
                problem,
                "give its program with --base-image, and --base-src; or compare with the output of `coverage \
                 --format lcov` for it",
            )
        })?;
        Ok(ProgramInput { id, images, coverage: found, code })
    });
    let inputs = inputs.collect::<Result<Vec<_>, Failure>>()?;
    if inputs.is_empty() {
        return Err(refused(file, "it contains no program"));
    }
    let mut report = Report::of(&inputs, &Selection::of(args));
    let paths = Paths::of(&mut report, args);
    // The current sources do not have the lines of another revision.
    let is_older = args.base_src.is_some();
    Ok(Tracefile::of(&report, |name| if is_older { None } else { paths.source(&inputs, name) }))
}

/// The programs that a base of another revision may be of.
fn older_programs(args: &Coverage, messages: &Messages) -> Result<Vec<FollowedProgram>, Failure> {
    if args.base_images.is_empty() {
        return Ok(Vec::new());
    }
    let capture = CaptureArgs { images: args.base_images.clone(), ..args.places.follow.capture.clone() };
    Ok(FollowedProgram::of_images(&capture.request(), &[], messages)?)
}

fn refused(file: &Path, problem: impl std::fmt::Display) -> Failure {
    Failure::input(
        "not_a_base",
        format!("{}: {problem}", file.display()),
        "give --diff the output of `coverage --format lcov`, `--format json` or `--save`",
    )
}
