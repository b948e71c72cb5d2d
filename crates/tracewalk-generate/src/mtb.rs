//! A path as the packets of an MTB (CoreSight MTB-M0+ Technical Reference Manual, DDI 0486B, 2.3.1).
//!
//! A packet is written for each change of the program counter that is not sequential: for taken branches; for exceptions; and two for a return from an exception, from the returning instruction to
//! EXC_RETURN and from there to where execution resumes, or to the handler of a tail-chained exception. The buffer goes
//! round and keeps the newest packets.
//!
//! A path does not say the value of EXC_RETURN. It is made up from what was interrupted: a handler, or the thread, whose
//! stack is an option.

use tracewalk::ids::Address;
use tracewalk::isa::Class;
use tracewalk::program::Program;
use tracewalk::protocol::mtb::{BufferSize, Config, Packet, Registers};

use crate::path::{Path, Step, Taken};
use crate::story::{Story, Went};
use crate::trace::EncodeError;

/// How the MTB is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The size of the buffer.
    pub size: BufferSize,
    /// The address of the MTB's memory, which the buffer starts at: a multiple of the buffer's size.
    pub base: Address,
    /// Whether a branch to the next address counts as a change. The manual leaves it open.
    pub writes_branches_to_next: bool,
    /// Whether thread mode uses the process stack rather than the main stack.
    pub process_stack: bool,
}

/// The contents of an MTB when the processor was halted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// The buffer's memory, zero where nothing was written.
    pub bytes: Vec<u8>,
    /// The MTB's registers.
    pub registers: Registers,
    /// What the packets say: the path from the oldest packet in the buffer to the newest.
    pub told: Path,
}

/// EXC_RETURN (ARMv6-M Architecture Reference Manual, DDI 0419E, B1.5.8).
const TO_HANDLER: Address = Address(0xffff_fff1);
const TO_THREAD_MAIN_STACK: Address = Address(0xffff_fff9);
const TO_THREAD_PROCESS_STACK: Address = Address(0xffff_fffd);

/// Runs `path` past an MTB that was switched on before its first instruction.
pub fn encode(path: &Path, program: &Program, options: &Options) -> Result<Buffer, EncodeError> {
    let mut unit = Unit {
        writes_branches_to_next: options.writes_branches_to_next,
        story: Story::new(path, program),
        thread: if options.process_stack { TO_THREAD_PROCESS_STACK } else { TO_THREAD_MAIN_STACK },
        active: Vec::new(),
        returning: None,
        packets: Vec::new(),
        told: Vec::new(),
    };
    for (index, step) in unit.story.steps() {
        match step {
            Step::Instruction(_) => unit.instruction(index, step)?,
            Step::Exception(taken) => unit.exception(taken, step),
            // The returning instruction wrote both packets, or the exception behind it the second one.
            Step::ExceptionReturn => unit.told.push(*step),
            Step::Access(_) | Step::ContextId(_) => {}
        }
    }
    Ok(unit.into_buffer(options))
}

/// A packet, and the place among the told steps of the one that it starts with.
struct Written {
    packet: Packet,
    tells_from: usize,
    /// How many steps are told when it is the newest packet.
    tells_until: usize,
}

struct Unit<'a> {
    writes_branches_to_next: bool,
    story: Story<'a>,
    /// EXC_RETURN for a return to thread mode.
    thread: Address,
    /// EXC_RETURN of each active exception.
    active: Vec<Address>,
    /// EXC_RETURN of a return whose second packet is still to be written.
    returning: Option<Address>,
    packets: Vec<Written>,
    told: Vec<Step>,
}

