//! `interrupts`: how often exceptions were taken, and how long they took.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use tracewalk_analysis::Code;
use tracewalk_analysis::clock::Unit;
use tracewalk_analysis::interrupts::{Activities, Measured, ProgramActivities};
use tracewalk_analysis::timeline::{Probe, Scale};
use tracewalk_report::export::InterruptReport;
use tracewalk_report::formats;
use tracewalk_session::{Follow, Gathering, Observer, OfInterrupts, Session, View, interrupts};

use super::gathered::{Asking, Gathered, Places};
use super::{follow, print_statistics, refuse_frequency, timeline};
use crate::args::{CaptureArgs, Interrupts};
use crate::failure::Failure;
use crate::messages::Messages;
use crate::open::{self, comes_over_time};
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

    fn run(&self, messages: &Messages) -> Result<(), Failure> {
        run(self, messages)
    }
}

/// Measures exceptions, writes and saves the result.
fn run(args: &Interrupts, messages: &Messages) -> Result<(), Failure> {
    let start = Instant::now();
    let mut gathered = gather(args, messages)?;
    if let Some(file) = &args.save {
        gathered.save(file, messages)?;
    }
    if let Some(format) = args.format.or_else(|| formats::INTERRUPTS.first().filter(|_| args.save.is_none()))
    {
        let report = report(args, &mut gathered, messages)?;
        let output = args.output.as_deref();
        write_to(output, |out| (format.make)(out, &report, look_for(output)))?;
    }
    if args.work.stats {
        print_statistics(&gathered.answered.statistics, start.elapsed(), args.work.threads, messages);
    }
    Ok(())
}

/// Follows the captures, and reads the saved files in their place.
fn gather(args: &Interrupts, messages: &Messages) -> Result<Gathered<ProgramActivities>, Failure> {
    let (window, stated, frequency) = (args.window.window()?, args.axis.unit.unit(), args.axis.frequency);
    let results = [args.save.as_deref(), args.output.as_deref()];
    let asked = format!("{window:?} {stated:?} {frequency:?} {}", args.functions);
    let places = Places::find(&args.places, &results, &asked, messages)?;
    places.refuse_window(&window)?;
    let saved = saved(args, &places)?;
    let how = follow::how(&args.places.follow, args.work.threads, messages);
    let unit = match (stated.or(saved.map(|saved| saved.unit)), places.captures()) {
        (None, captures @ [_, _, ..]) => Some(common_unit(args, captures, &how)?),
        (unit, _) => unit,
    };
    if let [_, _, ..] = places.captures() {
        places.captures().iter().try_for_each(|capture| refuse_stream(args, capture))?;
    }
    if let Some(unit) = unit {
        refuse_frequency(unit, frequency)?;
    }
    let functions = args.functions || saved.is_some_and(|saved| saved.functions);
    let question = OfInterrupts { view: View::new(window, stated), unit, frequency, functions };
    let open = |capture: &CaptureArgs, messages: &Messages| timeline::open(capture, unit, messages);
    let gathered = places.ask(&Asking { open: &open, ..Asking::new(&question, how) }, messages)?;
    question.view.finish()?;
    Ok(gathered)
}

/// The best unit that all captures have, as far as they can be opened.
fn common_unit(args: &Interrupts, captures: &[PathBuf], how: &Follow) -> Result<Unit, Failure> {
    captures.iter().try_for_each(|capture| refuse_stream(args, capture))?;
    let request = open::request(&args.places.follow.capture);
    let (shared, stop) = Default::default();
    let gathering = Gathering { request, how: how.clone(), shared, stop };
    let mut probed = Vec::new();
    let probe = |session: &mut Session, how: &Follow, _: &str, observer: &dyn Observer| {
        session.probe(how.names.as_deref(), observer)
    };
    gathering.each(captures, probe, |of| {
        probed.extend(of.found.ok());
        Ok::<(), Failure>(())
    })?;
    Ok(Probe::best(&probed))
}

/// The answer of the saved files, if there are any; refuses options that they cannot satisfy.
fn saved(args: &Interrupts, places: &Places<'_, ProgramActivities>) -> Result<Option<Measured>, Failure> {
    places.first_saved(|path, part| {
        let Some(measured) = part.programs.values().find_map(|program| program.found.measured) else {
            return Ok(None);
        };
        let asked_for = args.axis.unit.unit();
        if let Some(unit) = asked_for.filter(|unit| *unit != measured.unit) {
            return Err(Failure::input(
                "other_measure",
                format!("{}: was saved in {}, not in {}", path.display(), measured.unit.name(), unit.name()),
                "leave out --unit, or give it when you save the file",
            ));
        }
        if args.functions && !measured.functions {
            return Err(Failure::input(
                "other_measure",
                format!("{}: was saved without functions", path.display()),
                "leave out --functions, or give it when you save the file",
            ));
        }
        Ok(Some(measured))
    })
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
    let all = gathered.answered.programs.programs.values().filter_map(|program| program.found.measured);
    let nothing = Measured { unit: Unit::Instructions, counts_cycles: false, functions: false };
    let all = all.reduce(|a, b| Measured { counts_cycles: a.counts_cycles && b.counts_cycles, ..a });
    let Measured { unit, counts_cycles, .. } = all.unwrap_or(nothing);
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
