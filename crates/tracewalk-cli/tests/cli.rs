//! The command line itself: help, mistakes, exit statuses, pipes, colours.

use std::process::Stdio;

use crate::support::{
    MESSAGES, Outcome, example, mentions, run, run_with_kinds, run_with_notices, tracewalk,
};
use snapbox::{assert_data_eq, file};

#[test]
fn help_is_what_it_was() {
    assert_data_eq!(run(["--help"]).stdout, file!["help/tracewalk.txt"]);
    assert_data_eq!(run(["flow", "--help"]).stdout, file!["help/flow.txt"]);
}

#[test]
fn every_shell_gets_a_completion_script_that_knows_the_commands() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let outcome = run(["--generate", &format!("complete-{shell}")]);
        assert_eq!(outcome.status, 0);
        assert!(outcome.stdout.contains("packets"), "{shell}");
    }
}

#[test]
fn the_manual_has_a_page_for_each_command() {
    let directory = tempfile::tempdir().unwrap();
    let pages = directory.path().join("man1");
    // The second time, the pages are there already.
    for _ in 0..2 {
        assert_eq!(run(["--generate", "man", "-o", pages.to_str().unwrap()]).status, 0);
    }
    for page in ["tracewalk.1", "tracewalk-info.1", "tracewalk-packets.1", "tracewalk-flow.1"] {
        assert!(pages.join(page).is_file(), "{page}");
    }
    // A file occupies the directory's path.
    assert_refused(
        &run_with_kinds(["--generate", "man", "-o", pages.join("tracewalk.1").to_str().unwrap()]),
        "error: output: tracewalk.1",
    );
}

/// A mistake is reported in one sentence, without output, and the status is 2.
fn assert_refused(outcome: &Outcome, message: &str) {
    assert_eq!(outcome.status, 2, "{}", outcome.stderr);
    assert_eq!(outcome.stdout, "");
    let errors = outcome.stderr.lines().filter(|line| !line.starts_with("note: ")).collect::<Vec<_>>();
    assert_eq!(errors.len(), 1, "{}", outcome.stderr);
    assert!(outcome.stderr.starts_with("error: "), "{}", outcome.stderr);
    assert!(mentions(&outcome.stderr, message), "expected {message:?} in {:?}", outcome.stderr);
}

#[test]
fn a_file_that_is_no_capture_is_refused_in_one_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = directory.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let noise =
        (0..4096_u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8).collect::<Vec<_>>();
    let elf = example("m3-etmv3/m3.elf").to_str().unwrap().to_owned();
    let cases = [
        (directory.path().join("missing").to_str().unwrap().to_owned(), "file_missing"),
        (file("empty.bin", b""), "is empty"),
        (directory.path().to_str().unwrap().to_owned(), "holds neither snapshot.ini nor capture.toml"),
        (file("notes.txt", b"Just some notes.\n"), "no_trace"),
        (elf, "ELF --image"),
        (file("noise.bin", &noise), "4096 --container"),
    ];
    for (path, message) in cases {
        for command in ["info", "packets", "flow"] {
            assert_refused(&run_with_kinds([command, &path]), message);
        }
    }
}

#[test]
fn messages_for_programs_are_objects_with_their_kind() {
    let messages = |arguments: &[&str]| {
        let outcome = run(arguments.iter().chain(&MESSAGES));
        let object = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
        let all = outcome.stderr.lines().map(object).collect::<Vec<_>>();
        assert!(all.iter().all(|message| message["message"].as_str().is_some_and(|text| !text.is_empty())));
        let of = |message: &serde_json::Value| {
            format!("{} {}", message["severity"].as_str().unwrap(), message["kind"].as_str().unwrap())
        };
        (outcome.status, all.iter().map(of).collect::<Vec<_>>())
    };
    let trace = example("m3-etmv3/trace.bin");
    let trace = trace.to_str().unwrap();
    assert_eq!(messages(&["info", "missing"]), (2, vec!["error file_missing".to_owned()]));
    assert_eq!(messages(&["flow", trace, "--formt", "runs"]), (2, vec!["error arguments".to_owned()]));
    let [note, warning] = ["note inferred", "warning no_program"].map(str::to_owned);
    assert_eq!(messages(&["flow", trace, "--format", "none"]), (2, vec![note, warning.clone()]));
    assert_eq!(messages(&["flow", trace, "--format", "none", "--quiet"]), (2, vec![warning]));
    let capture = example("m3-etmv3/capture.toml");
    let unmet = ["coverage", capture.to_str().unwrap(), "--fail-under", "lines=100"];
    assert_eq!(messages(&unmet), (1, vec!["error unmet".to_owned()]));
}

