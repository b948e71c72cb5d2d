//! Coverage compared with an independent script's result from an emulator's record (tests/coverage/truth.py).

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::support::python::python;
use crate::support::recorded::Recorded;
use crate::support::{corpus, example, run};
use serde_json::{Map, Value, json};

/// The coverage that the command reports, in the script's shape.
struct Found {
    /// The number of instructions in the trace.
    steps: u64,
    document: Value,
}

fn found(arguments: &[&str]) -> Found {
    let outcome = run(["coverage", "--quiet", "--format", "json"].iter().chain(arguments));
    assert_eq!(outcome.status, 0, "{arguments:?}: {}", outcome.stderr);
    let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let all = |value: &Value| value.as_array().unwrap().clone();
    let mut instructions = BTreeMap::new();
    for function in all(&report["functions"]) {
        for instruction in all(&function["instructions"]) {
            let count = |name: &str| instruction[name].as_u64().unwrap_or(0);
            let counts = json!([count("executed"), count("skipped"), count("unrecorded")]);
            instructions.insert(instruction["address"].as_str().unwrap().to_owned(), counts);
        }
    }
    let mut files = BTreeMap::new();
    for file in all(&report["files"]) {
        let lines = all(&file["lines"]).into_iter().map(|line| {
            let branches = line["branches"].as_array().cloned().unwrap_or_default();
            let branch = |branch: &Value| json!([branch["address"], branch["taken"], branch["not_taken"]]);
            let mut branches = branches.iter().map(branch).collect::<Vec<_>>();
            branches.sort_by_key(|branch| branch[0].as_str().unwrap().to_owned());
            (line["line"].to_string(), json!([line["count"], line["state"], branches]))
        });
        files.insert(file["name"].as_str().unwrap().to_owned(), lines.collect::<BTreeMap<_, _>>());
    }
    let tally = |name: &str| {
        let tally = &report["totals"][name];
        (name.to_owned(), json!([tally["found"], tally["covered"], tally["unrecorded"]]))
    };
    let totals = ["lines", "branches", "functions", "instructions"].map(tally).into_iter();
    let sources = all(&report["programs"]).into_iter().flat_map(|program| all(&program["sources"]));
    Found {
        steps: sources.map(|source| source["instructions"].as_u64().unwrap()).sum(),
        document: json!({
            "instructions": instructions, "files": files, "totals": totals.collect::<BTreeMap<_, _>>(),
        }),
    }
}

/// The script's result for the part of a record that these options choose, and the record's number of steps.
fn truth(python: &Path, elf: &Path, record: &Path, options: &[String]) -> (u64, Value) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/coverage/truth.py");
    let mut command = Command::new(python);
    command.arg(script).arg("--elf").arg(elf).arg("--record").arg(record).args(options);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let steps = document.as_object_mut().unwrap().remove("steps").unwrap();
    (steps.as_u64().unwrap(), document)
}

fn assert_same(name: &str, found: &Value, truth: &Value) {
    for part in ["instructions", "files", "totals"] {
        let (Some(found), Some(truth)) = (found[part].as_object(), truth[part].as_object()) else {
            panic!("{name}: both have {part}");
        };
        for (key, expected) in truth {
            assert_eq!(found.get(key), Some(expected), "{name}: {part} {key}");
        }
        assert_eq!(found.len(), truth.len(), "{name}: the number of {part}");
    }
}

/// For a record without the outcomes of conditions: all that does not depend on them is the same, and the
/// rest was passed equally often.
fn assert_same_where_known(name: &str, found: &Value, truth: &Value) {
    let passes =
        |counts: &Value| counts.as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).sum::<u64>();
    let open = |address: &str| truth["open"]["instructions"].as_array().unwrap().contains(&address.into());
    let instructions = |document: &Value| document["instructions"].as_object().unwrap().clone();
    let (found_instructions, true_instructions) = (instructions(found), instructions(truth));
    for (at, expected) in &true_instructions {
        let counts = &found_instructions[at];
        if open(at) {
            assert_eq!(passes(counts), passes(expected), "{name}: passes of {at}");
        } else {
            assert_eq!(counts, expected, "{name}: {at}");
        }
    }
    assert_eq!(found_instructions.len(), true_instructions.len(), "{name}: the number of instructions");
    let mut compared = 0;
    for (file, lines) in truth["files"].as_object().unwrap() {
        let open_lines = truth["open"]["lines"][file].as_array().cloned().unwrap_or_default();
        for (line, expected) in lines.as_object().unwrap() {
            let found = &found["files"][file][line];
            if open_lines.contains(&line.parse::<u64>().unwrap().into()) {
                let jumps = |line: &Value| {
                    let branches = line[2].as_array().unwrap().iter();
                    branches.filter(|branch| !open(branch[0].as_str().unwrap())).cloned().collect::<Vec<_>>()
                };
                assert_eq!(jumps(found), jumps(expected), "{name}: branches of {file}:{line}");
            } else {
                assert_eq!(found, expected, "{name}: {file}:{line}");
                compared += 1;
            }
        }
        assert_eq!(
            found["files"][file].as_object().unwrap().len(),
            lines.as_object().unwrap().len(),
            "{file}"
        );
    }
    assert!(compared > 0, "{name}: some lines do not depend on conditions");
    assert_eq!(found["totals"]["functions"], truth["totals"]["functions"], "{name}");
}

fn conditions(name: &str) -> [String; 2] {
    let recorded = if name == "etmv3" { "every" } else { "branches" };
    ["--conditions".to_owned(), recorded.to_owned()]
}

/// A trace ends before its record: the last jump's target is not reported, nor anything after PFT's last waypoint.
const MISSING_AT_END: u64 = 12;

