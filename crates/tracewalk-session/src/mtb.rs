//! Where the packets of a Micro Trace Buffer are in a dump of its memory.

use tracewalk::program::Program;
use tracewalk::protocol::mtb::order::{self, Dump, Layout};
use tracewalk::protocol::mtb::{Config, Registers};
use tracewalk_analysis::drive::{Carrier, Stretch};
use tracewalk_input::capture::SourceDescription;

use crate::error::OpenError;
use crate::infer;
use crate::notice::NoticeKind;
use crate::observer::{Observer, Say};

/// The packets in `dump`, by the registers if they are known, else by what continues what.
pub(crate) fn carrier(
    dump: Dump<'_>,
    source: &SourceDescription,
    program: &Program,
    observer: &dyn Observer,
) -> Result<Carrier, OpenError> {
    let layout = match registers(source) {
        Some(registers) => by_registers(dump, registers, observer)?,
        None => by_evidence(dump, program, observer)?,
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

fn by_registers(dump: Dump<'_>, registers: Registers, observer: &dyn Observer) -> Result<Layout, OpenError> {
    let layout = order::by_registers(dump, &Config::from_registers(registers))
        .map_err(|error| OpenError::Registers(error.to_string()))?;
    if layout.missing > 0 {
        observer.say(NoticeKind::MtbIncomplete { bytes: layout.missing });
    }
    Ok(layout)
}

fn by_evidence(dump: Dump<'_>, program: &Program, observer: &dyn Observer) -> Result<Layout, OpenError> {
    let guess = infer::mtb(dump, program).ok_or(OpenError::NoMtbPacket)?;
    observer.say(NoticeKind::MtbOrderInferred(guess.best.evidence.clone()));
    // With a program each break counts: code does not run from here to there by itself.
    if let Some(runner_up) = guess.runner_up
        && (program.is_empty() || runner_up.evidence.breaks <= guess.best.evidence.breaks)
        && runner_up.evidence.score().saturating_mul(10) > guess.best.evidence.score().saturating_mul(9)
    {
        observer.say(NoticeKind::MtbAnotherOrder(runner_up.evidence));
    }
    Ok(guess.best.layout)
}
