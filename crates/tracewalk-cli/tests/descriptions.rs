//! Descriptions as other tools write them, missing files that they name, and descriptions written back.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Outcome, copied_example, corpus, example, mentions, run, run_with_kinds};

/// The directory that `tracewalk describe --format ds5` writes of an example.
fn snapshot_of(example_name: &str, directory: &Path) -> PathBuf {
    let written = directory.join("snapshot");
    let outcome = run([
        "describe",
        "--format",
        "ds5",
        example(example_name).to_str().unwrap(),
        "-o",
        written.to_str().unwrap(),
        "-q",
    ]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    written
}

fn replace(file: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains(from), "{from} in {text}");
    fs::write(file, text.replace(from, to)).unwrap();
}

fn runs(capture: &Path) -> Outcome {
    run_with_kinds(["flow", capture.to_str().unwrap(), "--format", "runs"])
}

#[test]
fn a_snapshot_with_names_of_windows_is_read_as_with_names_of_this_system() {
    let directory = tempfile::tempdir().unwrap();
    let snapshot = snapshot_of("a7-etmv3", directory.path());
    let expected = runs(&snapshot);
    assert_eq!(expected.status, 0, "{}", expected.stderr);
    // As Arm DS writes it on a case-insensitive system, with files in a folder, and in another folder by an
    // absolute path.
    fs::create_dir(snapshot.join("Dumps")).unwrap();
    fs::rename(snapshot.join("cpu_0_memory_0.bin"), snapshot.join("Dumps/Memory.BIN")).unwrap();
    replace(&snapshot.join("cpu_0.ini"), "cpu_0_memory_0.bin", "dumps\\memory.bin");
    replace(&snapshot.join("cpu_0.ini"), "[dump0]", "[Dump0]");
    replace(&snapshot.join("trace.ini"), "[trace_buffers]", "[Trace_Buffers]");
    replace(&snapshot.join("trace.ini"), "file=trace_0.bin", "file=C:\\Users\\me\\snapshot\\Trace_0.bin");
    replace(&snapshot.join("snapshot.ini"), "metadata=trace.ini", "Metadata=.\\Trace.Ini");
    replace(&snapshot.join("snapshot.ini"), "source_0.ini", "SOURCE_0.INI");
    fs::rename(snapshot.join("snapshot.ini"), snapshot.join("Snapshot.Ini")).unwrap();
    for name in [snapshot.clone(), snapshot.join("Snapshot.Ini")] {
        let found = runs(&name);
        assert_eq!(
            (found.status, found.stderr.as_str()),
            (0, expected.stderr.as_str()),
            "{}",
            name.display()
        );
        assert!(found.stdout == expected.stdout, "{}", name.display());
    }
}

/// The message for a refused capture: its last sentence is the reason.
fn sentence(capture: &Path) -> String {
    let outcome = runs(capture);
    assert_eq!(outcome.status, 2, "{}", outcome.stderr);
    assert!(outcome.stdout.is_empty() || outcome.stdout == "# tracewalk runs 1\n", "{}", outcome.stdout);
    let errors = outcome.stderr.lines().filter(|line| line.starts_with("error: ")).collect::<Vec<_>>();
    assert_eq!(errors.len(), 1, "{}", outcome.stderr);
    assert!(outcome.stderr.trim_end().ends_with(errors[0]), "{}", outcome.stderr);
    outcome.stderr
}

