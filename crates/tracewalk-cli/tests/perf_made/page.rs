//! The page on Linux: each of its commands runs on a generated recording of a program that an emulator ran.

use std::collections::BTreeMap;
use std::process::Command;

use super::*;
use crate::support::example;

/// The address, the file offset and the length of each program segment (`readelf -lW`).
const SEGMENTS: [[u64; 3]; 2] = [[0x4010_0000, 0x1000, 0x2a40], [0x4011_0000, 0x4000, 0x8e8]];

/// The program is for another machine, and the test has no linker for it.
const COMPILED: [&str; 6] =
    ["--target=aarch64-none-elf", "-ffreestanding", "-c", "-Wno-everything", "-I", FIRMWARE];
const FIRMWARE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/firmware/common");

/// A folder like that of the page's reader: the recording, the traced machine's files, and the program.
fn reader_s() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let example = example("a57-etmv4");
    let process = 4211;
    // TRCCONFIGR with which the example was traced.
    let unit = Unit::etmv4(0, 0x12, [0x1041, 0x2800_0ea1, 0x4100_f403, 0x0000_0488, 0]);
    let mut recording = Recording::new(CONTEXT_ID_1, vec![unit]);
    recording.named(at(process, 1, 0), "server", false);
    for [address, offset, length] in SEGMENTS {
        recording.mapped(at(process, 1, 0), address, length, offset, "/usr/bin/server");
    }
    let trace = std::fs::read(example.join("trace.bin")).unwrap();
    recording.aux(at(process, 2, 0), 0, trace.len() as u64, 0);
    recording.buffer(at(process, 2, 0), 0, &trace);
    std::fs::write(folder.path().join("server.perf"), recording.file()).unwrap();
    std::fs::create_dir_all(folder.path().join("target-root/usr/bin")).unwrap();
    for place in ["server", "target-root/usr/bin/server"] {
        std::fs::copy(example.join("a53.elf"), folder.path().join(place)).unwrap();
    }
    std::fs::write(folder.path().join("kallsyms"), "ffffffc008000000 T _text\n").unwrap();
    let sources = FilePath::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/firmware/a53");
    std::fs::copy(sources.join("main.c"), folder.path().join("server.c")).unwrap();
    folder
}

/// The page's commands, except programs of the traced machine.
fn commands() -> Vec<Vec<String>> {
    let page = FilePath::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/linux.md");
    let page = std::fs::read_to_string(page).unwrap();
    let blocks = page.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let lines = blocks.flat_map(str::lines).filter_map(|line| line.strip_prefix("$ "));
    lines.map(|line| line.split(' ').map(str::to_owned).collect()).collect()
}

#[test]
#[ignore = "needs clang-22 and llvm-profgen-22"]
fn every_command_of_the_page_runs() {
    let folder = reader_s();
    let mut ran = BTreeMap::<String, usize>::new();
    for words in commands() {
        let [program, arguments @ ..] = words.as_slice() else { panic!("a command has a name") };
        let (name, options): (&str, &[&str]) = match program.as_str() {
            "tracewalk" => (env!("CARGO_BIN_EXE_tracewalk"), &[]),
            "llvm-profgen" => ("llvm-profgen-22", &[]),
            "clang" => ("clang-22", &COMPILED),
            // `perf record` runs on the traced machine.
            "perf" => {
                assert_eq!(arguments[0], "record");
                continue;
            }
            _ => panic!("{words:?}"),
        };
        let output =
            Command::new(name).args(options).args(arguments).current_dir(folder.path()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{words:?}: {said}");
        *ran.entry(program.clone()).or_default() += 1;
    }
    assert!(ran["tracewalk"] >= 5, "{ran:?}");
    // The compiler's input equals the counts from another capture of the same trace.
    let counts = std::fs::read_to_string(folder.path().join("server.counts")).unwrap();
    let direct = run([
        "counts",
        "--format",
        "profgen",
        example("a57-etmv4/capture.toml").to_str().unwrap(),
        "--quiet",
    ]);
    assert_eq!(counts, direct.stdout);
}
