//! Directories → the captures in them.

use std::io;
use std::path::{Path, PathBuf};

use super::contents::Capture;
use super::format::Holds;

/// A file or directory that [`walk`] found: a capture, or a file that may be one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPath {
    /// The file, or the directory with a description.
    pub path: PathBuf,
    /// Whether the name or the beginning shows that it is a capture.
    pub is_capture: bool,
}

/// Walks through a directory and its subdirectories, sorted by name. A directory that is a capture counts as
/// a whole: the files in it are not listed. Symbolic links to directories are not followed, and names that
/// begin with a dot are skipped.
///
/// # Errors
///
/// If a directory cannot be read, with its path.
pub fn walk(directory: &Path) -> Result<Vec<FoundPath>, (PathBuf, io::Error)> {
    let mut found = Vec::new();
    // The paths that remain, the next one at the end.
    let mut open = vec![directory.to_owned()];
    while let Some(path) = open.pop() {
        if !path.is_dir() {
            let is_capture = is_recognised(&path);
            found.push(FoundPath { path, is_capture });
            continue;
        }
        if is_recognised(&path) {
            found.push(FoundPath { path, is_capture: true });
            continue;
        }
        let entries = std::fs::read_dir(&path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let mut entries = entries.map_err(|error| (path.clone(), error))?;
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.file_name()));
        open.extend(entries.iter().filter_map(|entry| {
            let path = entry.path();
            let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            let is_wanted = !is_hidden && (path.is_file() || (path.is_dir() && !is_link));
            is_wanted.then_some(path)
        }));
    }
    Ok(found)
}

/// Whether the name or the beginning shows that a file is a capture: a description, a recording, or a
/// perf.data. Trace bytes look like any other bytes.
fn is_recognised(path: &Path) -> bool {
    let format = Capture::format(path);
    let is_description = format.holds == Holds::Description && (path.is_file() || describes(path));
    is_description || matches!(format.holds, Holds::Recording | Holds::PerfData)
}

/// Whether a directory has a description, so that it is a capture.
#[must_use]
pub fn is_described(path: &Path) -> bool {
    path.is_dir() && is_recognised(path)
}

/// Whether a directory has a description.
fn describes(path: &Path) -> bool {
    let is_named = ["snapshot.ini", "capture.toml"].iter().any(|name| path.join(name).is_file());
    is_named || !super::cmsis::descriptions(path).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_are_found_by_what_they_are_and_a_directory_with_one_is_one() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for folder in ["a/one", "b/snapshot", "b/.hidden", "c"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        std::fs::write(at("a/one/capture.toml"), "[capture]\nfile = \"trace.bin\"\n").unwrap();
        std::fs::write(at("a/one/trace.bin"), [0; 32]).unwrap();
        std::fs::write(at("b/snapshot/snapshot.ini"), "[snapshot]\nversion=1.0\n").unwrap();
        std::fs::write(at("b/.hidden/capture.toml"), "").unwrap();
        std::fs::write(at("c/perf.data"), b"PERFILE2 and more").unwrap();
        std::fs::write(at("c/trace.bin"), [0; 32]).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(directory.path(), at("c/circle")).unwrap();
        let found = walk(directory.path()).unwrap();
        let found = found.iter().map(|found| {
            let name = found.path.strip_prefix(directory.path()).unwrap().to_str().unwrap();
            (name.replace('\\', "/"), found.is_capture)
        });
        let expected = [("a/one", true), ("b/snapshot", true), ("c/perf.data", true), ("c/trace.bin", false)];
        let expected = expected.map(|(name, is_capture)| (name.to_owned(), is_capture));
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }
}
