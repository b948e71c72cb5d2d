//! Outputs: none destroys an input, appears incomplete under its name, or leaves anything else in the folder.

use std::fs;
use std::path::PathBuf;

use crate::support::{example, run, tracewalk};

/// A folder with a copy of an example, in which commands run.
struct Folder(tempfile::TempDir);

impl Folder {
    fn with(name: &str) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        for file in fs::read_dir(example(name)).unwrap() {
            let file = file.unwrap().path();
            fs::copy(&file, folder.at(file.file_name().unwrap().to_str().unwrap())).unwrap();
        }
        folder
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// All files with their contents.
    fn contents(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let files = fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().path());
        let mut all =
            files.map(|path| (path.clone(), fs::read(&path).unwrap_or_default())).collect::<Vec<_>>();
        all.sort();
        all
    }

    fn run(&self, arguments: &[&str]) -> (i32, Vec<u8>, String) {
        let output = tracewalk().current_dir(self.0.path()).args(arguments).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), output.stdout, errors)
    }

    /// A command that is refused before it decodes anything, and changes nothing.
    fn refuses(&self, arguments: &[&str]) {
        let before = self.contents();
        let (status, printed, errors) = self.run(arguments);
        assert_eq!((status, printed.len()), (2, 0), "{arguments:?}: {errors}");
        assert_eq!(errors.lines().filter(|line| line.starts_with("error:")).count(), 1, "{errors}");
        assert!(self.contents() == before, "{arguments:?}: {errors}");
    }
}

const IMAGE: [&str; 2] = ["--image", "m3.elf"];

#[test]
fn an_output_that_is_an_input_is_refused_whatever_it_is_called() {
    let folder = Folder::with("m3-etmv3");
    let [capture, image] = ["trace.bin", "m3.elf"].map(|name| folder.at(name));
    for command in ["timeline", "coverage", "profile", "interrupts", "describe"] {
        for output in ["trace.bin", "m3.elf", "./trace.bin", capture.to_str().unwrap()] {
            folder.refuses(&[&[command, "trace.bin", "-o", output][..], &IMAGE].concat());
        }
        // The files that a description names, and the description itself.
        for output in ["trace.bin", "m3.elf", "capture.toml"] {
            folder.refuses(&[command, "capture.toml", "-o", output]);
            folder.refuses(&[command, ".", "-o", output]);
        }
    }
    for command in ["coverage", "profile", "interrupts"] {
        folder.refuses(&[command, "capture.toml", "--save", "trace.bin"]);
    }
    folder.refuses(&["diff", "capture.toml", "trace.bin", "-o", "trace.bin"]);
    for option in ["--svd", "--registers"] {
        fs::write(folder.at("about"), "").unwrap();
        folder.refuses(&["timeline", "capture.toml", option, "about", "-o", "about"]);
    }
    folder.refuses(&["coverage", "capture.toml", "--diff", "about", "--format", "lcov", "-o", "about"]);
    folder.refuses(&["flow", "capture.toml", "--provenance=trace.bin"]);
    let provenance = format!("--provenance={}", image.display());
    folder.refuses(&["flow", "capture.toml", &provenance]);
}

#[cfg(unix)]
#[test]
fn links_do_not_hide_an_input() {
    let folder = Folder::with("m3-etmv3");
    std::os::unix::fs::symlink("trace.bin", folder.at("link")).unwrap();
    fs::hard_link(folder.at("trace.bin"), folder.at("name")).unwrap();
    std::os::unix::fs::symlink(".", folder.at("here")).unwrap();
    for output in ["link", "name", "here/trace.bin", "here/here/link"] {
        folder.refuses(&["timeline", "capture.toml", "-o", output]);
        folder.refuses(&["describe", output, "-o", "trace.bin"]);
    }
    // Standard input may be a file, and so an input to protect.
    let before = folder.contents();
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("tracewalk"));
    command.current_dir(folder.0.path()).args(["timeline", "-", "-o", "trace.bin"]);
    command.stdin(fs::File::open(folder.at("trace.bin")).unwrap());
    assert_eq!(command.output().unwrap().status.code(), Some(2));
    assert!(folder.contents() == before);
}

