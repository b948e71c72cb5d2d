//! Reports of coverage → sentences: why there is none, what is worth knowing, and which checks fail.

use tracewalk::plain::Plain;
use tracewalk_analysis::coverage::{RevisionError, RevisionErrorKind, SourceSummary, Stale, Unmet};
use tracewalk_report::{counted, losses_in_words, why_stale};
use tracewalk_session::{CoverageError, CoverageNotice, Selects};

/// The sentence of an unmet check of coverage.
#[must_use]
pub fn of_unmet(unmet: &Unmet) -> String {
    match unmet {
        Unmet::NothingMeasured => "nothing was measured; check that the image is the program that was traced, and that the capture holds \
                                   its trace"
            .to_owned(),
        Unmet::NothingFound { limit, unrecorded } => {
            let why = match unrecorded {
                true => "the trace does not record their outcomes",
                false => "the program has none, or --include and --exclude select none",
            };
            format!("found no {} to compare with {}%: {why}", limit.measure.name(), limit.percent)
        }
        Unmet::Below { limit, found } => {
            let permille = found.covered * 1000 / found.found;
            format!(
                "{}: found {}.{}% covered ({} of {}), expected at least {}%",
                limit.measure.name(),
                permille / 10,
                permille % 10,
                found.covered,
                found.found,
                limit.percent
            )
        }
        Unmet::LostLines(lines) => format!("{} of the base are no longer covered", counted(*lines, "line")),
        Unmet::LostOutcomes(lines) => {
            let lines = counted(*lines, "line");
            format!("outcomes of conditions at {lines} of the base are no longer covered")
        }
        Unmet::LostTrace(source) => lost(source),
        Unmet::CutOff => "a capture was not decoded to its end".to_owned(),
    }
}

/// The losses of a source.
fn lost(source: &SourceSummary) -> String {
    let mut parts = losses_in_words(&source.losses);
    if source.is_undecoded() {
        parts.push(format!("nothing in {} of trace could be decoded", counted(source.bytes, "byte")));
    }
    let id = if source.source == "-" { String::new() } else { format!(", {}", source.source) };
    format!("{}{id}: {}", source.capture, parts.join(", "))
}

/// What to try if there is no report of coverage.
pub(super) fn remedy(error: &CoverageError) -> &'static str {
    match error {
        CoverageError::NotABase(..) => {
            "give --diff the output of `coverage --format lcov`, `--format json` or `--save`"
        }
        CoverageError::OtherProgram(..) => {
            "give its program with --base-image, and --base-src; or compare with the output of `coverage --format lcov` for it"
        }
        CoverageError::Revision { error, by_diff } => of_revision(error, *by_diff),
        CoverageError::NothingToCompare => {
            "check that the image is the program that was traced, and that the capture holds its trace"
        }
        // A newer session may have reasons that have no remedy here yet.
        _ => "check --include and --include-function, or leave them out",
    }
}

fn of_revision(error: &RevisionError, by_diff: bool) -> &'static str {
    match &error.kind {
        RevisionErrorKind::OtherSource { .. } => {
            "make the diff from the base's revision to the traced one, whose sources --src-dir must contain"
        }
        RevisionErrorKind::Unequal { .. } | RevisionErrorKind::OtherBase { .. } if by_diff => {
            "make the diff from the base's revision, with all files and all changes of white space"
        }
        RevisionErrorKind::OtherBase { .. }
        | RevisionErrorKind::Unequal { .. }
        | RevisionErrorKind::ShortBaseSource { .. } => "give --base-src the sources of the base's revision",
        RevisionErrorKind::NoSource => "give its directory with --src-dir, or leave it out with --exclude",
        RevisionErrorKind::NoBaseSource => {
            "give --base-src all sources of the base, or leave the file out with --exclude"
        }
        RevisionErrorKind::Ambiguous { .. } | RevisionErrorKind::OtherPath { .. } => {
            "map the paths of the program's files to those of the diff with --path-map, or give their directory with --src-dir"
        }
        RevisionErrorKind::Binary => "make the diff with `git diff --text`",
        RevisionErrorKind::EmptyDiff { .. } => {
            "leave --base-src out if nothing changed, or give a base with checksums, which was made while its sources were available"
        }
        _ => "check the files of --diff and --base-src",
    }
}

/// The sentence of a notice about a report of coverage.
#[must_use]
pub fn of_coverage_notice(notice: &CoverageNotice) -> String {
    match notice {
        CoverageNotice::StaleSource { why, first, others } => {
            let more = if *others == 0 { String::new() } else { format!(" and {others} more") };
            let certain = if *why == Stale::Newer { "may not be" } else { "is not" };
            format!(
                "{first}{more}: {certain} the source that was compiled: {}; check out the traced revision",
                why_stale(*why)
            )
        }
        CoverageNotice::SourcesNotFound { missing, files, first } => format!(
            "{missing} of {files} source files were not found, the first: {first}; check --src-dir and --path-map"
        ),
        CoverageNotice::UnusedPattern(of, pattern) => {
            let option = match of {
                Selects::Files => "--include",
                Selects::NotFiles => "--exclude",
                Selects::Functions => "--include-function",
                Selects::NotFunctions => "--exclude-function",
            };
            format!("{option} {pattern}: matches nothing in the program; check the pattern")
        }
        CoverageNotice::UnusedPathMap(map) => {
            format!("--path-map {map}: no source path begins with OLD; `--format json` lists the paths")
        }
        CoverageNotice::DiffOfNothing(file) => format!(
            "{}: changes no file of the program; check that it belongs to this project",
            Plain(file.display())
        ),
        // A newer session may have notices that have no sentence here yet.
        other => other.name().replace('_', " "),
    }
}
