//! The options of `coverage` and `merge`.

use std::fmt;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use tracewalk_analysis::coverage::Metric;
use tracewalk_input::image::ImageRequest;
use tracewalk_report::formats::{self, COVERAGE_TABLES, Format, WriteCoverage};

use super::built_in::{self, Pattern};
use super::profile::FollowArgs;
use super::work::WorkArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  tracewalk coverage capture.toml
      a table with a row for each source file
  tracewalk coverage run1.bin run2.bin --image fw.elf --format html -o coverage.html
      two captures of the same program together, as one HTML page
  tracewalk coverage capture.toml --format lcov -o coverage.info --fail-under lines=80,branches=60
      for CI: the file that other tools read, and status 1 if less was covered
  tracewalk coverage capture.toml --html coverage.html --lcov coverage.info --cobertura coverage.xml
      several reports of one run
  tracewalk coverage capture.toml --save run1.twcov
  tracewalk merge run1.twcov run2.twcov -o all.twcov
  tracewalk coverage all.twcov --image fw.elf --diff main.info
      runs on several boards, merged later, and what they no longer cover
  git diff main HEAD | tracewalk coverage capture.toml --diff main.info --base-diff - --fail-on-regression
      for CI: unchanged lines that main covered are still covered

Exit status:
  0  everything was decoded
  1  --fail-under, --fail-on-loss or --fail-on-regression did not hold
  2  something could not be read, or the trace had malformed parts or gaps;
     the part that could be decoded is reported";

#[derive(Args, Debug)]
pub(crate) struct Coverage {
    #[command(flatten)]
    pub(crate) follow: FollowArgs,

    /// Further captures of the same program. Files saved by --save can be given instead of captures.
    #[arg(value_name = "CAPTURE", value_hint = ValueHint::AnyPath)]
    pub(crate) more: Vec<PathBuf>,

    /// Include only source files whose paths match, such as `src/**`; can be given several times. A pattern may match
    /// at any folder, unless it starts with /. The paths are those in reports, after --path-map.
    #[arg(long, value_name = "GLOB", value_parser = built_in::path, help_heading = "Selection")]
    pub(crate) include: Vec<Pattern>,

    /// Exclude source files whose paths match; can be given several times.
    #[arg(long, value_name = "GLOB", value_parser = built_in::path, help_heading = "Selection")]
    pub(crate) exclude: Vec<Pattern>,

    /// Include only functions whose names match, inlined ones as well; can be given several times.
    #[arg(long, value_name = "GLOB", value_parser = built_in::name, help_heading = "Selection")]
    pub(crate) include_function: Vec<Pattern>,

    /// Exclude functions whose names match, inlined ones as well; can be given several times.
    #[arg(long, value_name = "GLOB", value_parser = built_in::name, help_heading = "Selection")]
    pub(crate) exclude_function: Vec<Pattern>,

    /// Exit with status 1 if less is covered, in percent: METRIC=PERCENT, for example lines=80,branches=60. METRIC is
    /// `lines`, `branches`, `functions`, `instructions`, or, with --base-diff or --base-src-dir, `changed`: the
    /// lines with code that changed since the base.
    #[arg(long, value_name = "LIMITS", value_delimiter = ',', value_parser = limit, help_heading = "Checks")]
    pub(crate) fail_under: Vec<Limit>,

    /// Exit with status 1 if trace was lost: a FIFO overflow, malformed or missing trace, a contradiction, code in no image,
    /// execution in doubt, or a trace buffer's file that ends inside a frame. The error names each loss. Works with saved files
    /// as well.
    #[arg(long, help_heading = "Checks")]
    pub(crate) fail_on_loss: bool,

    /// Report the coverage that was lost against a base, and the code that is new. The base is an LCOV tracefile, a JSON document
    /// of --format json, or, for the same program, a file saved by --save.
    #[arg(long, value_name = "BASE", value_hint = ValueHint::FilePath, help_heading = "Checks")]
    pub(crate) diff: Option<PathBuf>,

