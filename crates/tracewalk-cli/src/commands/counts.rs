//! `counts`: execution counts, for people, for programs, and for tools that optimise by them.

use std::time::Instant;

use tracewalk::plain::Plain;
use tracewalk_analysis::counts::{CountedBinary, CountsReport, ReportedBinary};
use tracewalk_analysis::programs::{OfProgram, ProgramId};
use tracewalk_report::formats::{self, Format, WriteCounts};
use tracewalk_sentences::NO_PROGRAM;
use tracewalk_session::{Follow, RunError};

use super::gathered::Gathered;
use super::{follow, print_statistics};
use crate::args::Counts;
use crate::failure::Failure;
use crate::messages::Messages;
use crate::open;
use crate::output::{Destination, look_for, write_to};
use crate::task::{Reads, Task};

impl Task for Counts {
    fn reads(&self) -> Reads<'_> {
        Reads { more: &self.more, takes_saved: true, ..Reads::followed(&self.follow) }
    }

    fn writes(&self) -> Vec<Destination<'_>> {
        let output = self.output.as_deref();
        Destination::output_and_save(output, self.save.as_deref(), self.format.is_some())
    }

    fn is_for_people(&self) -> bool {
        self.format.is_none_or(|format| format.name == "text")
    }

    fn run(&self, messages: &Messages) -> Result<(), Failure> {
        let start = Instant::now();
        let gathered = self.gather(messages)?;
        if let Some(file) = &self.save {
            gathered.save(file, messages)?;
        }
        let format = self.format.or_else(|| formats::COUNTS.first().filter(|_| self.save.is_none()));
        if let Some(format) = format {
            self.write(format, &gathered)?;
        }
        if self.work.stats {
            print_statistics(&gathered.statistics, start.elapsed(), self.work.threads, messages);
        }
        Ok(())
    }
}

impl Counts {
    /// Counts execution in the captures, and reads saved files.
    fn gather(&self, messages: &Messages) -> Result<Gathered<'_, CountedBinary>, Failure> {
        let mut gathered = Gathered::<CountedBinary>::open(&self.follow, &self.more, messages)?;
        // Counts are of addresses: no names or lines are looked up.
        let how = Follow { names: None, ..follow::how(&self.follow, self.work.threads) };
        let how = follow::accounting(&how, messages);
        for capture in gathered.captures() {
            let mut session = open::live(&capture, messages)?;
            gathered.opened(&capture, &session, messages);
            let name = Plain(capture.capture.display()).to_string();
            session.each_source(messages, |session, source| {
                let outcome = session.counts(source, &how, &name, messages).map_err(|error| match error {
                    RunError::NoProgram => {
                        Failure::input("no_program", "counts need a program, but none is known", NO_PROGRAM)
                    }
                    error => error.into(),
                })?;
                follow::record(session, source, &outcome, messages)?;
                gathered.statistics.add(&outcome.statistics);
                for (program, found) in outcome.found {
                    gathered.add(program, found);
                }
                Ok::<(), Failure>(())
            })?;
        }
        gathered.finish(messages)
    }

    fn write(
        &self,
        format: &Format<WriteCounts>,
        gathered: &Gathered<'_, CountedBinary>,
    ) -> Result<(), Failure> {
        let mut report = self.report(gathered)?;
        if formats::find(formats::OF_ONE_BINARY, format.name).is_some() {
            of_one_binary(&mut report, format.name)?;
        }
        let output = self.output.as_deref();
        write_to(output, |out| (format.make)(out, &report, look_for(output), self.table))
    }

    /// The report of the selected binaries.
    fn report<'a>(&self, gathered: &'a Gathered<'_, CountedBinary>) -> Result<CountsReport<'a>, Failure> {
        let programs = gathered.found.programs.iter();
        let reported = programs.map(|(id, program)| ReportedBinary {
            id: id.to_string(),
            name: program.name(),
            found: &program.found,
        });
        let mut binaries = reported.collect::<Vec<_>>();
        if let Some(wanted) = &self.binary {
            let names = names(&binaries);
            let is_wanted = |(id, program): (&ProgramId, &OfProgram<CountedBinary>)| {
                program.images.contains(wanted) || id.to_string().split(' ').any(|word| word == wanted)
            };
            let mut wanted_ones = gathered.found.programs.iter().map(is_wanted);
            binaries.retain(|_| wanted_ones.next().unwrap_or_default());
            if binaries.is_empty() {
                return Err(Failure::input(
                    "no_such_binary",
                    format!("--binary {wanted}: no such binary was followed, found {names}"),
                    "give the name of one of these files, or its build ID",
                ));
            }
        }
        Ok(CountsReport { binaries, complete: gathered.found.complete })
    }
}

/// Keeps the only binary with counts: the output file is for a single binary.
fn of_one_binary(report: &mut CountsReport<'_>, format: &str) -> Result<(), Failure> {
    let all = if report.binaries.is_empty() { "any binary".to_owned() } else { names(&report.binaries) };
    report.binaries.retain(|binary| !binary.found.ranges.is_empty());
    match report.binaries.as_slice() {
        [_] => Ok(()),
        [] => Err(Failure::input(
            "nothing_counted",
            format!("nothing ran in {all}"),
            "`tracewalk counts` shows at which step the trace was lost; check the images",
        )),
        several => Err(Failure::input(
            "several_binaries",
            format!("--format {format} is for one binary, but {} ran", names(several)),
            "choose one with --binary",
        )),
    }
}

fn names(binaries: &[ReportedBinary<'_>]) -> String {
    let name = |binary: &ReportedBinary<'_>| {
        if binary.name.is_empty() { binary.id.clone() } else { binary.name.clone() }
    };
    let names = binaries.iter().map(name).collect::<Vec<_>>();
    if names.is_empty() { "no binary".to_owned() } else { names.join(", ") }
}
