//! One file for each command, and their common parts.

mod calls;
mod counts;
mod coverage;
mod crash;
mod describe;
mod diff;
mod flow;
mod follow;
mod gather;
mod gdb;
mod generate;
mod info;
mod interrupts;
mod itm;
mod packets;
mod profile;
mod snapshot;
mod timeline;
mod view;

use std::io::Write as _;
use std::time::Duration;

use serde::Serialize;
use tracewalk_analysis::Statistics;
use tracewalk_analysis::clock::Unit;

use crate::failure::Failure;
use crate::messages::Messages;
use tracewalk_session::{RunError, WindowError};

/// `--stats`.
fn print_statistics(statistics: &Statistics, time: Duration, threads: u16, messages: &Messages) {
    #[derive(Serialize)]
    struct Line {
        bytes: u64,
        packets: u64,
        ranges: u64,
        instructions: u64,
        gaps: u64,
        malformed: u64,
        seconds: f64,
        threads: u16,
        complete: bool,
    }
    let Statistics { bytes, packets, malformed, ranges, instructions, gaps } = *statistics;
    let (seconds, complete) = (time.as_secs_f64(), messages.complete());
    let line = Line { bytes, packets, ranges, instructions, gaps, malformed, seconds, threads, complete };
    // If standard error is closed, the error cannot be reported.
    let _ = serde_json::to_string(&line).map(|line| writeln!(std::io::stderr(), "{line}"));
}

/// The trace lacks the requested measure.
fn no_measure(unit: Unit) -> Failure {
    RunError::from(WindowError::NotMeasured(unit)).into()
}

/// Refuses a frequency of instructions.
fn refuse_frequency(unit: Unit, frequency: Option<f64>) -> Result<(), Failure> {
    if unit != Unit::Instructions || frequency.is_none() {
        return Ok(());
    }
    Err(Failure::input(
        "frequency_of_instructions",
        "the unit is instructions, which have no frequency",
        "leave out --frequency",
    ))
}
