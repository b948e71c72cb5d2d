//! Shared code of the command's tests.

#[path = "../../../tracewalk-target/tests/chip.rs"]
pub(crate) mod chip;
pub(crate) mod firmware;
pub(crate) mod npm;
#[path = "../../../tracewalk-generate/tests/common/opencsd.rs"]
pub(crate) mod opencsd;
pub(crate) mod python;
pub(crate) mod recorded;

use std::path::{Path, PathBuf};

use assert_cmd::Command;

/// The command under test.
pub(crate) fn tracewalk() -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("tracewalk"));
    command
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        .env("COLUMNS", "100")
        .timeout(std::time::Duration::from_secs(120));
    command
}

/// The result of a run of the command.
pub(crate) struct Outcome {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs the command with these arguments.
pub(crate) fn run<A: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = A>) -> Outcome {
    let output = tracewalk().args(arguments).output().expect("the command runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the output is text");
    Outcome {
        status: output.status.code().expect("the command was not killed"),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

/// The project's own example captures.
pub(crate) fn example(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/examples").join(path)
}

/// A copy of an example in this folder; returns the description. A copy counts as another run.
pub(crate) fn copied_example(name: &str, folder: &Path) -> String {
    for entry in std::fs::read_dir(example(name)).expect("an example") {
        let file = entry.expect("an example").path();
        std::fs::copy(&file, folder.join(file.file_name().expect("a file"))).expect("room for a copy");
    }
    folder.join("capture.toml").to_str().expect("a plain name").to_owned()
}

/// A saved file with other lines before its last one, which has their number and their CRC-32.
pub(crate) fn saved_with(text: &str, change: impl FnOnce(&str) -> String) -> String {
    let lines = change(text.trim_end().rsplit_once('\n').expect("a last line").0) + "\n";
    let mut checksum = flate2::Crc::new();
    checksum.update(lines.as_bytes());
    format!("{lines}{{\"end\":[{},{}]}}\n", lines.lines().count(), checksum.sum())
}

/// A folder for the files of a test.
pub(crate) struct Folder(pub(crate) tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("room for a folder"))
    }

    pub(crate) fn file(&self, name: &str) -> String {
        self.0.path().join(name).to_str().expect("a plain name").to_owned()
    }
}

/// A path in the corpus, which is beside the project and not part of it.
pub(crate) fn corpus(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus").join(path)
}

/// The lines of `runs` that two decoders have to agree on: without the header, S and O lines, and with
/// adjacent R lines joined.
pub(crate) fn comparable(runs: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in runs.lines().filter(|line| !line.starts_with(['#', 'S', 'O'])) {
        if let (Some(last), Some((start, rest))) =
            (lines.last_mut(), line.strip_prefix("R ").and_then(|run| run.split_once(' ')))
            && let Some((head, tail)) = last.strip_prefix("R ").and_then(|run| run.split_once(' '))
            && let Some((end, isa)) = tail.split_once(' ')
            && end == start
            && rest.ends_with(&format!(" {isa}"))
        {
            *last = format!("R {head} {rest}");
            continue;
        }
        lines.push(line.to_owned());
    }
    lines
}

/// Fails at the first line that differs.
pub(crate) fn assert_same_runs(found: &[String], expected: &[String]) {
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert_eq!(found, expected, "line {index}");
    }
    assert_eq!(found.len(), expected.len(), "the number of lines");
}

/// Whether a message contains all of these things, separated by spaces: options, files, numbers, values. Its
/// wording is free.
pub(crate) fn mentions(message: &str, things: &str) -> bool {
    things.split(' ').all(|thing| message.contains(thing))
}

/// Runs a command with `--messages json`. Its stderr then has a line for each message: severity, kind, message.
pub(crate) fn run_with_kinds<A: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = A>) -> Outcome {
    let arguments = arguments.into_iter().map(|argument| argument.as_ref().to_owned());
    let outcome = run(arguments.chain(MESSAGES.map(Into::into)));
    Outcome { stderr: with_kinds(&outcome.stderr), ..outcome }
}

/// The options that make messages JSON.
pub(crate) const MESSAGES: [&str; 2] = ["--messages", "json"];

/// Messages in JSON as lines: `error: file_missing: a.bin: no such file; check the file's name`.
pub(crate) fn with_kinds(stderr: &str) -> String {
    let line = |line: &str| {
        let message = serde_json::from_str::<serde_json::Value>(line).unwrap_or_default();
        let [severity, kind, text] = ["severity", "kind", "message"].map(|field| message[field].as_str());
        match (severity, kind, text) {
            (Some(severity), Some(kind), Some(text)) => format!("{severity}: {kind}: {text}\n"),
            // Not a message.
            _ => format!("{line}\n"),
        }
    };
    stderr.lines().map(line).collect()
}

/// Runs a command with `--provenance`, and returns its outcome and the kinds of its notices, including notes.
pub(crate) fn run_with_notices<A: AsRef<std::ffi::OsStr>>(
    arguments: impl IntoIterator<Item = A>,
) -> (Outcome, Kinds) {
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let file = folder.path().join("provenance.json");
    let arguments = arguments.into_iter().map(|argument| argument.as_ref().to_owned());
    let option = std::ffi::OsString::from(format!("--provenance={}", file.display()));
    let outcome = run(arguments.chain([option]));
    let text = std::fs::read_to_string(&file).expect("a command that opens its capture writes provenance");
    let document = serde_json::from_str::<serde_json::Value>(&text).expect("provenance is JSON");
    let notices = document["notices"].as_array().expect("provenance lists notices");
    let kind = |notice: &serde_json::Value| notice["kind"].as_str().expect("each has its kind").to_owned();
    (outcome, Kinds(notices.iter().map(kind).collect()))
}

/// The kinds of notices, in the order of their appearance.
#[derive(Debug)]
pub(crate) struct Kinds(pub(crate) Vec<String>);

impl Kinds {
    pub(crate) fn has(&self, kind: &str) -> bool {
        self.0.iter().any(|one| one == kind)
    }
}
