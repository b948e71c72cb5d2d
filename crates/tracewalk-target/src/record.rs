//! Records what a target executes.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::chip::Chip;
use crate::choice::plan;
pub use crate::choice::{ITM_ID, Setup, TRACE_ID};
use crate::client::{Client, Stop};
use crate::connection::Connection;
use crate::plan::Execution;
use crate::problem::{Fault, Problem};
use crate::processor::{self, DHCSR};
use crate::rom::Kind;
use crate::sink::{Sink, Stretch};
use crate::units::mtb;

/// What is to be recorded.
#[derive(Clone, Debug)]
pub struct Request {
    /// The address of the chip's first ROM table, if it is not at a usual place.
    pub rom: Option<u32>,
    /// The memory for the trace, by address and size, if the chip traces into the program's memory.
    pub buffer: Option<(u32, u32)>,
    /// When the recording ends.
    pub until: Until,
    /// What is known of the chip that no ROM table has.
    pub chip: Option<Chip>,
    /// What is kept when the buffer is full.
    pub keep: Keep,
    /// Whether the ITM traces exceptions with their times beside an ETM.
    pub itm: bool,
}

/// What is kept when the buffer is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// The newest trace.
    #[default]
    Newest,
    /// All: the recording ends when the buffer was full this number of times. An MTB halts the processor for it.
    Fills(u32),
}

impl Request {
    /// The newest trace up to this end, of a chip that needs nothing else.
    #[must_use]
    pub const fn new(until: Until) -> Self {
        Self { rom: None, buffer: None, until, chip: None, keep: Keep::Newest, itm: false }
    }
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

/// How a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Execution reached the place.
    Reached,
    /// The target stopped for another reason, with this signal.
    Stopped(u8),
    /// The time was over, or the end was asked for.
    Interrupted,
    /// The buffer was full as often as wanted.
    Full,
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
    /// Whether an ITM traced beside the source.
    pub has_itm: bool,
    /// Whether the trace left through pins, so that there are no bytes.
    pub left: bool,
    /// Where execution stood then.
    pub stands_at: u32,
}

impl Recording {
    /// The text of a `capture.toml` for a file of the bytes, or for a recording of the pins, without an image.
    #[must_use]
    pub fn description(&self, file: &str) -> String {
        let mut text = head(file, (self.source, self.id), self.cpu, self.left);
        for (name, value) in &self.registers {
            text += &format!("{} = 0x{value:x}\n", name.to_lowercase());
        }
        if self.has_itm { text + &itm_source() } else { text }
    }
}

/// The description of a file and of its source, up to the source's registers.
pub(crate) fn head(file: &str, (source, id): (Kind, u8), cpu: Option<&str>, left: bool) -> String {
    let protocol = match source {
        Kind::Mtb => "mtb",
        Kind::Etmv3 => "etmv3",
        _ => "etmv4",
    };
    let form = match source {
        _ if left => "wire = \"port\"",
        Kind::Mtb => "container = \"mtb\"",
        _ => "container = \"frames\"",
    };
    let id = if id == 0 { String::new() } else { format!("id = 0x{id:02x}\n") };
    let cpu = cpu.map_or_else(String::new, |cpu| format!("cpu = \"{cpu}\"\n"));
    format!(
        "[capture]\nfile = \"{file}\"\n{form}\n\n[[source]]\n{id}protocol = \"{protocol}\"\n{cpu}\n[source.registers]\n"
    )
}

