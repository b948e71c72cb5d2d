//! `flow`: what was executed.

use std::io::Write;
use std::time::Instant;

use tracewalk_analysis::analysis::{Growth, InOrder, InParts};
use tracewalk_analysis::record::FlowRecord;
use tracewalk_analysis::sink::{Join, Sink};
use tracewalk_analysis::{Code, Doubtful, Section, Statistics};
use tracewalk_report::export::LastInstructions;
use tracewalk_report::formats::{FlowOptions, FlowParts, WithJoin};
use tracewalk_session::{Itm, Itms, NoticeKind, Observer as _, Session};

use super::{follow, print_statistics};
use crate::args::Flow;
use crate::failure::Failure;
use crate::messages::Messages;
use crate::open;
use crate::output::{Destination, Output, palette, standard_output};
use crate::task::{Reads, Task};

impl Task for Flow {
    fn reads(&self) -> Reads<'_> {
        Reads::one(&self.capture)
    }

    fn writes(&self) -> Vec<Destination<'_>> {
        vec![Destination::standard_output()]
    }

    fn run(&self, messages: &Messages) -> Result<(), Failure> {
        run(self, messages)
    }
}

/// Prints what was executed.
fn run(args: &Flow, messages: &Messages) -> Result<(), Failure> {
    let start = Instant::now();
    let mut session = open::live(&args.capture, messages)?;
    let mut out = standard_output();
    let in_order_only = session.is_live() || args.trust().doubtful == Doubtful::Drop || args.last.is_some();
    // What an ITM tells stands between the lines.
    let itm_between = |parts: &FlowParts| *parts == FlowParts::Jsonl && !session.itms().is_empty();
    let parts = args.format.make.parts.filter(|parts| !in_order_only && !itm_between(parts));
    let total = match parts {
        Some(parts) => parts.with(&mut out, ByThreads { args, session: &mut session, parts, messages })?,
        None => in_order(args, &mut session, &mut out, messages)?,
    };
    out.flush()?;
    if args.work.stats {
        print_statistics(&total, start.elapsed(), args.work.threads, messages);
    }
    // The process ends, and with it goes all that it has. To free each name before takes a tenth of a short command's time.
    std::mem::forget(session);
    Ok(())
}

/// Follows all sources, each record handed on in the order of the trace.
fn in_order(
    args: &Flow,
    session: &mut Session,
    out: &mut Output,
    messages: &Messages,
) -> Result<Statistics, Failure> {
    let shown = out.clone();
    let at_once = session.on_quiet(move || shown.clone().flush());
    let mut exporter = exporter(args, at_once, out);
    exporter.begin()?;
    let mut total = Statistics::default();
    let how = args.how();
    session.each_source(messages, |session, source| {
        let outcome = follow::run(session, source, &how, InOrder(&mut *exporter), messages)?;
        total.add(&outcome.statistics);
        Ok::<(), Failure>(())
    })?;
    itms_alone(session, &mut *exporter, messages)?;
    Ok(total)
}

/// Follows all sources by several threads.
struct ByThreads<'a> {
    args: &'a Flow,
    session: &'a mut Session,
    parts: FlowParts,
    messages: &'a Messages,
}

impl WithJoin for ByThreads<'_> {
    type Answer = Result<Statistics, Failure>;

    fn with(self, exporter: &mut impl Join) -> Result<Statistics, Failure> {
        let Self { args, session, parts, messages } = self;
        exporter.begin()?;
        let mut total = Statistics::default();
        let growth = match parts {
            FlowParts::Nothing => Growth::Bounded,
            FlowParts::Jsonl => Growth::LongLines,
            FlowParts::Runs => Growth::Lines,
        };
        let how = args.how();
        session.each_source(messages, |session, source| {
            let outcome = follow::run(session, source, &how, InParts(exporter, growth), messages)?;
            total.add(&outcome.statistics);
            Ok::<(), Failure>(())
        })?;
        Ok(total)
    }
}

/// What ITMs told in buffers without any trace of instructions.
fn itms_alone(
    session: &Session,
    exporter: &mut dyn Sink<FlowRecord>,
    messages: &Messages,
) -> Result<(), Failure> {
    let is_alone = |itm: &&Itm| session.sources().iter().all(|source| source.buffer != itm.buffer);
    for itm in session.itms().iter().filter(is_alone) {
        messages.notice(NoticeKind::ItmAlone { source: itm.id }.into());
        if exporter.shows_itm() {
            exporter.section(&Section {
                id: itm.id,
                protocol: "itm",
                number: 1,
                code: Code::unknown().into(),
            })?;
            let mut itms = Itms::new(session, vec![itm.clone()]);
            session.wait_for_itms(|| itms.each(|record| exporter.itm(record)))?;
            exporter.end_section()?;
            let counts = itms.finish(messages);
            messages.record(|record| {
                counts.iter().for_each(|(itm, counts)| record.itm(itm, counts));
                Ok(())
            })?;
        }
    }
    Ok(())
}

fn exporter<'a>(args: &Flow, at_once: bool, out: &'a mut Output) -> Box<dyn Sink<FlowRecord> + 'a> {
    let Flow { source_lines, functions, .. } = *args;
    let options = FlowOptions { palette: palette(), source_lines, functions, at_once };
    let exporter = (args.format.make.sink)(out, &options);
    match args.last {
        Some(count) => Box::new(LastInstructions::new(exporter, count)),
        None => exporter,
    }
}
