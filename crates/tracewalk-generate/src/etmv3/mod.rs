//! A path as ETMv3 trace (IHI 0014Q, chapter 7).
//!
//! If the specification leaves a decision to the implementation, [`Options`] makes a choice by which a
//! decoder meets every form. The encoder sends:
//!
//! - at the start A-sync and I-sync, and again at a regular distance in bytes;
//! - an atom for every instruction, collected into P-headers until something else has to be sent;
//! - a branch packet after every indirect branch, with branch broadcast after every taken branch;
//! - for an exception a branch packet to the handler. An instruction that aborted is traced and cancelled; a
//!   supervisor call and an undefined instruction are traced and stay. A jump to an address without code has
//!   no instruction to trace;
//! - the exception exit packet between a return's atom and its branch packet. On M profile, if another
//!   exception replaces the return, that exception's packet cancels the return.
//!
//! ```
//! use tracewalk::ids::Address;
//! use tracewalk::program::Program;
//! use tracewalk_generate::path::Path;
//! use tracewalk_generate::record::Record;
//! use tracewalk::protocol::etmv3::Config;
//! use tracewalk_generate::etmv3::{Options, encode};
//!
//! # let mut program = Program::new();
//! # program.add(Address::new(0x100), &[0x01, 0x38, 0xfd, 0xd1, 0x70, 0x47])?; // 1: subs r0, #1; bne 1b; bx lr
//! let record = "# tracewalk record 1\nP m\nR 100 104 t32\nR 100 104 t32 !102\n";
//! let path = Path::expand(&Record::parse(record)?, &program)?;
//! let config = Config::for_core("cortex-m3").expect("a known core");
//! let trace = encode(&path, &program, &config, &Options::default())?;
//! assert!(trace.bytes.starts_with(&[0, 0, 0, 0, 0, 0x80])); // A-sync
//! assert_eq!(trace.starts, 1); // tracing begins once
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod options;
mod p_headers;

use tracewalk::ids::{Address, ContextId, Exception, Location, Profile};
use tracewalk::isa::{Class, Instruction};
use tracewalk::program::Program;
use tracewalk::protocol::etmv3::{
    Branch, BranchException, Config, DataAddress, Encoder, ExceptionInformation, ISync, ISyncReason, Packet,
};

use crate::path::{Access, Executed, Path, Step, Taken};
use crate::story::{Story, Went};
use crate::time::Clock;
use crate::trace::{EncodeError, Pauses, Trace, Tracing, truncated};
use p_headers::Pending;

pub use options::{Cancel, Options};

/// Encodes `path` as a trace unit with this configuration would, and states what a decoder should find.
pub fn encode(
    path: &Path,
    program: &Program,
    config: &Config,
    options: &Options,
) -> Result<Trace, EncodeError> {
    let mut unit = Unit::new(path, program, config, options);
    for (index, step) in unit.story.steps() {
        if unit.is_paused(index, step)? {
            unit.trace.times.push(unit.clock.now());
            unit.trace.lengths.push(unit.trace.bytes.len());
            continue;
        }
        let more = match step {
            Step::Instruction(executed) => unit.instruction(index, executed)?,
            Step::Access(access) => unit.access(access)?,
            Step::ContextId(context_id) => unit.context_id(*context_id)?,
            Step::Exception(taken) => unit.exception(index, taken)?,
            Step::ExceptionReturn => unit.exception_return(step)?,
            Step::State(_) => true,
        };
        if !more {
            break;
        }
        unit.trace.times.push(unit.clock.now());
        unit.trace.lengths.push(unit.trace.bytes.len());
    }
    unit.finish_instruction()?;
    unit.flush()?;
    unit.trace.cycles = unit.clock.now();
    Ok(unit.trace)
}

/// The most atoms that are collected while nothing else has to be sent.
const MOST_ATOMS_HELD: usize = 15;

