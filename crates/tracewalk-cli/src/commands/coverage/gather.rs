//! Captures and saved parts → coverage, and its programs.

use tracewalk::plain::Plain;
use tracewalk_analysis::coverage::{ProgramCoverage, ProgramInput, Report};
use tracewalk_analysis::programs::OfProgram;
use tracewalk_analysis::saved::Save as _;
use tracewalk_analysis::symbols::SourceFile;
use tracewalk_sentences::NO_PROGRAM;
use tracewalk_session::RunError;

use super::super::follow;
use super::super::gathered::Gathered;
use crate::args::{self, CaptureArgs};
use crate::failure::Failure;
use crate::messages::Messages;
use crate::open;

/// Decodes the captures and reads the saved parts that the arguments name.
pub(super) fn gather<'a>(
    args: &'a args::Coverage,
    messages: &Messages,
) -> Result<Gathered<'a, ProgramCoverage>, Failure> {
    let mut gathered = Gathered::open(&args.follow, &args.more, messages)?;
    let by_run = args.by_run || gathered.knows_runs();
    if by_run {
        gathered.name_runs(messages);
    }
    for capture in gathered.captures() {
        decode(&mut gathered, &capture, (args, by_run), messages)?;
    }
    gathered.finish(messages)
}

/// The inputs of a report.
pub(super) fn inputs<'a>(
    gathered: &'a Gathered<'_, ProgramCoverage>,
) -> Result<Vec<ProgramInput<'a>>, Failure> {
    let programs = gathered.found.programs.iter();
    let inputs = programs.map(|(id, OfProgram { images, found })| {
        let code = gathered.code(id).ok_or_else(no_program)?;
        Ok(ProgramInput { id, images, coverage: found, code })
    });
    inputs.collect()
}

/// Decodes a capture.
fn decode(
    gathered: &mut Gathered<'_, ProgramCoverage>,
    capture: &CaptureArgs,
    (args, by_run): (&args::Coverage, bool),
    messages: &Messages,
) -> Result<(), Failure> {
    let mut session = open::live(capture, messages)?;
    gathered.opened(capture, &session, messages);
    let name = Plain(capture.capture.display()).to_string();
    let how = follow::accounting(&follow::how(&args.follow, args.work.threads), messages);
    let mut found = Vec::new();
    session.each_source(messages, |session, source| {
        let outcome = session.coverage(source, &how, &name, messages).map_err(|error| match error {
            RunError::NoProgram => no_program(),
            error => error.into(),
        })?;
        follow::record(session, source, &outcome, messages)?;
        gathered.statistics.add(&outcome.statistics);
        found.extend(outcome.found);
        Ok::<(), Failure>(())
    })?;
    if by_run {
        found.iter_mut().for_each(|(_, found)| found.name_run(&name));
    }
    // The programs of a system's recording are files, and each recording may have others.
    let is_of_files = session.capture().recorded.is_some();
    gathered.add_capture(&capture.capture, found, is_of_files);
    Ok(())
}

/// Renames source files by the first `--path-map` that matches.
pub(super) fn rename(report: &mut Report, args: &args::Coverage) {
    if !args.path_maps.is_empty() {
        report.rename_files(|name| args.shown_path(name));
    }
}

fn no_program() -> Failure {
    Failure::input("no_program", "coverage needs a program, but none is known", NO_PROGRAM)
}

/// The source file of a name in the debugging information of one of the programs.
pub(super) fn source_file(inputs: &[ProgramInput<'_>], file: &str) -> Option<SourceFile> {
    inputs.iter().find_map(|input| input.code.symbols.source_file(file))
}
