//! GDB's machine interface (MI), driven as editors drive it: VS Code's C/C++ extension (cppdbg) and cortex-debug.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::server::Server;
use super::{M3, Recording};
use crate::support::example;

/// A GDB that uses MI.
struct Mi {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// The dialogue since the last command.
    said: String,
    /// A stop that was reported before the test waited for it.
    stopped: Option<String>,
}

impl Drop for Mi {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Mi {
    fn start() -> Self {
        // `timeout` ends the test if a stop never comes.
        let mut process = Command::new("timeout")
            .args(["300", "gdb-multiarch", "-nx", "--interpreter=mi3"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Self { process, input, output, said: String::new(), stopped: None }
    }

    /// The next line with this beginning.
    fn until(&mut self, beginning: &str) -> String {
        loop {
            let mut line = String::new();
            let bytes = self.output.read_line(&mut line).unwrap();
            assert!(bytes > 0, "GDB ended before {beginning}: {}", self.said);
            self.said.push_str(&line);
            if line.starts_with(beginning) {
                return line;
            }
            if line.starts_with("*stopped") {
                self.stopped = Some(line);
            }
        }
    }

    /// GDB's answer to a command, which must succeed.
    fn ask(&mut self, command: &str) -> String {
        self.said = format!("{command}\n");
        writeln!(self.input, "{command}").unwrap();
        let answer = self.until("^");
        let class = answer.trim_start_matches('^').split([',', '\n']).next().unwrap();
        assert!(["done", "connected", "running"].contains(&class), "{command}: {answer}");
        answer
    }

    /// GDB's report of the stop after a command that resumes the program.
    fn go(&mut self, command: &str) -> String {
        self.begin(command);
        self.stop()
    }

    fn begin(&mut self, command: &str) {
        self.stopped = None;
        self.ask(command);
    }

    fn stop(&mut self) -> String {
        self.stopped.take().unwrap_or_else(|| self.until("*stopped"))
    }

    fn evaluate(&mut self, expression: &str) -> u64 {
        let answer = self.ask(&format!("-data-evaluate-expression \"(unsigned long) {expression}\""));
        values(&answer, "value")[0].parse().unwrap()
    }
}

/// The values of a field, in order.
fn values<'a>(record: &'a str, field: &str) -> Vec<&'a str> {
    let name = format!("{field}=\"");
    let starts = record.match_indices(&name).filter(|(at, _)| {
        // Not the end of another field's name.
        !record[..*at].ends_with(|before: char| before.is_alphanumeric() || before == '-' || before == '_')
    });
    starts.map(|(at, _)| record[at + name.len()..].split('"').next().unwrap()).collect()
}

fn server(recording: Recording) -> Server {
    let capture = example(recording.example).join("capture.toml");
    Server::of([capture.to_str().unwrap(), "--at", recording.at])
}

/// The questions of both editors after each stop: threads, frames, variables, registers, the code and the
/// memory around it.
fn look_around(mi: &mut Mi, function: &str) {
    let threads = mi.ask("-thread-info");
    assert_eq!(values(&threads, "current-thread-id"), ["1"]);
    mi.ask("-stack-info-depth --thread 1 1000");
    let frames = mi.ask("-stack-list-frames --thread 1 0 19");
    assert_eq!(values(&frames, "func").first(), Some(&function), "{frames}");
    let variables = mi.ask("-stack-list-variables --thread 1 --frame 0 --simple-values");
    assert!(variables.contains("variables=["), "{variables}");
    mi.ask("-stack-list-arguments 0 0 19");
    let names = mi.ask("-data-list-register-names");
    assert!(names.contains("\"pc\"") && names.contains("\"step\""), "{names}");
    let registers = mi.ask("-data-list-register-values --thread 1 --frame 0 x");
    assert!(values(&registers, "value").contains(&"<unavailable>"), "{registers}");
    let code = mi.ask("-data-disassemble -s $pc -e \"$pc + 16\" -- 2");
    let first = u64::from_str_radix(values(&code, "address")[0].trim_start_matches("0x"), 16).unwrap();
    assert_eq!(first, mi.evaluate("$pc"), "{code}");
    let bytes = mi.ask("-data-read-memory-bytes $pc 4");
    assert_eq!(values(&bytes, "contents")[0].len(), 8, "{bytes}");
}

#[test]
#[ignore = "needs gdb-multiarch"]
fn what_the_c_and_cpp_extension_of_vs_code_sends_works_in_both_directions() {
    let server = server(M3);
    let mut mi = Mi::start();
    let elf = M3.elf_path().unwrap();
    for setup in ["-gdb-set pagination off", "-interpreter-exec console \"set osabi none\""] {
        mi.ask(setup);
    }
    mi.ask(&format!("-file-exec-and-symbols {elf}"));
    mi.ask(&format!("-target-select remote {}", server.address));
    // The extension shows its buttons for stepping back only with this feature.
    assert!(mi.ask("-list-target-features").contains("\"reverse\""));
    let first = mi.evaluate("$step");
    let set = mi.ask("-break-insert -f crc32");
    let number = values(&set, "number")[0].to_owned();
    let stop = mi.go("-exec-continue");
    assert_eq!(values(&stop, "reason"), ["breakpoint-hit"]);
    look_around(&mut mi, "crc32");
    let entered = mi.evaluate("$step");
    for (command, is_later) in [("-exec-next", true), ("-exec-step", true), ("-exec-step --reverse", false)] {
        let before = mi.evaluate("$step");
        let stop = mi.go(command);
        assert_eq!(values(&stop, "reason"), ["end-stepping-range"], "{command}");
        assert_eq!(mi.evaluate("$step") > before, is_later, "{command}");
    }
    mi.ask(&format!("-break-delete {number}"));
    let stop = mi.go("-exec-finish");
    assert_eq!(values(&stop, "reason"), ["function-finished"]);
    look_around(&mut mi, "sort_samples");
    let finished = mi.evaluate("$step");
    assert!(entered < finished);
    // Step over the call, and into it from its end.
    mi.go("-exec-next-instruction --reverse");
    assert!(mi.evaluate("$step") < entered);
    mi.go("-exec-next-instruction");
    assert_eq!(mi.evaluate("$step"), finished);
    mi.go("-exec-step-instruction --reverse");
    look_around(&mut mi, "crc32");
    // From the function's end GDB 13 would stop at a handler's call of the same function.
    mi.ask(&format!("-interpreter-exec console \"set $step = {}\"", entered + 9));
    mi.go("-exec-finish --reverse");
    look_around(&mut mi, "sort_samples");
    assert!(mi.evaluate("$step") < entered);
    mi.ask("-break-insert -f main");
    let stop = mi.go("-exec-continue --reverse");
    assert_eq!(values(&stop, "reason"), ["breakpoint-hit"], "{stop}");
    mi.go("-exec-continue --reverse");
    assert_eq!(mi.evaluate("$step"), first);
    // Jump from the debug console.
    mi.ask("-interpreter-exec console \"set $step = 5000\"");
    assert_eq!(mi.evaluate("$step"), 5000);
    mi.ask("-target-disconnect");
}

#[test]
#[ignore = "needs gdb-multiarch"]
fn what_cortex_debug_sends_works_in_both_directions() {
    let server = server(M3);
    let mut mi = Mi::start();
    mi.ask("-gdb-set mi-async on");
    mi.ask("-interpreter-exec console \"set print finish off\"");
    mi.ask(&format!("-file-exec-and-symbols \"{}\"", M3.elf_path().unwrap()));
    mi.ask(&format!("-target-select extended-remote {}", server.address));
    mi.ask("-interpreter-exec console \"set osabi none\"");
    let stop = {
        mi.ask("-break-insert crc32");
        mi.go("-exec-continue --all")
    };
    assert_eq!(values(&stop, "reason"), ["breakpoint-hit"]);
    look_around(&mut mi, "crc32");
    let entered = mi.evaluate("$step");
    for command in ["-exec-next --thread 1", "-exec-step --thread 1", "-exec-step-instruction --thread 1"] {
        let before = mi.evaluate("$step");
        mi.go(command);
        assert!(mi.evaluate("$step") > before, "{command}");
    }
    mi.ask("-var-create --thread 1 --frame 0 counter * $step");
    mi.go("-exec-finish --thread 1 --frame 0");
    let changed = mi.ask("-var-update --all-values *");
    assert!(changed.contains("changelist"), "{changed}");
    // Continue backwards from the debug console.
    mi.begin("-interpreter-exec console \"reverse-continue\"");
    let stop = mi.stop();
    assert_eq!(values(&stop, "reason"), ["breakpoint-hit"], "{stop}");
    assert_eq!(mi.evaluate("$step"), entered);
    // The extension's pause button.
    mi.ask("-break-delete");
    mi.begin("-exec-continue --all");
    // If the recording has ended by then, there is nothing to interrupt.
    writeln!(mi.input, "-exec-interrupt --all").unwrap();
    mi.stop();
}
