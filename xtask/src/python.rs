//! `python` and `spark`: build the wheel, install it in a clean environment and try it there.
//!
//! The environment for building has maturin; the one for trying has what users would have. The tests compare
//! with the command, which has to be built before.

use std::env::consts::EXE_SUFFIX;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::output;
use crate::target::Target;
use crate::{Answer, flag, target_folder, workspace};

/// The packages that build wheels.
const BUILDS: &[&str] = &["maturin==1.16.0"];

/// The packages that build for other systems and old C libraries, and the installer that runs a wheel's command.
const RELEASES: &[&str] = &["maturin==1.16.0", "cargo-zigbuild==0.24.1", "ziglang==0.17.1", "uv==0.13.9"];

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

/// Puts a wheel with the library and this command into a folder. With `built` it is optimised as for tests, for this system
/// alone.
pub(crate) fn wheel_to_give_away(
    target: &Target,
    command: &Path,
    into: &Path,
    built: bool,
) -> Result<PathBuf, String> {
    let (folder, package) = (target_folder().join("python"), workspace().join("crates/tracewalk-python"));
    // maturin packs this folder.
    let scripts = package.join("tracewalk.data/scripts");
    let copied = fs::create_dir_all(&scripts)
        .and_then(|()| fs::copy(command, scripts.join(command.file_name().unwrap_or_default())));
    copied.map_err(|error| format!("{}: {error}", scripts.display()))?;
    let wheels = folder.join(if built { "wheels" } else { "release" });
    let wheel = if built {
        let builder = Command::new(environment(&folder.join("builds"), BUILDS)?);
        build(builder, &package, &wheels, &as_for_tests())
    } else {
        let mut builder = Command::new(releases()?);
        with_builders(&mut builder)?;
        let mut options = ["--profile", "dist", "--compression-level", "9", "--target", target.triple()]
            .map(str::to_owned)
            .to_vec();
        if target.is_linked_by_zig() {
            options.extend(["--zig", "--compatibility", "manylinux2014"].map(str::to_owned));
        }
        build(builder, &package, &wheels, &options)
    };
    fs::remove_dir_all(&scripts).map_err(|error| format!("{}: {error}", scripts.display()))?;
    let wheel = wheel?;
    let given = into.join(wheel.file_name().unwrap_or_default());
    fs::copy(&wheel, &given).map_err(|error| format!("{}: {error}", wheel.display()))?;
    Ok(given)
}

/// The command of a wheel that is installed in an environment without other packages. The library there has read an example.
pub(crate) fn in_empty_environment(wheel: &Path) -> Result<PathBuf, String> {
    let folder = target_folder().join("python");
    let python = environment(&folder.join("empty"), &[])?;
    install(&python, wheel)?;
    let example = workspace().join("testdata/examples/m3-etmv3/capture.toml");
    let tried = "import sys, tracewalk; print(tracewalk.open(sys.argv[1]).counts().ranges.num_rows)";
    let rows = output(Command::new(&python).args(["-c", tried]).arg(example).current_dir(&folder))?;
    if rows.trim().parse::<u64>().unwrap_or_default() == 0 {
        return Err(format!("{}: counted nothing in the example: {rows}", wheel.display()));
    }
    Ok(python.with_file_name(format!("tracewalk{EXE_SUFFIX}")))
}

/// Installs a wheel for another system into a folder, with its command in `bin`.
pub(crate) fn for_other_system(wheel: &Path, folder: &Path) -> Result<(), String> {
    let name = wheel.file_stem().unwrap_or_default().to_string_lossy();
    let systems =
        name.rsplit('-').next().unwrap_or_default().split('.').map(|tag| format!("--platform={tag}"));
    let mut pip = Command::new(environment(&target_folder().join("python/empty"), &[])?);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index"]);
    pip.args(["--only-binary=:all:", "--implementation=cp", "--python-version=3.11"]).args(systems);
    output(pip.arg("--target").arg(folder).arg(wheel)).map(drop)
}

/// `uvx tracewalk`, with this wheel for the one that it would download.
pub(crate) fn uvx(wheel: &Path) -> Result<Command, String> {
    let mut uv = Command::new(releases()?.with_file_name(format!("uv{EXE_SUFFIX}")));
    uv.args(["tool", "run", "--quiet", "--offline", "--no-cache", "--from"]).arg(wheel).arg("tracewalk");
    Ok(uv)
}

/// Lets a command find the programs that build for other systems.
pub(crate) fn with_builders(command: &mut Command) -> Result<(), String> {
    let folder = releases()?.parent().map(Path::to_owned);
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::env::join_paths(folder.into_iter().chain(std::env::split_paths(&paths)));
    command.env("PATH", paths.map_err(|error| format!("PATH: {error}"))?);
    Ok(())
}

/// The Python of the environment that builds releases.
fn releases() -> Result<PathBuf, String> {
    environment(&target_folder().join("python/releases"), RELEASES)
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
        let options = if release { vec!["--release".to_owned()] } else { as_for_tests() };
        let wheel = build(Command::new(builder), &package, &folder.join("wheels"), &options)?;
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

/// The options of maturin for a wheel that is optimised as for tests.
fn as_for_tests() -> Vec<String> {
    let optimise = |name: &&str| ["--config".to_owned(), format!("profile.dev.package.{name}.opt-level=2")];
    ["--profile", "dev"].map(str::to_owned).into_iter().chain(OPTIMISED.iter().flat_map(optimise)).collect()
}

/// Builds the wheel with this Python.
fn build(mut maturin: Command, package: &Path, wheels: &Path, options: &[String]) -> Result<PathBuf, String> {
    let _ = fs::remove_dir_all(wheels);
    maturin.args(["-m", "maturin", "build", "--quiet", "--locked", "--out"]).arg(wheels).args(options);
    maturin.arg("--target-dir").arg(target_folder()).current_dir(package);
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
    let python = folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    let list = folder.join("packages.txt");
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
