//! Profiles and interrupt figures that are saved, merged and shown later, like coverage.

use crate::support::{
    Folder, Outcome, copied_example, example, mentions, run, run_with_kinds, saved_with,
};

fn capture(name: &str) -> String {
    example(name).join("capture.toml").to_str().unwrap().to_owned()
}

/// Runs a command that succeeds without messages.
fn quietly(arguments: &[&str]) -> Outcome {
    let outcome = run(arguments.iter().chain(&["--quiet"]));
    assert_eq!((outcome.status, outcome.stderr.as_str()), (0, ""), "{arguments:?}");
    outcome
}

/// A mistake is reported in one sentence, without output, and the status is 2.
fn assert_refused(arguments: &[&str], message: &str) {
    let outcome = run_with_kinds(arguments);
    assert_eq!((outcome.status, outcome.stdout.as_str()), (2, ""), "{arguments:?}: {}", outcome.stderr);
    assert!(mentions(&outcome.stderr, message), "expected {message:?} in {:?}", outcome.stderr);
}

/// The file that a command writes.
fn written(folder: &Folder, arguments: &[&str]) -> Vec<u8> {
    let file = folder.file("written");
    quietly(&[arguments, &["-o", &file]].concat());
    std::fs::read(&file).unwrap()
}

const PROFILE: [&str; 7] = ["text", "folded", "callgrind", "flamegraph", "pprof", "firefox", "speedscope"];
const INTERRUPTS: [&str; 3] = ["text", "csv", "json"];

/// Saving two captures separately and merging the files equals saving them together, in every format.
fn assert_adds_up(command: &str, formats: &[&str], options: &[&str]) {
    let folder = Folder::new();
    let captures = [capture("a7-etmv3"), capture("a15-pft")];
    let [one, other, both, merged, backwards] =
        ["one", "other", "both", "merged", "backwards"].map(|name| folder.file(name));
    let [a, b] = captures.each_ref().map(String::as_str);
    for (inputs, file) in [(vec![a], &one), (vec![b], &other), (vec![a, b], &both)] {
        let outcome = quietly(&[&[command][..], &inputs, options, &["--save", file]].concat());
        assert_eq!(outcome.stdout, "", "only --format prints beside --save");
    }
    quietly(&[command, &one, &other, "--save", &merged]);
    quietly(&[command, &other, &one, "--save", &backwards]);
    let read = |file: &String| std::fs::read_to_string(file).unwrap();
    assert_eq!(read(&merged), read(&both));
    assert_eq!(read(&backwards), read(&both));
    quietly(&[command, &both, "--save", &backwards]);
    assert_eq!(read(&backwards), read(&both), "merging one file changes nothing");

    let elf = example("a7-etmv3/a9.elf");
    let image = ["--image", elf.to_str().unwrap()];
    for format in formats {
        // A profile's title contains the captures' names: the test replaces them by one name.
        let named = folder.file("capture.toml");
        let of = |inputs: &[&str]| written(&folder, &[&[command], inputs, &["--format", format]].concat());
        let title = |bytes: Vec<u8>, name: &str| match String::from_utf8(bytes) {
            Ok(text) => text.replace(name, "the capture").into_bytes(),
            Err(error) => error.into_bytes(),
        };
        std::fs::copy(&merged, &named).unwrap();
        let direct = title(of(&[&[a, b], options].concat()), &format!("{a} and 1 more"));
        let saved = title(of(&[&[named.as_str()], &image[..]].concat()), &named);
        if *format == "pprof" {
            // The name is in the compressed text, so only the sizes are compared.
            assert!(direct.len().abs_diff(saved.len()) < 200, "{} and {}", direct.len(), saved.len());
        } else {
            assert_eq!(String::from_utf8_lossy(&saved), String::from_utf8_lossy(&direct), "{format}");
        }
        // A saved file can replace a capture, in either order.
        if *format != "pprof" {
            let mixed = title(of(&[&[one.as_str(), b], options].concat()), &format!("{one} and 1 more"));
            let turned = title(of(&[&[b, one.as_str()], options].concat()), &format!("{b} and 1 more"));
            assert_eq!(String::from_utf8_lossy(&mixed), String::from_utf8_lossy(&direct), "{format}");
            assert_eq!(String::from_utf8_lossy(&turned), String::from_utf8_lossy(&direct), "{format}");
        }
    }
}

