//! The server of `gdb` over TCP: accepted and refused connections, and input that is no packet.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use crate::support::{example, run_with_kinds};

/// A server that runs until this is dropped.
pub(crate) struct Server {
    process: Child,
    messages: BufReader<ChildStderr>,
    pub(super) address: SocketAddr,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    fn start() -> Self {
        Self::of([example("m0-crash-mtb/capture.toml")])
    }

    /// A server of a capture, with the options of `gdb`. It has no cache, so that tests do not depend on each other.
    pub(crate) fn of<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Self {
        Self::with(&["--cache", "none"], arguments).0
    }

    /// A server with these options, and the kinds of the messages before it accepts connections.
    pub(super) fn with<A: AsRef<OsStr>>(
        options: &[&str],
        arguments: impl IntoIterator<Item = A>,
    ) -> (Self, Vec<String>) {
        let mut process = Command::new(assert_cmd::cargo::cargo_bin!("tracewalk"))
            .args(["--messages", "json", "gdb", "--listen", "127.0.0.1:0"])
            .args(options)
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let messages = BufReader::new(process.stderr.take().unwrap());
        let mut server = Self { process, messages, address: SocketAddr::from(([127, 0, 0, 1], 0)) };
        let mut kinds = Vec::new();
        let text = server.noting("listening", &mut kinds);
        server.address = text.rsplit(' ').next().unwrap().parse().unwrap();
        (server, kinds)
    }

    /// Waits for a message of this kind.
    fn until(&mut self, kind: &str) -> String {
        self.noting(kind, &mut Vec::new())
    }

    /// Waits for a message of this kind, and notes the kinds of the messages before it.
    fn noting(&mut self, kind: &str, before: &mut Vec<String>) -> String {
        loop {
            let mut line = String::new();
            assert!(self.messages.read_line(&mut line).unwrap() > 0, "the server ended before {kind}");
            let message: serde_json::Value = serde_json::from_str(&line).unwrap();
            if message["kind"] == kind {
                return message["message"].as_str().unwrap().to_owned();
            }
            before.push(message["kind"].as_str().unwrap().to_owned());
        }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }
}

/// The contents of a packet's answer.
pub(super) fn ask(stream: &mut TcpStream, contents: &str) -> String {
    let sum = contents.bytes().fold(0_u8, u8::wrapping_add);
    // In one write: pieces of a packet would wait for one another.
    stream.write_all(format!("${contents}#{sum:02x}").as_bytes()).unwrap();
    answer(stream)
}

/// What a `monitor` command prints.
pub(crate) fn monitor(stream: &mut TcpStream, command: &str) -> String {
    let hexadecimal = command.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    let (mut text, mut packet) = (Vec::new(), ask(stream, &format!("qRcmd,{hexadecimal}")));
    while packet != "OK" {
        let digits = packet.strip_prefix('O').expect("text for the console");
        text.extend((0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()));
        packet = answer(stream);
    }
    String::from_utf8(text).unwrap()
}

/// The next packet.
fn answer(stream: &mut TcpStream) -> String {
    let (mut answer, mut byte) = (Vec::new(), [0]);
    while byte != *b"#" {
        stream.read_exact(&mut byte).unwrap();
        answer.push(byte[0]);
    }
    stream.read_exact(&mut [0; 2]).unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (_, answer) = answer.split_once('$').unwrap();
    answer.trim_end_matches('#').to_owned()
}

#[test]
fn a_second_debugger_is_sent_away_and_the_first_one_goes_on() {
    let mut server = Server::start();
    let mut first = server.connect();
    assert_eq!(ask(&mut first, "?"), "T05thread:1;");
    let mut second = server.connect();
    server.until("refused");
    assert_eq!(second.read(&mut [0]).unwrap(), 0);
    assert_eq!(ask(&mut first, "bs"), "T05thread:1;");
    assert_eq!(ask(&mut first, "D"), "OK");
    server.until("left");
    // The next debugger continues from the first one's place.
    assert!(ask(&mut server.connect(), "g").starts_with("xxxxxxxx"));
}

#[test]
fn a_debugger_that_vanishes_leaves_the_server_to_the_next_one() {
    let mut server = Server::start();
    drop(server.connect());
    server.until("vanished");
    let mut stream = server.connect();
    write!(stream, "$m0,").unwrap();
    drop(stream);
    server.until("vanished");
    assert_eq!(ask(&mut server.connect(), "qC"), "QC1");
}

