//! Names made to attack the reader's terminal: a line break that forges a message, an escape sequence that
//! the terminal obeys. Nothing that the command prints for people contains one.

use std::fs;
use std::path::PathBuf;

use crate::support::{Outcome, example, run, saved_with};
use tempfile::TempDir;

/// The example's capture and program in a directory with such a name, with such names of functions and source files.
struct Hostile {
    folder: TempDir,
}

impl Hostile {
    fn new() -> Self {
        let hostile = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(hostile.path("")).unwrap();
        let mut program = fs::read(example("m3-etmv3/m3.elf")).unwrap();
        for (name, other) in [
            ("\0quicksort\0", "\0qui\x1b[31m\n\0"),
            ("\0main\0", "\0m\x07\rn\0"),
            ("\0work.c\0", "\0w\x1b\nk.c\0"),
            ("main.c\0", "m\u{9b}n.c\0"),
        ] {
            let places =
                (0..program.len() - name.len()).filter(|&at| program[at..].starts_with(name.as_bytes()));
            let places = places.collect::<Vec<_>>();
            assert!(!places.is_empty(), "the program has no {name:?}");
            for at in places {
                program[at..at + name.len()].copy_from_slice(other.as_bytes());
            }
        }
        fs::write(hostile.path("m3\x1b[2J.elf"), program).unwrap();
        fs::write(hostile.path("trace.bin"), fs::read(example("m3-etmv3/trace.bin")).unwrap()).unwrap();
        let description = fs::read_to_string(example("m3-etmv3/capture.toml")).unwrap();
        let description = description.replace("m3.elf", r"m3\u001b[2J.elf");
        let description = description.replace("[[image]]", "name = \"unit\\u001b[1m\\n\"\n\n[[image]]");
        fs::write(hostile.path("capture.toml"), description).unwrap();
        hostile
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("a\x1b[31m\nerror: b").join(name)
    }

    /// Runs the command, and checks that its output has no control characters for the terminal.
    fn run(&self, arguments: &[&str], capture: &str) -> Outcome {
        let capture = self.path(capture);
        let outcome = run(arguments.iter().map(std::ffi::OsStr::new).chain([capture.as_os_str()]));
        for text in [&outcome.stdout, &outcome.stderr] {
            let obeyed = text.chars().find(|character| character.is_control() && *character != '\n');
            assert_eq!(obeyed, None, "{arguments:?}: {text}");
        }
        for line in outcome.stderr.lines() {
            let kinds = ["error: ", "warning: ", "note: "];
            assert!(kinds.iter().any(|kind| line.starts_with(kind)), "{arguments:?}: {line}");
            assert!(!line.starts_with("error: b"), "{arguments:?}: {line}");
        }
        outcome
    }
}

#[test]
fn names_of_files_functions_and_sources_do_nothing_to_a_terminal() {
    let hostile = Hostile::new();
    let texts: [&[&str]; 14] = [
        &["info"],
        &["packets"],
        &["flow"],
        &["flow", "--last", "20"],
        &["profile"],
        &["profile", "--table", "lines"],
        &["profile", "--format", "folded"],
        &["profile", "--format", "callgrind"],
        &["calls"],
        &["calls", "--fold", "chains"],
        &["coverage"],
        &["coverage", "--format", "lcov"],
        &["timeline"],
        &["interrupts"],
    ];
    for arguments in texts {
        let outcome = hostile.run(arguments, "capture.toml");
        assert_eq!(outcome.status, 0, "{arguments:?}: {}", outcome.stderr);
        if !matches!(arguments[0], "info" | "packets" | "interrupts") {
            assert!(outcome.stdout.contains('\u{fffd}'), "{arguments:?}: {}", outcome.stdout);
        }
    }
    let capture = hostile.path("capture.toml");
    let images = run(["info", "--format", "csv", "--table", "images", capture.to_str().unwrap()]);
    assert!(images.stdout.contains("m3\u{fffd}[2J.elf") && !images.stdout.contains('\u{1b}'), "{}", images.stdout);
    let info = hostile.run(&["info"], "capture.toml");
    assert!(info.stdout.contains("a\u{fffd}[31m\u{fffd}error: b/m3\u{fffd}[2J.elf"), "{}", info.stdout);
}

#[test]
fn messages_about_files_are_one_line_each() {
    let hostile = Hostile::new();
    for name in ["no\x1b[2J.bin", "", "m3\x1b[2J.elf"] {
        for command in ["info", "flow", "coverage", "describe"] {
            let outcome = hostile.run(&[command, "--image", "no\nsuch\x1b.elf"], name);
            assert_eq!((outcome.status, outcome.stderr.lines().count()), (2, 1), "{}", outcome.stderr);
        }
    }
    fs::write(hostile.path("capture.toml"), "[capture]\nfile = \"trace.bin\"\n\"\\u001b[2J\\n\" = 1\n")
        .unwrap();
    let outcome = hostile.run(&["info"], "capture.toml");
    assert!(
        outcome.stderr.contains("capture.toml:3: unknown key `\u{fffd}[2J\u{fffd}`"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn arguments_that_are_refused_do_nothing_to_a_terminal() {
    let outcome = run(["flow", "a.bin", "b\x1b[2J\n.bin"]);
    assert_eq!(outcome.status, 2);
    assert!(outcome.stderr.contains("'b\u{fffd}[2J\u{fffd}.bin'"), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains('\x1b'), "{}", outcome.stderr);
}

#[test]
fn saved_results_do_nothing_to_a_terminal() {
    let hostile = Hostile::new();
    for command in ["profile", "coverage", "interrupts"] {
        let saved = hostile.path("saved");
        let outcome = hostile.run(&[command, "--save", saved.to_str().unwrap()], "capture.toml");
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        let text = fs::read_to_string(&saved).unwrap();
        assert!(!text.contains('\x1b'), "{text}");
        // A file from somebody else may contain more than this command writes.
        let hostile_names = |lines: &str| lines.replace("[\"m3", "[\"\\u001b[2Jm3").replace("/a", "/\\u001ba");
        fs::write(&saved, saved_with(&text, hostile_names)).unwrap();
        let outcome =
            hostile.run(&[command, "--image", hostile.path("m3\x1b[2J.elf").to_str().unwrap()], "saved");
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    }
}
