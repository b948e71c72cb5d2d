//! `portable`: checks that everything compiles for other systems, without linking. By default without the features that take
//! long to build; `--full` has them.

use std::process::Command;

use crate::process::{output, workspace};
use crate::target::Target;
use crate::{Answer, flag};

/// What users run: the command and the C library; with `--full` the Python package, too.
const PROGRAMS: &[&str] = &["tracewalk-cli", "tracewalk-capi"];

/// What a page in a browser can contain.
const LIBRARIES: &[&str] =
    &["tracewalk", "tracewalk-input", "tracewalk-analysis", "tracewalk-report", "tracewalk-session"];

/// `dist` builds and runs the command for Linux on Arm, which differs in nothing that is chosen by the system.
const TARGETS: &[(&str, &[&str])] = &[
    ("x86_64-pc-windows-gnu", PROGRAMS),
    ("aarch64-apple-darwin", PROGRAMS),
    ("wasm32-unknown-unknown", LIBRARIES),
];

/// Runs the task.
pub(crate) fn run() -> Answer {
    let full = flag("--full");
    let mut checked = Vec::new();
    for (triple, packages) in TARGETS {
        let start = std::time::Instant::now();
        Target::installed(triple)?;
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["check", "--quiet", "--locked", "--target", triple]).current_dir(workspace());
        // Without features, all targets share the code that runs while they are compiled.
        packages.iter().for_each(|package| _ = cargo.args(["--package", package]));
        if full && *packages == PROGRAMS {
            cargo.args(["--package", "tracewalk-python", "--features", "tracewalk-cli/full"]);
        }
        let flags = format!("CARGO_TARGET_{}_RUSTFLAGS", triple.to_uppercase().replace('-', "_"));
        output(cargo.env(flags, "-Dwarnings"))?;
        checked.push(format!("{triple} in {} s", start.elapsed().as_secs()));
    }
    Ok(format!("no warnings: {}", checked.join(", ")))
}