#[test]
fn source_files_that_the_program_leads_to_are_not_overwritten() {
    let folder = Folder::with("m3-etmv3");
    fs::create_dir(folder.at("src")).unwrap();
    fs::write(folder.at("other.c"), "int other;").unwrap();
    assert_eq!(folder.run(&["coverage", "capture.toml", "--save", "saved"]).0, 0);
    let refuses = |arguments: &[&str], source: &str| {
        fs::write(folder.at(source), "int main;").unwrap();
        folder.refuses(arguments);
        assert_eq!(fs::read_to_string(folder.at(source)).unwrap(), "int main;");
        fs::remove_file(folder.at(source)).unwrap();
    };
    // A source beside the image, whether or not the command reads it.
    for command in ["timeline", "coverage", "profile", "interrupts", "describe"] {
        refuses(&[command, "capture.toml", "-o", "main.c"], "main.c");
    }
    refuses(&["coverage", "capture.toml", "--format", "html", "-o", "src/../main.c"], "main.c");
    refuses(&["coverage", "saved", "--image", "m3.elf", "-o", "main.c"], "main.c");
    refuses(&["diff", "capture.toml", "trace.bin", "-o", "main.c"], "main.c");
    refuses(&["profile", "capture.toml", "--save", "main.c"], "main.c");
    refuses(&["flow", "capture.toml", "--provenance=main.c"], "main.c");
    // A source in a folder that the user names.
    let elsewhere = ["capture.toml", "--src-dir", "src", "-o", "src/main.c"];
    refuses(&[&["coverage", "--format", "lcov"][..], &elsewhere].concat(), "src/main.c");
    refuses(&[&["profile"][..], &elsewhere].concat(), "src/main.c");
    // A file that the program does not refer to, and a new name, are both allowed.
    for output in ["other.c", "main.c"] {
        let (status, _, errors) = folder.run(&["coverage", "capture.toml", "-o", output]);
        assert_eq!(status, 0, "{errors}");
    }
}

#[test]
fn a_mapped_capture_is_not_cut_under_the_one_that_reads_it() {
    let folder = Folder::with("m3-etmv3");
    let trace = fs::read(folder.at("trace.bin")).unwrap();
    fs::write(folder.at("large.bin"), trace.repeat((5 << 20) / trace.len() + 1)).unwrap();
    folder.refuses(&["timeline", "large.bin", "-o", "large.bin"]);
    folder.refuses(&["coverage", "large.bin", "--image", "m3.elf", "--save", "large.bin"]);
}

#[test]
fn the_files_of_a_snapshot_are_inputs() {
    let folder = Folder::with("m3-etmv3");
    assert_eq!(folder.run(&["describe", "--format", "ds5", "capture.toml", "-o", "made"]).0, 0);
    let made = fs::read_dir(folder.at("made")).unwrap().map(|file| file.unwrap().path()).collect::<Vec<_>>();
    assert!(made.len() >= 5, "{made:?}");
    for file in made {
        let before = fs::read(&file).unwrap();
        let file = file.to_str().unwrap();
        folder.refuses(&["profile", "made", "-o", file]);
        folder.refuses(&["profile", "made/snapshot.ini", "-o", file]);
        assert!(fs::read(file).unwrap() == before, "{file}");
    }
}

#[test]
fn saved_files_and_other_outputs_are_not_overwritten() {
    let folder = Folder::with("m3-etmv3");
    for saved in ["one", "two"] {
        assert_eq!(folder.run(&["coverage", "capture.toml", "--save", saved]).0, 0);
    }
    folder.refuses(&["coverage", "one", "two", "--save", "two"]);
    folder.refuses(&["coverage", "one", "--image", "m3.elf", "--save", "one"]);
    folder.refuses(&["coverage", "capture.toml", "-o", "new", "--format", "json", "--save", "new"]);
    folder.refuses(&["coverage", "capture.toml", "-o", "new", "--provenance=new"]);
    folder.refuses(&["coverage", "capture.toml", "--format", "json", "--save", "-"]);
    folder.refuses(&["flow", "capture.toml", "--provenance=-"]);
}