impl Unit<'_> {
    fn instruction(&mut self, index: usize, step: &Step) -> Result<(), EncodeError> {
        let Step::Instruction(executed) = step else { return Ok(()) };
        if let Some(exc_return) = self.returning.take() {
            self.resume(exc_return, executed.address);
        }
        let instruction = self.story.instruction(executed)?;
        let mut told = *executed;
        if !instruction.is_branch() {
            // Packets do not tell the conditions of anything but branches.
            told.passed = true;
        }
        self.told.push(Step::Instruction(told));
        let target = match (instruction.class, self.story.went(index)) {
            _ if !executed.passed => None,
            // Where the path ends nothing shows that it went on.
            (_, Went::End) | (Class::Other | Class::Barrier(_), _) => None,
            (Class::Direct(target), _) => Some(target.address),
            (Class::Indirect, _) if self.story.returns(index) => {
                let exc_return = self.active.pop().unwrap_or(self.thread);
                self.returning = Some(exc_return);
                Some(exc_return)
            }
            (Class::Indirect, Went::To(target)) => Some(target.address),
            (Class::Indirect, Went::TailChained) => None,
        };
        if let Some(target) =
            target.filter(|&target| self.writes_branches_to_next || target != executed.end())
        {
            // The marker of the return belongs to the packet, though its step comes only now.
            let returns = usize::from(self.returning.is_some());
            let last = self.told.len() - 1;
            self.write(Packet::new(executed.address, target), last, returns);
        }
        Ok(())
    }

    fn exception(&mut self, taken: &Taken, step: &Step) {
        let mut tells_from = self.told.len();
        let source = match (taken.preferred_return, self.returning.take()) {
            // Tail-chained: the new exception's handler returns where the old one's would have. The packet starts with
            // the return, which is the step before.
            (None, Some(exc_return)) => {
                self.active.push(exc_return);
                tells_from -= 1;
                exc_return
            }
            (Some(at), returning) => {
                if let Some(exc_return) = returning {
                    self.resume(exc_return, at);
                }
                let exc_return = if self.active.is_empty() { self.thread } else { TO_HANDLER };
                self.active.push(exc_return);
                at
            }
            (None, None) => return,
        };
        self.told.push(*step);
        self.write(Packet::new(source, taken.handler).with_atomic(true), tells_from, 0);
    }

    /// The second packet of a return.
    fn resume(&mut self, exc_return: Address, to: Address) {
        let marker = self.told.len().saturating_sub(1);
        self.write(Packet::new(exc_return, to).with_atomic(true), marker, 0);
    }

    fn write(&mut self, packet: Packet, tells_from: usize, steps_to_come: usize) {
        let first = self.packets.is_empty();
        let tells_until = self.told.len() + steps_to_come;
        self.packets.push(Written { packet: packet.with_start(first), tells_from, tells_until });
    }

    /// What the buffer holds in the end.
    fn into_buffer(self, options: &Options) -> Buffer {
        let packet_bytes = Packet::new(Address(0), Address(0)).to_bytes().len();
        let size = usize::try_from(options.size.bytes()).unwrap_or(usize::MAX);
        let places = size / packet_bytes;
        let mut bytes = vec![0; size];
        for (number, written) in
            self.packets.iter().enumerate().skip(self.packets.len().saturating_sub(places))
        {
            let at = number % places * packet_bytes;
            if let Some(place) = bytes.get_mut(at..at + packet_bytes) {
                place.copy_from_slice(&written.packet.to_bytes());
            }
        }
        let next = self.packets.len() % places * packet_bytes;
        let config = Config {
            pointer: u32::try_from(next).unwrap_or_default(),
            wrapped: self.packets.len() >= places,
            size: options.size,
            enabled: true,
            halt_request: false,
            stops_by_signal: false,
            starts_by_signal: false,
            watermark: None,
            base: Some(options.base),
            pointer_bits: None,
        };
        let oldest = self.packets.len().saturating_sub(places);
        let from = self.packets.get(oldest).map_or(0, |written| written.tells_from);
        let until = self.packets.last().map_or(0, |written| written.tells_until);
        let told = self.told.get(from..until.min(self.told.len())).unwrap_or_default();
        Buffer { bytes, registers: config.to_registers(), told: Path { steps: told.to_vec() } }
    }
}
