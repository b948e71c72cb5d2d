//! Records what a target executes.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::chip::{Chip, Phase, Ring};
use crate::client::{Client, Stop};
use crate::connection::Connection;
use crate::plan::{Execution, Plan};
use crate::problem::{BufferFault, Problem};
use crate::processor::{self, CPUID, DHCSR};
use crate::rom::{self, Found, Kind, Unit};
use crate::units::{etb, etmv3, etmv4, funnel, mtb, tmc};

/// The trace ID of the recorded source.
pub const TRACE_ID: u8 = 2;

/// The smallest buffer of an MTB.
const LEAST_BUFFER: u32 = 16;

/// What is to be recorded.
#[derive(Clone, Debug)]
pub struct Request {
    /// The address of the chip's first ROM table, if it is not at a usual place.
    pub rom: Option<u32>,
    /// The memory for the trace, by address and size, if the chip traces into the program's memory.
    pub buffer: Option<(u32, u32)>,
    /// When the recording ends.
    pub until: Until,
    /// What is known of the chip, if its units are in no ROM table.
    pub chip: Option<Chip>,
}

/// When a recording ends. Each ends when it is asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Execution reaches an instruction.
    Address(u32),
    /// The target ran for this time.
    Time(Duration),
    /// Only when it is asked to.
    Asked,
}

/// Where the trace goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sink {
    /// An ETB at this address.
    Etb(u32),
    /// A TMC at this address.
    Tmc(u32),
    /// Memory, by address and size.
    Memory(u32, u32),
    /// A ring of memory, by address and size.
    Ring(u32, u32, Ring),
}

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
    cpu: Option<&'static str>,
    /// The register and its bits that show that trace was lost.
    overflow: Option<(u32, u32)>,
}

impl Setup {
    /// Where the trace goes.
    #[must_use]
    pub fn sink(&self) -> String {
        match self.sink {
            Sink::Etb(base) => format!("the ETB at 0x{base:08x}"),
            Sink::Tmc(base) => format!("the TMC at 0x{base:08x}"),
            Sink::Memory(address, bytes) | Sink::Ring(address, bytes, _) => {
                format!("{bytes} bytes of memory at 0x{address:08x}")
            }
        }
    }
}

/// How a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Execution reached the place.
    Reached,
    /// The target stopped for another reason, with this signal.
    Stopped(u8),
    /// The time was over, or the end was asked for.
    Interrupted,
}

/// What was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// The unit's bytes.
    pub bytes: Vec<u8>,
    /// Their address, if they were in memory.
    pub address: Option<u32>,
    /// What the source is.
    pub source: Kind,
    /// Its trace ID; 0 for an MTB, which has none.
    pub id: u8,
    /// The processor, if it is known.
    pub cpu: Option<&'static str>,
    /// The values of the source's registers, by Arm's names.
    pub registers: BTreeMap<&'static str, u32>,
    /// How the recording ended.
    pub ended: Ended,
    /// Whether the chip says that it lost trace.
    pub has_lost: bool,
    /// Where execution stood then.
    pub stands_at: u32,
}

impl Recording {
    /// The text of a `capture.toml` for a file of the bytes, without an image.
    #[must_use]
    pub fn description(&self, file: &str) -> String {
        let (container, protocol) = match self.source {
            Kind::Mtb => ("mtb", "mtb"),
            Kind::Etmv3 => ("frames", "etmv3"),
            _ => ("frames", "etmv4"),
        };
        let mut text = format!("[capture]\nfile = \"{file}\"\ncontainer = \"{container}\"\n\n[[source]]\n");
        if self.id != 0 {
            text += &format!("id = 0x{:02x}\n", self.id);
        }
        text += &format!("protocol = \"{protocol}\"\n");
        text += &self.cpu.map_or_else(String::new, |cpu| format!("cpu = \"{cpu}\"\n"));
        // The file has the buffer alone, so that its address does not matter.
        let registers = self.registers.iter().filter(|(name, _)| **name != "MTB_BASE");
        let registers = registers.map(|(name, value)| format!("{} = 0x{value:x}", name.to_lowercase()));
        text + &format!("registers = {{ {} }}\n", registers.collect::<Vec<_>>().join(", "))
    }
}

/// A target that was found running or halted, and is left as it was found.
#[derive(Debug)]
pub struct Session<C> {
    client: Client<C>,
    was_running: bool,
}

