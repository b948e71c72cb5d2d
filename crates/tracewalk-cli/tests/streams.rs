//! Captures that arrive over time: the output equals that for a file with the same bytes, and appears as they arrive.
#![cfg(unix)]

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use crate::support::{MESSAGES, Outcome, corpus, example, mentions, run, run_with_kinds, with_kinds};

/// A command that runs while the test does something. If it takes too long, it is killed and the test fails,
/// instead of waiting forever.
struct Running {
    child: Child,
    ended: Arc<AtomicBool>,
    /// The command's lines, read as they are printed, so that the command never waits for a reader.
    lines: Receiver<String>,
    seen: String,
}

impl Running {
    fn start(arguments: &[String]) -> Self {
        let mut child = Command::new(assert_cmd::cargo::cargo_bin!("tracewalk"))
            .args(arguments)
            .args(MESSAGES)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command runs");
        let mut stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            let mut line = Vec::new();
            while stdout.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
                let line = String::from_utf8(std::mem::take(&mut line)).expect("the output is text");
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let (ended, id) = (Arc::new(AtomicBool::new(false)), child.id());
        let has_ended = Arc::clone(&ended);
        thread::spawn(move || {
            // A command that hangs is killed. The time suffices even on a loaded machine.
            for _ in 0..6000 {
                thread::sleep(Duration::from_millis(100));
                if has_ended.load(Ordering::Relaxed) {
                    return;
                }
            }
            send_signal(id, "-KILL");
        });
        Self { child, ended, lines, seen: String::new() }
    }

    fn input(&mut self) -> ChildStdin {
        self.child.stdin.take().expect("it is piped, and taken once")
    }

    /// Waits for a line with this start.
    fn wait_for(&mut self, start: &str) {
        for line in &self.lines {
            self.seen += &line;
            if line.starts_with(start) {
                return;
            }
        }
        panic!("no line started with {start:?}:\n{}", self.seen);
    }