    /// The changes of the sources since the base, as printed by `git diff OLD NEW`; `-` for standard input. Unchanged lines are
    /// then matched wherever they have moved.
    #[arg(long = "base-diff", value_name = "DIFF", requires = "diff", conflicts_with = "base_source_dir", value_hint = ValueHint::FilePath, help_heading = "Checks")]
    pub(crate) source_diff: Option<PathBuf>,

    /// The sources of the base, from which tracewalk works out the changes instead of from --base-diff.
    #[arg(long = "base-src-dir", value_name = "DIR", requires = "diff", value_hint = ValueHint::DirPath, help_heading = "Checks")]
    pub(crate) base_source_dir: Option<PathBuf>,

    /// The program of the base, if the base was saved by --save and is of another revision; can be given several times.
    #[arg(long = "base-image", value_name = "[ADDRESS:]FILE", requires = "diff", value_hint = ValueHint::FilePath, help_heading = "Checks")]
    pub(crate) base_images: Vec<ImageRequest>,

    /// Exit with status 1 if lines of the base, or outcomes of their conditions, are no longer covered.
    #[arg(long = "fail-on-regression", requires = "diff", help_heading = "Checks")]
    pub(crate) no_loss: bool,

    /// Replace OLD by NEW at the beginning of source paths in the debugging information, in reports and when looking for the
    /// files; can be given several times.
    #[arg(long = "path-map", value_name = "OLD=NEW", value_parser = path_map, help_heading = "Program")]
    pub(crate) path_maps: Vec<PathMap>,

    /// The output format; by default `text`, or nothing with --save or one of the reports below.
    #[arg(long, value_parser = built_in::listed(formats::COVERAGE), help_heading = "Output")]
    pub(crate) format: Option<&'static Format<WriteCoverage>>,

    /// Write the page of --format html to this file as well.
    #[arg(long, value_name = "FILE", value_parser = built_in::file_of("html"), value_hint = ValueHint::FilePath, help_heading = "Output")]
    html: Option<PathBuf>,

    /// Write the tracefile of --format lcov to this file as well.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    lcov: Option<PathBuf>,

    /// Write the document of --format cobertura to this file as well.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    cobertura: Option<PathBuf>,

    /// Write the document of --format json to this file as well.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    json: Option<PathBuf>,

    /// Keep the runs apart: report which runs covered each line, in JSON, CSV, the page and the file of --save. A run is a
    /// capture, or a saved file without runs.
    #[arg(long, help_heading = "Output")]
    pub(crate) by_run: bool,

    /// The table that --format csv and parquet write; `difference` needs --diff, `runs` and `lines_by_run` need --by-run.
    #[arg(long, value_name = "TABLE", value_parser = built_in::table(&COVERAGE_TABLES), default_value = COVERAGE_TABLES[0], help_heading = "Output")]
    pub(crate) table: &'static str,

    /// The output file; standard output if omitted.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    /// Save the counts, to merge and report them later. All code is saved, whatever --include and its relatives select.
    #[arg(long, value_name = "FILE.twcov", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) save: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

impl Coverage {
    /// The path of a source file in reports, if `--path-map` changes it: by the first map that matches.
    pub(crate) fn shown_path(&self, path: &str) -> Option<String> {
        self.renamed(path).map(|(_, path)| path)
    }

    /// As [`Coverage::shown_path`], with the number of the map.
    pub(crate) fn renamed(&self, path: &str) -> Option<(usize, String)> {
        self.path_maps.iter().enumerate().find_map(|(number, map)| Some((number, map.apply(path)?)))
    }

    /// The reports that have an option of their own: the option, the format, and the file.
    pub(crate) fn reports(
        &self,
    ) -> impl Iterator<Item = (&'static str, &'static Format<WriteCoverage>, &Path)> {
        let reports = [
            ("--html", "html", self.html.as_deref()),
            ("--lcov", "lcov", self.lcov.as_deref()),
            ("--cobertura", "cobertura", self.cobertura.as_deref()),
            ("--json", "json", self.json.as_deref()),
        ];
        reports.into_iter().filter_map(|(option, format, file)| {
            Some((option, formats::find(formats::COVERAGE, format)?, file?))
        })
    }
}

/// The beginning of paths in the debugging information, and its replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathMap {
    old: String,
    new: String,
}

