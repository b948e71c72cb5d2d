//! Unified diffs of source files, as `git diff` and `diff -u` print them.

mod paths;

use std::fmt;

use tracewalk::plain::plain;
use tracewalk_analysis::coverage::{FileDiff, Hunk, HunkLine, SourceDiff};

use paths::{GitNames, unquoted};

/// Why a text is not a diff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceDiffError {
    /// The line, from 1.
    pub line: usize,
    /// The problem.
    pub kind: SourceDiffErrorKind,
}

/// The problem with a diff.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SourceDiffErrorKind {
    /// A line is not valid at its place in a unified diff.
    Line {
        /// The line.
        found: String,
    },
    /// A hunk ends before it has the lines that its head counts.
    CutOff,
    /// A hunk begins at a line that does not follow from those before it.
    Misplaced,
    /// The text is a diff of several revisions at once (`diff --cc`).
    Combined,
}

/// Reads a diff. An empty diff changes nothing. Text before a file, like a commit's message, is skipped; a diff that is not empty
/// has to have a file.
///
/// # Errors
///
/// The first invalid line.
pub fn read_source_diff(text: &[u8]) -> Result<SourceDiff, SourceDiffError> {
    let mut reader = Reader { lines: text.split_inclusive(|byte| *byte == b'\n').collect(), at: 0 };
    let mut diff = SourceDiff::default();
    let mut unread = None;
    while let Some(line) = reader.peek() {
        let at = reader.at;
        let next = reader.lines.get(at + 1).copied().map(without_end);
        if line.starts_with(b"diff --cc ") || line.starts_with(b"diff --combined ") {
            return Err(reader.error(SourceDiffErrorKind::Combined));
        } else if let Some(names) = line.strip_prefix(b"diff --git ") {
            reader.at += 1;
            diff.files.push(reader.git_file(names)?);
        } else if line.starts_with(b"--- ") && next.is_some_and(|next| next.starts_with(b"+++ ")) {
            diff.files.push(reader.plain_file()?);
        } else if line.starts_with(b"@@ ") {
            return Err(reader.error(reader.unexpected()));
        } else {
            if !line.is_empty() && unread.is_none() {
                unread = Some(reader.error(reader.unexpected()));
            }
            reader.at += 1;
        }
    }
    match unread {
        Some(error) if diff.files.is_empty() => Err(error),
        _ => Ok(diff),
    }
}

struct Reader<'a> {
    lines: Vec<&'a [u8]>,
    /// The index of the next line.
    at: usize,
}

impl<'a> Reader<'a> {
    /// The next line, without its line ending.
    fn peek(&self) -> Option<&'a [u8]> {
        self.lines.get(self.at).copied().map(without_end)
    }

    fn error(&self, kind: SourceDiffErrorKind) -> SourceDiffError {
        SourceDiffError { line: (self.at + 1).min(self.lines.len().max(1)), kind }
    }

    /// The error for an invalid next line.
    fn unexpected(&self) -> SourceDiffErrorKind {
        const LONGEST: usize = 80;
        let line = String::from_utf8_lossy(self.peek().unwrap_or_default()).into_owned();
        let line = line.chars().take(LONGEST).collect::<String>();
        SourceDiffErrorKind::Line { found: plain(line.into()).into_owned() }
    }

    /// A file with Git's head, after its first line.
    fn git_file(&mut self, names: &[u8]) -> Result<FileDiff, SourceDiffError> {
        let mut file = FileDiff::default();
        let mut names = GitNames::of(names);
        while let Some(line) = self.peek() {
            let after = |prefix: &str| line.strip_prefix(prefix.as_bytes());
            if let Some(path) = after("rename from ").or_else(|| after("copy from ")) {
                names.old = Some(unquoted(path));
            } else if let Some(path) = after("rename to ").or_else(|| after("copy to ")) {
                names.new = Some(unquoted(path));
            } else if after("new file mode ").is_some() {
                names.added = true;
            } else if after("deleted file mode ").is_some() {
                names.deleted = true;
            } else if after("GIT binary patch").is_some() || after("Binary files ").is_some() {
                file.binary = true;
            } else if let Some(path) = after("--- ") {
                names.read_head(path, true);
            } else if let Some(path) = after("+++ ") {
                names.read_head(path, false);
            } else if line.starts_with(b"@@ ") {
                self.hunk(&mut file)?;
                continue;
            } else if line.starts_with(b"diff ") {
                break;
            } else if !file.binary && !is_extended_head(line) {
                // A trailer: `-- ` and a version at the end of a mail, or the next commit's message.
                if file.hunks.is_empty() || is_stray(line) {
                    return Err(self.error(self.unexpected()));
                }
                break;
            }
            self.at += 1;
        }
        (file.old, file.new) = names.paths();
        Ok(file)
    }

    /// A file with only its two paths.
    fn plain_file(&mut self) -> Result<FileDiff, SourceDiffError> {
        let mut file = FileDiff::default();
        let mut names = GitNames::default();
        for is_old in [true, false] {
            let line = self.peek().unwrap_or_default();
            names.read_head(line.get(4..).unwrap_or_default(), is_old);
            self.at += 1;
        }
        while self.peek().is_some_and(|line| line.starts_with(b"@@ ")) {
            self.hunk(&mut file)?;
        }
        if file.hunks.is_empty() || self.peek().is_some_and(is_stray) {
            return Err(self.error(self.unexpected()));
        }
        (file.old, file.new) = names.paths();
        Ok(file)
    }

    /// A hunk, from its head on.
    fn hunk(&mut self, file: &mut FileDiff) -> Result<(), SourceDiffError> {
        let head = self.peek().and_then(HunkHead::of).ok_or_else(|| self.error(self.unexpected()))?;
        let [old, new] = [head.old, head.new].map(|(first, count)| {
            // If a side has no lines, its head has the number of the previous line.
            (if count == 0 { first.checked_add(1) } else { Some(first) }).filter(|first| *first > 0)
        });
        let misplaced = || self.error(SourceDiffErrorKind::Misplaced);
        let (old_first, new_first) = old.zip(new).ok_or_else(misplaced)?;
        let (old_before, new_before) = file.hunks.last().map_or((1, 1), ends);
        let gaps = old_first.checked_sub(old_before).zip(new_first.checked_sub(new_before));
        // Both sides have the same number of unchanged lines before it.
        if gaps.is_none_or(|(old, new)| old != new) {
            return Err(misplaced());
        }
        let mut hunk = Hunk { at: self.at + 1, old_first, new_first, lines: Vec::new() };
        self.at += 1;
        let (mut old_left, mut new_left) = (head.old.1, head.new.1);
        while old_left > 0 || new_left > 0 {
            let line = self.peek().ok_or_else(|| self.error(SourceDiffErrorKind::CutOff))?;
            let (sign, text) = line.split_first().map_or((b' ', line), |(sign, text)| (*sign, text));
            let text = || text.strip_suffix(b"\r").unwrap_or(text).to_vec();
            let (read, takes) = match sign {
                b' ' => (HunkLine::Context(text()), (1, 1)),
                b'-' => (HunkLine::Deleted(text()), (1, 0)),
                b'+' => (HunkLine::Added(text()), (0, 1)),
                // "No newline at end of file" refers to the previous line.
                b'\\' => {
                    self.at += 1;
                    continue;
                }
                _ => return Err(self.error(self.unexpected())),
            };
            let left = old_left.checked_sub(takes.0).zip(new_left.checked_sub(takes.1));
            (old_left, new_left) = left.ok_or_else(|| self.error(self.unexpected()))?;
            hunk.lines.push(read);
            self.at += 1;
        }
        if self.peek().is_some_and(|line| line.starts_with(b"\\")) {
            self.at += 1;
        }
        file.hunks.push(hunk);
        Ok(())
    }
}