struct Unit<'a> {
    story: Story<'a>,
    config: &'a Config,
    options: &'a Options,
    encoder: Encoder,
    trace: Trace,
    clock: Clock,
    /// Atoms that are still to be sent.
    atoms: Vec<Pending>,
    /// Cycles that were already sent for the next instruction.
    cycles_sent: u32,
    /// The target of the last instruction, if a branch packet has to state it.
    target: Option<Location>,
    context_id: ContextId,
    /// The length of the trace at the last synchronisation; `None` before the start.
    synchronised_at: Option<usize>,
    instructions_since_timestamp: u64,
    instructions_since_trigger: u64,
    /// Whether tracing is switched off.
    paused: bool,
    /// Why tracing begins again with the next instruction, and the load or store that is in progress then.
    restarts: Option<(ISyncReason, Option<Executed>)>,
    /// The address of the last load's or store's next transfer if it is contiguous; `None` for the first
    /// transfer.
    next_transfer: Option<Address>,
    /// Whether the next data address has to be sent in full.
    whole_data_address: bool,
    /// The instruction executed last.
    last: Option<Location>,
}

impl<'a> Unit<'a> {
    fn new(path: &'a Path, program: &'a Program, config: &'a Config, options: &'a Options) -> Self {
        Self {
            story: Story::new(path, program),
            config,
            options,
            encoder: Encoder::new(config),
            trace: Trace::default(),
            clock: Clock::default(),
            atoms: Vec::new(),
            cycles_sent: 0,
            target: None,
            context_id: ContextId(0),
            synchronised_at: None,
            instructions_since_timestamp: 0,
            instructions_since_trigger: 0,
            paused: false,
            restarts: None,
            next_transfer: None,
            whole_data_address: true,
            last: None,
        }
    }

    /// Whether the step is not traced.
    fn is_paused(&mut self, index: usize, step: &Step) -> Result<bool, EncodeError> {
        let steps = self.story.all();
        let tracing = Pauses::at(self.options.pauses, steps, index, self.paused);
        self.paused = matches!(tracing, Tracing::Ends | Tracing::Off);
        if tracing == Tracing::Ends {
            self.finish_instruction()?;
            self.flush()?;
            self.last = None;
            self.cycles_sent = 0;
        }
        if tracing == Tracing::Begins {
            let reason = self.options.pauses.map_or(ISyncReason::Enabled, |pauses| pauses.reason);
            self.restarts = Some((reason, self.in_progress(index)?));
        }
        if let (true, Step::Instruction(executed)) = (self.paused, step) {
            self.clock.execute(executed, &self.story.instruction(executed)?);
        }
        if let (true, Step::ContextId(context_id)) = (self.paused, step) {
            self.story.enter(*context_id);
            self.context_id = truncated(*context_id, self.config.context_id_size().bytes());
        }
        Ok(self.paused)
    }

    /// The load or store before the step at `index`, if it may still be in progress there. With data trace its transfers
    /// would have to follow.
    fn in_progress(&self, index: usize) -> Result<Option<Executed>, EncodeError> {
        let before = index.checked_sub(1).and_then(|before| self.story.all().get(before));
        let Some(Step::Instruction(executed)) = before else { return Ok(None) };
        let instruction = self.story.instruction(executed)?;
        let accesses = instruction.access.is_some() && !instruction.is_branch() && executed.passed;
        // Cores that count halves have no loads of two halves.
        let whole = executed.bytes == 2 || !self.counts_halfwords(executed.location());
        Ok(Some(*executed).filter(|_| accesses && whole && !self.config.data().any()))
    }

