//! Where the packets of a Micro Trace Buffer are in a dump of its memory.

use tracewalk::program::Program;
use tracewalk::protocol::mtb::order::{self, Dump, Layout};
use tracewalk::protocol::mtb::{Config, Registers};
use tracewalk_analysis::drive::{Carrier, Stretch};
use tracewalk_input::capture::SourceDescription;

use crate::failure::Failure;
use crate::guess;
use crate::messages::{Messages, counted};

/// The packets in `dump`, by the registers if they are known, else by what continues what.
pub(crate) fn carrier(
    dump: Dump<'_>,
    source: &SourceDescription,
    program: &Program,
    messages: &Messages,
) -> Result<Carrier, Failure> {
    let layout = match registers(source) {
        Some(registers) => by_registers(dump, registers, messages)?,
        None => by_evidence(dump, program, messages)?,
    };
    let stretches = layout.pieces.into_iter();
    Ok(Carrier::Stretches(
        stretches.map(|piece| Stretch { bytes: piece.bytes, continues: piece.continues }).collect(),
    ))
}

/// The registers, where those are known without which the others say nothing.
pub(crate) fn registers(source: &SourceDescription) -> Option<Registers> {
    let register = |name| source.registers.get(name);
    let (position, master) = (register("MTB_POSITION")?, register("MTB_MASTER")?);
    Some(Registers { position, master, flow: register("MTB_FLOW"), base: register("MTB_BASE") })
}

fn by_registers(dump: Dump<'_>, registers: Registers, messages: &Messages) -> Result<Layout, Failure> {
    let layout = order::by_registers(dump, &Config::from_registers(registers)).map_err(|error| {
        Failure::input(error.to_string(), "save the memory there, or correct --mtb-position and --mtb-base")
    })?;
    if layout.missing > 0 {
        messages.incomplete(format_args!(
            "{} of the trace buffer are not in the capture; save all of it, or correct --mtb-master",
            counted(layout.missing, "byte")
        ));
    }
    Ok(layout)
}

fn by_evidence(dump: Dump<'_>, program: &Program, messages: &Messages) -> Result<Layout, Failure> {
    let guess = guess::mtb(dump, program).ok_or_else(|| {
        Failure::input(
            "nothing in the capture looks like an MTB packet",
            "check --container, or give --registers FILE",
        )
    })?;
    messages.note(format_args!(
        "found out: {}; --registers FILE, or --mtb-position and --mtb-master, would have said it",
        guess.best.evidence
    ));
    // With a program each break counts: code does not run from here to there by itself.
    if let Some(runner_up) = guess.runner_up
        && (program.is_empty() || runner_up.evidence.breaks <= guess.best.evidence.breaks)
        && runner_up.evidence.score().saturating_mul(10) > guess.best.evidence.score().saturating_mul(9)
    {
        messages.warning(format_args!(
            "another reading is nearly as likely: {}; give --registers FILE to be sure",
            runner_up.evidence
        ));
    }
    Ok(guess.best.layout)
}
