//! Many captures as one result: the same as from the command of one answer, whatever fails on the way.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::support::{copied_example, example, run, run_with_kinds, tracewalk};

/// A directory with a capture in each of some directories.
struct Fleet {
    directory: TempDir,
    captures: Vec<String>,
}

impl Fleet {
    /// Copies of these examples in directories `0`, `1` and so on.
    fn of(names: &[&str]) -> Self {
        let mut fleet = Self { directory: tempfile::tempdir().unwrap(), captures: Vec::new() };
        names.iter().for_each(|name| fleet.add(name));
        fleet
    }

    fn add(&mut self, name: &str) {
        let folder = self.path(&format!("runs/{}", self.captures.len()));
        fs::create_dir_all(&folder).unwrap();
        self.captures.push(copied_example(name, &folder));
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// The file that the answer's command saves for captures that are followed several at a time, its status and its messages.
    fn gather(&self, answer: &str, arguments: &[&str]) -> (Vec<u8>, i32, String) {
        let (saved, table) = (self.text("gathered"), self.text("captures"));
        let _ = fs::remove_file(&saved);
        let outputs = ["--save", &saved, "--captures", &table];
        let outcome = run_with_kinds([&[answer], arguments, &outputs].concat());
        (fs::read(&saved).unwrap_or_default(), outcome.status, outcome.stderr)
    }

    /// The file that the answer's own command saves for these captures.
    fn saved(&self, answer: &str, captures: &[&str]) -> Vec<u8> {
        let saved = self.text("saved");
        let outcome = run([&[answer], captures, &["--save", &saved, "--quiet"]].concat());
        assert_eq!(outcome.status, 0, "{answer}");
        fs::read(saved).unwrap()
    }

    /// The descriptions of all captures.
    fn captures(&self) -> Vec<&str> {
        self.captures.iter().map(String::as_str).collect()
    }
}

/// The outcome of each capture, by its name without the folder, and the short name of the error.
fn outcomes(document: &Path, folder: &Path) -> BTreeMap<String, (String, String)> {
    let text = fs::read_to_string(document).unwrap();
    let document = serde_json::from_str::<serde_json::Value>(&text).unwrap();
    let rows = document["tables"][0]["rows"].as_array().unwrap();
    let row = |row: &serde_json::Value| {
        let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
        let name = Path::new(&text("capture")).strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
        (name, (text("outcome"), text("error")))
    };
    rows.iter().map(row).collect()
}

#[test]
fn a_fleet_gives_what_its_captures_give_on_any_number_of_threads() {
    let fleet =
        Fleet::of(&["m3-etmv3", "a7-etmv3", "m3-etmv3", "a15-pft", "a53-etmv4", "m3-etmv3", "m33-etmv4"]);
    let captures = fleet.captures();
    for answer in ["counts", "coverage", "profile", "interrupts"] {
        // First captures of one program, then of several.
        let of_one = [captures[0], captures[2], captures[5]];
        let expected = fleet.saved(answer, &of_one);
        for threads in ["1", "2", "7"] {
            let (found, status, said) =
                fleet.gather(answer, &[&of_one[..], &["--threads", threads]].concat());
            // Copies of one trace are counted, with a warning.
            assert!(status == 0 && said.starts_with("warning: equal_content: "), "{answer}: {said}");
            assert_eq!(said.lines().count(), 1, "{said}");
            assert!(found == expected, "{answer} on {threads} threads");
        }
        let all = fleet.saved(answer, &captures);
        for threads in ["1", "3"] {
            let arguments = [&captures[..], &["--threads", threads]].concat();
            assert!(
                fleet.gather(answer, &arguments).0 == all,
                "{answer} of several programs on {threads} threads"
            );
        }
    }
}

#[test]
fn what_cannot_be_read_is_left_out_and_named() {
    let mut fleet = Fleet::of(&["m3-etmv3", "m3-etmv3", "m3-etmv3", "m3-etmv3"]);
    let expected = fleet.saved("counts", &fleet.captures()[..2]);
    // One capture lacks its trace, one has a broken description, one does not exist.
    fs::remove_file(fleet.path("runs/2/trace.bin")).unwrap();
    fs::write(fleet.path("runs/3/capture.toml"), "[capture").unwrap();
    fleet.captures.push(fleet.text("runs/4/capture.toml"));
    let list = fleet.text("list.txt");
    fs::write(&list, fleet.captures.join("\n")).unwrap();
    let list = format!("@{list}");
    let (saved, table) = (fleet.text("gathered"), fleet.text("captures.json"));
    let outcome = run_with_kinds(["counts", &list, "--save", &saved, "--captures", &table]);
    assert_eq!(outcome.status, 2, "{}", outcome.stderr);
    let kinds = outcome.stderr.lines().map(|line| line.split(": ").nth(1).unwrap()).collect::<Vec<_>>();
    assert_eq!(kinds, ["equal_content", "captures_left_out"]);
    let found = outcomes(Path::new(&table), &fleet.path("runs"));
    let left_out = |error: &str| ("left_out".to_owned(), error.to_owned());
    let whole = || ("whole".to_owned(), String::new());
    assert_eq!(found["0/capture.toml"], whole());
    assert_eq!(found["1/capture.toml"], whole());
    assert_eq!(found["2/capture.toml"], left_out("file_missing"));
    assert_eq!(found["3/capture.toml"].0, "left_out");
    assert_eq!(found["4/capture.toml"], left_out("file_missing"));
    assert_eq!(found.len(), 5);
    assert!(fs::read(&saved).unwrap() == expected);
    // The same list from standard input.
    let text = fs::read(&list[1..]).unwrap();
    let arguments = ["counts", "@-", "--save", &saved, "-q"];
    let again = tracewalk().args(arguments).write_stdin(text).output().unwrap();
    assert_eq!(again.status.code(), Some(2));
    assert!(fs::read(&saved).unwrap() == expected);
}

#[test]
fn what_has_gaps_counts_in_part() {
    let fleet = Fleet::of(&["m3-etmv3", "m3-etmv3"]);
    let trace = fleet.path("runs/1/trace.bin");
    let mut bytes = fs::read(&trace).unwrap();
    bytes.truncate(4000);
    bytes[2000..2016].fill(0);
    fs::write(&trace, bytes).unwrap();
    let (saved, table) = (fleet.text("gathered"), fleet.text("captures.json"));
    let outcome = run_with_kinds(["counts", &fleet.text("runs"), "--save", &saved, "--captures", &table]);
    assert_eq!(outcome.status, 2);
    let found = outcomes(Path::new(&table), &fleet.path("runs"));
    assert_eq!(found["0"], ("whole".to_owned(), String::new()));
    assert_eq!(found["1"].0, "partial");
    assert!(!found["1"].1.is_empty());
}

#[test]
fn a_run_goes_on_from_its_file_and_adds_what_is_new() {
    let mut fleet = Fleet::of(&["m3-etmv3", "a7-etmv3"]);
    let (state, runs) = (fleet.text("state"), fleet.text("runs"));
    let gather = |fleet: &Fleet| {
        let saved = fleet.text("gathered");
        let outcome = run_with_kinds(["counts", &runs, "--save", &saved, "--resume", &state, "--stats"]);
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        let statistics = outcome.stderr.lines().find(|line| line.starts_with('{')).unwrap();
        let statistics = serde_json::from_str::<serde_json::Value>(statistics).unwrap();
        (fs::read(saved).unwrap(), statistics["bytes"].as_u64().unwrap())
    };
    let (_, first) = gather(&fleet);
    let (again, nothing) = gather(&fleet);
    assert!(first > 0);
    assert_eq!(nothing, 0);
    assert!(fleet.gather("counts", &[&runs]).0 == again);
    fleet.add("m3-etmv3");
    let (more, new) = gather(&fleet);
    assert!(new > 0 && new < first);
    assert!(fleet.gather("counts", &[&runs]).0 == more);
    // Other names for the same captures change nothing.
    let other = fleet.path("runs/../runs").to_str().unwrap().to_owned();
    let saved = fleet.text("gathered");
    let outcome = run(["counts", &other, "--save", &saved, "--resume", &state, "-q"]);
    assert_eq!(outcome.status, 0);
    assert!(fs::read(&saved).unwrap() == more);
}

#[test]
fn a_file_that_does_not_fit_is_not_gone_on_from() {
    let fleet = Fleet::of(&["m3-etmv3", "m3-etmv3"]);
    let (state, runs, saved) = (fleet.text("state"), fleet.text("runs"), fleet.text("gathered"));
    let gather = |more: &[&str]| {
        let (answer, more) = match more {
            ["profile"] => ("profile", &[][..]),
            more => ("counts", more),
        };
        run_with_kinds([&[answer, &runs, "--save", &saved, "--resume", &state], more].concat())
    };
    let refused = |more: &[&str], kind: &str| {
        let before = fs::read(&state).unwrap();
        let outcome = gather(more);
        assert_eq!(outcome.status, 2);
        assert!(outcome.stderr.starts_with(&format!("error: {kind}: ")), "{}", outcome.stderr);
        assert!(fs::read(&state).unwrap() == before, "the file is as it was");
    };
    assert_eq!(gather(&[]).status, 0);
    refused(&["profile"], "resume");
    refused(&["--trust-image"], "resume");
    let whole = fs::read(&state).unwrap();
    for cut in [3, 100, whole.len() / 2, whole.len() - 2] {
        fs::write(&state, &whole[..cut]).unwrap();
        refused(&[], "resume");
    }
    fs::write(&state, "something else\n").unwrap();
    refused(&[], "resume");
    fs::write(&state, &whole).unwrap();
    let trace = fleet.path("runs/0/trace.bin");
    let mut bytes = fs::read(&trace).unwrap();
    bytes.truncate(bytes.len() - 16);
    fs::write(&trace, bytes).unwrap();
    refused(&[], "capture_changed");
}

#[test]
fn results_among_the_captures_are_no_captures_and_saved_files_add_up() {
    let fleet = Fleet::of(&["m3-etmv3", "m3-etmv3", "m3-etmv3"]);
    let runs = fleet.text("runs");
    let all = fleet.gather("counts", &[&runs]).0;
    // One capture is replaced by its saved file, under its name in the directory.
    let saved = fleet.text("runs/2.twcounts");
    let outcome = run(["counts", &fleet.text("runs/2"), "--save", &saved, "-q"]);
    assert_eq!(outcome.status, 0);
    fs::remove_dir_all(fleet.path("runs/2")).unwrap();
    // A file saved by another answer is left out.
    let profile = fleet.text("runs/0.twprof");
    assert_eq!(run(["profile", &fleet.text("runs/0"), "--save", &profile, "-q"]).status, 0);
    let (result, state) = (fleet.text("runs/all.twcounts"), fleet.text("runs/state"));
    for _ in 0..2 {
        let outcome = run_with_kinds(["counts", &runs, "--save", &result, "--resume", &state]);
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        assert!(fs::read(&result).unwrap() == all);
    }
    // If named explicitly, that file is refused.
    let outcome = run_with_kinds(["counts", &runs, &profile, "--save", &result]);
    assert_eq!(outcome.status, 2);
    assert!(outcome.stderr.starts_with("error: other_kind: "), "{}", outcome.stderr);
}

#[test]
fn trace_bytes_are_taken_by_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = fs::read(example("m3-etmv3/trace.bin")).unwrap();
    for name in ["a.bin", "b.bin", "c.raw"] {
        fs::write(folder.path().join(name), &bytes).unwrap();
    }
    let text = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (image, saved) = (example("m3-etmv3/m3.elf"), text("saved"));
    let image = image.to_str().unwrap();
    let here = folder.path().to_str().unwrap();
    let found = |arguments: &[&str]| {
        let table = text("table.json");
        let _ = fs::remove_file(&table);
        let all = ["counts", here, "--image", image, "--save", &saved, "--captures", &table];
        let outcome = run_with_kinds([&all[..], arguments].concat());
        let written = fs::read_to_string(&table).unwrap_or_default();
        let document = serde_json::from_str::<serde_json::Value>(&written).unwrap_or_default();
        let rows = document["tables"][0]["rows"].as_array().map_or(0, Vec::len);
        (rows, outcome)
    };
    let (rows, outcome) = found(&[]);
    assert_eq!((rows, outcome.status), (0, 2));
    assert!(outcome.stderr.starts_with("error: no_captures: "), "{}", outcome.stderr);
    if cfg!(feature = "full") {
        assert_eq!(found(&["--match", "*.bin"]).0, 2);
        assert_eq!(found(&["--match", "*.bin", "--match", "c.*"]).0, 3);
        assert_eq!(found(&["--match", "b.bin"]).0, 1);
        assert_eq!(found(&["--match", &format!("{here}/c*")]).0, 1);
        // A place named twice counts once.
        assert_eq!(found(&["--match", "*.bin", &text("a.bin"), here]).0, 2);
    }
}

