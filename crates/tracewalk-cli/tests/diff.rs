//! `diff`, between traces of a recorded run and of the same run with something changed in its record.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::support::firmware::{Firmware, Setup};
use crate::support::{Outcome, corpus, example, run, run_with_kinds};
use serde_json::{Value, json};
use tempfile::TempDir;
use tracewalk::ids::Exception;
use tracewalk_generate::path::{Executed, Step};

const M3: Setup =
    Setup { protocol: "etmv3", cpu: "cortex-m3", etmcr: 0, etmidr: None, etmccer: None, timestamps: None };

struct Captures {
    folder: TempDir,
    firmware: Firmware,
}

impl Captures {
    fn of(program: &str) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), firmware: Firmware::load(program) }
    }

    /// Writes the trace that a trace unit generates for the current path.
    fn write(&self, name: &str, setup: &Setup) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, self.firmware.trace(setup).bytes).unwrap();
        path
    }

    fn diff(&self, captures: [&Path; 2], setup: &Setup, options: &[&str]) -> Outcome {
        let source = setup.option();
        let common = ["diff", "--quiet", "--container", "raw", "--source", &source, "--image"];
        let image = self.firmware.file.to_str().unwrap();
        let captures = captures.map(|path| path.to_str().unwrap());
        run(common.iter().chain([&image]).chain(&captures).chain(options))
    }

    fn document(&self, captures: [&Path; 2], setup: &Setup, options: &[&str]) -> (i32, Value) {
        let outcome = self.diff(captures, setup, &[options, &["--format", "json"]].concat());
        assert_eq!(outcome.stderr, "");
        let document: Value = serde_json::from_str(&outcome.stdout).unwrap();
        assert_eq!((&document["format"], &document["version"]), (&json!("tracewalk diff"), &json!(1)));
        (outcome.status, document)
    }

    fn steps(&mut self) -> &mut Vec<Step> {
        &mut self.firmware.path.steps
    }

    /// The last instruction before a step, and the number of instructions.
    fn before(&self, step: usize) -> (Executed, usize) {
        let executed = self.firmware.path.steps[..step].iter().filter_map(|step| match step {
            Step::Instruction(executed) => Some(*executed),
            _ => None,
        });
        (executed.clone().next_back().unwrap(), executed.count())
    }
}

#[tracewalk_corpus::test]
fn a_run_does_not_differ_from_itself_however_it_is_traced() {
    let captures = Captures::of("m3");
    let plain = captures.write("plain.bin", &M3);
    let outcome = captures.diff([&plain, &plain], &M3, &[]);
    assert_eq!((outcome.status, outcome.stdout.lines().count(), outcome.stderr.as_str()), (0, 2, ""));
    let (status, document) = captures.document([&plain, &plain], &M3, &[]);
    assert_eq!(
        (status, &document["same"], &document["sources"][0]["divergence"]),
        (0, &json!(true), &json!(null))
    );
    for [a, b] in
        [["mix-m3-etmv3", "mix-m3-etmv3-broadcast"], ["mix-a7-etmv3-original", "mix-a7-etmv3-alternative"]]
    {
        let a = corpus(&format!("synthetic/{a}"));
        let b = a.with_file_name(b);
        let image = a.join("program.elf");
        let arguments = [Path::new("diff"), Path::new("--quiet"), &a, &b, Path::new("--image"), &image];
        let outcome = run(arguments);
        let lines = outcome.stdout.lines().count();
        assert_eq!((outcome.status, lines), (0, 2), "{}: {}", a.display(), outcome.stderr);
    }
}

/// The first half of a capture is the same up to its end.
#[test]
fn a_half_ends_and_does_not_part() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, image) = (example("m3-etmv3/trace.bin"), example("m3-etmv3/m3.elf"));
    let bytes = std::fs::read(&whole).unwrap();
    let half = folder.path().join("half.bin");
    // Whole frames.
    std::fs::write(&half, &bytes[..bytes.len() / 32 * 16]).unwrap();
    for (a, b, ends) in [(&whole, &half, [false, true]), (&half, &whole, [true, false])] {
        let arguments = [Path::new("diff"), Path::new("--quiet"), a, b, Path::new("--image"), &image];
        let outcome = run(arguments.iter().chain(&[Path::new("--format"), Path::new("json")]));
        assert_eq!(outcome.status, 1, "{}", outcome.stderr);
        let document: Value = serde_json::from_str(&outcome.stdout).unwrap();
        let parting = &document["sources"][0]["divergence"];
        assert_eq!(
            [&parting["a"]["ends"], &parting["b"]["ends"]],
            ends.each_ref().map(|ends| Value::Bool(*ends)).each_ref()
        );
        let text = run(arguments).stdout;
        assert!(!text.contains("paths part"), "{text}");
    }
}

