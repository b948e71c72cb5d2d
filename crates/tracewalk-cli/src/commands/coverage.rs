//! `coverage`: the code of a program that ran.

mod base;
mod paths;
mod revisions;
mod selection;
mod stale;

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use tracewalk_analysis::coverage::{
    Difference, Limit, LimitMeasure, ProgramCoverage, ProgramInput, Report, Stale, Tracefile, Unmet,
};
use tracewalk_analysis::programs::OfProgram;
use tracewalk_report::formats::{CoverageAnswer, Format, WriteCoverage};
use tracewalk_report::why_stale;
use tracewalk_sentences::of_unmet;
use tracewalk_session::{Gathered, OfCoverage};

use super::gather::Front;
use crate::args::{Coverage, FailOn, PathMap};
use crate::failure::Failure;
use crate::messages::Messages;
use crate::output::{Destination, look_for, write_to};
use crate::task::{Reads, Task};

use paths::Paths;
use selection::Selection;

impl Task for Coverage {
    fn reads(&self) -> Reads<'_> {
        let changes = self.base_src.iter().filter(|file| !revisions::is_standard_input(file));
        let changes = changes.filter(|file| !file.is_dir());
        Reads {
            beside: self.diff.iter().chain(changes).map(PathBuf::as_path).collect(),
            ..Reads::places(&self.places)
        }
    }

    fn writes(&self) -> Vec<Destination<'_>> {
        let mut writes = Destination::of_places(&self.places, (None, false), self.save.as_deref());
        writes.retain(|destination| destination.option != "the result");
        writes.extend(self.reports().into_iter().map(|(_, file)| Destination::output(file)));
        writes
    }

    fn is_for_people(&self) -> bool {
        self.format.is_none_or(|format| format.name == "text")
    }

    /// Reports coverage, saves it, and checks limits.
    fn run(&self, messages: &Messages) -> Result<(), Failure> {
        messages.measure(self.work);
        refuse_missing_base(self)?;
        let front = Front::new(&self.places, messages);
        let gathered = gather(self, &front, messages)?;
        let reports = self.reports();
        let is_reported = !reports.is_empty() || !self.fail_under.is_empty() || self.diff.is_some();
        if is_reported {
            gathered.refuse_several_programs()?;
        }
        if let Some(file) = &self.save {
            front.save(&gathered, Some(file))?;
            note_selection(self, file, messages);
        }
        let fails_on_loss = self.fail_on.contains(&FailOn::Loss);
        let mut unmet = if fails_on_loss { gathered.answered.programs.losses() } else { Vec::new() };
        if is_reported {
            unmet.extend(report(self, &reports, &gathered, messages)?);
        }
        let unmet = unmet.iter().map(of_unmet).collect::<Vec<_>>();
        if unmet.is_empty() { Ok(()) } else { Err(Failure::Unmet(unmet.join("; "))) }
    }
}

/// Decodes the captures, and reads the saved files.
fn gather(
    args: &Coverage,
    front: &Front<'_>,
    messages: &Messages,
) -> Result<Gathered<ProgramCoverage>, Failure> {
    let results = args.save.iter().chain(&args.outputs).map(|file| Some(file.as_path()));
    let gather = front.request(results, args.by_run.to_string(), args.work.threads)?;
    let places = gather.find(front)?;
    let by_run = args.by_run || places.knows_runs();
    front.ask(places, &OfCoverage { by_run }, by_run, |path, part| {
        messages.record(|record| {
            let sources = part.programs.values().flat_map(|program| &program.found.sources);
            sources.for_each(|source| record.saved(path, source));
        });
    })
}

/// The inputs of a report.
fn inputs(gathered: &Gathered<ProgramCoverage>) -> Result<Vec<ProgramInput<'_>>, Failure> {
    let programs = gathered.answered.programs.programs.iter();
    let inputs = programs.map(|(id, OfProgram { images, found })| {
        let code = gathered.answered.code(id)?;
        Ok(ProgramInput { id, images, coverage: found, code })
    });
    inputs.collect()
}

/// A saved file has all code, whatever the options select.
fn note_selection(args: &Coverage, file: &Path, messages: &Messages) {
    if Selection::of(args).is_given() {
        messages.note(
            "saved_whole",
            format_args!(
                "{}: has all code, so that it can be merged; --include, --exclude, --include-function and --exclude-function \
                 select code of reports only",
                file.display()
            ),
        );
    }
}

/// Refuses options that need a base, or its sources, if these are not given.
fn refuse_missing_base(args: &Coverage) -> Result<(), Failure> {
    let checks_changes = args.fail_under.iter().any(|limit| limit.measure == LimitMeasure::Changed);
    if args.base_src.is_none() && (checks_changes || !args.base_images.is_empty()) {
        return Err(Failure::input(
            "no_revisions",
            "--fail-under changed and --base-image need the changes since the base's revision",
            "add --diff BASE with --base-src DIFF or --base-src DIR",
        ));
    }
    if args.fail_on.contains(&FailOn::Regression) && args.diff.is_none() {
        return Err(Failure::input(
            "no_base",
            "--fail-on regression needs a base, but none was given",
            "add --diff BASE",
        ));
    }
    if args.table == "difference" && args.diff.is_none() {
        return Err(Failure::input(
            "no_base",
            "--table difference needs a base, but none was given",
            "add --diff BASE",
        ));
    }
    Ok(())
}

