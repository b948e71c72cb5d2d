//! What GDB asks for, and the answers (GDB manual, "Remote Protocol").
//!
//! GDB speaks of threads: each is a source's recording, the first one has the number 1. One of them moves at a time: the one that GDB
//! names, or else the one that it looked at last. The others stay where they are.

mod queries;
mod resume;
mod running;

use std::collections::BTreeMap;

use tracewalk::ids::Address;

use crate::core::Core;
use crate::memory;
use crate::packet::{Request, hex, number, packet, unhex};
use crate::registers::Register;

use running::Running;

/// A conversation with one GDB.
pub(crate) struct Dialogue<'c, 'i> {
    /// The recordings; there is at least one.
    cores: &'c mut [Core<'i>],
    /// The one that registers and memory are asked of.
    general: usize,
    /// The one that GDB said should move.
    moving: Option<usize>,
    /// How many breakpoints are at each address.
    breakpoints: BTreeMap<Address, u32>,
    acknowledges: bool,
    /// The last answer.
    last: Vec<u8>,
    running: Option<Running>,
    is_over: bool,
}

/// Something was asked that cannot be done: what GDB is to say. Numbers mean nothing to it.
pub(crate) const REFUSED: &str = "E01";
const DONE: &str = "OK";
/// What is asked is not known here.
const UNKNOWN: &str = "";

/// Breakpoints that are kept.
const MOST_BREAKPOINTS: usize = 1 << 16;

