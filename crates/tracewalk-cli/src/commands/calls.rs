//! `calls`: the functions that ran, as a tree of calls.

use std::io::Write;
use std::time::Instant;

use tracewalk::plain::Plain;
use tracewalk_analysis::Statistics;
use tracewalk_analysis::profile::Profile;
use tracewalk_report::export::{CallChainsOptions, CallTreeOptions, ProfileReport, best_unit};

use super::window::{self, View};
use super::{follow, print_statistics, profile};
use crate::args::{Calls, Fold};
use crate::failure::Failure;
use crate::messages::Messages;
use crate::open;
use crate::output::{Destination, look, standard_output};
use crate::task::{Reads, Task};

impl Task for Calls {
    fn reads(&self) -> Reads<'_> {
        Reads::followed(&self.follow)
    }

    fn writes(&self) -> Vec<Destination<'_>> {
        vec![Destination::standard_output()]
    }

    fn is_for_people(&self) -> bool {
        self.format.name == "text"
    }

    fn run(&self, messages: &Messages) -> Result<(), Failure> {
        run(self, messages)
    }
}

/// Prints each source's calls.
fn run(args: &Calls, messages: &Messages) -> Result<(), Failure> {
    let start = Instant::now();
    let total = match args.fold {
        Fold::Chains => chains(args, messages)?,
        Fold::None | Fold::Repeats => tree(args, messages)?,
    };
    if args.work.stats {
        print_statistics(&total, start.elapsed(), args.work.threads, messages);
    }
    Ok(())
}

/// In the order in which they ran.
fn tree(args: &Calls, messages: &Messages) -> Result<Statistics, Failure> {
    let window = args.window.window()?;
    let mut session = open::live(&args.follow.capture, messages)?;
    let (how, view) = (follow::how(&args.follow, args.work.threads), View::new(window.clone(), None));
    view.check(&mut session, &how, messages)?;
    let mut out = standard_output();
    let shown = out.clone();
    session.on_quiet(move || shown.clone().flush());
    let options = CallTreeOptions { look: look(), depth: args.depth, fold: args.fold != Fold::None, window };
    let mut tree = (args.format.make.tree)(&mut out, options);
    tree.begin()?;
    let mut total = Statistics::default();
    session.each_source(messages, |session, source| {
        let outcome = window::run(session, source, (&how, &view), &mut *tree, messages)?;
        total.add(&outcome.statistics);
        Ok::<(), Failure>(())
    })?;
    tree.finish(messages.complete())?;
    drop(tree);
    out.flush()?;
    view.finish()?;
    Ok(total)
}

/// Added up by chains of calls.
fn chains(args: &Calls, messages: &Messages) -> Result<Statistics, Failure> {
    let gathered = profile::gather(&args.follow, &[], (args.window.window()?, args.work.threads), messages)?;
    // The callees of a function are in the order of their first calls.
    let sources = profile::sources(&gathered, Profile::clone)?;
    let report = ProfileReport {
        unit: best_unit(sources.iter().map(|(_, profile)| profile)),
        sources,
        programs: Vec::new(),
        name: Plain(args.follow.capture.capture.display()).to_string(),
        frequency: None,
        inlined: true,
        complete: gathered.found.complete,
    };
    let mut out = standard_output();
    let options = CallChainsOptions { look: look(), depth: args.depth };
    (args.format.make.chains)(&mut out, &report, &options)?;
    out.flush()?;
    Ok(gathered.statistics)
}