#[test]
fn profiles_that_were_saved_and_merged_are_the_profile_of_all_captures() {
    assert_adds_up("profile", &PROFILE, &[]);
}

#[test]
fn durations_that_were_saved_and_merged_are_those_of_all_captures() {
    assert_adds_up("interrupts", &INTERRUPTS, &["--unit", "time"]);
    assert_adds_up("interrupts", &INTERRUPTS, &["--unit", "instructions", "--functions"]);
}

/// Two buffers of one capture, each with a source of the same trace ID and protocol.
#[test]
fn sources_that_are_alike_in_several_buffers_are_numbered() {
    let folder = Folder::new();
    for (from, to) in [("trace.bin", "one.bin"), ("trace.bin", "two.bin"), ("a9.elf", "a9.elf")] {
        std::fs::copy(example("a7-etmv3").join(from), folder.file(to)).unwrap();
    }
    let buffer = |name: &str| {
        format!("[[capture]]\nname = \"{name}\"\nfile = \"{name}.bin\"\ncontainer = \"frames\"\n")
    };
    let source = |name: &str| {
        let what = "id = 0x10\nprotocol = \"etmv3\"\ncpu = \"cortex-a7\"\nregisters = { etmcr = 0x5000 }";
        format!("[[source]]\ncapture = \"{name}\"\n{what}\n")
    };
    let image = "[[image]]\nfile = \"a9.elf\"\n".to_owned();
    let parts = [buffer("one"), buffer("two"), source("one"), source("two"), image];
    let capture = folder.file("capture.toml");
    std::fs::write(&capture, parts.concat()).unwrap();
    let saved = folder.file("saved");
    quietly(&["profile", &capture, "--save", &saved]);
    let program = folder.file("a9.elf");
    let profile = |format: &str| {
        let direct = quietly(&["profile", &capture, "--format", format]).stdout;
        let again = quietly(&["profile", &saved, "--image", &program, "--format", format]).stdout;
        assert_eq!(again.replace(&saved, &capture), direct, "{format}");
        direct
    };
    let has_both = |text: &str, [one, other]: [&str; 2]| {
        assert_eq!((text.matches(one).count(), text.matches(other).count()), (1, 1), "{one}, {other}");
    };
    has_both(&profile("text"), ["trace ID 0x10, etmv3", "trace ID 0x10 #2, etmv3"]);
    has_both(&profile("callgrind"), ["ob=trace ID 0x10\n", "ob=trace ID 0x10 #2\n"]);
    has_both(&profile("callgrind"), ["\nfn=crc32 (trace ID 0x10)\n", "\nfn=crc32 (trace ID 0x10 #2)\n"]);
    has_both(&profile("speedscope"), ["\"trace ID 0x10: cycles", "\"trace ID 0x10 #2: cycles"]);
    has_both(&profile("firefox"), ["\"name\":\"trace ID 0x10\"", "\"name\":\"trace ID 0x10 #2\""]);
    let of = |name: &str| profile("folded").lines().filter(|line| line.starts_with(name)).count();
    assert!(of("trace ID 0x10;") > 20 && of("trace ID 0x10;") == of("trace ID 0x10 #2;"));
    let rows = quietly(&["interrupts", &capture, "--format", "csv"]).stdout;
    let of = |name: &str| rows.lines().filter(|line| line.starts_with(name)).count();
    assert!(of("16,etmv3,1,") > 3 && of("16,etmv3,1,") == of("16,etmv3,2,"), "{rows}");
    let report = quietly(&["interrupts", &capture, "--format", "json"]).stdout;
    has_both(&report, ["\"protocol\":\"etmv3\",\"number\":1", "\"protocol\":\"etmv3\",\"number\":2"]);
    has_both(&quietly(&["timeline", &capture]).stdout, ["trace ID 0x10, etmv3", "trace ID 0x10 #2, etmv3"]);
}

