//! The command writes the same bytes on any number of threads. That no answer and no format depends on how a trace is
//! decoded is tested in `tracewalk-session`.

use std::path::Path;

use crate::support::{example, tracewalk};

/// The bytes of a thread's stack: as usual, and so many that the system refuses each thread.
const STACK: &str = "2097152";
const HUGE_STACK: &str = "1152921504606846976";

fn written(arguments: &[&str], capture: &Path, how: &[&str], stack: &str) -> (Option<i32>, Vec<u8>) {
    let (command, options) = arguments.split_first().expect("a command");
    let mut run = tracewalk();
    run.arg(command).arg(capture).args(options).args(how).args(["--color", "never"]);
    let output = run.env("RUST_MIN_STACK", stack).output().expect("the command runs");
    (output.status.code(), output.stdout)
}

#[test]
fn every_command_writes_the_same_on_one_thread_on_seven_and_if_none_can_be_made() {
    let capture = example("a15-pft/capture.toml");
    let other = example("a7-etmv3/capture.toml");
    let other = other.to_str().expect("a plain name");
    let commands: [&[&str]; 12] = [
        &["flow"],
        &["flow", "--last", "70"],
        &["flow", "--from", "100", "--to", "5000"],
        &["calls"],
        &["profile"],
        &["coverage"],
        &["coverage", other],
        &["counts"],
        &["interrupts"],
        &["tasks"],
        &["timeline"],
        &["diff", other],
    ];
    for arguments in commands {
        let one = written(arguments, &capture, &["--threads", "1"], STACK);
        let [seven, none] = [STACK, HUGE_STACK]
            .map(|stack| written(arguments, &capture, &["--threads", "7", "--segment", "512"], stack));
        assert!(one == seven && !one.1.is_empty(), "{arguments:?}");
        assert!(one == none, "{arguments:?} without threads: {:?}", none.0);
    }
    // Only the memory of a Micro Trace Buffer shows what crashed.
    let crash = example("m0-crash-mtb/capture.toml");
    let [one, seven] = ["1", "7"].map(|threads| written(&["crash"], &crash, &["--threads", threads], STACK));
    assert!(one == seven && !one.1.is_empty());
}

#[test]
fn a_stream_is_read_even_if_no_thread_can_wait_for_it() {
    let bytes = std::fs::read(example("a15-pft/trace.bin")).expect("an example");
    let [with, without] = [STACK, HUGE_STACK].map(|stack| {
        let mut command = tracewalk();
        command.args(["packets", "-", "--container", "frames", "--format", "jsonl"]).env("RUST_MIN_STACK", stack);
        let output = command.write_stdin(bytes.as_slice()).output().expect("the command runs");
        (output.status.code(), output.stdout)
    });
    assert!(with == without && with.0 == Some(0) && !with.1.is_empty(), "{:?} and {:?}", with.0, without.0);
}
