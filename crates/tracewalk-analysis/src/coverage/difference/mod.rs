//! The change of coverage from one build to another.
//!
//! ```text
//! lines are matched by   a diff of the sources, or the sources of both revisions   difference::revisions
//!                        their checksums, or else their numbers                    here
//! ```

mod line_map;
mod partners;
mod revisions;
mod source_diff;
mod table;

use std::collections::BTreeMap;
use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::tally::Tally;
use super::tracefile::{TracedFile, Tracefile};
use line_map::LineMap;
use partners::partners;

pub use revisions::{RevisionError, RevisionErrorKind, Revisions, TextOf};
pub use source_diff::{DiffPath, FileDiff, Hunk, HunkLine, SourceDiff};

/// How coverage changed from a base to now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// The files with changed coverage, by their names now.
    pub files: BTreeMap<String, FileDifference>,
    /// Files of the base that are no longer there.
    pub gone: Vec<String>,
    /// The lines with code that changed or were added, and how many of them ran. `None` if it is unknown which lines changed.
    pub changed: Option<Tally>,
}

/// The change of a file's coverage. Line numbers are those of now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileDifference {
    /// Lines that ran in the base and do not run now.
    pub lost: Vec<u32>,
    /// Lines that run in both, with a condition that had an outcome in the base that it does not have now. Reported only for
    /// lines with the same number of outcomes in both: otherwise the compiler made other branches.
    pub lost_branches: Vec<u32>,
    /// Lines that did not run in the base and run now.
    pub gained: Vec<u32>,
    /// Lines that are not in the base, and do not run. Between revisions: the lines that changed or were added.
    pub new_uncovered: Vec<u32>,
    /// The number of lines that are not in the base, and run. Between revisions: of the lines that changed or were added.
    pub new_covered: u64,
    /// Between revisions: lines that did not change, have code only now, and do not run.
    pub new_code_uncovered: Vec<u32>,
    /// Between revisions: how many lines did not change, have code only now, and run.
    pub new_code_covered: u64,
    /// Between revisions: unchanged lines that ran in the base and cannot be judged now, because they have no code any more, or
    /// because it is not observable.
    pub unjudged: Vec<u32>,
    /// Between revisions: the number of lines with code in the base that were changed or deleted.
    pub deleted: u64,
    /// Between revisions: the file's path in the base, if it was renamed.
    pub renamed_from: Option<String>,
    /// Functions that ran in the base, are still there and do not run now.
    pub lost_functions: Vec<String>,
}

impl Difference {
    /// The changes from `base` to `now`.
    ///
    /// If both have checksums of all lines, lines are matched by their text, however far they moved. Otherwise they are matched
    /// by number.
    #[must_use]
    pub fn between(base: &Tracefile, now: &Tracefile) -> Self {
        let partners = partners(base, now);
        let mut difference = Self::default();
        for (name, file) in &now.files {
            let before = partners.get(name.as_str()).and_then(|base_name| base.files.get(*base_name));
            let empty = TracedFile::default();
            let before = before.unwrap_or(&empty);
            let change = FileDifference::between(before, file, matched(before, file));
            if change != FileDifference::default() {
                difference.files.insert(name.clone(), change);
            }
        }
        let found = partners.values().copied().collect::<std::collections::BTreeSet<_>>();
        difference.gone = base.files.keys().filter(|name| !found.contains(name.as_str())).cloned().collect();
        difference
    }

    /// Renames files of now: `names` has their names by those that `now` had. Names in the base stay.
    pub fn rename_files(&mut self, names: &BTreeMap<String, String>) {
        let files = std::mem::take(&mut self.files).into_iter();
        self.files =
            files.map(|(name, change)| (names.get(&name).cloned().unwrap_or(name), change)).collect();
    }

    /// The changes from `base` to `now`, which are of different revisions: lines are matched by the sources. `text` returns the
    /// current source of a name in `now`.
    ///
    /// # Errors
    ///
    /// If `revisions` does not fit the sources or the base, or leaves open which file is which.
    pub fn between_revisions(
        base: &Tracefile,
        now: &Tracefile,
        revisions: Revisions<'_>,
        text: TextOf<'_>,
    ) -> Result<Self, RevisionError> {
        let pairs = revisions::pairs(base, now, revisions, text)?;
        let (mut difference, mut changed) = (Self::default(), Tally::default());
        let empty = TracedFile::default();
        for (name, file) in &now.files {
            let Some(pair) = pairs.get(name.as_str()) else { continue };
            let before = pair.base.and_then(|name| base.files.get(name)).unwrap_or(&empty);
            let mut change = FileDifference::between_revisions(before, file, &pair.lines);
            change.renamed_from.clone_from(&pair.renamed_from);
            changed.covered += change.new_covered;
            changed.found += change.new_lines();
            if change != FileDifference::default() {
                difference.files.insert(name.clone(), change);
            }
        }
        let found = pairs.values().filter_map(|pair| pair.base).collect::<std::collections::BTreeSet<_>>();
        difference.gone = base.files.keys().filter(|name| !found.contains(name.as_str())).cloned().collect();
        Ok(Self { changed: Some(changed), ..difference })
    }