#[test]
fn a_directory_with_a_description_is_one_capture_and_an_error_says_so() {
    let fleet = Fleet::of(&["m3-etmv3"]);
    let (runs, folder) = (fleet.text("runs"), fleet.text("runs/0"));
    let expected = fleet.saved("counts", &[&folder]);
    for place in [&runs, &folder] {
        let (found, status, said) = fleet.gather("counts", &[place]);
        assert_eq!((status, said.as_str()), (0, ""));
        assert!(found == expected);
    }
    if cfg!(feature = "full") {
        for place in [&runs, &folder] {
            let (found, status, said) = fleet.gather("counts", &[place, "--match", "*.bin"]);
            assert_eq!((found.len(), status), (0, 2));
            assert!(
                said.starts_with("error: no_captures: ") && crate::support::mentions(&said, &folder),
                "{said}"
            );
        }
        assert!(fleet.gather("counts", &[&runs, "--match", "0"]).0 == expected);
    }
}

#[test]
fn no_result_replaces_what_is_read() {
    let fleet = Fleet::of(&["m3-etmv3"]);
    let (runs, trace) = (fleet.text("runs"), fleet.text("runs/0/trace.bin"));
    let before = fs::read(&trace).unwrap();
    for option in ["--save", "-o", "--resume", "--captures"] {
        let saved = fleet.text("saved");
        let mut arguments = vec!["counts", &runs, option, &trace];
        if option != "--save" {
            arguments.extend(["--save", &saved]);
        }
        let outcome = run_with_kinds(arguments);
        assert_eq!(outcome.status, 2, "{option}");
        assert!(fs::read(&trace).unwrap() == before, "{option}");
    }
}

