//! `flow`: what was executed.

use std::io::Write;
use std::time::Instant;

use tracewalk_report::analysis::{Statistics, Window};
use tracewalk_report::export::{
    CallTree, CallTreeOptions, Export, FlowJsonl, FlowRecord, LastInstructions, Listing, ListingOptions,
    Nothing, Runs,
};

use super::{follow, print_statistics};
use crate::args::{Flow, FlowFormat};
use crate::failure::Failure;
use crate::messages::Messages;
use crate::output::{Output, palette, standard_output};
use crate::work::Work;

/// Prints what was executed.
pub(crate) fn run(args: &Flow, messages: &Messages) -> Result<(), Failure> {
    let start = Instant::now();
    let mut work = Work::open_live(&args.capture, messages)?;
    let mut out = standard_output();
    let at_once = work.show_at_once(&out);
    let mut exporter = exporter(args, at_once, &mut out);
    exporter.begin()?;
    let mut total = Statistics::default();
    let names = (args.format == FlowFormat::Text).then_some(args.source_dirs.as_slice());
    // More of them may be found when a capture that comes has come.
    for index in 0.. {
        let Some(job) = work.jobs.get(index).cloned() else { break };
        let code = work.code(&job, names, messages)?;
        total.add(&follow::source(&work, &job, code, args.trust_image, &mut *exporter, messages)?);
        work.end_job(messages)?;
    }
    drop(exporter);
    out.flush()?;
    if args.work.stats {
        print_statistics(&total, start.elapsed(), args.work.threads);
    }
    Ok(())
}

fn exporter<'a>(args: &Flow, at_once: bool, out: &'a mut Output) -> Box<dyn Export<FlowRecord> + 'a> {
    let options = ListingOptions { palette: palette(), source_lines: args.source_lines };
    let exporter: Box<dyn Export<FlowRecord> + 'a> = match args.format {
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
