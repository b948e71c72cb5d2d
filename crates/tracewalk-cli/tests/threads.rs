//! The command writes the same bytes on any number of threads. That no answer and no format depends on how a trace is
//! decoded is tested in `tracewalk-session`.

use std::path::Path;

use crate::support::{example, run};

fn written(arguments: &[&str], capture: &Path, how: &[&str]) -> (i32, String) {
    let capture = capture.to_str().expect("a plain name");
    let (command, options) = arguments.split_first().expect("a command");
    let outcome = run([&[command, capture], options, how, &["--color", "never"]].concat());
    (outcome.status, outcome.stdout)
}

#[test]
fn every_command_writes_the_same_on_one_thread_and_on_seven() {
    let capture = example("a15-pft/capture.toml");
    let other = example("a7-etmv3/capture.toml");
    let commands: [&[&str]; 10] = [
        &["flow"],
        &["flow", "--last", "70"],
        &["flow", "--from", "100", "--to", "5000"],
        &["calls"],
        &["profile"],
        &["coverage"],
        &["counts"],
        &["interrupts"],
        &["timeline"],
        &["diff", other.to_str().expect("a plain name")],
    ];
    for arguments in commands {
        let one = written(arguments, &capture, &["--threads", "1"]);
        let seven = written(arguments, &capture, &["--threads", "7", "--segment", "512"]);
        assert!(one == seven && !one.1.is_empty(), "{arguments:?}");
    }
    // Only the memory of a Micro Trace Buffer shows what crashed.
    let crash = example("m0-crash-mtb/capture.toml");
    let [one, seven] = ["1", "7"].map(|threads| written(&["crash"], &crash, &["--threads", threads]));
    assert!(one == seven && !one.1.is_empty());
}