#[test]
fn a_missing_interrupt_is_found_where_the_record_has_it() {
    let mut captures = Captures::of("m3");
    let with = captures.write("with.bin", &M3);
    let taken = |step: &Step| matches!(step, Step::Exception(taken) if taken.exception == Exception::M(15));
    let from = captures.steps().iter().enumerate().filter(|(_, step)| taken(step)).nth(3).unwrap().0;
    let until =
        from + captures.steps()[from..].iter().position(|step| *step == Step::ExceptionReturn).unwrap();
    assert!(matches!(captures.steps()[until + 1], Step::Instruction(_)), "nothing is tail-chained to it");
    let (last, count) = captures.before(from);
    let Step::Instruction(next) = captures.steps()[until + 1] else { unreachable!() };
    captures.steps().drain(from..=until);
    let without = captures.write("without.bin", &M3);

    let (status, document) = captures.document([&with, &without], &M3, &[]);
    assert_eq!((status, &document["same"]), (1, &json!(false)));
    let source = &document["sources"][0];
    let divergence = &source["divergence"];
    assert_eq!(divergence["common"], json!(count));
    assert_eq!(divergence["last"]["address"], json!(last.address.to_string()));
    assert_eq!(divergence["last"]["function"], json!("quicksort"));
    assert!(divergence["last"]["file"].as_str().unwrap().ends_with("work.c"));
    assert_eq!(
        (&divergence["a"]["next"][0]["what"], &divergence["a"]["next"][0]["exception"]),
        (&json!("exception"), &json!(15))
    );
    assert_eq!(divergence["b"]["next"][0]["address"], json!(next.address.to_string()));
    for side in ["a", "b"] {
        let stack = divergence[side]["stack"].as_array().unwrap().iter();
        let stack = stack.map(|frame| frame["function"].as_str().unwrap()).collect::<Vec<_>>();
        assert_eq!(stack, ["quicksort", "quicksort", "main", "Reset_Handler"], "{side}");
    }
    let functions = source["functions"].as_array().unwrap();
    let calls = |name: &str| functions.iter().find(|it| it["name"] == name).map(|it| it["calls"].clone());
    assert_eq!(calls("SysTick_Handler"), Some(json!([65, 64])));
    assert_eq!(calls("quicksort"), None);

    // Apart from interrupts, the program itself did the same.
    let (status, document) = captures.document([&with, &without], &M3, &["--ignore-interrupts"]);
    assert_eq!((status, &document["sources"][0]["divergence"]), (1, &json!(null)));
    let text = captures.diff([&with, &without], &M3, &[]).stdout;
    assert!(
        text.contains(&format!("the paths part after {count} instructions, at {}", last.address)),
        "{text}"
    );
    assert!(text.contains("takes SysTick"), "{text}");
}

#[test]
fn a_run_that_ends_early_covers_less() {
    let mut captures = Captures::of("m3");
    let whole = captures.write("whole.bin", &M3);
    let half = captures.steps().len() / 20;
    captures.steps().truncate(half);
    let part = captures.write("part.bin", &M3);
    let (status, document) = captures.document([&whole, &part], &M3, &[]);
    assert_eq!(status, 1);
    let source = &document["sources"][0];
    assert_eq!(source["divergence"]["b"]["next"], json!([{ "what": "end", "text": "ends" }]));
    assert_eq!(source["divergence"]["common"], source["instructions"][1]);
    assert_eq!(source["divergence"]["a"]["next"].as_array().unwrap().len(), 5);

    // Lost instructions are those covered by the one capture and not by the other.
    let covered = |capture: &Path| {
        let option = M3.option();
        let image = captures.firmware.file.to_str().unwrap();
        let arguments =
            ["coverage", "--quiet", "--format", "json", "--container", "raw", "--source", &option];
        let outcome = run(arguments.iter().chain(&[capture.to_str().unwrap(), "--image", image]));
        let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
        let mut lines = BTreeSet::new();
        for file in report["files"].as_array().unwrap() {
            for line in file["lines"].as_array().unwrap().iter().filter(|line| line["count"] != 0) {
                lines.insert((file["name"].as_str().unwrap().to_owned(), line["line"].as_u64().unwrap()));
            }
        }
        lines
    };
    let (in_whole, in_part) = (covered(&whole), covered(&part));
    let expected = in_whole.difference(&in_part).cloned().collect::<BTreeSet<_>>();
    let mut lost = BTreeSet::new();
    for file in source["coverage"]["lost"].as_array().unwrap() {
        for line in file["lines"].as_array().unwrap() {
            lost.insert((file["file"].as_str().unwrap().to_owned(), line.as_u64().unwrap()));
        }
    }
    assert!(lost.len() > 20 && source["coverage"]["gained"] == json!([]));
    assert_eq!(lost, expected);
    // In the other direction they are gained.
    let (_, backwards) = captures.document([&part, &whole], &M3, &[]);
    assert_eq!(backwards["sources"][0]["coverage"]["gained"], source["coverage"]["lost"]);
}

