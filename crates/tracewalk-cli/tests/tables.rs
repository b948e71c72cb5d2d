//! Answers as tables: CSV and JSON of every command that has them.

use serde_json::Value;

use crate::support::{example, run};

fn json(arguments: &[&str]) -> Value {
    let outcome = run(arguments.iter().chain(&["--format", "json"]));
    assert_eq!(outcome.status, 0, "{arguments:?}: {}", outcome.stderr);
    serde_json::from_str(&outcome.stdout).unwrap()
}

fn csv(arguments: &[&str]) -> Vec<String> {
    let outcome = run(arguments.iter().chain(&["--format", "csv"]));
    assert_eq!(outcome.status, 0, "{arguments:?}: {}", outcome.stderr);
    outcome.stdout.lines().map(str::to_owned).collect()
}

/// The rows of a table.
fn rows<'a>(document: &'a Value, name: &str) -> &'a [Value] {
    assert_eq!(document["format"], "tracewalk tables");
    let tables = document["tables"].as_array().unwrap();
    let table = tables.iter().find(|table| table["name"] == name);
    table.and_then(|table| table["rows"].as_array()).unwrap_or_else(|| panic!("no {name} in {document}"))
}

#[test]
fn info_gives_tables_whose_counts_agree_with_each_other() {
    let capture = example("m3-etmv3/capture.toml");
    let arguments = ["info", capture.to_str().unwrap()];
    let document = json(&arguments);
    let [source] = rows(&document, "sources") else { panic!("{document}") };
    let packets = rows(&document, "packets").iter().map(|row| row["count"].as_u64().unwrap()).sum::<u64>();
    assert_eq!(source["packets"].as_u64(), Some(packets));
    assert_eq!((&source["protocol"], &source["malformed"]), (&"etmv3".into(), &0.into()));
    // A trace without timestamps has no first one, which is not the time 0.
    assert_eq!((&source["first_timestamp"], &source["cycles"]), (&Value::Null, &Value::Null));
    assert_eq!(rows(&document, "images").len(), 1);
    let lines = csv(&[&arguments[..], &["--table", "packets"]].concat());
    assert_eq!(
        (lines[0].as_str(), lines.len()),
        ("file,id,packet,count", rows(&document, "packets").len() + 1)
    );
}

#[test]
fn timelines_give_a_row_for_each_span() {
    let capture = example("m3-etmv3/capture.toml");
    let arguments = ["timeline", capture.to_str().unwrap()];
    let document = json(&arguments);
    let spans = rows(&document, "timeline");
    assert!(spans.iter().all(|row| row["start"].as_u64() <= row["end"].as_u64()));
    assert!(spans.iter().any(|row| row["kind"] == "function" && row["name"] == "main"));
    assert_eq!(csv(&arguments).len(), spans.len() + 1);
}

/// An ITM tells of interrupts, and nobody knows how long they took; the same of a capture whose program nobody gave.
#[test]
fn what_is_unknown_is_never_a_zero() {
    let trace = example("m3-etmv3/trace.bin");
    let options = ["--container", "frames", "--source", "0x10=etmv3,cpu=cortex-m3", "-q", "--format"];
    let arguments = |command: &'static str, format: &'static str| {
        let mut arguments = vec![command, trace.to_str().unwrap()];
        arguments.extend(options);
        arguments.push(format);
        run(arguments).stdout
    };
    let document: Value = serde_json::from_str(&arguments("interrupts", "json")).unwrap();
    for exception in document["sources"][0]["exceptions"].as_array().unwrap() {
        let lengths = ["with_preemption", "without_preemption", "inter_arrival"].map(|name| &exception[name]);
        for lengths in lengths {
            let values = ["sum", "min", "mean", "p99", "max"].map(|name| lengths[name].clone());
            assert_eq!((&lengths["count"], values), (&0.into(), [const { Value::Null }; 5]), "{exception}");
        }
    }
    assert!(!arguments("interrupts", "text").contains(" 0.0"));
    let csv = arguments("profile", "csv");
    for row in csv.lines().skip(1) {
        let cells = row.split(',').collect::<Vec<_>>();
        assert_eq!(&cells[cells.len() - 3..], ["", "", ""], "{row}");
    }
    let text = arguments("profile", "text");
    assert!(!text.contains("0.0%") && !text.contains(" 0 "), "{text}");
}
