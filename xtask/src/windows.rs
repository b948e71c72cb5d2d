//! `windows`: runs the command for Windows under wine, and compares what it writes with the command for this system.
//!
//! Both are the whole command. Each command and format runs once, in a folder of its own with a copy of the examples.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::process::{output, target_folder, workspace};
use crate::target::Target;
use crate::{Answer, flag, words};

/// The target that Debian's compiler and wine run here.
const TARGET: &str = "x86_64-pc-windows-gnu";

/// Each command with its example. All formats are asked for; `gdb` and `view` have none.
const COMMANDS: &[(&str, &str)] = &[
    ("info", "m3-etmv3"),
    ("packets", "m33-etmv4"),
    ("flow", "a57-etmv4"),
    ("crash", "m0-crash-mtb"),
    ("itm", "m3-etmv3"),
    ("coverage", "m3-etmv3"),
    ("profile", "a7-etmv3"),
    ("calls", "m3-etmv3"),
    ("timeline", "a7-etmv3"),
    ("interrupts", "a7-etmv3"),
    ("diff", "m3-etmv3"),
    ("counts", "a57-etmv4"),
    ("describe", "m3-etmv3"),
];

/// A command that lacks the arguments of the program to run: wine with a configuration of its own.
///
/// The wine of Debian 12 has no bcryptprimitives.dll, from which Rust's library takes random numbers. Windows 10 has it; here a
/// library of one function stands for it.
pub(crate) fn wine() -> Result<Command, String> {
    let folder = target_folder().join("wine");
    let library = folder.join("bcryptprimitives.dll");
    if !library.is_file() {
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let mut compiler = Command::new("x86_64-w64-mingw32-gcc");
        compiler.arg("-shared").arg("-o").arg(&library);
        output(compiler.arg(workspace().join("xtask/packages/bcryptprimitives.c")).arg("-ladvapi32"))?;
    }
    let mut wine = Command::new("wine");
    if !folder.join("prefix").exists() {
        let mut boot = Command::new("wineboot");
        output(boot.arg("--init").env("WINEPREFIX", folder.join("prefix")).env("WINEDEBUG", "-all"))?;
    }
    wine.env("WINEPREFIX", folder.join("prefix")).env("WINEDEBUG", "-all").env("WINEPATH", &folder);
    Ok(wine)
}

/// Runs the task. `--built` takes the builds that are there; commands that are named are compared instead of all.
pub(crate) fn run() -> Answer {
    let (windows, host) = (Target::installed(TARGET)?, Target::host()?);
    let binary = if flag("--built") {
        target_folder().join(TARGET).join("debug/tracewalk.exe")
    } else {
        windows.build("dev")?
    };
    let reference = target_folder().join("debug/tracewalk");
    let root = target_folder().join("windows");
    let _ = fs::remove_dir_all(&root);
    let run = |target: &Target, binary: &Path| Runs {
        command: (target.clone(), binary.to_owned()),
        root: root.join(target.triple()),
    };
    let (ours, theirs) = (run(&host, &reference), run(&windows, &binary));
    for runs in [&ours, &theirs] {
        runs.prepare()?;
    }
    let mut compared = 0;
    let chosen = words().into_iter().filter(|word| !word.starts_with('-')).collect::<Vec<_>>();
    let is_chosen = |name: &str| chosen.is_empty() || chosen.iter().any(|word| word == name);
    for (name, example) in COMMANDS.iter().filter(|(name, _)| is_chosen(name)) {
        for format in ours.formats(name)? {
            for runs in [&ours, &theirs] {
                runs.once(name, example, &format)?;
            }
            same(&ours.root.join("out"), &theirs.root.join("out"), &format!("{name} --format {format}"))?;
            compared += 1;
        }
    }
    let served = [
        theirs.paths(&ours)?,
        theirs.pager(&ours)?,
        theirs.replaced()?,
        theirs.served()?,
        theirs.interrupted(&ours)?,
    ];
    Ok(format!("{compared} commands with formats give the same bytes; {}", served.join("; ")))
}

/// The status, standard output and standard error of a command.
type Printed = (Option<i32>, Vec<u8>, Vec<u8>);

/// A command that is run in a folder of its own.
struct Runs {
    command: (Target, PathBuf),
    root: PathBuf,
}