impl PathMap {
    /// The path, if it begins with these folders.
    pub(crate) fn apply(&self, path: &str) -> Option<String> {
        let rest = path.strip_prefix(&self.old)?;
        let is_whole = rest.is_empty() || self.old.ends_with(['/', '\\']) || rest.starts_with(['/', '\\']);
        is_whole.then(|| format!("{}{rest}", self.new))
    }
}

impl fmt::Display for PathMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.old, self.new)
    }
}

fn path_map(text: &str) -> Result<PathMap, String> {
    match text.split_once('=') {
        Some((old, new)) if !old.is_empty() => Ok(PathMap { old: old.to_owned(), new: new.to_owned() }),
        _ => Err("expected OLD=NEW, for example /build/project=/home/me/project".to_owned()),
    }
}

#[derive(Args, Debug)]
pub(crate) struct Merge {
    /// Files saved by --save of `coverage`, `profile`, `interrupts` or `counts`: all of one kind, and of the same
    /// program.
    #[arg(required = true, value_name = "PART", value_hint = ValueHint::FilePath)]
    pub(crate) parts: Vec<PathBuf>,

    /// For coverage: keep the runs apart. A file without runs is one run.
    #[arg(long)]
    pub(crate) by_run: bool,

    /// The merged file; standard output if omitted.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
}

/// The least coverage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limit {
    pub(crate) measure: Measure,
    pub(crate) percent: f64,
}

/// The measure that a limit applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Of the whole report.
    Of(Metric),
    /// Of the lines that changed since the base.
    Changed,
}

fn limit(text: &str) -> Result<Limit, String> {
    let expected = || "expected METRIC=PERCENT, for example lines=80".to_owned();
    let (name, percent) = text.split_once('=').ok_or_else(expected)?;
    let metric = Metric::ALL.into_iter().find(|metric| metric.name() == name).map(Measure::Of);
    let measure = metric.or((name == "changed").then_some(Measure::Changed));
    let measure =
        measure.ok_or("expected lines, branches, functions, instructions or changed before the =")?;
    let percent = percent.trim_end_matches('%').parse().map_err(|_| expected())?;
    if !(0.0..=100.0).contains(&percent) {
        return Err("expected a number from 0 to 100 after the =".to_owned());
    }
    Ok(Limit { measure, percent })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_mapped_by_whole_folders() {
        let apply = |map: &str, path: &str| path_map(map).unwrap().apply(path);
        assert_eq!(apply("/build/a=/home/me", "/build/a/src/x.c").as_deref(), Some("/home/me/src/x.c"));
        assert_eq!(apply("/build/a/=", "/build/a/src/x.c").as_deref(), Some("src/x.c"));
        assert_eq!(apply("C:\\a=b", "C:\\a\\x.c").as_deref(), Some("b\\x.c"));
        assert_eq!(apply("/build/a=/home/me", "/build/ab/x.c"), None);
        assert!(path_map("=/new").is_err() && path_map("/old").is_err());
    }

    #[test]
    fn limits_have_a_metric_and_a_percentage() {
        let of = |metric, percent| Ok(Limit { measure: Measure::Of(metric), percent });
        assert_eq!(limit("lines=80"), of(Metric::Lines, 80.0));
        assert_eq!(limit("branches=62.5%"), of(Metric::Branches, 62.5));
        assert_eq!(limit("changed=75"), Ok(Limit { measure: Measure::Changed, percent: 75.0 }));
        for wrong in ["", "80", "lines", "lines=", "lines=x", "line=1", "lines=101", "lines=-1", "lines=NaN"]
        {
            assert!(limit(wrong).is_err(), "{wrong}");
        }
    }
}
