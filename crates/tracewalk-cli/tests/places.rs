//! Parts of a trace between two places: their contents, and the report for a place that never comes.

use std::fs;

use serde_json::Value;

use crate::support::{Outcome, example, run, run_with_kinds};

fn of(command: &str, more: &[&str]) -> Outcome {
    let capture = example("m3-etmv3/capture.toml").display().to_string();
    run([command, &capture].iter().chain(more))
}

/// The addresses of the instructions in a listing.
fn listed(more: &[&str]) -> Vec<u32> {
    let outcome = of("flow", more);
    assert_eq!(outcome.status, 0, "{more:?}: {}", outcome.stderr);
    addresses(&outcome.stdout)
}

fn addresses(listing: &str) -> Vec<u32> {
    let address = |line: &str| {
        let (address, rest) = line.split_at_checked(8)?;
        u32::from_str_radix(address, 16).ok().filter(|_| rest.starts_with("  "))
    };
    listing.lines().filter_map(address).collect()
}

/// The first position of `needle` in `whole`.
fn find(whole: &[u32], needle: &[u32]) -> Option<usize> {
    whole.windows(needle.len()).position(|window| window == needle)
}

#[test]
fn a_part_of_a_flow_is_what_stands_between_its_places_in_the_whole() {
    let whole = listed(&[]);
    let entry = 0x434; // quicksort
    let times = whole.iter().enumerate().filter(|(_, address)| **address == entry).map(|(at, _)| at);
    let times = times.collect::<Vec<_>>();
    assert!(times.len() > 9);
    for nth in [1, 2, 7] {
        let place = format!("quicksort#{nth}");
        assert_eq!(listed(&["--from", &place]), whole[times[nth - 1]..], "{place}");
        assert_eq!(listed(&["--to", &place]), whole[..times[nth - 1]], "{place}");
        let around = listed(&["--around", &format!("{place}±6")]);
        assert_eq!(around, whole[times[nth - 1] - 6..times[nth - 1] + 6], "{place}");
        let before = listed(&["--to", &place, "--last", "9"]);
        assert_eq!(before, whole[times[nth - 1] - 9..times[nth - 1]], "{place}");
    }
    // The search for the end begins after the start.
    assert_eq!(listed(&["--from", "quicksort#3", "--to", "quicksort"]), whole[times[2]..times[3]]);
    assert_eq!(listed(&["--from", "0x434#3", "--to", "quicksort#2"]), whole[times[2]..times[4]]);
    // Both places are inside a straight run of instructions.
    let inside = listed(&["--from", "quicksort+0x8", "--to", "0x440"]);
    assert_eq!(inside[0], 0x43c);
    assert!(find(&whole, &inside).is_some() && !inside.contains(&0x440));
    assert_eq!(listed(&["--from", "1001", "--to", "1017"]), whole[1001..1017]);
    let handler = listed(&["--from", "exception:SysTick", "--to", "exception:any"]);
    assert_eq!(handler[0], listed(&["--around", "SysTick_Handler+-1"])[1]);
}

#[test]
fn a_line_is_a_place_by_the_end_of_its_file() {
    let lines = of("flow", &["--from", "work.c:56", "--to", "work.c:55", "--src-lines"]);
    assert_eq!(lines.status, 0, "{}", lines.stderr);
    assert_eq!(addresses(&lines.stdout)[0], 0x434);
    let by_folder = of("flow", &["--from", "nowhere/work.c:56"]);
    assert_eq!(by_folder.status, 2, "{}", by_folder.stdout);
}

#[test]
fn line_formats_and_trees_of_calls_show_the_same_part() {
    let part = ["--from", "quicksort#3", "--to", "quicksort"];
    let runs = of("flow", &[&part[..], &["--format", "runs"]].concat());
    let instructions = listed(&part);
    assert!(runs.stdout.contains(&format!("R {:x} ", instructions[0])), "{}", runs.stdout);
    let jsonl = of("flow", &[&part[..], &["--format", "jsonl"]].concat());
    let objects = jsonl.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let count = objects.filter_map(|object| object["instructions"].as_u64()).sum::<u64>();
    assert_eq!(count, instructions.len() as u64);
    let tree = of("calls", &part);
    assert!(tree.status == 0 && tree.stdout.contains("quicksort"), "{}", tree.stdout);
}

