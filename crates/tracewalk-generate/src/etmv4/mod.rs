//! A path as ETMv4 or ETE trace (IHI 0064; DDI 0487, "The Embedded Trace Extension").
//!
//! The encoder sends:
//!
//! - at the start A-sync, trace info, trace on, and an address with the context. All but trace on are sent
//!   again at a regular distance in bytes, after a P0 instruction;
//! - for every P0 instruction an atom, followed by an address for an indirect branch that the return stack
//!   does not predict, or with branch broadcast for any taken branch;
//! - for an exception its packet with the preferred return address, which shows how far execution came, and
//!   the handler's address. Instructions that aborted or were undefined are not traced; supervisor calls are;
//! - for a return from an exception an exception return packet: in A and R profile after the address, in M
//!   profile before it, in ETE never;
//! - if the unit speculates (TRCIDR8.MAXSPEC), wrong paths that are cancelled, and commits;
//! - if the options say so, branches as Q elements if only one way is possible, and taken branches as source
//!   addresses.
//!
//! The trace does not show the conditions of instructions other than P0 instructions, nor where an
//! exception's handler begins, only where execution continues: the reported handler is 0.
//!
//! ```
//! use tracewalk::ids::Address;
//! use tracewalk::program::Program;
//! use tracewalk_generate::path::Path;
//! use tracewalk_generate::record::Record;
//! use tracewalk::protocol::etmv4::Config;
//! use tracewalk_generate::etmv4::{Options, encode};
//!
//! # let mut program = Program::new();
//! # program.add(Address::new(0x100), &[0x01, 0x38, 0xfd, 0xd1, 0x70, 0x47])?; // 1: subs r0, #1; bne 1b; bx lr
//! let record = "# tracewalk record 1\nP m\nR 100 104 t32\nR 100 104 t32 !102\n";
//! let path = Path::expand(&Record::parse(record)?, &program)?;
//! let config = Config::for_core("cortex-m33").expect("a known core");
//! let trace = encode(&path, &program, &config, &Options::default())?;
//! assert!(trace.bytes.starts_with(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80])); // A-sync
//! assert_eq!(trace.starts, 1); // tracing begins once
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod exceptions;
mod options;
mod sender;
mod states;

use tracewalk::directive::Rules;
use tracewalk::ids::{Address, ContextId, Isa, Location, Profile};
use tracewalk::isa::{Barrier, Class, Direction, Instruction, Return};
use tracewalk::program::Program;
use tracewalk::protocol::ISyncReason;
use tracewalk::protocol::etmv4::{Config, Context, Packet, Version};

use crate::path::{Executed, Path, Step};
use crate::story::{Story, Went};
use crate::trace::{EncodeError, Pauses, Trace, Tracing};
pub use options::{ContextPlace, Options};
use sender::Sender;
use states::States;

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
            unit.trace.times.push(unit.sender.clock.now());
            unit.trace.lengths.push(unit.sender.bytes.len());
            continue;
        }
        let more = match step {
            Step::Instruction(executed) => unit.instruction(index, executed)?,
            Step::Access(_) => true,
            Step::State(state) => {
                unit.states.change(*state);
                true
            }
            Step::ContextId(context_id) => unit.context_id(*context_id),
            Step::Exception(taken) => unit.exception(index, taken)?,
            Step::ExceptionReturn => unit.exception_return()?,
        };
        if !more {
            break;
        }
        unit.trace.times.push(unit.sender.clock.now());
        unit.trace.lengths.push(unit.sender.bytes.len());
    }
    unit.sender.commit_all()?;
    unit.trace.path.steps.truncate(unit.proven);
    unit.trace.cycles = unit.sender.cycles_sent;
    unit.trace.bytes = unit.sender.bytes;
    Ok(unit.trace)
}

