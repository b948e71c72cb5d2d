//! Tables as Parquet, read by pyarrow, DuckDB and polars (tests/tables/parquet.py).

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tracewalk_analysis::counts::CountsReport;
use tracewalk_report::export::{CRASH_TABLES, DIFF_TABLES};
use tracewalk_session::INFO_TABLES;

use crate::support::python::python;
use crate::support::{example, tracewalk};

/// A command, and the options that choose one of its tables.
type Table = (&'static str, Vec<&'static str>);

/// Every table that a command writes from a capture alone.
fn tables() -> Vec<Table> {
    let of = |command, option, names: &[&'static str]| {
        names.iter().map(move |name| (command, vec![option, *name])).collect::<Vec<_>>()
    };
    let alone = ["flow", "packets", "calls", "timeline", "interrupts"].map(|command| (command, Vec::new()));
    [
        alone.to_vec(),
        vec![("calls", vec!["--fold", "chains"])],
        of("info", "--table", &INFO_TABLES),
        of("counts", "--table", &CountsReport::TABLES),
        of("crash", "--table", &CRASH_TABLES),
        of("coverage", "--table", &["lines", "files", "functions", "branches"]),
        of("profile", "--table", &["functions", "lines", "calls", "binaries"]),
    ]
    .concat()
}

/// Writes each table of captures as CSV and as Parquet, and returns the script's comparison of each.
fn compared(captures: &[&Path], tables: &[Table], folder: &Path) -> Vec<Value> {
    let python = python();
    let mut files = Vec::new();
    for (number, (command, chosen)) in tables.iter().enumerate() {
        for format in ["csv", "parquet"] {
            let file = folder.join(format!("{command}-{number}.{format}"));
            let output = tracewalk()
                .arg(command)
                .args(captures)
                .args(["-q", "--format", format])
                .args(chosen)
                .output()
                .expect("the command runs");
            std::fs::write(&file, output.stdout).expect("a folder of ours");
            files.push(file);
        }
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tables/parquet.py");
    let output = Command::new(python).arg(script).args(&files).output().expect("Python runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read = String::from_utf8(output.stdout).expect("text");
    read.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

#[test]
#[ignore = "needs the Python packages"]
fn every_table_is_the_same_in_csv_and_in_parquet() {
    for name in ["m3-etmv3", "a57-etmv4", "m0-crash-mtb"] {
        let folder = tempfile::tempdir().unwrap();
        let capture = example(name).join("capture.toml");
        let tables = tables();
        let read = compared(&[&capture], &tables, folder.path());
        assert_eq!(read.len(), tables.len());
        assert!(read.iter().all(|table| table["version"].as_u64() >= Some(1)), "{read:?}");
        assert!(read.iter().all(|table| table["complete"] == true), "{read:?}");
        let rows = |table: &str| {
            let found = read.iter().filter(|read| read["table"] == table);
            found.filter_map(|read| read["rows"].as_u64()).sum::<u64>()
        };
        for table in ["flow", "packet_counts", "timeline", "ranges", "sources", "functions", "lines"] {
            assert!(rows(table) > 0, "{name}: {table}");
        }
        assert_eq!(rows("stack") > 0, name == "m0-crash-mtb", "{name}");
    }
}

#[test]
#[ignore = "needs the Python packages"]
fn differences_of_captures_are_the_same_in_csv_and_in_parquet() {
    let folder = tempfile::tempdir().unwrap();
    let capture = example("m3-etmv3/capture.toml");
    let tables = DIFF_TABLES.iter().map(|name| ("diff", vec!["--table", *name])).collect::<Vec<_>>();
    let read = compared(&[&capture, &capture], &tables, folder.path());
    assert_eq!(read.len(), DIFF_TABLES.len());
}
