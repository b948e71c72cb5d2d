//! Profiles compared with an independent script's result from an emulator's record (tests/profile/truth.py).

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::support::firmware::{Firmware, Setup};
use crate::support::python::python;
use crate::support::recorded::Recorded;
use crate::support::{corpus, run};
use serde_json::Value;

/// Costs by name: instructions and cycles.
type Costs = BTreeMap<String, [u64; 2]>;

/// The script's result.
struct Truth(Value);

impl Truth {
    fn of(python: &Path, elf: &Path, record: &Path, options: &[&str]) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/profile/truth.py");
        let mut command = Command::new(python);
        command.arg(script).arg("--elf").arg(elf).arg("--record").arg(record).args(options);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Self(serde_json::from_slice(&output.stdout).unwrap())
    }

    fn costs(&self, part: &str) -> Costs {
        let cost = |value: &Value| [0, 1].map(|index| value[index].as_u64().unwrap());
        let part = self.0[part].as_object().unwrap();
        part.iter().map(|(name, value)| (name.clone(), cost(value))).collect()
    }

    fn counts(&self, part: &str) -> BTreeMap<String, u64> {
        let part = self.0[part].as_object().unwrap();
        part.iter().map(|(name, value)| (name.clone(), value.as_u64().unwrap())).collect()
    }
}

fn profile(capture: &[&str], options: &[&str]) -> String {
    let outcome = run(["profile", "--quiet"].iter().chain(capture).chain(options));
    assert_eq!(outcome.status, 0, "{capture:?}: {}", outcome.stderr);
    outcome.stdout
}

/// The chains of calls with their own costs. The script does not number tasks.
pub(crate) fn folded(capture: &[&str], options: &[&str]) -> BTreeMap<String, u64> {
    let text = profile(capture, &[&["--format", "folded"], options].concat());
    let mut chains = BTreeMap::new();
    for line in text.lines() {
        let (chain, cost) = line.rsplit_once(' ').unwrap();
        let chain = match chain.split_once("];") {
            Some((task, chain)) if task.starts_with("[task ") => chain,
            _ => chain,
        };
        *chains.entry(chain.to_owned()).or_default() += cost.parse::<u64>().unwrap();
    }
    chains
}

/// The content of a callgrind file: lines with their own cost, calls with their number and inclusive cost.
#[derive(Default)]
struct Callgrind {
    lines: Costs,
    calls: BTreeMap<String, u64>,
    inclusive: Costs,
}

