//! The session's example program counts what the command counts.

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
