//! `flow --values`: what it states is what an emulator recorded.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use serde_json::Value;

use crate::support::{corpus, example, mentions, run, run_with_kinds};

/// The instructions that `flow --values` prints.
fn instructions(arguments: &[&str]) -> Vec<Value> {
    let outcome = run(["flow"].iter().chain(arguments).chain(&["--values", "--format", "jsonl"]));
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let objects = outcome.stdout.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    objects.filter(|object| object["element"] == "instruction").collect()
}

/// The registers that an instruction wrote, with those values that are known.
fn writes(instruction: &Value) -> BTreeMap<&str, &str> {
    let writes = instruction["writes"].as_object().expect("writes");
    writes.iter().filter_map(|(name, value)| Some((name.as_str(), value.as_str()?))).collect()
}

#[test]
fn a_program_is_known_from_its_reset_on() {
    let capture = example("m3-etmv3/capture.toml");
    let found = instructions(&[capture.to_str().unwrap()]);
    let first = &found[0];
    assert_eq!(first["addr"], "0x000000c0");
    let known = found.iter().filter(|found| !writes(found).is_empty()).count();
    assert!(known > 4_000, "{known} of {}", found.len());
}

#[test]
fn formats_without_values_are_refused() {
    let capture = example("m3-etmv3/capture.toml");
    let outcome = run_with_kinds(["flow", capture.to_str().unwrap(), "--values", "--format", "csv"]);
    assert_eq!((outcome.status, outcome.stdout.as_str()), (2, ""));
    assert!(mentions(&outcome.stderr, "no_values csv --format"), "{}", outcome.stderr);
}

/// Runs a program of the corpus and compares what is stated with the record. Returns how many values were known.
fn compared(name: &str, part: &str, dump: Option<&str>) -> usize {
    let folder = corpus("values").join(name);
    let path = |file: &str| folder.join(file).to_str().unwrap().to_owned();
    let (capture, dump) = (path(&format!("{part}/capture.toml")), dump.map(path));
    let root = folder.to_str().unwrap();
    let mut arguments = vec![capture.as_str(), "--root", root];
    arguments.extend(dump.iter().flat_map(|dump| ["--dump", dump]));
    let found = instructions(&arguments);
    let record = record(&folder);
    // The trace has all of the path, or its end but for a few instructions.
    let address = |of: &Value| of["addr"].as_str().expect("an address").to_owned();
    let addresses = record.iter().map(address).collect::<Vec<_>>();
    let stated = found.iter().map(address).collect::<Vec<_>>();
    let start = if part == "full" {
        0
    } else {
        let last = addresses.len() - stated.len();
        (0..60).map(|less| last - less).find(|&at| addresses[at..].starts_with(&stated)).expect("a part of the record")
    };
    assert_eq!(addresses[start..start + stated.len()], stated[..]);
    let mut known = 0;
    for (found, recorded) in found.iter().zip(&record[start..]) {
        assert!(found["executed"].is_null() || found["executed"] == recorded["executed"], "{found} {recorded}");
        let true_writes = writes(recorded);
        for (register, value) in writes(found) {
            known += 1;
            assert_eq!(Some(&value), true_writes.get(register), "{register}: {found} {recorded}");
        }
    }
    known
}

fn record(folder: &Path) -> Vec<Value> {
    let file = std::fs::File::open(folder.join("values.jsonl.gz")).expect("a record");
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("text");
    let objects = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    objects.filter(|object| object["element"] == "instruction").collect()
}

#[tracewalk_corpus::test]
fn what_is_stated_is_what_the_emulator_recorded() {
    for (name, part) in [("telemetry", "full"), ("telemetry", "cut"), ("grid", "full"), ("grid", "cut"), ("stock", "full")] {
        let (alone, with_end) = (compared(name, part, None), compared(name, part, Some("end.log")));
        assert!(0 < alone && alone <= with_end, "{name} {part}: {alone} {with_end}");
    }
}

#[tracewalk_corpus::test]
fn the_state_of_another_moment_is_not_used() {
    let later = compared("telemetry", "full", Some("later.log"));
    assert_eq!(later, compared("telemetry", "full", None));
}
