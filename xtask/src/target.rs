//! The systems that the project is built for, and how their programs are built and run here.

use std::path::Path;
use std::process::Command;

use crate::process::{output, target_folder, workspace};
use crate::python;

/// The oldest GNU C library that the programs for Linux run with: that of manylinux2014.
pub(crate) const GLIBC: &str = "2.17";

/// A target of the compiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target(String);

impl Target {
    /// The compiler's own.
    pub(crate) fn host() -> Result<Self, String> {
        let printed = output(Command::new("rustc").arg("-vV"))?;
        let host = printed.lines().find_map(|line| line.strip_prefix("host: "));
        host.map(|triple| Self(triple.to_owned()))
            .ok_or_else(|| "rustc -vV: found no line with the host".to_owned())
    }

    /// A target by its triple; its standard library is installed if necessary.
    pub(crate) fn installed(triple: &str) -> Result<Self, String> {
        output(Command::new("rustup").args(["--quiet", "target", "add", triple]))?;
        Ok(Self(triple.to_owned()))
    }

    /// A target that nothing is built for.
    #[cfg(test)]
    pub(crate) fn named(triple: &str) -> Self {
        Self(triple.to_owned())
    }

    pub(crate) fn triple(&self) -> &str {
        &self.0
    }

    pub(crate) fn is_windows(&self) -> bool {
        self.0.contains("windows")
    }

    /// Whether zig links its programs: against an old C library, and for other processors.
    pub(crate) fn is_linked_by_zig(&self) -> bool {
        cfg!(target_os = "linux") && self.0.ends_with("linux-gnu")
    }

    /// The name of Debian's architecture.
    pub(crate) fn debian(&self) -> Option<&'static str> {
        match self.0.as_str() {
            "x86_64-unknown-linux-gnu" => Some("amd64"),
            "aarch64-unknown-linux-gnu" => Some("arm64"),
            _ => None,
        }
    }

    /// The file name of a program.
    pub(crate) fn program(&self, name: &str) -> String {
        if self.is_windows() { format!("{name}.exe") } else { name.to_owned() }
    }

    /// Builds the whole command in a profile, and returns its file.
    pub(crate) fn build(&self, profile: &str) -> Result<std::path::PathBuf, String> {
        let mut cargo = if self.is_linked_by_zig() {
            let mut zigbuild = Command::new("cargo-zigbuild");
            zigbuild.arg("zigbuild").args(["--target", &format!("{}.{GLIBC}", self.0)]);
            python::with_builders(&mut zigbuild)?;
            zigbuild
        } else {
            let mut cargo = Command::new(env!("CARGO"));
            cargo.arg("build").args(["--target", &self.0]);
            cargo
        };
        cargo.args(["--quiet", "--locked", "--package", "tracewalk-cli", "--features", "full"]);
        if profile == crate::dist::OF_COMMAND && self.0.contains("linux") {
            // They are for unwinding; Windows refuses to do without.
            cargo.env("RUSTFLAGS", "-Cforce-unwind-tables=no");
        }
        output(cargo.args(["--profile", profile]).current_dir(workspace()))?;
        let folder = if profile == "dev" { "debug" } else { profile };
        Ok(target_folder().join(&self.0).join(folder).join(self.program("tracewalk")))
    }

    /// Runs a program, for another system with an emulator: wine or QEMU. Both are Debian's.
    pub(crate) fn runs(&self, program: &Path) -> Result<Command, String> {
        let has_emulator = cfg!(target_os = "macos") && self.0.ends_with("apple-darwin");
        if has_emulator || *self == Self::host()? {
            return Ok(Command::new(program));
        }
        let mut command = match self.0.as_str() {
            "aarch64-unknown-linux-gnu" => {
                let mut qemu = Command::new("qemu-aarch64");
                qemu.args(["-L", "/usr/aarch64-linux-gnu"]);
                qemu
            }
            "x86_64-pc-windows-gnu" => crate::windows::wine()?,
            other => return Err(format!("found {other}, whose programs do not run here")),
        };
        command.arg(program);
        Ok(command)
    }
}
