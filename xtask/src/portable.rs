//! `portable`: runs the core's tests as a 32-bit and as a big-endian processor.
//!
//! If the toolchain has the target's library (`rustup target add`), the task uses it. If not, Debian has a
//! compiler together with the library's sources (`rust-web-src`), from which `cargo -Zbuild-std` builds the
//! library for any target whose linker is installed, which takes minutes. Those packages are unpacked under
//! the target folder rather than installed, because they would conflict with the toolchain in use. Programs
//! are linked statically, so that they run without the target's C library.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::output;
use crate::{Answer, Outcome, target_folder, workspace};

struct Target {
    triple: &'static str,
    about: &'static str,
    linker: &'static str,
    /// The Debian packages that contain the linker.
    packages: &'static str,
    /// The commands that can run the target's programs, of which the first installed one is used; empty if
    /// this machine runs them itself.
    runners: &'static [&'static str],
}

const TARGETS: &[Target] = &[
    Target {
        triple: "i686-unknown-linux-gnu",
        about: "32 bits",
        linker: "i686-linux-gnu-gcc",
        packages: "gcc-i686-linux-gnu libc6-dev-i386-cross",
        runners: &[],
    },
    Target {
        triple: "s390x-unknown-linux-gnu",
        about: "big-endian",
        linker: "s390x-linux-gnu-gcc",
        packages: "gcc-s390x-linux-gnu libc6-dev-s390x-cross",
        runners: &["qemu-s390x", "qemu-s390x-static"],
    },
];

/// The compiler, the library for this machine (for build scripts and macros), and the library's sources. The
/// package of the compiler's own libraries, on which the second depends, has the version in its name.
const PACKAGES: [&str; 3] = ["rustc-web", "libstd-rust-web-dev", "rust-web-src"];

/// Runs the task.
pub(crate) fn run() -> Answer {
    let wanted = std::env::args().skip(2).collect::<Vec<_>>();
    if let Some(unknown) = wanted.iter().find(|name| TARGETS.iter().all(|target| target.triple != **name)) {
        let known = TARGETS.iter().map(|target| target.triple).collect::<Vec<_>>().join(" ");
        return Err(format!("found target {unknown:?}, expected one of {known}"));
    }
    let targets =
        TARGETS.iter().filter(|target| wanted.is_empty() || wanted.iter().any(|name| name == target.triple));
    let tools = match targets.map(Tools::find).collect::<Result<Vec<_>, _>>() {
        Ok(tools) => tools,
        Err(missing) => return Ok(Outcome::Skipped(missing)),
    };
    let mut done = Vec::new();
    for tools in &tools {
        let Target { triple, about, .. } = tools.target;
        let library = match Library::find(triple) {
            Ok(library) => library,
            Err(missing) => return Ok(Outcome::Skipped(missing)),
        };
        tools.test(&library).map_err(|error| format!("{triple}: {error}"))?;
        done.push(format!("the core's tests pass on {triple} ({about})"));
    }
    Ok(Outcome::Done(done.join("\n")))
}

/// A target, and the command that runs its programs.
struct Tools {
    target: &'static Target,
    runner: Option<&'static str>,
}

impl Tools {
    fn find(target: &'static Target) -> Result<Self, String> {
        if !answers(target.linker) {
            return Err(format!("found no {}, which is in Debian's {}", target.linker, target.packages));
        }
        let runner = target.runners.iter().copied().find(|runner| answers(runner));
        if runner.is_none() && !target.runners.is_empty() {
            return Err(format!("found none of {:?}, which are in Debian's qemu-user", target.runners));
        }
        Ok(Self { target, runner })
    }

    /// Builds the core's tests and their dependencies, and runs them.
    fn test(&self, library: &Library) -> Result<(), String> {
        let variable = |name: &str| {
            let triple = self.target.triple.replace('-', "_").to_uppercase();
            format!("CARGO_TARGET_{triple}_{name}")
        };
        let mut command = Command::new(env!("CARGO"));
        command
            .args(["test", "--quiet", "--package", "tracewalk", "--lib", "--tests", "--no-fail-fast"])
            .args(["--target", self.target.triple])
            .env_remove("RUSTFLAGS")
            .env(variable("LINKER"), self.target.linker)
            .env(variable("RUSTFLAGS"), "-Ctarget-feature=+crt-static")
            .current_dir(workspace());
        library.bring_into(&mut command);
        if let Some(runner) = self.runner {
            command.env(variable("RUNNER"), runner);
        }
        let status = command.status().map_err(|error| format!("cargo: {error}"))?;
        if status.success() { Ok(()) } else { Err(status.to_string()) }
    }
}

