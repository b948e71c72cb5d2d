//! `gather`: many captures, on all processors, as one result.

mod places;
mod resume;
mod sum;

use std::time::{Duration, Instant};

use tracewalk_analysis::captures::CaptureOutcome;
use tracewalk_analysis::counts::CountedBinary;
use tracewalk_analysis::coverage::ProgramCoverage;
use tracewalk_analysis::profile::ProgramProfiles;
use tracewalk_report::counted;
use tracewalk_session::{Additive, Gathering, Request, Shared};

use super::{follow, print_statistics};
use crate::args::{Gather, GatherAnswer};
use crate::failure::Failure;
use crate::messages::Messages;
use crate::open;
use crate::output::{Destination, look_for, write_to};
use crate::task::{Reads, Task};
use places::{PlaceKind, places};
use resume::Resume;
use sum::Sum;

/// The shortest time between two saves of progress.
const NOTED_EVERY: Duration = Duration::from_secs(10);

/// The largest share of the time that saving progress may take: one part in this number.
const NOTING_SHARE: u32 = 20;

impl Task for Gather {
    fn reads(&self) -> Reads<'_> {
        Reads { more: &self.more, takes_saved: true, ..Reads::followed(&self.follow) }
    }

    fn writes(&self) -> Vec<Destination<'_>> {
        let resume = self.resume.as_deref().map(|path| Destination::file("--resume", path));
        let save = Destination::file("--save", &self.save);
        [Destination::output(self.output.as_deref()), save].into_iter().chain(resume).collect()
    }

    fn is_for_people(&self) -> bool {
        false
    }

    fn run(&self, messages: &Messages) -> Result<(), Failure> {
        if messages.records() {
            return Err(Failure::input(
                "provenance_of_many",
                "--provenance describes the result of a few captures, but `gather` is for any number of them",
                "use the table of captures instead: --format csv -o captures.csv",
            ));
        }
        match self.answer {
            GatherAnswer::Counts => run::<CountedBinary>(self, messages),
            GatherAnswer::Coverage => run::<ProgramCoverage>(self, messages),
            GatherAnswer::Profile => run::<ProgramProfiles>(self, messages),
        }
    }
}

fn run<T: Additive>(args: &Gather, messages: &Messages) -> Result<(), Failure> {
    let start = Instant::now();
    let places = places::<T>(args)?;
    messages.replaced.spare(|_| places.iter().flat_map(|place| place.files(args)).collect())?;
    let request = Request { capture: Default::default(), ..open::request(&args.follow.capture) };
    let trust = args.follow.trust();
    let resume = args.resume.as_deref().map(|file| Resume::new(file, &format!("{request:?} {trust:?}")));
    let mut sum = match &resume {
        Some(resume) => resume.read::<T>()?,
        None => Sum::default(),
    };
    let mut captures = Vec::new();
    for place in &places {
        match (sum.knows(place)?, place.kind) {
            (true, _) => {}
            (false, PlaceKind::Capture) => captures.push(place.path.clone()),
            (false, PlaceKind::Saved) => sum.saved(place, messages)?,
        }
    }
    let how = follow::how(&args.follow, args.work.threads);
    let gathering = Gathering { request, how, shared: Shared::default(), stop: Default::default() };
    let progress = messages.captures(captures.len());
    let (mut done, mut noted, mut noting) = (0, Instant::now(), Duration::ZERO);
    gathering.run(&captures, |capture| {
        sum.capture(capture);
        done += 1;
        progress.done(done);
        if let Some(resume) =
            resume.as_ref().filter(|_| noted.elapsed() > NOTED_EVERY.max(noting * NOTING_SHARE))
        {
            let begin = Instant::now();
            resume.write(&sum)?;
            (noted, noting) = (Instant::now(), begin.elapsed());
        }
        Ok::<(), Failure>(())
    })?;
    drop(progress);
    if let Some(resume) = &resume {
        resume.write(&sum)?;
    }
    write_to(Some(&args.save), |out| sum.found.save(out))?;
    sum.say_copies(messages);
    let (statistics, table) = (sum.statistics, sum.into_captures());
    let output = args.output.as_deref();
    write_to(output, |out| (args.format.make)(out, &table, look_for(output)))?;
    say(&table, messages);
    if args.work.stats {
        print_statistics(&statistics, start.elapsed(), args.work.threads, messages);
    }
    Ok(())
}

/// Reports captures that do not count in full, with the first problem.
fn say(table: &tracewalk_analysis::captures::Captures, messages: &Messages) {
    let all = table.captures.len() as u64;
    for (outcome, kind, what) in [
        (CaptureOutcome::LeftOut, "captures_left_out", "left out"),
        (CaptureOutcome::Partial, "captures_in_part", "decoded partly"),
    ] {
        let count = table.count(outcome);
        let first = table.captures.iter().find(|capture| capture.outcome == outcome);
        if let Some((first, (_, problem))) = first.and_then(|first| Some((first, first.problem.as_ref()?))) {
            // Most sentences begin with the file.
            let capture = &first.capture;
            let named = if problem.contains(capture) { String::new() } else { format!("{capture}: ") };
            let captures = counted(all, "capture");
            messages
                .incomplete(kind, format_args!("{count} of {captures} {what}; the first: {named}{problem}"));
        }
    }
}
