//! The matrix of programs, trace units and modes: the generator checks it, and is built with optimisation for that.

use std::process::Command;

use crate::{Answer, Outcome, workspace};

pub(crate) fn run() -> Answer {
    let mut command = Command::new(env!("CARGO"));
    command.args(["run", "--quiet", "--release", "--package", "tracewalk-generate", "--", "matrix"]);
    command.args(std::env::args().skip(2)).current_dir(workspace());
    let status = command.status().map_err(|error| format!("cargo: {error}"))?;
    if status.success() {
        Ok(Outcome::Done("every trace was decoded as it was told".to_owned()))
    } else {
        Err(status.to_string())
    }
}
