//! Checks that `testdata/examples/generate.sh` reproduces the committed example captures.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The files below `folder` by their relative paths.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                files.insert(path.strip_prefix(folder).unwrap().to_owned(), std::fs::read(&path).unwrap());
            }
        }
    }
    files
}

#[test]
fn the_committed_examples_are_what_the_script_makes() {
    let committed = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/examples");
    let made = tempfile::tempdir().unwrap();
    let status = Command::new(committed.join("generate.sh"))
        .arg(made.path())
        .env("TRACEWALK_GENERATE", env!("CARGO_BIN_EXE_tracewalk-generate"))
        .status()
        .unwrap();
    assert!(status.success());
    let made = files(made.path());
    let mut committed = files(&committed);
    committed.retain(|name, _| name.components().count() > 1);
    assert!(made.keys().eq(committed.keys()), "{:?}\n{:?}", made.keys(), committed.keys());
    for (name, bytes) in &made {
        assert!(committed.get(name) == Some(bytes), "{}: run testdata/examples/generate.sh", name.display());
    }
    assert!(made.len() >= 5);
}
