//! The changes of source files from one revision to the next, read from a unified diff.

use super::partners::common_end;

/// The files that a diff names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceDiff {
    /// In the order of the diff.
    pub files: Vec<FileDiff>,
}

/// The changes in one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileDiff {
    /// The path in the old revision; `None` for a file that was added.
    pub old: Option<DiffPath>,
    /// The path in the new revision; `None` for a file that was deleted.
    pub new: Option<DiffPath>,
    /// Whether the diff leaves out the changes because one of the revisions is not text.
    pub binary: bool,
    /// The changed places, in order, none overlapping.
    pub hunks: Vec<Hunk>,
}

/// A path as a diff writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffPath {
    /// The path, without the prefix `a/` or `b/` if the diff is known to have one.
    pub path: String,
    /// Whether the path may begin with a folder outside of the project: programs other than Git name the folders of both
    /// revisions.
    pub may_have_prefix: bool,
}

/// A place that changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hunk {
    /// The line of the diff at which the hunk begins, from 1.
    pub at: usize,
    /// The first line of the old revision; if the hunk has no old lines, the line after it.
    pub old_first: u32,
    /// The same for the new revision.
    pub new_first: u32,
    /// The lines, in the order of the diff.
    pub lines: Vec<HunkLine>,
}

/// A line of a hunk, without its line ending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HunkLine {
    /// A line of both revisions.
    Context(Vec<u8>),
    /// A line of the old revision alone.
    Deleted(Vec<u8>),
    /// A line of the new revision alone.
    Added(Vec<u8>),
}

impl Hunk {
    /// The lines of the old revision: the line of the diff, the number and the text of each.
    pub(super) fn old_lines(&self) -> impl Iterator<Item = (usize, u32, &[u8])> {
        let lines = self.lines.iter().zip(self.at + 1..).filter_map(|(line, at)| match line {
            HunkLine::Context(text) | HunkLine::Deleted(text) => Some((at, text.as_slice())),
            HunkLine::Added(_) => None,
        });
        lines.zip(self.old_first..).map(|((at, text), number)| (at, number, text))
    }

    /// The same for the new revision.
    pub(super) fn new_lines(&self) -> impl Iterator<Item = (usize, u32, &[u8])> {
        let lines = self.lines.iter().zip(self.at + 1..).filter_map(|(line, at)| match line {
            HunkLine::Context(text) | HunkLine::Added(text) => Some((at, text.as_slice())),
            HunkLine::Deleted(_) => None,
        });
        lines.zip(self.new_first..).map(|((at, text), number)| (at, number, text))
    }
}

impl DiffPath {
    /// The length of the common end of the path and a file's name, in folders and names, if they can be the same file: one has to
    /// end with all of the other.
    pub(super) fn meets(&self, name: &str) -> Option<usize> {
        let parts = |path: &str| path.split('/').filter(|part| !part.is_empty()).count();
        let common = common_end(&self.path, name);
        let whole = parts(&self.path) - usize::from(self.may_have_prefix && parts(&self.path) > 1);
        (common > 0 && common >= whole.min(parts(name))).then_some(common)
    }
}
