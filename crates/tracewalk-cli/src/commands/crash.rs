//! `crash`: how a program crashed, and why.

use std::path::PathBuf;
use std::time::Instant;

use tracewalk_analysis::Statistics;
use tracewalk_analysis::crash::CrashRecording;
use tracewalk_report::export::CrashReport;

use super::{follow, print_statistics};
use crate::args::Crash;
use crate::failure::Failure;
use crate::messages::Messages;
use crate::open;
use crate::output::{Destination, look_for, write_to};
use crate::task::{Reads, Task};

impl Task for Crash {
    fn reads(&self) -> Reads<'_> {
        Reads { beside: self.dump.iter().map(PathBuf::as_path).collect(), ..Reads::followed(&self.follow) }
    }

    fn writes(&self) -> Vec<Destination<'_>> {
        vec![Destination::output(self.output.as_deref())]
    }

    fn is_for_people(&self) -> bool {
        self.format.name == "text"
    }

    fn run(&self, messages: &Messages) -> Result<(), Failure> {
        run(self, messages)
    }
}

/// Follows each source to its end, and reports how its program ended.
fn run(args: &Crash, messages: &Messages) -> Result<(), Failure> {
    let start = Instant::now();
    let mut session = open::whole_trace(&args.follow.capture, messages)?;
    let snapshot = session.snapshot(args.dump.as_deref())?;
    messages.record(|record| {
        let described = session.capture().dump.as_ref().map(|dump| dump.value.as_path());
        args.dump.as_deref().or(described).into_iter().for_each(|dump| record.input("dump", dump));
    });
    let mut recording = CrashRecording::default();
    let how = follow::how(&args.follow, args.work.threads, messages);
    let (mut total, mut doubts) = (Statistics::default(), Vec::new());
    session.each_source(messages, |session, source| {
        let outcome = session.run_observed(source, &how, &mut recording, messages)?;
        total.add(&outcome.statistics);
        doubts.push(session.doubts_of_end(source, &how, &outcome, messages)?);
        Ok::<(), Failure>(())
    })?;
    let (complete, whole) = (messages.complete(), !messages.failed());
    let report = CrashReport::of(recording, &snapshot, doubts, (complete, whole));
    let output = args.output.as_deref();
    write_to(output, |out| (args.format.make)(out, &report, look_for(output), args.table))?;
    if args.work.stats {
        print_statistics(&total, start.elapsed(), args.work.threads, messages);
    }
    let has_fault = report.sources.iter().any(|(_, crash)| crash.is_some());
    if has_fault { Ok(()) } else { Err(Failure::NoFault) }
}