/// Captures of one program whose sources have the same ID and different protocols.
#[test]
fn sources_of_one_id_that_speak_different_protocols_are_distinguished() {
    let folder = Folder::new();
    let program = example("a15-pft/a9.elf");
    let a7 = capture("a7-etmv3");
    quietly(&["profile", &a7, "--save", &folder.file("one")]);
    quietly(&["profile", &capture("a15-pft"), "--save", &folder.file("other")]);
    let text = std::fs::read_to_string(folder.file("other")).unwrap();
    let text = saved_with(&text, |lines| lines.replace(r#""id":"0x13""#, r#""id":"0x10""#));
    std::fs::write(folder.file("other"), text).unwrap();
    let image = ["--image", program.to_str().unwrap(), "--unit", "instructions"];
    let parts = [folder.file("one"), folder.file("other")];
    let arguments = ["profile", &parts[0], &parts[1], "--format", "folded"];
    let folded = quietly(&[&arguments[..], &image].concat()).stdout;
    let of = |name: &str| folded.lines().filter(|line| line.starts_with(name)).count();
    assert!(of("trace ID 0x10, etmv3;") > 20 && of("trace ID 0x10, pft;") > 20, "{folded}");
}

#[test]
fn the_same_run_twice_counts_and_costs_twice_as_much() {
    let m3 = capture("m3-etmv3");
    let folder = Folder::new();
    let copy = copied_example("m3-etmv3", folder.0.path());
    let rows = |inputs: &[&str]| {
        let outcome = run_with_kinds([&["interrupts"], inputs, &["--format", "csv"]].concat());
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        // A copy is counted, with a warning.
        assert_eq!(mentions(&outcome.stderr, "equal_content"), inputs.len() > 1, "{}", outcome.stderr);
        outcome
            .stdout
            .lines()
            .skip(1)
            .map(|line| line.split(',').map(str::to_owned).collect())
            .collect::<Vec<Vec<_>>>()
    };
    let (once, twice) = (rows(&[&m3]), rows(&[&m3, &copy]));
    assert!(once.len() > 5 && once.len() == twice.len());
    for (once, twice) in once.iter().zip(&twice) {
        let count = |row: &[String], column: usize| row[column].parse::<u64>().unwrap();
        assert_eq!(count(twice, 8), 2 * count(once, 8));
        // With preemption: the count, then minimum, mean, p99 and maximum.
        assert_eq!(count(twice, 12), 2 * count(once, 12));
        assert_eq!(twice[13..17], once[13..17]);
        // No interval spans two captures.
        assert_eq!(count(twice, 22), 2 * count(once, 22));
    }
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let folder = Folder::new();
    let [a9, m3, ticks, functions, coverage] =
        ["a9.twprof", "m3.twprof", "ticks.twirq", "functions.twirq", "a9.twcov"]
            .map(|name| folder.file(name));
    let (etm, cortex_m) = (capture("a7-etmv3"), capture("m3-etmv3"));
    quietly(&["profile", &etm, "--save", &a9]);
    quietly(&["profile", &cortex_m, "--save", &m3]);
    quietly(&["interrupts", &etm, "--unit", "time", "--save", &ticks]);
    quietly(&["interrupts", &etm, "--functions", "--save", &functions]);
    quietly(&["coverage", &etm, "--save", &coverage]);
    let elf = example("a7-etmv3/a9.elf");
    let image = elf.to_str().unwrap();

    let other = "error: other_program m3.twprof";
    assert_refused(&["profile", &a9, &m3, "--save", "-"], other);
    assert_refused(&["profile", &m3, "--image", image], other);
    assert_refused(&["profile", &m3, &etm], other);
    assert_refused(&["profile", &a9], "error: no_program --image");

    assert_refused(&["profile", &a9, &coverage, "--save", "-"], "a9.twcov: 1: \"coverage\"");
    assert_refused(&["profile", &ticks], "ticks.twirq: 1: \"interrupts\"");
    assert_refused(&["profile", &folder.file("nothing"), "--save", "-"], "error: file_missing nothing:");

    let measured = "error: other_measure functions";
    assert_refused(&["interrupts", &ticks, &functions, "--save", "-"], measured);
    assert_refused(&["interrupts", &ticks, "--unit", "cycles"], "error: other_measure ticks.twirq: cycles");
    assert_refused(&["interrupts", &ticks, "--functions"], "error: other_measure ticks.twirq: functions");
    for command in [["profile", &a9], ["interrupts", &ticks]] {
        let arguments = [&command[..], &["--image", image, "--from", "100"]].concat();
        assert_refused(&arguments, "error: window_of_saved");
    }
}

#[test]
fn exceptions_that_were_saved_are_shown_without_the_program() {
    let folder = Folder::new();
    let (m3, file) = (capture("m3-etmv3"), folder.file("m3.twirq"));
    quietly(&["interrupts", &m3, "--save", &file]);
    assert_eq!(quietly(&["interrupts", &file]).stdout, quietly(&["interrupts", &m3]).stdout);
}

#[test]
fn damaged_files_are_refused_in_one_sentence_with_the_line() {
    let folder = Folder::new();
    let file = folder.file("broken");
    let head = |kind: &str| format!("{{\"saved\":\"{kind}\",\"version\":1,\"complete\":true}}\n");
    let program = "{\"program\":{\"id\":{\"build\":[\"00\"]},\"images\":[]}}\n";
    let cases = [
        ("profile", head("profile").replace('1', "4"), "saved_version broken: 1: 4"),
        ("profile", head("profile") + "{\"task\":[0,\"unresolved\"]}\n", "saved_misplaced broken: 2:"),
        ("profile", head("profile") + "{\"some\":1}\n", "broken: 2:"),
        ("profile", head("profile") + program + "{\"some\":1}\n", "broken: 3: 7: `some`"),
        ("interrupts", head("interrupts") + program + "\u{fffd}", "broken: 3:"),
        ("coverage", head("coverage") + program, "saved_cut_off 2:"),
        ("coverage", head("coverage") + "{\"end\":[3,0]}\n", "saved_lines 2: 1 3"),
    ];
    for (command, text, message) in cases {
        std::fs::write(&file, text).unwrap();
        assert_refused(&[command, &file], message);
        assert_refused(&[command, &file, "--save", "-"], message);
    }
    std::fs::write(&file, [head("profile").as_bytes(), b"\xff\xff\n"].concat()).unwrap();
    assert_refused(&["profile", &file, "--save", "-"], "broken: 2:");
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_without_an_end_is_refused() {
    assert_refused(&["coverage", &capture("m3-etmv3"), "--diff", "/dev/zero"], "/dev/zero 4194304");
}

/// Memory besides the ELF file has no build ID: the report needs both again, and the command names them.
#[test]
fn a_program_that_is_known_by_its_memory_is_saved_with_a_note_of_its_images() {
    let folder = tempfile::tempdir().unwrap();
    let (saved, memory) = (folder.path().join("run.twcov"), folder.path().join("boot.bin"));
    std::fs::write(&memory, [0; 64]).unwrap();
    let (trace, elf) = (example("m3-etmv3/trace.bin"), example("m3-etmv3/m3.elf"));
    let [saved, trace, elf] = [&saved, &trace, &elf].map(|path| path.to_str().unwrap());
    let memory = format!("0x70000000:{}", memory.to_str().unwrap());
    let notes = |stderr: &str| {
        stderr.lines().filter(|line| line.contains("boot.bin") && line.contains("m3.elf")).count()
    };
    let outcome = run(["coverage", trace, "--image", elf, "--save", saved]);
    assert_eq!((outcome.status, notes(&outcome.stderr)), (0, 0), "{}", outcome.stderr);
    let outcome = run(["coverage", trace, "--image", elf, "--image", &memory, "--save", saved]);
    assert_eq!((outcome.status, notes(&outcome.stderr)), (0, 1), "{}", outcome.stderr);
    let outcome = run(["coverage", saved, "--image", elf]);
    assert_eq!((outcome.status, notes(&outcome.stderr)), (2, 1), "{}", outcome.stderr);
    assert_eq!(run(["coverage", saved, "--image", elf, "--image", &memory]).status, 0);
}

#[test]
fn what_is_named_twice_does_not_count_twice() {
    let folder = tempfile::tempdir().unwrap();
    let (saved, other) = (folder.path().join("run.twcov"), folder.path().join("link.twcov"));
    let capture = example("m3-etmv3/capture.toml");
    let outcome = run(["coverage", "-q", capture.to_str().unwrap(), "--save", saved.to_str().unwrap()]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let saved = saved.to_str().unwrap();
    assert_eq!(run(["coverage", saved, saved, "--save", "-"]).status, 2);
    assert_eq!(run(["coverage", "-q", saved, saved]).status, 2);
    let capture = capture.to_str().unwrap();
    for command in ["coverage", "profile", "interrupts"] {
        let outcome = run_with_kinds([command, "-q", capture, capture]);
        assert_eq!(outcome.status, 2, "{command}: {}", outcome.stderr);
        assert!(mentions(&outcome.stderr, "error: named_twice: capture.toml"), "{}", outcome.stderr);
    }
    // A copy is indistinguishable from another run with the same trace.
    std::fs::copy(saved, &other).unwrap();
    let other = other.to_str().unwrap();
    let elf = example("m3-etmv3/m3.elf");
    for arguments in [
        &["coverage", saved, other, "--save", "-"][..],
        &["coverage", saved, other, "--image", elf.to_str().unwrap()],
    ] {
        let outcome = run_with_kinds(arguments);
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        let warned = outcome.stderr.lines().filter(|line| line.starts_with("warning: equal_content:"));
        let [warning] = &warned.collect::<Vec<_>>()[..] else { panic!("{}", outcome.stderr) };
        assert!(mentions(warning, &format!("{saved} {other}")), "{warning}");
    }
    let twice = run(["coverage", saved, other, "--save", "-"]).stdout;
    std::fs::write(other, twice).unwrap();
    assert_eq!(run_with_kinds(["coverage", saved, other, "--save", "-"]).stderr, "");
}

#[test]
fn a_capture_that_was_copied_is_warned_of_and_one_that_begins_alike_is_not() {
    let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let captures = [0, 1, 2].map(|index: usize| copied_example("a7-etmv3", folders[index].path()));
    // The last capture differs from the others in its last byte.
    let trace = folders[2].path().join("trace.bin");
    let mut bytes = std::fs::read(&trace).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    assert!(bytes.len() > 4 << 10, "it begins as the others do");
    std::fs::write(&trace, bytes).unwrap();
    let [one, copy, other] = &captures;
    for command in ["coverage", "profile", "interrupts"] {
        let outcome = run_with_kinds([command, one, copy, other]);
        let warned = outcome.stderr.lines().filter(|line| line.starts_with("warning: equal_content:"));
        let [warning] = &warned.collect::<Vec<_>>()[..] else { panic!("{command}: {}", outcome.stderr) };
        assert!(mentions(warning, &format!("{one} {copy}")), "{warning}");
        let outcome = run_with_kinds([command, one, other]);
        assert!(!mentions(&outcome.stderr, "equal_content"), "{command}: {}", outcome.stderr);
    }
}