    /// Waits until a signal would end the stream. By then the stream is open.
    #[cfg(target_os = "linux")]
    fn wait_until_it_listens(&self) {
        const INTERRUPT: u64 = 1 << 1;
        let caught = || {
            let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
            let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?.trim();
            u64::from_str_radix(mask, 16).ok()
        };
        while caught().expect("it runs, and Linux tells it") & INTERRUPT == 0 {
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn wait_until_it_listens(&self) {
        thread::sleep(Duration::from_secs(2));
    }

    /// Waits until the command has read all of a file that it follows.
    #[cfg(target_os = "linux")]
    fn wait_until_read(&self, file: &Path) {
        let length = fs::metadata(file).expect("it is there").len();
        let process = format!("/proc/{}", self.child.id());
        let is_read = || {
            let opened = fs::read_dir(format!("{process}/fd")).expect("it runs").flatten();
            let mut opened = opened.filter(|entry| fs::read_link(entry.path()).is_ok_and(|to| to == file));
            opened.any(|entry| {
                let number = entry.file_name();
                let info = fs::read_to_string(format!("{process}/fdinfo/{}", number.display()));
                let info = info.unwrap_or_default();
                let place = info.lines().find_map(|line| line.strip_prefix("pos:"));
                place.and_then(|place| place.trim().parse::<u64>().ok()).is_some_and(|place| place >= length)
            })
        };
        while !is_read() {
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn wait_until_read(&self, _: &Path) {
        thread::sleep(Duration::from_secs(2));
    }

    fn signal(&self, name: &str) {
        send_signal(self.child.id(), name);
    }

    /// The memory in use, in KiB, without the pages of files: those of the program itself are loaded on first use.
    #[cfg(target_os = "linux")]
    fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.expect("Linux tells of its processes");
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("it runs");
        line.trim().trim_end_matches(" kB").parse().expect("a number of KiB")
    }

    fn end(mut self) -> Outcome {
        self.lines.iter().for_each(|line| self.seen += &line);
        let output = self.child.wait_with_output().expect("the command ends");
        self.ended.store(true, Ordering::Relaxed);
        Outcome {
            status: output.status.code().expect("the command was not killed"),
            stdout: self.seen,
            stderr: with_kinds(&String::from_utf8(output.stderr).expect("the output is text")),
        }
    }
}

fn send_signal(id: u32, name: &str) {
    let status = Command::new("kill").args([name, &id.to_string()]).status();
    assert!(status.expect("kill runs").success(), "{id} has ended");
}

/// A server process that sends the first bytes of a file.
struct Server {
    child: Child,
    port: String,
}

impl Server {
    fn start(file: &Path, bytes: usize, end: &str) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/server.py");
        let mut child = Command::new("python3")
            .arg(script)
            .args([file.as_os_str(), bytes.to_string().as_ref(), end.as_ref()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python runs");
        let mut port = String::new();
        let mut stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        stdout.read_line(&mut port).expect("the server prints its port");
        Self { child, port: port.trim().to_owned() }
    }

    fn go_on(&mut self) {
        let input = self.child.stdin.as_mut().expect("it is piped");
        input.write_all(b"\n").expect("the server waits");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server has ended already, unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A capture, and the options that read it.
struct Case {
    trace: PathBuf,
    options: Vec<String>,
    format: &'static str,
    line: &'static str,
}

impl Case {
    fn new(trace: PathBuf, options: &[&str], format: &'static str, line: &'static str) -> Self {
        Self { trace, options: options.iter().map(|&option| option.to_owned()).collect(), format, line }
    }

    fn arguments(&self, command: &str, capture: impl AsRef<Path>, more: &[&str]) -> Vec<String> {
        let mut arguments = vec![command.to_owned(), capture.as_ref().display().to_string()];
        // Some commands have one format only.
        if !self.format.is_empty() {
            arguments.extend(["--format".to_owned(), self.format.to_owned()]);
        }
        arguments.extend(self.options.iter().cloned());
        arguments.extend(more.iter().map(|&option| option.to_owned()));
        arguments
    }

    /// The result for a file with the capture's first bytes.
    fn of_file(&self, command: &str, bytes: usize) -> Outcome {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("trace.bin");
        fs::write(&file, &fs::read(&self.trace).unwrap()[..bytes]).unwrap();
        run(self.arguments(command, &file, &[]))
    }

    fn length(&self) -> usize {
        usize::try_from(fs::metadata(&self.trace).unwrap().len()).unwrap()
    }
}

fn with_image(trace: &str, elf: &str) -> Case {
    let elf = example(elf);
    Case::new(example(trace), &["--image", elf.to_str().unwrap()], "runs", "R ")
}

/// One capture of each protocol, some with only the program, some with all options. Short captures are
/// repeated: the newest 2 KiB of frames are held until their alignment is certain.
fn cases(directory: &Path) -> Vec<Case> {
    let mut cases = vec![with_image("a7-etmv3/trace.bin", "a7-etmv3/a9.elf")];
    for (name, elf, source) in [
        ("a15-pft", "a9.elf", "0x13=pft,cpu=cortex-a15,etmcr=0x20000000"),
        ("m3-etmv3", "m3.elf", "0x10=etmv3,cpu=cortex-m3"),
    ] {
        let mut case = with_image(&format!("{name}/trace.bin"), &format!("{name}/{elf}"));
        case.options.extend(["--container", "frames", "--source", source].map(str::to_owned));
        cases.push(case);
    }
    let real = corpus("real/stm32f105");
    let elf = real.join("trace_example.elf");
    cases.push(Case::new(real.join("swo.bin"), &["--image", elf.to_str().unwrap()], "runs", "R "));
    for (index, case) in cases.iter_mut().enumerate() {
        let bytes = fs::read(&case.trace).unwrap();
        case.trace = directory.join(format!("{index}.bin"));
        fs::write(&case.trace, bytes.repeat(16_000 / bytes.len() + 1)).unwrap();
    }
    cases
}

#[test]
#[ignore = "needs python3 and the corpus"]
fn a_server_is_decoded_as_it_sends_and_gives_what_a_file_gives() {
    let directory = tempfile::tempdir().unwrap();
    for case in cases(directory.path()) {
        let mut server = Server::start(&case.trace, case.length(), "close");
        let capture = format!("tcp:127.0.0.1:{}", server.port);
        let mut running = Running::start(&case.arguments("flow", &capture, &[]));
        // The server sends the rest only after this line.
        running.wait_for(case.line);
        server.go_on();
        let outcome = running.end();
        let expected = case.of_file("flow", case.length());
        assert_same(&outcome, &expected);
        let end = format!("stream_ended {capture}: {}", case.length());
        assert!(mentions(&outcome.stderr, &end), "{}", outcome.stderr);
    }
}

#[test]
#[ignore = "needs python3 and the corpus"]
fn a_server_that_dies_in_the_middle_loses_nothing_that_it_had_sent() {
    let directory = tempfile::tempdir().unwrap();
    for case in cases(directory.path()) {
        let most = case.length() * 4 / 5;
        // An end within a frame is reported, because a frame can be decoded only as a whole.
        for (end, bytes) in [("kill", most - most % 16 + 5), ("reset", most)] {
            let mut server = Server::start(&case.trace, bytes, end);
            let capture = format!("tcp:127.0.0.1:{}", server.port);
            let mut running = Running::start(&case.arguments("flow", &capture, &[]));
            running.wait_for(case.line);
            server.go_on();
            let outcome = running.end();
            let expected = case.of_file("flow", bytes);
            // A closed connection is a normal end, though perhaps not the intended one.
            let cut = if end == "reset" { format!("# cut {bytes:x}\n") } else { String::new() };
            assert_same_lines(&outcome.stdout, &(expected.stdout + &cut));
            assert_eq!(outcome.status, 2, "{end}: {}", outcome.stderr);
            let reported = match end {
                "kill" => {
                    format!("stream_ended {bytes} 5")
                }
                _ => format!("stream_ended 104 {bytes}"),
            };
            assert!(mentions(&outcome.stderr, &reported), "{reported:?} in {}", outcome.stderr);
        }
    }
}

/// A frame can be decoded only as a whole: a connection that ends within one was broken, a pipe may have been cut.
#[test]
fn an_end_within_a_frame_is_reported_however_the_bytes_were_cut() {
    let mut case = Case { format: "none", ..with_image("m3-etmv3/trace.bin", "m3-etmv3/m3.elf") };
    let sources = ["--container", "frames", "--source", "0x10=etmv3,cpu=cortex-m3", "--source", "0x01=itm"];
    case.options.extend(sources.map(str::to_owned));
    let bytes = &fs::read(&case.trace).unwrap()[..100];
    for command in ["flow", "info"] {
        for size in [1, 100] {
            let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
            let capture = format!("tcp:{}", listener.local_addr().unwrap());
            let running = Running::start(&case.arguments(command, &capture, &[]));
            let mut connection = listener.accept().unwrap().0;
            connection.set_nodelay(true).unwrap();
            for piece in bytes.chunks(size) {
                connection.write_all(piece).unwrap();
                // Later pieces do not join this one.
                thread::sleep(Duration::from_millis(1));
            }
            drop(connection);
            let Outcome { status, stderr, .. } = running.end();
            let reported = format!("warning: stream_ended: {capture} 100 4");
            assert!(status == 2 && mentions(&stderr, &reported), "{command} {size}: {status} {stderr}");
            // The ITM sent nothing so far, and that is said once.
            assert_eq!(stderr.matches("_absent: ").count(), 1, "{command} {size}: {stderr}");
        }
        let mut running = Running::start(&case.arguments(command, "-", &[]));
        running.input().write_all(bytes).unwrap();
        let Outcome { status, stderr, .. } = running.end();
        assert_eq!((status, stderr.matches("note: frame_cut: ").count()), (0, 1), "{command}: {stderr}");
    }
}

#[tracewalk_corpus::test]
fn standard_input_is_decoded_as_it_comes() {
    let directory = tempfile::tempdir().unwrap();
    for case in cases(directory.path()) {
        for command in ["flow", "packets"] {
            let case = Case { format: if command == "flow" { "runs" } else { "jsonl" }, ..case_of(&case) };
            let case = if command == "packets" { without_image(case) } else { case };
            let bytes = fs::read(&case.trace).unwrap();
            let mut running = Running::start(&case.arguments(command, "-", &[]));
            let mut input = running.input();
            let (front, rest) = bytes.split_at(bytes.len() / 2);
            input.write_all(front).unwrap();
            running.wait_for(if command == "flow" { "R " } else { "{" });
            for piece in rest.chunks(997) {
                input.write_all(piece).unwrap();
            }
            drop(input);
            let outcome = running.end();
            let expected = case.of_file(command, bytes.len());
            assert_same(&outcome, &expected);
        }
    }
}

fn assert_same(found: &Outcome, expected: &Outcome) {
    assert_same_lines(&found.stdout, &expected.stdout);
    assert_eq!(found.status, expected.status, "{}", found.stderr);
}

/// Fails at the first line that differs.
fn assert_same_lines(found: &str, expected: &str) {
    for (index, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "line {index}");
    }
    assert_eq!(found.len(), expected.len(), "the number of bytes");
}

fn case_of(case: &Case) -> Case {
    Case { trace: case.trace.clone(), options: case.options.clone(), format: case.format, line: case.line }
}

/// `packets` does not use the program.
fn without_image(mut case: Case) -> Case {
    if let Some(image) = case.options.iter().position(|option| option == "--image") {
        case.options.drain(image..image + 2);
    }
    case
}

#[tracewalk_corpus::test]
fn a_file_that_grows_is_followed_until_a_signal_and_all_of_it_is_printed() {
    let directory = tempfile::tempdir().unwrap();
    for (signal, case) in ["-INT", "-TERM"].into_iter().cycle().zip(cases(directory.path())) {
        let file = directory.path().join("growing.bin");
        let bytes = fs::read(&case.trace).unwrap();
        let (front, rest) = bytes.split_at(bytes.len() / 2 + 3);
        fs::write(&file, front).unwrap();
        let mut running = Running::start(&case.arguments("flow", &file, &["--follow"]));
        running.wait_for(case.line);
        let mut growing = OpenOptions::new().append(true).open(&file).unwrap();
        for piece in rest.chunks(rest.len() / 5 + 1) {
            growing.write_all(piece).unwrap();
            running.wait_until_read(&file);
        }
        // Everything in the file when the signal comes is printed, whether or not it was read by then.
        running.signal(signal);
        let outcome = running.end();
        let expected = case.of_file("flow", bytes.len());
        assert_same_lines(&outcome.stdout, &format!("{}# cut {:x}\n", expected.stdout, bytes.len()));
        assert_eq!(outcome.status, 2, "{}", outcome.stderr);
        let reported = format!("{}: stopped after {} bytes", file.display(), bytes.len());
        assert!(outcome.stderr.contains(&reported), "{}", outcome.stderr);
    }
}

#[test]
fn what_is_printed_of_a_stream_that_was_stopped_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let case = with_image("m3-etmv3/trace.bin", "m3-etmv3/m3.elf");
    let file = directory.path().join("growing.bin");
    fs::copy(&case.trace, &file).unwrap();
    let end = fs::metadata(&file).unwrap().len();
    for (command, kind) in [("flow", "element"), ("packets", "packet")] {
        let case = Case { format: "jsonl", ..case_of(&case) };
        let case = if command == "packets" { without_image(case) } else { case };
        let mut running = Running::start(&case.arguments(command, &file, &["--follow"]));
        running.wait_for("{");
        running.signal("-INT");
        let outcome = running.end();
        assert_eq!(outcome.status, 2, "{command}: {}", outcome.stderr);
        let last = serde_json::from_str::<serde_json::Value>(outcome.stdout.lines().last().unwrap()).unwrap();
        assert_eq!((&last[kind], &last["offset"]), (&"cut".into(), &end.into()), "{command}");
        let whole = run(case.arguments(command, &file, &[])).stdout;
        assert!(!whole.contains(&format!("\"{kind}\":\"cut\"")), "{command}");
    }
}

/// The commands that add up or show times, with their formats and options, and the start of a line that
/// appears at once; empty if they print at the end.
const REPORTS: [(&str, &str, &[&str], &str); 8] = [
    ("profile", "folded", &[], ""),
    ("profile", "callgrind", &["--unit", "instructions"], ""),
    ("calls", "", &["--fold", "none"], "  "),
    ("calls", "", &["--fold", "chains"], ""),
    ("interrupts", "csv", &[], ""),
    ("interrupts", "json", &["--unit", "instructions", "--functions"], ""),
    ("timeline", "text", &["--unit", "instructions"], " "),
    ("timeline", "chrome", &[], ""),
];

/// A result without its marks of an incomplete capture.
fn without_mark(stdout: &str) -> String {
    let lines = stdout.split_inclusive('\n').filter(|line| !line.contains("not decoded"));
    let fields = [",\"complete\":false", "\"complete\":false,"];
    fields.iter().fold(lines.collect(), |text: String, field| text.replace(field, ""))
}

#[tracewalk_corpus::test]
fn reports_of_a_stream_are_those_of_the_file_when_it_ends_or_is_stopped() {
    let directory = tempfile::tempdir().unwrap();
    for (index, case) in cases(directory.path()).into_iter().enumerate() {
        for (number, (command, format, options, line)) in REPORTS.into_iter().enumerate() {
            let mut case = Case { format, ..case_of(&case) };
            case.options.extend(options.iter().map(|&option| option.to_owned()));
            if case.options.iter().any(|option| option.starts_with("0x10=etmv3")) {
                // In a file, tracewalk detects the ITM besides the named source; a stream needs the option.
                case.options.extend(["--source", "0x01=itm"].map(str::to_owned));
            }
            let bytes = fs::read(&case.trace).unwrap();
            // Titles contain the captures' names, so both captures have the same name.
            let file = directory.path().join(format!("stream-{index}-{number}.bin"));
            let (front, rest) = bytes.split_at(bytes.len() / 2 + 3);
            fs::write(&file, front).unwrap();
            let mut running = Running::start(&case.arguments(command, &file, &["--follow"]));
            if !line.is_empty() {
                running.wait_for(line);
            }
            let mut growing = OpenOptions::new().append(true).open(&file).unwrap();
            growing.write_all(rest).unwrap();
            drop(growing);
            running.wait_until_it_listens();
            running.signal("-INT");
            let outcome = running.end();
            let expected = run(case.arguments(command, &file, &[]));
            assert_eq!(outcome.status, 2, "{command}: {}", outcome.stderr);
            // The program's text to the ITM, up to the closing quotation mark.
            let texts = |outcome: &Outcome| {
                let parts = outcome.stdout.split("a round of work").skip(1);
                parts.filter_map(|part| part.split('"').next().map(str::to_owned)).collect::<Vec<_>>()
            };
            assert_eq!(texts(&outcome), texts(&expected), "{}", outcome.stderr);
            if texts(&expected).is_empty() {
                // A stopped stream may have continued, so its result is marked as incomplete.
                let stdout = without_mark(&outcome.stdout);
                assert_eq!(
                    stdout != outcome.stdout,
                    !["folded", "csv"].contains(&format),
                    "{command} {format}"
                );
                assert_same_lines(&stdout, &expected.stdout);
            } // Otherwise the place of a text is its end.
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_memory_that_a_stream_takes_does_not_grow_with_it() {
    for (command, format) in [("flow", "runs"), ("profile", "text"), ("interrupts", "text"), ("timeline", "perfetto")] {
        let mut case = with_image("m3-etmv3/trace.bin", "m3-etmv3/m3.elf");
        case.format = format;
        case.options.extend(
            ["--container", "frames", "--source", "0x10=etmv3,cpu=cortex-m3", "-o", "/dev/null"]
                .map(str::to_owned),
        );
        let bytes = fs::read(&case.trace).unwrap();
        let mut running = Running::start(&case.arguments(command, "-", &[]));
        let mut input = running.input();
        // The pipe's contents are not decoded yet, but the pipe holds less than a tenth of the first part.
        input.write_all(&bytes.repeat(120)).unwrap();
        let short = running.memory();
        input.write_all(&bytes.repeat(600)).unwrap();
        let long = running.memory();
        drop(input);
        assert_eq!(running.end().status, 0);
        // Twelve million instructions are reported in between. The memory for repeated stretches is bounded.
        assert!(long < short + 4096, "{command}: {short} KiB, {long} KiB of six times as much");
    }
}

#[test]
fn an_axis_that_a_stream_has_nothing_of_is_refused_when_it_has_come() {
    let case = with_image("m3-etmv3/trace.bin", "m3-etmv3/m3.elf");
    for command in ["timeline", "interrupts"] {
        let more = ["--format", "text", "--unit", "cycles", "--idle", "0.3", "--follow"];
        let outcome = run_with_kinds(
            [command, case.trace.to_str().unwrap()]
                .iter()
                .chain(&more)
                .chain(&["--image", example("m3-etmv3/m3.elf").to_str().unwrap()]),
        );
        assert_eq!(outcome.status, 2, "{command}: {}", outcome.stderr);
        assert!(outcome.stderr.contains("error: not_measured"), "{command}: {}", outcome.stderr);
    }
}

#[test]
fn a_stream_ends_when_nothing_came_for_long_enough() {
    let case = with_image("a7-etmv3/trace.bin", "a7-etmv3/a9.elf");
    let expected = case.of_file("flow", case.length());
    let followed = run_with_kinds(case.arguments("flow", &case.trace, &["--follow", "--idle", "0.3"]));
    assert_same_lines(&followed.stdout, &expected.stdout);
    assert_eq!(followed.status, 0, "{}", followed.stderr);
    assert!(mentions(&followed.stderr, "stream_ended 13776"), "{}", followed.stderr);
}

#[tracewalk_corpus::test]
fn several_sources_of_a_stream_are_printed_as_of_a_file() {
    let directory = corpus("real/TC2");
    let image = format!("0xc0008000:{}", directory.join("kernel_dump.bin").display());
    let case = Case::new(directory.join("cstrace.bin"), &["--image", &image], "runs", "R ");
    let mut running = Running::start(&case.arguments("flow", "-", &[]));
    let mut input = running.input();
    let bytes = fs::read(&case.trace).unwrap();
    for piece in bytes.chunks(1237) {
        input.write_all(piece).unwrap();
    }
    drop(input);
    let (outcome, expected) = (running.end(), case.of_file("flow", bytes.len()));
    assert_same(&outcome, &expected);
    // The first bytes contain only one source.
    assert!(outcome.stderr.contains(" --source 0x13=pft,cpu=cortex-a15"), "{}", outcome.stderr);
}

#[test]
fn what_cannot_be_a_stream_is_reported_in_one_sentence() {
    let directory = example("a7-etmv3");
    let trace = example("a7-etmv3/trace.bin");
    let (directory, trace) = (directory.to_str().unwrap(), trace.to_str().unwrap());
    let cases: [(&[&str], &str); 6] = [
        (&["tcp:127.0.0.1"], "error: stream_address"),
        (&["tcp:127.0.0.1:99999"], "error: stream_address"),
        // Port 1 on this machine has no server.
        (&["tcp:127.0.0.1:1"], "error: stream_connect"),
        (&[directory, "--follow"], "error: description_grows"),
        (&[trace, "--idle", "1"], "error: nothing_to_wait_for"),
        (&["missing/trace.bin", "--follow"], "error: file_missing"),
    ];
    for (arguments, expected) in cases {
        let outcome = run_with_kinds(["flow"].iter().chain(arguments));
        assert_eq!((outcome.status, outcome.stdout.as_str()), (2, ""), "{}", outcome.stderr);
        assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
        assert!(outcome.stderr.contains(expected), "{expected:?} in {}", outcome.stderr);
    }
}

/// The STM32F105's SWO: the ITM has ID 1 and the ETM ID 2.
fn swo() -> (PathBuf, Vec<u8>, String) {
    let real = corpus("real/stm32f105");
    let file = real.join("swo.bin");
    let bytes = fs::read(&file).expect("the corpus is complete");
    (file, bytes, real.join("trace_example.elf").display().to_string())
}

#[tracewalk_corpus::test]
fn what_an_itm_sends_is_printed_as_it_comes() {
    let (file, bytes, _) = swo();
    let sources = ["--container", "frames", "--source", "0x01=itm", "--source", "0x02=etmv3,cpu=cortex-m3"];
    for format in ["text", "events", "jsonl"] {
        let rest = [&sources[..], &["--format", format]].concat();
        let expected = run([&["itm", file.to_str().unwrap()], &rest[..]].concat());
        assert!(expected.stdout.len() > 20, "{}", expected.stdout);
        let arguments = [&["itm", "-"], &rest[..]].concat();
        let mut running = Running::start(&arguments.into_iter().map(str::to_owned).collect::<Vec<_>>());
        let mut input = running.input();
        input.write_all(&bytes[..bytes.len() / 2]).unwrap();
        input.flush().unwrap();
        if format != "text" {
            // The text format has no lines.
            running.wait_for(expected.stdout.lines().next().expect("there are lines"));
        }
        for piece in bytes[bytes.len() / 2..].chunks(777) {
            input.write_all(piece).unwrap();
        }
        drop(input);
        let outcome = running.end();
        assert_eq!(outcome.stdout, expected.stdout, "{format}");
        assert_eq!(outcome.status, expected.status, "{}", outcome.stderr);
    }
}

#[tracewalk_corpus::test]
fn what_an_itm_sends_stands_between_what_ran_while_it_comes() {
    let (file, bytes, elf) = swo();
    for format in ["text", "jsonl"] {
        let rest = ["--image", &elf, "--format", format];
        let expected = run([&["flow", file.to_str().unwrap()], &rest[..]].concat());
        let arguments = [&["flow", "-"], &rest[..]].concat();
        let mut running = Running::start(&arguments.into_iter().map(str::to_owned).collect::<Vec<_>>());
        let mut input = running.input();
        for piece in bytes.chunks(999) {
            input.write_all(piece).unwrap();
        }
        drop(input);
        let outcome = running.end();
        let is_itm = |line: &&str| line.contains("ITM 0x01") || line.contains("\"itm\"");
        let [all, found] =
            [&expected, &outcome].map(|outcome| outcome.stdout.lines().filter(is_itm).collect::<Vec<_>>());
        assert!(all.len() > 100, "{}", expected.stdout);
        assert_eq!(found, all, "{format}: {}", outcome.stderr);
        // A line of text is reported at its end, which may come after instructions that ran in the meantime.
        let flow = |outcome: &Outcome| {
            outcome.stdout.lines().filter(|line| !is_itm(line)).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(flow(&outcome), flow(&expected), "{format}");
    }
}

#[test]
fn an_itm_alone_is_printed_as_it_comes() {
    let text = "some text\n".repeat(400);
    let bytes = tracewalk_generate::container::itm_text(&text);
    let arguments = ["itm", "-", "--container", "raw", "--source", "itm"];
    let mut running = Running::start(&arguments.map(str::to_owned));
    let mut input = running.input();
    input.write_all(&bytes[..1000]).unwrap();
    running.wait_for("some text");
    input.write_all(&bytes[1000..]).unwrap();
    drop(input);
    let outcome = running.end();
    assert_eq!((outcome.stdout, outcome.status), (text, 0), "{}", outcome.stderr);
}

#[tracewalk_corpus::test]
fn an_itm_that_is_not_in_the_first_bytes_is_found_when_all_have_come() {
    let (_, bytes, _) = swo();
    // No option describes the ITM.
    let mut running = Running::start(&["itm", "-"].map(str::to_owned));
    running.input().write_all(&bytes).unwrap();
    let outcome = running.end();
    assert!(outcome.stdout.starts_with("OnOff"), "{}", outcome.stderr);
    // A trace without an ITM.
    let mut running = Running::start(&["itm", "-"].map(str::to_owned));
    running.input().write_all(&fs::read(example("a7-etmv3/trace.bin")).unwrap()).unwrap();
    let outcome = running.end();
    assert!(outcome.status == 2 && outcome.stderr.contains("error: no_itm"), "{}", outcome.stderr);
}

#[test]
fn what_happens_to_a_file_while_it_is_followed_is_reported_and_what_was_read_is_decoded() {
    type Change = fn(&Path);
    let case = with_image("a7-etmv3/trace.bin", "a7-etmv3/a9.elf");
    let bytes = fs::read(&case.trace).unwrap();
    let expected = case.of_file("flow", bytes.len());
    let changes: [(&str, Change); 4] = [
        ("deleted", |file| fs::remove_file(file).unwrap()),
        ("replaced", |file| {
            fs::rename(file, file.with_extension("1")).unwrap();
            fs::write(file, [0; 16]).unwrap();
        }),
        // In place: `fs::write` empties the file first, and the command may see that as a truncation.
        ("16", |file| OpenOptions::new().write(true).open(file).unwrap().set_len(16).unwrap()),
        ("overwritten", |file| {
            OpenOptions::new().write(true).open(file).unwrap().write_all(&[0; 1 << 16]).unwrap();
        }),
    ];
    for (reported, change) in changes {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("growing.bin");
        fs::write(&file, &bytes).unwrap();
        let mut running = Running::start(&case.arguments("flow", &file, &["--follow"]));
        running.wait_for(case.line);
        running.wait_until_read(&file);
        change(&file);
        let outcome = running.end();
        assert_eq!(outcome.status, 2, "{}", outcome.stderr);
        assert!(outcome.stderr.contains(reported), "{reported}: {}", outcome.stderr);
        assert!(mentions(&outcome.stderr, "stream_ended 13776"), "{}", outcome.stderr);
        assert_same_lines(&outcome.stdout, &format!("{}# cut {:x}\n", expected.stdout, bytes.len()));
    }
}

#[test]
fn a_file_that_does_not_exist_yet_is_waited_for_until_it_does_or_a_signal_comes() {
    let case = with_image("a7-etmv3/trace.bin", "a7-etmv3/a9.elf");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("later.bin");
    let mut running = Running::start(&case.arguments("flow", &file, &["--follow"]));
    running.wait_until_it_listens();
    fs::copy(&case.trace, &file).unwrap();
    running.wait_for(case.line);
    running.signal("-INT");
    let outcome = running.end();
    let expected = case.of_file("flow", case.length()).stdout;
    assert_same_lines(&outcome.stdout, &format!("{expected}# cut {:x}\n", case.length()));
    assert_eq!(outcome.status, 2, "{}", outcome.stderr);
    assert_eq!(outcome.stderr.matches("note: awaited: ").count(), 1, "{}", outcome.stderr);
    let running = Running::start(&case.arguments("flow", directory.path().join("never.bin"), &["--follow"]));
    running.wait_until_it_listens();
    running.signal("-INT");
    let outcome = running.end();
    assert_eq!((outcome.status, outcome.stdout.as_str()), (2, ""), "{}", outcome.stderr);
    assert!(mentions(&outcome.stderr, "error: no_byte never.bin"), "{}", outcome.stderr);
}

#[test]
fn what_gives_nothing_is_reported_with_what_to_check() {
    let directory = tempfile::tempdir().unwrap();
    let empty = directory.path().join("empty.bin");
    fs::write(&empty, b"").unwrap();
    for command in ["flow", "packets", "info", "itm", "coverage"] {
        let mut arguments = vec![command.to_owned()];
        let mut refused = |capture: &str, more: &[&str], reported: &str| {
            arguments.truncate(1);
            arguments.extend([capture].iter().chain(more).map(|&argument| argument.to_owned()));
            let mut running = Running::start(&arguments);
            drop(running.input());
            let outcome = running.end();
            assert_eq!((outcome.status, outcome.stdout.as_str()), (2, ""), "{command}: {}", outcome.stderr);
            assert!(mentions(&outcome.stderr, reported), "{command}: {reported} in {}", outcome.stderr);
            assert!(!outcome.stderr.contains("downloaded"), "{command}: {}", outcome.stderr);
        };
        refused("-", &[], "error: no_byte -: command");
        let file = empty.to_str().unwrap();
        refused(file, &["--follow", "--idle", "0.3"], "error: no_byte time program file");
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let server = format!("tcp:{}", listener.local_addr().unwrap());
        refused(&server, &["--idle", "0.3"], "error: no_byte time server probe");
        let closing = thread::spawn(move || {
            // The previous command's connection, and this one's.
            for _ in 0..2 {
                drop(listener.accept());
            }
        });
        refused(&server, &[], "error: no_byte server probe");
        closing.join().unwrap();
    }
}
