//! `calls`: the functions that ran, as a tree of calls.

use std::io::Write;
use std::time::Instant;

use tracewalk_report::analysis::Statistics;
use tracewalk_report::export::{CallTree, CallTreeOptions, Export};

use super::{follow, print_statistics};
use crate::args::Calls;
use crate::failure::Failure;
use crate::messages::Messages;
use crate::output::{palette, standard_output};
use crate::work::Work;

/// Prints each source's calls.
pub(crate) fn run(args: &Calls, messages: &Messages) -> Result<(), Failure> {
    let start = Instant::now();
    let mut work = Work::open(&args.follow.capture, messages)?;
    let mut out = standard_output();
    let options = CallTreeOptions {
        palette: palette(),
        depth: args.depth,
        fold: !args.no_fold,
        window: args.window.window(),
    };
    let mut tree = CallTree::new(&mut out, options);
    tree.begin()?;
    let mut total = Statistics::default();
    for job in work.jobs.clone() {
        let code = work.code(&job, Some(&args.follow.source_dirs), messages)?;
        total.add(&follow::source(&work, &job, code, args.follow.trust_image, &mut tree, messages)?);
    }
    drop(tree);
    out.flush()?;
    if args.work.stats {
        print_statistics(&total, start.elapsed(), args.work.threads);
    }
    Ok(())
}