#[test]
fn every_command_with_a_window_counts_the_same_instructions() {
    let part = ["--from", "quicksort#3", "--to", "exception:any"];
    let expected = listed(&part).len() as u64;
    let profile = of("profile", &[&part[..], &["--format", "folded", "--unit", "instructions"]].concat());
    let costs = profile.stdout.lines().filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok());
    assert_eq!(costs.sum::<u64>(), expected, "{}", profile.stderr);
    for command in ["timeline", "interrupts", "calls"] {
        let outcome = of(command, &part);
        assert_eq!(outcome.status, 0, "{command}: {}", outcome.stderr);
    }
}

#[test]
fn a_place_that_never_comes_is_an_error_with_what_is_near() {
    for (place, near) in [
        ("quicksrt", "quicksort"),
        ("SysTick", "SysTick_Handler"),
        ("wrok.c:56", "work.c"),
        ("main.c:3", "35"),
        ("quicksort#999", "quicksort#"),
        ("exception:HardFault", "SVCall"),
        ("quicksort+0x4000", "bytes"),
        ("0x20000000", "0x20000000"),
    ] {
        for (command, option) in
            [("flow", "--from"), ("flow", "--around"), ("profile", "--to"), ("timeline", "--from")]
        {
            let outcome = of(command, &[option, place]);
            assert_eq!(outcome.status, 2, "{command} {option} {place}");
            let error = outcome.stderr.lines().find(|line| line.starts_with("error:")).unwrap_or_default();
            assert!(error.contains(near) && error.contains(place), "{command} {option} {place}: {error}");
        }
    }
    for wrong in ["quicksort#0", "5x", "2000#2", "exception:"] {
        assert_eq!(of("flow", &["--from", wrong]).status, 2, "{wrong}");
    }
    assert_eq!(of("flow", &["--around", "quicksort", "--from", "main"]).status, 2);
    assert_eq!(of("flow", &["--around", "main±x"]).status, 2);
}

/// The names are those of IHI 0064 (TYPE), IHI 0014Q (table 7.12) and DDI 0403E (B1.5.2).
#[test]
fn an_exception_that_the_trace_unit_does_not_have_is_refused_at_once() {
    for (name, exception, has) in [
        ("a53-etmv4", "SVC", false),
        ("a53-etmv4", "call", true),
        ("a53-etmv4", "any", true),
        ("a7-etmv3", "Call", false),
        ("a7-etmv3", "SVC", true),
        ("a15-pft", "SysTick", false),
        ("a15-pft", "17", false),
        ("m3-etmv3", "SVC", false),
        ("m3-etmv3", "SysTick", true),
        ("m33-etmv4", "IRQ300", true),
        ("m0-crash-mtb", "HardFault", true),
    ] {
        let capture = example(name).join("capture.toml");
        let place = format!("exception:{exception}");
        for command in ["flow", "profile", "calls", "timeline", "interrupts"] {
            let arguments = [command, capture.to_str().unwrap(), "--from", &place, "--format", "none"];
            let outcome = run_with_kinds(arguments);
            let refused = outcome.stderr.contains("error: no_such_exception: ");
            assert_eq!(refused, !has, "{name} {command} {exception}: {}", outcome.stderr);
            assert!(!refused || outcome.status == 2);
        }
    }
}

#[test]
fn a_flow_is_written_to_a_file_when_all_of_it_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("flow.txt");
    let path = file.to_str().unwrap();
    for format in ["text", "runs", "jsonl"] {
        let written = of("flow", &["--format", format, "-o", path]);
        assert_eq!((written.status, written.stdout.as_str()), (0, ""), "{}", written.stderr);
        assert_eq!(fs::read_to_string(&file).unwrap(), of("flow", &["--format", format]).stdout, "{format}");
    }
    let before = fs::read(&file).unwrap();
    assert_eq!(of("flow", &["--from", "quicksort#999", "-o", path]).status, 2);
    assert_eq!(fs::read(&file).unwrap(), before, "an error leaves what was there");
    let capture = folder.path().join("capture.bin");
    fs::copy(example("m3-etmv3/trace.bin"), &capture).unwrap();
    let capture = capture.to_str().unwrap();
    assert_eq!(run(["flow", capture, "-o", capture]).status, 2);
    assert_eq!(fs::read(capture).unwrap(), fs::read(example("m3-etmv3/trace.bin")).unwrap());
}
