//! Matches files and lines of two revisions, by a diff or by the sources of both.
//!
//! Everything is verified: the diff has to fit the current sources. If the base has checksums, the lines of the old revision have
//! to match them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use md5::{Digest, Md5};

use super::super::paths::common_folder;
use super::super::tracefile::{TracedFile, Tracefile, lines_of};
use super::line_map::LineMap;
use super::partners::{common_end, partners};
use super::source_diff::{DiffPath, FileDiff, Hunk, SourceDiff};

/// Returns the text of a file, by its name in the coverage.
pub type TextOf<'a> = &'a dyn Fn(&str) -> Option<Vec<u8>>;

/// The known sources of two revisions.
#[derive(Clone, Copy)]
pub enum Revisions<'a> {
    /// The changes between them.
    Diff(&'a SourceDiff),
    /// The sources of the base, by their names in it.
    BaseSources(TextOf<'a>),
}

/// Why lines cannot be mapped: the diff or the sources do not belong to the coverage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevisionError {
    /// The source file.
    pub file: String,
    /// The problem.
    pub kind: RevisionErrorKind,
}

/// The problem with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RevisionErrorKind {
    /// A line of the diff's new side differs from the source.
    OtherSource {
        /// The line of the diff, from 1.
        at: usize,
        /// The line of the source, from 1.
        line: u32,
    },
    /// A line of the old revision, in the diff or the source, differs from the base.
    OtherBase {
        /// The line in the base, from 1.
        line: u32,
    },
    /// A line that did not change differs in the base.
    Unequal {
        /// The line in the base.
        old: u32,
        /// The line in the source.
        new: u32,
    },
    /// The source is not available.
    NoSource,
    /// The source of the base is not available.
    NoBaseSource,
    /// The source of the base has fewer lines than the base.
    ShortBaseSource {
        /// The last line in the base.
        line: u32,
    },
    /// Several files may be meant.
    Ambiguous {
        /// One of the others.
        other: String,
    },
    /// The diff fits the source, but calls it by a path that may be another file.
    OtherPath {
        /// The path in the diff.
        path: String,
    },
    /// The diff does not show which lines changed.
    Binary,
    /// The diff is empty, and nothing shows that the line did not change.
    EmptyDiff {
        /// The line.
        line: u32,
    },
}

/// A file of now, matched with the base.
#[derive(Debug, Default)]
pub(super) struct Pair<'a> {
    /// The name in the base, if the base has the file.
    pub(super) base: Option<&'a str>,
    /// The path in the old revision, if that differs.
    pub(super) renamed_from: Option<String>,
    /// The map of the file's lines.
    pub(super) lines: LineMap,
}

/// The files of now, by their names.
pub(super) type Pairs<'a> = BTreeMap<&'a str, Pair<'a>>;

/// Finds the counterpart of each file of now in the base.
pub(super) fn pairs<'a>(
    base: &'a Tracefile,
    now: &'a Tracefile,
    revisions: Revisions<'_>,
    text: TextOf<'_>,
) -> Result<Pairs<'a>, RevisionError> {
    let texts = now.files.keys().filter_map(|name| Some((name.as_str(), text(name)?))).collect::<Texts<'_>>();
    let pairs = match revisions {
        Revisions::Diff(diff) => by_diff(base, now, diff, &texts)?,
        Revisions::BaseSources(old) => by_sources(base, now, old, &texts)?,
    };
    let must_prove = matches!(revisions, Revisions::Diff(diff) if diff.files.is_empty());
    for (name, pair) in &pairs {
        let (Some(before), Some(file)) =
            (pair.base.and_then(|name| base.files.get(name)), now.files.get(*name))
        else {
            continue;
        };
        check_equal(name, before, file, &pair.lines, texts.get(name).map(Vec::as_slice), must_prove)?;
    }
    Ok(pairs)
}

type Texts<'a> = HashMap<&'a str, Vec<u8>>;

/// Checks that unchanged lines have equal checksums, if the base has checksums.
fn check_equal(
    name: &str,
    before: &TracedFile,
    file: &TracedFile,
    lines: &LineMap,
    text: Option<&[u8]>,
    must_prove: bool,
) -> Result<(), RevisionError> {
    let text = text.map(lines_of);
    for &new in file.lines.keys() {
        let Some(old) = lines.line_in_old(new) else { continue };
        let Some(known) = before.lines.get(&old) else { continue };
        let found = text.as_ref().and_then(|text| line_of(text, new));
        let is_same = found.and_then(|found| has_checksum(known.checksum.as_deref()?, found));
        match is_same {
            Some(false) => return Err(error(name, RevisionErrorKind::Unequal { old, new })),
            None if must_prove => return Err(error(name, RevisionErrorKind::EmptyDiff { line: new })),
            _ => {}
        }
    }
    Ok(())
}

