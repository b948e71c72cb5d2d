//! Recordings of a logic analyser as captures.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::support::{Outcome, assert_same_runs, comparable, corpus, example, mentions, run, run_with_kinds};

/// The pins' levels, each with its duration in nanoseconds.
type Levels = Vec<(u64, u64)>;

/// SWO as a UART of 2 Mbaud.
fn uart(bytes: &[u8]) -> Levels {
    let bits = |byte: &u8| {
        let byte = *byte;
        std::iter::once(0).chain((0..8).map(move |bit| u64::from(byte >> bit & 1))).chain([1])
    };
    let bits = bytes.iter().flat_map(bits).map(|level| (level, 500));
    [(1, 10_000)].into_iter().chain(bits).chain([(1, 10_000)]).collect()
}

/// A trace port with a clock (bit 0) and four pins of data.
fn port(bytes: &[u8]) -> Levels {
    let mut clock = 0;
    let parts = bytes.iter().flat_map(|byte| [byte & 15, byte >> 4]).flat_map(|part| {
        let data = u64::from(part) << 1;
        clock ^= 1;
        [(data | clock ^ 1, 10), (data | clock, 10)]
    });
    parts.chain([(0, 1000)]).collect()
}

/// A value change dump of these pins.
fn dump(names: &[&str], levels: &[(u64, u64)]) -> String {
    let mut text = String::from("$timescale 1 ns $end\n$scope module test $end\n");
    let codes = || names.iter().zip(b'!'..).map(|(name, code)| (name, char::from(code)));
    for (name, code) in codes() {
        writeln!(text, "$var wire 1 {code} {name} $end").unwrap();
    }
    text += "$upscope $end\n$enddefinitions $end\n";
    let mut at = 0;
    for (level, time) in levels {
        write!(text, "#{at}").unwrap();
        for (index, (_, code)) in codes().enumerate() {
            write!(text, " {}{code}", level >> index & 1).unwrap();
        }
        text.push('\n');
        at += time;
    }
    writeln!(text, "#{at}").unwrap();
    text
}

