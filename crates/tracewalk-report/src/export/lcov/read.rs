//! LCOV tracefiles, of both generations, as other tools wrote them.

use std::fmt;

use tracewalk::plain::plain;
use tracewalk_analysis::coverage::{TracedFile, Tracefile};

/// Why a text is not a tracefile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracefileError {
    /// The line, from 1.
    pub line: usize,
    /// The problem.
    pub kind: TracefileErrorKind,
}

/// The problem with a tracefile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TracefileErrorKind {
    /// A record cannot be read.
    Record {
        /// The record.
        found: String,
    },
    /// `end_of_record` is missing after a file's records: the text is incomplete.
    NotEnded,
    /// The tracefile has no files.
    NoFile,
}

/// Reads a tracefile. Every line has to be a record, every file has to end with `end_of_record`, and there has to be a file: half
/// a tracefile would be compared as if the rest had not been covered.
///
/// # Errors
///
/// The first invalid line.
pub fn read_lcov(text: &str) -> Result<Tracefile, TracefileError> {
    let mut read = Tracefile::default();
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
            take(file, record, fields).ok_or_else(unknown)?;
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

/// Takes a record; `None` if it cannot be read.
fn take(file: &mut TracedFile, record: &str, fields: &str) -> Option<()> {
    match record {
        "DA" => {
            let mut fields = fields.split(',');
            let (line, count) = (fields.next()?.parse().ok()?, count(fields.next()?)?);
            let known = file.lines.entry(line).or_default();
            known.count = known.count.saturating_add(count);
            known.checksum = fields.next().map(str::to_owned).or_else(|| known.checksum.take());
        }
        "FN" => {
            // A second number, since LCOV 2.0, is the function's last line.
            let (line, name) = fields.split_once(',')?;
            let end = name.split_once(',').filter(|(end, _)| end.parse::<u32>().is_ok());
            let name = end.map_or(name, |(_, name)| name);
            file.functions.entry(name.to_owned()).or_default().line = line.parse().ok()?;
        }
        "FNDA" => {
            let (times, name) = fields.split_once(',')?;
            let known = file.functions.entry(name.to_owned()).or_default();
            known.count = known.count.saturating_add(count(times)?);
        }
        "BRDA" => {
            let fields = fields.split(',').collect::<Vec<_>>();
            let [line, block, branch, taken] = fields.as_slice() else { return None };
            // Since LCOV 2.0 the block may be marked as one of an exception, and the branch may be an expression.
            let block = block.trim_start_matches('e').parse().ok()?;
            let Ok(branch) = branch.parse() else { return Some(()) };
            let taken = if *taken == "-" { None } else { Some(count(taken)?) };
            file.branches.insert((line.parse().ok()?, block, branch), taken);
        }
        _ => {}
    }
    Some(())
}

/// A count. Negative ones occur if counters of other tools overflowed.
fn count(text: &str) -> Option<u64> {
    let number: i128 = text.parse().ok()?;
    Some(u64::try_from(number.max(0)).unwrap_or(u64::MAX))
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
    use tracewalk_analysis::coverage::{TracedFunction, TracedLine};

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
        let read = read_lcov(text).unwrap();
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
        let error = |text| read_lcov(text).map(|_| ()).map_err(|error| (error.line, error.kind));
        let record = |found: &str| TracefileErrorKind::Record { found: found.to_owned() };
        assert_eq!(error("SF:a\nDA:x,1\n"), Err((2, record("DA:x,1"))));
        assert_eq!(error("DA:1,1\n"), Err((1, record("DA:1,1"))));
        assert_eq!(error(""), Err((1, TracefileErrorKind::NoFile)));
        assert_eq!(error("TN:\n"), Err((1, TracefileErrorKind::NoFile)));
        assert_eq!(error("SF:a\nDA:1,1\n"), Err((2, TracefileErrorKind::NotEnded)));
        assert_eq!(error("SF:a\nSF:b\nend_of_record\n"), Err((2, TracefileErrorKind::NotEnded)));
        assert_eq!(error("# a comment\nP build 0a\n"), Err((2, record("P build 0a"))));
        assert_eq!(error("<!doctype html>\n"), Err((1, record("<!doctype html>"))));
        assert_eq!(error("end_of_record\n"), Err((1, record("end_of_record"))));
        assert_eq!(error("TN:\nSF:a\nDA:1,1\nend_of_record\n"), Ok(()));
    }
}