#[test]
fn what_a_snapshot_names_and_is_not_there_is_reported_with_key_section_file_and_line() {
    let directory = tempfile::tempdir().unwrap();
    let snapshot = snapshot_of("a7-etmv3", directory.path());
    let cases = [
        ("trace_0.bin", "trace.ini", "`file` in [buffer0]", 6),
        ("cpu_0_memory_0.bin", "cpu_0.ini", "`file` in [dump0]", 9),
        ("cpu_0.ini", "snapshot.ini", "`device0` in [device_list]", 5),
        ("trace.ini", "snapshot.ini", "`metadata` in [trace]", 9),
    ];
    for (file, description, entry, line) in cases {
        let path = snapshot.join(file);
        let place = format!("{entry} at {}:{line}", snapshot.join(description).display());
        fs::rename(&path, directory.path().join("aside")).unwrap();
        let missing = sentence(&snapshot);
        assert!(mentions(&missing, &format!("file_missing: {}:", path.display())), "{missing}");
        assert!(missing.ends_with(&format!(" correct {place}\n")), "{missing}");
        fs::create_dir(&path).unwrap();
        let directory_there = sentence(&snapshot);
        assert!(directory_there.contains("error: file_directory: "), "{directory_there}");
        assert!(directory_there.ends_with(&format!("; correct {place}\n")), "{directory_there}");
        fs::remove_dir(&path).unwrap();
        fs::rename(directory.path().join("aside"), &path).unwrap();
        for reported in [missing, directory_there] {
            assert!(!reported.contains("--image"), "{reported}");
        }
    }
    replace(&snapshot.join("cpu_0.ini"), "cpu_0_memory_0.bin", "../memory.bin");
    let outside = sentence(&snapshot);
    assert!(mentions(&outside, ".."), "{outside}");
    assert!(outside.contains(&format!("`file` in [dump0] at {}:9", snapshot.join("cpu_0.ini").display())));
}

#[test]
fn what_a_capture_toml_names_and_is_not_there_is_reported_with_key_table_file_and_line() {
    let directory = tempfile::tempdir().unwrap();
    let description = directory.path().join("capture.toml");
    fs::copy(example("m0-crash-mtb/trace.bin"), directory.path().join("trace.bin")).unwrap();
    let at = |line: u32| format!("{}:{line}", description.display());
    let cases = [
        ("[capture]\nfile = \"gone\"\n", format!("`file` in [capture] at {}", at(2))),
        (
            "[capture]\nfile = \"trace.bin\"\n[[image]]\nfile = \"gone\"\n",
            format!("`file` in [[image]] at {}", at(4)),
        ),
        (
            "[capture]\nfile = \"trace.bin\"\n[[source]]\nprotocol = \"mtb\"\nregisters = \"gone\"\n",
            format!("`registers` in [[source]] at {}", at(5)),
        ),
    ];
    for (text, place) in cases {
        for (name, reported) in [("gone", "error: file_missing: "), (".", "error: file_directory: ")] {
            fs::write(&description, text.replace("gone", name)).unwrap();
            let found = sentence(directory.path());
            assert!(found.contains(reported) && found.ends_with(&format!("correct {place}\n")), "{found}");
        }
    }
    // For an option, the message names the option.
    let trace = example("a7-etmv3/trace.bin");
    let outcome = run(["flow", trace.to_str().unwrap(), "--image", "gone"]);
    assert!(mentions(&outcome.stderr, "--image"), "{}", outcome.stderr);
}

