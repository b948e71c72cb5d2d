//! `python`: the wheel, built, installed in a clean environment and tried there.
//!
//! The environment that builds has maturin; the one that tries has what users would have. What the tests compare with is
//! the command, which has to be built before.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::output;
use crate::{Answer, Outcome, target_folder, workspace};

/// What builds wheels.
const BUILDS: &[&str] = &["maturin==1.16.0"];

/// What takes tables, and what tries them.
const TRIES: &[&str] =
    &["duckdb==2.0.1", "mypy==2.4.1", "pandas==3.1.1", "polars==2.1.0", "pyarrow==26.0.1", "pytest==9.2.0"];

/// The crates whose work takes long: as for tests, they are optimised.
pub(crate) const OPTIMISED: &[&str] = &["tracewalk", "tracewalk-input", "tracewalk-analysis"];

/// Runs the task. With `--release` the wheel is one to give away.
pub(crate) fn run() -> Answer {
    let release = std::env::args().any(|argument| argument == "--release");
    let (folder, package) = (target_folder().join("python"), workspace().join("crates/tracewalk-python"));
    let command = target_folder().join(if release { "release/tracewalk" } else { "debug/tracewalk" });
    if !command.is_file() {
        return Err(format!(
            "{}: found no command to compare with: cargo build -p tracewalk-cli --features full",
            command.display()
        ));
    }
    let builder = environment(&folder.join("builds"), BUILDS)?;
    let wheel = build(&builder, &package, &folder.join("wheels"), release)?;
    let python = environment(&folder.join("tries"), TRIES)?;
    let install =
        ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--force-reinstall"];
    output(Command::new(&python).args(install).arg(&wheel))?;
    // From elsewhere: what is imported is what was installed.
    let tests = package.join("tests");
    let mut pytest = Command::new(&python);
    pytest.args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider"]).arg(&tests);
    pytest.current_dir(&folder).env("TRACEWALK", &command).env("PYTHONDONTWRITEBYTECODE", "1");
    let tried = output(&mut pytest)?;
    let stubs = ["-m", "mypy.stubtest", "tracewalk", "--ignore-disjoint-bases"];
    output(Command::new(&python).args(stubs).current_dir(&folder))?;
    let mut typed = Command::new(&python);
    typed
        .args(["-m", "mypy", "--strict", "--cache-dir", "mypy"])
        .arg(tests.join("typed.py"))
        .current_dir(&folder);
    output(&mut typed)?;
    let name = wheel.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let size = fs::metadata(&wheel).map_err(|error| format!("{}: {error}", wheel.display()))?.len();
    let tried = tried.lines().last().unwrap_or_default();
    Ok(Outcome::Done(format!("{name}, {} KiB, installed and tried: {tried}", size >> 10)))
}

/// Builds the wheel.
fn build(python: &Path, package: &Path, wheels: &Path, release: bool) -> Result<PathBuf, String> {
    let _ = fs::remove_dir_all(wheels);
    let mut maturin = Command::new(python);
    maturin.args(["-m", "maturin", "build", "--quiet", "--locked", "--out"]).arg(wheels);
    maturin.arg("--target-dir").arg(target_folder()).current_dir(package);
    if release {
        maturin.arg("--release");
    } else {
        maturin.args(["--profile", "dev"]);
        let optimise =
            |name: &&str| ["--config".to_owned(), format!("profile.dev.package.{name}.opt-level=2")];
        maturin.args(OPTIMISED.iter().flat_map(optimise));
    }
    output(&mut maturin)?;
    let mut found = fs::read_dir(wheels).map_err(|error| format!("{}: {error}", wheels.display()))?;
    let wheel = found.next().and_then(Result::ok).map(|entry| entry.path());
    wheel.ok_or_else(|| format!("{}: found no wheel", wheels.display()))
}

/// The Python of an environment that has these packages and nothing else. It is made anew where others are asked for.
fn environment(folder: &Path, packages: &[&str]) -> Result<PathBuf, String> {
    let (python, list) = (folder.join("bin/python"), folder.join("packages.txt"));
    let wanted = packages.join("\n");
    if fs::read_to_string(&list).is_ok_and(|known| known == wanted) {
        return Ok(python);
    }
    output(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder))?;
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    output(Command::new(&python).args(install).args(packages))?;
    fs::write(&list, wanted).map_err(|error| format!("{}: {error}", list.display()))?;
    Ok(python)
}