    /// How many lines were lost.
    #[must_use]
    pub fn lost_lines(&self) -> usize {
        self.files.values().map(|file| file.lost.len()).sum()
    }

    /// The number of lines that lost an outcome of a condition, but still run.
    #[must_use]
    pub fn lost_branches(&self) -> usize {
        self.files.values().map(|file| file.lost_branches.len()).sum()
    }
}

impl FileDifference {
    /// How many lines are not in the base.
    #[must_use]
    pub const fn new_lines(&self) -> u64 {
        self.new_covered.saturating_add(self.new_uncovered.len() as u64)
    }

    fn between_revisions(base: &TracedFile, now: &TracedFile, lines: &LineMap) -> Self {
        let pairs = now.lines.keys().map(|&line| (lines.line_in_old(line), line)).collect::<Vec<_>>();
        let (old, added): (Vec<_>, Vec<_>) = pairs.into_iter().partition(|(before, _)| before.is_some());
        let (known, new_code): (Vec<_>, Vec<_>) = old
            .into_iter()
            .partition(|(before, _)| before.is_some_and(|before| base.lines.contains_key(&before)));
        let mut change = Self::between(base, now, known.into_iter().chain(added).collect());
        for (_, line) in new_code {
            match now.lines.get(&line).map_or(0, |line| line.count) {
                0 => change.new_code_uncovered.push(line),
                _ => change.new_code_covered += 1,
            }
        }
        for (&before, line) in &base.lines {
            match lines.line_in_new(before) {
                None => change.deleted += 1,
                Some(after) if line.count > 0 && !now.lines.contains_key(&after) => {
                    change.unjudged.push(after);
                }
                Some(_) => {}
            }
        }
        change
    }

    fn between(base: &TracedFile, now: &TracedFile, matched: Vec<(Option<u32>, u32)>) -> Self {
        let mut change = Self::default();
        for (before, line) in matched {
            let count = |file: &TracedFile, line| file.lines.get(&line).map(|line| line.count);
            match (before.and_then(|before| count(base, before)), count(now, line)) {
                (Some(1..), Some(0)) => change.lost.push(line),
                (Some(1..), Some(1..))
                    if before.is_some_and(|before| loses_outcome(base, before, now, line)) =>
                {
                    change.lost_branches.push(line);
                }
                (Some(0), Some(1..)) => change.gained.push(line),
                (None, Some(0)) => change.new_uncovered.push(line),
                (None, Some(1..)) => change.new_covered += 1,
                _ => {}
            }
        }
        let lost = base.functions.iter().filter(|(name, before)| {
            before.count > 0 && now.functions.get(*name).is_some_and(|function| function.count == 0)
        });
        change.lost_functions = lost.map(|(name, _)| name.clone()).collect();
        change
    }
}

/// Whether a condition had an outcome in a line of the base that it does not have in the same line now.
fn loses_outcome(base: &TracedFile, before: u32, now: &TracedFile, line: u32) -> bool {
    let outcomes = |file: &TracedFile, line| {
        let outcomes = file.branches.range((line, 0, 0)..=(line, u32::MAX, u32::MAX));
        outcomes.map(|(_, taken)| taken.unwrap_or(0)).collect::<Vec<_>>()
    };
    let (before, after) = (outcomes(base, before), outcomes(now, line));
    before.len() == after.len() && before.iter().zip(&after).any(|(before, after)| *before > 0 && *after == 0)
}

/// The lines of now, each with its line in the base, if it has one.
fn matched(base: &TracedFile, now: &TracedFile) -> Vec<(Option<u32>, u32)> {
    let (Some(before), Some(after)) = (texts(base), texts(now)) else {
        return now
            .lines
            .keys()
            .map(|&line| (base.lines.contains_key(&line).then_some(line), line))
            .collect();
    };
    let numbers = |file: &TracedFile| file.lines.keys().copied().collect::<Vec<_>>();
    let (base_lines, now_lines) = (numbers(base), numbers(now));
    let mut matched = now_lines.iter().map(|&line| (None, line)).collect::<Vec<_>>();
    for step in capture_diff_slices(Algorithm::Patience, &before, &after) {
        let DiffOp::Equal { old_index, new_index, len } = step else { continue };
        let old = base_lines.get(old_index..old_index + len).unwrap_or_default();
        let new: Range<usize> = new_index..new_index + len;
        for (line, old) in matched.get_mut(new).unwrap_or_default().iter_mut().zip(old) {
            line.0 = Some(*old);
        }
    }
    matched
}

