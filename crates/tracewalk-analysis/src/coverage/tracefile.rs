//! Line coverage in the shape of LCOV's tracefiles: files, lines, branches and functions.
//!
//! Other tools exchange these files, and the comparison of two builds' coverage uses them. geninfo(1) defines the format; unknown
//! records are skipped.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use md5::{Digest, Md5};

use super::report::{File, Function, LineState, Report};
use crate::symbols::SourceFile;

/// The coverage of some files, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tracefile {
    /// The files.
    pub files: BTreeMap<String, TracedFile>,
}

/// The coverage of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TracedFile {
    /// The functions, by name.
    pub functions: BTreeMap<String, TracedFunction>,
    /// The lines, by number.
    pub lines: BTreeMap<u32, TracedLine>,
    /// How often each branch was taken, by line, block and branch; `None` if execution never reached it.
    pub branches: BTreeMap<(u32, u32, u32), Option<u64>>,
}

/// A function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TracedFunction {
    /// The line at which it begins.
    pub line: u32,
    /// How often it was entered; at least once if any of it ran.
    pub count: u64,
}

/// A line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TracedLine {
    /// How often it ran.
    pub count: u64,
    /// The MD5 hash of its text, in Base64; `None` if the text was not available.
    pub checksum: Option<String>,
}

impl Tracefile {
    /// The lines, branches and functions of a report. `source` finds source files by their names in the report; a file that it
    /// finds gets its path as name.
    ///
    /// Unrecorded lines and branches are left out: a tracefile cannot express them.
    pub fn of(report: &Report, mut source: impl FnMut(&str) -> Option<SourceFile>) -> Self {
        let mut files = BTreeMap::new();
        for file in &report.files {
            let found = source(&file.name);
            let (path, text) =
                found.map_or((file.name.clone(), None), |found| (found.path, Some(found.text)));
            let text = text.as_deref().map(lines_of);
            let traced: &mut TracedFile = files.entry(path).or_default();
            traced.add_functions(report, file);
            traced.add_lines(report, file, text.as_deref());
        }
        Self { files }
    }
}

impl TracedFile {
    fn add_functions(&mut self, report: &Report, file: &File) {
        let functions = file.functions.iter().filter_map(|&index| report.functions.get(index));
        for function in functions {
            let Some(line) = function.line else { continue };
            let name = tracefile_name(function);
            let ran = u64::from(function.totals.functions.covered > 0);
            let entered = function.entered.max(ran);
            // Readers of tracefiles treat functions of the same name as one.
            let traced = self.functions.entry(name).or_insert(TracedFunction { line, count: 0 });
            traced.line = traced.line.min(line);
            traced.count = traced.count.saturating_add(entered);
        }
    }

    fn add_lines(&mut self, report: &Report, file: &File, text: Option<&[&[u8]]>) {
        for line in &file.lines {
            if line.state == LineState::Unrecorded {
                continue;
            }
            let index = usize::try_from(line.number).ok().and_then(|number| number.checked_sub(1));
            let text = text.zip(index).and_then(|(text, index)| text.get(index).copied());
            let checksum = text.map(|text| STANDARD_NO_PAD.encode(Md5::digest(text)));
            // Two programs may know the same file by two names.
            let known = self.lines.entry(line.number).or_default();
            known.count = known.count.saturating_add(line.count);
            known.checksum = checksum;
            let branches = self.branches.range((line.number, 0, 0)..=(line.number, u32::MAX, u32::MAX));
            let free_block = branches.last().map_or(0, |((_, block, _), _)| block + 1);
            for ((counted, branch), block) in report.branches(line).zip(free_block..) {
                let reached = counted.instruction.passes.total() > 0;
                for (outcome, number) in branch.outcomes().into_iter().zip(0..) {
                    if let Some(count) = outcome.seen() {
                        self.branches.insert((line.number, block, number), reached.then_some(count));
                    }
                }
            }
        }
    }
}

/// The linker's name of a function. A tracefile's names end at the first comma, and demangled names may have commas.
fn tracefile_name(function: &Function) -> String {
    function.symbol.replace(',', ";")
}

/// The lines of a text without their endings, as genhtml(1) reads them to compare checksums.
pub(super) fn lines_of(text: &[u8]) -> Vec<&[u8]> {
    text.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line)).collect()
}
