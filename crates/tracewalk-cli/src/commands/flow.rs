//! `flow`: what was executed.

use std::io::Write;
use std::time::Instant;

use tracewalk_analysis::record::FlowRecord;
use tracewalk_analysis::sink::{Join, Nothing, Sink};
use tracewalk_analysis::{Code, Doubtful, Section, Statistics, Window};
use tracewalk_report::export::{
    CallTree, CallTreeOptions, FlowJsonl, LastInstructions, Listing, ListingOptions, Runs,
};

use super::follow::{self, Following};
use super::{beside, print_statistics};
use crate::args::{Flow, FlowFormat};
use crate::failure::Failure;
use crate::messages::Messages;
use crate::output::{Output, palette, standard_output};
use crate::work::{ItmJob, Work};

/// Prints what was executed.
pub(crate) fn run(args: &Flow, messages: &Messages) -> Result<(), Failure> {
    let start = Instant::now();
    let mut work = Work::open_live(&args.capture, messages)?;
    let mut out = standard_output();
    let total = match (args.format, args.last) {
        _ if work.is_live() || args.trust().doubtful == Doubtful::Drop => {
            in_order(args, &mut work, &mut out, messages)?
        }
        (FlowFormat::None, None) => in_parts(args, &mut work, &mut Nothing, messages)?,
        (FlowFormat::Runs, None) => in_parts(args, &mut work, &mut Runs::new(&mut out), messages)?,
        // What an ITM tells stands between the lines.
        (FlowFormat::Jsonl, None) if work.itms.is_empty() => {
            in_parts(args, &mut work, &mut FlowJsonl::new(&mut out), messages)?
        }
        _ => in_order(args, &mut work, &mut out, messages)?,
    };
    out.flush()?;
    if args.work.stats {
        print_statistics(&total, start.elapsed(), args.work.threads, messages);
    }
    // The process ends, and with it goes all that it has. To free each name before takes a tenth of a short command's time.
    std::mem::forget(work);
    Ok(())
}

/// Follows all sources, each record handed on in the order of the trace.
fn in_order(
    args: &Flow,
    work: &mut Work,
    out: &mut Output,
    messages: &Messages,
) -> Result<Statistics, Failure> {
    let at_once = work.show_at_once(out);
    let mut exporter = exporter(args, at_once, out);
    exporter.begin()?;
    let mut total = Statistics::default();
    let names = (args.format == FlowFormat::Text).then_some(args.source_dirs.as_slice());
    // More of them may be found when a capture that comes has come.
    for index in 0.. {
        let Some(job) = work.jobs.get(index).cloned() else { break };
        let code = work.code(&job, names, messages)?;
        let following = Following::new(work, &job, args.trust(), messages);
        total.add(&follow::source(following, &code, &mut *exporter)?);
        // As in `run`.
        std::mem::forget(code);
        work.end_job(messages)?;
    }
    itms_alone(work, &mut *exporter, messages)?;
    Ok(total)
}

/// Follows all sources by several threads.
fn in_parts(
    args: &Flow,
    work: &mut Work,
    exporter: &mut impl Join,
    messages: &Messages,
) -> Result<Statistics, Failure> {
    exporter.begin()?;
    let mut total = Statistics::default();
    for job in work.jobs.clone() {
        let code = work.code(&job, None, messages)?;
        let following = Following::new(work, &job, args.trust(), messages);
        let spread = work.spread(args.work.threads, &code);
        let spread = match args.format {
            FlowFormat::None => spread.for_counts(),
            FlowFormat::Jsonl => spread.for_long_lines(),
            _ => spread,
        };
        let (statistics, doubts) = follow::source_in_parts(following, &code, spread, exporter)?;
        following.tell_doubts(&doubts);
        total.add(&statistics);
    }
    Ok(total)
}

/// What ITMs told in buffers without any trace of instructions.
fn itms_alone(work: &Work, exporter: &mut dyn Sink<FlowRecord>, messages: &Messages) -> Result<(), Failure> {
    let is_alone = |itm: &&ItmJob| work.jobs.iter().all(|job| job.buffer != itm.buffer);
    for itm in work.itms.iter().filter(is_alone) {
        messages.note(format_args!(
            "{}: an ITM alone says nothing of what was executed in order; `tracewalk itm` prints its text",
            itm.name()
        ));
        if exporter.shows_itm() {
            exporter.section(&Section {
                id: itm.id,
                protocol: "itm",
                number: 1,
                code: Code::unknown().into(),
            })?;
            let mut itms = beside::Itms::new(work, vec![itm.clone()]);
            work.wait_for_itms(|| itms.rest(exporter))?;
            exporter.end_section()?;
            itms.tell(messages);
        }
    }
    Ok(())
}

fn exporter<'a>(args: &Flow, at_once: bool, out: &'a mut Output) -> Box<dyn Sink<FlowRecord> + 'a> {
    let options = ListingOptions { palette: palette(), source_lines: args.source_lines };
    let exporter: Box<dyn Sink<FlowRecord> + 'a> = match args.format {
        FlowFormat::Text if args.functions => Box::new(CallTree::new(
            out,
            CallTreeOptions { palette: options.palette, depth: None, fold: true, window: Window::default() },
        )),
        FlowFormat::Text => Box::new(Listing::new(out, options)),
        FlowFormat::Runs if at_once => Box::new(Runs::new(out).at_once()),
        FlowFormat::Runs => Box::new(Runs::new(out)),
        FlowFormat::Jsonl => Box::new(FlowJsonl::new(out)),
        FlowFormat::None => Box::new(Nothing),
    };
    match args.last {
        Some(count) => Box::new(LastInstructions::new(exporter, count)),
        None => exporter,
    }
}
