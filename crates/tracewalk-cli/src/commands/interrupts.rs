//! `interrupts`: how often exceptions were taken, and how long they took.
use std::sync::Arc;

use std::collections::BTreeMap;
use std::time::Instant;

use tracewalk_analysis::clock::Unit;
use tracewalk_analysis::interrupts::{Measured, Measuring, ProgramActivities, seen_by_itm};
use tracewalk_analysis::programs::SourceId;
use tracewalk_analysis::timeline::Scale;
use tracewalk_analysis::{Code, Section, Window};
use tracewalk_report::export::InterruptReport;
use tracewalk_report::formats;

use super::gathered::Gathered;
use super::timeline::{best_unit, open};
use super::window::{self, View};
use super::{follow, print_statistics};
use crate::args::{CaptureArgs, Interrupts};
use crate::failure::Failure;
use crate::messages::Messages;
use crate::open::{self, comes_over_time};
use crate::output::{Destination, look_for, write_to};
use crate::task::{Reads, Task};
use tracewalk_session::{Notices, Session, interrupts};

impl Task for Interrupts {
    fn reads(&self) -> Reads<'_> {
        Reads { more: &self.more, takes_saved: true, ..Reads::followed(&self.axis.follow) }
    }

    fn writes(&self) -> Vec<Destination<'_>> {
        Destination::output_and_save(self.output.as_deref(), self.save.as_deref(), self.format.is_some())
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
    let gathered = gather(args, messages)?;
    if let Some(file) = &args.save {
        gathered.save(file, messages)?;
    }
    if let Some(format) = args.format.or_else(|| formats::INTERRUPTS.first().filter(|_| args.save.is_none()))
    {
        let report = report(args, &gathered, messages)?;
        let output = args.output.as_deref();
        write_to(output, |out| (format.make)(out, &report, look_for(output)))?;
    }
    if args.work.stats {
        print_statistics(&gathered.statistics, start.elapsed(), args.work.threads, messages);
    }
    Ok(())
}

/// Follows the captures, and reads the saved files in their place.
fn gather<'a>(args: &'a Interrupts, messages: &Messages) -> Result<Gathered<'a, ProgramActivities>, Failure> {
    let follow = &args.axis.follow;
    let mut gathered = Gathered::<ProgramActivities>::open(follow, &args.more, messages)?;
    let window = args.axis.window.window()?;
    gathered.refuse_window(&window)?;
    let view = View::new(window.clone(), args.axis.axis.unit());
    let saved = saved(args, &gathered)?;
    let captures = gathered.captures();
    let mut opened = match captures.as_slice() {
        [only] => vec![open(only, args.axis.axis.unit().or(saved.map(|saved| saved.unit)), messages)?],
        // Several open captures each need memory for their images: with a limit, each is opened again to be followed.
        _ if follow.capture.memory.is_some() => Vec::new(),
        all => {
            all.iter().try_for_each(refuse_stream)?;
            all.iter().map(|capture| open::live(capture, messages)).collect::<Result<_, _>>()?
        }
    };
    let scales = scales(args, saved, (&captures, &mut opened), messages)?;
    let mut opened = opened.into_iter();
    let how = follow::how(follow, args.work.threads);
    let functions = args.functions || saved.is_some_and(|saved| saved.functions);
    for (capture, scale) in captures.iter().zip(scales) {
        let mut session = match opened.next() {
            Some(session) => session,
            None => open::live(capture, messages)?,
        };
        gathered.opened(capture, &session, messages);
        let measured = Measured { unit: scale.unit, counts_cycles: scale.counts_cycles, functions };
        view.check(&mut session, &how, messages)?;
        session.each_source(messages, |session, source| {
            let measuring = Measuring::new(scale, window.clone(), functions);
            // A complete capture's ITMs can be read separately.
            let is_apart = !session.is_live() && window == Window::default();
            let measuring = if is_apart { measuring } else { measuring.with_itms() };
            let outcome = window::run(session, source, (&how, &view), measuring, messages)?;
            gathered.statistics.add(&outcome.statistics);
            let (activities, mut reported) = outcome.found;
            let itms = session.itms_beside(source);
            if is_apart {
                reported.extend(itms.iter().map(|itm| (itm.id, seen_by_itm(session.itm_records(itm)))));
                reported.retain(|_, found| !found.exceptions.is_empty());
            }
            let mut sources = BTreeMap::from([(session.source_id(source), activities)]);
            sources
                .extend(itms.iter().filter_map(|itm| Some((session.itm_id(itm), reported.remove(&itm.id)?))));
            let found = ProgramActivities { measured: Some(measured), sources };
            gathered.add(session.followed(source, &outcome.code)?, found);
            Ok::<(), Failure>(())
        })?;
    }
    view.finish()?;
    gathered.finish(messages)
}