#[test]
fn a_debugger_that_vanishes_while_the_program_runs_leaves_the_place_to_the_next_one() {
    let mut server = Server::start();
    let mut first = server.connect();
    assert_eq!(ask(&mut first, "Z0,7ffffffe,2"), "OK");
    // The debugger leaves before it reads the answer, or before there is one.
    first.write_all(b"$bc#c5").unwrap();
    drop(first);
    server.until("vanished");
    let mut second = server.connect();
    // Each debugger has its own breakpoints: the first one's are gone, so the program runs to the end.
    assert_eq!(ask(&mut second, "bc"), "T05thread:1;replaylog:begin;");
    assert_eq!(ask(&mut second, "c"), "T05thread:1;replaylog:end;");
    // An interrupt while nothing runs has no answer.
    second.write_all(b"\x03").unwrap();
    assert_eq!(ask(&mut second, "qC"), "QC1");
}

#[test]
fn what_is_no_packet_and_what_is_no_command_is_answered_and_survived() {
    let server = Server::start();
    let mut stream = server.connect();
    let mut noise = 1_u64;
    let garbage = (0..100_000).map(|_| {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // Replaces bytes that end a packet: each would be answered.
        [noise.to_le_bytes()[7]].map(|byte| if byte == b'#' || byte == 3 || byte == b'-' { 0 } else { byte })
            [0]
    });
    stream.write_all(&garbage.collect::<Vec<_>>()).unwrap();
    // Ends the packet that began in the noise.
    stream.write_all(b"#00").unwrap();
    let mut answer = [0];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer, *b"-");
    let refused = ["g1", "p", "pffffffffffffffff", "P1=", "m", "m0", "mffffffffffffffff,ffffffffffffffff"];
    let strange =
        ["H", "Hx1", "T", "Tffffffff", "Z", "Z0", "Z9,0,0", "z0,,", "vCont;", "vCont;r", "vCont;x:1", ""];
    let queries = ["q", "qRcmd,zz", "qXfer:features:read:target.xml:", "qThreadExtraInfo,9", "b", "bx", "!"];
    for contents in refused.into_iter().chain(strange).chain(queries) {
        let answer = ask(&mut stream, contents);
        // GDB prints the sentence of a refusal with its escapes.
        assert!(!answer.contains('}'), "{contents}: {answer}");
    }
    assert_eq!(ask(&mut stream, "qXfer:features:read:target.xml:ffffffffffffffff,10"), "l");
    assert_eq!(ask(&mut stream, "qC"), "QC1");
}

/// Doubtful instructions have steps, too, as in the index.
#[test]
fn a_capture_with_damage_is_walked_through_from_end_to_end() {
    let folder = tempfile::tempdir().unwrap();
    let capture = crate::support::copied_example("m3-etmv3", folder.path());
    let trace = folder.path().join("trace.bin");
    let mut bytes = std::fs::read(&trace).unwrap();
    bytes.drain(2000..2160);
    bytes[4000] ^= 0x10;
    std::fs::write(&trace, bytes).unwrap();
    let server = Server::of([&capture]);
    let mut stream = server.connect();
    assert_eq!(ask(&mut stream, "bc"), "T05thread:1;replaylog:begin;");
    let (mut forward, mut backward) = (0, 0);
    while ask(&mut stream, "s") == "T05thread:1;" {
        forward += 1;
    }
    while ask(&mut stream, "bs") == "T05thread:1;" {
        backward += 1;
    }
    assert_eq!(forward, backward);
    assert!(forward > 10_000, "{forward}");
}

#[test]
fn an_address_in_use_and_a_step_that_does_not_exist_are_said_before_anybody_waits() {
    let server = Server::start();
    let capture = example("m0-crash-mtb/capture.toml");
    let capture = capture.to_str().unwrap();
    let outcome =
        run_with_kinds(["gdb", capture, "--cache", "none", "--listen", &server.address.to_string()]);
    assert_eq!(outcome.status, 2);
    assert!(outcome.stderr.contains("error: listen: "), "{}", outcome.stderr);
    let outcome = run_with_kinds(["gdb", capture, "--listen", "-", "--cache", "none", "--at", "100000"]);
    assert_eq!(outcome.status, 2);
    assert!(outcome.stderr.contains("error: no_step: "), "{}", outcome.stderr);
}
