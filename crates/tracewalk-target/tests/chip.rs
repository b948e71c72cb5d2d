//! A simulated chip with a GDB server (`../shared/sim`).

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

pub(crate) fn shared(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(path)
}

/// A simulated chip.
pub(crate) struct Chip {
    child: Child,
    pub(crate) port: u16,
    folder: tempfile::TempDir,
    pub(crate) elf: PathBuf,
}

impl Chip {
    /// A chip that has run a program, with options of the simulation.
    pub(crate) fn new(chip: &str, program: &str, options: &[&str]) -> Self {
        Self::of(&shared(&format!("sim/chips/{chip}.json")), program, options)
    }

    pub(crate) fn of(chip: &Path, program: &str, options: &[&str]) -> Self {
        Self::through("--gdb", chip, program, options)
    }

    /// A chip with a server of its own, or with a probe for pyOCD.
    pub(crate) fn through(front: &str, chip: &Path, program: &str, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("room for a folder");
        let program = |extension: &str| shared(&format!("corpus/record/programs/{program}.{extension}"));
        let mut command = Command::new("python3");
        let program_of_it =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../tracewalk-target/tests/support/target.py");
        command.arg(program_of_it).arg(shared("sim")).arg(chip);
        command.arg("--run").arg(program("run")).arg("--elf").arg(program("elf")).args([front, "0"]);
        command.arg("--state").arg(folder.path().join("state")).arg("--log").arg(folder.path().join("log"));
        let mut child = command.args(options).stdout(Stdio::piped()).spawn().expect("python3 runs");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe"))
            .read_line(&mut line)
            .expect("it prints its port");
        let port = line.trim().rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
        Self { child, port, folder, elf: program("elf") }
    }

    /// What the simulation says at its end.
    pub(crate) fn state(mut self) -> (Value, String) {
        // The last request has no answer.
        std::thread::sleep(Duration::from_millis(150));
        let id = self.child.id().to_string();
        assert!(Command::new("kill").arg(id).status().expect("kill runs").success());
        self.child.wait().expect("it ends");
        let file =
            |name: &str| std::fs::read_to_string(self.folder.path().join(name)).expect("it was written");
        (serde_json::from_str(&file("state")).expect("JSON"), file("log"))
    }
}

impl Drop for Chip {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The cases of this kind, for the simulation's own server.
pub(crate) fn cases(kind: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(shared("corpus/record/cases.json")).expect("the corpus");
    let cases: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    let is_plain = |case: &Value| case["kind"] == kind && case["front"].is_null();
    cases.into_iter().filter(is_plain).collect()
}

/// The texts of a list; none if there is no list.
pub(crate) fn strings(list: &Value) -> Vec<&str> {
    list.as_array().map_or_else(Vec::new, |list| list.iter().filter_map(Value::as_str).collect())
}