/// The description of an ITM beside the source.
pub(crate) fn itm_source() -> String {
    format!("\n[[source]]\nid = 0x{ITM_ID:02x}\nprotocol = \"itm\"\n")
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
        let mut full = Vec::new();
        let recorded = execution.all(&setup.plan.setup).and_then(|()| {
            // The reset flag is cleared by reading it.
            execution.client.read_word(DHCSR)?;
            match (setup.keep, setup.sink) {
                (Keep::Fills(most), Sink::Memory(memory)) => {
                    filled(execution.client, setup, memory, most, &mut full, until, ends)
                }
                _ => run(execution.client, until, ends),
            }
        });
        let recorded = match recorded {
            Ok(ended) => {
                execution.all(&setup.plan.stop).and_then(|()| taken(&mut execution, setup, full, ended))
            }
            Err(problem) => {
                execution.undo(&setup.plan.stop);
                Err(problem)
            }
        };
        execution.undo(&setup.plan.restore);
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

/// Lets the target run until the recording ends.
fn run<C: Connection>(
    client: &mut Client<C>,
    until: Until,
    ends: &dyn Fn() -> bool,
) -> Result<Ended, Problem> {
    const ASKED_EVERY: Duration = Duration::from_millis(100);
    // A breakpoint where the processor stands would end the recording before its first instruction.
    if matches!(until, Until::Address(address) if client.registers()?.general[15] == address) {
        client.step()?;
    }
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

/// Lets the target run until the MTB's buffer was full `most` times: the MTB halts the processor, what it wrote is read, and it goes on.
/// Nothing is lost in between, so that the stretches are one trace.
fn filled<C: Connection>(
    client: &mut Client<C>,
    setup: &Setup,
    (address, bytes): Stretch,
    most: u32,
    full: &mut Vec<u8>,
    until: Until,
    ends: &dyn Fn() -> bool,
) -> Result<Ended, Problem> {
    /// No packet begins like this.
    const UNWRITTEN: u32 = u32::MAX;
    /// The S bit of a packet's destination (DDI 0486B, 2.2).
    const BEGINS: u8 = 1;
    let at = mtb::position(setup.source.base);
    let mut last = 0;
    let mut fills = 0;
    loop {
        client.write_word(address + last, UNWRITTEN)?;
        let ended = run(client, until, ends)?;
        let position = client.read_word(at.address())?;
        if fills == 0 && position & mtb::WRAPPED != 0 {
            return Err(Problem::Unit { at, fault: Fault::HaltsNot });
        }
        let next = (position & !7).wrapping_sub(address) & (bytes - 1);
        // A loop may fill the buffer with the same packets again.
        let has_written = client.read_word(address + last)? != UNWRITTEN;
        let written = if next == last && has_written { bytes } else { next.wrapping_sub(last) & (bytes - 1) };
        let to_end = written.min(bytes - last);
        let before = full.len();
        full.extend(client.read(address + last, to_end)?);
        full.extend(client.read(address, written - to_end)?);
        // The first packet after a halt says that tracing began, but nothing ran in between.
        if let Some(destination) = full.get_mut(before + 4).filter(|_| fills > 0) {
            *destination &= !BEGINS;
        }
        last = next;
        match ended {
            Ended::Stopped(_) if written > 0 && next >= mtb::watermark(bytes) => fills += 1,
            _ => return Ok(ended),
        }
        if fills == most {
            return Ok(Ended::Full);
        }
    }
}

/// DHCSR: the processor was reset since the register was read last.
const WAS_RESET: u32 = 1 << 25;

fn taken<C: Connection>(
    execution: &mut Execution<'_, C>,
    setup: &Setup,
    full: Vec<u8>,
    ended: Ended,
) -> Result<Recording, Problem> {
    if execution.client.read_word(DHCSR)? & WAS_RESET != 0 {
        return Err(Problem::Reset);
    }
    let mut address = None;
    let bytes = match setup.sink {
        Sink::Memory(_) if setup.keep != Keep::Newest => {
            // What a buffer in which all of it has room would show.
            let written = u32::try_from(full.len()).unwrap_or(u32::MAX) & !7;
            let room = written.saturating_add(8).next_power_of_two().max(16);
            execution.noted.insert("MTB_POSITION", written);
            execution.noted.insert("MTB_MASTER", room.trailing_zeros() - 4);
            full
        }
        Sink::Memory((start, size)) => {
            address = Some(start);
            // An MTB that wrote nothing points at its first place.
            let position = execution.noted.get("MTB_POSITION").copied().unwrap_or_default();
            let is_untouched =
                position & mtb::WRAPPED == 0 && position & (size - 1) & !7 == start & (size - 1);
            if is_untouched { Vec::new() } else { setup.sink.read(execution.client)? }
        }
        sink => sink.read(execution.client)?,
    };
    if bytes.is_empty() && setup.pins().is_none() {
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
        id: setup.id(),
        cpu: setup.cpu,
        registers: execution.noted.clone(),
        ended,
        has_lost,
        has_itm: setup.has_itm,
        left: setup.pins().is_some(),
        stands_at: execution.client.registers()?.general[15],
    })
}