/// Checks that the lines of the old revision match the base's checksums.
fn check_base<'t>(
    name: &str,
    before: &TracedFile,
    mut text: impl FnMut(u32) -> Option<&'t [u8]>,
) -> Result<(), RevisionError> {
    for (&line, known) in &before.lines {
        let is_same = text(line).and_then(|text| has_checksum(known.checksum.as_deref()?, text));
        if is_same == Some(false) {
            return Err(error(name, RevisionErrorKind::OtherBase { line }));
        }
    }
    Ok(())
}

/// Whether a line has this checksum; `None` if the checksum is not an MD5 hash in Base64. Some tools include the line's carriage
/// return.
fn has_checksum(checksum: &str, line: &[u8]) -> Option<bool> {
    /// 16 bytes in Base64.
    const LENGTH: usize = 22;
    let checksum = checksum.trim_end_matches('=');
    let is = |line: &[u8]| STANDARD_NO_PAD.encode(Md5::digest(line)) == checksum;
    (checksum.len() == LENGTH).then(|| is(line) || is(&[line, b"\r"].concat()))
}

fn line_of<'t>(lines: &[&'t [u8]], number: u32) -> Option<&'t [u8]> {
    lines.get(usize::try_from(number).ok()?.checked_sub(1)?).copied()
}

fn error(file: &str, kind: RevisionErrorKind) -> RevisionError {
    RevisionError { file: file.to_owned(), kind }
}

// ---- by a diff ----

fn by_diff<'a>(
    base: &'a Tracefile,
    now: &'a Tracefile,
    diff: &SourceDiff,
    texts: &Texts<'_>,
) -> Result<Pairs<'a>, RevisionError> {
    let changed = changed_files(now, diff, texts)?;
    let alike = partners(base, now);
    let mut claimed = BTreeSet::new();
    let mut pairs = Pairs::new();
    for (&name, &index) in &changed {
        let Some(entry) = diff.files.get(index) else { continue };
        if entry.binary {
            return Err(error(name, RevisionErrorKind::Binary));
        }
        let is_renamed = entry.old.as_ref().map(|old| &old.path) != entry.new.as_ref().map(|new| &new.path);
        let before = match &entry.old {
            Some(old) => base_of(old, alike.get(name).copied().filter(|_| !is_renamed), base)?,
            None => None,
        };
        claimed.extend(before);
        if let Some((before, file)) = before.and_then(|name| Some((name, base.files.get(name)?))) {
            let texts = entry.hunks.iter().flat_map(Hunk::old_lines);
            let texts = texts.map(|(_, line, text)| (line, text)).collect::<HashMap<_, _>>();
            check_base(before, file, |line| texts.get(&line).copied())?;
        }
        let old = entry.old.as_ref().filter(|_| is_renamed && entry.new.is_some());
        pairs.insert(
            name,
            Pair {
                base: before,
                renamed_from: old.map(|old| old.path.clone()),
                // An added file has no old lines.
                lines: if entry.old.is_some() { LineMap::of_hunks(&entry.hunks) } else { LineMap::default() },
            },
        );
    }
    // A deleted file is not a candidate for a file that still exists.
    for old in diff.files.iter().filter(|entry| entry.new.is_none()).filter_map(|entry| entry.old.as_ref()) {
        claimed.extend(base_of(old, None, base)?);
    }
    for name in now.files.keys().map(String::as_str).filter(|name| !changed.contains_key(name)) {
        let before = alike.get(name).copied().filter(|before| !claimed.contains(before));
        pairs.insert(name, Pair { base: before, renamed_from: None, lines: LineMap::identity() });
    }
    Ok(pairs)
}

/// The file of the base for a name in the diff. If files of the same name elsewhere fit as well, `likely` is preferred.
fn base_of<'a>(
    old: &DiffPath,
    likely: Option<&'a str>,
    base: &'a Tracefile,
) -> Result<Option<&'a str>, RevisionError> {
    if let Some(likely) = likely.filter(|likely| old.meets(likely).is_some()) {
        return Ok(Some(likely));
    }
    let names = base.files.keys().map(String::as_str);
    let found = names.filter_map(|name| Some((old.meets(name)?, name))).collect();
    let root = common_folder(base.files.keys());
    one_of(found, &format!("{root}{}", old.path), &old.path)
}

