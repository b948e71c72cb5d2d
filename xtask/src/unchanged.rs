//! `unchanged`: skips a slow check if everything that it reads is the same as when it last passed: sources,
//! expected files, and the versions of the programs that it runs.
//!
//! `.ci/passed` contains a SHA-256 of all inputs for each such check. `cargo xtask unchanged NAME` succeeds
//! and prints a line if the hash is the same. `cargo xtask unchanged NAME --record` stores the hash;
//! `.ci/run` calls it after a check has passed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

use crate::process::output;
use crate::{Answer, Outcome, workspace};

/// The inputs of a check.
struct Inputs {
    check: &'static str,
    /// Files and folders, relative to the workspace; `*` is any single folder.
    paths: &'static [&'static str],
    /// Commands that print the version of a program.
    programs: &'static [&'static [&'static str]],
}

const INPUTS: &[Inputs] = &[
    Inputs {
        check: "instructions",
        // The room `isa`, and the vocabulary that it may use.
        paths: &[
            "crates/tracewalk/src/isa",
            "crates/tracewalk/src/ids.rs",
            "crates/tracewalk/src/span.rs",
            "crates/tracewalk/src/cursor.rs",
            "crates/tracewalk/src/plain.rs",
            "xtask/src/check_isa.rs",
            "xtask/src/disassembly",
            "xtask/src/disassembly.rs",
            "xtask/src/process.rs",
        ],
        programs: &[
            &["arm-none-eabi-gcc", "--version"],
            &["arm-none-eabi-gcc", "-print-multi-lib"],
            &["arm-none-eabi-objdump", "--version"],
            &["aarch64-linux-gnu-objdump", "--version"],
            // The A64 code that it disassembles is outside the project.
            &[
                "sha256sum",
                "/usr/aarch64-linux-gnu/lib/libc.so.6",
                "/usr/aarch64-linux-gnu/lib/libm.so.6",
                "/usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1",
            ],
        ],
    },
    Inputs {
        check: "records",
        paths: &[
            "testdata/crashes",
            "testdata/firmware",
            "crates/tracewalk-generate/src",
            "crates/tracewalk/src/isa",
            "crates/tracewalk/src/program.rs",
            "crates/tracewalk/src/program",
            "crates/tracewalk/src/ids.rs",
            "crates/tracewalk/src/span.rs",
            "crates/tracewalk/src/cursor.rs",
            "crates/tracewalk/src/plain.rs",
        ],
        programs: &[
            &["arm-none-eabi-gcc", "--version"],
            &["aarch64-linux-gnu-gcc", "--version"],
            &["qemu-system-arm", "--version"],
            &["qemu-system-aarch64", "--version"],
            &["gdb-multiarch", "--version"],
            &["cc", "--version"],
        ],
    },
    Inputs {
        check: "dependencies",
        // The licence and dependencies of a published version do not change.
        paths: &[
            "Cargo.lock",
            "Cargo.toml",
            "deny.toml",
            "crates/*/Cargo.toml",
            "benches/Cargo.toml",
            "xtask/Cargo.toml",
        ],
        programs: &[],
    },
];

/// The file with the hashes of the checks that passed.
const PASSED: &str = ".ci/passed";

/// Runs the task.
pub(crate) fn run() -> Answer {
    let arguments = std::env::args().skip(2).collect::<Vec<_>>();
    let (name, record) = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [name] => (*name, false),
        [name, "--record"] => (*name, true),
        _ => return Err("expected the name of a check, and --record or nothing".to_owned()),
    };
    let known = || INPUTS.iter().map(|inputs| inputs.check).collect::<Vec<_>>().join(", ");
    let inputs = INPUTS
        .iter()
        .find(|inputs| inputs.check == name)
        .ok_or_else(|| format!("found {name:?}, expected one of {}", known()))?;
    let root = workspace();
    let versions = inputs.programs.iter().map(|words| output(Command::new(words[0]).args(&words[1..])));
    let hash = hash(&root, inputs.paths, &versions.collect::<Result<Vec<_>, _>>()?)?;
    let file = root.join(PASSED);
    let mut passed = read(&fs::read_to_string(&file).unwrap_or_default());
    if record {
        passed.insert(name.to_owned(), hash);
        fs::write(&file, written(&passed)).map_err(|error| format!("{}: {error}", file.display()))?;
        return Ok(Outcome::Done(format!("written to {PASSED}: commit it")));
    }
    match passed.get(name) {
        Some(before) if *before == hash => {
            Ok(Outcome::Done(format!("{name} passed with the same inputs and programs, {}", short(&hash))))
        }
        Some(before) => Err(format!("{name} passed with {}, but this is {}", short(before), short(&hash))),
        None => Err(format!("{name} is not in {PASSED}")),
    }
}

