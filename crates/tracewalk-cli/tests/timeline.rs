//! Timelines, opened with the readers of their formats (tests/timeline/formats.py).

use std::path::Path;
use std::process::Command;

use crate::support::firmware::{Firmware, Setup};
use crate::support::python::python;
use crate::support::{corpus, example, mentions, run, run_with_kinds, tracewalk};

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Writes a timeline in every format, and lets each reader compare it with the report of `interrupts`.
fn assert_readers_agree(arguments: &[&str]) {
    let python = python();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    for (format, name) in [("perfetto", "timeline.pftrace"), ("chrome", "timeline.json"), ("ctf", "ctf")] {
        let output = file(name);
        let options = ["timeline", "--quiet", "--format", format, "-o", text(&output)];
        let outcome = run(options.iter().chain(arguments));
        assert_eq!(outcome.status, 0, "{format}: {}", outcome.stderr);
    }
    let report = file("interrupts.json");
    let options = ["interrupts", "--quiet", "--functions", "--format", "json", "-o", text(&report)];
    let outcome = run(options.iter().chain(arguments));
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/timeline/formats.py");
    let output = Command::new(python).arg(script).arg("chromium").arg(folder.path()).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{arguments:?}: {printed}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(printed.lines().count(), 4, "{printed}");
}

#[test]
#[ignore = "needs babeltrace2, chromium and the Python packages"]
fn readers_of_each_format_find_what_interrupts_says_by_instructions() {
    let capture = example("m3-etmv3").join("capture.toml");
    assert_readers_agree(&[text(&capture)]);
}

#[test]
#[ignore = "needs babeltrace2, chromium and the Python packages"]
fn readers_of_each_format_find_what_interrupts_says_by_time() {
    let capture = example("a15-pft").join("capture.toml");
    assert_readers_agree(&[text(&capture)]);
}

#[test]
#[ignore = "needs babeltrace2, chromium, the Python packages and the corpus"]
fn readers_of_each_format_find_what_interrupts_says_of_an_emulated_program() {
    let case = corpus("synthetic/mix-m3-etmv3");
    let elf = case.join("program.elf");
    assert_readers_agree(&[text(&case), "--image", text(&elf)]);
}

/// The lines of the text format, without the heading.
fn lines(arguments: &[&str]) -> Vec<String> {
    let outcome = run(["timeline", "--quiet"].iter().chain(arguments));
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    outcome.stdout.lines().skip(1).map(str::to_owned).collect()
}

/// Readers take every file in the folder as part of the trace, so another trace's files would be mixed in.
#[test]
fn a_folder_that_holds_something_is_not_written_to() {
    let capture = example("m3-etmv3").join("capture.toml");
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("ctf");
    let arguments = ["timeline", "--quiet", "--format", "ctf", "-o", text(&output), text(&capture)];
    assert_eq!(run(arguments).status, 0);
    let before = std::fs::read(output.join("metadata")).unwrap();
    std::fs::write(output.join("source_9"), "another one's").unwrap();
    let outcome = run_with_kinds(arguments);
    assert_eq!((outcome.status, outcome.stdout.as_str()), (2, ""));
    assert!(outcome.stderr.contains("error: folder_not_empty"), "{}", outcome.stderr);
    assert_eq!(std::fs::read(output.join("metadata")).unwrap(), before);
}

#[test]
fn every_title_says_that_the_axis_is_of_instructions() {
    let capture = example("m3-etmv3").join("capture.toml");
    for format in ["text", "chrome", "perfetto"] {
        let outcome =
            tracewalk().args(["timeline", "--quiet", "--format", format]).arg(&capture).output().unwrap();
        let head = String::from_utf8_lossy(&outcome.stdout[..300.min(outcome.stdout.len())]).into_owned();
        assert!(head.contains("in instructions (not time)"), "{format}: {head}");
    }
}

#[test]
fn a_window_shows_what_the_whole_shows_there() {
    let capture = example("m3-etmv3").join("capture.toml");
    let whole = lines(&[text(&capture)]);
    let window = lines(&[text(&capture), "--from", "2000", "--to", "3000"]);
    let time = |line: &String| {
        line.trim_start_matches('?').split_whitespace().next().unwrap().parse::<u64>().unwrap()
    };
    assert!(window.iter().all(|line| (2000..=3030).contains(&time(line))), "{window:#?}");
    // Spans wholly inside are the same.
    let inside = |lines: &[String]| {
        let lines =
            lines.iter().filter(|line| (2100..2900).contains(&time(line)) && line.contains("next_random"));
        lines.cloned().collect::<Vec<_>>()
    };
    assert_eq!(inside(&window), inside(&whole));
    assert!(inside(&whole).len() > 2);
}

