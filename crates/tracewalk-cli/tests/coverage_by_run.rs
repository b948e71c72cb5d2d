//! Coverage that keeps runs apart: each run's result equals that of the run alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::support::{Outcome, example, mentions, run, run_with_kinds};

/// Pieces of one trace, each a run of its own.
struct Runs {
    folder: tempfile::TempDir,
    captures: Vec<String>,
}

const PIECES: usize = 4;

impl Runs {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bytes = std::fs::read(example("m3-etmv3/trace.bin")).unwrap();
        let frames = bytes.len() / 16;
        let captures = bytes.chunks(16 * frames.div_ceil(PIECES)).enumerate().map(|(index, piece)| {
            let file = folder.path().join(format!("run-{}.bin", index + 1));
            std::fs::write(&file, piece).unwrap();
            file.to_str().unwrap().to_owned()
        });
        let captures = captures.collect::<Vec<_>>();
        assert_eq!(captures.len(), PIECES);
        Self { folder, captures }
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }
}

fn image() -> [String; 2] {
    ["--image".to_owned(), example("m3-etmv3/m3.elf").to_str().unwrap().to_owned()]
}

fn coverage(files: &[String], options: &[&str]) -> Outcome {
    let source = ["--container", "frames", "--source", "0x10=etmv3,cpu=cortex-m3", "--source", "0x01=itm"];
    let is_trace = files.iter().any(|file| Path::new(file).extension().is_some_and(|found| found == "bin"));
    let source = if is_trace { &source[..] } else { &[] };
    let image = image();
    let arguments = files.iter().map(String::as_str).chain(image.iter().map(String::as_str));
    run_with_kinds(
        ["coverage"]
            .into_iter()
            .chain(arguments)
            .chain(source.iter().copied())
            .chain(options.iter().copied()),
    )
}

fn document(files: &[String], options: &[&str]) -> Value {
    let outcome = coverage(files, &[options, &["--format", "json"]].concat());
    is_of_pieces(&outcome);
    serde_json::from_str(&outcome.stdout).unwrap()
}

/// If a piece is cut inside a packet, trace is lost, and the status is 2.
fn is_of_pieces(outcome: &Outcome) {
    assert!([0, 2].contains(&outcome.status) && !mentions(&outcome.stderr, "error"), "{}", outcome.stderr);
}

type Place = (String, u64);

/// The lines, with the runs in which each ran.
fn lines(document: &Value) -> BTreeMap<Place, Option<BTreeSet<String>>> {
    let name =
        |run: &Value| document["runs"][usize::try_from(run.as_u64().unwrap()).unwrap()]["name"].clone();
    let mut lines = BTreeMap::new();
    for file in document["files"].as_array().unwrap() {
        for line in file["lines"].as_array().unwrap() {
            let place = (file["name"].as_str().unwrap().to_owned(), line["line"].as_u64().unwrap());
            let runs = line["runs"].as_u64().map(|set| {
                let set = document["run_sets"][usize::try_from(set).unwrap()].as_array().unwrap();
                set.iter().map(|run| name(run).as_str().unwrap().to_owned()).collect()
            });
            lines.insert(place, runs);
        }
    }
    lines
}

/// The lines that ran.
fn ran(document: &Value) -> BTreeSet<Place> {
    let files = document["files"].as_array().unwrap().iter();
    let ran = files.flat_map(|file| {
        let lines = file["lines"].as_array().unwrap().iter();
        let ran = lines.filter(|line| line["count"].as_u64().unwrap() > 0);
        ran.map(|line| (file["name"].as_str().unwrap().to_owned(), line["line"].as_u64().unwrap()))
    });
    ran.collect()
}

#[test]
fn each_line_ran_in_the_runs_that_alone_cover_it() {
    let runs = Runs::new();
    let together = document(&runs.captures, &["--by-run"]);
    let found = lines(&together);
    let mut alone = BTreeMap::<Place, BTreeSet<String>>::new();
    for capture in &runs.captures {
        for place in ran(&document(std::slice::from_ref(capture), &[])) {
            alone.entry(place).or_default().insert(capture.clone());
        }
    }
    for (place, names) in &found {
        assert_eq!(names.as_ref(), Some(alone.get(place).unwrap_or(&BTreeSet::new())), "{place:?}");
    }
    // The runs differ: lines of one run, of some, of all and of none.
    let sizes = found.values().flatten().map(BTreeSet::len).collect::<BTreeSet<_>>();
    assert!([0, 1, PIECES].iter().all(|size| sizes.contains(size)) && sizes.len() > 3, "{sizes:?}");
    for summary in together["runs"].as_array().unwrap() {
        let name = summary["name"].as_str().unwrap();
        let lines = alone.values().filter(|names| names.contains(name));
        assert_eq!(summary["lines"], lines.clone().count(), "{name}");
        assert_eq!(summary["lines_alone"], lines.filter(|names| names.len() == 1).count(), "{name}");
    }
    // Apart from the runs nothing changes.
    let mut without = together.clone();
    let _ = without.as_object_mut().unwrap().remove("runs");
    let _ = without.as_object_mut().unwrap().remove("run_sets");
    for file in without["files"].as_array_mut().unwrap() {
        for line in file["lines"].as_array_mut().unwrap() {
            let _ = line.as_object_mut().unwrap().remove("runs");
        }
    }
    assert_eq!(without, document(&runs.captures, &[]));
}