/// Writes the reports; returns the messages of the limits that do not hold.
fn report(
    args: &Coverage,
    reports: &[(&'static Format<WriteCoverage>, Option<&Path>)],
    gathered: &Gathered<ProgramCoverage>,
    messages: &Messages,
) -> Result<Vec<Unmet>, Failure> {
    let inputs = inputs(gathered)?;
    let complete = gathered.answered.programs.complete;
    let selection = Selection::of(args);
    let mut report = Report { complete, ..Report::of(&inputs, &selection) };
    let paths = Paths::of(&mut report, args);
    let missing = stale::mark(&mut report, gathered.dated(), |name| paths.found(&inputs, name));
    warn_of_stale(&report, messages);
    if !args.places.follow.source_dirs.is_empty() {
        report_missing(&missing, report.files.len(), messages);
    }
    if matches!(args.table, "runs" | "lines_by_run") && report.runs.is_empty() {
        return Err(Failure::input(
            "no_runs",
            format!("--table {} needs runs, but they were not kept apart", args.table),
            "add --by-run",
        ));
    }
    // Without a program no pattern matches, and none is wrong.
    if !inputs.is_empty() {
        let unused_maps = paths.unused.iter().filter(|map| !selection.renamed_by(**map));
        let unused_maps = unused_maps.filter_map(|map| args.path_maps.get(*map)).collect::<Vec<_>>();
        judge_patterns(&report, &selection, &unused_maps, messages)?;
    }
    if args.diff.is_some() && inputs.is_empty() {
        return Err(Failure::input(
            "nothing_to_compare",
            "nothing was measured, so that a comparison with any base would show no loss",
            "check that the image is the program that was traced, and that the capture holds its trace",
        ));
    }
    let source = |file: &str| paths.source(&inputs, file);
    let difference = match &args.diff {
        Some(file) => {
            let base = base::read(file, args, gathered, messages)?;
            let now = Tracefile::of(&report, source);
            let text = |name: &str| source(name).map(|found| found.text);
            let mut difference = revisions::difference(args, &base, &now, &text, messages)?;
            Paths::name_difference(&mut difference, &report, source);
            Some(difference)
        }
        None => None,
    };
    for (format, file) in reports {
        let answer = CoverageAnswer {
            report: &report,
            inputs: &inputs,
            difference: difference.as_ref(),
            source: &source,
            look: look_for(*file),
            table: args.table,
            time: time(),
        };
        write_to(*file, |out| (format.make)(out, &answer))?;
    }
    let changed = difference.as_ref().and_then(|difference| difference.changed);
    let mut unmet = Limit::unmet(&args.fail_under, &report, changed);
    if args.fail_on.contains(&FailOn::Regression) {
        unmet.extend(difference.iter().flat_map(Difference::regressions));
    }
    Ok(unmet)
}

/// Refuses a selection of nothing, and warns of patterns and maps that match nothing.
fn judge_patterns(
    report: &Report,
    selection: &Selection<'_>,
    unused_maps: &[&PathMap],
    messages: &Messages,
) -> Result<(), Failure> {
    if report.files.is_empty() && selection.leaves_nothing() {
        return Err(Failure::input(
            "nothing_selected",
            "--include and --include-function match nothing in the program",
            "check the patterns, or leave them out",
        ));
    }
    for (option, pattern) in selection.unused() {
        messages.warning(
            "unused_pattern",
            format_args!("{option} {pattern}: matches nothing in the program; check the pattern"),
        );
    }
    for map in unused_maps {
        messages.warning(
            "unused_path_map",
            format_args!("--path-map {map}: no source path begins with OLD; `--format json` lists the paths"),
        );
    }
    Ok(())
}

/// Reports sources that are in no `--src-dir`: libraries often have none, but a program has.
fn report_missing(missing: &[String], files: usize, messages: &Messages) {
    let Some(first) = missing.first() else { return };
    let text = format_args!(
        "{} of {files} source files were not found, the first: {first}; check --src-dir and --path-map",
        missing.len()
    );
    if missing.len() == files {
        messages.warning("sources_not_found", text);
    } else {
        messages.note("sources_not_found", text);
    }
}

/// Warns of sources that were not compiled, in a line for each reason.
fn warn_of_stale(report: &Report, messages: &Messages) {
    for reason in [Stale::Checksum, Stale::Shorter, Stale::Newer] {
        let mut files = report.stale().filter(|(_, why)| *why == reason).map(|(file, _)| &file.name);
        let Some(first) = files.next() else { continue };
        let others = files.count();
        let more = if others == 0 { String::new() } else { format!(" and {others} more") };
        let certain = if reason == Stale::Newer { "may not be" } else { "is not" };
        messages.warning(
            "stale_source",
            format_args!(
                "{first}{more}: {certain} the source that was compiled: {}; check out the traced revision",
                why_stale(reason)
            ),
        );
    }
}

/// The date of an output, in seconds since 1970. `SOURCE_DATE_EPOCH` makes outputs reproducible (reproducible-builds.org).
fn time() -> u64 {
    let stated = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|seconds| seconds.parse().ok());
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    stated.unwrap_or_else(now)
}
