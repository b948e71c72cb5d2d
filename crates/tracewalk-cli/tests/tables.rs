//! Answers as tables: CSV and JSON of every command that has tables.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::support::{copied_example, example, run};

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
    // A trace without timestamps has no first one, which differs from time 0.
    assert_eq!((&source["first_timestamp"], &source["cycles"]), (&Value::Null, &Value::Null));
    assert_eq!(rows(&document, "images").len(), 1);
    let lines = csv(&[&arguments[..], &["--table", "packets"]].concat());
    assert_eq!(
        (lines[0].as_str(), lines.len()),
        ("id,protocol,source_number,trace_file,packet,count", rows(&document, "packets").len() + 1)
    );
}

/// Each packet of the JSON lines is counted with its bytes; together the packets have all bytes of the source.
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

/// That calls add up to the profile is tested in `agreement`.
#[test]
fn calls_and_chains_refer_to_rows() {
    let capture = example("m3-etmv3/capture.toml");
    let capture = capture.to_str().unwrap();
    let calls = json(&["calls", capture]);
    let rows_of_calls = rows(&calls, "calls");
    let numbers = rows_of_calls.iter().map(|row| row["call"].as_u64().unwrap()).collect::<BTreeSet<_>>();
    assert_eq!(numbers.len(), rows_of_calls.len());
    for row in rows_of_calls.iter().filter(|row| !row["called_by"].is_null()) {
        assert!(numbers.contains(&row["called_by"].as_u64().unwrap()), "{row}");
    }
    assert_eq!(csv(&["calls", capture]).len(), rows_of_calls.len() + 1);
    let shallow = json(&["calls", capture, "--depth", "1"]);
    assert!(rows(&shallow, "calls").iter().all(|row| row["depth"].as_u64() <= Some(1)));
    for row in rows(&json(&["calls", capture, "--fold", "chains"]), "chains") {
        let outside = row["outside"].as_u64();
        assert_eq!(outside.is_none(), row["depth"] == 0, "{row}");
        assert!(outside < row["chain"].as_u64());
    }
}

/// The tables of differences have the document's content.
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

/// An ITM reports interrupts, but not their durations; a capture without its program has no durations either.
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
        assert_eq!(&cells[cells.len() - 5..cells.len() - 2], ["", "", ""], "{row}");
    }
    let text = arguments("profile", "text");
    assert!(!text.contains("0.0%") && !text.contains(" 0 "), "{text}");
}

/// Each row of the table equals the object in the JSON lines, with a cell for each field.
#[test]
fn flow_is_a_row_for_each_element_of_the_lines() {
    let folder = tempfile::tempdir().unwrap();
    let damaged = copied_example("m3-etmv3", folder.path());
    let trace = folder.path().join("trace.bin");
    let mut bytes = std::fs::read(&trace).unwrap();
    bytes[2000..2040].fill(0x55);
    std::fs::write(&trace, bytes).unwrap();
    let examples =
        ["a7-etmv3", "a15-pft", "m3-etmv3", "m0-crash-mtb"].map(|name| example(name).display().to_string());
    for capture in examples.iter().chain([&damaged]) {
        let written = |format: &str| run(["flow", capture, "--format", format, "-q"]).stdout;
        let document: Value = serde_json::from_str(&written("json")).unwrap();
        let lines = written("jsonl");
        let elements = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let elements = elements.filter(|object| object["element"] != "itm").collect::<Vec<_>>();
        let rows = rows(&document, "flow");
        assert_eq!(rows.len(), elements.len(), "{capture}");
        for (row, object) in rows.iter().zip(&elements) {
            for (field, value) in object.as_object().unwrap() {
                match (field.as_str(), object["element"].as_str().unwrap()) {
                    ("v", _) | ("profile", _) => {}
                    ("branch", _) => {
                        assert_eq!(row["branch"], value["kind"], "{row}");
                        for name in ["taken", "link", "return", "condition_failed"] {
                            assert_eq!(row[name], value[name], "{row}");
                        }
                    }
                    ("number", _) => assert_eq!(row["exception"], *value, "{row}"),
                    ("handler_isa", _) => assert_eq!(row["isa"], *value, "{row}"),
                    ("addr", _) => assert_eq!(row["address"], *value, "{row}"),
                    ("instruction", _) => assert_eq!(row["start"], *value, "{row}"),
                    ("missing", _) => assert_eq!(row["reason"], *value, "{row}"),
                    (name, _) => assert_eq!(row[name], *value, "{name} of {row}"),
                }
            }
        }
        // The text names the same functions and lines.
        let text = written("text");
        let named = rows.iter().filter_map(|row| row["function"].as_str()).collect::<BTreeSet<_>>();
        assert!(named.len() > 3 && named.iter().all(|name| text.contains(name)), "{named:?}");
        assert!(rows.iter().any(|row| row["file"].is_string() && row["line"].is_u64()), "{capture}");
        assert_eq!(written("csv").lines().count(), rows.len() + 1);
        if *capture == damaged {
            assert!(rows.iter().any(|row| row["in_doubt_from"].is_u64()), "{document}");
        }
    }
}

