//! Messages say which capture they are about, and nothing that is read is written.

use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::process::Stdio;

use crate::support::{Folder, corpus, example, run, tracewalk};

#[test]
fn of_several_captures_each_is_named_and_what_they_share_is_said_once() {
    let folder = Folder::new();
    let whole = fs::read(example("m3-etmv3/trace.bin")).expect("an example");
    let mut damaged = whole.clone();
    damaged[1000..1032].fill(0);
    let part = whole[..2048].to_vec();
    let names = [("one.bin", &whole), ("two.bin", &part), ("three.bin", &damaged)].map(|(name, bytes)| {
        let path = folder.0.path().join(name);
        fs::write(&path, bytes).expect("room");
        path
    });
    let image = example("m3-etmv3/m3.elf");
    let arguments = names.iter().map(|name| name.as_os_str()).chain(["--image".as_ref(), image.as_os_str()]);
    let outcome = run(["coverage".as_ref()].into_iter().chain(arguments));
    assert_eq!(outcome.status, 2, "{}", outcome.stderr);
    assert_eq!(outcome.stderr.matches("inferred").count(), 1, "{}", outcome.stderr);
    for line in outcome.stderr.lines().filter(|line| line.starts_with("warning: ")) {
        assert!(line.contains("three.bin: "), "{line}");
    }
    // A single capture needs no name.
    let outcome = run(["coverage".as_ref(), names[0].as_os_str(), "--image".as_ref(), image.as_os_str()]);
    assert!(!outcome.stderr.contains("one.bin"), "{}", outcome.stderr);
}

#[test]
fn a_capture_is_not_appended_to() {
    let folder = Folder::new();
    let path = folder.0.path().join("trace.bin");
    fs::copy(example("m3-etmv3/trace.bin"), &path).expect("room");
    let before = fs::read(&path).expect("a copy");
    let appended = fs::File::options().append(true).open(&path).expect("a copy");
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("tracewalk"));
    let status = command.args(["flow", "--image"]).arg(example("m3-etmv3/m3.elf")).arg(&path);
    let status = status.stdout(appended).stderr(Stdio::null()).status().expect("the command runs");
    assert_eq!((status.code(), fs::read(&path).expect("a copy") == before), (Some(2), true));
}

#[test]
fn help_that_cannot_be_written_is_a_failure() {
    let full = fs::File::options().write(true).open("/dev/full").expect("a device that is full");
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("tracewalk"));
    let status = command.arg("--help").stdout(full).status().expect("the command runs");
    assert_eq!(status.code(), Some(2));
}

#[test]
fn any_name_of_an_image_is_accepted() {
    let folder = Folder::new();
    let name = std::ffi::OsString::from_vec(b"m\xff3.elf".to_vec());
    let image = folder.0.path().join(name);
    fs::copy(example("m3-etmv3/m3.elf"), &image).expect("room");
    let mut command = tracewalk();
    let output = command.arg("flow").arg(example("m3-etmv3/trace.bin")).arg("--image").arg(&image);
    assert_eq!(output.output().expect("the command runs").status.code(), Some(0));
}

#[tracewalk_corpus::test]
fn each_binary_has_its_own_number_of_instructions() {
    let folder = corpus("linux/made");
    let symfs = folder.join("symfs");
    let capture = folder.join("ricsec-fib-etmv4.data");
    let words = ["--symfs".into(), symfs];
    let profile = run(["profile".into(), capture.clone(), "--format".into(), "json".into()].iter().chain(&words));
    let coverage = run(["coverage".into(), capture, "--format".into(), "json".into()].iter().chain(&words));
    let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
    let (profile, coverage) = (json(&profile.stdout), json(&coverage.stdout));
    let tables = profile["tables"].as_array().expect("tables");
    let binaries = tables.iter().find(|table| table["name"] == "binaries").expect("a table");
    let mut expected = binaries["rows"].as_array().expect("rows").iter();
    let programs = coverage["programs"].as_array().expect("programs");
    assert!(programs.len() > 1);
    for program in programs {
        let image = &program["images"][0];
        let own = expected.clone().filter(|row| row["binary"] == *image).filter_map(|row| row["self_instructions"].as_u64());
        let found = program["sources"][0]["instructions"].as_u64();
        assert_eq!(found, Some(own.sum()), "{image}");
    }
    assert!(expected.next().is_some());
    // The system loads files somewhere else each time.
    let functions = tables.iter().find(|table| table["name"] == "functions").expect("a table");
    let names = functions["rows"].as_array().expect("rows").iter().filter_map(|row| row["function"].as_str());
    assert!(names.clone().any(|name| name.starts_with("ld-2.31.so+0x")));
    assert!(!names.clone().any(|name| name.starts_with("0x0000ffff")));
}

#[test]
fn a_crash_without_its_program_says_so() {
    let log = example("../crashes/m0-null-pointer/crash.log");
    let outcome = run(["crash".as_ref(), log.as_os_str(), "--format".as_ref(), "json".as_ref()]);
    assert!(outcome.stdout.contains(r#""kind":"no_program""#), "{} {}", outcome.stdout, outcome.stderr);
}