#[test]
fn describe_keeps_registers_that_change_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let snapshot = snapshot_of("a7-etmv3", directory.path());
    let source = snapshot.join("source_0.ini");
    let mut text = fs::read_to_string(&source).unwrap();
    text.push_str("ETMTEEVR(0x008)=0x0000406F\nETMACVR(0x010)=0x8000\nETMACVR(0x011)=0x9000\n");
    fs::write(&source, text).unwrap();
    let described = snapshot.join("capture.toml");
    let outcome = run(["describe", snapshot.to_str().unwrap(), "-o", described.to_str().unwrap()]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let text = fs::read_to_string(&described).unwrap();
    let kept = "[source.other_registers]\n\"ETMACVR\" = 0x00008000\n\"ETMACVR(0X011)\" = 0x00009000\n\"ETMTEEVR\" = 0x0000406f\n";
    assert!(text.contains(kept), "{text}");
    // The description can be read again, and is written again unchanged.
    assert!(runs(&described).stdout == runs(&snapshot).stdout);
    let again = run(["describe", described.to_str().unwrap()]);
    assert_eq!((again.status, again.stdout), (0, text.clone()), "{}", again.stderr);
    // A snapshot made from the description keeps these registers, too.
    let second = directory.path().join("second");
    let outcome = run([
        "describe",
        "--format",
        "ds5",
        described.to_str().unwrap(),
        "-o",
        second.to_str().unwrap(),
        "-q",
    ]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let text = fs::read_to_string(second.join("source_0.ini")).unwrap();
    assert!(text.contains("ETMTEEVR=0x0000406F\n") && text.contains("ETMACVR(0X011)=0x00009000\n"), "{text}");
    // A register that changes packets has its own place in the description.
    replace(&described, "\"ETMTEEVR\"", "\"etmcr\"");
    let found = sentence(&described);
    assert!(mentions(&found, "etmcr"), "{found}");
}

#[tracewalk_corpus::test]
fn a_real_snapshot_keeps_every_register_of_its_trace_units() {
    let tc2 = corpus("real/TC2");
    let directory = tempfile::tempdir().unwrap();
    for file in fs::read_dir(tc2).unwrap() {
        let file = file.unwrap().path();
        fs::copy(&file, directory.path().join(file.file_name().unwrap())).unwrap();
    }
    let outcome = run(["describe", directory.path().to_str().unwrap()]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    for file in fs::read_dir(directory.path()).unwrap() {
        let path = file.unwrap().path();
        let Some(text) = fs::read_to_string(&path).ok().filter(|text| text.contains("class=trace_source"))
        else {
            continue;
        };
        let registers = text.split_once("[regs]").unwrap().1;
        for line in registers.lines().filter_map(|line| line.split_once('=')) {
            let value = line.1.trim().trim_start_matches("0x");
            let value = u32::from_str_radix(value, 16).unwrap();
            assert!(outcome.stdout.contains(&format!("= 0x{value:08x}")), "{line:?} of {}", path.display());
        }
    }
}

/// An unknown key's message names a known key only if that was probably meant.
#[test]
fn only_a_near_key_is_suggested() {
    let directory = tempfile::tempdir().unwrap();
    let capture = copied_example("m3-etmv3", directory.path());
    let original = fs::read_to_string(&capture).unwrap();
    for (key, suggested) in
        [("contaner", Some("container")), ("frame_begin", Some("frame_start")), ("colour", None)]
    {
        fs::write(&capture, original.replacen("[capture]", &format!("[capture]\n{key} = \"x\""), 1)).unwrap();
        let message = sentence(Path::new(&capture));
        assert!(message.contains("description_unknown_key") && message.contains(key), "{message}");
        assert_eq!(message.contains("nearest"), suggested.is_some(), "{message}");
        assert!(suggested.is_none_or(|suggested| message.contains(&format!("`{suggested}`"))), "{message}");
    }
}

/// A trace, and the registers and memory of the halted processor in another file.
#[test]
fn a_description_names_the_log_of_a_crash() {
    let directory = tempfile::tempdir().unwrap();
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/crashes/m3-divide");
    let file = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    for name in ["trace.bin", "crash.log", "capture.toml"] {
        fs::copy(files.join(name), file(name)).unwrap();
    }
    let image = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/firmware/crash/crash-m3.elf");
    let (image, log) = (["--image", image.to_str().unwrap()], file("crash.log"));
    let crash = |arguments: &[&str]| {
        let outcome = run([&["crash", "-q", "--format", "json"], arguments].concat());
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        serde_json::from_str::<serde_json::Value>(&outcome.stdout).unwrap()
    };
    let expected = crash(&[&[file("capture.toml").as_str(), "--dump", &log][..], &image].concat());
    assert_eq!(expected["cause"]["kind"], "divide_by_zero", "{expected}");
    let described = file("described.toml");
    let existing = file("capture.toml");
    let describe = [&["describe", "-q", &existing, "--dump", &log, "-o", &described][..], &image].concat();
    let outcome = run(&describe);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("--root"), "the program is elsewhere: {}", outcome.stderr);
    let root = Path::new(image[1]).parent().unwrap().to_str().unwrap();
    assert_eq!(crash(&[&described, "--root", root]), expected);
    // Describing a description keeps the key.
    let again = run(["describe", "-q", &described, "--root", root]);
    assert!(again.stdout.contains("dump = \"crash.log\"\n"), "{}{}", again.stdout, again.stderr);
    // The log is an input, which no output replaces.
    let refused = run_with_kinds(["crash", &described, "--root", root, "-o", &log]);
    assert!(refused.stderr.contains("output_is_input"), "{}", refused.stderr);
    let other = run_with_kinds([&describe[..4], &[image[1], "-o", &described], &image].concat());
    assert_eq!(other.status, 2, "a program is no log: {}", other.stderr);
}