    /// Encodes an instruction. Returns false if the path ends before its target is known.
    fn instruction(&mut self, index: usize, executed: &Executed) -> Result<bool, EncodeError> {
        let instruction = self.story.instruction(executed)?;
        let went = self.story.went(index);
        let indirect = executed.passed && instruction.class == Class::Indirect;
        if indirect && went == Went::End {
            return Ok(false);
        }
        if self.target.is_some() {
            self.wait_for_target(executed, &instruction)?;
        }
        self.finish_instruction()?;
        self.synchronise_if_due(executed.location())?;
        self.atoms_of(executed, &instruction);
        self.trace.path.steps.push(Step::Instruction(*executed));
        self.next_transfer = None;
        self.last = Some(executed.location());
        self.target = match (instruction.class, went) {
            (Class::Indirect, Went::To(target)) if executed.passed => Some(target),
            (Class::Direct(target), _) if executed.passed && self.config.branch_broadcast() => Some(target),
            _ => None,
        };
        Ok(true)
    }

    /// Sends the packets that follow the last instruction's transfers.
    fn finish_instruction(&mut self) -> Result<(), EncodeError> {
        self.trigger_if_due()?;
        if let Some(target) = self.target.take() {
            self.branch(target, None)?;
        }
        if self.atoms.len() >= MOST_ATOMS_HELD {
            self.flush()?;
        }
        match self.options.timestamp_every {
            Some(every) if self.instructions_since_timestamp >= every => self.timestamp(),
            _ => Ok(()),
        }
    }

    /// A trigger may come between an atom and its branch packet.
    fn trigger_if_due(&mut self) -> Result<(), EncodeError> {
        if self.options.trigger_every.is_none_or(|every| self.instructions_since_trigger < every) {
            return Ok(());
        }
        self.instructions_since_trigger = 0;
        self.trace.triggers += 1;
        self.send(&Packet::Ignore)?;
        self.send(&Packet::Trigger)
    }

    fn atoms_of(&mut self, executed: &Executed, instruction: &Instruction) {
        let cycles = self.clock.execute(executed, instruction) - std::mem::take(&mut self.cycles_sent);
        let cycles = if self.config.cycle_accurate() { cycles } else { 0 };
        self.atoms.push(Pending { cycles, passed: executed.passed });
        if self.counts_halfwords(executed.location()) && executed.bytes == 4 {
            self.atoms.push(Pending { cycles: 0, passed: executed.passed });
        }
        self.instructions_since_timestamp += 1;
        self.instructions_since_trigger += 1;
    }

    fn counts_halfwords(&self, location: Location) -> bool {
        self.config.two_atoms_per_thumb_pair() && location.isa.alignment() == 2
    }

    /// The target takes a while to be known: often the first cycle of the next instruction, if that takes
    /// any, passes before the branch packet.
    fn wait_for_target(&mut self, next: &Executed, instruction: &Instruction) -> Result<(), EncodeError> {
        let cycles = self.clock.clone().execute(next, instruction);
        if !self.config.cycle_accurate() || cycles == 0 || next.address.get() & 0b1000 == 0 {
            return Ok(());
        }
        self.flush()?;
        self.cycles_sent = 1;
        p_headers::waits(1).into_iter().try_for_each(|header| self.append(&Packet::PHeader(header)))
    }

    fn exception(&mut self, index: usize, taken: &Taken) -> Result<bool, EncodeError> {
        self.finish_instruction()?;
        let handler = self.story.handler(index, taken);
        let tail_chained = taken.preferred_return.is_none();
        let mut cancel = tail_chained && self.options.tail_chaining_cancels;
        if cancel && self.trace.path.steps.last() == Some(&Step::ExceptionReturn) {
            self.trace.path.steps.pop();
        }
        if let Some(resumes) = self.story.resumes(index, taken) {
            // The undefined instruction at the resume address was already traced: execution is after it.
            if self.last != Some(resumes) {
                self.synchronise_if_due(resumes)?;
            }
            if let Some(instruction) = self.cancelled(taken, resumes) {
                cancel = true;
                let bytes = if self.counts_halfwords(resumes) { 2 } else { instruction.bytes };
                let executed = Executed { address: resumes.address, isa: resumes.isa, bytes, passed: true };
                self.atoms_of(&executed, &instruction);
            }
        }
        self.branch(handler, Some((taken.exception, cancel)))?;
        self.trace.path.steps.push(Step::Exception(*taken));
        self.last = None;
        Ok(true)
    }

