//! Memory in the formats of debuggers, through the command. What each form holds is tested in `tracewalk-input`, what a
//! session makes of it in `tracewalk-session`.

use std::path::{Path, PathBuf};

use crate::support::{example, mentions, run, run_with_kinds, tracewalk};

/// A tool's dump, from `testdata/dumps`.
fn written(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/dumps").join(name)
}

/// The command's arguments for a dump with the example's program.
fn flow(dump: &str) -> Vec<String> {
    let image = example("m0-crash-mtb/m0-crash.elf").to_str().unwrap().to_owned();
    ["flow", dump, "--format", "runs", "--image", &image].map(str::to_owned).to_vec()
}

#[test]
fn a_dump_may_come_on_standard_input() {
    let text = std::fs::read(written("gdb-x.txt")).unwrap();
    let output = tracewalk().args(flow("-")).write_stdin(text).output().unwrap();
    let expected = std::fs::read_to_string(example("m0-crash-mtb/runs.txt")).unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

#[test]
fn a_broken_dump_is_refused_in_one_sentence_and_a_missing_part_is_named() {
    let text = std::fs::read_to_string(written("gdb.hex")).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    std::fs::write(path, text.replacen("AC01", "AD01", 1)).unwrap();
    for command in ["info", "packets", "flow"] {
        let outcome = run_with_kinds([command, path]);
        assert_eq!((outcome.status, outcome.stdout.as_str()), (2, ""), "{}", outcome.stderr);
        assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
        assert!(outcome.stderr.starts_with("error: "), "{}", outcome.stderr);
        assert!(mentions(&outcome.stderr, ":3:"), "{}", outcome.stderr);
    }
    let lines = text.lines().enumerate().filter(|(line, _)| *line != 3);
    std::fs::write(path, lines.map(|(_, line)| format!("{line}\n")).collect::<String>()).unwrap();
    let outcome = run(flow(path));
    assert_eq!(outcome.status, 2, "{}", outcome.stderr);
    assert!(mentions(&outcome.stderr, "16 0x20001020 0x2000102f"), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("--image"), "{}", outcome.stderr);
}
