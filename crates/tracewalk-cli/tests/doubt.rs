//! Instructions that damage puts in doubt are no evidence: coverage, profiles and everything else that counts
//! leave them out, in the same way.

use std::path::Path;

use crate::support::{Outcome, corpus, run, tracewalk};

/// The command's output with `--doubtful drop` and with `keep`, and its notices.
fn dropped_and_kept(arguments: &[&str]) -> [(String, String); 2] {
    ["drop", "keep"].map(|doubtful| {
        let outcome = run(arguments.iter().chain(&["--doubtful", doubtful]));
        (outcome.stdout, outcome.stderr)
    })
}

#[tracewalk_corpus::test]
fn of_a_sound_capture_nothing_is_left_out() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/examples");
    let mut captures = ["m3-etmv3", "a7-etmv3", "a15-pft"]
        .map(|name| vec![examples.join(name).display().to_string()])
        .to_vec();
    let corpus = corpus("synthetic");
    {
        let snapshots = [
            "mix-m3-etmv3",
            "mix-m3-etmv3-broadcast",
            "mix-a7-etmv3-original",
            "mix-a7-etmv3-alternative",
            "mix-a9-ptm",
            "../real/TC2",
            "../real/tc2-ptm-rstk-t32",
        ];
        captures.extend(snapshots.map(|name| vec![corpus.join(name).display().to_string()]));
        captures.extend(["mix-m0-mtb-4k", "mix-m0-mtb-full"].map(|name| {
            let file = |file: &str| corpus.join(name).join(file).display().to_string();
            let (registers, image) = (file("registers.txt"), file("program.elf"));
            vec![file("mtb.bin"), "--registers".to_owned(), registers, "--image".to_owned(), image]
        }));
        let real = |file: &str| corpus.join("../real/stm32f105").join(file).display().to_string();
        captures.push(vec![real("swo.bin"), "--image".to_owned(), real("trace_example.elf")]);
    }
    let commands: [&[&str]; 3] = [
        &["coverage", "--format", "json"],
        &["profile", "--format", "folded"],
        &["flow", "--format", "runs"],
    ];
    for (capture, command) in captures.iter().flat_map(|capture| commands.map(|command| (capture, command))) {
        let arguments = [command, &capture.iter().map(String::as_str).collect::<Vec<_>>()].concat();
        let [dropped, kept] = dropped_and_kept(&arguments);
        assert!(!dropped.0.is_empty(), "{arguments:?}: {}", dropped.1);
        assert!(dropped == kept, "{arguments:?}: {}\n{}", dropped.1, kept.1);
        assert!(!dropped.1.contains("doubt"), "{arguments:?}: {}", dropped.1);
    }
}

/// The `--source` option of the example.
const SOURCE: &str = "0x10=etmv3,cpu=cortex-a7,etmcr=0x5000";

/// An example's capture repeated several times, with a bit flipped at regular distances; its file, and its image.
struct Damaged {
    _folder: tempfile::TempDir,
    trace: String,
    image: String,
}

impl Damaged {
    fn new(times: usize, every: usize) -> Self {
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/examples/a7-etmv3");
        let mut bytes = std::fs::read(example.join("trace.bin")).unwrap().repeat(times);
        bytes.iter_mut().skip(every / 2).step_by(every).for_each(|byte| *byte ^= 0x10);
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("trace.bin");
        std::fs::write(&trace, bytes).unwrap();
        let image = example.join("a9.elf").display().to_string();
        Self { trace: trace.display().to_string(), _folder: folder, image }
    }

    /// Runs a command on the capture, with the options that describe it.
    fn run(&self, command: &[&str]) -> Outcome {
        let capture =
            [self.trace.as_str(), "--container", "frames", "--source", SOURCE, "--image", &self.image];
        run(command.iter().chain(&capture))
    }

    fn file(&self, name: &str) -> String {
        Path::new(&self.trace).with_file_name(name).display().to_string()
    }
}

/// The number of instructions that a text reports as left out, or counted.
fn reported(text: &str, became: &str) -> u64 {
    let end = format!(" instructions in doubt were {became}");
    let before = text.split(&end).next().filter(|before| before.len() < text.len());
    let number = before.and_then(|before| before.rsplit(|digit: char| !digit.is_ascii_digit()).next());
    number.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("nothing {became} in {text}"))
}

