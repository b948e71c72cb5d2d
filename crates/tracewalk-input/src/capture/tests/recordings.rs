//! Captures that are recordings of a logic analyser.

use tracewalk::span::CaptureOffset;

use super::*;
use crate::capture::wire::Wire;

/// A value change dump in microseconds, with one channel that sends these bytes as a UART at 4 µs a bit.
fn dump(channel: &str, bytes: &[u8]) -> Vec<u8> {
    let mut text = format!("$timescale 1 us $end $var wire 1 ! {channel} $end $enddefinitions $end\n#0 1!\n");
    let mut at = 100;
    for byte in bytes {
        let bits = (0..8).map(|bit| byte >> bit & 1);
        for level in std::iter::once(0).chain(bits).chain([1]) {
            text += &format!("#{at} {level}!\n");
            at += 4;
        }
    }
    text += &format!("#{}\n", at + 100);
    text.into_bytes()
}

#[test]
fn a_recording_is_a_capture_of_the_bytes_on_its_wires() {
    let directory = TemporaryDirectory::new();
    let path = directory.write("swo.vcd", &dump("SWO", b"hello"));
    let capture = Capture::open(&path).unwrap();
    let [buffer] = capture.buffers.as_slice() else { panic!("one buffer") };
    assert_eq!((&*buffer.bytes, &buffer.container, buffer.name.as_str()), (&b"hello"[..], &None, "swo.vcd"));
    assert_eq!(buffer.file_offset(CaptureOffset(3)), 3);
    let reading = buffer.wires.as_ref().unwrap();
    assert_eq!(reading.bits_per_second().map(f64::round), Some(250_000.0));
    assert_eq!(reading.times.at(1).and_then(|at| reading.seconds(at)), Some(140e-6));
}

#[test]
fn a_recording_may_come_as_a_stream() {
    let capture = Capture::read_from("-".as_ref(), dump("SWO", b"hello").as_slice(), &WireOptions::default());
    assert_eq!(&*capture.unwrap().buffers[0].bytes, b"hello");
}

#[test]
fn a_description_says_how_a_recording_is_read_and_is_written_so() {
    let directory = TemporaryDirectory::new();
    directory.write("swo.vcd", &dump("PB3", b"hello"));
    let text =
        "[capture]\nfile = \"swo.vcd\"\nwire = \"uart\"\nbaud = 250_000\nchannels = { PB3 = \"swo\" }\n";
    let path = directory.write("capture.toml", text.as_bytes());
    let capture = Capture::open(&path).unwrap();
    assert_eq!(&*capture.buffers[0].bytes, b"hello");
    let written = capture.to_toml(directory.path()).unwrap().text;
    assert!(written.contains("wire = \"uart\"\nchannels = { \"PB3\" = \"swo\" }\n"), "{written}");
    directory.write("capture.toml", written.as_bytes());
    let again = Capture::open(&path).unwrap();
    assert_eq!(again.buffers[0].bytes[..], capture.buffers[0].bytes[..]);
    let channels =
        |capture: &Capture| capture.buffers[0].wires.as_ref().map(|reading| reading.channels.clone());
    assert_eq!(channels(&again), channels(&capture));
}

#[test]
fn options_stand_above_the_description_and_are_for_recordings_only() {
    let directory = TemporaryDirectory::new();
    directory.write("swo.vcd", &dump("PB3", b"hello"));
    let bytes = directory.write("trace.bin", b"\0\0\0\0\0\x80");
    let path = directory.write("capture.toml", b"[capture]\nfile = \"swo.vcd\"\nwire = \"port\"\n");
    let error = Capture::open(&path).unwrap_err().to_string();
    assert!(error.ends_with("swo.vcd: the channel for clk is unknown, expected one of PB3"), "{error}");
    let uart = WireOptions { wire: Some(Wire::Uart), ..WireOptions::default() };
    assert_eq!(&*Capture::open_with(&path, &uart, &[]).unwrap().buffers[0].bytes, b"hello");
    let error = Capture::open_with(&bytes, &uart, &[]).unwrap_err();
    let expected = "is not a recording of a logic analyser, but options for such recordings were given";
    assert!(error.to_string().ends_with(expected), "{error}");
    let path = directory.write("capture.toml", b"[capture]\nfile = \"trace.bin\"\nbaud = 1000\n");
    assert!(Capture::open(&path).unwrap_err().to_string().ends_with(expected));
}

#[test]
fn mistakes_about_a_recording_are_reported_with_their_line() {
    let directory = TemporaryDirectory::new();
    directory.write("swo.vcd", &dump("PB3", b"hello"));
    let cases = [
        ("wire = \"uard\"", "3: unknown wire `uard`, the nearest known one is `uart`"),
        ("wire = 1", "3: expected a string for `wire`, found a number"),
        ("baud = 0", "3: expected bits a second for `baud`, found 0"),
        ("channels = { PB3 = \"swo1\" }", "3: expected swo, clk or d0 to d15 for `channel`, found `swo1`"),
        ("chanels = {}", "3: unknown key `chanels` in [capture], the nearest known one is `channels`"),
    ];
    for (line, expected) in cases {
        let text = format!("[capture]\nfile = \"swo.vcd\"\n{line}\n");
        let path = directory.write("capture.toml", text.as_bytes());
        let error = Capture::open(&path).unwrap_err().to_string();
        assert!(error.ends_with(expected), "{error}");
    }
    let path = directory.write("capture.toml", b"[capture]\nfile = \"none.vcd\"\n");
    let error = Capture::open(&path).unwrap_err().to_string();
    assert!(error.contains("capture.toml:2: the file ") && error.ends_with("no such file"), "{error}");
}