/// The source of the target's standard library.
enum Library {
    /// The toolchain in use contains it.
    Installed,
    /// Debian's compiler builds it; the folder contains both.
    Debian(PathBuf),
}

impl Library {
    fn find(triple: &str) -> Result<Self, String> {
        let folder = output(Command::new("rustc").args(["--print", "target-libdir", "--target", triple]));
        if folder.is_ok_and(|folder| Path::new(folder.trim()).is_dir()) {
            return Ok(Self::Installed);
        }
        let root = unpacked()?;
        new_enough(&root).map(|()| Self::Debian(root))
    }

    fn bring_into(&self, command: &mut Command) {
        let Self::Debian(root) = self else { return };
        command
            .arg("-Zbuild-std")
            .args(["--config", "profile.dev.debug=false", "--config", "profile.dev.incremental=false"])
            .arg("--target-dir")
            .arg(target_folder().join("portable"))
            // Debian's compiler is a stable release, and building the library is still unstable.
            .env("RUSTC_BOOTSTRAP", "1")
            .env("RUSTC", root.join("usr/bin/rustc"))
            .env("LD_LIBRARY_PATH", libraries(root));
    }
}

/// Whether a program is installed.
fn answers(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// The folder with Debian's packages, which are unpacked if they were not yet.
fn unpacked() -> Result<PathBuf, String> {
    let folder = target_folder().join("portable").join("debian");
    if folder.exists() {
        return Ok(folder);
    }
    let partial = folder.with_extension("partial");
    let failed = |error: std::io::Error| format!("{}: {error}", partial.display());
    if partial.exists() {
        fs::remove_dir_all(&partial).map_err(failed)?;
    }
    fs::create_dir_all(&partial).map_err(failed)?;
    let depends = output(Command::new("apt-cache").args(["depends", PACKAGES[1]]))?;
    let compiler = dependency(&depends, "libstd-rust-web-").ok_or("Debian's packages have no rustc-web")?;
    output(
        Command::new("apt-get").args(["download", "--quiet", compiler]).args(PACKAGES).current_dir(&partial),
    )?;
    for entry in fs::read_dir(&partial).map_err(failed)? {
        let package = entry.map_err(failed)?.path();
        if package.extension().is_some_and(|extension| extension == "deb") {
            output(Command::new("dpkg-deb").arg("--extract").arg(&package).arg(&partial))?;
            fs::remove_file(&package).map_err(failed)?;
        }
    }
    fs::rename(&partial, &folder).map_err(failed)?;
    Ok(folder)
}

/// The package with this prefix that `apt-cache depends` names.
fn dependency<'a>(depends: &'a str, beginning: &str) -> Option<&'a str> {
    depends
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Depends: "))
        .find(|package| package.starts_with(beginning))
}

fn new_enough(root: &Path) -> Result<(), String> {
    let version =
        output(Command::new(root.join("usr/bin/rustc")).arg("-V").env("LD_LIBRARY_PATH", libraries(root)))
            .map_err(|error| {
                format!("{}\n(LLVM comes with Debian's libstd-rust-web-dev)", error.trim_end())
            })?;
    let expected = env!("CARGO_PKG_RUST_VERSION");
    let number = version.split(' ').nth(1).unwrap_or_default();
    if minor(number) < minor(expected) {
        return Err(format!("Debian has {}, expected {expected}", version.trim_end()));
    }
    Ok(())
}

/// The minor version: 96 for `1.96.0`.
fn minor(version: &str) -> Option<u32> {
    version.split('.').nth(1)?.parse().ok()
}

/// The folder of the compiler's libraries.
fn libraries(root: &Path) -> OsString {
    root.join("usr/lib").join(format!("{}-linux-gnu", std::env::consts::ARCH)).into_os_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_of_the_compilers_libraries_is_found_by_its_beginning() {
        let depends =
            "libstd-rust-web-dev\n  Depends: libc6\n  Depends: libstd-rust-web-1.96\n  Replaces: x\n";
        assert_eq!(dependency(depends, "libstd-rust-web-"), Some("libstd-rust-web-1.96"));
        assert_eq!(dependency(depends, "rustc"), None);
    }

    #[test]
    fn versions_are_compared_by_their_second_number() {
        assert!(minor("1.96.0") > minor("1.95"));
        assert!(minor("1.85.0") < minor("1.95"));
        assert!(minor("") < minor("1.95"));
    }
}
