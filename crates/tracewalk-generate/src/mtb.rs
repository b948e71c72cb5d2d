//! A path as the packets of an MTB (CoreSight MTB-M0+ Technical Reference Manual, DDI 0486B, 2.3.1).
//!
//! A packet is written for each change of the program counter that is not sequential: for taken branches; for exceptions;
//! and two for a return from an exception, from the returning instruction to EXC_RETURN and from there to where execution
//! resumes, or to the handler of a tail-chained exception. The buffer wraps and keeps the newest packets, or ends at
//! a watermark.
//!
//! A path does not contain the value of EXC_RETURN. The encoder derives it from what the exception
//! interrupted: a handler, or the thread, whose stack is an option.
//!
//! ```
//! use tracewalk::ids::Address;
//! use tracewalk::program::Program;
//! use tracewalk_generate::path::Path;
//! use tracewalk_generate::record::Record;
//! use tracewalk::protocol::mtb::BufferSize;
//! use tracewalk_generate::mtb::{Options, encode};
//!
//! # let mut program = Program::new();
//! # program.add(Address::new(0x100), &[0x01, 0x38, 0xfd, 0xd1, 0x70, 0x47])?; // 1: subs r0, #1; bne 1b; bx lr
//! let record = "# tracewalk record 1\nP m\nR 100 104 t32\nR 100 104 t32 !102\n";
//! let path = Path::expand(&Record::parse(record)?, &program)?;
//! let size = BufferSize::new(64).expect("a power of two");
//! let buffer = encode(&path, &program, &Options::new(size, Address::new(0x2000_0000)))?;
//! assert_eq!(buffer.bytes.len(), 64);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::ops::Range;

use tracewalk::ids::Address;
use tracewalk::isa::Class;
use tracewalk::program::Program;
use tracewalk::protocol::mtb::{BufferSize, Config, Packet, Registers, Watermark};

use crate::path::{Path, Step, Taken};
use crate::story::{Story, Went};
use crate::trace::EncodeError;

/// How the MTB is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The size of the buffer.
    pub size: BufferSize,
    /// The pointer value of the start of the buffer. Rounded down to a multiple of the buffer's size.
    pub position: u32,
    /// The MTB's memory.
    pub memory: Memory,
    /// When tracing ends or the processor halts.
    pub watermark: Option<Watermark>,
    /// The steps of the path that ran while tracing was switched off.
    pub untraced: Vec<Range<usize>>,
    /// Whether a branch to the next address counts as a change of the program counter. The manual leaves this
    /// open.
    pub writes_branches_to_next: bool,
    /// Whether thread mode uses the process stack rather than the main stack.
    pub process_stack: bool,
}

/// The memory that an MTB writes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The start address: MTB_BASE.
    pub base: Address,
    /// The size in bytes.
    pub bytes: usize,
    /// How many bits of an address the pointer holds (AWIDTH).
    pub pointer_bits: u8,
}

impl Options {
    /// A buffer that occupies all of the memory from `base` on, and that wraps.
    #[must_use]
    pub fn new(size: BufferSize, base: Address) -> Self {
        let pointer_bits = size.bytes().trailing_zeros().min(32) as u8;
        let bytes = usize::try_from(size.bytes()).unwrap_or(usize::MAX);
        Self {
            size,
            position: base.low_word(),
            memory: Memory { base, bytes, pointer_bits },
            watermark: None,
            untraced: Vec::new(),
            writes_branches_to_next: false,
            process_stack: false,
        }
    }
}

impl Memory {
    /// The number of bytes after which the pointer repeats.
    fn modulus(self) -> u64 {
        1 << self.pointer_bits.min(32)
    }

    /// The place in the memory that the pointer points to.
    fn place(self, pointer: u64) -> Option<usize> {
        let place = usize::try_from(pointer.wrapping_sub(self.base.get()) % self.modulus()).ok()?;
        (place < self.bytes).then_some(place)
    }
}

/// The contents of an MTB when the processor was halted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// The MTB's memory, zero if nothing was written.
    pub bytes: Vec<u8>,
    /// The MTB's registers.
    pub registers: Registers,
    /// The path that the packets show: from the oldest packet in the buffer to the newest, without what ran
    /// between the last packet before tracing was switched off and the first one after that.
    pub path: Path,
}

