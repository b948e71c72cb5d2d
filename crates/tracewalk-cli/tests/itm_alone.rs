//! An ITM without instruction trace: random logs, compared with what their generator noted.

use std::collections::BTreeMap;
use std::path::Path;

use crate::support::{Outcome, corpus, example, run};
use serde_json::{Value, json};

/// A log, and what its generator noted.
struct Log {
    path: String,
    truth: Value,
}

fn logs() -> Vec<Log> {
    let folder = corpus("itm");
    let truth = std::fs::read_to_string(folder.join("truth.json")).unwrap();
    let truth: Value = serde_json::from_str(&truth).unwrap();
    let log = |truth: &Value| {
        let path = folder.join(truth["file"].as_str().unwrap()).display().to_string();
        Log { path, truth: truth.clone() }
    };
    let logs = truth["files"].as_array().unwrap().iter().map(log).collect::<Vec<_>>();
    assert_eq!(logs.len(), 60);
    logs
}

/// The logs with this entry in the truth.
fn logs_with(field: &str) -> impl Iterator<Item = Log> {
    logs().into_iter().filter(move |log| !log.truth[field].is_null())
}

/// Runs a command, which also finds out that the log is an ITM's.
fn command(name: &str, log: &Log, options: &[&str]) -> Outcome {
    let outcome = run([name, "--quiet", &log.path].iter().chain(options));
    assert_eq!(outcome.status, 0, "{}: {}", log.path, outcome.stderr);
    outcome
}

/// A log's exceptions by number: count, and count, sum, least and greatest of both lengths.
fn exceptions(document: &str) -> BTreeMap<String, Value> {
    let document: Value = serde_json::from_str(document).unwrap();
    assert_eq!(document["axis"]["unit"], "ticks");
    assert_eq!(document["sources"][0]["protocol"], "itm");
    let lengths = |of: &Value| match of["count"].as_u64() {
        Some(0) => Value::Null,
        _ => json!([of["count"], of["sum"], of["min"], of["max"]]),
    };
    let exceptions = document["sources"][0]["exceptions"].as_array().unwrap();
    let exception = |of: &Value| {
        let [with, without] = ["with_preemption", "without_preemption"].map(|field| lengths(&of[field]));
        (of["number"].to_string(), json!({ "count": of["count"], "with": with, "without": without }))
    };
    exceptions.iter().map(exception).collect()
}

#[tracewalk_corpus::test]
fn texts_are_those_that_were_written() {
    for log in logs() {
        let text = log.truth["text"].as_str().unwrap().chars().map(|byte| u8::try_from(byte).unwrap());
        let found = run(["itm", "--quiet", &log.path]).stdout;
        assert_eq!(found, String::from_utf8_lossy(&text.collect::<Vec<_>>()), "{}", log.path);
    }
}

#[tracewalk_corpus::test]
fn exceptions_took_as_long_as_the_generator_noted() {
    let mut compared = 0;
    for log in logs_with("interrupts") {
        let found = exceptions(&command("interrupts", &log, &["--format", "json"]).stdout);
        let truth = log.truth["interrupts"].as_object().unwrap();
        assert_eq!(found, truth.clone().into_iter().collect(), "{}", log.path);
        compared += truth.len();
    }
    assert_eq!(compared, 72);
}

/// The samples of each row, by function, of a profile in CSV.
fn samples(csv: &str) -> BTreeMap<String, u64> {
    let mut lines = csv.split_terminator("\r\n").map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().unwrap();
    let column = |name: &str| names.iter().position(|column| *column == name).unwrap();
    let row = |row: Vec<&str>| {
        // What samples do not show is unknown.
        for unknown in ["calls", "total", "self_instructions"] {
            assert_eq!(row[column(unknown)], "", "{csv}");
        }
        (row[column("function")].to_owned(), row[column("self")].parse().unwrap())
    };
    lines.map(row).collect()
}

#[tracewalk_corpus::test]
fn samples_are_in_the_functions_that_the_generator_noted() {
    let elf = corpus("itm").join("workshop.elf").display().to_string();
    let mut compared = 0;
    for log in logs_with("profile") {
        let mut found = samples(&command("profile", &log, &["--image", &elf, "--format", "csv"]).stdout);
        assert_eq!(found.remove("(asleep)").unwrap_or(0), log.truth["sleep"], "{}", log.path);
        let truth = log.truth["profile"].as_object().unwrap();
        let truth = truth.iter().map(|(name, count)| (name.clone(), count.as_u64().unwrap()));
        assert_eq!(found, truth.collect(), "{}", log.path);
        compared += 1;
    }
    assert_eq!(compared, 12);
}

#[test]
fn samples_in_no_function_and_asleep_have_rows_of_their_own() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("swo.bin").display().to_string();
    let mut bytes = vec![0, 0, 0, 0, 0, 0x80];
    // SysTick_Handler, two addresses without code.
    for address in [0x174_u32, 0x17a, 0x1000_0000, 0x1000_0004] {
        bytes.push(0x17);
        bytes.extend(address.to_le_bytes());
    }
    bytes.extend([0x15, 0x00]);
    std::fs::write(&file, bytes).unwrap();
    let elf = example("m3-etmv3/m3.elf").display().to_string();
    let profile = |options: &[&str]| run(["profile", &file, "--image", &elf, "--quiet"].iter().chain(options));
    let found = profile(&["--format", "csv", "--container", "raw", "--source", "itm"]);
    let found = samples(&found.stdout);
    let rows = ["SysTick_Handler", "code without a name", "(asleep)"].map(|name| found[name]);
    assert_eq!((rows, found.len()), ([2, 2, 1], 3), "{found:?}");
    // Samples have no instructions and no cycles.
    for unit in ["instructions", "cycles", "time"] {
        assert_eq!(profile(&["--unit", unit]).status, 2);
    }
}