impl Runs {
    fn prepare(&self) -> Result<(), String> {
        let examples = workspace().join("testdata/examples");
        fs::create_dir_all(&self.root).map_err(|error| format!("{}: {error}", self.root.display()))?;
        output(Command::new("cp").arg("-r").arg(examples.join(".")).arg(&self.root)).map(drop)
    }

    fn command(&self, words: &[&str]) -> Result<Command, String> {
        let mut command = self.command.0.runs(&self.command.1)?;
        command.args(words).current_dir(&self.root).env("COLUMNS", "100");
        Ok(command)
    }

    /// What a run prints. Statuses 1 and 2 state what was found, and differ in nothing but their number.
    fn printed(&self, words: &[&str]) -> Result<Printed, String> {
        let ran = self.command(words)?.stdin(Stdio::null()).output();
        let ran = ran.map_err(|error| format!("{}: {error}", self.command.1.display()))?;
        match ran.status.code() {
            Some(0..=2) => Ok((ran.status.code(), ran.stdout, ran.stderr)),
            _ => Err(format!("{words:?}: {}\n{}", ran.status, String::from_utf8_lossy(&ran.stderr))),
        }
    }

    /// The formats of a command, from the message about one that does not exist.
    fn formats(&self, name: &str) -> Result<Vec<String>, String> {
        let (_, _, message) = self.printed(&[name, "x", "--format", "?"])?;
        let message = String::from_utf8_lossy(&message);
        let listed = message.split_once("[possible values: ").and_then(|(_, rest)| rest.split_once(']'));
        let (listed, _) = listed.ok_or_else(|| format!("{name}: found no formats in {message}"))?;
        Ok(listed.replace('\n', " ").split(',').map(|format| format.trim().to_owned()).collect())
    }

    /// Writes a format to `out`, and what is printed to files beside it. In the capture's folder no message has a separator.
    fn once(&self, name: &str, example: &str, format: &str) -> Result<(), String> {
        let out = self.root.join("out");
        let _ = fs::remove_dir_all(&out);
        let failed = |error: std::io::Error| format!("{name} --format {format}: {error}");
        fs::create_dir_all(&out).map_err(failed)?;
        let captures = if name == "diff" { &["capture.toml"; 2][..] } else { &["capture.toml"] };
        // A description names files that are beside or below it.
        let result = if name == "describe" { "result" } else { "../out/result" };
        let words = [&[name], captures, &["--format", format, "-o", result]].concat();
        let mut command = self.command(&words)?;
        let ran =
            command.current_dir(self.root.join(example)).stdin(Stdio::null()).output().map_err(failed)?;
        if name == "describe" {
            fs::rename(self.root.join(example).join(result), out.join("result")).map_err(failed)?;
        }
        fs::write(out.join("printed"), &ran.stdout).map_err(failed)?;
        // A thread of wine's sometimes fails while the process ends, which changes neither result nor status.
        let messages = String::from_utf8_lossy(&ran.stderr);
        let messages = messages.lines().filter(|line| !line.starts_with("wine: ")).collect::<Vec<_>>();
        fs::write(out.join("messages"), messages.join("\n")).map_err(failed)?;
        fs::write(out.join("status"), format!("{:?}", ran.status.code())).map_err(failed)?;
        if format == "none" || out.join("result").exists() {
            return Ok(());
        }
        Err(format!("{name} --format {format}: found no result\n{}", String::from_utf8_lossy(&ran.stderr)))
    }