#[test]
fn a_place_that_cannot_be_written_to_is_refused_before_the_work() {
    let folder = Folder::with("m3-etmv3");
    fs::write(folder.at("file"), "").unwrap();
    fs::create_dir(folder.at("folder")).unwrap();
    for output in ["none/result", "file/result", "folder"] {
        // The message does not show the temporary file's name, which the user does not know.
        let errors = folder.run(&["coverage", "capture.toml", "-o", output]).2;
        assert!(errors.contains(output) && !errors.contains(".tracewalk-"), "{errors}");
        // The output is checked before the capture, which is missing.
        let (_, _, errors) = folder.run(&["timeline", "missing.bin", "-o", output]);
        assert!(errors.contains(output) && !errors.contains("missing.bin"), "{errors}");
        folder.refuses(&["timeline", "capture.toml", "-o", output]);
        folder.refuses(&["coverage", "capture.toml", "--save", output]);
        folder.refuses(&["flow", "capture.toml", &format!("--provenance={output}")]);
    }
    folder.refuses(&["flow", "capture.toml", "--provenance"]);
    folder.refuses(&["timeline", "capture.toml", "--format", "ctf", "-o", "."]);
    folder.refuses(&["timeline", "capture.toml", "--format", "ctf", "-o", "-"]);
    folder.refuses(&["describe", "--format", "ds5", "capture.toml", "-o", "."]);
}

#[test]
fn a_command_that_fails_leaves_what_stood_there_and_nothing_else() {
    let folder = Folder::with("m3-etmv3");
    fs::write(folder.at("result"), "as before").unwrap();
    for command in [
        &["timeline", "missing.bin", "-o", "result"][..],
        &["timeline", "capture.toml", "--unit", "time", "-o", "result"],
        &["timeline", "capture.toml", "--unit", "time", "--format", "ctf", "-o", "made"],
        &["describe", "--format", "ds5", "missing.bin", "-o", "made"],
        &["coverage", "trace.bin", "-o", "result"],
        &["counts", "missing.twcounts", "--save", "result"],
    ] {
        folder.refuses(command);
    }
}

/// The shell limits the size of files, as a full disk does.
#[cfg(unix)]
#[test]
fn where_there_is_no_room_the_message_names_the_output() {
    let folder = Folder::with("m3-etmv3");
    fs::write(folder.at("result"), "as before").unwrap();
    let before = folder.contents();
    for command in [
        &["timeline", "capture.toml", "-o", "result"][..],
        &["coverage", "capture.toml", "--format", "json", "-o", "new"],
        &["profile", "capture.toml", "--save", "result"],
    ] {
        let mut shell = std::process::Command::new("sh");
        shell.current_dir(folder.0.path()).args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$@\"", "sh"]);
        shell.arg(assert_cmd::cargo::cargo_bin!("tracewalk")).args(command);
        let output = shell.output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{errors}");
        let names_output = errors.contains(command.last().unwrap()) && !errors.contains(".tracewalk-");
        assert!(names_output, "{errors}");
        assert!(folder.contents() == before, "{errors}");
    }
}

