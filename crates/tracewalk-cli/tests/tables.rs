//! Answers as tables: CSV and JSON of every command that has them.

use std::collections::{BTreeMap, BTreeSet};

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

/// Each packet of the JSON lines is counted, with its bytes; together they are all bytes of the source.
#[test]
fn packets_are_counted_by_kind() {
    let capture = example("a7-etmv3/capture.toml");
    let arguments = ["packets", capture.to_str().unwrap()];
    let document = json(&arguments);
    let counted = rows(&document, "packet_counts").iter().map(|row| {
        let number = |column: &str| row[column].as_u64().unwrap();
        assert_eq!((&row["id"], &row["protocol"]), (&0x10.into(), &"etmv3".into()));
        (row["packet"].as_str().unwrap().to_owned(), (number("count"), number("bytes")))
    });
    let counted = counted.collect::<BTreeMap<_, _>>();
    let mut expected = BTreeMap::<String, (u64, u64)>::new();
    let lines = run(arguments.iter().chain(&["--format", "jsonl"])).stdout;
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let sum = expected.entry(line["packet"].as_str().unwrap().to_owned()).or_default();
        *sum = (sum.0 + 1, sum.1 + line["bytes"].as_str().unwrap().len() as u64 / 2);
    }
    assert_eq!(counted, expected);
    assert_eq!(csv(&arguments).len(), counted.len() + 1);
}

/// The rows of calls add up to what the profile says of functions, and chains to the same.
#[test]
fn calls_are_rows_that_add_up_to_the_profile() {
    let capture = example("m3-etmv3/capture.toml");
    let capture = capture.to_str().unwrap();
    let of = |document: &Value, table: &str, name: &str, keep: &dyn Fn(&Value) -> bool| {
        let mut calls = BTreeMap::<String, u64>::new();
        for row in rows(document, table).iter().filter(|row| keep(row)) {
            *calls.entry(row[name].as_str().unwrap().to_owned()).or_default() +=
                row["calls"].as_u64().unwrap_or(1);
        }
        calls
    };
    let calls = json(&["calls", capture]);
    let profile = json(&["profile", capture]);
    // Those that ran already when they were first seen were not called.
    let called = of(&profile, "functions", "function", &|row| row["calls"] != 0);
    let ended = of(&calls, "calls", "function", &|_| true);
    let mut compared = 0;
    for (function, count) in &ended {
        // One of each may run already when the trace begins.
        let expected = called.get(function).copied().unwrap_or(0);
        assert!(expected == *count || expected + 1 == *count, "{function}: {count} rows, {expected} calls");
        compared += 1;
    }
    assert!(compared > 5, "{ended:?}");
    let rows_of_calls = rows(&calls, "calls");
    let numbers = rows_of_calls.iter().map(|row| row["call"].as_u64().unwrap()).collect::<BTreeSet<_>>();
    assert_eq!(numbers.len(), rows_of_calls.len());
    for row in rows_of_calls.iter().filter(|row| !row["caller"].is_null()) {
        assert!(numbers.contains(&row["caller"].as_u64().unwrap()), "{row}");
    }
    let outermost = rows_of_calls.iter().filter(|row| row["caller"].is_null());
    assert!(outermost.map(|row| row["instructions"].as_u64().unwrap()).sum::<u64>() > 1000);
    assert_eq!(csv(&["calls", capture]).len(), rows_of_calls.len() + 1);
    let shallow = json(&["calls", capture, "--depth", "1"]);
    assert!(rows(&shallow, "calls").iter().all(|row| row["depth"].as_u64() <= Some(1)));

    let chains = json(&["calls", capture, "--fold", "chains"]);
    let by_chain = of(&chains, "chains", "name", &|row| row["kind"] == "function" && row["calls"] != 0);
    assert_eq!(by_chain, called);
    for row in rows(&chains, "chains") {
        let depth = row["depth"].as_u64().unwrap();
        let outside = row["outside"].as_u64();
        assert_eq!(outside.is_none(), depth == 0, "{row}");
        assert!(outside < row["chain"].as_u64());
    }
}

/// The tables of differences hold what the document does.
#[test]
fn differences_are_tables() {
    let captures = ["a7-etmv3/capture.toml", "a15-pft/capture.toml"].map(example);
    let [a, b] = captures.each_ref().map(|path| path.to_str().unwrap());
    let run_with = |options: &[&str]| run(["diff", a, b].iter().chain(options)).stdout;
    let document: Value = serde_json::from_str(&run_with(&["--format", "json"])).unwrap();
    let source = &document["sources"][0];
    let table = |name: &str| {
        let text = run_with(&["--format", "csv", "--table", name]);
        text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect::<Vec<Vec<_>>>()
    };
    let functions = table("functions");
    assert_eq!(functions.len(), source["functions"].as_array().unwrap().len() + 1);
    for (row, function) in functions[1..].iter().zip(source["functions"].as_array().unwrap()) {
        assert_eq!((row[0].as_str(), row[1].as_str()), ("16", "19"));
        assert_eq!(row[2], function["name"].as_str().unwrap());
        assert_eq!(row[4], function["calls"][0].to_string());
        assert_eq!(row[7], function["own"][1]["instructions"].to_string());
    }
    let sources = table("sources");
    assert_eq!(sources.len(), 2);
    assert_eq!(sources[1][3], source["instructions"][0].to_string());
    let files = ["lost", "gained"].map(|side| source["coverage"][side].as_array().unwrap());
    let named = files.iter().flat_map(|files| files.iter()).map(|file| {
        ["lines", "functions"].map(|list| file[list].as_array().unwrap().len()).iter().sum::<usize>()
    });
    assert_eq!(table("lines").len(), named.sum::<usize>() + 1);
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