/// EXC_RETURN (ARMv6-M Architecture Reference Manual, DDI 0419E, B1.5.8).
const TO_HANDLER: Address = Address::new(0xffff_fff1);
const TO_THREAD_MAIN_STACK: Address = Address::new(0xffff_fff9);
const TO_THREAD_PROCESS_STACK: Address = Address::new(0xffff_fffd);

/// Traces `path` with an MTB that was switched on before its first instruction.
pub fn encode(path: &Path, program: &Program, options: &Options) -> Result<Buffer, EncodeError> {
    let mut unit = Unit {
        options,
        story: Story::new(path, program),
        active: Vec::new(),
        returning: None,
        recording: Recording::Starts,
        packets: Vec::new(),
        traced: Vec::new(),
    };
    for (index, step) in unit.story.steps() {
        unit.switch(index);
        match step {
            Step::Instruction(_) => unit.instruction(index, step)?,
            Step::Exception(taken) => unit.exception(taken, step),
            // The returning instruction wrote both packets, or the exception after it the second one.
            Step::ExceptionReturn => unit.traced.push(*step),
            Step::Access(_) | Step::ContextId(_) | Step::State(_) => {}
        }
    }
    Ok(unit.into_buffer())
}

/// A packet, and the place among the reported steps of the one that it starts with.
struct Written {
    packet: Packet,
    shows_from: usize,
    /// How many steps are reported when this packet is the newest.
    shows_until: usize,
}

/// Whether packets are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recording {
    /// Yes, and the next packet is the first.
    Starts,
    On,
    Off,
    /// No, and nothing in the path switches it on again: the watermark was reached.
    Stopped,
}

struct Unit<'a> {
    options: &'a Options,
    story: Story<'a>,
    /// EXC_RETURN of each active exception.
    active: Vec<Address>,
    /// EXC_RETURN of a return whose second packet is still to be written.
    returning: Option<Address>,
    recording: Recording,
    packets: Vec<Written>,
    traced: Vec<Step>,
}