fn write(directory: &Path, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn flow(capture: &Path, options: &[&str]) -> Outcome {
    let image = example("m3-etmv3/m3.elf");
    let arguments =
        ["flow", capture.to_str().unwrap(), "--image", image.to_str().unwrap(), "--format", "runs"];
    run_with_kinds(arguments.into_iter().chain(options.iter().copied()))
}

#[tracewalk_corpus::test]
fn a_sigrok_session_of_hardware_is_decoded_as_the_bytes_that_were_made_of_it() {
    let session = corpus("real/stm32f105/trace_example.sr");
    let image = session.with_file_name("trace_example.elf");
    let outcome = |capture: &Path, format: &str| {
        let paths = [capture.to_str().unwrap(), "--image", image.to_str().unwrap()];
        run(["flow", paths[0], paths[1], paths[2], "--format", format])
    };
    let runs = outcome(&session, "runs");
    assert_eq!(runs.status, 0, "{}", runs.stderr);
    let expected = std::fs::read_to_string(session.with_file_name("runs-02.txt")).unwrap();
    assert_same_runs(&comparable(&runs.stdout), &comparable(&expected));
    let bytes = session.with_file_name("swo.bin");
    // The offsets in the JSON lines count the decoded bytes.
    assert_eq!(outcome(&session, "jsonl").stdout, outcome(&bytes, "jsonl").stdout);
    assert!(runs.stderr.contains("inferred: --wire uart --wire baud=80"), "{}", runs.stderr);
    // The channel's name shows its signal, so no option is needed.
    assert!(!runs.stderr.contains("--channel"), "{}", runs.stderr);
}

#[test]
fn swo_and_trace_ports_give_what_the_bytes_give() {
    let directory = tempfile::tempdir().unwrap();
    let trace = std::fs::read(example("m3-etmv3/trace.bin")).unwrap();
    let expected = std::fs::read_to_string(example("m3-etmv3/runs.txt")).unwrap();
    let swo = write(directory.path(), "swo.vcd", dump(&["SWO"], &uart(&trace)));
    let framed = [&[0xff, 0xff, 0xff, 0x7f][..], &trace].concat();
    let pins = ["TRACECLK", "TRACED0", "TRACED1", "TRACED2", "TRACED3"];
    let parallel = write(directory.path(), "port.vcd", dump(&pins, &port(&framed)));
    for capture in [swo, parallel] {
        let outcome = flow(&capture, &[]);
        assert_eq!((outcome.status, &outcome.stdout), (0, &expected), "{}", outcome.stderr);
    }
}

#[test]
fn an_inverted_swo_is_read_and_said() {
    let directory = tempfile::tempdir().unwrap();
    let trace = std::fs::read(example("m3-etmv3/trace.bin")).unwrap();
    let expected = std::fs::read_to_string(example("m3-etmv3/runs.txt")).unwrap();
    let inverted = uart(&trace).into_iter().map(|(level, time)| (level ^ 1, time)).collect::<Vec<_>>();
    let capture = write(directory.path(), "swo.vcd", dump(&["SWO"], &inverted));
    let found = flow(&capture, &[]);
    assert_eq!((found.status, &found.stdout), (0, &expected), "{}", found.stderr);
    assert!(mentions(&found.stderr, "--wire invert"), "{}", found.stderr);
    let said = flow(&capture, &["--wire", "invert"]);
    assert_eq!((said.status, &said.stdout), (0, &expected), "{}", said.stderr);
    assert!(!mentions(&said.stderr, "invert"), "{}", said.stderr);
    let strict = flow(&capture, &["--strict", "--wire", "uart,baud=2000000"]);
    assert!(strict.status == 2 && mentions(&strict.stderr, "--wire invert"), "{}", strict.stderr);
    let toml = "[capture]\nfile = \"swo.vcd\"\ninvert = true\n";
    let described = flow(&write(directory.path(), "capture.toml", toml), &[]);
    assert_eq!((described.status, &described.stdout), (0, &expected), "{}", described.stderr);
    let written = run(["describe", capture.to_str().unwrap()]).stdout;
    assert!(written.contains("invert = true\n"), "{written}");
}

#[test]
fn bare_samples_are_read_with_their_rate() {
    let directory = tempfile::tempdir().unwrap();
    let trace = std::fs::read(example("m3-etmv3/trace.bin")).unwrap();
    let expected = std::fs::read_to_string(example("m3-etmv3/runs.txt")).unwrap();
    // 16 MHz; the line is channel 4.
    let sample = |(level, time): (u64, u64)| {
        vec![u8::try_from(level << 4).unwrap(); usize::try_from(time * 2 / 125).unwrap()]
    };
    let samples = uart(&trace).into_iter().flat_map(sample).collect::<Vec<_>>();
    let capture = write(directory.path(), "samples.bin", samples);
    for options in [&["--wire", "rate=16MHz"][..], &["--channel", "4=swo", "--wire", "uart,rate=16MHz"]] {
        let outcome = flow(&capture, options);
        assert_eq!((outcome.status, &outcome.stdout), (0, &expected), "{options:?}: {}", outcome.stderr);
    }
    let toml = "[capture]\nfile = \"samples.bin\"\nrate = 16_000_000\nchannels = { 4 = \"swo\" }\n";
    let described = flow(&write(directory.path(), "capture.toml", toml), &[]);
    assert_eq!((described.status, &described.stdout), (0, &expected), "{}", described.stderr);
    let description = run(["describe", capture.to_str().unwrap(), "--wire", "rate=16MHz"]).stdout;
    let again = flow(&write(directory.path(), "again.toml", description), &[]);
    assert_eq!((again.status, &again.stdout), (0, &expected), "{}", again.stderr);
}

#[test]
fn options_and_descriptions_say_what_the_names_do_not() {
    let directory = tempfile::tempdir().unwrap();
    let trace = std::fs::read(example("m3-etmv3/trace.bin")).unwrap();
    let expected = std::fs::read_to_string(example("m3-etmv3/runs.txt")).unwrap();
    // The same signal on both pins is ambiguous.
    let both = uart(&trace).into_iter().map(|(level, time)| (level * 3, time)).collect::<Vec<_>>();
    let capture = write(directory.path(), "swo.vcd", dump(&["PB3", "PB4"], &both));
    let outcome = flow(&capture, &[]);
    assert_eq!(outcome.status, 2);
    assert!(mentions(&outcome.stderr, "PB3 PB4 --channel NAME=swo"), "{}", outcome.stderr);
    let options = ["--wire", "uart,baud=2000000", "--channel", "PB4=swo"];
    let outcome = flow(&capture, &options);
    assert_eq!((outcome.status, &outcome.stdout), (0, &expected), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("--wire"), "{}", outcome.stderr);
    let description = write(
        directory.path(),
        "capture.toml",
        "[capture]\nfile = \"swo.vcd\"\nwire = \"uart\"\nchannels = { PB3 = \"swo\" }\n",
    );
    let outcome = flow(&description, &[]);
    assert_eq!((outcome.status, &outcome.stdout), (0, &expected), "{}", outcome.stderr);
}

#[test]
fn errors_on_the_wires_are_reported_and_the_rest_is_decoded() {
    let directory = tempfile::tempdir().unwrap();
    let trace = std::fs::read(example("m3-etmv3/trace.bin")).unwrap();
    let mut levels = uart(&trace);
    // Most of the stop bit of byte 1000, after the rest at the beginning.
    let stop = 1 + 1000 * 10 + 9;
    levels.splice(stop..=stop, [(0, 375), (1, 125)]);
    let capture = write(directory.path(), "swo.vcd", dump(&["SWO"], &levels));
    let outcome = flow(&capture, &[]);
    assert_eq!(outcome.status, 2);
    assert!(mentions(&outcome.stderr, "swo.vcd 1 1000 0.005010"), "{}", outcome.stderr);
    assert!(outcome.stdout.lines().count() > 1000);
}

#[test]
fn info_says_how_a_recording_was_read() {
    let directory = tempfile::tempdir().unwrap();
    let trace = std::fs::read(example("m3-etmv3/trace.bin")).unwrap();
    let capture = write(directory.path(), "swo.vcd", dump(&["SWO"], &uart(&trace)));
    let outcome = run(["info", capture.to_str().unwrap()]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    for expected in
        ["uart SWO=swo", "bit rate      2000000 a second", "bytes from 0.000010 s to ", "wire errors   0"]
    {
        assert!(mentions(&outcome.stdout, expected), "{expected}: {}", outcome.stdout);
    }
}

#[test]
fn recordings_that_cannot_be_read_are_refused_in_one_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let quiet = dump(&["SWO"], &[(1, 1000)]);
    let cases: [(&str, &[u8], &[&str], &str); 7] = [
        ("cut.sr", b"PK\x03\x04\x14\0\0\0", &[], "recording_zip"),
        ("a.vcd", b"$timescale 1 ns $end\n$enddefinitions $end\n", &[], "recording_no_channels a.vcd"),
        ("b.vcd", b"$timescale 7 ns $end\n", &[], "b.vcd:1 1 $timescale 7ns"),
        ("c.csv", b"Time [s],SWO\n0.5,1\n0.4,0\n", &[], "c.csv:3"),
        ("quiet.vcd", quiet.as_bytes(), &[], "recording_no_signal `SWO`"),
        ("quiet.vcd", quiet.as_bytes(), &["--wire", "port"], "recording_no_channel clk SWO"),
        ("quiet.vcd", quiet.as_bytes(), &["--channel", "SW0=swo"], "write --channel SWO=…"),
    ];
    for (name, bytes, options, message) in cases {
        let outcome = flow(&write(directory.path(), name, bytes), options);
        assert_eq!((outcome.status, outcome.stdout.as_str()), (2, ""), "{}", outcome.stderr);
        assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
        assert!(mentions(&outcome.stderr, message), "expected {message:?} in {:?}", outcome.stderr);
    }
    let trace = example("m3-etmv3/trace.bin");
    let outcome = flow(&trace, &["--wire", "baud=1000000"]);
    assert_eq!(outcome.status, 2);
    assert!(outcome.stderr.contains("leave out --wire and --channel"), "{}", outcome.stderr);
    for options in [["--wire", "uard"], ["--channel", "PB3"], ["--channel", "PB3=sw"], ["--wire", "baud=0"]] {
        let outcome = flow(&trace, &options);
        assert_eq!((outcome.status, outcome.stdout.as_str()), (2, ""));
        assert!(outcome.stderr.contains(options[0]), "{}", outcome.stderr);
    }
}

#[test]
fn strict_requires_the_options_for_reading_a_recording() {
    let directory = tempfile::tempdir().unwrap();
    let trace = std::fs::read(example("m3-etmv3/trace.bin")).unwrap();
    let expected = std::fs::read_to_string(example("m3-etmv3/runs.txt")).unwrap();
    let capture = write(directory.path(), "swo.vcd", dump(&["PB3"], &uart(&trace)));
    let all = [
        "--strict",
        "--container",
        "frames",
        "--source",
        "0x10=etmv3,cpu=cortex-m3",
        "--id",
        "0x10",
        "--wire",
        "uart",
        "--wire",
        "baud=2000000",
        "--channel",
        "PB3=swo",
    ];
    let needs =
        [(7, "give --wire WIRE,baud=BITS"), (9, "give --wire baud=BITS"), (11, "give --channel NAME=ROLE")];
    for (said, needed) in needs {
        let outcome = flow(&capture, &all[..said]);
        assert_eq!((outcome.status, outcome.stdout.as_str()), (2, ""));
        assert!(outcome.stderr.contains(needed), "{}", outcome.stderr);
    }
    let outcome = flow(&capture, &all);
    assert_eq!((outcome.status, &outcome.stdout), (0, &expected), "{}", outcome.stderr);
    assert_eq!(outcome.stderr, "");
}

/// A recording with SWO on PB3, its complement on PB4, a clock on PA5 and a pin that does nothing.
fn four_channels(names: &[&str; 4], bytes: &[u8]) -> String {
    let parts = uart(bytes).into_iter().flat_map(|(level, time)| (0..time / 100).map(move |_| level));
    let levels = parts.zip(0..).map(|(level, at)| (level | (1 - level) << 1 | (at & 1) << 2 | 8, 100));
    dump(names, &levels.collect::<Vec<_>>())
}

#[test]
fn a_wrong_channel_is_reported_with_what_was_seen_on_each() {
    let directory = tempfile::tempdir().unwrap();
    let trace = std::fs::read(example("m3-etmv3/trace.bin")).unwrap();
    let names = ["PB3", "PB4", "PA5", "NRST"];
    let capture = write(directory.path(), "four.vcd", four_channels(&names, &trace[..1000]));
    let seen = ["PB3 uart 2000000 0 1000", "PB4 uart 2000000 0 1000", "PA5", "NRST stays high"];
    let wrong: [(&[&str], &str); 4] = [
        (&["--channel", "NRST=swo"], "recording_no_signal `NRST`"),
        (&["--channel", "PB3=swo", "--wire", "uart,invert"], "wire_errors"),
        (&["--channel", "NRST=clk", "--channel", "PB3=d0"], "recording_no_signal `NRST`"),
        (&["--channel", "PA5=clk", "--channel", "PB3=d0"], "nothing_recognised"),
    ];
    for (options, reported) in wrong {
        let outcome = flow(&capture, options);
        assert_eq!(outcome.status, 2, "{options:?}: {}", outcome.stderr);
        let line = outcome.stderr.lines().find(|line| mentions(line, reported));
        let line = line.unwrap_or_else(|| panic!("{options:?}: {}", outcome.stderr));
        for seen in seen {
            assert!(mentions(line, seen), "{options:?}: {seen} in {line}");
        }
    }
    // An unknown channel name is reported with the existing names.
    let outcome = flow(&capture, &["--channel", "SWDIO=swo"]);
    assert!(mentions(&outcome.stderr, "SWDIO"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("PB3, PB4, PA5, NRST"), "{}", outcome.stderr);
    // A complement is recognised as such, and not taken for another channel with data.
    let outcome = flow(&capture, &["--channel", "PB4=swo"]);
    assert!(mentions(&outcome.stderr, "invert"), "{}", outcome.stderr);
    assert_eq!(outcome.stdout.lines().nth(1), Some("S 10"), "{}", outcome.stderr);
    let outcome = flow(&capture, &[]);
    assert!(
        mentions(&outcome.stderr, "PB3=swo") && !mentions(&outcome.stderr, "invert"),
        "{}",
        outcome.stderr
    );
    // A right option needs no report.
    let outcome = flow(&capture, &["--channel", "PB3=swo"]);
    assert!(!outcome.stderr.contains("seen: "), "{}", outcome.stderr);
    assert_eq!(outcome.stdout.lines().nth(1), Some("S 10"), "{}", outcome.stderr);
}

#[test]
fn options_for_other_wires_and_for_buffers_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let trace = std::fs::read(example("m3-etmv3/trace.bin")).unwrap();
    let names = ["TRACECLK", "TRACED0", "TRACED1", "TRACED2", "TRACED3"];
    let capture = write(directory.path(), "port.vcd", dump(&names, &port(&trace)));
    let cases: [(&[&str], &str); 3] = [
        (&["--wire", "baud=1000000"], "--wire baud= SWO"),
        (&["--container", "read-pointer=16"], "--container read-pointer"),
        (&["--container", "swap-words"], "--container swap-words"),
    ];
    for (options, reported) in cases {
        let outcome = flow(&capture, options);
        assert_eq!((outcome.status, outcome.stdout.as_str()), (2, ""), "{}", outcome.stderr);
        assert!(mentions(&outcome.stderr, reported), "{}", outcome.stderr);
    }
}