impl<C: Connection> Session<C> {
    /// A session with a target. Most servers stop it now.
    ///
    /// # Errors
    ///
    /// If there is no target.
    pub fn new(mut client: Client<C>) -> Result<Self, Problem> {
        // Looking for the target stops it. Some servers do not say before that whether it runs.
        let status = client.read_word(DHCSR);
        client.attach()?;
        Ok(Self { client, was_running: status.is_ok_and(processor::runs) })
    }

    /// The target.
    pub const fn client(&mut self) -> &mut Client<C> {
        &mut self.client
    }

    /// Resets the target, and halts it at its first instruction, with the command that most servers have for it.
    ///
    /// # Errors
    ///
    /// If the processor does not stand afterwards.
    pub fn reset(&mut self) -> Result<(), Problem> {
        let answer = self.client.monitor("reset halt")?;
        match processor::runs(self.client.read_word(DHCSR)?) {
            false => Ok(()),
            true => Err(Problem::Refused { request: "monitor reset halt".to_owned(), answer }),
        }
    }

    /// Finds the units, and plans the recording. The switch that makes units visible is set and restored, and so is the position of
    /// an MTB whose memory is used whole; with `only_reads` nothing is written.
    ///
    /// # Errors
    ///
    /// If the chip cannot be recorded in this way.
    pub fn plan(&mut self, request: &Request, only_reads: bool) -> Result<Setup, Problem> {
        if only_reads {
            return plan(&mut self.client, request, true);
        }
        let mut execution = Execution::new(&mut self.client);
        execution.all(&[processor::ENABLE])?;
        let planned = plan(execution.client, request, false);
        execution.as_far_as_possible(&[processor::RESTORE]);
        planned
    }

    /// Carries a plan out. `ends` is asked every now and then whether the recording is to end.
    ///
    /// # Errors
    ///
    /// If a unit refuses, or the connection fails. The target is left as far as possible as it was found.
    pub fn record(
        &mut self,
        setup: &Setup,
        until: Until,
        ends: &dyn Fn() -> bool,
    ) -> Result<Recording, Problem> {
        let mut execution = Execution::new(&mut self.client);
        let recorded = execution.all(&setup.plan.setup).and_then(|()| {
            // The reset flag is cleared by reading it.
            execution.client.read_word(DHCSR)?;
            run(execution.client, until, ends)
        });
        let recorded = match recorded {
            Ok(ended) => execution.all(&setup.plan.stop).and_then(|()| taken(&mut execution, setup, ended)),
            Err(problem) => {
                execution.as_far_as_possible(&setup.plan.stop);
                Err(problem)
            }
        };
        execution.as_far_as_possible(&setup.plan.restore);
        recorded
    }

    /// Leaves the target running if it was found running.
    ///
    /// # Errors
    ///
    /// If the connection is broken.
    pub fn leave(mut self) -> Result<(), Problem> {
        if self.was_running { self.client.resume() } else { Ok(()) }
    }
}