/// Compares the coverage of a recorded run; returns the number of its instructions, and that of figures.
pub(crate) fn assert_covers(python: &Path, of: &Recorded) -> (u64, usize) {
    let found = found(&of.arguments());
    let figures = |truth: &Value| ["instructions", "files"].map(|part| truth[part].as_object().map_or(0, Map::len));
    if of.protocol == "mtb" {
        let truth = assert_covers_the_end(python, &of.name, &found, &of.elf, &of.record);
        return (found.steps, figures(&truth).iter().sum());
    }
    let counted = of.counted().iter().map(|option| (*option).to_owned());
    let options = conditions(of.protocol).into_iter().chain(["--first".to_owned(), found.steps.to_string()]);
    let (steps, truth) = truth(python, &of.elf, &of.record, &options.chain(counted).collect::<Vec<_>>());
    // Whole traces end with their records; found3's records are cut.
    assert!((steps - MISSING_AT_END..=steps).contains(&found.steps), "{}: {} of {steps}", of.name, found.steps);
    if truth["open"]["instructions"].as_array().is_some_and(|open| !open.is_empty()) {
        assert_same_where_known(&of.name, &found.document, &truth);
    } else {
        assert_same(&of.name, &found.document, &truth);
    }
    (found.steps, figures(&truth).iter().sum())
}

/// A buffer holds the end of a run, without its very last steps. The test finds how many by trying; returns the script's result.
fn assert_covers_the_end(python: &Path, name: &str, found: &Found, elf: &Path, record: &Path) -> Value {
    let last = ["--last".to_owned(), found.steps.to_string(), "--skip-end".to_owned()];
    let truth_before = |skipped: u64| {
        let options = conditions(name).into_iter().chain(last.clone()).chain([skipped.to_string()]);
        truth(python, elf, record, &options.collect::<Vec<_>>()).1
    };
    let fits = |truth: &Value| truth["instructions"] == found.document["instructions"];
    let truth = (0..=MISSING_AT_END).map(truth_before).find(fits).unwrap_or_else(|| truth_before(0));
    assert_same(name, &found.document, &truth);
    truth
}

#[test]
#[ignore = "needs the Python packages"]
fn the_end_of_a_run_in_a_micro_trace_buffer_covers_what_its_record_says() {
    let python = python();
    let firmware = example("../firmware/m0-crash");
    let capture = example("m0-crash-mtb/capture.toml");
    assert_covers_the_end(
        &python,
        "m0-crash-mtb",
        &found(&[capture.to_str().unwrap()]),
        &firmware.join("m0-crash.elf"),
        &firmware.join("m0-crash.record"),
    );
}

#[test]
#[ignore = "needs the Python packages and the corpus"]
fn a_micro_trace_buffer_that_went_round_covers_what_the_emulator_recorded() {
    let python = python();
    let case = corpus("synthetic/mix-m0-mtb-4k");
    let [buffer, registers, elf, runs] =
        ["mtb.bin", "registers.txt", "program.elf", "runs.txt"].map(|file| case.join(file));
    let arguments =
        [&buffer, Path::new("--registers"), &registers, Path::new("--image"), &elf].map(|part| part.to_str().unwrap());
    assert_covers_the_end(&python, "mix-m0-mtb-4k", &found(&arguments), &elf, &runs);
}

#[test]
#[ignore = "needs the Python packages and the corpus"]
fn a_cortex_m3_over_swo_covers_what_opencsd_read() {
    let python = python();
    let case = corpus("real/stm32f105");
    let (swo, elf) = (case.join("swo.bin"), case.join("trace_example.elf"));
    let found = found(&[swo.to_str().unwrap(), "--image", elf.to_str().unwrap()]);
    let (steps, truth) = truth(&python, &elf, &case.join("runs-02.txt"), &conditions("etmv3"));
    assert_eq!(found.steps, steps);
    assert_same_where_known("stm32f105", &found.document, &truth);
}

/// How often each address was passed, in the command's report for these arguments.
fn passes(arguments: &[&str]) -> BTreeMap<String, u64> {
    let outcome = run(["coverage", "--quiet", "--format", "json"].iter().chain(arguments));
    let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let functions = report["functions"].as_array().unwrap().iter();
    let instructions = functions.flat_map(|function| function["instructions"].as_array().unwrap());
    let passes = instructions.map(|instruction| {
        let count = |name: &str| instruction[name].as_u64().unwrap_or(0);
        let passes = count("executed") + count("skipped") + count("unrecorded");
        (instruction["address"].as_str().unwrap().to_owned(), passes)
    });
    passes.filter(|(_, passes)| *passes > 0).collect()
}

/// Programs known only as memory, traced on hardware: four cores together, and a core with a return stack.
#[test]
#[ignore = "needs the Python packages and the corpus"]
fn cortex_a_boards_without_symbols_pass_each_address_as_often_as_opencsd_read() {
    let python = python();
    let boards = [
        ("real/TC2", vec!["0xc0008000:kernel_dump.bin"], vec!["10", "11", "12", "13"]),
        (
            "real/tc2-ptm-rstk-t32",
            vec!["0x80000000:mem_Cortex-A15_0_0_VECTORS.bin", "0x80000278:mem_Cortex-A15_0_1_RO_CODE.bin"],
            vec!["02"],
        ),
    ];
    for (name, memory, sources) in boards {
        let case = corpus(name);
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/coverage/truth.py");
        let mut command = Command::new(&python);
        command.arg(script);
        for region in memory {
            let (address, file) = region.split_once(':').unwrap();
            command.args(["--memory", &format!("{address}:{}", case.join(file).display())]);
        }
        for source in sources {
            command.arg("--record").arg(case.join(format!("runs-{source}.txt")));
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let expected: BTreeMap<String, u64> = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(passes(&[case.to_str().unwrap()]), expected, "{name}");
    }
}