    /// Paths with drive letters and backslashes, in options and in a description.
    fn paths(&self, reference: &Self) -> Answer {
        let (_, expected, _) = reference.printed(&["flow", "m3-etmv3/capture.toml", "--format", "runs"])?;
        let absolute = format!("Z:{}", self.root.display());
        let backslashes = absolute.replace('/', "\\");
        for path in [absolute, backslashes.clone(), format!("\\\\?\\{backslashes}"), ".".to_owned()] {
            let separator = if path.contains('\\') { '\\' } else { '/' };
            let capture = format!("{path}{separator}m3-etmv3{separator}capture.toml");
            let (status, printed, messages) = self.printed(&["flow", &capture, "--format", "runs"])?;
            if status != Some(0) || printed != expected {
                return Err(format!(
                    "{capture}: found another flow, status {status:?}\n{}",
                    String::from_utf8_lossy(&messages)
                ));
            }
        }
        // A bare capture is mapped, and its image is named with a drive letter before an address.
        let [capture, image] = ["trace.bin", "m3.elf"].map(|file| format!("{backslashes}\\m3-etmv3\\{file}"));
        let words = [
            "flow",
            &capture,
            "--image",
            &image,
            "--format",
            "runs",
            "-o",
            &format!("{backslashes}\\flow.runs"),
        ];
        let (status, ..) = self.printed(&words)?;
        let written = fs::read(self.root.join("flow.runs")).unwrap_or_default();
        let (_, bare, _) = reference.printed(&[
            "flow",
            "m3-etmv3/trace.bin",
            "--image",
            "m3-etmv3/m3.elf",
            "--format",
            "runs",
        ])?;
        if status != Some(0) || written != bare {
            return Err(format!("{capture} with --image: found another flow, status {status:?}"));
        }
        Ok("paths with drive letters and backslashes".to_owned())
    }

    /// A pager that does not exist does not matter.
    fn pager(&self, reference: &Self) -> Answer {
        let words = ["flow", "m3-etmv3/capture.toml", "--last", "5"];
        let (_, expected, _) = reference.printed(&words)?;
        let ran = self.command(&words)?.env("PAGER", "no-such-pager").output();
        let ran = ran.map_err(|error| error.to_string())?;
        if ran.status.success() && ran.stdout == expected {
            Ok("no pager".to_owned())
        } else {
            Err(format!("with an absent pager: {}", String::from_utf8_lossy(&ran.stderr)))
        }
    }