/// Chooses the units, and makes the plan.
fn plan<C: Connection>(
    client: &mut Client<C>,
    request: &Request,
    only_reads: bool,
) -> Result<Setup, Problem> {
    let found = match &request.chip {
        Some(chip) if !chip.units.is_empty() => Found { units: chip.units.clone(), ..Found::default() },
        _ => rom::units(client, request.rom)?,
    };
    let ring = request.chip.as_ref().and_then(|chip| chip.ring);
    let first = |kinds: &[Kind]| found.units.iter().find(|unit| kinds.contains(&unit.kind)).copied();
    let etm = first(&[Kind::Etmv4, Kind::Etmv3]);
    let sink = match first(&[Kind::Etb, Kind::Tmc]) {
        _ if let Some(ring) = ring => {
            let (address, bytes) = request.buffer.ok_or(Problem::BufferNeeded)?;
            let is_too_large = bytes.is_power_of_two() && bytes.trailing_zeros() > ring.most;
            let fault = if is_too_large {
                Some(BufferFault::Large(1 << ring.most.min(31)))
            } else {
                fault_of((address, bytes))
            };
            fault.map_or(Ok(()), |fault| Err(Problem::Buffer(fault)))?;
            Some(Sink::Ring(address, bytes, ring))
        }
        Some(Unit { kind: Kind::Etb, base, .. }) => Some(Sink::Etb(base)),
        Some(Unit { base, .. }) => Some(Sink::Tmc(base)),
        None => None,
    };
    // An ETM's trace has more in less room than that of an MTB.
    let (source, sink) = match (etm.zip(sink), first(&[Kind::Mtb])) {
        (Some(chosen), _) => chosen,
        (None, Some(mtb)) => (mtb, buffer_of_mtb(client, mtb, request.buffer, only_reads)?),
        (None, None) if etm.is_some() => {
            let has_port = first(&[Kind::Tpiu]).is_some();
            return Err(Problem::NoBuffer { has_port, silent: found.silent });
        }
        (None, None) => return Err(Problem::NoSource { silent: found.silent }),
    };
    let mut plan = Plan { setup: vec![processor::ENABLE], ..Plan::default() };
    let of_chip = |phase: Phase| match (&request.chip, sink) {
        (Some(chip), Sink::Ring(address, bytes, _)) => chip.steps(phase, address, bytes.trailing_zeros()),
        (Some(chip), _) => chip.steps(phase, 0, 0),
        (None, _) => Vec::new(),
    };
    plan.setup.extend(of_chip(Phase::Setup));
    match sink {
        Sink::Etb(base) => plan.setup.extend(etb::setup(base)),
        Sink::Tmc(base) => plan.setup.extend(tmc::setup(base)),
        Sink::Memory(..) | Sink::Ring(..) => {}
    }
    let funnels = found.units.iter().filter(|unit| unit.kind == Kind::Funnel && source.kind != Kind::Mtb);
    for unit in funnels {
        plan.setup.extend(funnel::setup(unit.base));
        plan.restore.push(funnel::restore(unit.base));
    }
    // The source comes last, and is switched off first: a sink that captures nothing would lose its trace.
    match (source.kind, sink) {
        (Kind::Etmv3, _) => {
            plan.setup.extend(etmv3::setup(source.base, TRACE_ID));
            plan.stop.extend(etmv3::stop(source.base));
        }
        (Kind::Etmv4, _) => {
            plan.setup.extend(etmv4::setup(source.base, TRACE_ID));
            plan.stop.extend(etmv4::stop(source.base));
        }
        (_, Sink::Memory(address, bytes)) => {
            plan.setup.extend(mtb::setup(source.base, (address, bytes)));
            plan.stop.extend(mtb::stop(source.base));
        }
        _ => return Err(Problem::NoSource { silent: found.silent }),
    }
    match sink {
        Sink::Etb(base) => plan.stop.extend(etb::stop(base)),
        Sink::Tmc(base) => {
            plan.stop.extend(tmc::stop(base));
            plan.restore.push(tmc::restore(base));
        }
        Sink::Memory(..) | Sink::Ring(..) => {}
    }
    plan.stop.extend(of_chip(Phase::Stop));
    plan.restore.extend(of_chip(Phase::Restore));
    plan.restore.push(processor::RESTORE);
    let overflow = request.chip.as_ref().and_then(|chip| chip.overflow);
    let cpu = processor::name(client.read_word(CPUID)?);
    Ok(Setup { found, source, sink, plan, cpu, overflow })
}

/// The part number of the MTB of a Cortex-M0+, which traces into the program's memory.
const MTB_OF_M0_PLUS: u16 = 0x932;

