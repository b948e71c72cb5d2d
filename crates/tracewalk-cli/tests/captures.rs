//! Captures that the user can describe only in part, and the settings that tracewalk reports for the rest.

use crate::support::firmware::Firmware;
use crate::support::{Outcome, comparable, corpus, example, run};
use crate::support::{mentions, opencsd, run_with_kinds, run_with_notices};

fn arguments<'a>(command: &'a str, capture: &'a std::path::Path, options: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec![command, capture.to_str().unwrap()];
    arguments.extend(options);
    arguments
}

#[test]
fn info_shows_the_evidence_for_each_guess_and_the_next_best_answer() {
    let (trace, image) = (example("a7-etmv3/trace.bin"), example("a7-etmv3/a9.elf"));
    let outcome = run(arguments("info", &trace, &["--image", image.to_str().unwrap()]));
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let found = outcome.stdout.lines().map(str::trim_start).collect::<Vec<_>>();
    let answers = [
        ("inferred      container: frames (1 of 1 sources recognised, ", None),
        ("inferred      protocol: etmv3 (0 errors in ", None),
        ("cycle counts: on (0 errors in ", Some("not off (")),
        ("context IDs: 1 byte (0 errors in ", Some("not ")),
        ("timestamps: 64 bits, binary (0 errors in ", Some("not ")),
    ];
    for (answer, runner_up) in answers {
        let line = found.iter().position(|line| line.starts_with(answer));
        let line = line.unwrap_or_else(|| panic!("expected {answer:?} in {}", outcome.stdout));
        if let Some(runner_up) = runner_up {
            assert!(found[line + 1].starts_with(runner_up), "{}", found[line + 1]);
            assert!(!found[line + 1].contains("0 errors"), "{}", found[line + 1]);
        }
    }
    assert!(found.contains(&"either way    branch encoding"), "{}", outcome.stdout);
}

#[test]
fn strict_finds_nothing_out_and_says_what_is_needed() {
    let trace = example("m3-etmv3/trace.bin");
    let cases: [(&[&str], &str); 5] = [
        (&[], "--container CONTAINER --source [ID=]PROTOCOL,cpu=CPU"),
        (&["--container", "frames"], "--source 0x01=PROTOCOL,cpu=CPU --source 0x10=PROTOCOL,cpu=CPU"),
        (&["--container", "frames", "--id", "0x10"], "--source 0x10=PROTOCOL,cpu=CPU"),
        (&["--container", "frames", "--id", "0x10", "--source", "0x10=etmv3"], "--source 0x10=etmv3,cpu=CPU"),
        (&["--container", "tpiu"], "--container frame-start=N"),
    ];
    for (options, needed) in cases {
        for command in ["info", "packets", "flow"] {
            let outcome = run(arguments(command, &trace, options).into_iter().chain(["--strict"]));
            assert_eq!((outcome.status, outcome.stdout.as_str()), (2, ""), "{}", outcome.stderr);
            assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
            assert!(mentions(&outcome.stderr, "--strict"), "{}", outcome.stderr);
            assert!(mentions(&outcome.stderr, needed), "{}", outcome.stderr);
        }
    }
    let elf = example("m3-etmv3/m3.elf");
    let options = ["--container", "frames", "--source", "0x10=etmv3,cpu=cortex-m3", "--source", "1=itm"];
    let options =
        options.into_iter().chain(["--strict", "--image", elf.to_str().unwrap(), "--format", "runs"]);
    let outcome = run(arguments("flow", &trace, &options.collect::<Vec<_>>()));
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("inferred"), "{}", outcome.stderr);
    assert_eq!(outcome.stdout, std::fs::read_to_string(example("m3-etmv3/runs.txt")).unwrap());
    // A description leaves nothing open.
    assert_eq!(
        run(["flow", "--strict", example("a7-etmv3").to_str().unwrap(), "--format", "none"]).status,
        0
    );
}