    /// The instruction that is traced and cancelled because of an exception, if any.
    fn cancelled(&self, taken: &Taken, resumes: Location) -> Option<Instruction> {
        let instruction = self.story.instruction_at(resumes)?;
        let multiple = instruction.access.is_some_and(|access| access.transfers > 1);
        let cancel = match taken.exception {
            // Undefined instructions and supervisor calls are traced already, and never cancelled.
            Exception::Ar(9 | 10) | Exception::M(11) => false,
            // Aborts (including breakpoints) and faults. A fault at an instruction that was traced is an
            // undefined instruction.
            Exception::Ar(11 | 12) => true,
            Exception::M(3..=6) => self.last.is_none_or(|last| last.address != resumes.address),
            _ => match self.options.cancel {
                Cancel::Never => false,
                Cancel::Multiple => multiple,
                Cancel::Always => true,
            },
        };
        cancel.then_some(instruction)
    }

    fn exception_return(&mut self, step: &Step) -> Result<bool, EncodeError> {
        if self.traces_exception_returns() {
            self.send(&Packet::ExceptionExit)?;
            self.trace.path.steps.push(*step);
        }
        Ok(true)
    }

    /// The exception exit packet exists from ETMv3.4 on for ARMv7-M, from ETMv3.5 on for A and R profile.
    fn traces_exception_returns(&self) -> bool {
        match self.config.profile() {
            Profile::M => self.config.minor_version() >= 4,
            Profile::Ar => self.config.minor_version() >= 5,
        }
    }

    /// Encodes one transfer. A transfer whose value is not known is outside of what is traced.
    fn access(&mut self, access: &Access) -> Result<bool, EncodeError> {
        let Some(value) = access.value.filter(|_| self.config.data().any()) else { return Ok(true) };
        let words = if access.bytes == 8 { 2 } else { 1 };
        for word in 0..words {
            let address = Address::from(access.address.low_word().wrapping_add(4 * word));
            let value = u32::try_from(value >> (32 * word) & 0xffff_ffff).unwrap_or_default();
            let contiguous = self.next_transfer == Some(address);
            let has_address = self.config.data().addresses && !contiguous;
            self.flush()?;
            self.transfer(has_address.then_some(address), self.config.data().values.then_some(value))?;
            let next = address.low_word().wrapping_add(access.bytes.min(4).into());
            self.next_transfer = Some(Address::from(next));
        }
        self.trace.path.steps.push(Step::Access(*access));
        Ok(true)
    }

    /// Sends one transfer. The address is sent in full after a synchronisation, and if fewer bytes cannot
    /// express it.
    fn transfer(&mut self, address: Option<Address>, value: Option<u32>) -> Result<(), EncodeError> {
        let packet = |big_endian| Packet::NormalData {
            address: address.map(|address| DataAddress { address, big_endian }),
            value,
        };
        let short = !std::mem::take(&mut self.whole_data_address) || address.is_none();
        if short && self.encoder.encode(&packet(None), &mut self.trace.bytes).is_ok() {
            return Ok(());
        }
        self.append(&packet(Some(false)))
    }

    fn context_id(&mut self, context_id: ContextId) -> Result<bool, EncodeError> {
        self.story.enter(context_id);
        let context_id = truncated(context_id, self.config.context_id_size().bytes());
        self.context_id = context_id;
        if self.config.context_id_size().bytes() != 0 {
            self.send(&Packet::ContextId(context_id))?;
            self.trace.path.steps.push(Step::ContextId(context_id));
        }
        Ok(true)
    }