/// The checksums of all lines; `None` if one is missing.
fn texts(file: &TracedFile) -> Option<Vec<&str>> {
    file.lines.values().map(|line| line.checksum.as_deref()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tracefile::{TracedFunction, TracedLine};
    use super::*;

    /// Reads records of lines (`DA:LINE,COUNT,CHECKSUM`) and branches (`BRDA:LINE,BLOCK,BRANCH,COUNT`) of files (`SF:NAME`).
    fn tracefile(records: &str) -> Tracefile {
        let mut read = Tracefile::default();
        let mut name = "";
        for line in records.lines() {
            let (record, rest) = line.split_once(':').expect("a record");
            let fields = rest.split(',').collect::<Vec<_>>();
            let number = |index: usize| fields[index].parse::<u32>().expect("a number");
            name = if record == "SF" { rest } else { name };
            let file = read.files.entry(name.to_owned()).or_default();
            match record {
                "SF" => {}
                "DA" => {
                    let checksum = fields.get(2).map(|&text| text.to_owned());
                    file.lines.insert(number(0), TracedLine { count: number(1).into(), checksum });
                }
                "BRDA" => {
                    file.branches.insert((number(0), number(1), number(2)), Some(number(3).into()));
                }
                _ => unreachable!("no such record: {line}"),
            }
        }
        read
    }

    fn between(base: &str, now: &str) -> Difference {
        Difference::between(&tracefile(base), &tracefile(now))
    }

    #[test]
    fn without_texts_lines_are_matched_by_their_numbers() {
        let difference = between(
            "SF:a.c\nDA:1,1\nDA:2,0\nDA:3,1\nDA:9,1\n",
            "SF:a.c\nDA:1,0\nDA:2,5\nDA:3,1\nDA:4,0\nDA:5,1\n",
        );
        let expected = FileDifference {
            lost: vec![1],
            lost_branches: Vec::new(),
            gained: vec![2],
            new_uncovered: vec![4],
            new_covered: 1,
            ..FileDifference::default()
        };
        assert_eq!(difference.files["a.c"], expected);
        assert_eq!(difference.lost_lines(), 1);
    }

    #[test]
    fn with_texts_lines_are_found_where_they_moved_to() {
        let base = "SF:a.c\nDA:1,1,one\nDA:2,1,two\nDA:3,0,three\n";
        let now = "SF:a.c\nDA:5,0,new\nDA:6,1,one\nDA:7,0,two\nDA:8,0,three\n";
        let change = between(base, now).files["a.c"].clone();
        assert_eq!((change.lost, change.new_uncovered), (vec![7], vec![5]));
    }

    #[test]
    fn an_outcome_that_no_longer_happens_is_lost_where_the_line_still_runs() {
        let with = |outcomes: &str| format!("SF:a.c\nDA:1,3\n{outcomes}");
        let lost = |base: &str, now: &str| {
            let difference = between(&with(base), &with(now));
            difference.files.get("a.c").map_or(0, |file| file.lost_branches.len())
        };
        assert_eq!(lost("BRDA:1,0,0,1\nBRDA:1,0,1,2\n", "BRDA:1,0,0,3\nBRDA:1,0,1,0\n"), 1);
        assert_eq!(lost("BRDA:1,0,0,1\nBRDA:1,0,1,0\n", "BRDA:1,0,0,3\nBRDA:1,0,1,0\n"), 0);
        // The compiler made other branches: nothing is reported as lost.
        assert_eq!(lost("BRDA:1,0,0,1\nBRDA:1,0,1,2\n", "BRDA:1,0,0,0\n"), 0);
    }

    #[test]
    fn files_are_found_under_other_roots() {
        let base =
            "SF:/home/a/src/x/main.c\nDA:1,1\nSF:/home/a/src/y/main.c\nDA:1,1\nSF:/home/a/old.c\nDA:1,1\n";
        let now = "SF:/build/src/x/main.c\nDA:1,0\nSF:/build/src/y/main.c\nDA:1,1\n";
        let difference = between(base, now);
        assert_eq!(difference.files.keys().collect::<Vec<_>>(), ["/build/src/x/main.c"]);
        assert_eq!(difference.gone, ["/home/a/old.c"]);
        // Another board's file of the same name is another file.
        let difference =
            between("SF:/x/common.c\nSF:/x/m3/main.c\nDA:1,1\n", "SF:/x/common.c\nSF:/x/a9/main.c\nDA:1,0\n");
        assert_eq!(difference.gone, ["/x/m3/main.c"]);
        let difference = between("SF:/x/main.c\nDA:1,1\n", "SF:/y/z/main.c\nDA:1,0\n");
        assert_eq!(difference.files["/y/z/main.c"].lost, [1]);
    }

    #[test]
    fn functions_that_are_still_there_and_no_longer_run_are_lost() {
        let mut base = Tracefile::default();
        let mut now = Tracefile::default();
        let functions = |counts: &[(&str, u64)]| TracedFile {
            functions: counts
                .iter()
                .map(|&(name, count)| (name.to_owned(), TracedFunction { line: 1, count }))
                .collect(),
            ..TracedFile::default()
        };
        base.files.insert("a.c".to_owned(), functions(&[("kept", 2), ("lost", 1), ("removed", 1)]));
        now.files.insert("a.c".to_owned(), functions(&[("kept", 1), ("lost", 0)]));
        assert_eq!(Difference::between(&base, &now).files["a.c"].lost_functions, ["lost"]);
    }
}
