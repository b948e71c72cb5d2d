//! The project's example captures, through the command.

use crate::support::{example, run};

const EXAMPLES: [&str; 4] = ["m3-etmv3", "a7-etmv3", "a15-pft", "m0-crash-mtb"];

#[test]
fn every_example_runs_as_it_was_recorded() {
    for name in EXAMPLES {
        let outcome = run(["flow", example(name).join("capture.toml").to_str().unwrap(), "--format", "runs"]);
        assert_eq!(outcome.status, 0, "{name}: {}", outcome.stderr);
        assert_eq!(
            outcome.stdout,
            std::fs::read_to_string(example(name).join("runs.txt")).unwrap(),
            "{name}"
        );
    }
}

#[test]
fn the_descriptions_of_the_examples_leave_nothing_open() {
    for name in EXAMPLES {
        for command in ["info", "flow"] {
            let outcome = run([command, "--strict", example(name).to_str().unwrap()]);
            assert_eq!(outcome.status, 0, "{command} {name}: {}", outcome.stderr);
        }
    }
}

#[test]
fn the_packets_of_each_source_tile_its_bytes() {
    for name in EXAMPLES {
        let outcome =
            run(["packets", example(name).join("capture.toml").to_str().unwrap(), "--format", "jsonl"]);
        let capture = std::fs::read(example(name).join("trace.bin")).unwrap();
        let mut last = None;
        let mut bytes = 0;
        for line in outcome.stdout.lines() {
            let packet: serde_json::Value = serde_json::from_str(line).unwrap();
            let hex = packet["bytes"].as_str().unwrap();
            let offset = usize::try_from(packet["offset"].as_u64().unwrap()).unwrap();
            let first = u8::from_str_radix(&hex[..2], 16).unwrap();
            // In frames, bit 0 of a byte at an even position is stored elsewhere.
            assert_eq!(capture[offset] & !1, first & !1, "{name}: {line}");
            // An MTB's packets start at the oldest one, and wrap once.
            assert!(name.ends_with("mtb") || last < Some(offset), "{name}: {line}");
            last = Some(offset);
            bytes += hex.len() / 2;
        }
        let stats = run([
            "packets",
            example(name).join("capture.toml").to_str().unwrap(),
            "--format",
            "none",
            "--stats",
        ]);
        let stats: serde_json::Value = serde_json::from_str(stats.stderr.lines().last().unwrap()).unwrap();
        assert_eq!(stats["bytes"].as_u64(), Some(bytes as u64), "{name}");
    }
}

#[test]
fn the_statistics_count_what_is_printed() {
    let capture = example("m3-etmv3/capture.toml");
    let capture = capture.to_str().unwrap();
    let printed = run(["flow", capture, "--format", "jsonl"]);
    let stats = run(["flow", capture, "--format", "none", "--stats", "--threads", "3"]);
    assert_eq!(stats.stdout, "");
    let stats: serde_json::Value = serde_json::from_str(stats.stderr.lines().last().unwrap()).unwrap();
    let elements =
        printed.stdout.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let ranges = elements.filter(|element| element["element"] == "range").collect::<Vec<_>>();
    assert_eq!(stats["ranges"].as_u64(), Some(ranges.len() as u64));
    let instructions = ranges.iter().map(|range| range["instructions"].as_u64().unwrap()).sum();
    assert_eq!(stats["instructions"].as_u64(), Some(instructions));
    assert_eq!(stats["threads"], 3);
    assert!(stats["seconds"].as_f64().unwrap() >= 0.0);
}

#[test]
fn the_last_instructions_are_the_end_of_all_of_them() {
    for name in ["m3-etmv3", "a7-etmv3", "a15-pft", "a53-etmv4", "a57-etmv4", "m0-crash-mtb"] {
        let capture = example(&format!("{name}/capture.toml"));
        let flow = |extra: &[&str]| {
            run(["flow", capture.to_str().unwrap()].into_iter().chain(extra.iter().copied())).stdout
        };
        // The note after an instruction depends on the previous one.
        let without_note = |line: &str| {
            let line = line.split("  ;").next().unwrap_or(line);
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let is_instruction = |line: &&str| line.starts_with(|first: char| first.is_ascii_hexdigit());
        let listed = |text: &str| text.lines().filter(is_instruction).map(without_note).collect::<Vec<_>>();
        let cycles_in = |text: &str| {
            let notes = text.lines().filter_map(|line| line.trim().strip_prefix("· ")?.split_once(" cycle"));
            notes.filter_map(|(number, _)| number.parse::<u64>().ok()).sum::<u64>()
        };
        let all = listed(&flow(&[]));
        for count in (1..30).chain([100, 333, 800]) {
            let last = flow(&["--last", &count.to_string()]);
            assert_eq!(listed(&last), all[all.len() - count..], "{name}");
            // Objects are passed on one by one; the listing combines repetitions.
            let objects = flow(&["--last", &count.to_string(), "--format", "jsonl"]);
            let cycles = objects.lines().filter_map(|line| {
                serde_json::from_str::<serde_json::Value>(line).unwrap()["cycles"].as_u64()
            });
            assert_eq!(cycles_in(&last), cycles.sum::<u64>(), "{name}: {count}");
        }
    }
}

#[test]
fn the_formats_page_shows_a_capture_description_that_works() {
    let page = std::fs::read_to_string(example("../../docs/formats.md")).unwrap();
    let shown = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let directory = tempfile::tempdir().unwrap();
    std::fs::copy(example("m3-etmv3/trace.bin"), directory.path().join("trace.bin")).unwrap();
    std::fs::copy(example("m3-etmv3/m3.elf"), directory.path().join("firmware.elf")).unwrap();
    std::fs::write(directory.path().join("bootrom.bin"), [0; 16]).unwrap();
    let description = directory.path().join("capture.toml");
    std::fs::write(&description, shown).unwrap();
    let outcome = run(["flow", description.to_str().unwrap(), "--format", "runs"]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    assert_eq!(outcome.stdout, std::fs::read_to_string(example("m3-etmv3/runs.txt")).unwrap());
}
