//! Captures of ETMv4 and ETE through the command.

#[path = "../../tracewalk-session/tests/ete/mod.rs"]
mod ete;

use std::io::Read;
use std::path::Path;

use tracewalk_generate::path::Step;
use tracewalk_generate::tarmac;

use crate::support::{assert_same_runs, comparable, corpus, run, run_with_kinds};

/// Captures generated from an emulator's record: the folder, and the `--source` option, in which a
/// processor's name stands for its ID registers.
const SYNTHETIC: [(&str, &str); 6] = [
    ("mix-a57-etmv4", "etmv4,cpu=cortex-a57"),
    ("mix-a57-etmv4-cycles", "etmv4,cpu=cortex-a57,trcconfigr=0x811"),
    ("mix-a57-etmv4-return-stack", "etmv4,cpu=cortex-a57,trcconfigr=0x1801"),
    ("mix-a57-etmv4-speculative", "etmv4,cpu=cortex-a57,trcidr0=0x08000ea1,trcidr8=0x1e"),
    ("mix-m33-etmv4", "etmv4,cpu=cortex-m33"),
    ("mix-m33-etmv4-return-stack", "etmv4,cpu=cortex-m33,trcconfigr=0x1811"),
];

fn runs(arguments: &[&str]) -> Vec<String> {
    let outcome = run(["flow"].iter().chain(arguments).chain(&["--format", "runs"]));
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    comparable(&outcome.stdout)
}

#[tracewalk_corpus::test]
fn what_an_emulator_recorded_is_what_flow_finds() {
    let folder = corpus("etm4/synthetic");
    for (name, source) in SYNTHETIC {
        let case = folder.join(name);
        let expected =
            comparable(&std::fs::read_to_string(case.join("runs.txt")).expect("the corpus is complete"));
        assert!(expected.len() > 1000, "{name}");
        let [snapshot, trace, program] = [case.clone(), case.join("trace.bin"), case.join("program.elf")];
        let [snapshot, trace, program] =
            [&snapshot, &trace, &program].map(|path| path.to_str().expect("plain names"));
        assert_same_runs(&runs(&[snapshot]), &expected);
        let described = [trace, "--container", "raw", "--source", source, "--image", program];
        assert_same_runs(&runs(&described), &expected);
    }
}

/// Processors imply a setup without cycle counts and return stacks; the trace shows that it does not fit.
#[tracewalk_corpus::test]
fn a_setup_that_a_processors_name_implies_is_inferred_if_it_does_not_fit() {
    let folder = corpus("etm4/synthetic");
    for (name, source) in [
        ("mix-a57-etmv4-cycles", "etmv4,cpu=cortex-a57"),
        ("mix-a57-etmv4-return-stack", "etmv4,cpu=cortex-a57"),
        ("mix-m33-etmv4-return-stack", "etmv4,cpu=cortex-m33"),
    ] {
        let case = folder.join(name);
        let expected =
            comparable(&std::fs::read_to_string(case.join("runs.txt")).expect("the corpus is complete"));
        let [trace, program] = [case.join("trace.bin"), case.join("program.elf")];
        let [trace, program] = [&trace, &program].map(|path| path.to_str().expect("plain names"));
        let described = [trace, "--container", "raw", "--source", source, "--image", program];
        assert_same_runs(&runs(&described), &expected);
    }
}

/// The blocks of a description that do not begin with one of these headings, without lines that begin with
/// one of these words.
fn without(description: &str, headings: &[&str], words: &[&str]) -> String {
    let blocks =
        description.split("\n\n").filter(|block| !headings.iter().any(|part| block.starts_with(part)));
    let lines = blocks.flat_map(|block| block.lines().chain([""]));
    let kept = lines.filter(|line| !words.iter().any(|word| line.starts_with(word)));
    kept.collect::<Vec<_>>().join("\n")
}

/// Copies a folder with its subfolders.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("room for a copy");
    for entry in std::fs::read_dir(from).expect("a folder of the corpus") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::write(&target, std::fs::read(&path).expect("a file")).expect("room for a copy");
        }
    }
}

/// The runs of a description, and the messages with their kinds.
fn runs_of(folder: &Path, name: &str, text: &str) -> (Vec<String>, String) {
    let file = folder.join(name);
    std::fs::write(&file, text).expect("room for a description");
    let outcome = run_with_kinds(["flow", file.to_str().expect("plain names"), "--format", "runs"]);
    (comparable(&outcome.stdout), outcome.stderr)
}

