//! `python` and `spark`: build the wheel, install it in a clean environment and try it there.
//!
//! The environment for building has maturin; the one for trying has what users would have. The tests compare
//! with the command, which has to be built before.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::output;
use crate::{Answer, flag, target_folder, workspace};

/// The packages that build wheels.
const BUILDS: &[&str] = &["maturin==1.16.0"];

/// The packages that receive tables, and the test tools.
const TRIES: &[&str] =
    &["duckdb==2.0.1", "mypy==2.4.1", "pandas==3.1.1", "polars==2.1.0", "pyarrow==26.0.1", "pytest==9.2.0"];

/// The crates with heavy computation; they are optimised as for tests.
pub(crate) const OPTIMISED: &[&str] = &["tracewalk", "tracewalk-input", "tracewalk-analysis"];

/// A cluster on this machine, and its workers' packages. Without pandas, Spark refuses to pass on Arrow's
/// columns.
const CLUSTERS: &[&str] = &["pandas==3.1.1", "pyarrow==26.0.1", "pyspark==4.3.0", "pytest==9.2.0"];

/// Runs the task. `--release` builds the wheel for distribution.
pub(crate) fn run() -> Answer {
    let made = Made::new()?;
    let python = made.installed("tries", TRIES)?;
    let tests = made.package.join("tests");
    let spark = format!("--ignore={}", tests.join("spark").display());
    let tried = made.pytest(&python, &[tests.as_os_str(), spark.as_ref()])?;
    // The only module that is not Python; it has a stub.
    let stubs = ["-m", "mypy.stubtest", "tracewalk._native", "--ignore-disjoint-bases"];
    output(Command::new(&python).args(stubs).current_dir(&made.folder))?;
    let mut typed = Command::new(&python);
    typed
        .args(["-m", "mypy", "--strict", "--cache-dir", "mypy"])
        .arg(tests.join("typed.py"))
        .current_dir(&made.folder);
    output(&mut typed)?;
    let name = made.wheel.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let size = fs::metadata(&made.wheel).map_err(|error| format!("{}: {error}", made.wheel.display()))?.len();
    let tried = tried.lines().last().unwrap_or_default();
    Ok(format!("{name}, {} KiB, installed and tried: {tried}", size >> 10))
}

/// Runs the task `spark`: the wheel on a cluster of two executors, one of which is killed. Needs Java. `--smoke` runs one
/// test, which kills none.
pub(crate) fn spark() -> Answer {
    let made = Made::new()?;
    let python = made.installed("clusters", CLUSTERS)?;
    let tests = made.package.join("tests/spark");
    let mut arguments = vec![tests.as_os_str(), "-rP".as_ref()];
    if flag("--smoke") {
        arguments.extend(["-k".as_ref(), "coverage".as_ref()] as [&OsStr; 2]);
    }
    let tried = made.pytest(&python, &arguments)?;
    let figures = tried.lines().find(|line| line.contains(" on 2 executors")).unwrap_or_default();
    let tried = tried.lines().last().unwrap_or_default();
    Ok(format!("{figures}; {tried}"))
}

/// Puts a wheel for distribution into this folder, installs it in a clean environment, and tries it with an
/// example. With `built` it is optimised as for tests.
pub(crate) fn wheel_to_give_away(into: &Path, built: bool) -> Result<String, String> {
    let folder = target_folder().join("python");
    let builder = environment(&folder.join("builds"), BUILDS)?;
    let wheels = folder.join(if built { "wheels" } else { "release" });
    let wheel = build(&builder, &workspace().join("crates/tracewalk-python"), &wheels, !built)?;
    let python = environment(&folder.join("empty"), &[])?;
    install(&python, &wheel)?;
    let example = workspace().join("testdata/examples/m3-etmv3/capture.toml");
    let tried = "import sys, tracewalk; print(tracewalk.open(sys.argv[1]).counts().ranges.num_rows)";
    let rows = output(Command::new(&python).args(["-c", tried]).arg(example).current_dir(&folder))?;
    if rows.trim().parse::<u64>().unwrap_or_default() == 0 {
        return Err(format!("{}: counted nothing in the example: {rows}", wheel.display()));
    }
    let name = wheel.file_name().unwrap_or_default();
    fs::copy(&wheel, into.join(name)).map_err(|error| format!("{}: {error}", wheel.display()))?;
    let size = fs::metadata(&wheel).map_err(|error| format!("{}: {error}", wheel.display()))?.len() >> 10;
    Ok(format!("{}, {size} KiB, installed and tried", name.to_string_lossy()))
}

/// Installs a wheel without its dependencies.
fn install(python: &Path, wheel: &Path) -> Result<(), String> {
    let install =
        ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--force-reinstall"];
    output(Command::new(python).args(install).arg(wheel)).map(drop)
}

/// A wheel, and the command to compare it with.
struct Made {
    folder: PathBuf,
    package: PathBuf,
    command: PathBuf,
    wheel: PathBuf,
}

impl Made {
    /// Builds the wheel.
    fn new() -> Result<Self, String> {
        let release = flag("--release");
        let (folder, package) = (target_folder().join("python"), workspace().join("crates/tracewalk-python"));
        let command = target_folder().join(if release { "release/tracewalk" } else { "debug/tracewalk" });
        if !command.is_file() {
            return Err(format!(
                "{}: found no command to compare with: run cargo build -p tracewalk-cli --features full",
                command.display()
            ));
        }
        let builder = environment(&folder.join("builds"), BUILDS)?;
        let wheel = build(&builder, &package, &folder.join("wheels"), release)?;
        Ok(Self { folder, package, command, wheel })
    }

    /// The Python of an environment with these packages and the wheel.
    fn installed(&self, name: &str, packages: &[&str]) -> Result<PathBuf, String> {
        let python = environment(&self.folder.join(name), packages)?;
        install(&python, &self.wheel)?;
        Ok(python)
    }

    /// The output of pytest, which runs in another folder so that it imports the installed package.
    fn pytest(&self, python: &Path, arguments: &[&OsStr]) -> Result<String, String> {
        let mut pytest = Command::new(python);
        pytest.args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider"]).args(arguments);
        pytest.current_dir(&self.folder).env("TRACEWALK", &self.command).env("PYTHONDONTWRITEBYTECODE", "1");
        output(&mut pytest)
    }
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
    found(wheels)
}

/// The wheel in a folder.
fn found(wheels: &Path) -> Result<PathBuf, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", wheels.display());
    let mut found = fs::read_dir(wheels).map_err(failed)?;
    let wheel = found.next().and_then(Result::ok).map(|entry| entry.path());
    wheel.ok_or_else(|| format!("{}: found no wheel", wheels.display()))
}

/// The Python of an environment with exactly these packages. The environment is made again if the list of
/// packages changed.
fn environment(folder: &Path, packages: &[&str]) -> Result<PathBuf, String> {
    let (python, list) = (folder.join("bin/python"), folder.join("packages.txt"));
    let wanted = packages.join("\n");
    if fs::read_to_string(&list).is_ok_and(|known| known == wanted) {
        return Ok(python);
    }
    output(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder))?;
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    if !packages.is_empty() {
        output(Command::new(&python).args(install).args(packages))?;
    }
    fs::write(&list, wanted).map_err(|error| format!("{}: {error}", list.display()))?;
    Ok(python)
}