impl Callgrind {
    fn of(capture: &[&str]) -> Self {
        let text = profile(capture, &["--format", "callgrind"]);
        let mut found = Self::default();
        let (mut file, mut function, mut called) = (String::new(), String::new(), String::new());
        let mut calls = None;
        let mut columns = 0;
        for line in text.lines() {
            let (key, value) = line.split_once(['=', ':']).unwrap_or((line, ""));
            match key {
                "events" => columns = value.split_whitespace().count(),
                "fl" | "fi" | "fe" => value.clone_into(&mut file),
                "fn" => value.clone_into(&mut function),
                "cfn" => value.clone_into(&mut called),
                "calls" => calls = value.split_once(' ').unwrap().0.parse::<u64>().ok(),
                _ if line.starts_with(|first: char| first.is_ascii_digit()) => {
                    let numbers =
                        line.split(' ').map(|word| word.parse::<u64>().unwrap()).collect::<Vec<_>>();
                    assert_eq!(numbers.len(), 1 + columns, "{line}");
                    let cost = [numbers[1], if columns > 1 { numbers[2] } else { 0 }];
                    let (costs, key) = match calls.take() {
                        Some(times) => {
                            let key = format!("{function} > {called}");
                            *found.calls.entry(key.clone()).or_default() += times;
                            (&mut found.inclusive, key)
                        }
                        None => (&mut found.lines, format!("{function} {}:{}", base(&file), numbers[0])),
                    };
                    let sum = costs.entry(key).or_default();
                    (sum[0], sum[1]) = (sum[0] + cost[0], sum[1] + cost[1]);
                }
                _ => {}
            }
        }
        found
    }
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Removes the addresses before functions' names.
fn names<T: Copy>(of: &BTreeMap<String, T>) -> BTreeMap<String, T> {
    let name = |part: &str| part.split_once(' ').unwrap().1.to_owned();
    let key = |key: &str| key.split(" > ").map(name).collect::<Vec<_>>().join(" > ");
    of.iter().map(|(function, value)| (key(function), *value)).collect()
}

fn assert_same<T: Copy + PartialEq + std::fmt::Debug>(
    what: &str,
    found: &BTreeMap<String, T>,
    truth: &BTreeMap<String, T>,
) {
    for (key, expected) in truth {
        assert_eq!(found.get(key), Some(expected), "{what}: {key}");
    }
    let excess = found.keys().find(|key| !truth.contains_key(*key));
    assert_eq!(excess, None, "{what}");
}

/// One of the two costs, without zeros.
fn column(costs: &Costs, index: usize) -> BTreeMap<String, u64> {
    costs.iter().map(|(key, cost)| (key.clone(), cost[index])).filter(|(_, cost)| *cost > 0).collect()
}

/// The functions' table: calls, own and inclusive instructions.
fn table(capture: &[&str]) -> BTreeMap<String, [u64; 3]> {
    let text = profile(capture, &["--unit", "instructions", "--no-inlined"]);
    let rows = text.lines().skip(2).filter(|line| !line.starts_with('·'));
    let row = |line: &str| {
        let words = line.split_whitespace().collect::<Vec<_>>();
        let number = |index: usize| words[index].parse::<u64>().unwrap();
        let rest_of_line = words[..5].iter().fold(line, |rest, word| rest.split_once(word).unwrap().1);
        // Two spaces separate the name from the function's place, if that is known.
        let name = rest_of_line.trim_start();
        let name = name.split_once("  ").map_or(name, |(name, _)| name).to_owned();
        (name, [number(4), number(0), number(2)])
    };
    rows.map(row).collect()
}

/// Compares all that is counted in instructions; returns the number of figures.
fn assert_instructions(name: &str, capture: &[&str], truth: &Truth) -> usize {
    let instructions = ["--unit", "instructions"];
    let chains = folded(capture, &[&instructions[..], &["--no-inlined"]].concat());
    assert_same(&format!("{name}: chains"), &chains, &column(&truth.costs("folded"), 0));
    let chains = folded(capture, &instructions);
    assert_same(&format!("{name}: inlined chains"), &chains, &column(&truth.costs("folded_inlined"), 0));
    let callgrind = Callgrind::of(capture);
    assert_lines(name, &callgrind, truth);
    assert_same(&format!("{name}: calls"), &callgrind.calls, &names(&truth.counts("edge_calls")));
    let inclusive = column(&names(&truth.costs("edge_total")), 0);
    assert_same(&format!("{name}: call costs"), &column(&callgrind.inclusive, 0), &inclusive);
    let mut functions = BTreeMap::<String, [u64; 3]>::new();
    for (function, total) in names(&truth.costs("total")) {
        functions.entry(function).or_default()[2] = total[0];
    }
    for (function, calls) in names(&truth.counts("calls")) {
        functions.entry(function).or_default()[0] = calls;
    }
    for (chain, own) in truth.costs("folded") {
        let function = chain.rsplit(';').next().unwrap().to_owned();
        functions.entry(function).or_default()[1] += own[0];
    }
    assert_same(&format!("{name}: functions"), &table(capture), &functions);
    chains.len() + 2 * callgrind.calls.len() + 3 * functions.len()
}

/// In callgrind's format, instructions without a line count for their function's first line.
fn assert_lines(name: &str, callgrind: &Callgrind, truth: &Truth) {
    let mut expected = BTreeMap::<String, u64>::new();
    let mut elsewhere = 0;
    for (line, cost) in column(&truth.costs("lines"), 0) {
        let (function, place) = line.rsplit_once(' ').unwrap();
        match place {
            "?" => elsewhere += cost,
            place => *expected.entry(format!("{function} {}", base(place))).or_default() += cost,
        }
    }
    let mut excess = 0;
    for (line, cost) in column(&callgrind.lines, 0) {
        let known = expected.remove(&line).unwrap_or(0);
        assert!(cost >= known, "{name}: {line}: {cost} of {known}");
        excess += cost - known;
    }
    assert_eq!((expected, excess), (BTreeMap::new(), elsewhere), "{name}: lines");
}

/// The number of instructions in the trace.
fn instructions(capture: &[&str]) -> String {
    folded(capture, &["--unit", "instructions"]).values().sum::<u64>().to_string()
}

/// Compares a recorded run's calls and their costs; returns the number of figures.
pub(crate) fn assert_calls(python: &Path, of: &Recorded, stacks: &[&str]) -> usize {
    let arguments = of.arguments();
    // The record continues for a few instructions beyond the trace.
    let steps = instructions(&arguments);
    let options = [&["--profile", of.profile, "--count", &steps], stacks, of.counted()].concat();
    let truth = Truth::of(python, &of.elf, &of.record, &options);
    assert_instructions(&of.name, &arguments, &truth)
}

#[test]
#[ignore = "needs the Python packages"]
fn long_jumps_over_many_functions_leave_them_all() {
    let python = python();
    const BRANCH_BROADCAST: u32 = 1 << 8;
    for etmcr in [0, BRANCH_BROADCAST] {
        let firmware = Firmware::load("jumps");
        let setup = Setup { protocol: "etmv3", cpu: "cortex-m4", etmcr, ..Setup::default() };
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, &firmware.trace(&setup).bytes).unwrap();
        let option = setup.option();
        let image = firmware.file.to_str().unwrap();
        let capture =
            [file.path().to_str().unwrap(), "--container", "raw", "--source", &option, "--image", image];
        let steps = instructions(&capture);
        let record = firmware.file.with_extension("record");
        let truth = Truth::of(&python, &firmware.file, &record, &["--count", &steps]);
        let jumps = truth.0["jumps"].as_array().unwrap().iter().map(|left| left.as_u64().unwrap());
        // Each jump also leaves longjmp itself.
        let jumps = jumps.collect::<Vec<_>>();
        assert!(jumps.iter().filter(|left| **left > 6).count() >= 6, "{jumps:?}");
        assert!(jumps.iter().any(|left| *left > 12) && jumps.iter().any(|left| *left < 4), "{jumps:?}");
        assert_instructions("jumps", &capture, &truth);

        let calls = run(["calls", "--quiet", "--fold", "none"].iter().chain(&capture)).stdout;
        // longjmp returns in its own way, so it is not counted here.
        let unwound = |line: &&str| line.ends_with(", unwound") && !line.contains("longjmp");
        let unwound = calls.lines().filter(unwound).count() as u64;
        assert_eq!(unwound, jumps.iter().sum::<u64>() - jumps.len() as u64, "{calls}");
    }
}