/// The answer of the saved files, if there are any; refuses options that they cannot satisfy.
fn saved(args: &Interrupts, gathered: &Gathered<'_, ProgramActivities>) -> Result<Option<Measured>, Failure> {
    let mut found = None;
    for (path, part) in gathered.parts() {
        let Some(measured) = part.programs.values().find_map(|program| program.found.measured) else {
            continue;
        };
        let asked_for = args.axis.axis.unit();
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
        found.get_or_insert(measured);
    }
    Ok(found)
}

/// The axis of each capture. All have the same unit.
fn scales(
    args: &Interrupts,
    saved: Option<Measured>,
    (captures, opened): (&[CaptureArgs], &mut [Session]),
    messages: &Messages,
) -> Result<Vec<Scale>, Failure> {
    let axis = &args.axis;
    let is_live = opened.iter().any(Session::is_live);
    let mut probed = Vec::new();
    for capture in captures.iter().skip(opened.len()) {
        refuse_stream(capture)?;
        let (mut session, _) = Session::open(capture.request())?;
        probed.push(session.probe(Some(&axis.follow.source_dirs), &Notices::default())?);
    }
    for session in opened {
        probed.push(session.probe(Some(&axis.follow.source_dirs), messages)?);
    }
    let stated = axis.axis.unit().or(saved.map(|saved| saved.unit));
    let unit = best_unit(&probed, is_live, stated, axis.frequency)?;
    // Interpolation between timestamps is by each capture alone, so that saved and followed captures add up to the same.
    Ok(probed.iter().map(|probes| Scale::of(probes, unit, axis.frequency)).collect())
}

/// Refuses a capture that arrives over time and can be read only once.
fn refuse_stream(capture: &CaptureArgs) -> Result<(), Failure> {
    if !comes_over_time(capture)? {
        return Ok(());
    }
    Err(Failure::input(
        "comes_over_time",
        format!("{}: arrives over time, so it must be the only capture", capture.capture.display()),
        "save the figures of each with --save, and merge them with `tracewalk merge`",
    ))
}

fn report(
    args: &Interrupts,
    gathered: &Gathered<'_, ProgramActivities>,
    messages: &Messages,
) -> Result<InterruptReport, Failure> {
    let programs = &gathered.found.programs;
    let all = programs.values().filter_map(|program| program.found.measured);
    let nothing = Measured { unit: Unit::Instructions, counts_cycles: false, functions: false };
    let all = all.reduce(|a, b| Measured { counts_cycles: a.counts_cycles && b.counts_cycles, ..a });
    let Measured { unit, counts_cycles, .. } = all.unwrap_or(nothing);
    let scale = Scale { unit, counts_cycles, frequency: args.axis.frequency };
    // Exceptions have names even without a program.
    let interrupts = interrupts(&args.axis.follow.capture.request(), messages)?;
    let unknown = || Arc::new(Code { interrupts: interrupts.clone(), ..Code::unknown() });
    let (mut sources, mut named) = (Vec::new(), Vec::new());
    for (id, program) in programs {
        let code = gathered.code(id).cloned().unwrap_or_else(unknown);
        named.push((Arc::clone(&code), program.name()));
        sources.extend(program.found.sources.iter().map(|(source, activities)| {
            let SourceId { id, protocol, number } = *source;
            let section = Section { id, protocol, number, code: Arc::clone(&code) };
            (section, activities.clone())
        }));
    }
    sources.sort_by_key(|(section, _)| section.id);
    named.retain(|(_, name)| !name.is_empty());
    Ok(InterruptReport { scale, sources, programs: named, complete: gathered.found.complete })
}