impl<'c, 'i> Dialogue<'c, 'i> {
    /// A conversation that begins; `None` without a recording.
    pub(crate) fn new(cores: &'c mut [Core<'i>]) -> Option<Self> {
        if cores.is_empty() {
            return None;
        }
        Some(Self {
            cores,
            general: 0,
            moving: None,
            breakpoints: BTreeMap::new(),
            acknowledges: true,
            last: Vec::new(),
            running: None,
            is_over: false,
        })
    }

    /// Whether GDB has said goodbye.
    pub(crate) const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether something runs, of which [`Dialogue::run`] is to be asked.
    pub(crate) const fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// What is to be sent for a request.
    pub(crate) fn request(&mut self, request: Request) -> Vec<u8> {
        match request {
            Request::Damaged => b"-".to_vec(),
            Request::Again => self.last.clone(),
            Request::Interrupt => self.interrupt().map_or_else(Vec::new, |answer| self.answer(&answer)),
            Request::Packet(contents) => {
                let mut out = if self.acknowledges { b"+".to_vec() } else { Vec::new() };
                if let Some(answers) = self.packet(&contents) {
                    for answer in answers {
                        out.extend(self.answer(&answer));
                    }
                }
                out
            }
        }
    }

    /// Goes on with what runs; what is to be sent when it stops.
    pub(crate) fn run(&mut self) -> Option<Vec<u8>> {
        let answer = self.go_on()?;
        Some(self.answer(&answer))
    }

    fn answer(&mut self, contents: &str) -> Vec<u8> {
        self.last = packet(contents.as_bytes());
        self.last.clone()
    }

    /// The answers to a packet; `None` if there is none yet.
    fn packet(&mut self, contents: &[u8]) -> Option<Vec<String>> {
        let (first, rest) = contents.split_first()?;
        let answer = match first {
            b'?' => self.stopped(),
            b'g' => self.registers(),
            b'p' => self.register(rest).unwrap_or_else(|| REFUSED.to_owned()),
            b'P' => self.set_register(rest),
            b'm' => self.memory(rest).unwrap_or_else(|| REFUSED.to_owned()),
            // What was executed does not change.
            b'G' | b'M' | b'X' => REFUSED.to_owned(),
            b'H' => self.select(rest),
            b'T' => self.thread(rest).map_or(REFUSED, |_| DONE).to_owned(),
            b'Z' | b'z' => self.breakpoint(*first == b'Z', rest),
            b's' | b'c' | b'S' | b'C' | b'b' => return self.resume(contents).map(|answer| vec![answer]),
            b'v' => return self.verbose(contents).map(|answer| vec![answer]),
            b'q' | b'Q' => return Some(self.query(contents)),
            b'D' | b'k' => {
                self.is_over = true;
                DONE.to_owned()
            }
            _ => UNKNOWN.to_owned(),
        };
        Some(vec![answer])
    }

    fn core(&mut self) -> &mut Core<'i> {
        let general = self.general.min(self.cores.len() - 1);
        &mut self.cores[general]
    }

    /// The recording that a thread's number means.
    fn thread(&self, digits: &[u8]) -> Option<usize> {
        let index = usize::try_from(number(digits)?).ok()?.checked_sub(1)?;
        (index < self.cores.len()).then_some(index)
    }

    /// `H`: which thread what follows is about; 0 is any, -1 all.
    fn select(&mut self, rest: &[u8]) -> String {
        let Some((kind, digits)) = rest.split_first() else { return REFUSED.to_owned() };
        let any = matches!(digits, b"0" | b"-1");
        let thread = self.thread(digits);
        if thread.is_none() && !any {
            return REFUSED.to_owned();
        }
        match kind {
            b'g' => self.general = thread.unwrap_or(self.general),
            b'c' => self.moving = thread,
            _ => return REFUSED.to_owned(),
        }
        DONE.to_owned()
    }

    /// `g`: all registers.
    fn registers(&mut self) -> String {
        let core = self.core();
        let layout = core.unwinder.architecture.registers();
        let Some(state) = core.state() else { return REFUSED.to_owned() };
        let values = &state.machine.registers;
        layout.iter().map(|register| shown(values.get(&register.number).copied(), *register)).collect()
    }

    /// `p`: one register.
    fn register(&mut self, digits: &[u8]) -> Option<String> {
        let wanted = number(digits)?;
        let core = self.core();
        let layout = core.unwinder.architecture.registers();
        let register = layout.into_iter().find(|register| u64::from(register.number) == wanted)?;
        let value = core.state()?.machine.registers.get(&register.number).copied();
        Some(shown(value, register))
    }

    /// `P`: the step can be set, and nothing else.
    fn set_register(&mut self, rest: &[u8]) -> String {
        let core = self.core();
        let Some((register, value)) = split(rest, b'=') else { return REFUSED.to_owned() };
        if number(register) != Some(core.unwinder.architecture.step().into()) {
            return REFUSED.to_owned();
        }
        let value = unhex(value).and_then(|bytes| Some(u64::from_le_bytes(bytes.try_into().ok()?)));
        let moved = value.is_some_and(|step| core.seek_step(step));
        (if moved { DONE } else { REFUSED }).to_owned()
    }

    /// `m`: memory, as far as it is known without a hole.
    fn memory(&mut self, rest: &[u8]) -> Option<String> {
        let (start, length) = split(rest, b',')?;
        let (start, length) = (number(start)?, number(length)?);
        let bytes = memory::read(self.core(), start, length);
        (!bytes.is_empty()).then(|| hex(&bytes))
    }

    /// `Z` and `z`: breakpoints, in software or hardware.
    fn breakpoint(&mut self, is_set: bool, rest: &[u8]) -> String {
        let mut parts = rest.split(|byte| *byte == b',');
        let (Some(b"0" | b"1"), Some(address)) = (parts.next(), parts.next()) else {
            return UNKNOWN.to_owned();
        };
        let Some(address) = number(address).map(Address::new) else { return REFUSED.to_owned() };
        if is_set {
            if self.breakpoints.len() >= MOST_BREAKPOINTS {
                return REFUSED.to_owned();
            }
            let count = self.breakpoints.entry(address).or_default();
            *count = count.saturating_add(1);
        } else if let Some(count) = self.breakpoints.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.breakpoints.remove(&address);
            }
        }
        DONE.to_owned()
    }
}

/// A register's value as GDB wants it, in the order of its bytes.
fn shown(value: Option<u64>, Register { bytes, .. }: Register) -> String {
    match value {
        Some(value) => hex(value.to_le_bytes().get(..bytes).unwrap_or_default()),
        None => "xx".repeat(bytes),
    }
}

/// What is in front of the first such byte, and behind it.
fn split(bytes: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let place = bytes.iter().position(|byte| *byte == at)?;
    Some((bytes.get(..place)?, bytes.get(place + 1..)?))
}