struct Unit<'a> {
    story: Story<'a>,
    rules: Rules,
    config: &'a Config,
    options: &'a Options,
    sender: Sender<'a>,
    trace: Trace,
    /// The number of reported steps that the trace proves: those up to the last P0 element.
    proven: usize,
    /// Whether an instruction was executed since the last P0 element.
    is_inside_run: bool,
    /// Where execution continued after the last P0 element.
    run_start: Location,
    /// The number of instructions executed from `run_start` on.
    run_length: u64,
    /// Whether an indirect branch led to `run_start` and the exception that follows supplies the branch's
    /// address.
    unanswered: bool,
    /// The target of a return from an exception. M profile sends the target after the exception return
    /// packet.
    returns_to: Option<Location>,
    /// Whether the address of a synchronisation is to be sent after the next atom.
    late_address: bool,
    /// The newest return address is last.
    return_stack: Vec<Location>,
    context_id: ContextId,
    states: States,
    /// The length of the trace at the last synchronisation; `None` before the start.
    synchronised_at: Option<usize>,
    since: Since,
    paused: bool,
    /// Why tracing begins again with the next instruction.
    restarts: Option<ISyncReason>,
}

/// Counters since the last packet of each kind.
#[derive(Default)]
struct Since {
    timestamp: u64,
    event: u64,
    wrong_path: u64,
    q: u64,
    source_address: u64,
}

impl Since {
    /// Increments `number`; returns whether it has reached `every`.
    fn count(number: &mut u64, every: Option<u64>) -> bool {
        *number += 1;
        let is_due = every.is_some_and(|every| *number >= every);
        if is_due {
            *number = 0;
        }
        is_due
    }
}

impl<'a> Unit<'a> {
    fn new(path: &'a Path, program: &'a Program, config: &'a Config, options: &'a Options) -> Self {
        Self {
            story: Story::new(path, program),
            rules: config.rules(),
            config,
            options,
            sender: Sender::new(config, options),
            trace: Trace::default(),
            proven: 0,
            is_inside_run: false,
            run_start: Location::new(Address::new(0), Isa::A32),
            run_length: 0,
            unanswered: false,
            returns_to: None,
            late_address: false,
            return_stack: Vec::new(),
            context_id: ContextId(0),
            states: States::new(config.profile(), options.non_secure),
            synchronised_at: None,
            since: Since::default(),
            paused: false,
            restarts: None,
        }
    }

    /// Whether the step is not traced. At the start of a pause, the instructions since the last P0 element
    /// are lost.
    fn is_paused(&mut self, index: usize, step: &Step) -> Result<bool, EncodeError> {
        let tracing = Pauses::at(self.options.pauses, self.story.all(), index, self.paused);
        self.paused = matches!(tracing, Tracing::Ends | Tracing::Off);
        if tracing == Tracing::Ends {
            self.sender.commit_all()?;
            self.trace.path.steps.truncate(self.proven);
            self.is_inside_run = false;
            self.late_address = false;
        }
        if tracing == Tracing::Begins {
            self.restarts = self.options.pauses.map(|pauses| pauses.reason);
        }
        if self.paused {
            match step {
                Step::Instruction(executed) => {
                    self.sender.clock.execute(executed, &self.story.instruction(executed)?);
                }
                Step::ContextId(context_id) => _ = self.context_id(*context_id),
                Step::Exception(_) => self.states.enter_exception(self.story.state_after(index)),
                Step::ExceptionReturn => self.states.leave_exception(self.story.state_after(index)),
                Step::State(state) => self.states.change(*state),
                Step::Access(_) => {}
            }
        }
        Ok(self.paused)
    }

