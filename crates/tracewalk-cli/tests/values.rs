//! `flow --values`: what it states is what an emulator recorded.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::recorded::{self, Recorded};
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
fn a_table_has_the_same_values_as_the_objects() {
    let capture = example("m3-etmv3/capture.toml");
    let table = run(["flow", capture.to_str().unwrap(), "--values", "--format", "json"]);
    let table = serde_json::from_str::<Value>(&table.stdout).expect("JSON");
    let rows = table["tables"][0]["rows"].as_array().expect("rows");
    let of = |element: &str, name: &str| {
        let rows = rows.iter().filter(|row| row["element"] == element);
        rows.map(|row| row[name].clone()).collect::<Vec<_>>()
    };
    let found = instructions(&[capture.to_str().unwrap()]);
    let addresses = found.iter().map(|found| found["addr"].clone()).collect::<Vec<_>>();
    assert_eq!(of("instruction", "start"), addresses);
    let known = of("write", "value").iter().filter(|value| !value.is_null()).count();
    assert_eq!(known, found.iter().map(|found| writes(found).len()).sum::<usize>());
}

#[test]
fn formats_without_values_are_refused() {
    let capture = example("m3-etmv3/capture.toml");
    let outcome = run_with_kinds(["flow", capture.to_str().unwrap(), "--values", "--format", "runs"]);
    assert_eq!((outcome.status, outcome.stdout.as_str()), (2, ""));
    assert!(mentions(&outcome.stderr, "no_values runs --format"), "{}", outcome.stderr);
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

/// The project's programs, and how QEMU runs each.
const EMULATED: [(&str, &str); 7] = [
    ("m3", "arm -M mps2-an385"),
    ("m4", "arm -M mps2-an386"),
    ("jumps", "arm -M mps2-an386"),
    ("m0", "arm -M microbit"),
    ("rust-a9", "arm -M vexpress-a9 -m 128M"),
    ("a15", "arm -M vexpress-a15 -m 128M"),
    ("a53", "aarch64 -M virt,secure=on,virtualization=on,gic-version=2 -cpu cortex-a53 -m 128M -nic none"),
];

#[test]
#[ignore = "needs QEMU"]
fn exceptions_stacks_and_a64_give_the_emulators_values() {
    let folder = tempfile::tempdir().expect("a folder");
    for Recorded { name, elf, arguments, .. } in recorded::firmware(folder.path()) {
        let program = name.split(',').next().expect("a name");
        let Some((_, emulator)) = EMULATED.iter().find(|(emulated, _)| *emulated == program) else { continue };
        let log = folder.path().join(program);
        if !log.exists() {
            let words = "-nographic -monitor none -serial none -semihosting-config enable=on,target=native \
                         -icount shift=5,align=off,sleep=off -singlestep -d exec,nochain,cpu";
            let mut command = Command::new("timeout");
            command.args(format!("60 qemu-system-{emulator} {words} -D").split(' ')).arg(&log).arg("-kernel").arg(&elf);
            // Not every program ends with 0.
            command.output().expect("QEMU");
        }
        let outcome = run(["flow"].iter().copied().chain(arguments.iter().map(String::as_str)).chain([
            "--values", "--format", "jsonl",
        ]));
        let values = folder.path().join("values.jsonl");
        std::fs::write(&values, &outcome.stdout).expect("a file");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/values/truth.py");
        let compared = Command::new("python3").arg(script).arg(&log).arg(&values).output().expect("Python");
        let printed = String::from_utf8_lossy(&compared.stdout).into_owned();
        assert!(compared.status.success(), "{name}: {printed}");
        let count = printed.split(' ').next().and_then(|count| count.parse::<u32>().ok());
        assert!(count.is_some_and(|count| count > 2_000), "{name}: {printed}");
    }
}

#[test]
fn what_wrote_a_value_is_found() {
    let capture = example("m3-etmv3/capture.toml");
    let all = instructions(&[capture.to_str().unwrap()]);
    let zeros = instructions(&[capture.to_str().unwrap(), "--where", "r3=0"]);
    let expected = all.iter().filter(|found| writes(found).get("r3") == Some(&"0x0")).cloned().collect::<Vec<_>>();
    assert!(!zeros.is_empty() && zeros == expected, "{} {}", zeros.len(), expected.len());
    let ticks = instructions(&[capture.to_str().unwrap(), "--writes", "ticks"]);
    let stores_there = |found: &&Value| {
        let stores = found["stores"].as_array().expect("stores");
        stores.iter().any(|store| store["addr"] == "0x20000004")
    };
    let expected = all.iter().filter(stores_there).cloned().collect::<Vec<_>>();
    assert!(!ticks.is_empty() && ticks == expected, "{ticks:?} {expected:?}");
    let outcome = run_with_kinds(["flow", capture.to_str().unwrap(), "--values", "--writes", "tick"]);
    assert!(outcome.status == 2 && mentions(&outcome.stderr, "no_such_variable tick ticks"), "{}", outcome.stderr);
}

#[test]
fn registers_and_values_that_the_processor_does_not_have_are_refused() {
    for (example_of, register) in [("m3-etmv3", "x0=0"), ("m3-etmv3", "r3=0x100000000"), ("a57-etmv4", "r3=0")] {
        let capture = example(&format!("{example_of}/capture.toml"));
        let outcome = run_with_kinds(["flow", capture.to_str().unwrap(), "--values", "--where", register]);
        assert_eq!(outcome.status, 2, "{register}: {}", outcome.stderr);
        assert!(mentions(&outcome.stderr, "no_such_register --where"), "{register}: {}", outcome.stderr);
    }
}

#[test]
fn a_part_has_the_values_that_it_has_in_the_whole() {
    let capture = example("m3-etmv3/capture.toml");
    let all = instructions(&[capture.to_str().unwrap()]);
    let part = |options: &[&str]| instructions(&[&[capture.to_str().unwrap()], options].concat());
    assert_eq!(part(&["--from", "100", "--to", "200"]), all[100..200]);
    assert_eq!(part(&["--last", "7"]), all[all.len() - 7..]);
    assert_eq!(part(&["--from", "100", "--to", "200", "--last", "7"]), all[193..200]);
    let main = all.iter().position(|found| found["addr"] == "0x00000244").expect("main");
    assert_eq!(part(&["--around", "main±3"]), all[main - 3..main + 3]);
}
