//! The places of a Micro Trace Buffer's packets in a dump of its memory.

use std::ops::Range;

use tracewalk::ids::Address;
use tracewalk::program::Program;
use tracewalk::protocol::mtb::order::{self, Dump, Layout, Piece};
use tracewalk::protocol::mtb::{Config, Registers};
use tracewalk_analysis::drive::{Carrier, Stretch};
use tracewalk_input::capture::SourceDescription;

use crate::error::OpenError;
use crate::infer;
use crate::infer::mtb_order::{Ending, Evidence, Narrowing};
use crate::notice::NoticeKind;
use crate::observer::{Observer, Say};

/// The packets in `dump`: by the registers if they are known, else by which packets continue each other.
pub(crate) fn carrier(
    dump: Dump<'_>,
    source: &SourceDescription,
    program: &Program,
    observer: &dyn Observer,
) -> Result<Carrier, OpenError> {
    let layout = match source.registers.mtb() {
        Some(registers) => by_registers(dump, registers, program, observer)?,
        None => by_evidence(dump, narrowing(source), program, observer)?,
    };
    let stretches = layout.pieces.into_iter();
    Ok(Carrier::Stretches(
        stretches.map(|piece| Stretch { bytes: piece.bytes, continues: piece.continues }).collect(),
    ))
}

fn by_registers(
    dump: Dump<'_>,
    registers: Registers,
    program: &Program,
    observer: &dyn Observer,
) -> Result<Layout, OpenError> {
    let config = Config::from_registers(registers);
    let placed = place(dump, &config, program, observer).unwrap_or(dump);
    let layout =
        order::by_registers(placed, &config).map_err(|error| OpenError::Registers(error.to_string()))?;
    if !say_misplaced(placed, &config, &layout, program, observer) {
        refuse_zeros(dump, layout.pieces.iter().map(|piece| piece.bytes.clone()))?;
    }
    say_missing(&layout, dump.address.is_some() || config.base().is_some(), observer);
    // A reset clears the registers but not the memory.
    if layout.pieces.is_empty() && layout.missing.is_empty() {
        let older = infer::mtb(dump, program).map(|guess| guess.best.evidence);
        observer.say(match older.filter(infer::speaks_for_trace) {
            Some(older) => NoticeKind::MtbOlderPackets(older),
            None => NoticeKind::MtbWroteNothing,
        });
    }
    if let Some(other) = further(placed, &config, &layout, program) {
        observer.say(NoticeKind::MtbGoesOn(other));
    }
    Ok(layout)
}

/// The dump at its address, if nobody stated the address, the packets that the registers describe prove it, and the
/// default address does not fit them.
fn place<'a>(
    dump: Dump<'a>,
    config: &Config,
    program: &Program,
    observer: &dyn Observer,
) -> Option<Dump<'a>> {
    let base = config.base().filter(|_| dump.address.is_none())?.get();
    let size = config.size().bytes();
    if dump.data.len() as u64 <= size {
        return None;
    }
    let start = infer::mtb_place(dump.data, config, program)?;
    let begins_at = |layout: &Layout| layout.pieces.iter().map(|piece| piece.bytes.start).min();
    let is_there = |dump: Dump<'_>| {
        let layout = order::by_registers(dump, config).ok()?;
        (layout.missing.is_empty() && begins_at(&layout) == Some(start)).then_some(())
    };
    if is_there(dump).is_some() {
        return None;
    }
    // The pointer has the low bits of the buffer's address; no register states how many.
    let pointer = u64::from(config.pointer());
    let least = (pointer + 1).max(size).next_power_of_two().trailing_zeros();
    let buffer = |bits: u32| base + (pointer - pointer % size).wrapping_sub(base) % (1 << bits);
    let addresses = (least..=32).filter_map(|bits| buffer(bits).checked_sub(start as u64)).map(Address::new);
    let mut dumps = addresses.map(|address| Dump { address: Some(address), ..dump });
    let placed = dumps.find(|placed| is_there(*placed).is_some())?;
    observer.say(NoticeKind::DumpPlaced { address: placed.address? });
    Some(placed)
}

/// The packets without the registers, if the buffer has not wrapped and packets after its pointer continue the newest one.
/// An earlier run may have left them, or the registers are another recording's.
fn further(dump: Dump<'_>, config: &Config, layout: &Layout, program: &Program) -> Option<Evidence> {
    let newest = layout.pieces.last()?.bytes.end;
    if config.wrapped() || !infer::mtb_continues(dump.data, newest, program) {
        return None;
    }
    infer::mtb(dump, program).map(|guess| guess.best.evidence).filter(infer::speaks_for_trace)
}

