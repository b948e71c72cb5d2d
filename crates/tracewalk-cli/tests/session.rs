//! The session's example programs find what the command finds.

#[path = "../../tracewalk-session/examples/blocks.rs"]
mod blocks;
#[path = "../../tracewalk-session/examples/coverage.rs"]
mod example_program;

use crate::support::{example, run};
use serde_json::Value;
use tracewalk_analysis::coverage::Tally;

#[test]
fn the_example_of_coverage_counts_what_the_command_counts() {
    for name in ["m3-etmv3", "a7-etmv3", "a15-pft", "m0-crash-mtb"] {
        let capture = example(name).join("capture.toml");
        let outcome = run(["coverage", capture.to_str().unwrap(), "--format", "json"]);
        let report = serde_json::from_str::<Value>(&outcome.stdout).unwrap();
        let totals = example_program::totals(&capture).unwrap();
        assert_eq!(totals.len(), 4, "{name}");
        for (metric, Tally { found, covered, .. }) in totals {
            let counted = &report["totals"][metric.name()];
            assert_eq!(counted["found"], found, "{name}: {}", metric.name());
            assert_eq!(counted["covered"], covered, "{name}: {}", metric.name());
        }
    }
}

#[test]
fn the_example_of_blocks_names_the_functions_and_lines_that_the_command_names() {
    let (trace, elf) = (example("m3-etmv3").join("trace.bin"), example("m3-etmv3").join("m3.elf"));
    let (trace, elf) = (trace.to_str().unwrap(), elf.to_str().unwrap());
    let source = ["--source", "0x10=etmv3,cpu=cortex-m3"];
    let outcome = run(["flow", trace, "--image", elf, source[0], source[1], "--format", "json"]);
    let tables = serde_json::from_str::<Value>(&outcome.stdout).unwrap();
    let rows = tables["tables"][0]["rows"].as_array().unwrap();
    let ranges = rows.iter().filter(|row| row["element"] == "range").map(|row| {
        let text = |name: &str| row[name].as_str().unwrap_or("?").to_owned();
        let line = row["line"].as_u64().unwrap_or(0);
        let (start, function, file) = (text("start"), text("function"), text("file"));
        format!("{start} {} {function} {file}:{line}", row["instructions"])
    });
    let ranges = ranges.collect::<Vec<_>>();
    let mut found = Vec::new();
    assert!(blocks::write_blocks(&mut found).unwrap());
    let found = String::from_utf8(found).unwrap();
    assert_eq!(found.lines().collect::<Vec<_>>(), ranges);
    assert!(ranges.len() > 1000, "{}", ranges.len());
}