#[test]
fn frames_of_a_trace_port_stand_where_the_user_says() {
    let whole = std::fs::read(example("m3-etmv3/trace.bin")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let cut = directory.path().join("cut.bin");
    std::fs::write(&cut, &whole[5..]).unwrap();
    let guessed = run(arguments("packets", &cut, &["--format", "jsonl"]));
    let options = guessed.stderr.lines().find_map(|line| line.strip_prefix("note: inferred: ")).unwrap();
    assert!(
        options.starts_with("--container tpiu --container frame-start=11 --source 0x01=itm --source 0x10="),
        "{options}"
    );
    let stated =
        run(arguments("packets", &cut, &["--format", "jsonl"]).into_iter().chain(options.split(' ')));
    assert_eq!(stated.stdout, guessed.stdout);
    assert!(!stated.stderr.contains("inferred"), "{}", stated.stderr);
    let wrong = ["--container", "tpiu,frame-start=10", "--source", "0x10=etmv3,cpu=cortex-m3"];
    assert_eq!(run(arguments("packets", &cut, &wrong)).status, 2);
}

/// Bytes that are not frames, read as frames, seem to come from arbitrary sources.
#[tracewalk_corpus::test]
fn many_sources_that_are_not_described_are_one_note() {
    let folder = corpus("etm4/juno_r1_1");
    let outcome = run_with_kinds(["info", folder.to_str().unwrap()]);
    let of_kind = |kind: &str| outcome.stderr.lines().filter(|line| line.contains(kind)).collect::<Vec<_>>();
    assert!(of_kind(": undescribed:").is_empty(), "{}", outcome.stderr);
    let [many] = &of_kind("note: many_undescribed:")[..] else { panic!("{}", outcome.stderr) };
    assert!(mentions(many, "103 24 0x09 497"), "{many}");
    // Zero registers that change nothing are only counted.
    assert!(outcome.stdout.lines().any(|line| mentions(line, "TRCAUTHSTATUS=0xcc 3")), "{}", outcome.stdout);
}

#[test]
fn a_source_that_is_not_described_is_named_with_the_option_that_would_decode_it() {
    let trace = example("m3-etmv3/trace.bin");
    let outcome = run(arguments("info", &trace, &["--container", "frames", "--source", "0x01=itm"]));
    let option = "1 --source 0x10=etmv3,cpu=cortex-m3";
    assert!(mentions(&outcome.stderr, option), "{}", outcome.stderr);
}

#[test]
fn a_register_that_nobody_gave_is_found_out_beside_those_that_were_given() {
    // Cycle counts and context IDs are on; of the processor only the name is given.
    let (trace, image) = (example("a7-etmv3/trace.bin"), example("a7-etmv3/a9.elf"));
    let expected = std::fs::read_to_string(example("a7-etmv3/runs.txt")).unwrap();
    for source in
        ["0x10=etmv3", "0x10=etmv3,cpu=cortex-a7", "etmv3,cpu=cortex-a7,etmccer=0x344008f2", "etmv3"]
    {
        let options = [
            "--container",
            "frames",
            "--source",
            source,
            "--image",
            image.to_str().unwrap(),
            "--format",
            "runs",
        ];
        let outcome = run(arguments("flow", &trace, &options));
        assert_eq!(outcome.status, 0, "{source}: {}", outcome.stderr);
        assert_eq!(outcome.stdout, expected, "{source}");
        assert!(mentions(&outcome.stderr, "--source 0x10=etmv3,cpu=cortex-a7"), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("etmcr=0x5000"), "{}", outcome.stderr);
    }
}

#[tracewalk_corpus::test]
fn an_image_of_raw_bytes_is_found_where_it_stood() {
    let case = corpus("synthetic/mix-m3-etmv3");
    let expected = run(["flow", case.to_str().unwrap(), "--format", "runs"]);
    let address = "0x00000000";
    let image = format!("0x20000000:{}", case.join("program.bin").display());
    let trace = case.join("trace.bin");
    let options = ["--source", "2=etmv3,cpu=cortex-m3", "--container", "raw", "--image", &image];
    let (outcome, notices) =
        run_with_notices(arguments("flow", &trace, &options).into_iter().chain(["--format", "runs"]));
    assert!(notices.has("image_moved"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains(&format!("--image {address}:")), "{}", outcome.stderr);
    assert_eq!(outcome.stdout, expected.stdout);
    // With `--strict`, the image stays at the user's address.
    let strict = arguments("flow", &trace, &options).into_iter().chain(["--format", "none", "--strict"]);
    let (outcome, notices) = run_with_notices(strict);
    assert_eq!(outcome.status, 2);
    assert!(!notices.has("image_moved"), "{}", outcome.stderr);
}

/// The image is short but at the right address. Elsewhere it would fit a loop of the trace for a while.
#[tracewalk_corpus::test]
fn a_short_image_is_not_moved_to_where_a_loop_fits_by_chance() {
    let real = corpus("real/tc2-ptm-rstk-t32");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("code.bin");
    let code = std::fs::read(real.join("mem_Cortex-A15_0_1_RO_CODE.bin")).unwrap();
    std::fs::write(&file, &code[..256]).unwrap();
    let image = format!("0x80000278:{}", file.display());
    let options = ["--image", &image, "--format", "none"];
    let (outcome, notices) = run_with_notices(arguments("flow", &real.join("PTM_0_2.bin"), &options));
    assert!(!notices.has("image_moved"), "{}", outcome.stderr);
    assert!(notices.has("code_missing"), "{}", outcome.stderr);
}

/// The sentence in which a decode reports that its configuration does not fit.
fn contradiction(outcome: &Outcome) -> &str {
    let mut lines =
        outcome.stderr.lines().filter(|line| line.contains("the trace contradicts its description"));
    let line = lines.next().unwrap_or_else(|| panic!("nothing contradicts in {}", outcome.stderr));
    assert_eq!(lines.next(), None, "{}", outcome.stderr);
    line
}

#[test]
fn a_configuration_that_the_trace_contradicts_is_reported_with_the_setting_the_place_and_what_fits() {
    let (trace, image) = (example("a7-etmv3/trace.bin"), example("a7-etmv3/a9.elf"));
    let right = "try --source 0x10=etmv3,cpu=cortex-a7,etmcr=0x5000";
    let cases: [(&str, &[&str]); 4] = [
        (
            "etmv3,cpu=cortex-a7,etmcr=0xd000",
            &["from offset 7 on", "context IDs: 4 bytes (ETMCR, --source), but 1 byte fits: "],
        ),
        (
            "etmv3,cpu=cortex-a7,etmcr=0x4000",
            &["from offset 7 on", "cycle counts: off (ETMCR, --source), but on fits: "],
        ),
        (
            "etmv3,cpu=cortex-a7,etmcr=0xc000",
            &["cycle counts: off (ETMCR, --source), but on fits; context IDs: 4 bytes (ETMCR"],
        ),
        ("pft,cpu=cortex-a15,etmcr=0", &["protocol: pft (ETMIDR, usual for cortex-a15), but etmv3 fits"]),
    ];
    for (source, expected) in cases {
        let source = format!("0x10={source}");
        let options = ["--container", "frames", "--source", &source, "--image", image.to_str().unwrap()];
        for command in ["flow", "packets"] {
            let options = if command == "flow" { &options[..] } else { &options[..4] };
            let outcome = run(arguments(command, &trace, options).into_iter().chain(["--format", "none"]));
            assert_eq!(outcome.status, 2);
            let reported = contradiction(&outcome);
            assert!(reported.starts_with("warning: trace ID 0x10: "), "{reported}");
            assert!(reported.ends_with(right), "{reported}");
            assert!(expected.iter().all(|part| reported.contains(part)), "{reported}");
        }
    }
}

#[tracewalk_corpus::test]
fn the_wrong_branch_encoding_is_reported() {
    let case = corpus("synthetic/mix-a7-etmv3-alternative");
    let directory = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(&case).unwrap() {
        let file = file.unwrap().path();
        std::fs::write(directory.path().join(file.file_name().unwrap()), std::fs::read(&file).unwrap())
            .unwrap();
    }
    let described = directory.path().join("source_0.ini");
    let text = std::fs::read_to_string(&described).unwrap();
    std::fs::write(&described, text.replace("0x411CF250", "0x410CF250")).unwrap();
    let outcome = run(["flow", directory.path().to_str().unwrap(), "--format", "none"]);
    let reported = contradiction(&outcome);
    assert!(mentions(reported, "ETMIDR"), "{reported}");
    assert!(mentions(reported, "source_0.ini:8"), "{reported}");
}

#[test]
fn a_configuration_that_changes_on_the_way_is_reported_with_the_place() {
    let directory = tempfile::tempdir().unwrap();
    let firmware = Firmware::load("a9");
    let traced = |etmcr| firmware.etmv3("cortex-a7", etmcr).bytes;
    let (before, after) = (traced(0).repeat(8), traced(0b10 << 14).repeat(3));
    let file = directory.path().join("trace.bin");
    std::fs::write(&file, [before.as_slice(), &after].concat()).unwrap();
    let options = ["--container", "raw", "--source", "etmv3,cpu=cortex-a7,etmcr=0x0", "--format", "none"];
    let outcome = run(arguments("packets", &file, &options));
    let reported = contradiction(&outcome);
    assert!(reported.contains("context IDs: none (ETMCR, --source), but 2 bytes fits: "), "{reported}");
    let at = reported.split("from offset ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    let at = at.parse::<usize>().unwrap();
    assert!(before.len() <= at && at < before.len() + 16, "{at}, of {}", before.len());
}

#[test]
fn a_damaged_trace_is_no_wrong_configuration() {
    let (trace, image) = (example("a7-etmv3/trace.bin"), example("a7-etmv3/a9.elf"));
    let mut bytes = std::fs::read(&trace).unwrap();
    for at in (500..bytes.len()).step_by(700) {
        bytes[at..at + 3].fill(0x5a);
    }
    let directory = tempfile::tempdir().unwrap();
    let damaged = directory.path().join("damaged.bin");
    std::fs::write(&damaged, bytes).unwrap();
    let options = [
        "--container",
        "frames",
        "--source",
        "0x10=etmv3,cpu=cortex-a7,etmcr=0x5000",
        "--image",
        image.to_str().unwrap(),
        "--format",
        "none",
    ];
    let (outcome, notices) = run_with_notices(arguments("flow", &damaged, &options));
    assert_eq!(outcome.status, 2);
    assert!(!notices.0.is_empty() && !notices.has("statement_contradicted"), "{}", outcome.stderr);
}

#[test]
fn a_described_capture_needs_no_option_any_more() {
    let directory = tempfile::tempdir().unwrap();
    for file in ["trace.bin", "a9.elf"] {
        std::fs::copy(example("a7-etmv3").join(file), directory.path().join(file)).unwrap();
    }
    let (trace, image) = (directory.path().join("trace.bin"), directory.path().join("a9.elf"));
    let image = image.to_str().unwrap();
    let printed = run(arguments("describe", &trace, &["--image", image]));
    assert_eq!(printed.status, 0, "{}", printed.stderr);
    let expected = "\
[capture]
file = \"trace.bin\"
container = \"frames\"

[[source]]
protocol = \"etmv3\"
id = 0x10
cpu = \"cortex-a7\"
registers = { etmcr = 0x00005000 }

[[image]]
file = \"a9.elf\"
";
    assert_eq!(printed.stdout, expected);
    let file = directory.path().join("capture.toml");
    let written = run(arguments("describe", &trace, &["--image", image, "-o", file.to_str().unwrap()]));
    assert_eq!((written.status, written.stdout.as_str()), (0, ""));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), expected);
    let outcome = run(arguments("flow", directory.path(), &["--strict", "--format", "runs"]));
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    assert_eq!(outcome.stdout, std::fs::read_to_string(example("a7-etmv3/runs.txt")).unwrap());
}

#[test]
fn what_was_not_recognised_is_described_as_unknown() {
    let trace = example("m3-etmv3/trace.bin");
    let printed = run(arguments("describe", &trace, &["--source", "0x10=etmv3,cpu=cortex-m3"]));
    assert!(printed.stdout.contains("protocol = \"etmv3\"\nid = 0x10\n"), "{}", printed.stdout);
    assert!(printed.stdout.contains("\nid = 0x01\n"), "{}", printed.stdout);
}

/// OpenCSD's runs of a snapshot directory.
fn opencsd_runs(directory: &std::path::Path) -> String {
    opencsd::runs(&opencsd::list(directory))
}

#[test]
#[ignore = "needs OpenCSD"]
fn a_snapshot_is_read_by_opencsd_as_the_capture_is_read_here() {
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("snapshot");
    for name in ["a15-pft", "m3-etmv3"] {
        let outcome = run(arguments(
            "describe",
            &example(name).join("capture.toml"),
            &["--format", "ds5", "-o", output.to_str().unwrap()],
        ));
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        let here = run(["flow", output.to_str().unwrap(), "--format", "runs"]);
        assert_eq!(here.stdout, std::fs::read_to_string(example(name).join("runs.txt")).unwrap());
        if name == "a15-pft" {
            let found = opencsd_runs(&output);
            // OpenCSD's runs have no preferred return addresses.
            let runs = comparable(&here.stdout).into_iter().map(|line| match line.split_once(' ') {
                Some(("X", rest)) => format!("X {}", rest.split(' ').next().unwrap()),
                _ => line,
            });
            assert_eq!(found.lines().collect::<Vec<_>>(), runs.collect::<Vec<_>>());
        }
        std::fs::remove_dir_all(&output).unwrap();
    }
}

#[test]
#[ignore = "needs OpenCSD and the corpus"]
fn a_snapshot_of_real_boards_says_the_same_to_opencsd_as_the_original() {
    for (name, elf) in [("TC2", None), ("stm32f105", Some("trace_example.elf"))] {
        let case = corpus(&format!("real/{name}"));
        let directory = tempfile::tempdir().unwrap();
        let output = directory.path().join("snapshot");
        let (capture, mut options) = match elf {
            None => (case.clone(), Vec::new()),
            Some(elf) => {
                (case.join("swo.bin"), vec!["--image".to_owned(), case.join(elf).display().to_string()])
            }
        };
        options.extend(["--format=ds5".to_owned(), "-o".to_owned(), output.display().to_string()]);
        let options = options.iter().map(String::as_str).collect::<Vec<_>>();
        let outcome = run(arguments("describe", &capture, &options));
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        let found = opencsd_runs(&output);
        let expected = match elf {
            None => opencsd_runs(&case),
            Some(_) => {
                let expected = std::fs::read_to_string(case.join("runs-02.txt")).unwrap();
                comparable(&expected).join("\n") + "\n"
            }
        };
        assert!(expected.lines().count() > 100);
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn a_snapshot_is_only_written_where_nothing_is() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("precious"), "1").unwrap();
    let capture = example("a15-pft/capture.toml");
    let outcome = run_with_kinds(arguments(
        "describe",
        &capture,
        &["--format", "ds5", "-o", directory.path().to_str().unwrap()],
    ));
    assert_eq!(outcome.status, 2);
    assert!(outcome.stderr.contains("error: folder_not_empty"), "{}", outcome.stderr);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    // OpenCSD has no MTB support.
    let output = directory.path().join("new");
    let outcome = run(arguments(
        "describe",
        &example("m0-crash-mtb"),
        &["--format", "ds5", "-o", output.to_str().unwrap()],
    ));
    assert_eq!(outcome.status, 2);
    assert!(mentions(&outcome.stderr, "mtb"), "{}", outcome.stderr);
    assert!(!output.exists());
}

#[test]
fn info_shows_what_a_description_says_beside() {
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("snapshot");
    let capture = example("a15-pft/capture.toml");
    run(arguments("describe", &capture, &["--format", "ds5", "-o", output.to_str().unwrap()]));
    let list = output.join("snapshot.ini");
    let text = std::fs::read_to_string(&list).unwrap();
    std::fs::write(&list, format!("{text}\n[clusters]\nbig=cpu_0\n")).unwrap();
    let outcome = run(["info", output.to_str().unwrap()]);
    assert!(outcome.stdout.contains("\nnot used, from the description\n"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("[clusters] big=cpu_0"), "{}", outcome.stdout);
}

#[test]
fn the_options_that_info_names_are_taken_whatever_registers_a_snapshot_says() {
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("snapshot");
    let capture = example("a15-pft/capture.toml");
    run(arguments("describe", &capture, &["--format", "ds5", "-o", output.to_str().unwrap()]));
    let unit = std::fs::read_dir(&output).unwrap().map(|entry| entry.unwrap().path());
    let unit =
        unit.into_iter().find(|path| std::fs::read_to_string(path).is_ok_and(|text| text.contains("ETMIDR")));
    let unit = unit.unwrap();
    let text = std::fs::read_to_string(&unit).unwrap();
    std::fs::write(&unit, text.replace("[regs]\n", "[regs]\nETMSR(0x004)=0x2\n")).unwrap();

    let outcome = run(["info", output.to_str().unwrap()]);
    let found =
        |what: &str| outcome.stdout.lines().find_map(|line| line.trim().strip_prefix(what)).map(str::trim);
    assert_eq!(found("not used"), Some("ETMSR=0x2"), "{}", outcome.stdout);
    let options = found("as options").unwrap();
    let trace = example("a15-pft/trace.bin");
    let options = ["--container", "frames", "--format", "none"].into_iter().chain(options.split(' '));
    let outcome = run(["packets", trace.to_str().unwrap()].into_iter().chain(options));
    assert_eq!((outcome.status, outcome.stderr.as_str()), (0, ""));
}

#[test]
fn a_snapshot_of_trace_that_cannot_be_decoded_is_no_success() {
    let directory = tempfile::tempdir().unwrap();
    let files = [
        (
            "snapshot.ini",
            "[snapshot]\nversion=1.0\n[device_list]\ndevice0=etm.ini\n[trace]\nmetadata=trace.ini\n",
        ),
        ("etm.ini", "[device]\nname=ETM_0\nclass=trace_source\ntype=ETM1\n[regs]\nTRCTRACEIDR(0x010)=0x10\n"),
        (
            "trace.ini",
            "[trace_buffers]\nbuffers=b\n[b]\nname=ETB\nfile=trace.bin\nformat=source_data\n[source_buffers]\nETM_0=ETB\n",
        ),
        ("trace.bin", "\u{1}\u{2}\u{3}\u{4}\u{5}\u{6}\u{7}"),
    ];
    files.iter().for_each(|(name, text)| std::fs::write(directory.path().join(name), text).unwrap());
    let outcome = run_with_kinds(["flow", directory.path().to_str().unwrap()]);
    assert_eq!((outcome.status, outcome.stdout.as_str()), (2, ""), "{}", outcome.stderr);
    assert!(mentions(&outcome.stderr, "ETM1 nothing_decodable"), "{}", outcome.stderr);
}

/// A buffer that wrapped, filled by a formatter that wrote the trace ID once.
#[test]
fn trace_without_an_id_in_front_of_it_is_not_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let description = std::fs::read_to_string(example("a7-etmv3/capture.toml")).unwrap();
    let trace = std::fs::read(example("a7-etmv3/trace.bin")).unwrap();
    let capture = folder.path().join("capture.toml");
    std::fs::write(&capture, description).unwrap();
    std::fs::copy(example("a7-etmv3/a9.elf"), folder.path().join("a9.elf")).unwrap();
    std::fs::write(folder.path().join("trace.bin"), &trace[trace.len() / 32 * 16..]).unwrap();
    for command in ["flow", "coverage", "profile", "interrupts", "timeline", "crash", "info"] {
        let (outcome, notices) = run_with_notices([command, capture.to_str().unwrap()]);
        assert_eq!(outcome.status, 2, "{command}: {}", outcome.stderr);
        assert!(notices.has("unowned"), "{command}: {notices:?}");
    }
}
