//! Installs what is distributed, and tries it there.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::copy;
use crate::process::output;
use crate::target::Target;
use crate::workspace;

/// A place with the example that README.md begins with, and one whose flow is known.
pub(super) struct Trial {
    root: PathBuf,
}

impl Trial {
    /// A folder with nothing but the examples.
    pub(super) fn new(root: PathBuf) -> Result<Self, String> {
        let _ = fs::remove_dir_all(&root);
        for example in ["m0-crash-mtb", "m3-etmv3"] {
            let from = workspace().join("testdata/examples").join(example);
            let failed = |error: std::io::Error| format!("{}: {error}", from.display());
            for file in fs::read_dir(&from).map_err(failed)? {
                let file = file.map_err(failed)?.path();
                copy(&file, &root.join(example).join(file.file_name().unwrap_or_default()))?;
            }
        }
        Ok(Self { root })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Tries the command in this folder with `run`, a command that lacks its arguments.
    pub(super) fn of(&self, run: &dyn Fn() -> Result<Command, String>) -> Result<String, String> {
        let run = |arguments: &[&str]| {
            let mut command = run()?;
            output(command.args(arguments).arg("--quiet").current_dir(&self.root))
        };
        let version = run(&["--version"])?;
        let crash = run(&["crash", "m0-crash-mtb/capture.toml"])?;
        if !crash.contains("HardFault at 0x206f6f74") {
            return Err(format!(
                "{}: found another crash than README.md shows:\n{crash}",
                self.root.display()
            ));
        }
        let runs = self.root.join("m3-etmv3/runs.txt");
        let expected = fs::read_to_string(&runs).map_err(|error| format!("{}: {error}", runs.display()))?;
        if run(&["flow", "m3-etmv3/capture.toml", "--format", "runs"])? != expected {
            return Err(format!("{}: found another flow than the example has", self.root.display()));
        }
        // A feature of the full build only.
        run(&["coverage", "m3-etmv3/capture.toml", "--format", "html", "-o", "coverage.html"])?;
        let page = fs::read_to_string(self.root.join("coverage.html")).unwrap_or_default();
        if !page.contains("</html>") || run(&["help", "crash"])?.len() < 10_000 {
            return Err(format!("{}: found no page of coverage or no help", self.root.display()));
        }
        Ok(format!("{} tried", version.trim()))
    }

    /// Tries a command that is installed in this folder, and needs no more than what the target's system has.
    pub(super) fn of_installed(&self, target: &Target, program: &str) -> Result<String, String> {
        let binary = self.root.join(program);
        if !cfg!(target_os = "linux") || *target != Target::host()? {
            return self.of(&|| target.runs(&binary));
        }
        let needed = output(Command::new("ldd").arg(&binary))?;
        for library in needed.split_whitespace().filter(|word| word.starts_with('/')) {
            copy(Path::new(library), &self.root.join(library.trim_start_matches('/')))?;
        }
        let inside = format!("/{program}");
        self.of(&|| {
            let mut command = within(&self.root);
            command.arg(&inside).env_remove("HOME");
            Ok(command)
        })
    }
}

/// A command that runs a program with `root` as its root: with `chroot` for the superuser, otherwise in its
/// own namespace.
fn within(root: &Path) -> Command {
    let is_root = output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    let mut command = Command::new(if is_root { "chroot" } else { "unshare" });
    if !is_root {
        command.args(["--map-root-user", "--root"]);
    }
    command.arg::<&OsStr>(root.as_ref());
    command
}