/// The candidate with the longest common end, or the one with exactly this name.
fn one_of<'a>(
    mut found: Vec<(usize, &'a str)>,
    exactly: &str,
    path: &str,
) -> Result<Option<&'a str>, RevisionError> {
    if let Some((_, name)) = found.iter().find(|(_, name)| *name == exactly) {
        return Ok(Some(name));
    }
    found.sort_unstable_by_key(|(common, _)| std::cmp::Reverse(*common));
    match found.as_slice() {
        [] => Ok(None),
        [(best, name), (second, other), ..] if best == second => {
            let other = (*other).to_owned();
            Err(RevisionError {
                file: format!("{path} ({name})"),
                kind: RevisionErrorKind::Ambiguous { other },
            })
        }
        [(_, name), ..] => Ok(Some(name)),
    }
}

/// Matches the entries of the diff with the files of now, by path and text.
fn changed_files<'a>(
    now: &'a Tracefile,
    diff: &SourceDiff,
    texts: &Texts<'_>,
) -> Result<BTreeMap<&'a str, usize>, RevisionError> {
    let root = common_folder(now.files.keys());
    let mut misfits = BTreeMap::<usize, Vec<RevisionError>>::new();
    let mut chosen = BTreeMap::<&str, usize>::new();
    for (entry, index) in diff.files.iter().zip(0..) {
        let Some(path) = &entry.new else { continue };
        let mut fitting = Vec::new();
        for name in now.files.keys() {
            let Some(common) = path.meets(name) else { continue };
            match fits(name, entry, texts) {
                Ok(()) => fitting.push((common, name.as_str())),
                Err(error) => misfits.entry(index).or_default().push(error),
            }
        }
        let Some(name) = one_of(fitting, &format!("{root}{}", path.path), &path.path)? else { continue };
        misfits.remove(&index);
        // The longer path is more specific: `main.c` is in many folders.
        let before = chosen.get(name).and_then(|before| diff.files.get(*before)?.new.as_ref());
        match before.map(|before| before.meets(name).cmp(&path.meets(name))) {
            Some(std::cmp::Ordering::Greater) => {}
            Some(std::cmp::Ordering::Equal) => {
                let other = before.map(|before| before.path.clone()).unwrap_or_default();
                return Err(error(name, RevisionErrorKind::Ambiguous { other }));
            }
            Some(std::cmp::Ordering::Less) | None => {
                chosen.insert(name, index);
            }
        }
    }
    // An entry whose path fits and whose text does not is of another revision, unless another entry fits the file.
    let errors = misfits.into_values().flatten();
    if let Some(error) = errors.into_iter().find(|error| !chosen.contains_key(error.file.as_str())) {
        return Err(error);
    }
    refuse_other_paths(now, diff, texts, &chosen)?;
    Ok(chosen)
}

/// Whether the new side of an entry matches a file's text.
fn fits(name: &str, entry: &FileDiff, texts: &Texts<'_>) -> Result<(), RevisionError> {
    if entry.hunks.is_empty() {
        return Ok(());
    }
    let text = texts.get(name).ok_or_else(|| error(name, RevisionErrorKind::NoSource))?;
    let text = lines_of(text);
    for (at, line, expected) in entry.hunks.iter().flat_map(Hunk::new_lines) {
        if line_of(&text, line) != Some(expected) {
            return Err(error(name, RevisionErrorKind::OtherSource { at, line }));
        }
    }
    Ok(())
}

/// A program that was built elsewhere may name its files by paths that match none of the diff's. The diff would then seem to
/// change nothing.
fn refuse_other_paths(
    now: &Tracefile,
    diff: &SourceDiff,
    texts: &Texts<'_>,
    chosen: &BTreeMap<&str, usize>,
) -> Result<(), RevisionError> {
    let used = chosen.values().copied().collect::<BTreeSet<_>>();
    let unused =
        diff.files.iter().enumerate().filter(|(index, _)| !used.contains(index)).map(|(_, entry)| entry);
    for (entry, path) in unused.filter_map(|entry| Some((entry, entry.new.as_ref()?))) {
        let says_something = entry.hunks.iter().flat_map(Hunk::new_lines).next().is_some();
        let named = now.files.keys().filter(|name| !chosen.contains_key(name.as_str()));
        let alike = named.filter(|name| says_something && common_end(name, &path.path) > 0);
        if let Some(name) = alike.into_iter().find(|name| fits(name, entry, texts).is_ok()) {
            return Err(error(name, RevisionErrorKind::OtherPath { path: path.path.clone() }));
        }
    }
    Ok(())
}

// ---- by the sources of both ----

