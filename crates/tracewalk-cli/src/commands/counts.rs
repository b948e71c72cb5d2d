//! `counts`: execution counts, for people, for programs, and for tools that optimise by them.

use tracewalk_analysis::counts::{CountedBinary, CountsReport, ReportedBinary};
use tracewalk_analysis::programs::{OfProgram, ProgramId};
use tracewalk_report::formats::{self, Format, WriteCounts};
use tracewalk_session::{Gathered, OfCounts};

use super::gather::Front;
use crate::args::Counts;
use crate::failure::Failure;
use crate::messages::Messages;
use crate::output::{Destination, look_for, write_to};
use crate::task::{Reads, Task};

impl Task for Counts {
    fn reads(&self) -> Reads<'_> {
        Reads::places(&self.places)
    }

    fn writes(&self) -> Vec<Destination<'_>> {
        let output = (self.output.as_deref(), self.format.is_some());
        Destination::of_places(&self.places, output, self.save.as_deref())
    }

    fn is_for_people(&self) -> bool {
        self.format.is_none_or(|format| format.name == "text")
    }

    fn run(&self, messages: &Messages) -> Result<(), Failure> {
        messages.measure(self.work);
        let results = [self.save.as_deref(), self.output.as_deref()];
        let front = Front::new(&self.places, messages);
        let gather = front.request(results, String::new(), self.work.threads)?;
        let gathered = front.ask(gather.find(&front)?, &OfCounts, false, |_, _| {})?;
        front.save(&gathered, self.save.as_ref())?;
        let format = self.format.or_else(|| formats::COUNTS.first().filter(|_| self.save.is_none()));
        if let Some(format) = format {
            self.write(format, &gathered)?;
        }
        Ok(())
    }
}

impl Counts {
    fn write(&self, format: &Format<WriteCounts>, gathered: &Gathered<CountedBinary>) -> Result<(), Failure> {
        let mut report = self.report(gathered)?;
        if formats::find(formats::OF_ONE_BINARY, format.name).is_some() {
            of_one_binary(&mut report, format.name)?;
        }
        let output = self.output.as_deref();
        write_to(output, |out| (format.make)(out, &report, look_for(output), self.table))
    }

    /// The report of the selected binaries.
    fn report<'a>(&self, gathered: &'a Gathered<CountedBinary>) -> Result<CountsReport<'a>, Failure> {
        let programs = gathered.answered.programs.programs.iter();
        let reported =
            programs.map(|(id, program)| ReportedBinary { id, name: program.name(), found: &program.found });
        let mut binaries = reported.collect::<Vec<_>>();
        if let Some(wanted) = &self.binary {
            let names = names(&binaries);
            let is_wanted = |(id, program): (&ProgramId, &OfProgram<CountedBinary>)| {
                program.images.contains(wanted) || id.to_string().split(' ').any(|word| word == wanted)
            };
            let mut wanted_ones = gathered.answered.programs.programs.iter().map(is_wanted);
            binaries.retain(|_| wanted_ones.next().unwrap_or_default());
            if binaries.is_empty() {
                return Err(Failure::input(
                    "no_such_binary",
                    format!("--binary {wanted}: no such binary was followed, found {names}"),
                    "give the name of one of these files, or its build ID",
                ));
            }
        }
        Ok(CountsReport { binaries, complete: gathered.answered.programs.complete })
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
        if binary.name.is_empty() { binary.id.to_string() } else { binary.name.clone() }
    };
    let names = binaries.iter().map(name).collect::<Vec<_>>();
    if names.is_empty() { "no binary".to_owned() } else { names.join(", ") }
}