#[test]
fn a_file_that_is_no_image_is_refused_in_one_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = directory.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    // The test binary itself is a program for another machine.
    let own = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
    let cases = [
        (directory.path().join("missing.elf").to_str().unwrap().to_owned(), "file_missing"),
        (file("empty.elf", b""), "is empty"),
        (directory.path().to_str().unwrap().to_owned(), "file_directory"),
        (file("notes.txt", b"Just some notes.\n"), "ELF"),
        (own, "ELF Arm"),
    ];
    let trace = example("m3-etmv3/trace.bin");
    for (path, message) in cases {
        assert_refused(&run_with_kinds(["flow", trace.to_str().unwrap(), "--image", &path]), message);
    }
}

#[test]
fn mistakes_in_options_name_the_nearest_right_one() {
    let trace = example("m3-etmv3/trace.bin");
    let cases: [(&[&str], &str); 7] = [
        (&["--container", "tpui"], "tpiu"),
        (&["--source", "0x10=etm"], "etmv3"),
        (&["--source", "0x10=etmv3,cpu=cortex-m3,etmrc=1"], "etmcr"),
        (&["--id", "0x70"], "ID 0x01 0x6f"),
        (&["--id", "0x33"], "ID 0x33 0x01 0x10 --id"),
        (&["--formt", "runs"], "--format"),
        (&["--source", "0x10=etmv3", "--source", "0x10=pft"], "--source ID 0x10"),
    ];
    for (options, message) in cases {
        let outcome = run(["flow", trace.to_str().unwrap()].iter().chain(options));
        assert_eq!((outcome.status, outcome.stdout.as_str()), (2, ""));
        assert!(mentions(&outcome.stderr, message), "expected {message:?} in {:?}", outcome.stderr);
    }
}

#[test]
fn a_processor_without_such_a_trace_unit_is_named() {
    let trace = example("m3-etmv3/trace.bin");
    let outcome = run(["flow", trace.to_str().unwrap(), "--source", "0x10=etmv3,cpu=cortex-m33"]);
    assert_eq!(outcome.status, 2);
    let reported = "ID 0x10 ETMIDR etmv3 cortex-m33";
    assert!(mentions(&outcome.stderr, reported), "{}", outcome.stderr);
}

#[test]
fn a_source_that_does_not_synchronise_is_reported() {
    let trace = example("m3-etmv3/trace.bin");
    let options =
        ["--container", "frames", "--source", "0x01=pft,cpu=cortex-a15", "--id", "1", "--format", "jsonl"];
    let outcome = run(["packets", trace.to_str().unwrap()].into_iter().chain(options));
    assert_eq!(outcome.status, 2);
    assert!(mentions(&outcome.stderr, "84 pft"), "{}", outcome.stderr);
    assert!(
        outcome.stdout.lines().all(|line| line.contains("\"packet\":\"unsynced\"")),
        "{}",
        outcome.stdout
    );
}

