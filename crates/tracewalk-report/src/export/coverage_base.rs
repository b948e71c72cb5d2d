//! A coverage document as the base of a comparison.

use serde::Deserialize;
use tracewalk_analysis::coverage::{TracedFile, TracedFunction, TracedLine, Tracefile};

use super::read_lcov;

/// Reads the base of a comparison: an LCOV tracefile, or the output of `coverage --format json`.
///
/// # Errors
///
/// What is wrong with the text.
pub fn read_base(text: &str) -> Result<Tracefile, String> {
    if text.trim_start().starts_with('{') {
        let found = read_coverage_json(text);
        return found.ok_or_else(|| "the JSON is not a coverage document of version 1".to_owned());
    }
    read_lcov(text).map_err(|error| error.to_string())
}

/// Reads the output of `coverage --format json` as a tracefile. `None` for everything else, including a document of another
/// version.
#[must_use]
pub fn read_coverage_json(text: &str) -> Option<Tracefile> {
    let document = serde_json::from_str::<Document>(text).ok()?;
    let is_known = document.format == "tracewalk-coverage" && document.version == 1;
    is_known.then(|| document.tracefile()).filter(|found| !found.files.is_empty())
}

#[derive(Deserialize)]
struct Document {
    format: String,
    version: u32,
    files: Vec<File>,
    functions: Vec<Function>,
}

#[derive(Deserialize)]
struct File {
    name: String,
    functions: Vec<usize>,
    lines: Vec<Line>,
}

#[derive(Deserialize)]
struct Line {
    line: u32,
    count: u64,
    state: String,
    #[serde(default)]
    branches: Vec<Branch>,
}

#[derive(Deserialize)]
struct Branch {
    taken: Option<u64>,
    not_taken: Option<u64>,
}

#[derive(Deserialize)]
struct Function {
    symbol: String,
    line: Option<u32>,
    entered: u64,
    totals: Totals,
}

#[derive(Deserialize)]
struct Totals {
    functions: Tally,
}

#[derive(Deserialize)]
struct Tally {
    covered: u64,
}

impl Document {
    fn tracefile(&self) -> Tracefile {
        let mut tracefile = Tracefile::default();
        for file in &self.files {
            let traced: &mut TracedFile = tracefile.files.entry(file.name.clone()).or_default();
            for line in file.lines.iter().filter(|line| line.state != "unrecorded") {
                let known: &mut TracedLine = traced.lines.entry(line.line).or_default();
                known.count = known.count.saturating_add(line.count);
                for (branch, block) in line.branches.iter().zip(0..) {
                    for (outcome, number) in [branch.taken, branch.not_taken].into_iter().zip(0..) {
                        if outcome.is_some() {
                            traced.branches.insert((line.line, block, number), outcome);
                        }
                    }
                }
            }
            let functions = file.functions.iter().filter_map(|index| self.functions.get(*index));
            for (function, line) in functions.filter_map(|function| Some((function, function.line?))) {
                let count = function.entered.max(u64::from(function.totals.functions.covered > 0));
                let name = function.symbol.replace(',', ";");
                let known = traced.functions.entry(name).or_insert(TracedFunction { line, count: 0 });
                known.count = known.count.saturating_add(count);
            }
        }
        tracefile
    }
}
