//! A path as PFT trace (IHI 0035B, chapters 4 and 5).
//!
//! The encoder sends:
//!
//! - at the start A-sync and I-sync, and again at a regular distance in bytes, after a waypoint;
//! - for every waypoint an atom; for an indirect branch that the return stack does not predict, a branch
//!   packet instead, and with branch broadcast for any taken branch;
//! - before a waypoint that is far from the last one a waypoint update;
//! - for an exception a waypoint update if instructions were executed since the last waypoint, then a branch
//!   packet to the handler. Instructions that aborted are not traced; supervisor calls and undefined
//!   instructions are;
//! - after the branch packet of a return from an exception an exception return packet, from PFTv1.1 on.
//!
//! PFT does not show the conditions of instructions other than waypoints. No M-profile processor has PFT: a
//! path with M-profile exceptions is refused.
//!
//! ```
//! use tracewalk::ids::Address;
//! use tracewalk::program::Program;
//! use tracewalk::protocol::pft::Config;
//! use tracewalk_generate::path::Path;
//! use tracewalk_generate::pft::{Options, encode};
//! use tracewalk_generate::record::Record;
//!
//! # let mut program = Program::new();
//! # program.add(Address::new(0x100), &[0x01, 0x38, 0xfd, 0xd1, 0x70, 0x47])?; // 1: subs r0, #1; bne 1b; bx lr
//! let record = "# tracewalk record 1\nP ar\nR 100 104 t32\nR 100 104 t32 !102\n";
//! let path = Path::expand(&Record::parse(record)?, &program)?;
//! let config = Config::for_core("cortex-a9").expect("a known core");
//! let trace = encode(&path, &program, &config, &Options::default())?;
//! assert!(trace.bytes.starts_with(&[0, 0, 0, 0, 0, 0x80])); // A-sync
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use tracewalk::ids::{Address, ContextId, Exception, Isa, Location};
use tracewalk::isa::{Barrier, Class, Instruction};
use tracewalk::program::Program;
use tracewalk::protocol::SecurityBits;
use tracewalk::protocol::pft::{
    Atom, Atoms, Config, Encoder, ISync, ISyncReason, Packet, Timestamp, Version,
};

use crate::path::{Executed, Path, Step, Taken};
use crate::story::{Story, Went};
use crate::time::Clock;
use crate::trace::{EncodeError, Pauses, Trace, Tracing, truncated};

/// The choices that the specification leaves to the implementation or to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many bytes lie between two periodic synchronisations; `None` for only the one at the start.
    pub synchronise_every: Option<usize>,
    /// How many instructions lie between two timestamps; `None` for no timestamps.
    pub timestamp_every: Option<u64>,
    /// How many returns the return stack holds, if the configuration has one.
    pub return_stack_depth: usize,
    /// The security state, which does not change.
    pub security: SecurityBits,
    /// When tracing is switched off.
    pub pauses: Option<Pauses>,
    /// How many instructions lie between two triggers, each with an ignore packet; `None` for none.
    pub trigger_every: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            synchronise_every: Some(1024),
            timestamp_every: None,
            return_stack_depth: 4,
            security: SecurityBits::default(),
            pauses: None,
            trigger_every: None,
        }
    }
}

/// The greatest distance of two waypoints without a waypoint update between them (IHI 0035B, 4.10).
const FARTHEST_WAYPOINT: u64 = 4096;

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
            Step::Access(_) | Step::State(_) => true,
            Step::ContextId(context_id) => unit.context_id(*context_id)?,
            Step::Exception(taken) => unit.exception(index, taken)?,
            Step::ExceptionReturn => unit.exception_return(step)?,
        };
        if !more {
            break;
        }
        unit.trace.times.push(unit.clock.now());
        unit.trace.lengths.push(unit.trace.bytes.len());
    }
    unit.flush()?;
    unit.trace.path.steps.truncate(unit.proven);
    unit.trace.cycles = unit.cycles_sent;
    Ok(unit.trace)
}

struct Unit<'a> {
    story: Story<'a>,
    config: &'a Config,
    options: &'a Options,
    encoder: Encoder,
    trace: Trace,
    /// The number of reported steps that the trace proves: those up to the last waypoint.
    proven: usize,
    clock: Clock,
    /// Cycles up to the last count that was sent.
    cycles_sent: u64,
    /// Atoms that are still to be sent.
    atoms: Option<Atoms>,
    /// The instruction executed last, if it is not a waypoint.
    after_waypoint: Option<Location>,
    /// Where execution continued after the last waypoint or exception.
    run_start: Location,
    /// The newest return address is last.
    return_stack: Vec<Location>,
    context_id: ContextId,
    /// The length of the trace at the last synchronisation; `None` before the start.
    synchronised_at: Option<usize>,
    instructions_since_timestamp: u64,
    instructions_since_trigger: u64,
    /// Whether tracing is switched off.
    paused: bool,
    /// Why tracing begins again with the next instruction.
    restarts: Option<ISyncReason>,
}