#[test]
fn trace_that_is_cut_short_is_printed_as_far_as_it_goes_and_gives_status_2() {
    let whole = std::fs::read(example("m3-etmv3/trace.bin")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let cut = directory.path().join("cut.bin");
    let mut bytes = whole[..4096].to_vec();
    // A reserved header in the middle of the source's bytes.
    bytes[2048..2064].fill(0x5a);
    std::fs::write(&cut, bytes).unwrap();
    let image = example("m3-etmv3/m3.elf");
    let options =
        ["--image", image.to_str().unwrap(), "--source", "0x10=etmv3,cpu=cortex-m3", "--format", "runs"];
    let outcome = run(["flow", cut.to_str().unwrap(), "--container", "frames"].into_iter().chain(options));
    assert_eq!(outcome.status, 2, "{}", outcome.stderr);
    assert!(outcome.stdout.lines().count() > 100);
    assert!(outcome.stderr.lines().all(|line| line.starts_with("warning: ") || line.starts_with("note: ")));
}

#[test]
fn without_an_image_what_the_trace_itself_says_is_printed() {
    let trace = example("m3-etmv3/trace.bin");
    let outcome = run(["flow", trace.to_str().unwrap(), "--format", "runs"]);
    assert_eq!(outcome.status, 2);
    assert!(mentions(&outcome.stderr, "--image FILE"), "{}", outcome.stderr);
    let lines = outcome.stdout.lines().skip(2).collect::<Vec<_>>();
    assert_eq!(lines[..2], ["O", "N c0"]);
    assert!(lines.iter().all(|line| !line.starts_with('R')));
    let recorded = std::fs::read_to_string(example("m3-etmv3/runs.txt")).unwrap();
    let exceptions = |text: &str| text.lines().filter(|line| line.starts_with("X 15 ")).count();
    assert_eq!(exceptions(&outcome.stdout), exceptions(&recorded));
}

#[test]
fn another_program_than_the_one_traced_is_not_followed() {
    // The trace of one program with the image of another one at the same addresses.
    let (trace, wrong) = (example("m3-etmv3/trace.bin"), example("m0-crash-mtb/m0-crash.elf"));
    let arguments = [
        "flow",
        trace.to_str().unwrap(),
        "--image",
        wrong.to_str().unwrap(),
        "--source",
        "0x10=etmv3,cpu=cortex-m3",
    ];
    for format in ["text", "runs", "jsonl"] {
        let (outcome, notices) = run_with_notices(arguments.into_iter().chain(["--format", format]));
        assert_eq!(outcome.status, 2);
        assert!(notices.has("image_refused"), "{notices:?}: {}", outcome.stderr);
        assert!(mentions(&outcome.stderr, "--trust-image"), "{}", outcome.stderr);
        let says_instructions =
            outcome.stdout.lines().any(|line| line.starts_with("R ") || line.contains("\"range\""));
        assert!(!says_instructions, "{}", outcome.stdout);
    }
    let (outcome, notices) =
        run_with_notices(arguments.into_iter().chain(["--format", "runs", "--trust-image"]));
    assert_eq!(outcome.status, 2);
    assert!(outcome.stdout.lines().any(|line| line.starts_with("R ")));
    assert!(notices.has("contradictions"), "{notices:?}: {}", outcome.stderr);
    assert!(mentions(&outcome.stderr, "--image"));
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let capture = example("m3-etmv3/capture.toml");
    for arguments in [
        vec!["flow"],
        vec!["packets"],
        vec!["flow", "--format", "jsonl"],
        vec!["packets", "--format", "jsonl"],
    ] {
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("tracewalk"));
        command
            .arg(arguments[0])
            .arg(&capture)
            .args(&arguments[1..])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert_eq!(
            String::from_utf8_lossy(&output.stderr).lines().filter(|line| line.starts_with("error")).count(),
            0
        );
    }
}

#[test]
fn standard_input_is_a_capture_like_any_other() {
    let output = tracewalk()
        .args(["flow", "-", "--format", "runs", "--image", example("m3-etmv3/m3.elf").to_str().unwrap()])
        .write_stdin(std::fs::read(example("m3-etmv3/trace.bin")).unwrap())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stdout, std::fs::read(example("m3-etmv3/runs.txt")).unwrap());
}

#[test]
fn colours_are_for_terminals_or_on_demand() {
    let capture = example("m0-crash-mtb/capture.toml");
    let flow = |options: &[&str]| run(["flow", capture.to_str().unwrap()].iter().chain(options)).stdout;
    let plain = flow(&[]);
    assert!(!plain.contains('\x1b'));
    let coloured = flow(&["--color", "always"]);
    assert!(coloured.contains('\x1b'));
    assert_eq!(anstream::adapter::strip_str(&coloured).to_string(), plain);
    assert_eq!(flow(&["--color", "never"]), plain);
}

#[test]
fn notes_are_left_out_on_demand_and_warnings_are_not() {
    let trace = example("m3-etmv3/trace.bin");
    let outcome = run(["flow", "-q", trace.to_str().unwrap()]);
    assert!(outcome.stderr.lines().all(|line| line.starts_with("warning: ")), "{}", outcome.stderr);
    assert!(!outcome.stderr.is_empty());
}

