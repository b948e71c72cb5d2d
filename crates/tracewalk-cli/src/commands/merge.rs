//! `merge`: adds up saved files of several runs.

use std::path::PathBuf;

use tracewalk_analysis::counts::CountedBinary;
use tracewalk_analysis::coverage::{ProgramCoverage, keeps_runs};
use tracewalk_analysis::interrupts::ProgramActivities;
use tracewalk_analysis::profile::ProgramProfiles;
use tracewalk_analysis::programs::Programs;
use tracewalk_analysis::saved::Save;

use super::capture_names::CaptureNames;
use super::gathered::{RunNames, add_part, head, kind_of, read_text, refuse_twice};
use super::parts::Parts;
use crate::args::Merge;
use crate::failure::Failure;
use crate::messages::Messages;
use crate::output::{Destination, write_to};
use crate::task::{Reads, Task};

impl Task for Merge {
    fn reads(&self) -> Reads<'_> {
        Reads { more: &self.parts, takes_saved: true, ..Reads::NOTHING }
    }

    fn writes(&self) -> Vec<Destination<'_>> {
        vec![Destination::output(self.output.as_deref())]
    }

    fn is_for_people(&self) -> bool {
        false
    }

    fn run(&self, messages: &Messages) -> Result<(), Failure> {
        run(self, messages)
    }
}

/// Adds up saved files.
fn run(args: &Merge, messages: &Messages) -> Result<(), Failure> {
    refuse_twice(args.parts.iter().map(PathBuf::as_path))?;
    let Some(first) = args.parts.first() else { return Ok(()) };
    match kind_of(first) {
        Some(kind) if args.by_run && kind != ProgramCoverage::KIND => Err(Failure::input(
            "runs_of_coverage",
            format!("--by-run keeps runs of coverage apart, but {} is {kind}", first.display()),
            "leave --by-run out",
        )),
        Some(kind) if kind == ProgramProfiles::KIND => merge::<ProgramProfiles>(args, messages),
        Some(kind) if kind == ProgramActivities::KIND => merge::<ProgramActivities>(args, messages),
        Some(kind) if kind == CountedBinary::KIND => merge::<CountedBinary>(args, messages),
        Some(_) => merge::<ProgramCoverage>(args, messages),
        None => {
            // Reports an unreadable file as such.
            read_text(first)?;
            Err(Failure::input(
                "not_saved",
                format!("{}: is not a saved file", first.display()),
                "give files that --save of `tracewalk coverage`, `profile`, `interrupts` or `counts` wrote",
            ))
        }
    }
}

/// One file after another, so that memory holds only one file and the result.
fn merge<T: Save>(args: &Merge, messages: &Messages) -> Result<(), Failure> {
    let by_run = args.by_run || args.parts.iter().any(|path| keeps_runs(&head(path)));
    let (mut merged, mut parts) = (Programs::<T>::default(), Parts::new(messages));
    let (mut names, mut captures) = (RunNames::new(messages), CaptureNames::default());
    for path in &args.parts {
        let mut part = parts.read(path)?;
        if by_run {
            names.name(path, &mut part);
        }
        captures.distinguish(&mut merged, path, &mut part);
        add_part(&mut merged, path, part)?;
    }
    write_to(args.output.as_deref(), |out| merged.save(out))
}
