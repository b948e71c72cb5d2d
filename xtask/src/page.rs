//! `page`: the page of `tracewalk view` on a capture of 100 MB, in Chromium where it is there.

use std::process::Command;

use crate::{Answer, Outcome, workspace};

/// Runs the task.
pub(crate) fn run() -> Answer {
    let test = ["test", "--release", "--package", "tracewalk-cli", "--features", "full", "--test", "all"];
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(workspace()).args(test).args(["view::", "--", "--include-ignored"]);
    let status = cargo.status().map_err(|error| format!("cargo: {error}"))?;
    match status.success() {
        true => Ok(Outcome::Done("a capture of 100 MB is shown as a small one".to_owned())),
        false => Err(format!("the tests of the page: {status}")),
    }
}
