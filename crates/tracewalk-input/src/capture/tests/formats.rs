//! Every kind of file is recognised by its registry, and by nothing else.

use super::*;
use crate::capture::format::{Format, Given, Holds};
use crate::capture::formats::FORMATS;

/// A sample file of each format, by the format's name. A new format needs a sample here.
fn samples() -> (TemporaryDirectory, Vec<(&'static str, PathBuf)>) {
    let directory = TemporaryDirectory::new();
    directory.write("toml/trace.bin", b"trace");
    directory.write("toml/capture.toml", b"[capture]\nfile = \"trace.bin\"\n");
    directory.write("ini/trace.bin", b"trace");
    directory.write("ini/trace.ini", b"[trace_buffers]\nbuffers=a\n[a]\nname=a\nfile=trace.bin\n");
    let list = directory.write("ini/snapshot.ini", b"[trace]\nmetadata=trace.ini\n");
    let path = |name: &str| directory.path().join(name);
    let block = |place: u8| [&[0x55; 504][..], &[0, 0, 0, 0, 126, place << 4, 0xfe - place, 0x0f]].concat();
    let dstream = [block(0), block(1)].concat();
    std::fs::create_dir(path("empty")).expect("a new directory");
    let samples = vec![
        ("a snapshot", list),
        ("a snapshot", path("ini")),
        ("a capture.toml", path("toml/capture.toml")),
        ("a capture.toml", path("toml")),
        ("a trace of the CMSIS-Toolbox", directory.write("cmsis/a+b.ctrace-run.yml", b"ctrace-run:\n")),
        ("a trace of the CMSIS-Toolbox", path("cmsis")),
        ("a directory", path("empty")),
        ("a recording", directory.write("swo.csv", b"SWO\n1\n0\n")),
        ("a recording", directory.write("table", b"SWO,CLK\n1,0\n0,0\n")),
        ("a recording", directory.write("dump", b"$timescale 1 us $end")),
        ("a recording", directory.write("session", b"PK\x03\x04")),
        ("an ELF file", directory.write("app", b"\x7fELF\x01\x01\x01\0")),
        ("a perf.data file", directory.write("perf.data", b"PERFILE2\x68\0\0\0\0\0\0\0")),
        ("a perf.data file", directory.write("other_order", b"2ELIFREP\0\0\0\0\0\0\0\x68")),
        ("a perf.data file", directory.write("branches", b"simpleperf:EtmBranchList\x01\0\0\0\0")),
        ("a DSTREAM unit's blocks", directory.write("DSTREAM_0.bin", &dstream)),
        ("text", directory.write("notes", b"Just some notes.\n")),
        ("trace bytes", directory.write("trace.bin", &[0, 0, 0, 0, 0, 0x80, 0x08])),
        ("trace bytes", directory.write("short.bin", &[0x84, 0x88])),
        ("trace bytes", path("absent")),
    ];
    (directory, samples)
}

#[test]
fn each_format_is_known_by_its_samples() {
    let (_directory, samples) = samples();
    for (name, path) in &samples {
        assert_eq!(Capture::format(path).name, *name, "{}", path.display());
    }
    let has_sample = |format: &&Format| samples.iter().any(|(name, _)| *name == format.name);
    assert_eq!(FORMATS.iter().filter(has_sample).count(), FORMATS.len());
    let names = FORMATS.iter().map(|format| format.name).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(names.len(), FORMATS.len());
}

#[test]
fn only_the_last_format_knows_every_file_and_arrives_piece_by_piece() {
    let anything = Given::starting(&[0xff, 0]);
    let knowing = FORMATS.iter().filter(|format| (format.sniff)(&anything));
    assert_eq!(knowing.map(|format| format.name).collect::<Vec<_>>(), ["trace bytes"]);
    let streaming = FORMATS.iter().filter(|format| format.streams);
    assert_eq!(streaming.map(|format| format.holds).collect::<Vec<_>>(), [Holds::Trace]);
}

#[test]
fn descriptions_name_the_files_that_opening_them_reads() {
    let (directory, _samples) = samples();
    let path = |name: &str| directory.path().join(name);
    let named = |name: &str| {
        let files = files(&path(name), &[]);
        files
            .iter()
            .map(|file| file.strip_prefix(directory.path()).expect("inside").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(named("toml"), ["toml", "toml/capture.toml", "toml/trace.bin"].map(Into::<PathBuf>::into));
    let snapshot = ["ini", "ini/snapshot.ini", "ini/trace.ini", "ini/trace.bin"];
    assert_eq!(named("ini"), snapshot.map(Into::<PathBuf>::into));
    assert_eq!(named("empty"), ["empty"].map(Into::<PathBuf>::into));
}