#[test]
fn runs_are_saved_merged_and_written_as_tables() {
    let runs = Runs::new();
    let expected = document(&runs.captures, &["--by-run"]);
    let saved = (runs.captures.iter()).map(|capture| capture.replace(".bin", ".twcov")).collect::<Vec<_>>();
    for (capture, saved) in runs.captures.iter().zip(&saved) {
        is_of_pieces(&coverage(std::slice::from_ref(capture), &["--by-run", "--save", saved]));
        assert!(
            std::fs::read_to_string(saved)
                .unwrap()
                .starts_with(r#"{"saved":"coverage","version":1,"complete":true,"runs":true}"#)
        );
    }
    // Runs saved in files stay as they are, in every order, with and without `--by-run`.
    let merged = |order: &[&String], name: &str| {
        let file = runs.file(name);
        let outcome = run(["coverage"]
            .into_iter()
            .chain(order.iter().map(|file| file.as_str()))
            .chain(["--save", &file]));
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        file
    };
    let forwards = merged(&saved.iter().collect::<Vec<_>>(), "all.twcov");
    let backwards = merged(&saved.iter().rev().collect::<Vec<_>>(), "back.twcov");
    assert_eq!(std::fs::read(&forwards).unwrap(), std::fs::read(&backwards).unwrap());
    assert_eq!(document(std::slice::from_ref(&forwards), &[]), expected);
    assert_eq!(document(&saved, &[]), expected);
    // As tables.
    let table = |name| {
        let outcome = coverage(std::slice::from_ref(&forwards), &["--format", "csv", "--table", name]);
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        outcome.stdout.lines().skip(1).map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let rows = expected["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| format!("{},{},{}", run["name"].as_str().unwrap(), run["lines"], run["lines_alone"]));
    assert_eq!(table("runs"), rows.collect());
    let rows = lines(&expected).into_iter().flat_map(|((file, line), names)| {
        names.into_iter().flatten().map(move |name| format!("{file},{line},{name}"))
    });
    assert_eq!(table("lines_by_run"), rows.collect());
}

#[test]
fn files_that_know_no_runs_are_one_each() {
    let runs = Runs::new();
    let saved = (runs.captures.iter()).map(|capture| capture.replace(".bin", ".twcov")).collect::<Vec<_>>();
    for (capture, saved) in runs.captures.iter().zip(&saved) {
        is_of_pieces(&coverage(std::slice::from_ref(capture), &["--save", saved]));
        assert!(
            std::fs::read_to_string(saved)
                .unwrap()
                .starts_with(r#"{"saved":"coverage","version":1,"complete":true}"#)
        );
    }
    let renamed = |document: Value| {
        let name = |name: String| name.replace(".bin", ".twcov");
        let lines = lines(&document).into_iter();
        lines.map(|(place, runs)| (place, runs.map(|runs| runs.into_iter().map(name).collect()))).collect()
    };
    let expected: BTreeMap<Place, Option<BTreeSet<String>>> =
        renamed(document(&runs.captures, &["--by-run"]));
    assert_eq!(lines(&document(&saved, &["--by-run"])), expected);
    // Without `--by-run` the runs are not kept apart, and no notice reports it.
    assert!(lines(&document(&saved, &[])).values().all(Option::is_none));
    // Some of the files are saved by run, some not.
    let merged = runs.file("merged.twcov");
    let outcome = run(["coverage", "--by-run", &saved[0], &saved[1], "--save", &merged]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let mixed = [merged.clone(), saved[2].clone(), runs.captures[3].clone()];
    let found: BTreeMap<Place, Option<BTreeSet<String>>> = renamed(document(&mixed, &[]));
    assert_eq!(found, expected);
    // The same run in two files is one, and causes a warning.
    let outcome = coverage(&[merged.clone(), merged.replace("merged", "copy")], &[]);
    assert_eq!(outcome.status, 2, "{}", outcome.stderr);
    let copy = runs.file("copy.twcov");
    let outcome = run(["coverage", &merged, &saved[2], "--save", &copy]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let outcome = coverage(&[merged, copy], &["--format", "none"]);
    assert!(mentions(&outcome.stderr, "same_run"), "{}", outcome.stderr);
}

#[test]
fn runs_that_nobody_kept_apart_are_no_table() {
    let runs = Runs::new();
    for table in ["runs", "lines_by_run"] {
        let outcome = coverage(&runs.captures, &["--format", "csv", "--table", table]);
        assert_eq!((outcome.status, outcome.stdout.as_str()), (2, ""), "{}", outcome.stderr);
        assert!(mentions(&outcome.stderr, "no_runs"), "{}", outcome.stderr);
    }
    let profile = runs.file("profile.twprof");
    let [option, elf] = image();
    let source = ["--container", "frames", "--source", "0x10=etmv3,cpu=cortex-m3", "--save", &profile];
    let arguments = ["profile", runs.captures[0].as_str(), &option, &elf];
    is_of_pieces(&run_with_kinds(arguments.iter().chain(&source)));
    let outcome = run_with_kinds(["coverage", "--by-run", &profile]);
    assert_eq!(outcome.status, 2, "{}", outcome.stderr);
}

#[test]
fn damaged_runs_in_a_file_are_refused() {
    let runs = Runs::new();
    let saved = runs.file("saved.twcov");
    is_of_pieces(&coverage(&runs.captures, &["--by-run", "--save", &saved]));
    let text = std::fs::read_to_string(&saved).unwrap();
    let (before, after) = text.split_once("{\"run\":[").unwrap();
    let (name, rest) = after.split_once(",\"").unwrap();
    let (bits, rest) = rest.split_once('"').unwrap();
    for damaged in [&bits[2..], &format!("{bits}01"), &format!("{}ff", &bits[..bits.len() - 2]), "x"] {
        std::fs::write(&saved, format!("{before}{{\"run\":[{name},\"{damaged}\"{rest}")).unwrap();
        let outcome = coverage(std::slice::from_ref(&saved), &[]);
        assert_eq!((outcome.status, outcome.stdout.as_str()), (2, ""), "{damaged}: {}", outcome.stderr);
    }
}