/// A report of a directory needs no saved file in between, and finds the programs again when every capture is known already.
#[test]
fn a_directory_is_reported_at_once_and_again_from_the_file_of_a_run() {
    let fleet = Fleet::of(&["m3-etmv3", "m3-etmv3"]);
    let (runs, state) = (fleet.text("runs"), fleet.text("state"));
    for answer in ["coverage", "profile", "interrupts", "counts"] {
        let _ = fs::remove_file(&state);
        let named = run([&[answer, "-q", "--format", "json"], &fleet.captures()[..]].concat());
        assert_eq!(named.status, 0, "{}", named.stderr);
        let tables = |text: &str| {
            let mut document = serde_json::from_str::<serde_json::Value>(text).unwrap();
            // The names of captures differ, and the time of the report.
            document
                .as_object_mut()
                .unwrap()
                .retain(|key, _| matches!(&**key, "files" | "tables" | "sources"));
            document
        };
        for _ in 0..2 {
            let found = run([answer, "-q", &runs, "--format", "json", "--resume", &state]);
            assert_eq!(found.status, 0, "{answer}: {}", found.stderr);
            if answer == "counts" {
                assert_eq!(found.stdout.lines().count(), named.stdout.lines().count());
            } else {
                assert_eq!(tables(&found.stdout)["files"], tables(&named.stdout)["files"], "{answer}");
                assert_eq!(found.stdout.len() / 1000, named.stdout.len() / 1000, "{answer}");
            }
        }
    }
}

/// Captures that are named one by one are followed one after the other: a broken one is named, and the others count.
#[test]
fn a_broken_capture_among_named_ones_is_left_out() {
    let mut fleet = Fleet::of(&["m3-etmv3", "m3-etmv3"]);
    let expected = fleet.saved("coverage", &fleet.captures());
    fleet.captures.insert(1, fleet.text("runs/9/capture.toml"));
    let saved = fleet.text("gathered");
    let outcome = run_with_kinds([&["coverage", "--save", &saved], &fleet.captures()[..]].concat());
    assert_eq!(outcome.status, 2);
    assert!(outcome.stderr.contains("captures_left_out: "), "{}", outcome.stderr);
    assert!(fs::read(&saved).unwrap() == expected);
    // Without any that count, the reason is the error.
    let outcome = run_with_kinds(["coverage", &fleet.captures[1], &fleet.text("runs/8")]);
    assert!(
        outcome.stderr.lines().any(|line| line.starts_with("error: file_missing: ")),
        "{}",
        outcome.stderr
    );
}