#[tracewalk_corpus::test]
fn spans_of_the_timeline_have_the_lengths_that_the_generator_noted() {
    let mut compared = 0;
    for log in logs_with("interrupts") {
        let truth = log.truth["interrupts"].as_object().unwrap().values();
        if truth.clone().any(|exception| exception["with"].is_null()) {
            // Without timestamps there is no axis.
            assert_eq!(run(["timeline", &log.path]).status, 2, "{}", log.path);
            continue;
        }
        let table: Value =
            serde_json::from_str(&command("timeline", &log, &["--format", "json"]).stdout).unwrap();
        let rows = table["tables"][0]["rows"].as_array().unwrap().iter();
        let spans = rows.filter(|row| row["kind"] == "exception").collect::<Vec<_>>();
        let count = truth.clone().map(|exception| exception["count"].as_u64().unwrap()).sum::<u64>();
        assert_eq!(spans.len() as u64, count, "{}", log.path);
        let known = spans.iter().filter(|span| {
            span["end_note"].is_null() && span["start_certainty"] == "exact" && span["end_certainty"] == "exact"
        });
        let lengths = known.map(|span| span["end_time"].as_u64().unwrap() - span["start_time"].as_u64().unwrap());
        let expected = truth.map(|exception| exception["with"][1].as_u64().unwrap()).sum::<u64>();
        assert_eq!(lengths.sum::<u64>(), expected, "{}", log.path);
        compared += 1;
    }
    assert_eq!(compared, 16);
}

/// The comparator of an access to `ticks`, by its address, and another one whose address only the description has
/// (`samples`).
fn watched_data(directory: &Path) -> (String, String) {
    let mut bytes = vec![0, 0, 0, 0, 0, 0x80];
    // Comparator 1: bits 15:0 of the address 0x20000004, and the value 7, written. At tick 5.
    bytes.extend([0x5e, 0x04, 0x00, 0x9d, 7, 0xc0, 5]);
    // Comparator 2: the value 0x1234, read. At tick 8.
    bytes.extend([0xa6, 0x34, 0x12, 0x30]);
    // Port 1: the value 9. No timestamp.
    bytes.extend([0x0b, 9, 0, 0, 0]);
    std::fs::write(directory.join("swo.bin"), bytes).unwrap();
    std::fs::copy(example("m3-etmv3/m3.elf"), directory.join("fw.elf")).unwrap();
    let description = "[capture]\nfile = \"swo.bin\"\ncontainer = \"raw\"\n[[source]]\nprotocol = \"itm\"\n\
                       other_registers = { DWT_COMP2 = 0x2000003c }\n[[image]]\nfile = \"fw.elf\"\n";
    std::fs::write(directory.join("capture.toml"), description).unwrap();
    let [trace, description] = ["swo.bin", "capture.toml"].map(|name| directory.join(name).display().to_string());
    (trace, description)
}

#[test]
fn comparators_are_named_by_the_data_that_they_watch() {
    let directory = tempfile::tempdir().unwrap();
    let (trace, description) = watched_data(directory.path());
    let elf = example("m3-etmv3/m3.elf").display().to_string();
    let itm = |arguments: &[&str]| run(["itm", "--quiet"].iter().chain(arguments)).stdout;
    let objects = |arguments: &[&str]| {
        let lines = itm(&[arguments, &["--format", "jsonl"]].concat());
        let objects = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let data = objects.filter(|object| object["event"] == "data_value");
        data.map(|object| object["object"].clone()).collect::<Vec<_>>()
    };
    let raw = [&trace, "--container", "raw", "--source", "itm"];
    assert_eq!(objects(&raw), [Value::Null, Value::Null]);
    let with_elf = [&raw[..], &["--image", &elf]].concat();
    assert_eq!(objects(&with_elf), ["ticks".into(), Value::Null]);
    assert_eq!(objects(&[&description]), ["ticks", "samples"]);
    let events = itm(&[&description, "--format", "events"]);
    assert!(events.contains("comparator 1: 0x07 written (ticks)\n"), "{events}");
    assert!(events.contains("comparator 2: 0x1234 read (samples)\n"), "{events}");
    // The timeline has a counter for each.
    let chrome = run(["timeline", "--quiet", "--format", "chrome", &description]);
    let chrome: Value = serde_json::from_str(&chrome.stdout).unwrap();
    let counters = chrome["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "C");
    let counters = counters.map(|event| json!([event["name"], event["ts"], event["args"]["value"]]));
    let expected = [json!(["ticks", 5, 7]), json!(["samples", 8, 0x1234]), json!(["values of port 1", 8, 9])];
    assert_eq!(counters.collect::<Vec<_>>(), expected);
    // Without a timestamp after it, the time of a value is unknown.
    let values = itm(&[&description, "--format", "csv", "--table", "itm_values"]);
    assert_eq!(values, "id,time,name,value\r\n,5,ticks,7\r\n,8,samples,4660\r\n,,values of port 1,9\r\n");
}
