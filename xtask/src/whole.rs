//! Slow tests of the command, in full and in a release build: `page` tests `tracewalk view` on a capture of
//! 100 MB, in Chromium if it is installed; `dumps` leaves out each line of a dump in turn, of which CI takes
//! one in seven; `bare` reads the ETMv4 captures of the corpus without their registers, with the two that are
//! too large for CI.

use std::process::Command;

use crate::{Answer, Outcome, workspace};

/// Runs the task `page`.
pub(crate) fn page() -> Answer {
    run("view::", "a capture of 100 MB is shown like a small one")
}

/// Runs the task `dumps`.
pub(crate) fn dumps() -> Answer {
    run("dumps::broken::", "dumps can be read with any one line missing")
}

/// Runs the task `bare`.
pub(crate) fn bare() -> Answer {
    run(
        "etmv4::a_capture_without_its_registers",
        "captures without their registers are read right, or declared doubtful",
    )
}

/// Runs the tests with such names.
fn run(tests: &str, done: &str) -> Answer {
    let test = ["test", "--release", "--package", "tracewalk-cli", "--features", "full", "--test", "all"];
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(workspace()).args(test).args([tests, "--", "--include-ignored"]);
    let status = cargo.env("TRACEWALK_WHOLE", "1").status().map_err(|error| format!("cargo: {error}"))?;
    match status.success() {
        true => Ok(Outcome::Done(done.to_owned())),
        false => Err(format!("the tests {tests}: {status}")),
    }
}
