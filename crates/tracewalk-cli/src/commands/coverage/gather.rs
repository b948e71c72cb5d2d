//! Captures and saved parts → what ran, and the programs that it ran in.

use tracewalk::plain::Plain;
use tracewalk_analysis::InDoubt;
use tracewalk_analysis::coverage::{ProgramCoverage, ProgramInput};
use tracewalk_analysis::programs::OfProgram;

use super::super::covered::Covered;
use super::super::follow::{self, Following};
use super::super::gather::Gathered;
use crate::args::{self, CaptureArgs};
use crate::failure::Failure;
use crate::messages::Messages;
use crate::work::Work;

/// Decodes the captures and reads the saved parts that the arguments name.
pub(super) fn gather<'a>(
    args: &'a args::Coverage,
    messages: &Messages,
) -> Result<Gathered<'a, ProgramCoverage>, Failure> {
    let mut gathered = Gathered::open(&args.follow, &args.more)?;
    for capture in gathered.captures() {
        decode(&mut gathered, &capture, args, messages)?;
    }
    gathered.finish(messages)
}

/// What a report is made from.
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
    args: &args::Coverage,
    messages: &Messages,
) -> Result<(), Failure> {
    let mut work = Work::open_live(capture, messages)?;
    let (source_dirs, trust) = (&args.follow.source_dirs, args.follow.trust());
    // More of them may be found when a capture that comes has come.
    for index in 0.. {
        let Some(job) = work.jobs.get(index).cloned() else { break };
        let code = work.code(&job, Some(source_dirs), messages)?;
        if code.program.is_empty() {
            return Err(no_program());
        }
        let mut covered = Covered::of(&mut work, &job, &code, source_dirs, trust.doubtful, messages)?;
        let following = Following::new(&work, &job, trust, messages);
        let (statistics, mut doubts) = if covered.is_of_one_program() && !work.is_live() {
            let spread = work.spread(args.work.threads, &code).for_counts();
            follow::source_in_parts(following, &code, spread, &mut covered)?
        } else {
            follow::source_with_doubts(following, &code, &mut covered)?
        };
        let name = Plain(capture.capture.display()).to_string();
        let found = covered.finish(&name, &job, statistics.bytes);
        let mut in_doubt = InDoubt::default();
        found.iter().for_each(|(_, found)| in_doubt.add(found.losses().in_doubt));
        doubts.instructions = Some(in_doubt);
        following.tell_doubts(&doubts);
        work.end_job(messages)?;
        gathered.statistics.add(&statistics);
        for (program, found) in found {
            gathered.add(program, found);
        }
    }
    Ok(())
}

fn no_program() -> Failure {
    Failure::input(
        "coverage is of a program, and there is none",
        "give the ELF file that was running with --image",
    )
}