#[test]
fn info_says_what_is_in_a_capture() {
    let capture = example("m3-etmv3/capture.toml");
    let outcome = run(["info", capture.to_str().unwrap()]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    for expected in ["container     frames", "trace ID 0x10 ", "--source 0x10=etmv3,cpu=cortex-m3", "i_sync"]
    {
        assert!(outcome.stdout.contains(expected), "{}", outcome.stdout);
    }
}

#[test]
fn a_program_given_in_another_way_is_answered_with_the_option() {
    let trace = example("m3-etmv3/trace.bin");
    let trace = trace.to_str().unwrap();
    for (arguments, named) in [
        (vec!["flow", trace, "firmware.elf"], "--image firmware.elf"),
        (vec!["info", trace, "build/a.axf"], "--image build/a.axf"),
        (vec!["crash", "firmware.elf", trace], "--image firmware.elf"),
        (vec!["flow", trace, "--elf", "firmware.elf"], "--image"),
    ] {
        let outcome = run(&arguments);
        assert_eq!(outcome.status, 2, "{arguments:?}");
        assert!(outcome.stderr.contains(named), "{arguments:?}: {}", outcome.stderr);
    }
}

#[test]
fn a_table_without_a_format_that_writes_it_is_refused() {
    let capture = example("m3-etmv3/capture.toml");
    let capture = capture.to_str().unwrap();
    let (status, refused) = {
        let tables: [&[&str]; 5] = [
            &["coverage", capture, "--table", "branches"],
            &["coverage", capture, "--table", "branches", "--format", "json"],
            &["info", capture, "--table", "packets"],
            &["crash", capture, "--table", "stack", "--format", "markdown"],
            &["counts", capture, "--table", "branches", "--format", "text"],
        ];
        let outcomes = tables.map(run_with_kinds);
        assert!(outcomes.iter().all(|outcome| outcome.stdout.is_empty()));
        (outcomes.each_ref().map(|outcome| outcome.status), outcomes.map(|outcome| outcome.stderr))
    };
    assert_eq!(status, [2; 5], "{refused:?}");
    assert!(refused.iter().all(|error| mentions(error, "error: arguments --table csv")), "{refused:?}");
    let csv = ["coverage", "-q", capture, "--table=branches", "--format=csv"];
    assert_eq!(run_with_kinds(csv).status, 0);
}

/// The last line on standard error, with every status.
#[test]
fn statistics_are_printed_when_a_check_fails() {
    let capture = example("m3-etmv3/capture.toml");
    let outcome = run(["coverage", capture.to_str().unwrap(), "--fail-under", "lines=99.9", "--stats", "-q"]);
    assert_eq!(outcome.status, 1);
    let line = outcome.stderr.lines().find(|line| line.starts_with('{')).unwrap();
    assert!(line.contains("\"instructions\":"), "{line}");
}

/// An installed command has no checkout beside it.
#[test]
fn help_and_manual_have_the_pages_and_name_no_file_of_a_checkout() {
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let pages = std::fs::read_dir(docs).unwrap().map(|entry| entry.unwrap().path());
    let pages = pages.filter(|page| page.extension().is_some_and(|end| end == "md")).collect::<Vec<_>>();
    for page in &pages {
        let outcome = run(["help", page.file_stem().unwrap().to_str().unwrap()]);
        let last = std::fs::read_to_string(page).unwrap().lines().last().unwrap().to_owned();
        assert!(outcome.status == 0 && outcome.stdout.contains(last.split("](").next().unwrap()), "{page:?}");
        assert!(!outcome.stdout.contains("](../") && !outcome.stdout.contains("](pictures/"), "{page:?}");
    }
    assert!(pages.len() > 25);
    assert_eq!(run(["help"]).stdout, run(["--help"]).stdout);
    let flow = run(["flow", "--help"]).stdout;
    assert_eq!(run(["help", "flow"]).stdout, flow);
    let mistaken = run(["help", "covrage"]);
    assert!(mistaken.status == 2 && mistaken.stderr.contains("coverage"), "{}", mistaken.stderr);
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(["--generate", "man", "-o", folder.path().to_str().unwrap()]).status, 0);
    for page in std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()) {
        let text = std::fs::read_to_string(&page).unwrap();
        assert!(!text.contains(" docs/") && !text.contains("(docs/"), "{page:?}");
    }
}

/// The help of each command states its statuses, and names no file of a checkout.
#[test]
fn the_help_states_what_is_so() {
    for command in [
        "info",
        "packets",
        "flow",
        "crash",
        "itm",
        "coverage",
        "profile",
        "calls",
        "timeline",
        "interrupts",
        "tasks",
        "counts",
        "describe",
        "diff",
    ] {
        for option in ["-h", "--help"] {
            let help = run([command, option]).stdout;
            let has_checks = option == "--help" && ["crash", "coverage", "diff"].contains(&command);
            assert_eq!(help.contains("\n  1  "), has_checks, "{command} {option}");
            assert!(!help.contains(" docs/") && !help.contains("(docs/"), "{command} {option}");
        }
    }
}