#[test]
fn a_dash_is_standard_output_everywhere() {
    let folder = Folder::with("m3-etmv3");
    let before = folder.contents();
    assert_eq!(folder.run(&["coverage", "capture.toml", "--save", "saved"]).0, 0);
    for command in ["coverage", "profile", "timeline", "interrupts", "describe"] {
        let printed = folder.run(&[command, "capture.toml"]);
        assert_eq!(folder.run(&[command, "capture.toml", "-o", "-"]), printed, "{command}");
        #[cfg(target_os = "linux")]
        assert_eq!(folder.run(&[command, "capture.toml", "-o", "/dev/stdout"]), printed, "{command}");
    }
    let saved = fs::read(folder.at("saved")).unwrap();
    assert!(folder.run(&["coverage", "capture.toml", "--save", "-"]).1 == saved);
    assert!(folder.run(&["coverage", "saved", "--save", "-"]).1 == saved);
    let (status, text, _) = folder.run(&["coverage", "capture.toml", "-o", "new", "--provenance=-"]);
    let provenance: serde_json::Value = serde_json::from_slice(&text).unwrap();
    assert_eq!((status, provenance["results"][0]["name"].as_str()), (0, Some("new")));
    for made in ["new", "saved"] {
        fs::remove_file(folder.at(made)).unwrap();
    }
    assert!(folder.contents() == before);
}

/// The capture comes through a pipe, so that the command is still running when the signal comes.
#[cfg(target_os = "linux")]
#[test]
fn a_signal_leaves_neither_half_an_output_nor_a_temporary_file() {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    let folder = Folder::with("m3-etmv3");
    fs::write(folder.at("result"), "as before").unwrap();
    let before = folder.contents();
    for (signal, times) in [("-INT", 2), ("-TERM", 2)] {
        let mut child = Command::new(assert_cmd::cargo::cargo_bin!("tracewalk"))
            .current_dir(folder.0.path())
            .args([
                "timeline",
                "-",
                "--image",
                "m3.elf",
                "--source",
                "etmv3,cpu=cortex-m3",
                "--container",
                "raw",
            ])
            .args(["--unit", "instructions", "-o", "result"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut pipe = child.stdin.take().unwrap();
        pipe.write_all(&[0; 1 << 16]).unwrap();
        // The command is running as soon as it has a temporary file.
        let is_at_work = (0..1000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            folder.contents().len() > before.len()
        });
        assert!(is_at_work);
        for _ in 0..times {
            let id = child.id().to_string();
            assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        child.wait().unwrap();
        drop(pipe);
        // If the first signal ended the stream before the second one came, the result is complete.
        assert_eq!(folder.contents().len(), before.len(), "{signal}");
        let result = fs::read_to_string(folder.at("result")).unwrap();
        assert!(result == "as before" || result.ends_with('\n'), "{signal}: {result}");
        fs::write(folder.at("result"), "as before").unwrap();
    }
}

/// Every command with formats: `none` has the status and notices of the text format, and prints nothing.
#[test]
fn none_does_the_work_and_prints_nothing() {
    let example = |name| example(name).to_str().unwrap().to_owned();
    let itm = Folder::with("m3-etmv3");
    let bytes = itm.at("itm.bin");
    fs::write(&bytes, [0, 0, 0, 0, 0, 0x80, 0x01, b'a', 0x01, b'b']).unwrap();
    let bytes = bytes.to_str().unwrap();
    let (m3, crash) = (example("m3-etmv3"), example("m0-crash-mtb"));
    let commands = [
        vec!["info", &m3],
        vec!["flow", &m3],
        vec!["packets", &m3],
        vec!["itm", bytes, "--container", "raw", "--source", "itm"],
        vec!["coverage", &m3],
        vec!["profile", &m3],
        vec!["calls", &m3],
        vec!["calls", &m3, "--fold", "chains"],
        vec!["timeline", &m3],
        vec!["interrupts", &m3],
        vec!["crash", &crash],
        vec!["diff", &m3, &m3],
    ];
    for command in commands {
        let text = run(&command);
        let none = run(command.iter().chain(&["--format", "none"]));
        assert_eq!(none.stdout.len(), 0, "{command:?}");
        assert_eq!((none.status, &none.stderr), (text.status, &text.stderr), "{command:?}");
        assert!(!text.stdout.is_empty() && text.status != 2, "{command:?}: {}", text.stderr);
    }
}
