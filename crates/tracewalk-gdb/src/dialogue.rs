//! GDB's requests, and the answers (GDB manual, "Remote Protocol").
//!
//! GDB's threads are numbered from 1: first the recording of each source, at its place; then the contexts of each
//! recording that has several. A context is at the place if it runs there, and else where it ran last. The thread of a
//! recording steps through all that ran, the thread of a context only through its own turns, because GDB treats a step
//! that ends in another thread as a signal. One recording moves at a time: that of the thread which GDB names, or else
//! the one that GDB looked at last. The others stay where they are.

mod queries;
mod resume;
mod running;

use std::collections::BTreeMap;

use tracewalk::ids::Address;

use crate::core::{Core, Who};
use crate::memory;
use crate::monitor;
use crate::registers::{Place, Register};
use crate::transfers::{Watch, Watched};
use tracewalk_target::packet::{Request, hex, number, packet, unhex};

use running::Running;

/// A conversation with one GDB.
pub(crate) struct Dialogue<'c, 'i> {
    /// The recordings; there is at least one.
    cores: &'c mut [Core<'i>],
    /// The threads: first one for each recording, in the same order.
    threads: Vec<Thread>,
    /// The thread whose registers and memory GDB asks for.
    general: usize,
    /// The thread that GDB chose to move.
    moving: Option<usize>,
    /// How many breakpoints are at each address.
    breakpoints: BTreeMap<Address, u32>,
    watchpoints: Vec<Watched>,
    acknowledges: bool,
    /// The last answer.
    last: Vec<u8>,
    running: Option<Running>,
    is_over: bool,
}

/// A thread for GDB.
#[derive(Clone, Copy, Debug)]
struct Thread {
    core: usize,
    who: Who,
}

/// The answer to a request that cannot be done. GDB ignores the number.
pub(crate) const REFUSED: &str = "E01";
const DONE: &str = "OK";
/// The answer to an unknown request.
const UNKNOWN: &str = "";

/// A refusal with a sentence, which GDB prints for registers. GDB does not decode an escaped `$` in it.
const UNCHANGED: &str =
    "E.a recording cannot be changed; setting the registers step, time or exception jumps to another place";

/// The most breakpoints.
const MOST_BREAKPOINTS: usize = 1 << 16;

/// The most watchpoints.
const MOST_WATCHPOINTS: usize = 1 << 8;

