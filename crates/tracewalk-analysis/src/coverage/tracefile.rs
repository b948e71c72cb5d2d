//! Line coverage in the shape of LCOV's tracefiles: what a report says of files, lines and functions alone.
//!
//! It is what other tools exchange, and what one build's coverage is compared with another's by. The format is that of
//! geninfo(1); records of it that are not known here are passed over.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use md5::{Digest, Md5};
use tracewalk::plain::plain;

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
    /// Its functions, by name.
    pub functions: BTreeMap<String, TracedFunction>,
    /// Its lines, by number.
    pub lines: BTreeMap<u32, TracedLine>,
    /// How often each branch was taken, by line, block and branch; `None` where execution never came there.
    pub branches: BTreeMap<(u32, u32, u32), Option<u64>>,
}

/// A function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TracedFunction {
    /// The line at which it begins.
    pub line: u32,
    /// How often it was entered; at least once where any of it ran.
    pub count: u64,
}

/// A line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TracedLine {
    /// How often it ran.
    pub count: u64,
    /// The MD5 hash of its text, in Base64; `None` where the text was not at hand.
    pub checksum: Option<String>,
}

/// Why a text is no tracefile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracefileError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub kind: TracefileErrorKind,
}

/// What is wrong with a tracefile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TracefileErrorKind {
    /// A record cannot be read.
    Record {
        /// The record.
        found: String,
    },
    /// A file's records are not ended by `end_of_record`: the rest of them is missing.
    NotEnded,
    /// There is no file in it.
    NoFile,
}

impl Tracefile {
    /// What a report says of lines, branches and functions. `source` finds source files, by the names that the report has for
    /// them; a file that it finds is called by its path.
    ///
    /// What cannot be judged is left out: a tracefile has no word for it.
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

    /// Reads a tracefile. Every line has to be a record, every file has to be ended, and there has to be one: what is read
    /// from half a tracefile or from something else would be compared as if nothing had been covered.
    ///
    /// # Errors
    ///
    /// The first line that is not as it should be.
    pub fn read(text: &str) -> Result<Self, TracefileError> {
        let mut read = Self::default();
        let mut current = None;
        let mut last = 1;
        for (line, number) in text.lines().zip(1..) {
            last = number;
            let line = plain(line.trim_end().into());
            let error = |kind| TracefileError { line: number, kind };
            let unknown = || error(TracefileErrorKind::Record { found: line.to_string() });
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if line == "end_of_record" {
                current.take().ok_or_else(unknown)?;
                continue;
            }
            let (record, fields) = line.split_once(':').ok_or_else(unknown)?;
            if record.is_empty() || !record.bytes().all(|byte| byte.is_ascii_uppercase()) {
                return Err(unknown());
            }
            if record == "SF" {
                if current.is_some() {
                    return Err(error(TracefileErrorKind::NotEnded));
                }
                current = Some(fields.to_owned());
                read.files.entry(fields.to_owned()).or_default();
            } else if let Some(file) = current.as_ref().and_then(|name| read.files.get_mut(name)) {
                file.record(record, fields).ok_or_else(unknown)?;
            } else if record != "TN" {
                return Err(unknown());
            }
        }
        let kind = match (current, read.files.is_empty()) {
            (Some(_), _) => TracefileErrorKind::NotEnded,
            (None, true) => TracefileErrorKind::NoFile,
            (None, false) => return Ok(read),
        };
        Err(TracefileError { line: last, kind })
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
            // Functions of the same name are one to whoever reads this.
            let traced = self.functions.entry(name).or_insert(TracedFunction { line, count: 0 });
            traced.line = traced.line.min(line);
            traced.count = traced.count.saturating_add(entered);
        }
    }

    fn add_lines(&mut self, report: &Report, file: &File, text: Option<&[&[u8]]>) {
        for line in &file.lines {
            if line.state == LineState::Untold {
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

    /// Takes what a record says; `None` where it cannot be read.
    fn record(&mut self, record: &str, fields: &str) -> Option<()> {
        match record {
            "DA" => {
                let mut fields = fields.split(',');
                let (line, count) = (fields.next()?.parse().ok()?, count(fields.next()?)?);
                let known = self.lines.entry(line).or_default();
                known.count = known.count.saturating_add(count);
                known.checksum = fields.next().map(str::to_owned).or_else(|| known.checksum.take());
            }
            "FN" => {
                // A second number, since LCOV 2.0, is the function's last line.
                let (line, name) = fields.split_once(',')?;
                let end = name.split_once(',').filter(|(end, _)| end.parse::<u32>().is_ok());
                let name = end.map_or(name, |(_, name)| name);
                self.functions.entry(name.to_owned()).or_default().line = line.parse().ok()?;
            }
            "FNDA" => {
                let (times, name) = fields.split_once(',')?;
                let known = self.functions.entry(name.to_owned()).or_default();
                known.count = known.count.saturating_add(count(times)?);
            }
            "BRDA" => {
                let fields = fields.split(',').collect::<Vec<_>>();
                let [line, block, branch, taken] = fields.as_slice() else { return None };
                // Since LCOV 2.0 the block may be marked as one of an exception, and the branch may be an expression.
                let block = block.trim_start_matches('e').parse().ok()?;
                let Ok(branch) = branch.parse() else { return Some(()) };
                let taken = if *taken == "-" { None } else { Some(count(taken)?) };
                self.branches.insert((line.parse().ok()?, block, branch), taken);
            }
            _ => {}
        }
        Some(())
    }
}

/// A count. Negative ones occur, where counters of other tools overflowed.
fn count(text: &str) -> Option<u64> {
    let number: i128 = text.parse().ok()?;
    Some(u64::try_from(number.max(0)).unwrap_or(u64::MAX))
}

/// The name that the linker knows a function by. A tracefile's names end at the first comma, which those that people read
/// may have.
fn tracefile_name(function: &Function) -> String {
    function.symbol.replace(',', ";")
}

/// The lines of a text without what ends them, as genhtml(1) reads them to compare their checksums.
fn lines_of(text: &[u8]) -> Vec<&[u8]> {
    text.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line)).collect()
}

