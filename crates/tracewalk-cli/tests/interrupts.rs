//! The durations of exceptions and functions, compared with an independent script's result from an emulator's
//! record, or from the generator's own cycle counter (tests/timeline/truth.py, tests/timeline/functions.py).

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::support::firmware::{Firmware, Setup};
use crate::support::recorded::Recorded;
use crate::support::{corpus, example, run, tracewalk};
use serde_json::Value;

/// The command's figures for exceptions, by number, and the trace's number of instructions.
fn found(arguments: &[&str]) -> (u64, BTreeMap<String, Value>) {
    let (instructions, source) = report(arguments);
    (instructions, by("number", &source["exceptions"]))
}

/// The command's report for the only source, and the trace's number of instructions.
fn report(arguments: &[&str]) -> (u64, Value) {
    let options = ["interrupts", "--quiet", "--stats", "--format", "json"];
    let outcome = run(options.iter().chain(arguments));
    assert_eq!(outcome.status, 0, "{arguments:?}: {}", outcome.stderr);
    let statistics: Value = serde_json::from_str(outcome.stderr.lines().last().unwrap()).unwrap();
    let document: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!((&document["format"], &document["version"]), (&"tracewalk interrupts".into(), &1.into()));
    (statistics["instructions"].as_u64().unwrap(), document["sources"][0].clone())
}

fn by(field: &str, entries: &Value) -> BTreeMap<String, Value> {
    let name = |entry: &Value| entry[field].as_str().map_or_else(|| entry[field].to_string(), str::to_owned);
    entries.as_array().unwrap().iter().map(|entry| (name(entry), entry.clone())).collect()
}

/// The script's figures for exceptions.
fn truth(arguments: &[&str], first: u64) -> BTreeMap<String, Value> {
    let document = script(Path::new("python3"), "truth.py", arguments, first);
    let exceptions = document["exceptions"].as_object().unwrap();
    exceptions.iter().map(|(number, figures)| (number.clone(), figures.clone())).collect()
}

