//! `diff`: the differences between two captures of one program.

use tracewalk::plain::Plain;
use tracewalk_report::export::{DiffReport, FunctionDiff, SourceDiff};
use tracewalk_session::{Compared, Comparison};

use crate::args::{CaptureArgs, Diff};
use crate::failure::Failure;
use crate::messages::Messages;
use crate::open;
use crate::output::{Destination, look_for, write_to};
use crate::task::{Reads, Task};

impl Task for Diff {
    fn reads(&self) -> Reads<'_> {
        Reads { more: std::slice::from_ref(&self.other), ..Reads::followed(&self.follow) }
    }

    fn writes(&self) -> Vec<Destination<'_>> {
        vec![Destination::output(self.output.as_deref())]
    }

    fn is_for_people(&self) -> bool {
        self.format.name == "text"
    }

    fn run(&self, messages: &Messages) -> Result<(), Failure> {
        messages.measure(self.work);
        let other = CaptureArgs { capture: self.other.clone(), ..self.follow.capture.clone() };
        let mut sessions =
            [open::whole_trace(&self.follow.capture, messages)?, open::whole_trace(&other, messages)?];
        let how = self.follow.how(self.work.threads, messages);
        let comparison = Comparison { ignore_interrupts: self.ignore_interrupts };
        let compared = comparison.run(&mut sessions, &how, messages)?;
        let names = [&self.follow.capture.capture, &self.other];
        let report = DiffReport {
            names: names.map(|path| Plain(path.display()).to_string()),
            sources: compared.into_iter().map(source).collect(),
            complete: messages.complete(),
        };
        let output = self.output.as_deref();
        write_to(output, |out| (self.format.make)(out, &report, look_for(output), self.table))?;
        if report.is_same() { Ok(()) } else { Err(Failure::Different) }
    }
}

/// The differences between two sources, as a report has them.
fn source(compared: Compared) -> SourceDiff {
    let Compared { ids, code, statistics, parting, profiles: [a, b], coverage } = compared;
    SourceDiff {
        ids,
        instructions: statistics.map(|done| done.instructions),
        parting,
        functions: FunctionDiff::between([(&a, &code[0]), (&b, &code[1])]),
        coverage,
        code,
    }
}