/// Removes from a copied snapshot the images whose files are missing from the corpus.
fn leave_out_absent_images(folder: &Path) {
    let is_there = |section: &str| {
        let file = section.lines().find_map(|line| line.strip_prefix("file="));
        file.is_none_or(|file| folder.join(file.trim()).exists())
    };
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "ini") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a description");
        let sections = text.split("\n[").filter(|section| !section.starts_with("dump") || is_there(section));
        let kept = sections.collect::<Vec<_>>().join("\n[");
        std::fs::write(&path, kept).expect("room for a description");
    }
}

/// The description of this capture assigns one buffer to another trace unit.
const NOT_COMPARED: &str = "infrastructure";

/// Captures that take a minute without optimisation.
const LARGE: [&str; 2] = ["bugfix-exact-match", "test-file-mem-offsets"];

#[tracewalk_corpus::test]
fn a_capture_without_its_registers_is_read_right_or_declared_doubtful() {
    assert!(read_without_registers(|name| !LARGE.contains(&name)) >= 51);
}

#[tracewalk_corpus::test]
#[ignore = "takes a minute without optimisation"]
fn heavy_captures_without_their_registers_are_read_right() {
    assert!(read_without_registers(|_| true) > 51);
}

/// Returns how many were read right.
fn read_without_registers(is_wanted: impl Fn(&str) -> bool) -> usize {
    let corpus = corpus("etm4");
    let temporary = tempfile::tempdir().expect("there is room for temporary files");
    let (mut right, mut doubtful, mut undecided, mut wrong) = (0, Vec::new(), Vec::new(), Vec::new());
    let folders = [corpus.clone(), corpus.join("synthetic")];
    let entries =
        folders.iter().flat_map(|folder| std::fs::read_dir(folder).expect("a folder of the corpus"));
    for folder in entries.map(|entry| entry.expect("an entry").path()) {
        let name = folder.file_name().and_then(|name| name.to_str()).expect("plain names").to_owned();
        let is_out = name == NOT_COMPARED;
        if is_out || !is_wanted(&name) || !folder.join("snapshot.ini").exists() {
            continue;
        }
        copy(&folder, &temporary.path().join(&name));
        let copied = temporary.path().join(&name);
        leave_out_absent_images(&copied);
        let described = run(["describe", copied.to_str().expect("plain names")]).stdout;
        for images in [true, false] {
            let left_out: &[&str] =
                if images { &["[[source]]", "[source"] } else { &["[[source]]", "[source", "[[image]]"] };
            let stated = without(&described, &left_out[2..], &["cores"]);
            let bare = without(&described, left_out, &["cores", "container"]);
            let (expected, _) = runs_of(&copied, "stated.toml", &stated);
            let (found, messages) = runs_of(&copied, "bare.toml", &bare);
            if found.is_empty() && messages.contains("error: nothing_recognised: ") {
                undecided.push(name.clone());
            } else if found == expected {
                right += usize::from(!expected.is_empty());
            } else if messages.contains(": another_answer: ") {
                doubtful.push(name.clone());
            } else {
                wrong.push(format!(
                    "{name}, images {images}: {} runs of {}\n{messages}",
                    found.len(),
                    expected.len()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // The 13 bytes of event_test hold no address of execution.
    assert_eq!(undecided, ["event_test", "event_test"]);
    // Damage that both readings reach, and settings that the few bytes do not show.
    doubtful.sort();
    assert_eq!(doubtful, ["a55-test-tpiu", "a55-test-tpiu", "ete_ip", "ete_spec_2", "ete_spec_2"]);
    right
}

/// The trace has 64-bit addresses whose lower halves match the raw image by chance.
#[tracewalk_corpus::test]
fn an_image_stated_above_4_gib_is_not_moved_to_the_lower_half_of_an_address() {
    let corpus = corpus("etm4");
    let temporary = tempfile::tempdir().expect("there is room for temporary files");
    let copied = temporary.path().join("juno-uname-001");
    copy(&corpus.join("juno-uname-001"), &copied);
    leave_out_absent_images(&copied);
    let described = run(["describe", copied.to_str().expect("plain names")]).stdout;
    assert!(described.contains("vdso.bin"), "{described}");
    let (_, messages) = runs_of(&copied, "stated.toml", &described);
    assert!(!messages.contains(": image_moved: "), "{messages}");
    let stated = std::fs::read_to_string(copied.join("cpu_0.ini")).expect("a description").to_lowercase();
    let addresses = described.lines().filter_map(|line| line.strip_prefix("address = 0x"));
    let addresses = addresses.map(|digits| digits.trim_start_matches('0')).collect::<Vec<_>>();
    assert!(!addresses.is_empty() && addresses.iter().all(|digits| stated.contains(digits)), "{described}");
}

#[tracewalk_corpus::test]
fn a_snapshot_directory_that_is_written_reads_the_same() {
    let corpus = corpus("etm4");
    let temporary = tempfile::tempdir().expect("there is room for temporary files");
    for name in
        ["002-ack_test_scr", "ete_spec_1", "synthetic/mix-a57-etmv4-speculative", "synthetic/mix-m33-etmv4"]
    {
        let snapshot = corpus.join(name);
        let written = temporary.path().join(name.replace('/', "-"));
        let [snapshot, written] = [&snapshot, &written].map(|path| path.to_str().expect("plain names"));
        let outcome = run(["describe", "--format", "ds5", snapshot, "-o", written]);
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        assert_same_runs(&runs(&[written]), &runs(&[snapshot]));
        let registers = |path| {
            let described = run(["describe", path]).stdout;
            described
                .lines()
                .filter(|line| line.starts_with("registers"))
                .map(String::from)
                .collect::<Vec<_>>()
        };
        assert_eq!(registers(written), registers(snapshot), "{name}");
    }
}

/// A program's instrumentation and its transactions are in the flow and on the timeline at the places of
/// their packets.
#[tracewalk_corpus::test]
fn instrumentation_and_transactions_are_in_flow_and_on_the_timeline() {
    let folder = corpus("etm4");
    let objects = |command: &str, name: &str| {
        let capture = folder.join(name);
        let outcome = run([command, capture.to_str().unwrap(), "-q", "--format", "jsonl"]);
        let object = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
        outcome.stdout.lines().map(object).collect::<Vec<_>>()
    };
    let of = |objects: &[serde_json::Value], field: &str, kind: &str, value: &str| {
        let is = |object: &&serde_json::Value| object[field] == kind;
        objects.iter().filter(is).map(|object| object[value].clone()).collect::<Vec<_>>()
    };
    let (packets, flow) = (objects("packets", "ete-ite-instr"), objects("flow", "ete-ite-instr"));
    let written = of(&packets, "packet", "instrumentation", "value");
    assert_eq!(written, [0xffff, 0xf_ffff]);
    let values = of(&flow, "element", "instrumentation", "value");
    assert_eq!(values, ["0x000000000000ffff", "0x00000000000fffff"]);
    assert_eq!(of(&flow, "element", "instrumentation", "exception_level"), [1, 1]);
    let capture = folder.join("ete-ite-instr");
    let timeline = run(["timeline", capture.to_str().unwrap(), "-q", "--format", "csv"]);
    assert_eq!(timeline.stdout.lines().filter(|line| line.contains(",events,instrumentation,")).count(), 2);
    for (name, ended) in [("tme_simple", "committed"), ("tme_tcancel", "failed")] {
        let states = of(&objects("flow", name), "element", "transaction", "state");
        assert_eq!(states, ["started", ended], "{name}");
    }
}

/// The reports state the instructions that were left out; saved and merged files keep their number.
#[test]
fn instructions_of_transactions_without_a_commit_are_left_out_and_reported() {
    let traced = ete::trace(200, 5, true);
    assert!(traced.committed > 50 && traced.failed > 50 && traced.lost > 5);
    let (folder, capture) = ete::capture(&traced.bytes, true);
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let capture = capture.to_str().unwrap();
    let reported = |arguments: &[&str]| {
        let outcome = run(["coverage", "-q"].iter().chain(arguments).chain(&["--format", "json"]));
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        let document: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
        let sources = document["programs"][0]["sources"].as_array().unwrap();
        let of = |source: &serde_json::Value| {
            (source["instructions"].clone(), source["losses"]["uncommitted"].clone())
        };
        sources.iter().map(of).collect::<Vec<_>>()
    };
    let number = serde_json::Value::from;
    let counted = traced.instructions - traced.uncommitted;
    let expected = (number(counted), number(traced.uncommitted));
    for threads in ["1", "2", "7"] {
        assert_eq!(reported(&[capture, "--threads", threads]), std::slice::from_ref(&expected));
    }
    let text = run(["coverage", "-q", capture]).stdout;
    let note = text.lines().find(|line| line.starts_with("undone")).unwrap_or_default();
    assert!(note.contains(&traced.uncommitted.to_string()), "{text}");

    let (saved, copy, merged) = (file("a.twcov"), file("b.twcov"), file("c.twcov"));
    assert_eq!(run(["coverage", "-q", capture, "--save", &saved]).status, 0);
    std::fs::copy(&saved, &copy).unwrap();
    assert_eq!(run(["coverage", "-q", &saved, &copy, "--save", &merged]).status, 0);
    let image = format!("{:#x}:{}", ete::BASE.get(), file("code.bin"));
    assert_eq!(reported(&[&merged, "--image", &image]), [expected.clone(), expected]);

    let sources = run(["counts", "-q", capture, "--format", "csv", "--table", "sources"]).stdout;
    let mut lines = sources.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let (names, row) = (lines.next().unwrap(), lines.next().unwrap());
    let cell = |wanted: &str| row[names.iter().position(|name| *name == wanted).unwrap()];
    assert_eq!(cell("counted"), counted.to_string());
    assert_eq!(cell("uncommitted"), traced.uncommitted.to_string());
}

/// A step in the model's record and in the command's runs: an instruction, an exception with its number and
/// return address, a return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Happened {
    Instruction(u64),
    Exception(u16, u64),
    Return,
}

/// The stretches of A64 runs between starts of tracing.
fn stretches(runs: &str) -> Vec<Vec<Happened>> {
    let hexadecimal = |word: &str| u64::from_str_radix(word, 16).unwrap();
    let mut stretches = Vec::<Vec<Happened>>::new();
    for line in runs.lines().filter(|line| !line.starts_with(['#', 'S'])) {
        if line == "O" {
            stretches.push(Vec::new());
            continue;
        }
        let current = stretches.last_mut().expect("tracing starts before anything is traced");
        match *line.split(' ').collect::<Vec<_>>() {
            ["R", start, end, "a64"] => {
                let addresses = (hexadecimal(start)..hexadecimal(end)).step_by(4);
                current.extend(addresses.map(Happened::Instruction));
            }
            ["X", number, returns_to] => {
                current.push(Happened::Exception(number.parse().unwrap(), hexadecimal(returns_to)));
            }
            ["T"] => current.push(Happened::Return),
            _ => panic!("{line}"),
        }
    }
    stretches
}

/// Arm's model traced its execution and also recorded it.
#[tracewalk_corpus::test]
fn what_arms_model_recorded_is_what_flow_finds() {
    let folder = corpus("etm4/002-ack_test_scr");
    let mut text = String::new();
    let file = std::fs::File::open(folder.join("test_TARMAC.gz")).unwrap();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    let path = tarmac::read(&text, Some("cpu0")).unwrap();
    let recorded = path.steps.iter().filter_map(|step| match step {
        Step::Instruction(executed) => Some(Happened::Instruction(executed.address.get())),
        Step::Exception(taken) => {
            Some(Happened::Exception(taken.exception.number(), taken.preferred_return.unwrap().get()))
        }
        Step::ExceptionReturn => Some(Happened::Return),
        _ => None,
    });
    let recorded = recorded.collect::<Vec<_>>();
    let outcome = run(["flow", folder.to_str().unwrap(), "--format", "runs", "--quiet"]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let mut rest = recorded.as_slice();
    let (mut instructions, mut exceptions) = (0, 0);
    let stretches = stretches(&outcome.stdout);
    for traced in &stretches {
        // Each stretch is in the record, step by step, after the previous one.
        let at = rest.windows(traced.len()).position(|window| window == traced);
        let at = at.unwrap_or_else(|| panic!("{} steps from {:x?} on", traced.len(), traced.first()));
        rest = &rest[at + traced.len()..];
        instructions += traced.iter().filter(|step| matches!(step, Happened::Instruction(_))).count();
        exceptions += traced.iter().filter(|step| matches!(step, Happened::Exception(..))).count();
    }
    assert_eq!((stretches.len(), instructions, exceptions), (3, 5146, 7));
}
