//! `interrupts`: how often exceptions were taken, and how long they took.

use std::path::Path;
use std::sync::Arc;
use tracewalk_analysis::Code;
use tracewalk_analysis::clock::Unit;
use tracewalk_analysis::interrupts::{Activities, Measured, ProgramActivities};
use tracewalk_analysis::timeline::Scale;
use tracewalk_report::export::InterruptReport;
use tracewalk_report::formats;
use tracewalk_session::{Gathered, interrupts};

use super::gather::Front;
use super::{no_measure, refuse_frequency, timeline};
use crate::args::{CaptureArgs, Interrupts};
use crate::failure::Failure;
use crate::messages::Messages;
use crate::open::comes_over_time;
use crate::output::{Destination, look_for, write_to};
use crate::task::{Reads, Task};

impl Task for Interrupts {
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

    /// Measures exceptions, writes and saves the result.
    fn run(&self, messages: &Messages) -> Result<(), Failure> {
        messages.measure(self.work);
        let (window, stated, frequency) = (self.window.window()?, self.axis.unit.unit(), self.axis.frequency);
        let results = [self.save.as_deref(), self.output.as_deref()];
        let asked = format!("{window:?} {stated:?} {frequency:?} {}", self.functions);
        let front = Front::new(&self.places, messages);
        let gather = front.request(results, asked, self.work.threads)?;
        let places = gather.find(&front)?;
        if let captures @ [_, _, ..] = places.captures() {
            captures.iter().try_for_each(|capture| refuse_stream(self, capture))?;
        }
        let question = places.interrupts::<Front<'_>>(window, (stated, frequency), self.functions)?;
        let unit = question.unit;
        unit.map_or(Ok(()), |unit| refuse_frequency(unit, frequency))?;
        let open = move |capture: &CaptureArgs, messages: &Messages| timeline::open(capture, unit, messages);
        let front = front.opening(&open);
        let mut gathered = front.ask(places, &question, false, |_, _| {})?;
        question.view.finish()?;
        front.save(&gathered, self.save.as_ref())?;
        if let Some(format) =
            self.format.or_else(|| formats::INTERRUPTS.first().filter(|_| self.save.is_none()))
        {
            let report = report(self, &mut gathered, messages)?;
            let output = self.output.as_deref();
            write_to(output, |out| (format.make)(out, &report, look_for(output)))?;
        }
        Ok(())
    }
}

/// Refuses a capture that arrives over time and can be read only once.
fn refuse_stream(args: &Interrupts, capture: &Path) -> Result<(), Failure> {
    let args = CaptureArgs { capture: capture.to_owned(), ..args.places.follow.capture.clone() };
    if !comes_over_time(&args)? {
        return Ok(());
    }
    Err(Failure::input(
        "comes_over_time",
        format!("{}: arrives over time, so it must be the only capture", capture.display()),
        "save the figures of each with --save, and give the saved files",
    ))
}

fn report(
    args: &Interrupts,
    gathered: &mut Gathered<ProgramActivities>,
    messages: &Messages,
) -> Result<InterruptReport, Failure> {
    let programs = &gathered.answered.programs.programs;
    let measured = || programs.values().filter_map(|program| program.found.measured);
    let nothing = Measured { unit: Unit::Instructions, counts_cycles: false, functions: false };
    let all = measured().reduce(|a, b| Measured { counts_cycles: a.counts_cycles && b.counts_cycles, ..a });
    let Measured { unit, counts_cycles, .. } = all.unwrap_or(nothing);
    if measured().any(|measured| measured.unit != unit) {
        return Err(no_measure(unit));
    }
    refuse_frequency(unit, args.axis.frequency)?;
    let scale = Scale { unit, counts_cycles, frequency: args.axis.frequency };
    // Exceptions have names even without a program.
    let interrupts = interrupts(&args.places.follow.capture.request(), messages)?;
    for id in gathered.answered.programs.programs.keys() {
        let unknown = || Arc::new(Code { interrupts: interrupts.clone(), ..Code::unknown() });
        gathered.answered.code.entry(id.clone()).or_insert_with(unknown);
    }
    let sources = gathered.answered.sections(|program| &program.sources, Activities::clone)?;
    Ok(InterruptReport {
        scale,
        sources,
        programs: gathered.answered.names(),
        complete: gathered.answered.programs.complete,
    })
}
