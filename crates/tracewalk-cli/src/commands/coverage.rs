//! `coverage`: the code of a program that ran.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use tracewalk::plain::Plain;
use tracewalk_analysis::coverage::{LimitMeasure, ProgramCoverage, SourceDiff, Unmet};
use tracewalk_report::export::{read_base, read_source_diff};
use tracewalk_report::formats::{CoverageAnswer, Format, WriteCoverage};
use tracewalk_sentences::{of_coverage_notice, of_unmet};
use tracewalk_session::{
    BaseSources, CoverageBase, CoverageRequest, FollowedProgram, Gathered, OfCoverage, PlacesErrorKind,
};

use super::gather::Front;
use crate::args::{CaptureArgs, Coverage, FailOn};
use crate::failure::Failure;
use crate::messages::Messages;
use crate::output::{Destination, look_for, write_to};
use crate::task::{Reads, Task};

/// The longest diff.
const LONGEST_DIFF: u64 = 256 << 20;

impl Task for Coverage {
    fn reads(&self) -> Reads<'_> {
        let changes = self.base_src.iter().filter(|file| !is_standard_input(file));
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

/// A saved file has all code, whatever the options select.
fn note_selection(args: &Coverage, file: &Path, messages: &Messages) {
    let all = [&args.include, &args.exclude, &args.include_function, &args.exclude_function];
    if all.iter().any(|patterns| !patterns.is_empty()) {
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
    let needed = [
        ("--fail-on regression", args.fail_on.contains(&FailOn::Regression)),
        ("--table difference", args.table == "difference"),
    ];
    if let Some((option, _)) = needed.iter().find(|(_, is_given)| *is_given && args.diff.is_none()) {
        let problem = format!("{option} needs a base, but none was given");
        return Err(Failure::input("no_base", problem, "add --diff BASE"));
    }
    Ok(())
}

/// What the report shows, and what it is compared with.
fn request(
    args: &Coverage,
    gathered: &Gathered<ProgramCoverage>,
    messages: &Messages,
) -> Result<CoverageRequest, Failure> {
    let base = match &args.diff {
        None => None,
        Some(file) => {
            let images = args.base_images.clone();
            let request = CaptureArgs { images, ..args.places.follow.capture.clone() }.request();
            let programs = match request.images.is_empty() {
                true => Vec::new(),
                false => FollowedProgram::of_images(&request, &[], messages)?,
            };
            Some(CoverageBase::read(file, read_base, programs)?)
        }
    };
    let base_sources = match &args.base_src {
        None => None,
        Some(place) if place.is_dir() => Some(BaseSources::Directory(place.clone())),
        Some(file) => Some(BaseSources::Diff(file.clone(), read_diff(file, args)?)),
    };
    Ok(CoverageRequest {
        include: args.include.clone(),
        exclude: args.exclude.clone(),
        include_function: args.include_function.clone(),
        exclude_function: args.exclude_function.clone(),
        path_maps: args.path_maps.clone(),
        base,
        base_sources,
        needs_sources: false,
        dated: gathered.dated().map(Path::to_owned).collect(),
    })
}

/// Writes the reports; returns the limits that do not hold.
fn report(
    args: &Coverage,
    reports: &[(&'static Format<WriteCoverage>, Option<&Path>)],
    gathered: &Gathered<ProgramCoverage>,
    messages: &Messages,
) -> Result<Vec<Unmet>, Failure> {
    let needs_sources =
        !args.places.follow.source_dirs.is_empty() || reports.iter().any(|(format, _)| format.name == "html");
    let request = CoverageRequest { needs_sources, ..request(args, gathered, messages)? };
    let reported = request.report(&gathered.answered, &mut |notice| {
        messages.say(notice.severity(), notice.name(), None, &of_coverage_notice(notice));
    })?;
    if matches!(args.table, "runs" | "lines_by_run") && reported.report.runs.is_empty() {
        return Err(Failure::input(
            "no_runs",
            format!("--table {} needs runs, but they were not kept apart", args.table),
            "add --by-run",
        ));
    }
    for (format, file) in reports {
        let answer = CoverageAnswer {
            report: &reported.report,
            inputs: &reported.inputs,
            difference: reported.difference.as_ref(),
            source: &|file| reported.source(file),
            look: look_for(*file),
            table: args.table,
            time: time(),
        };
        write_to(*file, |out| (format.make)(out, &answer))?;
    }
    Ok(reported.unmet(&args.fail_under, args.fail_on.contains(&FailOn::Regression)))
}

/// Whether a diff is read from standard input.
fn is_standard_input(file: &Path) -> bool {
    file.as_os_str() == "-"
}

fn read_diff(file: &Path, args: &Coverage) -> Result<SourceDiff, Failure> {
    let mut text = Vec::new();
    if is_standard_input(file) {
        if is_standard_input(&args.places.follow.capture.capture) {
            return Err(Failure::input(
                "standard_input_twice",
                "the capture and --base-src cannot both be read from standard input",
                "write the diff to a file",
            ));
        }
        let read = std::io::stdin().lock().take(LONGEST_DIFF).read_to_end(&mut text);
        read.map_err(|error| no_diff(file, error))?;
    } else {
        let reader = tracewalk_input::reader(file, LONGEST_DIFF)
            .map_err(|problem| PlacesErrorKind::Unreadable(problem).at(file))?;
        let mut reader = reader;
        reader.read_to_end(&mut text).map_err(|error| no_diff(file, error))?;
    }
    read_source_diff(&text).map_err(|error| no_diff(file, error))
}

fn no_diff(file: &Path, problem: impl std::fmt::Display) -> Failure {
    Failure::input(
        "not_a_diff",
        format!("{}: {problem}", Plain(file.display())),
        "give --base-src the output of `git diff OLD NEW`",
    )
}

/// The date of an output, in seconds since 1970. `SOURCE_DATE_EPOCH` makes outputs reproducible (reproducible-builds.org).
fn time() -> u64 {
    let stated = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|seconds| seconds.parse().ok());
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    stated.unwrap_or_else(now)
}
