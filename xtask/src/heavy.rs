//! `heavy`: runs the slow checks in full, one after the other: those that CI runs in part, and those that it
//! leaves to developers.

use std::process::Command;

use crate::{Answer, Outcome};

/// The tasks, with the variables that make them complete.
const TASKS: &[(&str, &[(&str, &str)])] = &[
    ("python", &[("TRACEWALK_WHOLE", "1")]),
    ("spark", &[]),
    ("c", &[]),
    ("page", &[]),
    ("dumps", &[]),
    ("bare", &[]),
    ("portable", &[]),
    ("opencsd", &[]),
    ("seek", &[]),
    ("check-isa", &[]),
    ("dist", &[]),
];

/// Runs the tasks. After a failure the other tasks still run.
pub(crate) fn run() -> Answer {
    let this = std::env::current_exe().map_err(|error| format!("heavy: {error}"))?;
    let mut failed = Vec::new();
    for (name, variables) in TASKS {
        let status = Command::new(&this).arg(name).envs(variables.iter().copied()).status();
        if !status.map_err(|error| format!("{name}: {error}"))?.success() {
            failed.push(*name);
        }
    }
    match failed.as_slice() {
        [] => Ok(Outcome::Done(format!("{} tasks passed", TASKS.len()))),
        failed => Err(format!("failed: {}", failed.join(", "))),
    }
}
