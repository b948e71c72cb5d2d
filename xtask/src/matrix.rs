//! Runs the checks of `tracewalk-conformance`, which are built with optimisation.

use std::process::Command;

use crate::{Answer, Outcome, workspace};

/// Checks the matrix of programs, trace units and modes.
pub(crate) fn run() -> Answer {
    conformance("matrix").map(|()| Outcome::Done("every trace was decoded to the traced path".to_owned()))
}

/// Compares OpenCSD's reading of traces, sound and damaged.
pub(crate) fn opencsd() -> Answer {
    match Command::new("trc_pkt_lister").arg("-h").output() {
        Ok(_) => conformance("opencsd")
            .map(|()| Outcome::Done("OpenCSD agrees, apart from known deviations".to_owned())),
        Err(error) => Ok(Outcome::Skipped(format!("trc_pkt_lister: {error}"))),
    }
}

/// Measures the decoder on damaged traces.
pub(crate) fn damage() -> Answer {
    conformance("damage").map(|()| Outcome::Done("measured".to_owned()))
}

/// Checks that a cursor shows what flow reports, wherever it is put.
pub(crate) fn seek() -> Answer {
    conformance("seek").map(|()| Outcome::Done("every place was the one in flow".to_owned()))
}

fn conformance(name: &str) -> Result<(), String> {
    let words = std::env::args().skip(2).collect::<Vec<_>>();
    // The default checks are fast enough in the tests' build; larger ones get an optimised build.
    let profile = if words.is_empty() { "test" } else { "release" };
    let mut command = Command::new(env!("CARGO"));
    command.args(["run", "--quiet", "--profile", profile, "--package", "tracewalk-conformance", "--", name]);
    command.args(words).current_dir(workspace());
    let status = command.status().map_err(|error| format!("cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err(status.to_string()) }
}