    /// Encodes an instruction. Returns false if the path ends before its target is known.
    fn instruction(&mut self, index: usize, executed: &Executed) -> Result<bool, EncodeError> {
        let instruction = self.story.instruction(executed)?;
        let location = executed.location();
        self.beside()?;
        if !self.is_inside_run {
            self.synchronise_if_due(location)?;
        }
        self.sender.clock.execute(executed, &instruction);
        self.run_length += 1;
        if !is_p0(self.rules, &instruction) {
            self.is_inside_run = true;
            self.trace.path.steps.push(Step::Instruction(Executed { passed: true, ..*executed }));
            return Ok(true);
        }
        let after = Location::new(executed.end(), executed.isa);
        let target = match (instruction.class, self.story.went(index)) {
            _ if !executed.passed => None,
            (Class::Direct(target), _) => Some(target),
            (Class::Indirect, Went::To(target)) => Some(target),
            (Class::Indirect, Went::TailChained) => None,
            (Class::Indirect, Went::End) => return Ok(false),
            _ => Some(after),
        };
        // Code in the other context begins after the return.
        let returns = self.story.returns(index);
        if returns {
            self.states.leave_exception(self.story.state_after(index));
        } else if let Some(state) = self.story.state_after(index) {
            self.states.change(state);
        }
        if !self.as_q_element(executed, &instruction, target)? {
            self.atom(executed, &instruction)?;
            match (instruction.class, target) {
                _ if !executed.passed => self.answer_late(after)?,
                (Class::Indirect, Some(target)) => {
                    self.indirect(index, &instruction, target, after)?;
                }
                (Class::Indirect, None) => {}
                (Class::Direct(target), _) => {
                    self.push_return(&instruction, after);
                    if self.options.branch_broadcast || self.late_address {
                        self.address(target)?;
                    }
                }
                _ => self.answer_late(after)?,
            }
        }
        self.is_inside_run = false;
        self.run_start = target.unwrap_or(after);
        self.run_length = 0;
        self.prove(Step::Instruction(*executed));
        if !(returns || self.unanswered || self.late_address) {
            let context = self.context();
            self.sender.context(context)?;
            self.stray_if_due()?;
        }
        self.sender.count_cycles()?;
        Ok(true)
    }

    /// Sends the atom of a P0 instruction, possibly after a wrong path, or a source address in place of the
    /// atom.
    fn atom(&mut self, executed: &Executed, instruction: &Instruction) -> Result<(), EncodeError> {
        if executed.passed
            && self.config.is_ete()
            && !self.late_address
            && Since::count(&mut self.since.source_address, self.options.source_address_every)
        {
            return self.sender.source(executed.location());
        }
        if instruction.conditional
            && Since::count(&mut self.since.wrong_path, self.options.wrong_path_every)
            && self.sender.mispredict(executed.passed, executed.location(), self.interrupt())?
        {
            return Ok(());
        }
        self.sender.atom(executed.passed)
    }

    /// Sends a branch as a Q element, if one is due and the decoder can work out the way.
    fn as_q_element(
        &mut self,
        executed: &Executed,
        instruction: &Instruction,
        target: Option<Location>,
    ) -> Result<bool, EncodeError> {
        let after = Location::new(executed.end(), executed.isa);
        let is_clear = match (instruction.class, executed.passed) {
            (Class::Direct(target), true) => target != after,
            (Class::Direct(target), false) => target != after && instruction.conditional,
            (Class::Indirect, passed) => passed && target.is_some(),
            _ => false,
        };
        let may_be = is_clear
            && self.config.q_elements()
            && !instruction.link
            && instruction.returns.is_none()
            && !self.late_address
            && self.sender.knows(self.context());
        if !may_be || !Since::count(&mut self.since.q, self.options.q_every) {
            return Ok(false);
        }
        self.sender.q(self.run_length, target.unwrap_or(after))?;
        Ok(true)
    }

    /// Sends the address of a taken indirect branch, after its atom.
    fn indirect(
        &mut self,
        index: usize,
        instruction: &Instruction,
        target: Location,
        after: Location,
    ) -> Result<(), EncodeError> {
        // The address of a return from an exception is always sent.
        let from_exception = instruction.returns == Some(Return::Exception) || self.story.returns(index);
        if !from_exception && self.return_stack.last() == Some(&target) && !self.late_address {
            self.return_stack.pop();
            self.push_return(instruction, after);
            return Ok(());
        }
        self.unanswered = self.options.exceptions_answer
            && !from_exception
            && !self.late_address
            && self.story.is_interrupted(index);
        // M profile sends the exception return packet before the target: see `exception_return`.
        let returns_first = self.config.profile() == Profile::M && self.story.returns(index);
        self.push_return(instruction, after);
        if returns_first {
            self.returns_to = Some(target);
        } else if !self.unanswered {
            self.address(target)?;
        }
        Ok(())
    }

    fn push_return(&mut self, instruction: &Instruction, returns_to: Location) {
        // No call is pushed between a trace info packet and its address.
        if !self.rules.return_stack || !instruction.link || self.late_address {
            return;
        }
        self.return_stack.push(returns_to);
        if self.return_stack.len() > self.options.return_stack_depth {
            self.return_stack.remove(0);
        }
    }

