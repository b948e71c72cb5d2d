//! The page's figures equal those of `flow`, `profile` and `coverage`.

use serde_json::Value;

use super::Served;
use crate::support::{example, run};

const EXAMPLES: [&str; 4] = ["m3-etmv3", "a15-pft", "a53-etmv4", "m0-crash-mtb"];

fn capture(name: &str) -> String {
    example(name).join("capture.toml").to_str().unwrap().to_owned()
}

fn number(hex: &Value) -> u64 {
    u64::from_str_radix(hex.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}

fn all_rows(served: &Served) -> Vec<Value> {
    let steps = served.ask("capture")["sources"][0]["steps"].as_u64().unwrap();
    let part =
        |from: u64| served.ask(&format!("rows?from={from}&count=4096"))["rows"].as_array().unwrap().clone();
    (0..steps).step_by(4096).flat_map(part).collect()
}

#[test]
fn the_steps_are_those_of_flow() {
    for name in EXAMPLES {
        let rows = all_rows(&Served::of(name));
        let flow = run(["flow", &capture(name), "--format", "jsonl", "--quiet"]).stdout;
        let mut rows = rows.iter().enumerate();
        for line in flow.lines() {
            let element = serde_json::from_str::<Value>(line).unwrap();
            let kind = element["element"].as_str().unwrap();
            if kind == "range" {
                let (start, end) = (number(&element["start"]), number(&element["end"]));
                let count = element["instructions"].as_u64().unwrap();
                for index in 0..count {
                    let (step, row) = rows.next().expect("a row");
                    assert_eq!(
                        (row["step"].as_u64(), &row["kind"]),
                        (Some(step as u64), &"instruction".into())
                    );
                    let address = number(&row["address"]);
                    assert!(
                        if index == 0 { address == start } else { address > start && address < end },
                        "{line}"
                    );
                }
            } else if !kind.starts_with("itm") {
                let expected = match kind {
                    "exception" | "gap" => kind,
                    _ => "event",
                };
                let (step, row) = rows.next().expect("a row");
                assert_eq!(
                    (row["step"].as_u64(), &row["kind"]),
                    (Some(step as u64), &expected.into()),
                    "{line}"
                );
            }
        }
        assert!(rows.next().is_none(), "{name}");
    }
}

/// A page for any place shows the same as a page for all places: calls do not depend on the previous place.
#[test]
fn a_place_is_the_same_from_everywhere() {
    let served = Served::of("m3-etmv3");
    let rows = all_rows(&served);
    let mut step = 0;
    for _ in 0..200 {
        step = (step * 31 + 4099) % rows.len();
        let near = served.ask(&format!("rows?from={step}&count=2"));
        assert_eq!(near["rows"][0], rows[step]);
        let here = served.ask(&format!("here?step={step}"));
        let frames = here["frames"].as_array().unwrap();
        assert_eq!(here["row"]["address"], rows[step]["address"]);
        if rows[step]["kind"] == "instruction" {
            assert_eq!(frames[0]["function"], rows[step]["function"], "step {step}");
            assert_eq!(frames.len() as u64, rows[step]["depth"].as_u64().unwrap() + 1, "step {step}");
        }
    }
}

#[test]
fn costs_are_those_of_profile() {
    for name in EXAMPLES {
        assert_costs(&Served::of(name), &capture(name));
    }
}

/// The table of costs equals the output of `profile` for a capture.
pub(super) fn assert_costs(served: &Served, capture: &str) {
    let costs = served.ask("costs");
    let profile = run(["profile", capture, "--format", "csv", "--quiet"]).stdout;
    let mut lines = profile.lines();
    let columns = lines.next().unwrap().split(',').collect::<Vec<_>>();
    let column = |name: &str| {
        let found = columns.iter().position(|column| *column == name);
        found.unwrap_or_else(|| panic!("{name} of {columns:?}"))
    };
    let found = costs["functions"].as_array().unwrap();
    assert_eq!(found.len(), lines.clone().count(), "{capture}");
    for (line, cost) in lines.zip(found) {
        // No function of the examples has a comma in its name.
        let cells = line.split(',').collect::<Vec<_>>();
        assert_eq!(cells[column("function")], cost["name"], "{line}");
        assert_eq!(cells[column("self")], cost["self"].to_string(), "{line}");
        assert_eq!(cells[column("total")], cost["total"].to_string(), "{line}");
        assert_eq!(cells[column("calls")], cost["calls"].to_string(), "{line}");
    }
}

#[test]
fn counts_beside_lines_are_those_of_coverage() {
    for name in EXAMPLES {
        assert_counts(&Served::of(name), &capture(name));
    }
}

/// The counts beside lines equal the output of `coverage` for a capture.
pub(super) fn assert_counts(served: &Served, capture: &str) {
    let coverage = run(["coverage", capture, "--format", "json", "--quiet"]).stdout;
    let document = serde_json::from_str::<Value>(&coverage).unwrap();
    let mut lines = 0;
    for file in document["files"].as_array().unwrap() {
        let name = file["name"].as_str().unwrap();
        let shown = served.ask(&format!("file?file={name}"));
        let expected = file["lines"].as_array().unwrap().iter();
        let expected =
            expected.map(|line| (line["line"].as_u64(), line["count"].as_u64())).collect::<Vec<_>>();
        let counts = shown["counts"].as_array().unwrap().iter();
        let counts = counts.map(|line| (line[0].as_u64(), line[1].as_u64())).collect::<Vec<_>>();
        assert_eq!(counts, expected, "{name}");
        lines += counts.len();
    }
    assert!(lines > 0, "{capture}");
}

/// The timeline's bars cover each step with the functions that run at it.
#[test]
fn the_timeline_is_the_calls() {
    let served = Served::of("m3-etmv3");
    let rows = all_rows(&served);
    let timeline = served.ask(&format!("timeline?from=0&to={}&width=100000", rows.len()));
    assert_eq!(timeline["exact"], true);
    let bars = timeline["bars"].as_array().unwrap();
    let mut compared = 0;
    for row in rows.iter().step_by(7).filter(|row| row["kind"] == "instruction") {
        let step = row["step"].as_u64().unwrap();
        let covers = |bar: &&Value| bar[1].as_u64().unwrap() <= step && step < bar[2].as_u64().unwrap();
        let deepest = bars.iter().filter(covers).max_by_key(|bar| bar[0].as_u64());
        let deepest = deepest.unwrap_or_else(|| panic!("step {step} has no bar"));
        assert_eq!(deepest[0], row["depth"], "step {step}");
        let name = usize::try_from(deepest[3].as_u64().unwrap()).unwrap();
        assert_eq!(timeline["names"][name], row["function"], "step {step}");
        compared += 1;
    }
    assert!(compared > 500, "{compared}");
}
