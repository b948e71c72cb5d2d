//! Chooses a source and what takes its trace, and makes the plan of a recording.

use crate::chip::{Filled, Phase, Ring};
use crate::client::Client;
use crate::connection::Connection;
use crate::plan::Plan;
use crate::problem::{BufferFault, Problem};
use crate::processor::{self, CPUID};
use crate::record::{Keep, Request};
use crate::rom::{self, Found, Kind, Unit};
use crate::sink::{Sink, Stretch};
use crate::units::itm::Itm;
use crate::units::{etmv3, etmv4, funnel, mtb};

/// The trace ID of the recorded ETM.
pub const TRACE_ID: u8 = 2;

/// The trace ID of an ITM beside it.
pub const ITM_ID: u8 = 1;

/// The smallest buffer of an MTB.
const LEAST_BUFFER: u32 = 16;

/// The chosen units, and what is done with them.
#[derive(Clone, Debug)]
pub struct Setup {
    /// What the chip has.
    pub found: Found,
    /// The source of the trace.
    pub source: Unit,
    pub(crate) sink: Sink,
    /// The accesses.
    pub plan: Plan,
    /// The processor, if it is known.
    pub(crate) cpu: Option<&'static str>,
    /// The register and its bits that show that trace was lost.
    pub(crate) overflow: Option<(u32, u32)>,
    /// What is kept when the buffer is full.
    pub(crate) keep: Keep,
    /// Whether exceptions are traced, too.
    pub(crate) has_itm: bool,
}

impl Setup {
    /// Where the trace goes.
    #[must_use]
    pub fn sink(&self) -> String {
        self.sink.to_string()
    }

    /// The trace ID of the source; 0 for an MTB, which has none.
    pub(crate) fn id(&self) -> u8 {
        if self.source.kind == Kind::Mtb { 0 } else { TRACE_ID }
    }

    /// Whether the recording ends when the buffer was full as often as wanted.
    #[must_use]
    pub fn fills(&self) -> bool {
        self.keep != Keep::Newest
    }

    /// The number of pins through which the trace leaves; none if it can be read.
    #[must_use]
    pub const fn pins(&self) -> Option<u32> {
        match self.sink {
            Sink::Pins(_, width) => Some(width),
            _ => None,
        }
    }
}

/// Chooses the units, and makes the plan.
pub(crate) fn plan<C: Connection>(
    client: &mut Client<C>,
    request: &Request,
    only_reads: bool,
) -> Result<Setup, Problem> {
    let found = match &request.chip {
        Some(chip) if !chip.units.is_empty() => Found { units: chip.units.clone(), ..Found::default() },
        _ => rom::units(client, request.rom)?,
    };
    let (source, sink) = choose(client, request, &found, only_reads)?;
    let is_full_once = request.keep != Keep::Newest;
    match (request.keep, sink) {
        (Keep::Newest, _) | (Keep::Fills(_), Sink::Memory(_)) | (Keep::Fills(1), Sink::Ring(..)) => {}
        (Keep::Fills(_), _) => return Err(Problem::KeepsNewest { sink: sink.to_string() }),
    }
    let itm = match request.itm && source.kind != Kind::Mtb {
        true => Some(itm_of(&found).ok_or(Problem::NoItm)?),
        false if request.itm => return Err(Problem::NoItm),
        false => None,
    };
    let of_chip = |phase: Phase| {
        let filled = match sink {
            Sink::Ring((buffer, bytes), Ring { count, .. }) => {
                Filled { buffer, bits: if is_full_once { 0 } else { bytes.trailing_zeros() }, count }
            }
            _ => Filled::default(),
        };
        request.chip.as_ref().map_or_else(Vec::new, |chip| chip.steps(phase, filled))
    };
    let mut plan = Plan { setup: vec![processor::ENABLE], ..Plan::default() };
    plan.setup.extend(of_chip(Phase::Setup));
    plan.setup.extend(sink.setup());
    for unit in found.units.iter().filter(|unit| unit.kind == Kind::Funnel && source.kind != Kind::Mtb) {
        plan.setup.extend(funnel::setup(unit.base));
        plan.restore.push(funnel::restore(unit.base));
    }
    if let Some(itm) = itm {
        plan.setup.extend(itm.setup(ITM_ID));
        plan.stop.extend(itm.stop());
        plan.restore.extend(itm.restore());
    }
    // The source comes last, and is switched off first: a sink that captures nothing would lose its trace.
    match (source.kind, sink) {
        (Kind::Etmv3, _) => {
            plan.setup.extend(etmv3::setup(source.base, TRACE_ID));
            plan.stop.splice(0..0, etmv3::stop(source.base));
        }
        (Kind::Etmv4, _) => {
            plan.setup.extend(etmv4::setup(source.base, TRACE_ID));
            plan.stop.splice(0..0, etmv4::stop(source.base));
        }
        (_, Sink::Memory(memory)) => {
            plan.setup.extend(mtb::setup(source.base, memory, is_full_once));
            plan.stop.extend(mtb::stop(source.base));
        }
        _ => return Err(Problem::NoSource { silent: found.silent }),
    }
    plan.stop.extend(sink.stop());
    plan.restore.extend(sink.restore());
    plan.stop.extend(of_chip(Phase::Stop));
    plan.restore.extend(of_chip(Phase::Restore));
    plan.restore.push(processor::RESTORE);
    let cpu = processor::name(client.read_word(CPUID)?);
    let overflow = request.chip.as_ref().and_then(|chip| chip.overflow).filter(|_| !is_full_once);
    Ok(Setup { found, source, sink, plan, cpu, overflow, keep: request.keep, has_itm: itm.is_some() })
}

