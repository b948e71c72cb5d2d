//! The pager on a terminal: which program is started, what it receives, and how it ends.
#![cfg(unix)]

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::pty;
use rustix::termios::{Winsize, tcsetwinsize};

use crate::support::{example, run};

/// The terminal's content after a run at this width, and the status. Standard error also goes to the terminal.
pub(crate) fn at_terminal(
    columns: u16,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> (String, Option<i32>) {
    let (mut child, terminal) = start_at_terminal(columns, arguments, environment);
    let mut seen = Vec::new();
    // Reading fails once no process has the terminal open.
    let mut buffer = [0; 4096];
    let mut reader = File::from(terminal);
    while let Ok(count @ 1..) = reader.read(&mut buffer) {
        seen.extend_from_slice(&buffer[..count]);
    }
    let status = child.wait().unwrap().code();
    (String::from_utf8(seen).unwrap().replace("\r\n", "\n"), status)
}

/// A run at a terminal of this width, and the terminal.
fn start_at_terminal(columns: u16, arguments: &[&str], environment: &[(&str, &str)]) -> (Child, OwnedFd) {
    let terminal = pty::openpt(pty::OpenptFlags::RDWR | pty::OpenptFlags::NOCTTY).unwrap();
    pty::grantpt(&terminal).unwrap();
    pty::unlockpt(&terminal).unwrap();
    let name = pty::ptsname(&terminal, Vec::new()).unwrap();
    let side = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    tcsetwinsize(&side, Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("tracewalk"));
    command.args(arguments).env("TERM", "xterm").stdin(Stdio::null());
    for name in ["PAGER", "TRACEWALK_PAGER", "NO_COLOR", "CLICOLOR_FORCE", "COLUMNS", "LESS"] {
        command.env_remove(name);
    }
    command.envs(environment.iter().copied());
    command.stdout(Stdio::from(side.try_clone().unwrap())).stderr(Stdio::from(side.try_clone().unwrap()));
    (command.spawn().unwrap(), terminal)
}

/// A pager that records its input and its environment, and ends with `end`.
fn pager(folder: &Path, end: &str) -> PathBuf {
    let path = folder.join("pager");
    let mut file = File::create(&path).unwrap();
    let (seen, less) = (folder.join("seen"), folder.join("less"));
    writeln!(file, "#!/bin/sh\necho \"$LESS\" > {}\n{end}", less.display()).unwrap();
    writeln!(file, "cat > {}", seen.display()).unwrap();
    file.set_permissions(fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn capture() -> String {
    example("m3-etmv3/capture.toml").display().to_string()
}

#[test]
fn a_terminal_is_read_through_the_pager_with_its_colours_and_messages() {
    let folder = tempfile::tempdir().unwrap();
    let pager = pager(folder.path(), "");
    let capture = capture();
    let arguments = ["flow", &capture, "--last", "5"];
    let (shown, status) = at_terminal(80, &arguments, &[("PAGER", pager.to_str().unwrap())]);
    assert_eq!((shown.as_str(), status), ("", Some(0)));
    let seen = fs::read_to_string(folder.path().join("seen")).unwrap();
    assert!(seen.contains("\x1b[") && seen.lines().count() > 5, "{seen}");
    assert_eq!(fs::read_to_string(folder.path().join("less")).unwrap(), "FRX\n");
    // The command's own variable takes precedence, and may need a shell; the user's value for less stays.
    let words = format!("{} -R", pager.display());
    let environment = [("PAGER", "/nowhere"), ("TRACEWALK_PAGER", words.as_str()), ("LESS", "S")];
    let (_, status) = at_terminal(80, &["flow", &capture, "--around", "nobody"], &environment);
    assert_eq!(status, Some(2));
    assert!(fs::read_to_string(folder.path().join("seen")).unwrap().starts_with("error:"));
    assert_eq!(fs::read_to_string(folder.path().join("less")).unwrap(), "S\n");
}

#[test]
fn nothing_is_paged_that_is_no_text_on_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let pager = pager(folder.path(), "");
    let (capture, out) = (capture(), folder.path().join("out"));
    let environment = [("PAGER", pager.to_str().unwrap())];
    for more in [
        &["--no-pager", "--last", "5"][..],
        &["--format", "runs"],
        &["--format", "none"],
        &["-o", out.to_str().unwrap()],
    ] {
        let arguments = [&["flow", &capture][..], more].concat();
        assert_eq!(at_terminal(80, &arguments, &environment).1, Some(0), "{more:?}");
    }
    for none in ["", "cat"] {
        let (shown, status) = at_terminal(80, &["info", &capture], &[("PAGER", none)]);
        assert!(status == Some(0) && !shown.is_empty(), "{none:?}");
    }
    assert!(!folder.path().join("less").exists());
    // Piped output is not paged either.
    let output = Command::new(assert_cmd::cargo::cargo_bin!("tracewalk"));
    let output = { output }.args(["info", &capture]).envs(environment).output().unwrap();
    assert!(output.status.success() && !output.stdout.is_empty() && !folder.path().join("less").exists());
}

#[test]
fn a_listing_fits_the_terminal() {
    let capture = capture();
    let shown = |columns, more: &[&str]| {
        let arguments = [&["flow", &capture, "--no-pager"][..], more].concat();
        let (shown, status) = at_terminal(columns, &arguments, &[("NO_COLOR", "1")]);
        assert_eq!(status, Some(0));
        shown
    };
    let widest = |text: &str| text.lines().map(|line| line.chars().count()).max().unwrap();
    let piped = run(["flow", &capture]).stdout;
    let sources = example("../firmware").display().to_string();
    for more in [&[][..], &["--src-lines", "--src-dir", &sources]] {
        let text = shown(80, more);
        assert!(widest(&text) <= 80, "{:?}", text.lines().find(|line| line.chars().count() > 80));
    }
    let (narrow, wide) = (shown(80, &[]), shown(200, &[]));
    assert!(widest(&piped) > 80 && wide == piped);
    // Every instruction is shown, and the text that the program sent is complete.
    let count = |text: &str, what: &str| text.lines().filter(|line| line.contains(what)).count();
    assert!(count(&piped, "bl  ") > 100);
    assert_eq!(count(&narrow, "bl  "), count(&piped, "bl  "));
    let sent = piped.lines().rfind(|line| line.contains("ITM 0x01")).unwrap().trim();
    let words = narrow.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(sent), "{sent}");
    let stated = at_terminal(80, &["flow", &capture, "--no-pager"], &[("NO_COLOR", "1"), ("COLUMNS", "200")]);
    assert_eq!(stated.0, piped);
}

#[test]
fn quitting_the_pager_ends_the_command_quietly() {
    let folder = tempfile::tempdir().unwrap();
    let pager = pager(folder.path(), "head -c 10 > /dev/null; exit 0");
    let (shown, status) = at_terminal(80, &["flow", &capture()], &[("PAGER", pager.to_str().unwrap())]);
    assert_eq!((shown.as_str(), status), ("", Some(0)));
}

#[test]
fn a_pager_that_cannot_be_started_hides_nothing() {
    // A pager that is no program is reported, and the text printed all the same; if a shell does not find the
    // pager, it is an error.
    let (shown, status) = at_terminal(80, &["info", &capture()], &[("PAGER", "/nowhere/pager")]);
    assert!(status == Some(0) && shown.contains("/nowhere/pager") && shown.lines().count() > 5, "{shown}");
    let (shown, status) = at_terminal(80, &["info", &capture()], &[("PAGER", "/nowhere/pager -R")]);
    assert!(status == Some(2) && shown.contains("--no-pager"), "{shown}");
}

/// Waits until a condition holds.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{what} never came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Ctrl-C reaches every process of the terminal, but `less` continues.
fn interrupt(child: &Child) {
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(status.unwrap().success());
}

#[test]
fn ctrl_c_while_a_complete_text_is_read_leaves_the_status() {
    for _ in 0..8 {
        let folder = tempfile::tempdir().unwrap();
        let (read, go) = (folder.path().join("read"), folder.path().join("go"));
        // The pager has read everything once all writers have closed the pipe: the command waits for the pager.
        let wait = format!("while [ ! -e {} ]; do sleep 0.02; done", go.display());
        let end = format!("cat > /dev/null; : > {}; {wait}", read.display());
        let pager = pager(folder.path(), &end);
        let environment = [("PAGER", pager.to_str().unwrap())];
        let (mut child, _terminal) = start_at_terminal(80, &["info", &capture()], &environment);
        wait_until("its end", || read.exists());
        interrupt(&child);
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(child.try_wait().unwrap(), None, "the command waits for its pager");
        fs::write(&go, "").unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn ctrl_c_before_the_text_is_complete_ends_as_interrupted() {
    for _ in 0..8 {
        let folder = tempfile::tempdir().unwrap();
        let go = folder.path().join("go");
        // The pager reads nothing until the test allows it, and the text exceeds a pipe's capacity.
        let pager = pager(folder.path(), &format!("while [ ! -e {} ]; do sleep 0.02; done", go.display()));
        let environment = [("PAGER", pager.to_str().unwrap())];
        let (mut child, _terminal) = start_at_terminal(200, &["flow", &capture()], &environment);
        wait_until("the pager", || folder.path().join("less").exists());
        let output = format!("/proc/{}/fd/1", child.id());
        let shown = || fs::read_link(&output).unwrap();
        wait_until("the pipe", || shown().to_string_lossy().starts_with("pipe:"));
        interrupt(&child);
        // From here on the command discards its output, and finishes.
        wait_until("the signal", || shown() == Path::new("/dev/null"));
        fs::write(&go, "").unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130));
    }
}
