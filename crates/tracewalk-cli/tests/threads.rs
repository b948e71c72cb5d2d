//! The command writes the same bytes on any number of threads, by passages and element by element: every
//! command that follows a program, in each of its formats, for whole and for damaged captures.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tracewalk_report::formats::{
    CALLS, COUNTS, COVERAGE, CRASH, DIFF, FLOW, Format, INTERRUPTS, PACKETS, PROFILE, TIMELINE,
};

use crate::support::{example, tracewalk};

/// A command and one of its formats.
#[derive(Clone, Copy, Debug)]
struct Way {
    command: &'static str,
    format: &'static str,
    /// Further required options.
    options: &'static [&'static str],
}

/// All formats in the registries of commands with threads.
fn ways() -> Vec<Way> {
    fn of<Make>(
        command: &'static str,
        formats: &'static [Format<Make>],
        options: &'static [&'static str],
    ) -> impl Iterator<Item = Way> {
        formats.iter().map(move |format| Way { command, format: format.name, options })
    }
    let ways = of("flow", FLOW, &[])
        .chain(of("flow", FLOW, &["--from", "100", "--to", "5000"]))
        .chain(of("flow", FLOW, &["--last", "70"]))
        .chain(of("calls", CALLS, &[]))
        .chain(of("profile", PROFILE, &[]))
        .chain(of("coverage", COVERAGE, &[]))
        .chain(of("counts", COUNTS, &[]))
        .chain(of("interrupts", INTERRUPTS, &[]))
        .chain(of("timeline", TIMELINE, &[]))
        .chain(of("diff", DIFF, &[]))
        .chain(of("crash", CRASH, &[]))
        .chain(of("packets", PACKETS, &[]));
    ways.collect()
}

/// How a capture is decoded.
#[derive(Clone, Copy, Debug)]
enum How {
    /// On this number of threads, in segments short enough for each thread to have some. By passages, if the
    /// command takes any.
    Threads(u16),
    /// Element by element: the provenance lists losses, which requires every element in order.
    Elements,
}

/// The command's results: its status, its standard output, and its files by name.
type Written = (Option<i32>, Vec<u8>, BTreeMap<PathBuf, Vec<u8>>);

fn written(capture: &Path, way: &Way, how: How, doubtful: &str) -> Written {
    let folder = tempfile::tempdir().expect("there is room for files");
    let output = folder.path().join("output");
    let mut command = tracewalk();
    command.env("SOURCE_DATE_EPOCH", "0").arg(way.command).arg(capture);
    if way.command == "diff" {
        command.arg(example("m3-etmv3/capture.toml"));
    }
    command.args(["--format", way.format, "--color", "never"]).args(way.options);
    // Packets are never in doubt.
    if way.command != "packets" {
        command.args(["--doubtful", doubtful]);
    }
    if way.format == "ctf" {
        command.arg("--output").arg(&output);
    }
    match how {
        How::Threads(threads) => command.args(["--segment", "512", "--threads", &threads.to_string()]),
        How::Elements => command.arg(format!("--provenance={}", folder.path().join("said").display())),
    };
    let said = command.output().expect("the command runs");
    let files = fs::read_dir(&output).into_iter().flatten().map(|file| {
        let file = file.expect("the folder is readable").path();
        (
            PathBuf::from(file.file_name().expect("a file has a name")),
            fs::read(&file).expect("it is readable"),
        )
    });
    (said.status.code(), said.stdout, files.collect())
}

/// Compares each of `hows` with the output element by element, and returns the number of its bytes.
fn check(capture: &Path, way: &Way, hows: &[How], doubtful: &str) -> usize {
    let expected = written(capture, way, How::Elements, doubtful);
    for &how in hows {
        let found = written(capture, way, how, doubtful);
        assert!(
            found == expected,
            "{way:?} of {}, {doubtful}: {how:?} wrote {:?} and {} bytes, element by element {:?} and {} bytes",
            capture.display(),
            found.0,
            found.1.len(),
            expected.0,
            expected.1.len()
        );
    }
    expected.1.len() + expected.2.values().map(Vec::len).sum::<usize>()
}

fn examples() -> [&'static str; 4] {
    ["m3-etmv3", "a7-etmv3", "a15-pft", "m0-crash-mtb"]
}

#[test]
fn every_format_of_a_whole_capture_is_the_same_on_any_number_of_threads() {
    let (mut wrote, mut ways_tried) = (0, 0);
    for (index, way) in ways().iter().enumerate() {
        // Each way is tried on all numbers of threads, with another capture than the previous way. Only the
        // memory of a Micro Trace Buffer shows what crashed.
        let name = if way.command == "crash" { "m0-crash-mtb" } else { examples()[index % 3] };
        let doubtful = ["drop", "keep"][index / 3 % 2];
        let hows = [1, 2, 3, 7].map(How::Threads);
        let bytes = check(&example(name).join("capture.toml"), way, &hows, doubtful);
        wrote += usize::from(bytes > 0);
        ways_tried += 1;
    }
    // The only empty results are of formats that print nothing, and of parts that the options leave out.
    assert!(wrote * 10 > ways_tried * 7, "{wrote} of {ways_tried}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    #[test]
    fn every_format_of_a_damaged_capture_is_the_same_on_any_number_of_threads(
        way in proptest::sample::select(ways()),
        name in proptest::sample::select(examples().to_vec()),
        threads in proptest::sample::select(vec![1, 2, 3, 7]),
        doubtful in proptest::sample::select(vec!["drop", "keep"]),
        flips in proptest::collection::vec((any::<usize>(), 1_u8..), 1..5),
        (from, bytes) in (any::<usize>(), 0_usize..80),
    ) {
        let folder = tempfile::tempdir().expect("there is room for a copy");
        for entry in fs::read_dir(example(name)).expect("an example") {
            let file = entry.expect("an example").path();
            fs::copy(&file, folder.path().join(file.file_name().expect("a file"))).expect("room for a copy");
        }
        let file = folder.path().join("trace.bin");
        let mut trace = fs::read(&file).expect("the trace is readable");
        for (at, bits) in &flips {
            let at = at % trace.len();
            trace[at] ^= bits;
        }
        if name != "m0-crash-mtb" {
            let from = from % trace.len();
            trace.drain(from..(from + bytes).min(trace.len()));
        }
        fs::write(&file, &trace).expect("there is room for the trace");
        check(&folder.path().join("capture.toml"), &way, &[How::Threads(threads)], doubtful);
    }
}