/// Reports another place at which packets continue each other, in a dump that is larger than the buffer and has no
/// stated address. Returns whether there is one.
fn say_misplaced(
    dump: Dump<'_>,
    config: &Config,
    layout: &Layout,
    program: &Program,
    observer: &dyn Observer,
) -> bool {
    if dump.address.is_some() || dump.data.len() as u64 <= config.size().bytes() {
        return false;
    }
    let Some(other) = infer::mtb(dump, program).map(|guess| guess.best.evidence) else { return false };
    let is_inside =
        |piece: &Piece| other.bytes.start < piece.bytes.end && piece.bytes.start < other.bytes.end;
    let is_misplaced = infer::speaks_for_trace(&other) && !layout.pieces.iter().any(is_inside);
    if is_misplaced {
        observer.say(NoticeKind::DumpMisplaced(other));
    }
    is_misplaced
}

/// Refuses a buffer of zeros, which was never written.
fn refuse_zeros(dump: Dump<'_>, mut packets: impl Iterator<Item = Range<usize>>) -> Result<(), OpenError> {
    let Some(first) = packets.next() else { return Ok(()) };
    let is_empty =
        |bytes: Range<usize>| dump.data.get(bytes).unwrap_or_default().iter().all(|byte| *byte == 0);
    let nothing = is_empty(first) && packets.all(is_empty);
    if nothing { Err(OpenError::MtbNeverOn) } else { Ok(()) }
}

fn say_missing(layout: &Layout, are_addresses: bool, observer: &dyn Observer) {
    if !layout.missing.is_empty() {
        let (missing, newest) = (joined(layout.missing.clone()), layout.lost_newest);
        observer.say(NoticeKind::MtbIncomplete { missing, are_addresses, newest });
    }
}

/// The same stretches in order, with adjacent ones joined: there is no gap between the newest packet and the oldest.
fn joined(mut stretches: Vec<Range<u64>>) -> Vec<Range<u64>> {
    stretches.sort_by_key(|stretch| stretch.start);
    let mut joined = Vec::<Range<u64>>::new();
    for stretch in stretches {
        match joined.last_mut() {
            Some(last) if stretch.start <= last.end => last.end = last.end.max(stretch.end),
            _ => joined.push(stretch),
        }
    }
    joined
}

/// The information in one register, if the other one is not known.
fn narrowing(source: &SourceDescription) -> Narrowing {
    let register = |name| source.registers.get(name);
    let with =
        |position, master| Config::from_registers(Registers { position, master, flow: None, base: None });
    let next = |position| {
        let config = with(position, 0);
        (config.pointer(), config.wrapped())
    };
    Narrowing {
        size: register("MTB_MASTER").map(|master| with(0, master).size().bytes()),
        next: register("MTB_POSITION").map(next),
    }
}

fn by_evidence(
    dump: Dump<'_>,
    known: Narrowing,
    program: &Program,
    observer: &dyn Observer,
) -> Result<Layout, OpenError> {
    let Some(guess) = infer::mtb_narrowed(dump, known, program) else {
        if known != Narrowing::default() && infer::mtb(dump, program).is_some() {
            let name = if known.size.is_some() { "MTB_MASTER" } else { "MTB_POSITION" };
            return Err(OpenError::Registers(format!(
                "packets in the dump continue one another, but not as {name} states"
            )));
        }
        refuse_zeros(dump, std::iter::once(0..dump.data.len()))?;
        return Err(OpenError::NoMtbPacket);
    };
    observer.say(NoticeKind::MtbOrderInferred(guess.best.evidence.clone()));
    say_missing(&guess.best.layout, dump.address.is_some(), observer);
    match guess.best.evidence.end.clone() {
        Ending::Shown => {}
        Ending::Unheld(_) if !guess.best.layout.missing.is_empty() => {}
        end => observer.say(NoticeKind::MtbEndUnknown { end, are_addresses: dump.address.is_some() }),
    }
    // With a program each break counts, because code cannot run across it.
    if let Some(runner_up) = guess.runner_up
        && (program.is_empty() || runner_up.evidence.breaks <= guess.best.evidence.breaks)
        && runner_up.evidence.score().saturating_mul(10) > guess.best.evidence.score().saturating_mul(9)
    {
        observer.say(NoticeKind::MtbAnotherOrder(runner_up.evidence));
    }
    Ok(guess.best.layout)
}