/// The memory that an MTB writes to: the given part, or all of a memory of its own.
fn buffer_of_mtb<C: Connection>(
    client: &mut Client<C>,
    mtb: Unit,
    given: Option<(u32, u32)>,
    only_reads: bool,
) -> Result<Sink, Problem> {
    let start = client.read_word(mtb::ram(mtb.base).address())?;
    // Some chips do not say where the memory is.
    match given {
        None if mtb.part == MTB_OF_M0_PLUS || start == 0 => return Err(Problem::BufferNeeded),
        None if only_reads => return Err(Problem::SizeUnknown),
        Some(buffer) if only_reads => {
            let sink = Sink::Memory(buffer.0, buffer.1);
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
    fault.map_or(Ok(Sink::Memory(address, bytes)), |fault| Err(Problem::Buffer(fault)))
}

/// What is wrong with the size or place of memory for a trace.
const fn fault_of((address, bytes): (u32, u32)) -> Option<BufferFault> {
    match bytes.is_power_of_two() && bytes >= LEAST_BUFFER {
        false => Some(BufferFault::Size(bytes)),
        true if address % bytes != 0 => Some(BufferFault::Address(address)),
        true => None,
    }
}

/// Lets the target run until the recording ends.
fn run<C: Connection>(
    client: &mut Client<C>,
    until: Until,
    ends: &dyn Fn() -> bool,
) -> Result<Ended, Problem> {
    const ASKED_EVERY: Duration = Duration::from_millis(100);
    let breakpoint = match until {
        Until::Address(address) => Some((client.set_breakpoint(address)?, address)),
        Until::Time(_) | Until::Asked => None,
    };
    client.resume()?;
    let began = Instant::now();
    let is_over = || matches!(until, Until::Time(time) if began.elapsed() >= time);
    let stopped = loop {
        match client.wait(ASKED_EVERY) {
            Ok(Some(Stop::Gone)) => break Err(Problem::NoTarget),
            Ok(Some(Stop::Signal(signal))) => break Ok(Some(signal)),
            Ok(None) if ends() || is_over() => break client.interrupt().map(|_| None),
            Ok(None) => {}
            Err(problem) => break Err(problem),
        }
    };
    let removed = breakpoint.map_or(Ok(()), |(kind, address)| client.remove_breakpoint(kind, address));
    let stopped = stopped?;
    removed?;
    Ok(match (stopped, breakpoint) {
        (None, _) => Ended::Interrupted,
        (Some(_), Some((_, address))) if client.registers()?.general[15] == address => Ended::Reached,
        (Some(signal), _) => Ended::Stopped(signal),
    })
}

/// DHCSR: the processor was reset since the register was read last.
const WAS_RESET: u32 = 1 << 25;

fn taken<C: Connection>(
    execution: &mut Execution<'_, C>,
    setup: &Setup,
    ended: Ended,
) -> Result<Recording, Problem> {
    if execution.client.read_word(DHCSR)? & WAS_RESET != 0 {
        return Err(Problem::Reset);
    }
    let (bytes, address) = match setup.sink {
        Sink::Etb(base) => (etb::read(execution.client, base)?, None),
        Sink::Tmc(base) => (tmc::read(execution.client, base)?, None),
        Sink::Memory(address, bytes) => (execution.client.read(address, bytes)?, Some(address)),
        Sink::Ring(address, bytes, ring) => (of_ring(execution.client, (address, bytes), ring)?, None),
    };
    // An MTB that wrote nothing points at its first place.
    let untouched = |(address, size): (u32, u32)| {
        let position = execution.noted.get("MTB_POSITION").copied().unwrap_or_default();
        position & 4 == 0 && position & (size - 1) & !7 == address & (size - 1)
    };
    if bytes.is_empty() || matches!(setup.sink, Sink::Memory(address, size) if untouched((address, size))) {
        return Err(Problem::Nothing { silent: setup.found.silent.clone() });
    }
    let has_lost = match setup.overflow {
        Some((address, mask)) => execution.client.read_word(address)? & mask != 0,
        None => false,
    };
    Ok(Recording {
        bytes,
        address,
        source: setup.source.kind,
        id: if setup.source.kind == Kind::Mtb { 0 } else { TRACE_ID },
        cpu: setup.cpu,
        registers: execution.noted.clone(),
        ended,
        has_lost,
        stands_at: execution.client.registers()?.general[15],
    })
}

/// The words of a ring, the oldest first. Frames keep their places in the ring, so the first is the first whole one.
fn of_ring<C: Connection>(
    client: &mut Client<C>,
    (address, bytes): (u32, u32),
    ring: Ring,
) -> Result<Vec<u8>, Problem> {
    const FRAME: u32 = 16;
    let written = u64::from(ring.of.saturating_sub(client.read_word(ring.left)?)) * 4;
    let pointer = client.read_word(ring.pointer)?.wrapping_sub(address) % bytes;
    let mut found = client.read(address, bytes)?;
    if written < u64::from(bytes) {
        found.truncate(pointer as usize);
    } else {
        let oldest = pointer.next_multiple_of(FRAME) % bytes;
        found.rotate_left(oldest as usize);
        found.truncate((bytes - (oldest.wrapping_sub(pointer) % bytes)) as usize);
    }
    Ok(found)
}
