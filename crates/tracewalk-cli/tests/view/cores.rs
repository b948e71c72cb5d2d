//! Other sources of a capture are lanes beside the selected one.

use std::path::PathBuf;

use serde_json::Value;

use super::Served;
use crate::support::example;

/// A capture of a Cortex-A7 and a Cortex-A15 that executed the same program, with its description.
pub(super) fn two_sources(folder: &std::path::Path) -> PathBuf {
    let text = "[capture]\nfile = \"trace.bin\"\ncontainer = \"frames\"\n\
        [[source]]\nid = 0x10\nprotocol = \"etmv3\"\ncpu = \"cortex-a7\"\nregisters = { etmcr = 0x5000 }\n\
        [[source]]\nid = 0x13\nprotocol = \"pft\"\ncpu = \"cortex-a15\"\nregisters = { etmcr = 0x20000000 }\n\
        [[image]]\nfile = \"a9.elf\"\n";
    for (from, to) in [("../two-sources/trace.bin", "trace.bin"), ("a7-etmv3/a9.elf", "a9.elf")] {
        std::fs::copy(example(from), folder.join(to)).unwrap();
    }
    std::fs::write(folder.join("capture.toml"), text).unwrap();
    folder.join("capture.toml")
}

fn steps(served: &Served, source: u64) -> u64 {
    served.ask("capture")["sources"][usize::try_from(source).unwrap()]["steps"].as_u64().unwrap()
}

/// Each bar names the function that the other source runs at the same time.
#[test]
fn a_lane_says_who_runs_on_the_other_core_at_the_same_time() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start([two_sources(folder.path())]);
    let mut compared = 0;
    for shown in [0, 1] {
        let all = steps(&served, shown);
        for (from, to) in [(0, all), (all / 3, all / 2), (all / 2, all / 2 + 50)] {
            let answer = served.ask(&format!("cores?source={shown}&from={from}&to={to}&width=900"));
            assert_eq!(answer["ruler"], "timestamp");
            let lanes = answer["lanes"].as_array().unwrap();
            assert_eq!(lanes.len(), 1);
            assert_eq!(lanes[0]["source"], 1 - shown);
            let mut end = from;
            for bar in lanes[0]["bars"].as_array().unwrap() {
                let number = |index: usize| bar[index].as_u64().unwrap();
                assert_eq!(number(0), end, "bars follow one another");
                end = number(1);
                assert!(end > number(0) && end <= to);
                let step = number(3);
                let here = |source, step| served.ask(&format!("here?source={source}&step={step}"));
                // At the same time: the other source's step is the first that reaches the timestamp.
                let time = here(shown, number(0))["before"]["time"].as_u64().unwrap();
                let other = here(1 - shown, step);
                assert!(other["before"]["time"].as_u64().unwrap() <= time.max(1) || step == 0);
                let Some(name) = bar[2].as_str() else {
                    assert_eq!(bar[2], Value::Null);
                    continue;
                };
                let rows = served.ask(&format!("rows?source={}&from={step}&count=64", 1 - shown));
                let first = rows["rows"].as_array().unwrap().iter().find(|row| row["kind"] == "instruction");
                assert_eq!(first.expect("an instruction")["function"], name);
                compared += 1;
            }
        }
    }
    assert!(compared > 20, "{compared}");
}

#[test]
fn one_source_has_no_other_lanes() {
    let served = Served::of("m3-etmv3");
    let answer = served.ask("cores?from=0&to=1000&width=900");
    assert_eq!((&answer["ruler"], &answer["lanes"]), (&Value::Null, &Value::Array(Vec::new())));
}