#[test]
fn functions_that_took_longer_are_named_though_the_path_is_the_same() {
    let captures = Captures::of("a9");
    let setup = Setup { protocol: "pft", cpu: "cortex-a15", etmcr: 1 << 12, ..Setup::default() };
    let fast = captures.write("fast.bin", &setup);
    // One of the one-byte atoms with their own count gets a higher count (IHI 0035B, 4.5.3).
    let option = setup.option();
    let image = captures.firmware.file.to_str().unwrap();
    let arguments = ["packets", "--quiet", "--format", "jsonl", "--container", "raw", "--source", &option];
    let outcome = run(arguments.iter().chain(&[fast.to_str().unwrap(), "--image", image]));
    let packets = outcome.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let short = packets.filter(|it| it["packet"] == "atom" && it["bytes"].as_str().unwrap().len() == 2);
    let counted = short.filter(|it| (2..8).contains(&it["cycles"].as_u64().unwrap_or(0))).nth(100).unwrap();
    let mut bytes = std::fs::read(&fast).unwrap();
    let at = usize::try_from(counted["offset"].as_u64().unwrap()).unwrap();
    let cycles = counted["cycles"].as_u64().unwrap();
    bytes[at] = bytes[at] & 0b1100_0011 | 0b0010_1000;
    let slow = captures.folder.path().join("slow.bin");
    std::fs::write(&slow, bytes).unwrap();
    let (status, document) = captures.document([&fast, &slow], &setup, &[]);
    let source = &document["sources"][0];
    assert_eq!((status, &source["divergence"]), (1, &json!(null)));
    let functions = source["functions"].as_array().unwrap();
    assert_eq!(functions.len(), 1, "{functions:?}");
    let own = &functions[0]["own"];
    assert_eq!(own[0]["instructions"], own[1]["instructions"]);
    let more = own[1]["cycles"].as_u64().unwrap() - own[0]["cycles"].as_u64().unwrap();
    assert_eq!(more, 10 - cycles);
}

#[test]
fn other_programs_and_missing_files_are_errors() {
    let m3 = Captures::of("m3");
    let capture = m3.write("m3.bin", &M3);
    let missing = m3.folder.path().join("missing.bin");
    let outcome = m3.diff([&capture, &missing], &M3, &[]);
    assert_eq!(outcome.status, 2);
    let examples = [example("m3-etmv3/capture.toml"), example("a7-etmv3/capture.toml")];
    let outcome = run_with_kinds([Path::new("diff"), Path::new("--quiet"), &examples[0], &examples[1]]);
    assert_eq!(outcome.status, 2);
    assert!(outcome.stderr.contains("error: other_program"), "{}", outcome.stderr);
}

#[test]
fn sources_with_different_trace_ids_are_both_named() {
    let capture = |name: &str| example(name).join("capture.toml").to_str().unwrap().to_owned();
    let (a7, a15) = (capture("a7-etmv3"), capture("a15-pft"));
    let outcome = run(["diff", "--quiet", &a7, &a15]);
    assert_eq!((outcome.status, outcome.stderr.as_str()), (1, ""));
    let title = format!("A {a7}, B {a15}, trace ID 0x10 in A, 0x13 in B");
    assert_eq!(outcome.stdout.lines().next(), Some(title.as_str()));
}
