//! Lists the files outside the core crate that name a protocol.

use std::fs;
use std::path::{Path, PathBuf};

/// The crates that know captures, and which configuration decodes which source.
const CRATES: [&str; 5] =
    ["tracewalk-input", "tracewalk-analysis", "tracewalk-report", "tracewalk-session", "tracewalk-cli"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the sources") {
        let path = entry.expect("the sources").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Whether the file's code names the protocol; its tests and comments may.
fn names(file: &Path, protocol: &str) -> bool {
    let text = fs::read_to_string(file).expect("a source");
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let code = code.lines().map(|line| line.split("//").next().unwrap_or_default());
    let mut words = code.flat_map(|line| line.split(|character: char| !character.is_ascii_alphanumeric()));
    words.any(|word| word.to_ascii_lowercase().starts_with(protocol))
}

/// ETMv4 is the protocol of executed instructions that was added last: `docs/dev/adding-a-protocol.md` lists the files that it took.
#[test]
fn the_files_that_name_the_newest_protocol_are_those_that_the_document_lists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for name in CRATES {
        sources(&root.join("crates").join(name).join("src"), &mut files);
    }
    assert!(files.len() > 200, "{}", files.len());
    let is_test =
        |path: &Path| path.ends_with("tests.rs") || path.components().any(|part| part.as_os_str() == "tests");
    let naming = files.iter().filter(|file| !is_test(file) && names(file, "etmv4"));
    let mut naming = naming
        .map(|file| file.strip_prefix(&root).expect("below the root").to_string_lossy().replace('\\', "/"))
        .collect::<Vec<_>>();
    naming.sort();
    let document = fs::read_to_string(root.join("docs/dev/adding-a-protocol.md")).expect("the document");
    let section = document.split("## Outside the core").nth(1).expect("the section");
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `crates/")?.split_once('`'));
    let mut listed = rows.map(|(file, _)| format!("crates/{file}")).collect::<Vec<_>>();
    listed.sort();
    assert_eq!(naming, listed);
}
