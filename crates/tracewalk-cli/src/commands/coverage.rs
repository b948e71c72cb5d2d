//! `coverage`: what of a program ran.

mod base;
mod gather;
mod selection;
mod stale;

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tracewalk_analysis::coverage::{Difference, Metric, ProgramCoverage, Report, Tally, Tracefile};
use tracewalk_report::formats::{self, CoverageAnswer, Format, WriteCoverage};

use super::gather::Gathered;
use super::print_statistics;
use crate::args::{Coverage, Limit};
use crate::failure::Failure;
use crate::messages::Messages;
use crate::output::{Destination, look_for, write_to};
use crate::task::{Reads, Task};
use tracewalk_report::counted;

use selection::Selection;

impl Task for Coverage {
    fn reads(&self) -> Reads<'_> {
        Reads {
            more: &self.more,
            takes_saved: true,
            beside: self.diff.as_deref(),
            ..Reads::followed(&self.follow)
        }
    }

    fn writes(&self) -> Vec<Destination<'_>> {
        let reports =
            self.reports().map(|(option, _, file)| Destination::file(option, file)).collect::<Vec<_>>();
        // What is written to a file needs no table on the terminal.
        let prints =
            self.format.is_some() || self.output.is_some() || (reports.is_empty() && self.save.is_none());
        let output = prints.then(|| Destination::output(self.output.as_deref()));
        let save = self.save.as_deref().map(|file| Destination::file("--save", file));
        output.into_iter().chain(save).chain(reports).collect()
    }

    fn run(&self, messages: &Messages) -> Result<(), Failure> {
        run(self, messages)
    }
}

/// Reports what ran, saves it, and checks it.
fn run(args: &Coverage, messages: &Messages) -> Result<(), Failure> {
    let start = Instant::now();
    let gathered = gather::gather(args, messages)?;
    if let Some(file) = &args.save {
        gathered.save(file, messages)?;
    }
    let writes_another = args.save.is_some() || args.reports().next().is_some();
    let default = formats::COVERAGE.first().filter(|_| !writes_another || args.output.is_some());
    let format = args.format.or(default);
    if format.is_some()
        || args.reports().next().is_some()
        || !args.fail_under.is_empty()
        || args.diff.is_some()
    {
        report(args, format, &gathered, messages)?;
    }
    if args.work.stats {
        print_statistics(&gathered.statistics, start.elapsed(), args.work.threads, messages);
    }
    Ok(())
}

fn report(
    args: &Coverage,
    format: Option<&Format<WriteCoverage>>,
    gathered: &Gathered<'_, ProgramCoverage>,
    messages: &Messages,
) -> Result<(), Failure> {
    let inputs = gather::inputs(gathered)?;
    let complete = gathered.found.complete;
    let selection = Selection::of(args);
    let mut report = Report { complete, ..Report::of(&inputs, &selection) };
    gather::rename(&mut report, args);
    report.stale = stale::files(args, &report, |name| gather::source_file(&inputs, name));
    if let [first, others @ ..] = report.stale.as_slice() {
        let more = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
        messages.warning("stale_source", format_args!(
            "{first}{more}: not the source that was compiled: changed since the capture or the image, or shorter than its line \
             numbers; check out the revision that was traced"
        ));
    }
    if report.files.is_empty() && selection.leaves_nothing() {
        return Err(Failure::input(
            "nothing_selected",
            "--include and --include-function match nothing of the program",
            "check the patterns, or leave them out",
        ));
    }
    for (option, pattern) in selection.unused() {
        messages.warning(
            "unused_pattern",
            format_args!("{option} {pattern}: matches nothing in the program; check the pattern"),
        );
    }
    let source = |file: &str| gather::source_file(&inputs, file);
    let difference = match &args.diff {
        Some(file) => {
            let base = base::read(file, args, gathered, messages)?;
            Some(Difference::between(&base, &Tracefile::of(&report, source)))
        }
        None => None,
    };
    let answer = CoverageAnswer {
        report: &report,
        inputs: &inputs,
        difference: difference.as_ref(),
        source: &source,
        look: look_for(args.output.as_deref()),
        time: time(),
    };
    if let Some(format) = format {
        write_to(args.output.as_deref(), |out| (format.make)(out, &answer))?;
    }
    for (_, format, file) in args.reports() {
        write_to(Some(file), |out| (format.make)(out, &answer))?;
    }
    check(args, &report, difference.as_ref())
}

/// The time that an output is dated with, in seconds since 1970. `SOURCE_DATE_EPOCH` makes outputs reproducible
/// (reproducible-builds.org).
fn time() -> u64 {
    let stated = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|seconds| seconds.parse().ok());
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    stated.unwrap_or_else(now)
}

/// Whether what was to be checked holds.
fn check(args: &Coverage, report: &Report, difference: Option<&Difference>) -> Result<(), Failure> {
    let mut unmet = args.fail_under.iter().filter_map(|limit| limit.unmet(report)).collect::<Vec<_>>();
    if let (true, Some(difference)) = (args.no_loss, difference) {
        let (lines, branches) = (difference.lost_lines() as u64, difference.lost_branches() as u64);
        if lines > 0 {
            unmet.push(format!("{} of the base no longer covered", counted(lines, "line")));
        }
        if branches > 0 {
            unmet.push(format!(
                "outcomes of conditions at {} lost against the base",
                counted(branches, "line")
            ));
        }
    }
    if unmet.is_empty() { Ok(()) } else { Err(Failure::Unmet(unmet.join("; "))) }
}

impl Limit {
    /// What is wrong, where less is covered.
    fn unmet(&self, report: &Report) -> Option<String> {
        let Self { metric, percent } = *self;
        let Tally { found, covered, untold } = report.totals.of(metric);
        let name = metric.name();
        if found == 0 {
            let why = match (metric, untold) {
                (Metric::Branches, 1..) => "no trace tells of their outcomes",
                _ => "there are none, or --include and --exclude leave none",
            };
            return Some(format!("found no {name} to check against {percent}%: {why}"));
        }
        // Both counts are far below 2^52.
        let enough = covered as f64 * 100.0 >= percent * found as f64;
        (!enough).then(|| {
            let permille = covered * 1000 / found;
            format!(
                "{name}: found {}.{}% covered ({covered} of {found}), expected at least {percent}%",
                permille / 10,
                permille % 10
            )
        })
    }
}