impl<'a> Unit<'a> {
    fn new(path: &'a Path, program: &'a Program, config: &'a Config, options: &'a Options) -> Self {
        Self {
            story: Story::new(path, program),
            config,
            options,
            encoder: Encoder::new(config),
            trace: Trace::default(),
            proven: 0,
            clock: Clock::default(),
            cycles_sent: 0,
            atoms: None,
            after_waypoint: None,
            run_start: Location::new(Address::new(0), Isa::A32),
            return_stack: Vec::new(),
            context_id: ContextId(0),
            synchronised_at: None,
            instructions_since_timestamp: 0,
            instructions_since_trigger: 0,
            paused: false,
            restarts: None,
        }
    }

    /// Whether the step is not traced. At the start of a pause, the instructions since the last waypoint are
    /// lost.
    fn is_paused(&mut self, index: usize, step: &Step) -> Result<bool, EncodeError> {
        let tracing = Pauses::at(self.options.pauses, self.story.all(), index, self.paused);
        self.paused = matches!(tracing, Tracing::Ends | Tracing::Off);
        if tracing == Tracing::Ends {
            self.flush()?;
            self.trace.path.steps.truncate(self.proven);
            self.after_waypoint = None;
        }
        if tracing == Tracing::Begins {
            self.restarts = self.options.pauses.map(|pauses| pauses.reason);
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

    /// Encodes an instruction. Returns false if the path ends before its target is known.
    fn instruction(&mut self, index: usize, executed: &Executed) -> Result<bool, EncodeError> {
        let instruction = self.story.instruction(executed)?;
        let went = self.story.went(index);
        let location = executed.location();
        self.trigger_if_due()?;
        if self.after_waypoint.is_none() {
            self.timestamp_if_due()?;
            self.synchronise_if_due(location)?;
        }
        self.clock.execute(executed, &instruction);
        self.instructions_since_timestamp += 1;
        self.instructions_since_trigger += 1;
        if !self.is_waypoint(&instruction) {
            self.after_waypoint = Some(location);
            self.trace.path.steps.push(Step::Instruction(Executed { passed: true, ..*executed }));
            return Ok(true);
        }
        if executed.location().bytes_since(self.run_start.address) > FARTHEST_WAYPOINT {
            self.waypoint_update(in_front_of(executed))?;
        }
        let next = match (instruction.class, went) {
            (Class::Indirect, Went::To(target)) if executed.passed => {
                self.indirect(target)?;
                target
            }
            (Class::Indirect, Went::TailChained | Went::End) if executed.passed => return Ok(false),
            (Class::Direct(target), _) if executed.passed => {
                if self.config.branch_broadcast() {
                    self.branch(target)?;
                } else {
                    self.atom(true)?;
                }
                target
            }
            _ => {
                self.atom(executed.passed)?;
                Location::new(executed.end(), executed.isa)
            }
        };
        if executed.passed && instruction.link {
            self.push_return(Location::new(executed.end(), executed.isa));
        }
        self.after_waypoint = None;
        self.run_start = next;
        self.prove(Step::Instruction(*executed));
        Ok(true)
    }

    fn is_waypoint(&self, instruction: &Instruction) -> bool {
        match instruction.class {
            Class::Direct(_) | Class::Indirect | Class::Barrier(Barrier::Isb) => true,
            Class::Barrier(Barrier::Dsb | Barrier::Dmb) => self.config.barriers_are_waypoints(),
            Class::Wait | Class::TransactionStart | Class::Other => false,
        }
    }

    /// Encodes a taken indirect branch: an atom if the return stack predicted its target (IHI 0035B, 4.13).
    fn indirect(&mut self, target: Location) -> Result<(), EncodeError> {
        if self.return_stack.last() == Some(&target) {
            self.return_stack.pop();
            return self.atom(true);
        }
        self.branch(target)
    }

    fn push_return(&mut self, returns_to: Location) {
        if !self.config.return_stack() {
            return;
        }
        self.return_stack.push(returns_to);
        if self.return_stack.len() > self.options.return_stack_depth {
            self.return_stack.remove(0);
        }
    }

    fn exception(&mut self, index: usize, taken: &Taken) -> Result<bool, EncodeError> {
        let Exception::Ar(number) = taken.exception else {
            return Err(EncodeError::NoExceptionCode { exception: taken.exception });
        };
        let handler = self.story.handler(index, taken);
        if self.after_waypoint.is_none()
            && let Some(resumes) = self.story.resumes(index, taken)
        {
            self.synchronise_if_due(resumes)?;
        }
        if let Some(last) = self.after_waypoint {
            self.waypoint_update(last)?;
        }
        let cycles = self.take_cycles();
        let branch = self.encoder.exception(u16::from(number), handler, self.options.security, cycles);
        self.send(&Packet::Branch(branch))?;
        self.run_start = handler;
        self.prove(Step::Exception(*taken));
        Ok(true)
    }

    /// Sends how far execution has come since the last waypoint.
    fn waypoint_update(&mut self, reached: Location) -> Result<(), EncodeError> {
        self.after_waypoint = None;
        self.send(&Packet::WaypointUpdate(self.encoder.waypoint_update(reached)))
    }

    fn exception_return(&mut self, step: &Step) -> Result<bool, EncodeError> {
        if self.config.version() >= Version::V1_1 {
            self.send(&Packet::ExceptionReturn)?;
            self.prove(*step);
        }
        Ok(true)
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

    /// Adds a step that the trace proves, together with all steps before it.
    fn prove(&mut self, step: Step) {
        self.trace.path.steps.push(step);
        self.proven = self.trace.path.steps.len();
    }

    fn atom(&mut self, executed: bool) -> Result<(), EncodeError> {
        if self.atoms.is_some_and(|atoms| atoms.count() == Atoms::MOST) {
            self.flush()?;
        }
        self.atoms = match self.atoms {
            Some(atoms) => atoms.and(executed),
            None => Some(Atoms::one(executed)),
        };
        if self.config.cycle_accurate() { self.flush() } else { Ok(()) }
    }

    fn branch(&mut self, target: Location) -> Result<(), EncodeError> {
        let cycles = self.take_cycles();
        self.send(&Packet::Branch(self.encoder.branch_to(target, self.options.security, cycles)))
    }

    fn synchronise_if_due(&mut self, next: Location) -> Result<(), EncodeError> {
        let reason = match (self.synchronised_at, self.options.synchronise_every) {
            (None, _) => ISyncReason::Enabled,
            _ if let Some(reason) = self.restarts.take() => reason,
            (Some(at), Some(every)) if self.trace.bytes.len() - at >= every => ISyncReason::Periodic,
            _ => return Ok(()),
        };
        self.send(&Packet::ASync)?;
        self.synchronised_at = Some(self.trace.bytes.len());
        self.trace.starts += usize::from(reason != ISyncReason::Periodic);
        let cycles = self.config.cycle_accurate() && reason != ISyncReason::Periodic;
        self.send(&Packet::ISync(ISync {
            reason,
            location: next,
            security: self.options.security,
            cycles: cycles.then_some(1),
            context_id: (self.config.context_id_size().bytes() != 0).then_some(self.context_id),
        }))?;
        self.run_start = next;
        self.return_stack.clear();
        if self.options.timestamp_every.is_some() {
            self.timestamp()?;
        }
        Ok(())
    }

    fn trigger_if_due(&mut self) -> Result<(), EncodeError> {
        if self.options.trigger_every.is_none_or(|every| self.instructions_since_trigger < every) {
            return Ok(());
        }
        self.instructions_since_trigger = 0;
        self.trace.triggers += 1;
        self.send(&Packet::Ignore)?;
        self.send(&Packet::Trigger)
    }

    fn timestamp_if_due(&mut self) -> Result<(), EncodeError> {
        match self.options.timestamp_every {
            Some(every) if self.instructions_since_timestamp >= every => self.timestamp(),
            _ => Ok(()),
        }
    }

    fn timestamp(&mut self) -> Result<(), EncodeError> {
        self.instructions_since_timestamp = 0;
        let cycles = self.take_cycles();
        self.send(&Packet::Timestamp(Timestamp {
            value: self.clock.timestamp(),
            clock_changed: false,
            cycles,
        }))
    }

    /// The cycles since the last count, if cycles are counted.
    fn take_cycles(&mut self) -> Option<u32> {
        let cycles = u32::try_from(self.clock.now() - self.cycles_sent).ok()?;
        self.config.cycle_accurate().then(|| {
            self.cycles_sent = self.clock.now();
            cycles
        })
    }

    /// Sends the atoms that are due, then `packet`.
    fn send(&mut self, packet: &Packet) -> Result<(), EncodeError> {
        self.flush()?;
        self.append(packet)
    }

    fn flush(&mut self) -> Result<(), EncodeError> {
        let Some(atoms) = self.atoms.take() else { return Ok(()) };
        let cycles = self.take_cycles();
        self.append(&Packet::Atom(Atom { atoms, cycles }))
    }

    fn append(&mut self, packet: &Packet) -> Result<(), EncodeError> {
        self.encoder
            .encode(packet, &mut self.trace.bytes)
            .map_err(|error| EncodeError::Packet { message: format!("{error}: {packet:x?}") })
    }
}

/// The address that a waypoint update names before a far waypoint: the word or halfword before the waypoint,
/// which may lie inside the previous instruction.
const fn in_front_of(waypoint: &Executed) -> Location {
    let bytes = if waypoint.isa.is_thumb() { 2 } else { 4 };
    waypoint.location().moved(-bytes)
}