/// A hash of everything in `paths`, names included, and of `versions`.
fn hash(root: &Path, paths: &[&str], versions: &[String]) -> Result<String, String> {
    let mut files = Vec::new();
    for path in paths {
        match path.split_once("/*/") {
            None => gather(&root.join(path), &mut files)?,
            Some((folder, inside)) => {
                for entry in entries(&root.join(folder))? {
                    gather(&entry.join(inside), &mut files)?;
                }
            }
        }
    }
    files.sort();
    files.dedup();
    let mut hasher = Sha256::new();
    let mut add = |bytes: &[u8]| {
        // Lengths separate the end of one part from the beginning of the next.
        hasher.update((bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    for file in &files {
        add(file.strip_prefix(root).unwrap_or(file).to_string_lossy().as_bytes());
        add(&fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?);
    }
    versions.iter().for_each(|version| add(version.as_bytes()));
    let mut text = String::new();
    for byte in hasher.finalize() {
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

/// The paths in a folder.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let entries = fs::read_dir(folder).map_err(failed)?;
    entries.map(|entry| Ok(entry.map_err(failed)?.path())).collect()
}

fn gather(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    if fs::metadata(path).map_err(failed)?.is_file() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in entries(path)? {
        gather(&entry, files)?;
    }
    Ok(())
}

fn read(text: &str) -> BTreeMap<String, String> {
    let entries = text.lines().filter_map(|line| line.split_once(' '));
    entries.map(|(check, hash)| (check.to_owned(), hash.to_owned())).collect()
}

fn written(passed: &BTreeMap<String, String>) -> String {
    passed.iter().map(|(check, hash)| format!("{check} {hash}\n")).collect()
}

fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_there() {
        for inputs in INPUTS {
            hash(&workspace(), inputs.paths, &[]).unwrap_or_else(|error| panic!("{}: {error}", inputs.check));
        }
    }

    #[test]
    fn whatever_changes_changes_the_hash() {
        let folder = std::env::temp_dir().join(format!("tracewalk-unchanged-{}", std::process::id()));
        let write = |name: &str, text: &str| {
            let file = folder.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        let now = |versions: &[String]| hash(&folder, &["a", "b.rs", "c/*/d.toml"], versions).unwrap();
        let version = ["1.0".to_owned()];
        write("a/deep/one.rs", "1");
        write("b.rs", "2");
        write("c/one/d.toml", "1");
        write("c/one/e.toml", "1");
        let first = now(&version);
        assert_eq!(first, now(&version));
        assert_ne!(first, now(&["1.1".to_owned()]), "another program");
        write("a/deep/one.rs", "3");
        assert_ne!(first, now(&version), "another text");
        write("a/deep/one.rs", "1");
        assert_eq!(first, now(&version));
        fs::rename(folder.join("a/deep/one.rs"), folder.join("a/deep/two.rs")).unwrap();
        assert_ne!(first, now(&version), "another name");
        write("a/deep/one.rs", "1");
        fs::remove_file(folder.join("a/deep/two.rs")).unwrap();
        write("a/new.rs", "");
        assert_ne!(first, now(&version), "another file");
        fs::remove_file(folder.join("a/new.rs")).unwrap();
        write("c/one/e.toml", "2");
        assert_eq!(first, now(&version), "nobody reads it");
        write("c/two/d.toml", "1");
        assert_ne!(first, now(&version), "a file in a new folder");
        fs::remove_file(folder.join("b.rs")).unwrap();
        assert!(hash(&folder, &["a", "b.rs"], &version).is_err(), "a path that is gone");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_is_written_is_read_again() {
        let passed = read("records abc\ninstructions def\n");
        assert_eq!(read(&written(&passed)), passed);
        assert_eq!(passed["records"], "abc");
    }
}