fn by_sources<'a>(
    base: &'a Tracefile,
    now: &'a Tracefile,
    old: TextOf<'_>,
    texts: &Texts<'_>,
) -> Result<Pairs<'a>, RevisionError> {
    let mut alike = partners(base, now);
    let known = alike.values().copied().collect::<BTreeSet<_>>();
    let gone = base.files.keys().map(String::as_str).filter(|name| !known.contains(name));
    let mut gone = gone.filter_map(|name| Some((name, old(name)?))).collect::<Vec<_>>();
    let mut renamed = BTreeSet::new();
    let mut pairs = Pairs::new();
    for name in now.files.keys().map(String::as_str) {
        let text = texts.get(name).ok_or_else(|| error(name, RevisionErrorKind::NoSource))?;
        if !alike.contains_key(name)
            && let Some(index) = most_similar(text, &gone)
        {
            alike.insert(name, gone.swap_remove(index).0);
            renamed.insert(name);
        }
        let before = alike.get(name).copied();
        let lines = match before {
            Some(before) => {
                let text_before =
                    old(before).ok_or_else(|| error(before, RevisionErrorKind::NoBaseSource))?;
                let lines_before = lines_of(&text_before);
                if let Some(file) = base.files.get(before) {
                    check_length(before, file, &lines_before)?;
                    check_base(before, file, |line| line_of(&lines_before, line))?;
                }
                LineMap::between(&lines_before, &lines_of(text))
            }
            // The base does not have the file: it may have existed without being part of the program.
            None => old(name).map_or_else(LineMap::default, |before| {
                LineMap::between(&lines_of(&before), &lines_of(text))
            }),
        };
        let renamed_from = before.filter(|_| renamed.contains(name)).map(str::to_owned);
        pairs.insert(name, Pair { base: before, renamed_from, lines });
    }
    Ok(pairs)
}

fn check_length(name: &str, file: &TracedFile, lines: &[&[u8]]) -> Result<(), RevisionError> {
    match file.lines.keys().next_back() {
        Some(&line) if line_of(lines, line).is_none() => {
            Err(error(name, RevisionErrorKind::ShortBaseSource { line }))
        }
        _ => Ok(()),
    }
}

/// The file that shares the most lines with a text, if that is at least half of the longer one.
fn most_similar(text: &[u8], others: &[(&str, Vec<u8>)]) -> Option<usize> {
    let shared = others.iter().map(|(_, other)| shared_permille(text, other)).enumerate();
    let (index, shared) = shared.max_by_key(|(_, shared)| *shared)?;
    (shared >= 500).then_some(index)
}

fn shared_permille(one: &[u8], other: &[u8]) -> usize {
    let (one, other) = (lines_of(one), lines_of(other));
    let mut counts = HashMap::<&[u8], usize>::new();
    for line in &one {
        *counts.entry(line).or_default() += 1;
    }
    let shared = other.iter().filter(|line| match counts.get_mut(**line) {
        Some(count) if *count > 0 => {
            *count -= 1;
            true
        }
        _ => false,
    });
    shared.count() * 1000 / one.len().max(other.len()).max(1)
}

impl RevisionErrorKind {
    /// A stable short name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::OtherSource { .. } => "diff_of_other_source",
            Self::OtherBase { .. } | Self::Unequal { .. } | Self::ShortBaseSource { .. } => {
                "base_of_other_source"
            }
            Self::NoSource => "no_source",
            Self::NoBaseSource => "no_base_source",
            Self::Ambiguous { .. } => "ambiguous_path",
            Self::OtherPath { .. } => "other_path",
            Self::Binary => "binary_source",
            Self::EmptyDiff { .. } => "empty_diff",
        }
    }
}

impl fmt::Display for RevisionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = &self.file;
        match &self.kind {
            RevisionErrorKind::OtherSource { at, line } => {
                write!(f, "line {at} of the diff differs from line {line} of {file}")
            }
            RevisionErrorKind::OtherBase { line } => {
                write!(f, "{file}: line {line} of the old revision differs from that of the base")
            }
            RevisionErrorKind::Unequal { old, new } => {
                write!(f, "{file}: line {new} should be unchanged, but differs from line {old} of the base")
            }
            RevisionErrorKind::NoSource => write!(f, "{file}: the source is missing"),
            RevisionErrorKind::NoBaseSource => write!(f, "{file}: the source of the base is missing"),
            RevisionErrorKind::ShortBaseSource { line } => {
                write!(f, "{file}: the base has line {line}, but its source is shorter")
            }
            RevisionErrorKind::Ambiguous { other } => write!(f, "{file}: could also be {other}"),
            RevisionErrorKind::OtherPath { path } => {
                write!(f, "{file}: the diff fits, but names it {path}")
            }
            RevisionErrorKind::Binary => write!(f, "{file}: the diff does not state which lines changed"),
            RevisionErrorKind::EmptyDiff { line } => {
                write!(f, "the diff is empty, but nothing shows that line {line} of {file} is unchanged")
            }
        }
    }
}

impl std::error::Error for RevisionError {}
