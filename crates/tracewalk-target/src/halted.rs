//! What a debugger can read of a halted processor: its registers, the System Control Block, its stacks, and the trace that a unit kept.
//! No instruction runs, and what has to be changed to read a trace unit is changed back.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::Range;

use crate::client::{Client, Registers};
use crate::connection::Connection;
use crate::plan::{Execution, Register, Step};
use crate::problem::Problem;
use crate::processor::{self, BASE, DHCSR};
use crate::record::{Ended, Recording};
use crate::rom::{self, Found, Kind};
use crate::units::{etb, etmv3, etmv4, mtb, tmc};

/// The state of a halted processor.
#[derive(Clone, Debug)]
pub struct Halted {
    /// The core registers.
    pub registers: Registers,
    /// The process stack pointer and the main stack pointer, if they can be read.
    pub stack_pointers: [Option<u32>; 2],
    /// Memory, by its first address.
    pub memory: BTreeMap<u32, Vec<u8>>,
    /// The trace of an ETM, if one traced into a buffer. That of an MTB is in `memory`, with its registers.
    pub trace: Option<Recording>,
    /// Whether the processor was running when it was found.
    pub was_running: bool,
}

/// The bytes of a stack that are read.
const OF_STACK: u32 = 1024;
/// The most bytes of an MTB's own memory.
const OF_MTB: u32 = 1 << 16;
/// The bytes of code that are read at a place, to compare them with the image.
const OF_CODE: u32 = 64;
/// The first address after M profile's range for code (DDI 0403E, B3.1): elsewhere, reading may have an effect.
const DATA: u32 = 0x2000_0000;
/// The words from CPUID to the fault addresses, and the fault status of the Secure state (DDI 0553B, D1.2.3).
const CONTROL_BLOCK: [(u32, u32); 2] = [(BASE + 0xd00, 64), (BASE + 0xde4, 8)];
/// The number of xPSR for DCRSR (DDI 0403E, C1.6.3).
const XPSR: u32 = 16;
/// The numbers of PSP and MSP for DCRSR (DDI 0403E, C1.6.3).
const STACK_POINTERS: [u32; 2] = [18, 17];

/// Reads the state of a halted processor, with these stretches of its memory.
///
/// # Errors
///
/// If the registers cannot be read. Memory that cannot be read is left out.
pub fn read<C: Connection>(
    client: &mut Client<C>,
    rom: Option<u32>,
    ram: &[Range<u32>],
) -> Result<Halted, Problem> {
    let status = client.read_word(DHCSR);
    client.attach()?;
    let mut registers = client.registers()?;
    registers.xpsr = registers.xpsr.or_else(|| special(client, XPSR).ok());
    let stack_pointers = stack_pointers(client);
    let mut memory = BTreeMap::new();
    let stacks = [Some(registers.general[13]), stack_pointers[0], stack_pointers[1]];
    let of_stacks = stacks.into_iter().flatten().map(|start| (start & !3, OF_STACK));
    let stretches = ram.iter().map(|range| (range.start & !3, range.end.saturating_sub(range.start)));
    for (start, bytes) in CONTROL_BLOCK.into_iter().chain(stretches).chain(of_stacks) {
        let is_known = memory.range(..=start).next_back().is_some_and(|(first, known): (&u32, &Vec<u8>)| {
            u64::from(*first) + known.len() as u64 >= u64::from(start) + u64::from(bytes)
        });
        let found = if is_known { Vec::new() } else { up_to_a_fault(client, start, bytes)? };
        if !found.is_empty() {
            memory.insert(start, found);
        }
    }
    for at in code_places(&registers, &memory, stacks) {
        let start = at.saturating_sub(OF_CODE / 2) & !3;
        if at < DATA && !memory.contains_key(&start) {
            let found = up_to_a_fault(client, start, OF_CODE)?;
            if !found.is_empty() {
                memory.insert(start, found);
            }
        }
    }
    let trace = match rom::units(client, rom) {
        Ok(found) => {
            keep_mtb(client, &found, &mut memory)?;
            of_etm(client, &found)?
        }
        Err(Problem::NoRomTable) => None,
        Err(problem) => return Err(problem),
    };
    let was_running = status.is_ok_and(processor::runs);
    Ok(Halted { registers, stack_pointers, memory, trace, was_running })
}

/// The process stack pointer and the main stack pointer of a processor that stands, if they can be read.
pub fn stack_pointers<C: Connection>(client: &mut Client<C>) -> [Option<u32>; 2] {
    STACK_POINTERS.map(|number| special(client, number).ok())
}

/// A register that GDB's numbering lacks: the debugger's own registers transfer it.
fn special<C: Connection>(client: &mut Client<C>, number: u32) -> Result<u32, Problem> {
    client.write_word(BASE + 0xdf4, number)?;
    client.read_word(BASE + 0xdf8)
}

/// The place where the processor was halted, and those that an exception's frame would have at the stack pointers: lr and pc.
fn code_places(
    registers: &Registers,
    memory: &BTreeMap<u32, Vec<u8>>,
    stacks: [Option<u32>; 3],
) -> BTreeSet<u32> {
    let word = |at: u32| {
        let (start, bytes) = memory.range(..=at).next_back()?;
        let offset = usize::try_from(at - start).ok()?;
        bytes.get(offset..)?.first_chunk().copied().map(u32::from_le_bytes)
    };
    let frame = |start: u32| [20, 24].into_iter().filter_map(move |offset| word(start.checked_add(offset)?));
    let stacked = stacks.into_iter().flatten().flat_map(frame);
    stacked.chain([registers.general[15]]).map(|at| at & !1).collect()
}