#[test]
fn a_window_that_is_not_in_the_trace_is_reported() {
    let capture = example("m3-etmv3").join("capture.toml");
    let cases: [(&[&str], i32, &str); 5] = [
        (&["--to", "0"], 2, "--to 0"),
        (&["--from", "99999"], 0, "99999 17638"),
        (&["--from", "100c"], 2, "--from 100"),
        (&["--from", "1", "--to", "9t"], 2, "--to 9"),
        (&["--from", "9", "--to", "9"], 2, "end 9 start 9 --to"),
    ];
    for command in ["timeline", "profile", "calls", "interrupts"] {
        for (options, status, message) in cases {
            let outcome = run([command, "--quiet", text(&capture)].iter().chain(options));
            assert_eq!(outcome.status, status, "{command} {options:?}: {}", outcome.stderr);
            assert!(mentions(&outcome.stderr, message), "{command} {options:?}: {}", outcome.stderr);
            assert_eq!(outcome.stderr.lines().count(), 1, "{command} {options:?}: {}", outcome.stderr);
        }
    }
    // Instructions have no frequency, in any command.
    for command in ["timeline", "profile", "interrupts"] {
        let outcome = run([command, "--quiet", text(&capture), "--frequency", "72MHz"]);
        assert_eq!((outcome.status, outcome.stdout.as_str()), (2, ""));
        assert!(mentions(&outcome.stderr, "--frequency"), "{}", outcome.stderr);
    }
}

#[test]
fn times_between_timestamps_are_marked_and_lie_between_them() {
    let firmware = Firmware::load("a9");
    let setup = Setup { protocol: "etmv3", cpu: "cortex-a7", timestamps: Some(50), ..Setup::default() };
    let trace = firmware.trace(&setup);
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("trace.bin");
    std::fs::write(&capture, &trace.bytes).unwrap();
    let arguments =
        [text(&capture), "--container", "raw", "--source", &setup.option(), "--image", text(&firmware.file)];
    let lines = lines(&[&arguments[..], &["--unit", "time"]].concat());
    let marked = lines.iter().filter(|line| line.starts_with('~')).count();
    assert!(marked > 500, "{marked}");
    // The generator's own clock after each instruction, at half its speed; the trace has a timestamp every 50
    // instructions.
    let taken = trace.times_text(&firmware.path);
    let base = 0x12_3456_0000_u64;
    let truth = taken.lines().filter(|line| line.starts_with("X 14 "));
    let truth = truth.map(|line| base + line.rsplit(' ').next().unwrap().parse::<u64>().unwrap() / 2);
    let found = lines.iter().filter(|line| line.contains("  IRQ  returns to"));
    let found = found.map(|line| line[1..].split_whitespace().next().unwrap().parse::<u64>().unwrap());
    let (truth, found) = (truth.collect::<Vec<_>>(), found.collect::<Vec<_>>());
    assert_eq!(truth.len(), found.len());
    for (truth, found) in truth.iter().zip(&found) {
        assert!(truth.abs_diff(*found) < 100, "{found}, expected about {truth}");
    }
}

#[test]
fn what_the_program_wrote_to_an_itm_stands_where_the_capture_has_it() {
    let capture = example("m3-etmv3").join("capture.toml");
    let written = "a round of work; another one; the last one";
    let lines = lines(&[text(&capture)]);
    let found = lines.iter().filter(|line| line.contains("stimulus port 0")).collect::<Vec<_>>();
    assert_eq!(found.len(), 1, "{found:?}");
    // The text's place among instructions is only its place in the capture.
    assert!(found[0].starts_with('?') && found[0].contains(&format!("{written:?}")), "{}", found[0]);
    let outcome = run(["timeline", "--quiet", "--format", "chrome", text(&capture)]);
    let document: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
    let events = document["traceEvents"].as_array().unwrap();
    let marks = events.iter().filter(|event| event["ph"] == "i").collect::<Vec<_>>();
    assert_eq!(marks.len(), 1);
    assert_eq!((&marks[0]["name"], &marks[0]["cat"]), (&written.into(), &"text".into()));
}