    /// A file that another process has mapped is replaced whole, or stays whole.
    fn replaced(&self) -> Answer {
        let file = self.root.join("mapped.bin");
        let bytes = fs::read(self.root.join("m3-etmv3/trace.bin")).map_err(|error| error.to_string())?;
        fs::write(&file, &bytes).map_err(|error| error.to_string())?;
        let mut holder = Ended(
            self.command(&[
                "gdb",
                "mapped.bin",
                "--image",
                "m3-etmv3/m3.elf",
                "--listen",
                "127.0.0.1:23946",
            ])?
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())?,
        );
        connect(23946)?;
        let (status, _, messages) =
            self.printed(&["flow", "m3-etmv3/capture.toml", "--format", "runs", "-o", "mapped.bin"])?;
        holder.end();
        let expected = fs::read(self.root.join("m3-etmv3/runs.txt")).map_err(|error| error.to_string())?;
        let now = fs::read(&file).map_err(|error| error.to_string())?;
        let is_whole = if status == Some(0) { now == expected } else { now == bytes };
        let left = fs::read_dir(&self.root).map_err(|error| error.to_string())?.flatten();
        let left = left.filter(|entry| entry.file_name().to_string_lossy().starts_with(".tracewalk")).count();
        if !is_whole || left > 0 {
            return Err(format!(
                "mapped.bin: status {status:?}, {left} files left\n{}",
                String::from_utf8_lossy(&messages)
            ));
        }
        Ok(format!("a mapped file is {}", if status == Some(0) { "replaced" } else { "not replaced" }))
    }

    /// The servers answer.
    fn served(&self) -> Answer {
        let mut gdb = Ended(
            self.command(&["gdb", "m3-etmv3/capture.toml", "--listen", "127.0.0.1:23947"])?
                .stderr(Stdio::null())
                .stdout(Stdio::null())
                .spawn()
                .map_err(|error| error.to_string())?,
        );
        let mut stream = connect(23947)?;
        let mut answer = [0; 64];
        let failed = |error: std::io::Error| format!("gdb: {error}");
        stream.write_all(b"+$qSupported#37").map_err(failed)?;
        let length = stream.read(&mut answer).map_err(failed)?;
        gdb.end();
        if answer[..length].first() != Some(&b'+') {
            return Err(format!("gdb: found the answer {:?}", String::from_utf8_lossy(&answer[..length])));
        }
        let (status, ..) = self.printed(&["view", "m3-etmv3/capture.toml", "-o", "page.html"])?;
        let page = fs::read_to_string(self.root.join("page.html")).unwrap_or_default();
        if status != Some(0) || !page.contains("</html>") {
            return Err(format!("view: found no page, status {status:?}"));
        }
        Ok("gdb and view answer".to_owned())
    }

    /// Ctrl-C ends a server, and a capture that is still arriving, whose output is then complete.
    fn interrupted(&self, reference: &Self) -> Answer {
        let listens = ["gdb", "m3-etmv3/capture.toml", "--listen", "127.0.0.1:23948"];
        let follows = [
            "itm",
            "m3-etmv3/trace.bin",
            "--source",
            "1=itm",
            "--container",
            "frames",
            "--follow",
            "-o",
            "followed",
        ];
        let mut found = Vec::new();
        for runs in [reference, self] {
            // The system itself ends it, wine with status 0.
            runs.interrupt(&listens, &mut || TcpStream::connect("127.0.0.1:23948").is_ok())?;
            let file = runs.root.join("followed");
            let _ = fs::remove_file(&file);
            let is_started = || {
                let entries = fs::read_dir(&runs.root).into_iter().flatten().flatten();
                entries
                    .map(|entry| entry.file_name())
                    .any(|name| name.to_string_lossy().starts_with(".tracewalk"))
            };
            let followed = runs.interrupt(&follows, &mut || is_started())?;
            found.push((followed, fs::read(&file).unwrap_or_default()));
        }
        if found[0] != found[1] || found[0].1.is_empty() {
            return Err(format!("Ctrl-C: found {:?} here and {:?} under wine", found[0], found[1]));
        }
        Ok("Ctrl-C ends a server and live trace".to_owned())
    }

    /// The status of a command in a terminal of its own, in which Ctrl-C is pressed when `is_ready`.
    fn interrupt(&self, words: &[&str], is_ready: &mut dyn FnMut() -> bool) -> Result<Option<i32>, String> {
        let command = self.command(words)?;
        let line = [command.get_program()].into_iter().chain(command.get_args());
        let line = line.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
        let mut script = Command::new("script");
        script.args(["--quiet", "--return", "--command", &line, "/dev/null"]).current_dir(&self.root);
        script.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let script = script.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut script = Ended(script.map_err(|error| format!("script: {error}"))?);
        // After the handler is set; the last part of the second is for wine's terminal.
        let is_ready = (0..100).any(|_| {
            sleep(Duration::from_millis(200));
            is_ready()
        });
        sleep(Duration::from_secs(1));
        let keys = script.0.stdin.as_mut().map(|keys| keys.write_all(b"\x03"));
        if !is_ready || !matches!(keys, Some(Ok(()))) {
            return Err(format!("{words:?}: found no command that waits"));
        }
        for _ in 0..100 {
            if let Some(status) = script.0.try_wait().map_err(|error| format!("script: {error}"))? {
                return Ok(status.code());
            }
            sleep(Duration::from_millis(200));
        }
        Err(format!("{words:?}: runs on after Ctrl-C"))
    }
}

/// A process that is ended with its owner.
struct Ended(Child);

impl Ended {
    fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        self.end();
    }
}

/// Waits until a server listens.
fn connect(port: u16) -> Result<TcpStream, String> {
    for _ in 0..100 {
        if let Ok(stream) = TcpStream::connect(("127.0.0.1", port)) {
            let timeout = stream.set_read_timeout(Some(Duration::from_secs(10)));
            return timeout.map(|()| stream).map_err(|error| error.to_string());
        }
        sleep(Duration::from_millis(200));
    }
    Err(format!("found no server at port {port}"))
}

/// Compares two folders, apart from the separators in paths and the time in Cobertura's format.
fn same(ours: &Path, theirs: &Path, what: &str) -> Result<(), String> {
    for folder in [ours, theirs] {
        let slashes =
            ["-type", "f", "-exec", "sed", "-i", r#"s|\\\\*|/|g; s|timestamp="[0-9]*"||"#, "{}", "+"];
        output(Command::new("find").arg(folder).args(slashes).env("LC_ALL", "C"))?;
    }
    output(Command::new("diff").arg("-r").arg(ours).arg(theirs))
        .map(drop)
        .map_err(|found| format!("{what}: {}", found.chars().take(2000).collect::<String>()))
}