impl Unit<'_> {
    /// Switches tracing on and off as it was at the step at `index`.
    fn switch(&mut self, index: usize) {
        let off = self.options.untraced.iter().any(|steps| steps.contains(&index));
        self.recording = match (self.recording, off) {
            (Recording::Stopped, _) => Recording::Stopped,
            (_, true) => Recording::Off,
            (Recording::Off, false) => Recording::Starts,
            (recording, false) => recording,
        };
    }

    /// EXC_RETURN for a return to thread mode.
    const fn thread(&self) -> Address {
        if self.options.process_stack { TO_THREAD_PROCESS_STACK } else { TO_THREAD_MAIN_STACK }
    }

    fn instruction(&mut self, index: usize, step: &Step) -> Result<(), EncodeError> {
        let Step::Instruction(executed) = step else { return Ok(()) };
        if let Some(exc_return) = self.returning.take() {
            self.resume(exc_return, executed.address);
        }
        let instruction = self.story.instruction(executed)?;
        let mut traced = *executed;
        if !instruction.is_branch() {
            // Packets show only the conditions of branches.
            traced.passed = true;
        }
        self.traced.push(Step::Instruction(traced));
        let target = match (instruction.class, self.story.went(index)) {
            _ if !executed.passed => None,
            // At the end of the path, nothing shows that execution continued.
            (_, Went::End)
            | (Class::Other | Class::Barrier(_) | Class::Wait | Class::TransactionStart, _) => None,
            (Class::Direct(target), _) => Some(target.address),
            (Class::Indirect, _) if self.story.returns(index) => {
                let exc_return = self.active.pop().unwrap_or(self.thread());
                self.returning = Some(exc_return);
                Some(exc_return)
            }
            (Class::Indirect, Went::To(target)) => Some(target.address),
            (Class::Indirect, Went::TailChained) => None,
        };
        let counts = |&target: &Address| self.options.writes_branches_to_next || target != executed.end();
        if let Some(target) = target.filter(counts) {
            // The packet includes the return's marker, though the marker's step comes only now.
            let returns = usize::from(self.returning.is_some());
            let last = self.traced.len() - 1;
            self.write(Packet::new(executed.address, target), last, returns);
        }
        Ok(())
    }

    fn exception(&mut self, taken: &Taken, step: &Step) {
        let mut shows_from = self.traced.len();
        let source = match (taken.preferred_return, self.returning.take()) {
            // Tail-chained: the new exception's handler returns to where the old one's would have. The packet
            // starts with the return, which is the step before.
            (None, Some(exc_return)) => {
                self.active.push(exc_return);
                shows_from -= 1;
                exc_return
            }
            (Some(at), returning) => {
                if let Some(exc_return) = returning {
                    self.resume(exc_return, at);
                }
                let exc_return = if self.active.is_empty() { self.thread() } else { TO_HANDLER };
                self.active.push(exc_return);
                at
            }
            (None, None) => return,
        };
        self.traced.push(*step);
        self.write(Packet::new(source, taken.handler).with_atomic(true), shows_from, 0);
    }

    /// The second packet of a return.
    fn resume(&mut self, exc_return: Address, to: Address) {
        let marker = self.traced.len().saturating_sub(1);
        self.write(Packet::new(exc_return, to).with_atomic(true), marker, 0);
    }

    fn write(&mut self, packet: Packet, shows_from: usize, steps_to_come: usize) {
        if matches!(self.recording, Recording::Off | Recording::Stopped) {
            return;
        }
        let packet = packet.with_start(self.recording == Recording::Starts);
        self.recording = Recording::On;
        let shows_until = self.traced.len() + steps_to_come;
        self.packets.push(Written { packet, shows_from, shows_until });
        if self.options.watermark.is_some_and(|watermark| u64::from(watermark.pointer) == self.pointer()) {
            self.recording = Recording::Stopped;
        }
    }

    /// The pointer of the next packet.
    fn pointer(&self) -> u64 {
        self.pointer_of(self.packets.len())
    }

    /// The pointer of the packet with this number.
    fn pointer_of(&self, number: usize) -> u64 {
        let size = self.options.size.bytes();
        let start = u64::from(self.options.position) % self.options.memory.modulus() / size * size;
        start + number as u64 * PACKET_BYTES as u64 % size
    }

    /// The final content of the memory.
    fn into_buffer(self) -> Buffer {
        let Options { size, memory, watermark, .. } = *self.options;
        let mut bytes = vec![0; memory.bytes];
        for (number, written) in self.packets.iter().enumerate() {
            let place = memory.place(self.pointer_of(number));
            let place = place.and_then(|place| bytes.get_mut(place..place + PACKET_BYTES));
            if let Some(place) = place {
                place.copy_from_slice(&written.packet.to_bytes());
            }
        }
        let places = usize::try_from(size.bytes()).unwrap_or(usize::MAX) / PACKET_BYTES;
        let stopped = self.recording == Recording::Stopped;
        let pointer = u32::try_from(self.pointer()).unwrap_or_default();
        let config =
            Config::new(size, pointer).expect("packets have 8 bytes, and buffers start at a multiple of 16");
        let config = config
            .with_wrapped(self.packets.len() >= places)
            .with_enabled(!(stopped && watermark.is_some_and(|watermark| watermark.stops)))
            .with_halt_request(stopped && watermark.is_some_and(|watermark| watermark.halts));
        // A value that does not fit its register is not set.
        let config = config.with_watermark(watermark).unwrap_or(config);
        let config = config.with_base(memory.base).unwrap_or(config);
        let held = self.packets.get(self.packets.len().saturating_sub(places)..).unwrap_or_default();
        Buffer { bytes, registers: config.to_registers(), path: Path { steps: self.traced_by(held) } }
    }

    /// The steps that these packets show.
    fn traced_by(&self, packets: &[Written]) -> Vec<Step> {
        // Tracing restarts at each packet with S.
        let stretches = packets.chunk_by(|_, next| !next.packet.start());
        let steps = stretches.flat_map(|stretch| match stretch {
            [first, .., last] => first.shows_from..last.shows_until,
            [only] => only.shows_from..only.shows_until,
            [] => 0..0,
        });
        steps.filter_map(|step| self.traced.get(step).copied()).collect()
    }
}

/// The size of a packet.
const PACKET_BYTES: usize = 8;