/// The source, and what takes its trace: an ETM if something keeps its trace, because that has more in less room than an MTB's.
fn choose<C: Connection>(
    client: &mut Client<C>,
    request: &Request,
    found: &Found,
    only_reads: bool,
) -> Result<(Unit, Sink), Problem> {
    let first = |kinds: &[Kind]| found.units.iter().find(|unit| kinds.contains(&unit.kind)).copied();
    let etm = first(&[Kind::Etmv4, Kind::Etmv3]);
    let tpiu = first(&[Kind::Tpiu]);
    let pins = request.chip.as_ref().and_then(|chip| chip.pins);
    let sink = if let Some(ring) = request.chip.as_ref().and_then(|chip| chip.ring) {
        let memory = request.buffer.ok_or(Problem::BufferNeeded)?;
        let is_too_large = memory.1.is_power_of_two() && memory.1.trailing_zeros() > ring.most;
        let fault =
            if is_too_large { Some(BufferFault::Large(1 << ring.most.min(31))) } else { fault_of(memory) };
        fault.map_or(Ok(()), |fault| Err(Problem::Buffer(fault)))?;
        let count = if request.keep == Keep::Newest { ring.of } else { memory.1 / 4 };
        Some(Sink::Ring(memory, Ring { count, ..ring }))
    } else {
        match (first(&[Kind::Etb, Kind::Tmc]), first(&[Kind::Etr]), request.buffer) {
            (Some(Unit { kind: Kind::Etb, base, .. }), ..) => Some(Sink::Etb(base)),
            (Some(Unit { base, .. }), ..) => Some(Sink::Tmc(base)),
            (None, Some(etr), Some(memory)) => match fault_of(memory) {
                None => Some(Sink::Etr(etr.base, memory)),
                Some(fault) => return Err(Problem::Buffer(fault)),
            },
            (None, Some(_), None) if etm.is_some() => return Err(Problem::BufferNeeded),
            _ => tpiu.zip(pins).map(|(tpiu, width)| Sink::Pins(tpiu.base, width)),
        }
    };
    match (etm.zip(sink), first(&[Kind::Mtb])) {
        (Some(chosen), _) => Ok(chosen),
        (None, Some(mtb)) => Ok((mtb, buffer_of_mtb(client, mtb, request.buffer, only_reads)?)),
        (None, None) if etm.is_some() => {
            Err(Problem::NoBuffer { has_port: tpiu.is_some(), silent: found.silent.clone() })
        }
        (None, None) => Err(Problem::NoSource { silent: found.silent.clone() }),
    }
}

fn itm_of(found: &Found) -> Option<Itm> {
    let base = |kind| found.units.iter().find(|unit| unit.kind == kind).map(|unit| unit.base);
    Some(Itm { itm: base(Kind::Itm)?, dwt: base(Kind::Dwt)? })
}

/// The part number of the MTB of a Cortex-M0+, which traces into the program's memory.
const MTB_OF_M0_PLUS: u16 = 0x932;

/// The memory that an MTB writes to: the given part, or all of a memory of its own.
fn buffer_of_mtb<C: Connection>(
    client: &mut Client<C>,
    mtb: Unit,
    given: Option<Stretch>,
    only_reads: bool,
) -> Result<Sink, Problem> {
    let start = client.read_word(mtb::ram(mtb.base).address())?;
    // Some chips do not say where the memory is.
    match given {
        None if mtb.part == MTB_OF_M0_PLUS || start == 0 => return Err(Problem::BufferNeeded),
        None if only_reads => return Err(Problem::SizeUnknown),
        Some(buffer) if only_reads => {
            let sink = Sink::Memory(buffer);
            return fault_of(buffer).map_or(Ok(sink), |fault| Err(Problem::Buffer(fault)));
        }
        _ => {}
    }
    // As many low bits of the position can be written as the memory's size has. What was there may be all that is left of a crash.
    let [master, position] = [mtb::master, mtb::position].map(|of| of(mtb.base).address());
    let before = (client.read_word(master)?, client.read_word(position)?);
    client.write_word(master, 0)?;
    client.write_word(position, !7)?;
    let kept = client.read_word(position)? & !7;
    client.write_word(position, before.1)?;
    client.write_word(master, before.0)?;
    let size = kept.wrapping_add(8);
    let (address, bytes) = given.unwrap_or((start, size));
    let fault = match (address, bytes) {
        given if fault_of(given).is_some() => fault_of(given),
        (address, bytes)
            if start != 0 && u64::from(address.wrapping_sub(start)) + u64::from(bytes) > u64::from(size) =>
        {
            Some(BufferFault::Place(address))
        }
        _ => None,
    };
    fault.map_or(Ok(Sink::Memory((address, bytes))), |fault| Err(Problem::Buffer(fault)))
}

/// What is wrong with the size or place of memory for a trace.
const fn fault_of((address, bytes): (u32, u32)) -> Option<BufferFault> {
    match bytes.is_power_of_two() && bytes >= LEAST_BUFFER {
        false => Some(BufferFault::Size(bytes)),
        true if address % bytes != 0 => Some(BufferFault::Address(address)),
        true => None,
    }
}