/// The cycles of each chain of calls, for a trace that counts them.
fn assert_cycles(python: &Path, program: &str, setup: &Setup, contexts: bool) {
    let name = format!("{program}, {}", setup.protocol);
    let firmware = Firmware::load(program);
    let trace = firmware.trace(setup);
    let folder = tempfile::tempdir().unwrap();
    let (bytes, counts) = (folder.path().join("trace.bin"), folder.path().join("cycles.txt"));
    std::fs::write(&bytes, &trace.bytes).unwrap();
    std::fs::write(&counts, trace.times_text(&firmware.path)).unwrap();
    let option = setup.option();
    let capture = [
        bytes.to_str().unwrap(),
        "--container",
        "raw",
        "--source",
        &option,
        "--image",
        firmware.file.to_str().unwrap(),
    ];
    let steps = instructions(&capture);
    let mut options = vec!["--count", &steps, "--cycles", counts.to_str().unwrap()];
    options.extend(contexts.then_some("--contexts"));
    let truth = Truth::of(python, &firmware.file, &firmware.file.with_extension("record"), &options);
    assert_instructions(&name, &capture, &truth);
    let chains = folded(&capture, &["--unit", "cycles", "--no-inlined"]);
    assert_same(&format!("{name}: chain cycles"), &chains, &column(&truth.costs("folded"), 1));
    let callgrind = Callgrind::of(&capture);
    let inclusive = column(&names(&truth.costs("edge_total")), 1);
    assert_same(&format!("{name}: call cycles"), &column(&callgrind.inclusive, 1), &inclusive);
}

const CYCLE_ACCURATE: u32 = 1 << 12;

#[test]
#[ignore = "needs the Python packages"]
fn functions_take_the_cycles_that_the_generator_counted() {
    let python = python();
    let etmv3 = Setup { protocol: "etmv3", cpu: "cortex-a7", etmcr: CYCLE_ACCURATE, ..Setup::default() };
    assert_cycles(&python, "a9", &etmv3, false);
    let pft = Setup { protocol: "pft", cpu: "cortex-a15", etmcr: CYCLE_ACCURATE, ..Setup::default() };
    assert_cycles(&python, "a9", &pft, false);
}

/// The table's sum, and the costs in the notes on code that could not be followed and on untraced time.
fn sums(capture: &[&str], options: &[&str]) -> [u64; 3] {
    let arguments = ["profile", "--quiet", "--rows", "0"];
    let text = run(arguments.iter().chain(capture).chain(options)).stdout;
    let first = |line: &str, at: usize| line.split_whitespace().nth(at).unwrap().parse::<u64>().unwrap();
    let sum = first(text.lines().next().unwrap().split_once(": ").unwrap().1, 0);
    let note = |what: &str| text.lines().find(|line| line.contains(what)).map_or(0, |line| first(line, 4));
    [sum, note("of code that could not be followed"), note("while nothing was traced")]
}

#[tracewalk_corpus::test]
fn captures_of_hardware_cost_what_another_decoder_counts() {
    let corpus = corpus("real/TC2");
    let totals = std::fs::read_to_string(corpus.join("totals.json")).unwrap();
    let totals: Value = serde_json::from_str(&totals).unwrap();
    for (id, expected) in totals["sources"].as_object().unwrap() {
        let capture = [corpus.to_str().unwrap(), "--id", id];
        let [instructions, ..] = sums(&capture, &["--unit", "instructions"]);
        assert_eq!(instructions, expected["instructions"], "{id}");
        let [cycles, unfollowed, untraced] = sums(&capture, &["--unit", "cycles"]);
        // For a PTM, the other decoder omits the cycle counts of waypoints in code that it lacks.
        let counted = if id == "0x13" { 0 } else { unfollowed };
        assert_eq!(cycles + counted + untraced, expected["cycles"], "{id}");
        let [ticks, unfollowed, untraced] = sums(&capture, &["--unit", "time"]);
        let timestamps = expected["timestamps"].as_array().unwrap().iter().map(|timestamp| {
            u64::from_str_radix(timestamp.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
        });
        let timestamps = timestamps.collect::<Vec<_>>();
        let length = timestamps.last().unwrap() - timestamps.first().unwrap();
        assert_eq!(ticks + unfollowed + untraced, length, "{id}");
    }
}