    fn context_id(&mut self, context_id: ContextId) -> bool {
        self.story.enter(context_id);
        self.context_id = context_id;
        true
    }

    /// Adds a step that the trace proves, together with all steps before it.
    fn prove(&mut self, step: Step) {
        self.trace.path.steps.push(step);
        self.proven = self.trace.path.steps.len();
    }

    /// Sends the address of a synchronisation that was waiting for an atom.
    fn answer_late(&mut self, location: Location) -> Result<(), EncodeError> {
        if self.late_address { self.address(location) } else { Ok(()) }
    }

    fn address(&mut self, location: Location) -> Result<(), EncodeError> {
        self.late_address = false;
        let context = Context { is_64_bit: location.isa == Isa::A64, ..self.context() };
        self.sender.address(location, context)
    }

    /// The context of the current instruction.
    fn context(&self) -> Context {
        let context_id = self.options.context_ids && self.config.context_id_bytes() > 0;
        Context {
            exception_level: self.states.current().level,
            is_64_bit: self.run_start.isa == Isa::A64,
            non_secure: self.states.current().non_secure,
            non_secure_extension: false,
            vmid: self.options.vmid.filter(|_| self.config.vmid_bytes() > 0),
            context_id: context_id.then_some(self.context_id),
        }
    }

    fn stray_if_due(&mut self) -> Result<(), EncodeError> {
        if Since::count(&mut self.since.wrong_path, self.options.wrong_path_every.map(|every| every * 16)) {
            self.sender.stray(self.run_start, self.interrupt())?;
        }
        Ok(())
    }

    fn synchronise_if_due(&mut self, next: Location) -> Result<(), EncodeError> {
        let restarts = self.restarts.take();
        let begins = match (self.synchronised_at, self.options.synchronise_every) {
            (None, _) => true,
            _ if restarts.is_some() => true,
            (Some(at), Some(every)) if self.sender.bytes.len() - at >= every => false,
            _ => return Ok(()),
        };
        match restarts {
            Some(ISyncReason::Overflow) => self.sender.break_off(&Packet::Overflow)?,
            Some(ISyncReason::DebugExit) => self.sender.break_off(&Packet::Discard)?,
            _ => {}
        }
        self.sender.synchronise()?;
        self.synchronised_at = Some(self.sender.bytes.len());
        self.run_start = next;
        if begins || !self.options.keeps_returns {
            self.return_stack.clear();
        }
        if begins {
            self.trace.starts += 1;
            self.run_length = 0;
            self.sender.send(&Packet::TraceOn)?;
        }
        if self.options.late_addresses && !begins {
            self.late_address = true;
        } else {
            self.address(next)?;
        }
        if self.options.timestamp_every.is_some() {
            self.sender.timestamp()?;
        }
        Ok(())
    }

    /// Sends events and timestamps, which may come at any place.
    fn beside(&mut self) -> Result<(), EncodeError> {
        if self.synchronised_at.is_none() || self.restarts.is_some() {
            return Ok(());
        }
        if Since::count(&mut self.since.event, self.options.event_every) {
            self.sender.send(&Packet::Event(0b0101))?;
            if self.config.version() >= Version::Etmv4(3) {
                self.sender.send(&Packet::Ignore)?;
            }
        }
        if Since::count(&mut self.since.timestamp, self.options.timestamp_every) {
            self.sender.timestamp()?;
        }
        Ok(())
    }
}

/// Whether a unit with these rules treats the instruction as a P0 instruction.
fn is_p0(rules: Rules, instruction: &Instruction) -> bool {
    match instruction.class {
        Class::Direct(_) | Class::Indirect | Class::Barrier(Barrier::Isb) => true,
        Class::Barrier(Barrier::Dmb | Barrier::Dsb) => false,
        Class::Wait => rules.waits_are_waypoints,
        Class::TransactionStart => rules.transaction_starts_are_waypoints,
        Class::Other => instruction.access.is_some_and(|access| match access.direction {
            Direction::Load => rules.loads_are_waypoints,
            Direction::Store => rules.stores_are_waypoints,
            Direction::Swap => rules.loads_are_waypoints || rules.stores_are_waypoints,
        }),
    }
}
