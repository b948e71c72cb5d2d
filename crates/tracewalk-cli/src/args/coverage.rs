//! The options of `coverage`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use tracewalk_analysis::coverage::Limit;
use tracewalk_input::image::ImageRequest;
use tracewalk_report::formats::{self, COVERAGE_TABLES, Format, WriteCoverage};

use tracewalk_session::{PathMap, Pattern};

use super::built_in;
use super::places::PlacesArgs;
use super::work::WorkArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  tracewalk coverage capture.toml
      a table with a row for each source file
  tracewalk coverage run1.bin run2.bin --image fw.elf -o coverage.html
      two captures of the same program together, as one HTML page
  tracewalk coverage capture.toml -o coverage.info --fail-under lines=80,branches=60
      for CI: the file that other tools read, and status 1 if less was covered
  tracewalk coverage capture.toml -o coverage.html -o coverage.info -o coverage.xml
      several reports of one run
  tracewalk coverage capture.toml --save run1.twcov
  tracewalk coverage run1.twcov run2.twcov --image fw.elf --diff main.info
      runs on several boards, added up later, and what they no longer cover
  tracewalk coverage runs/ --match '*.bin' --image fw.elf --resume runs.state
      bare trace files below a directory; run again, it adds new captures
  git diff main HEAD | tracewalk coverage capture.toml --diff main.info --base-src - --fail-on regression
      for CI: unchanged lines that main covered are still covered

Exit status:
  0  everything was decoded
  1  --fail-under or --fail-on did not hold
  2  something could not be read, or the trace had malformed parts or gaps;
     the part that could be decoded is reported";

#[derive(Args, Debug)]
pub(crate) struct Coverage {
    #[command(flatten)]
    pub(crate) places: PlacesArgs,

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
    /// `lines`, `branches`, `functions`, `instructions`, or, with --base-src, `changed`: the
    /// lines with code that changed since the base.
    #[arg(long, value_name = "LIMITS", value_delimiter = ',', help_heading = "Checks")]
    pub(crate) fail_under: Vec<Limit>,

    /// Exit with status 1 on a loss of trace, on a regression against a base, or on both: `--fail-on loss,regression`.
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_enum, help_heading = "Checks")]
    pub(crate) fail_on: Vec<FailOn>,

    /// Report the coverage that was lost against a base, and the code that is new. The base is an LCOV tracefile, a JSON document
    /// of --format json, or, for the same program, a file saved by --save.
    #[arg(long, value_name = "BASE", value_hint = ValueHint::FilePath, help_heading = "Checks")]
    pub(crate) diff: Option<PathBuf>,

    /// The sources of the base: their directory, or the changes since, as printed by `git diff OLD NEW`; `-` for standard input.
    /// Unchanged lines are then matched wherever they have moved.
    #[arg(long, value_name = "DIFF|DIR", requires = "diff", value_hint = ValueHint::AnyPath, help_heading = "Checks")]
    pub(crate) base_src: Option<PathBuf>,

    /// The program of the base, if the base was saved by --save and is of another revision; can be given several times.
    #[arg(long = "base-image", value_name = "[ADDRESS:]FILE", requires = "diff", value_hint = ValueHint::FilePath, help_heading = "Checks")]
    pub(crate) base_images: Vec<ImageRequest>,

    /// Replace OLD by NEW at the beginning of source paths in the debugging information, in reports and when looking for the
    /// files; can be given several times.
    #[arg(long = "path-map", value_name = "OLD=NEW", value_parser = path_map, help_heading = "Program")]
    pub(crate) path_maps: Vec<PathMap>,

    /// The output format, if the names of outputs do not state it; by default `text`, or nothing with --save.
    #[arg(long, value_parser = built_in::listed(formats::COVERAGE), help_heading = "Output")]
    pub(crate) format: Option<&'static Format<WriteCoverage>>,

    /// Keep the runs apart: report which runs covered each line, in JSON, CSV, the page and the file of --save. A run is a
    /// capture, or a saved file without runs.
    #[arg(long, help_heading = "Output")]
    pub(crate) by_run: bool,

    /// The table that --format csv and parquet write; `difference` needs --diff, `runs` and `lines_by_run` need --by-run.
    #[arg(long, value_name = "TABLE", value_parser = built_in::table(&COVERAGE_TABLES), default_value = COVERAGE_TABLES[0], help_heading = "Output")]
    pub(crate) table: &'static str,

    /// The output file, whose extension states the format: `.html`, `.info` (LCOV), `.xml` (Cobertura), `.json`, `.csv` or
    /// `.parquet`. Can be given several times; standard output if omitted.
    #[arg(id = "output", short, long = "output", value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) outputs: Vec<PathBuf>,

    /// Save the counts, to merge and report them later. All code is saved, regardless of --include and --exclude.
    #[arg(long, value_name = "FILE.twcov", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) save: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

impl Coverage {
    /// The reports: the format and the file of each; `None` is standard output.
    pub(crate) fn reports(&self) -> Vec<(&'static Format<WriteCoverage>, Option<&Path>)> {
        let stated = self.format.or_else(|| formats::COVERAGE.first());
        if self.outputs.is_empty() {
            let is_printed = self.format.is_some() || self.save.is_none();
            return stated.filter(|_| is_printed).map(|format| (format, None)).into_iter().collect();
        }
        let report = |file| {
            let stated = stated.filter(|_| self.format.is_some());
            let format = stated.or_else(|| formats::of_file(formats::COVERAGE, file));
            Some((format.or_else(|| formats::COVERAGE.first())?, Some(file)))
        };
        self.outputs.iter().map(PathBuf::as_path).filter_map(report).collect()
    }
}

/// What makes `coverage` fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// Trace was lost: a FIFO overflow, malformed or missing trace, a contradiction, code in no image, execution in doubt, or a
    /// trace buffer's file that ends inside a frame. The error names each loss. Works with saved files as well.
    Loss,
    /// Lines of the base of --diff, or outcomes of their conditions, are no longer covered.
    Regression,
}

fn path_map(text: &str) -> Result<PathMap, String> {
    match text.split_once('=') {
        Some((old, new)) if !old.is_empty() => Ok(PathMap { old: old.to_owned(), new: new.to_owned() }),
        _ => Err("expected OLD=NEW, for example /build/project=/home/me/project".to_owned()),
    }
}