fn script(python: &Path, name: &str, arguments: &[&str], first: u64) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/timeline").join(name);
    let output =
        Command::new(python).arg(script).args(arguments).args(["--first", &first.to_string()]).output();
    let output = output.expect("python3 runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn assert_same(name: &str, found: &BTreeMap<String, Value>, truth: &BTreeMap<String, Value>) {
    assert!(found.keys().eq(truth.keys()), "{name}: {:?}, expected {:?}", found.keys(), truth.keys());
    for (number, expected) in truth {
        for (field, expected) in expected.as_object().unwrap() {
            let Some(figures) = expected.as_object() else {
                assert_eq!(found[number][field], *expected, "{name}: {field} of {number}");
                continue;
            };
            for (figure, expected) in figures {
                let found = &found[number][field][figure];
                // With no known lengths, the sum is unknown.
                let unknown = figure == "sum" && figures["count"] == 0;
                let expected = if unknown { &Value::Null } else { expected };
                assert_eq!(found, expected, "{name}: {figure} of {field} of {number}");
            }
            let mean = found[number][field]["mean"].as_f64();
            let sum = figures["sum"].as_u64().unwrap() as f64;
            let expected = (figures["count"] != 0).then(|| sum / figures["count"].as_u64().unwrap() as f64);
            let close = |(mean, expected): (f64, f64)| (mean - expected).abs() <= 1e-9 * expected;
            assert!(
                mean.is_some() == expected.is_some() && mean.zip(expected).is_none_or(close),
                "{name}: {mean:?}"
            );
        }
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Compares the figures of a recorded run's exceptions; returns their number.
pub(crate) fn assert_exceptions(of: &Recorded) -> usize {
    let (instructions, found) = found(&[&of.arguments()[..], &["--unit", "instructions"]].concat());
    let truth = truth(&[&of.script()[..], of.counted()].concat(), instructions);
    assert_same(&of.name, &found, &truth);
    figures(&truth)
}

/// Compares the figures of a recorded run's functions; returns their number.
pub(crate) fn assert_functions(python: &Path, of: &Recorded, stacks: &[&str]) -> usize {
    let (instructions, source) = report(&[&of.arguments()[..], &["--functions", "--unit", "instructions"]].concat());
    let truth = script(python, "functions.py", &[&of.script()[..], of.counted(), stacks].concat(), instructions);
    let truth = truth.as_object().unwrap().iter().map(|(name, figures)| (name.clone(), figures.clone())).collect();
    assert_same(&of.name, &by("name", &source["functions"]), &truth);
    figures(&truth)
}

/// The number of figures in a script's result.
fn figures(truth: &BTreeMap<String, Value>) -> usize {
    let fields = truth.values().flat_map(|of| of.as_object().unwrap().values());
    fields.map(|field| field.as_object().map_or(1, serde_json::Map::len)).sum()
}

#[test]
fn exceptions_took_as_many_cycles_as_the_generators_own_counter_says() {
    let firmware = Firmware::load("a9");
    for (protocol, cpu) in [("etmv3", "cortex-a7"), ("pft", "cortex-a15")] {
        let setup = Setup { protocol, cpu, etmcr: 1 << 12, ..Setup::default() };
        let trace = firmware.trace(&setup);
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        };
        let capture = file("trace.bin", &trace.bytes);
        let times = file("times.txt", trace.times_text(&firmware.path).as_bytes());
        let source = setup.option();
        let arguments =
            [text(&capture), "--container", "raw", "--source", &source, "--image", text(&firmware.file)];
        // Without an option, the command chooses the best axis.
        let (instructions, found) = found(&arguments);
        let arguments = ["--times", text(&times), "--profile", "ar"];
        assert_same(protocol, &found, &truth(&arguments, instructions));
    }
}

/// RFC 4180: each line has one field per name.
#[test]
fn csv_has_a_line_for_each_exception_and_function() {
    let capture = example("m3-etmv3/capture.toml");
    let (_, json) = found(&[text(&capture)]);
    let arguments = ["interrupts", "--quiet", "--functions", "--format", "csv", text(&capture)];
    let outcome = run(arguments);
    let mut lines = outcome.stdout.split_terminator("\r\n").map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().unwrap();
    let column = |name: &str| names.iter().position(|column| *column == name).unwrap();
    let (mut exceptions, mut functions) = (0, 0);
    for line in lines {
        assert_eq!(line.len(), names.len(), "{line:?}");
        if line[column("kind")] == "function" {
            functions += 1;
            continue;
        }
        exceptions += 1;
        let expected = &json[line[column("exception")]];
        assert_eq!(line[column("id")], "16");
        assert_eq!(line[column("name")], expected["name"].as_str().unwrap());
        assert_eq!(line[column("count")], expected["count"].to_string());
        assert_eq!(line[column("without_preemption_p99")], expected["without_preemption"]["p99"].to_string());
        assert_eq!(line[column("inter_arrival_max")], expected["inter_arrival"]["max"].to_string());
    }
    assert_eq!(exceptions, json.len());
    assert!(functions > 10);
}

/// Both sources have trace ID 0x10; saved figures name their programs without containing them.
#[test]
fn sources_of_several_programs_with_one_trace_id_are_named_by_their_programs() {
    let capture = |name: &str| example(name).join("capture.toml").to_str().unwrap().to_owned();
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("saved.twirq").to_str().unwrap().to_owned();
    let both = [capture("m3-etmv3"), capture("a7-etmv3")];
    let captures = ["--quiet", "--unit", "instructions", &both[0], &both[1]];
    assert_eq!(run(["interrupts", "--save", &saved].iter().chain(&captures)).status, 0);
    for arguments in [&captures[..], &["--quiet", &saved]] {
        let shown = |format: &str| {
            let outcome = run(["interrupts", "--format", format].iter().chain(arguments));
            assert_eq!((outcome.status, outcome.stderr.as_str()), (0, ""));
            outcome.stdout
        };
        let (text, table) = (shown("text"), shown("csv"));
        let report: Value = serde_json::from_str(&shown("json")).unwrap();
        let mut named = report["sources"].as_array().unwrap().iter().map(|source| &source["program"]);
        for program in ["a9.elf", "m3.elf"] {
            assert!(text.contains(&format!("trace ID 0x10, etmv3 of {program}, in instructions")), "{text}");
            let mut rows = table.lines().filter(|row| row.starts_with("16,etmv3,1,exception,"));
            assert!(rows.any(|row| row.ends_with(program)), "{table}");
            assert_eq!(named.next().unwrap(), program);
        }
    }
    // With one program its name is left out.
    let text = run(["interrupts", "--quiet", &both[0]]).stdout;
    assert!(text.starts_with("trace ID 0x10, etmv3, in instructions"), "{text}");
}

/// The trace unit was off when the interrupt came.
#[tracewalk_corpus::test]
fn exceptions_that_only_an_itm_saw_stand_apart() {
    let case = corpus("real/stm32f105");
    let [swo, elf] = ["swo.bin", "trace_example.elf"].map(|file| case.join(file).display().to_string());
    let arguments = |format| ["interrupts", &swo, "--image", &elf, "--format", format].map(str::to_owned);
    let document = run(arguments("json")).stdout;
    let document = serde_json::from_str::<Value>(&document).unwrap();
    let sources = document["sources"].as_array().unwrap();
    let itm = sources.iter().find(|source| source["protocol"] == "itm").expect("the ITM reports exceptions");
    let exceptions = itm["exceptions"].as_array().unwrap();
    assert_eq!((exceptions.len(), &exceptions[0]["number"]), (1, &44.into()), "{exceptions:?}");
    assert!(exceptions[0]["count"].as_u64().is_some_and(|count| count > 0));
    assert!(exceptions[0]["with_preemption"]["sum"].is_null());
    // The figures of instruction trace are unchanged: nothing is counted twice.
    let traced = sources.iter().find(|source| source["protocol"] == "etmv3").unwrap();
    assert_eq!(traced["exceptions"].as_array().unwrap().len(), 0);
    let table = run(arguments("csv")).stdout;
    assert!(table.lines().any(|line| line.contains(",itm,1,exception,44,")), "{table}");
    let text = run(arguments("text")).stdout;
    assert!(text.contains("IRQ28"), "{text}");
    // Saving and reading again changes nothing.
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("a.twint").display().to_string();
    run(["interrupts", &swo, "--image", &elf, "--save", &saved]);
    let again = run(["interrupts", &saved, "--format", "json"]).stdout;
    let again = serde_json::from_str::<Value>(&again).unwrap();
    let mut sources = again["sources"].as_array().unwrap().iter();
    let again = sources.find(|source| source["protocol"] == "itm").expect("it is saved");
    assert_eq!(again["exceptions"], itm["exceptions"]);
}

/// How often `interrupts` reports an entry of the timer's interrupt from the ITM.
fn reported(arguments: &[&str], input: &[u8]) -> u64 {
    let mut command = tracewalk();
    command.args(["interrupts", "-q", "--format", "json"]).args(arguments).write_stdin(input);
    let document = serde_json::from_slice::<Value>(&command.output().unwrap().stdout).unwrap();
    let mut sources = document["sources"].as_array().unwrap().iter();
    let Some(itm) = sources.find(|source| source["protocol"] == "itm") else { return 0 };
    itm["exceptions"].as_array().unwrap().iter().map(|one| one["count"].as_u64().unwrap()).sum()
}

#[tracewalk_corpus::test]
fn what_an_itm_reports_is_counted_in_windows_and_live_and_stands_in_the_timeline() {
    let case = corpus("real/stm32f105");
    let [swo, elf] = ["swo.bin", "trace_example.elf"].map(|file| case.join(file).display().to_string());
    let stated = ["--container", "frames", "--source", "0x01=itm", "--source", "0x02=etmv3,cpu=cortex-m3"];
    let stated = [&stated[..], &["--image", &elf]].concat();
    let bytes = std::fs::read(&swo).unwrap();
    let (of_file, live) = ([&[swo.as_str()], &stated[..]].concat(), [&["-"], &stated[..]].concat());
    let all = reported(&of_file, &[]);
    assert_eq!(all, 8);
    assert_eq!(reported(&live, &bytes), all);
    // The interrupt comes every 150 instructions.
    let windowed = |bound| reported(&[&of_file[..], &[bound, "400"]].concat(), &[]);
    let (first, rest) = (windowed("--to"), windowed("--from"));
    assert!(first > 0 && rest > 0, "{first} and {rest}");
    assert_eq!(first + rest, all);
    assert_eq!(reported(&[&live[..], &["--to", "400"]].concat(), &bytes), first);
    for format in ["csv", "text", "chrome"] {
        let arguments = [&["timeline", "-q", "--format", format], &of_file[..]].concat();
        let entries = run(&arguments).stdout.matches("IRQ28 entered").count();
        assert_eq!(entries as u64, all, "{format}");
    }
}