/// The cells of a line of CSV.
fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut quoted) = (vec![String::new()], false);
    for character in line.trim_end().chars() {
        match character {
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            other => cells.last_mut().unwrap().push(other),
        }
    }
    cells
}

/// A cell as in the JSON document: an empty one is unknown.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.replace('"', ""),
        other => other.to_string(),
    }
}

/// The tables of crashes have the document's content.
#[test]
fn crashes_are_tables() {
    let folder = example("../crashes");
    let mut proofs = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let case = entry.unwrap().path();
        let log = case.join("crash.log").display().to_string();
        let name = case.file_name().unwrap().to_str().unwrap().to_owned();
        let image = super::crash::truth::program(&name).display().to_string();
        let described = case.join("capture.toml");
        let mut arguments = vec!["crash".to_owned(), "-q".to_owned()];
        match described.exists() {
            true => arguments.extend([described.display().to_string(), "--dump".to_owned(), log]),
            false => arguments.push(log),
        }
        arguments.extend(["--image".to_owned(), image]);
        let written = |more: &[&str]| {
            let outcome = run(arguments.iter().map(String::as_str).chain(more.iter().copied()));
            // A wild jump leads out of the program, which gives status 2, but the result is complete.
            assert!(outcome.status != 2 || name.contains("jump"), "{name}: {}", outcome.stderr);
            outcome.stdout
        };
        let document: Value = serde_json::from_str(&written(&["--format", "json"])).unwrap();
        let table = |table: &str| {
            let text = written(&["--format", "csv", "--table", table]);
            let mut lines = text.lines().map(cells);
            let columns = lines.next().unwrap();
            let row = |cells: Vec<String>| columns.iter().cloned().zip(cells).collect::<BTreeMap<_, _>>();
            lines.map(row).collect::<Vec<_>>()
        };
        let crashes = table("crashes");
        let crash = &crashes[0];
        let expected = [
            ("exception", &document["fault"]["number"]),
            ("name", &document["fault"]["name"]),
            ("at", &document["at"]["address"]),
            ("function", &document["at"]["function"]),
            ("line", &document["at"]["line"]),
            ("cause", &document["cause"]["kind"]),
            ("cause_at", &document["cause"]["at"]["address"]),
            ("cause_line", &document["cause"]["at"]["line"]),
            ("sentence", &document["cause"]["sentence"]),
        ];
        for (column, value) in expected {
            assert_eq!(crash[column], cell(value), "{name}: {column}");
        }
        for (list, columns) in
            [("stack", &["function"][..]), ("last", &["at", "function", "file", "line"])]
        {
            let (found, expected) = (table(list), document[list].as_array().unwrap());
            assert_eq!(found.len(), expected.len(), "{name}: {list}");
            for (row, value) in found.iter().zip(expected) {
                let field = |column: &str| &value[if column == "at" { "address" } else { column }];
                assert!(columns.iter().all(|column| row[*column] == cell(field(column))), "{name}: {row:?}");
            }
        }
        let path = table("path").into_iter().filter(|row| row["depth"] == "0").collect::<Vec<_>>();
        let kinds = document["path"].as_array().unwrap().iter().map(|item| cell(&item["kind"]));
        assert!(path.iter().map(|row| row["kind"].clone()).eq(kinds), "{name}: {path:?}");
        let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
        let registers = table("registers").into_iter().map(|row| (row["name"].clone(), row["value"].clone()));
        let registers = registers.collect::<BTreeMap<_, _>>();
        for (register, value) in document["registers"].as_object().into_iter().flatten() {
            assert_eq!(
                registers[register],
                number(value.as_str().unwrap()).to_string(),
                "{name}: {register}"
            );
        }
        let proof = table("proof");
        let expected = document["cause"]["proof"].as_array().cloned().unwrap_or_default();
        assert_eq!(proof.len(), expected.len(), "{name}");
        for (row, value) in proof.iter().zip(&expected) {
            assert_eq!(row["code"], cell(&value["bytes"]), "{name}: {row:?}");
            for column in ["kind", "role", "exception", "holder", "executed", "offset", "times"] {
                assert_eq!(row[column], cell(&value[column]), "{name}: {column} of {row:?}");
            }
            proofs += 1;
        }
    }
    assert!(proofs > 40, "{proofs}");
}
