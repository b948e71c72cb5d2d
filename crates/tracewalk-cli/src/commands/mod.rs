//! One file for each command, and their common parts.

mod calls;
mod counts;
mod coverage;
mod crash;
mod describe;
mod diff;
mod flow;
mod gather;
mod gdb;
mod generate;
mod help;
mod info;
mod interrupts;
mod itm;
mod packets;
mod profile;
mod record;
mod snapshot;
mod target;
mod tasks;
mod timeline;
mod view;

use tracewalk_analysis::clock::Unit;

use crate::failure::Failure;
use tracewalk_session::{RunError, WindowError};

/// The trace lacks the requested measure.
fn no_measure(unit: Unit) -> Failure {
    RunError::from(WindowError::NotMeasured(unit)).into()
}

/// Refuses a frequency of instructions.
fn refuse_frequency(unit: Unit, frequency: Option<f64>) -> Result<(), Failure> {
    if unit.has_frequency() || frequency.is_none() {
        return Ok(());
    }
    Err(Failure::input(
        "frequency_of_instructions",
        format!("the unit is {}, which have no frequency", unit.name()),
        "leave out --frequency",
    ))
}