#[test]
fn every_report_says_how_much_was_left_out() {
    let damaged = Damaged::new(3, 5000);
    let [json, text, html] =
        ["json", "text", "html"].map(|format| damaged.run(&["coverage", "--format", format]));
    let left_out = reported(&json.stderr, "left out");
    assert!(left_out > 100 && json.status == 2, "{}", json.stderr);
    assert_eq!(reported(&text.stdout, "left out"), left_out);
    assert_eq!(reported(&html.stdout, "left out"), left_out);
    let report: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    let source = &report["programs"][0]["sources"][0];
    assert_eq!(source["losses"]["in_doubt"]["left_out"], left_out);
    for command in ["profile", "interrupts", "calls", "timeline"] {
        assert_eq!(reported(&damaged.run(&[command]).stderr, "left out"), left_out, "{command}");
    }
    for command in ["coverage", "profile", "interrupts"] {
        let saved = damaged.file(command);
        assert_eq!(reported(&damaged.run(&[command]).stdout, "left out"), left_out, "{command}");
        damaged.run(&[command, "--save", &saved]);
        // A file cannot be named twice, so this is a copy.
        let copy = damaged.file(&format!("{command}-copy"));
        std::fs::copy(&saved, &copy).unwrap();
        let twice = run([command, &saved, &copy, "--image", &damaged.image]);
        assert_eq!(reported(&twice.stdout, "left out"), 2 * left_out, "{command}: {}", twice.stderr);
    }
    let interrupts = damaged.run(&["interrupts", "--format", "json"]);
    let interrupts: serde_json::Value = serde_json::from_str(&interrupts.stdout).unwrap();
    assert_eq!(interrupts["sources"][0]["in_doubt"]["left_out"], left_out);
    // Including them gives the number of all instructions.
    let kept = damaged.run(&["coverage", "--format", "json", "--doubtful", "keep"]);
    assert_eq!(reported(&kept.stderr, "counted"), left_out);
    let report: serde_json::Value = serde_json::from_str(&kept.stdout).unwrap();
    let all = report["programs"][0]["sources"][0]["instructions"].as_u64().unwrap();
    assert_eq!(source["instructions"].as_u64().unwrap() + left_out, all);
}

#[test]
fn lines_of_flow_say_what_is_in_doubt_or_leave_it_out() {
    let damaged = Damaged::new(3, 5000);
    let lines = |arguments: &[&str]| {
        let outcome = damaged.run(&[&["flow", "--format", "jsonl"], arguments].concat());
        let lines =
            outcome.stdout.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        lines.collect::<Vec<_>>()
    };
    let kept = lines(&[]);
    // A gap's `in_doubt_from` begins the doubt; the first unmarked line ends it.
    let (mut in_doubt, mut certain) = (0, Vec::new());
    for line in &kept {
        if let Some(from) = line["in_doubt_from"].as_u64() {
            let first =
                certain.partition_point(|line: &&serde_json::Value| line["offset"].as_u64().unwrap() < from);
            in_doubt += certain.drain(first..).filter_map(|line| line["instructions"].as_u64()).sum::<u64>();
        } else if line["in_doubt"] == true {
            in_doubt += line["instructions"].as_u64().unwrap_or_default();
        } else {
            certain.push(line);
        }
    }
    let left_out = reported(&damaged.run(&["coverage"]).stderr, "left out");
    assert_eq!(in_doubt, left_out);
    let dropped = lines(&["--doubtful", "drop"]);
    let ranges = |lines: &[&serde_json::Value]| {
        let ranges = lines.iter().filter(|line| line["element"] == "range");
        ranges.map(|line| (*line).clone()).collect::<Vec<_>>()
    };
    assert_eq!(ranges(&dropped.iter().collect::<Vec<_>>()), ranges(&certain));

    // `--last` keeps the marks of doubt.
    let listing = damaged.run(&["flow"]).stdout;
    let count = |mark: &str| listing.matches(mark).count();
    assert!(count("in doubt: what was decoded from ") > 2 && count("no longer in doubt") > 2);
    let marks = |lines: &[serde_json::Value]| {
        lines.iter().rev().take(30).map(|line| line["in_doubt"].clone()).collect::<Vec<_>>()
    };
    let last = lines(&["--last", "2000"]);
    assert_eq!(marks(&last), marks(&kept));
    let info = damaged.run(&["info"]);
    assert!(info.stdout.contains("  in doubt      "), "{}", info.stdout);
}

#[test]
fn of_a_capture_that_comes_as_much_is_left_out_as_of_the_file() {
    let damaged = Damaged::new(3, 5000);
    let bytes = std::fs::read(&damaged.trace).unwrap();
    for command in [&["coverage", "--format", "lcov"][..], &["profile", "--format", "folded"], &["calls"]] {
        let file = damaged.run(command);
        let arguments = command.iter().chain(&["-", "--container", "frames", "--source", SOURCE, "--image"]);
        let mut live = tracewalk();
        let live = live.args(arguments).arg(&damaged.image).write_stdin(bytes.clone()).output().unwrap();
        let [stdout, stderr] = [live.stdout, live.stderr].map(|text| String::from_utf8(text).unwrap());
        assert_eq!(stdout, file.stdout, "{command:?}");
        assert_eq!(reported(&stderr, "left out"), reported(&file.stderr, "left out"), "{command:?}");
    }
}