/// The lines after a hunk in both revisions.
fn ends(hunk: &Hunk) -> (u32, u32) {
    let count = |is: fn(&HunkLine) -> bool| {
        u32::try_from(hunk.lines.iter().filter(|line| is(line)).count()).unwrap_or(u32::MAX)
    };
    let old = count(|line| !matches!(line, HunkLine::Added(_)));
    let new = count(|line| !matches!(line, HunkLine::Deleted(_)));
    (hunk.old_first.saturating_add(old), hunk.new_first.saturating_add(new))
}

/// `@@ -12,7 +12,9 @@ what comes before`: the first line and the number of lines of each side.
#[derive(Clone, Copy)]
struct HunkHead {
    old: (u32, u32),
    new: (u32, u32),
}

impl HunkHead {
    fn of(line: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(line.get(..line.len().min(100))?)
            .map_or_else(|error| std::str::from_utf8(line.get(..error.valid_up_to())?).ok(), Some)?;
        let (ranges, _) = line.strip_prefix("@@ ")?.split_once(" @@")?;
        let (old, new) = ranges.split_once(' ')?;
        let range = |text: &str| {
            let (first, count) = text.split_once(',').unwrap_or((text, "1"));
            Some((first.parse().ok()?, count.parse().ok()?))
        };
        Some(Self { old: range(old.strip_prefix('-')?)?, new: range(new.strip_prefix('+')?)? })
    }
}

/// Whether a line belongs to Git's head of a file.
fn is_extended_head(line: &[u8]) -> bool {
    ["old mode ", "new mode ", "similarity index ", "dissimilarity index ", "index "]
        .iter()
        .any(|head| line.starts_with(head.as_bytes()))
}

/// Whether a line after a hunk looks like a line of that hunk, so that the hunk's head counted wrong. `-- ` ends a mail.
fn is_stray(line: &[u8]) -> bool {
    matches!(line.first(), Some(b'+' | b'-' | b' ')) && line != b"-- " && line != b"--"
}

fn without_end(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\n").unwrap_or(line)
}

impl fmt::Display for SourceDiffError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        match &self.kind {
            SourceDiffErrorKind::Line { found } => {
                write!(f, "found {found:?}, expected a line of a unified diff")
            }
            SourceDiffErrorKind::CutOff => f.write_str("the diff is cut off here"),
            SourceDiffErrorKind::Misplaced => f.write_str("the hunk does not fit the hunks before it"),
            SourceDiffErrorKind::Combined => f.write_str("found a diff of several revisions at once"),
        }
    }
}

impl std::error::Error for SourceDiffError {}

#[cfg(test)]
mod tests;