impl<'c, 'i> Dialogue<'c, 'i> {
    /// A conversation that begins; `None` without a recording.
    pub(crate) fn new(cores: &'c mut [Core<'i>]) -> Option<Self> {
        if cores.is_empty() {
            return None;
        }
        let running = (0..cores.len()).map(|core| Thread { core, who: Who::Running });
        let contexts = cores.iter().enumerate().flat_map(|(core, recording)| {
            let contexts = recording.contexts().count();
            let distinguished = if contexts > 1 { contexts } else { 0 };
            (0..distinguished).map(move |context| Thread { core, who: Who::Context(context) })
        });
        let threads = running.chain(contexts).collect();
        Some(Self {
            cores,
            threads,
            general: 0,
            moving: None,
            breakpoints: BTreeMap::new(),
            watchpoints: Vec::new(),
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

    /// Whether execution is running, so that [`Dialogue::run`] has to be called.
    pub(crate) const fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// The reply to a request.
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

    /// Continues execution; returns the reply once it stops.
    pub(crate) fn run(&mut self) -> Option<Vec<u8>> {
        let answers = self.go_on()?;
        Some(answers.iter().flat_map(|answer| self.answer(answer)).collect())
    }

    fn answer(&mut self, contents: &str) -> Vec<u8> {
        self.last = packet(contents.as_bytes());
        self.last.clone()
    }

    /// The answers to a packet; `None` if there is none yet.
    fn packet(&mut self, contents: &[u8]) -> Option<Vec<String>> {
        let Some((first, rest)) = contents.split_first() else { return Some(vec![UNKNOWN.to_owned()]) };
        let answer = match first {
            b'?' => self.stopped(),
            b'g' => self.registers(),
            b'p' => self.register(rest).unwrap_or_else(|| REFUSED.to_owned()),
            b'P' => self.set_register(rest),
            b'm' => self.memory(rest).unwrap_or_else(|| REFUSED.to_owned()),
            // The recording cannot be changed.
            b'G' | b'M' | b'X' => UNCHANGED.to_owned(),
            b'H' => self.select(rest),
            b'T' => {
                let is_there = self.thread(rest).is_some_and(|thread| self.is_listed(thread));
                (if is_there { DONE } else { REFUSED }).to_owned()
            }
            b'Z' | b'z' => self.breakpoint(*first == b'Z', rest),
            b's' | b'c' | b'S' | b'C' | b'b' => return self.resume(contents),
            b'v' => return self.verbose(contents),
            b'q' | b'Q' => return Some(self.query(contents)),
            b'D' | b'k' => {
                self.is_over = true;
                DONE.to_owned()
            }
            _ => UNKNOWN.to_owned(),
        };
        Some(vec![answer])
    }

    /// The recording whose registers and memory GDB asks for, and the subject in it.
    fn asked(&mut self) -> (&mut Core<'i>, Who) {
        let general = self.general.min(self.threads.len() - 1);
        let Thread { core, who } = self.threads[general];
        // GDB may still look at a context that has not run yet after a jump back.
        let who = if self.is_listed(general) { who } else { Who::Running };
        (&mut self.cores[core], who)
    }

    /// The thread of this number.
    fn thread(&self, digits: &[u8]) -> Option<usize> {
        let index = usize::try_from(number(digits)?).ok()?.checked_sub(1)?;
        (index < self.threads.len()).then_some(index)
    }

    /// Whether GDB sees a thread at the place.
    fn is_listed(&self, thread: usize) -> bool {
        match self.threads.get(thread) {
            None => false,
            Some(Thread { who: Who::Running, .. }) => true,
            Some(&Thread { core, who: Who::Context(context) }) => {
                self.cores.get(core).is_some_and(|core| core.has_run(context))
            }
        }
    }

    /// `H`: the thread of the following requests; 0 is any, -1 all.
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
        let (core, who) = self.asked();
        let layout = core.unwinder.architecture.registers();
        let Some(state) = core.state_of(who) else { return REFUSED.to_owned() };
        let values = &state.machine.registers;
        layout.iter().map(|register| shown(values.get(&register.number).copied(), *register)).collect()
    }

    /// `p`: one register.
    fn register(&mut self, digits: &[u8]) -> Option<String> {
        let wanted = number(digits)?;
        let (core, who) = self.asked();
        let layout = core.unwinder.architecture.registers();
        let register = layout.into_iter().find(|register| u64::from(register.number) == wanted)?;
        let value = core.state_of(who)?.machine.registers.get(&register.number).copied();
        Some(shown(value, register))
    }

    /// `P`: only the registers that give the place can be set, which is a jump.
    fn set_register(&mut self, rest: &[u8]) -> String {
        let (core, _) = self.asked();
        let Some((register, value)) = split(rest, b'=') else { return REFUSED.to_owned() };
        let (register, architecture) = (number(register), core.unwinder.architecture);
        let place =
            Place::ALL.into_iter().find(|place| register == Some(u64::from(architecture.place(*place))));
        let value = unhex(value).and_then(|bytes| Some(u64::from_le_bytes(bytes.try_into().ok()?)));
        match place.zip(value) {
            None => UNCHANGED.to_owned(),
            Some((place, value)) => match monitor::jump(core, place, value) {
                Ok(()) => DONE.to_owned(),
                Err(problem) => format!("E.{problem}"),
            },
        }
    }

    /// `m`: memory, as far as it is known without a hole.
    fn memory(&mut self, rest: &[u8]) -> Option<String> {
        let (start, length) = split(rest, b',')?;
        let (start, length) = (number(start)?, number(length)?);
        let (core, who) = self.asked();
        let bytes = memory::read(core, who, start, length);
        (!bytes.is_empty()).then(|| hex(&bytes))
    }

    /// `Z` and `z`: breakpoints, in software or hardware.
    fn breakpoint(&mut self, is_set: bool, rest: &[u8]) -> String {
        let mut parts = rest.split(|byte| *byte == b',');
        let (Some(kind), Some(address)) = (parts.next(), parts.next()) else { return UNKNOWN.to_owned() };
        let watch = match kind {
            b"0" | b"1" => None,
            b"2" => Some(Watch::Store),
            b"3" => Some(Watch::Load),
            b"4" => Some(Watch::Any),
            _ => return UNKNOWN.to_owned(),
        };
        if let Some(watch) = watch {
            let bytes = number(address).zip(parts.next().and_then(number));
            return self.watchpoint(is_set, watch, bytes);
        }
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

impl Dialogue<'_, '_> {
    /// Sets or removes a watchpoint of `bytes` bytes.
    fn watchpoint(&mut self, is_set: bool, kind: Watch, bytes: Option<(u64, u64)>) -> String {
        let bytes = bytes.and_then(|(start, length)| Some(start..start.checked_add(length)?));
        let Some(watched) = bytes.map(|bytes| Watched { kind, bytes }) else { return REFUSED.to_owned() };
        if !is_set {
            let known = self.watchpoints.iter().position(|known| *known == watched);
            known.map(|known| self.watchpoints.swap_remove(known));
        } else if self.watchpoints.len() < MOST_WATCHPOINTS {
            self.watchpoints.push(watched);
        } else {
            return REFUSED.to_owned();
        }
        DONE.to_owned()
    }
}

/// A register's value in GDB's form, in the order of its bytes.
fn shown(value: Option<u64>, Register { bytes, .. }: Register) -> String {
    match value {
        Some(value) => hex(value.to_le_bytes().get(..bytes).unwrap_or_default()),
        None => "xx".repeat(bytes),
    }
}

/// The bytes before the first `at`, and the bytes after it.
fn split(bytes: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let place = bytes.iter().position(|byte| *byte == at)?;
    Some((bytes.get(..place)?, bytes.get(place + 1..)?))
}