impl fmt::Display for TracefileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        match &self.kind {
            TracefileErrorKind::Record { found } => {
                write!(f, "found {found:?}, expected a record of an LCOV tracefile")
            }
            TracefileErrorKind::NotEnded => f.write_str("the file is cut off: end_of_record is missing"),
            TracefileErrorKind::NoFile => f.write_str("found no file in the LCOV tracefile"),
        }
    }
}

impl std::error::Error for TracefileError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracefiles_of_both_generations_are_read() {
        let text = "\
TN:
SF:/src/a.c
FN:3,main
FN:9,12,helper
FNDA:1,main
FNDA:0,helper
FNF:2
DA:3,1,mnIyr0q+vKUkpCd1Q0kbjw
DA:4,-2
BRDA:4,0,0,1
BRDA:4,0,1,-
BRDA:5,e0,x > 1,1
VER:something
end_of_record
SF:b.c
DA:1,99999999999999999999999
end_of_record
";
        let read = Tracefile::read(text).unwrap();
        let file = &read.files["/src/a.c"];
        assert_eq!(file.functions["main"], TracedFunction { line: 3, count: 1 });
        assert_eq!(file.functions["helper"], TracedFunction { line: 9, count: 0 });
        let checksum = Some("mnIyr0q+vKUkpCd1Q0kbjw".to_owned());
        assert_eq!(file.lines[&3], TracedLine { count: 1, checksum });
        assert_eq!(file.lines[&4], TracedLine { count: 0, checksum: None });
        assert_eq!(file.branches.iter().collect::<Vec<_>>(), [(&(4, 0, 0), &Some(1)), (&(4, 0, 1), &None)]);
        assert_eq!(read.files["b.c"].lines[&1].count, u64::MAX);
    }

    #[test]
    fn what_is_no_tracefile_is_refused_with_its_line() {
        let error = |text| Tracefile::read(text).map(|_| ()).map_err(|error| (error.line, error.kind));
        let record = |found: &str| TracefileErrorKind::Record { found: found.to_owned() };
        assert_eq!(error("SF:a\nDA:x,1\n"), Err((2, record("DA:x,1"))));
        assert_eq!(error("DA:1,1\n"), Err((1, record("DA:1,1"))));
        assert_eq!(error(""), Err((1, TracefileErrorKind::NoFile)));
        assert_eq!(error("TN:\n"), Err((1, TracefileErrorKind::NoFile)));
        assert_eq!(error("SF:a\nDA:1,1\n"), Err((2, TracefileErrorKind::NotEnded)));
        assert_eq!(error("SF:a\nSF:b\nend_of_record\n"), Err((2, TracefileErrorKind::NotEnded)));
        assert_eq!(error("# tracewalk coverage 2\nP build 0a\n"), Err((2, record("P build 0a"))));
        assert_eq!(error("<!doctype html>\n"), Err((1, record("<!doctype html>"))));
        assert_eq!(error("end_of_record\n"), Err((1, record("end_of_record"))));
        assert_eq!(error("TN:\nSF:a\nDA:1,1\nend_of_record\n"), Ok(()));
    }
}