    fn branch(&mut self, target: Location, exception: Option<(Exception, bool)>) -> Result<(), EncodeError> {
        let exception = match exception {
            None => None,
            Some((exception, cancel)) => Some(
                self.deprecated_exception(exception, cancel)
                    .or_else(|| self.exception_information(exception, cancel))
                    .ok_or(EncodeError::NoExceptionCode { exception })?,
            ),
        };
        self.flush()?;
        let mut branch = Branch { target: Some(target), states_isa: false, exception };
        // As short as possible: all five bytes only if fewer cannot express the branch.
        if self.encoder.encode(&Packet::Branch(branch), &mut self.trace.bytes).is_err() {
            branch.states_isa = true;
            self.send(&Packet::Branch(branch))?;
        }
        Ok(())
    }

    fn exception_information(&self, exception: Exception, cancel: bool) -> Option<BranchException> {
        let information = ExceptionInformation::for_exception(exception, cancel)?;
        Some(BranchException::Information(ExceptionInformation {
            security: self.options.security,
            ..information
        }))
    }

    /// The exception codes of table 7.7.
    fn deprecated_exception(&self, exception: Exception, cancel: bool) -> Option<BranchException> {
        let code = match exception {
            Exception::Ar(8..=12) => 0,
            Exception::Ar(14) => 1,
            Exception::Ar(5) => 4,
            Exception::Ar(15) => 5,
            Exception::Ar(4) => 6,
            Exception::Ar(1) => 7,
            _ => return None,
        };
        self.options.deprecated_exceptions.then_some(BranchException::Deprecated { code, cancel })
    }

    fn synchronise_if_due(&mut self, next: Location) -> Result<(), EncodeError> {
        let mut in_progress = None;
        let reason = match (self.synchronised_at, self.options.synchronise_every) {
            (None, _) => ISyncReason::Enabled,
            _ if let Some((reason, load)) = self.restarts.take() => {
                in_progress = load;
                reason
            }
            (Some(at), Some(every)) if self.trace.bytes.len() - at >= every => ISyncReason::Periodic,
            _ => return Ok(()),
        };
        self.send(&Packet::ASync)?;
        self.synchronised_at = Some(self.trace.bytes.len());
        self.whole_data_address = true;
        // A load in progress is reported on its own; tracing begins with it, and again after it.
        self.trace.starts +=
            usize::from(reason != ISyncReason::Periodic) + usize::from(in_progress.is_some());
        self.trace.path.steps.extend(in_progress.map(Step::Instruction));
        let counts = self.config.cycle_accurate() && reason != ISyncReason::Periodic;
        self.send(&Packet::ISync(ISync {
            reason,
            location: Some(next),
            in_progress: in_progress.map(|executed| executed.location()),
            security: self.options.security,
            context_id: (self.config.context_id_size().bytes() != 0).then_some(self.context_id),
            cycles: counts.then_some(1),
        }))?;
        if self.options.timestamp_every.is_some() {
            self.timestamp()?;
        }
        Ok(())
    }

    fn timestamp(&mut self) -> Result<(), EncodeError> {
        self.instructions_since_timestamp = 0;
        self.send(&Packet::Timestamp { value: self.clock.timestamp(), clock_changed: false })
    }

    /// Sends the atoms that are due, then `packet`.
    fn send(&mut self, packet: &Packet) -> Result<(), EncodeError> {
        self.flush()?;
        self.append(packet)
    }

    fn flush(&mut self) -> Result<(), EncodeError> {
        let atoms = std::mem::take(&mut self.atoms);
        let headers =
            if self.config.cycle_accurate() { p_headers::timed(&atoms) } else { p_headers::plain(&atoms) };
        headers.into_iter().try_for_each(|header| self.append(&Packet::PHeader(header)))
    }

    fn append(&mut self, packet: &Packet) -> Result<(), EncodeError> {
        self.encoder
            .encode(packet, &mut self.trace.bytes)
            .map_err(|error| EncodeError::Packet { message: format!("{error}: {packet:x?}") })
    }
}