/// Memory from an address on, up to the first word that cannot be read.
fn up_to_a_fault<C: Connection>(client: &mut Client<C>, start: u32, bytes: u32) -> Result<Vec<u8>, Problem> {
    const PIECE: u32 = 256;
    let mut found = Vec::new();
    while let Some(left) =
        bytes.checked_sub(u32::try_from(found.len()).unwrap_or(u32::MAX)).filter(|left| *left > 0)
    {
        let at = start.wrapping_add(bytes - left);
        match client.read(at, left.min(PIECE)) {
            Ok(piece) => found.extend(piece),
            Err(Problem::Access { .. }) => {
                // The end of memory may be inside the piece.
                for word in (0..left.min(PIECE)).step_by(4) {
                    match client.read_word(at.wrapping_add(word)) {
                        Ok(value) => found.extend(value.to_le_bytes()),
                        Err(Problem::Access { .. }) => return Ok(found),
                        Err(problem) => return Err(problem),
                    }
                }
            }
            Err(problem) => return Err(problem),
        }
    }
    Ok(found)
}

/// Reads the registers and the memory of an MTB that was set up.
fn keep_mtb<C: Connection>(
    client: &mut Client<C>,
    found: &Found,
    memory: &mut BTreeMap<u32, Vec<u8>>,
) -> Result<(), Problem> {
    for unit in found.units.iter().filter(|unit| unit.kind == Kind::Mtb) {
        let registers = client.read(unit.base, 16)?;
        if registers.get(4..8).is_none_or(|master| master == [0; 4]) {
            continue;
        }
        let start = client.read_word(mtb::ram(unit.base).address())?;
        memory.insert(unit.base, registers);
        if start != 0 && !memory.contains_key(&start) {
            memory.insert(start, up_to_a_fault(client, start, OF_MTB)?);
        }
    }
    Ok(())
}

/// Reads the buffer of an ETM that traces: both are switched off for it, and on again.
fn of_etm<C: Connection>(client: &mut Client<C>, found: &Found) -> Result<Option<Recording>, Problem> {
    let first = |kinds: &[Kind]| found.units.iter().find(|unit| kinds.contains(&unit.kind)).copied();
    let source = first(&[Kind::Etmv4, Kind::Etmv3]);
    let Some((source, sink)) = source.zip(first(&[Kind::Etb, Kind::Tmc])) else { return Ok(None) };
    let (registers, id, stop) = match source.kind {
        Kind::Etmv3 => (etmv3::registers(source.base), etmv3::id(source.base), etmv3::stop(source.base)),
        _ => (etmv4::registers(source.base), etmv4::id(source.base), etmv4::stop(source.base)),
    };
    let is_etb = sink.kind == Kind::Etb;
    let kept = if is_etb { etb::kept(sink.base) } else { tmc::kept(sink.base) };
    let mut execution = Execution::new(client);
    execution.all(&registers.iter().map(|at| Step::Note(*at)).collect::<Vec<_>>())?;
    let id = u8::try_from(execution.client.read_word(id.address())? & 0x7f).unwrap_or_default();
    let captures = execution.client.read_word(etb::control(sink.base).address())? & 1 != 0;
    let traces = match source.kind {
        Kind::Etmv3 => execution.client.read_word(source.base)? & 0x401 == 0,
        _ => execution.client.read_word(source.base + 0x4)? & 1 != 0,
    };
    if !captures || !traces || id == 0 {
        return Ok(None);
    }
    let control: Register = stop.first().map_or(etb::control(sink.base), Step::register);
    let kept = kept.into_iter().chain([control]).collect::<Vec<_>>();
    execution.all(&kept.iter().map(|at| Step::Keep(*at)).collect::<Vec<_>>())?;
    let stop_sink = if is_etb { etb::stop(sink.base) } else { tmc::stop(sink.base) };
    let stopped = execution.all(&stop).and_then(|()| execution.all(&stop_sink));
    let bytes = stopped.and_then(|()| match is_etb {
        true => etb::read(execution.client, sink.base),
        false => tmc::read(execution.client, sink.base),
    });
    execution.as_far_as_possible(&kept.iter().map(|at| Step::Restore(*at)).collect::<Vec<_>>());
    let cpu = processor::name(execution.client.read_word(processor::CPUID)?);
    let stands_at = execution.client.registers()?.general[15];
    Ok(Some(Recording {
        bytes: bytes?,
        address: None,
        source: source.kind,
        id,
        cpu,
        registers: execution.noted.clone(),
        ended: Ended::Interrupted,
        has_lost: false,
        has_itm: false,
        left: false,
        stands_at,
    }))
}

impl Halted {
    /// The registers and memory as GDB prints them, for `crash.log`.
    #[must_use]
    pub fn log(&self) -> String {
        let mut log = String::new();
        let names = ["sp", "lr", "pc"];
        let mut line = |name: &str, value: u32| {
            // A string takes everything.
            let _ = writeln!(log, "{name:<15}0x{value:<18x}{value}");
        };
        for (number, value) in self.registers.general.iter().enumerate() {
            match number.checked_sub(13).and_then(|index| names.get(index)) {
                Some(name) => line(name, *value),
                None => line(&format!("r{number}"), *value),
            }
        }
        self.registers.xpsr.into_iter().for_each(|value| line("xpsr", value));
        for (name, value) in ["psp", "msp"].into_iter().zip(self.stack_pointers) {
            value.into_iter().for_each(|value| line(name, value));
        }
        for (start, bytes) in &self.memory {
            for (row, words) in bytes.chunks(16).enumerate() {
                let _ = write!(log, "0x{:08x}:", start.wrapping_add(16 * u32::try_from(row).unwrap_or(0)));
                for word in words.as_chunks().0 {
                    let _ = write!(log, "\t0x{:08x}", u32::from_le_bytes(*word));
                }
                log.push('\n');
            }
        }
        log
    }
}
