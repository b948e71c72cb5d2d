//! Reads QEMU's log of what it executed as a [`Path`].
//!
//! QEMU must run one instruction at a time and log it before it runs: `-singlestep -d exec,nochain,int,cpu`
//! (QEMU 7.2). For each instruction the log then has a `Trace` line, the registers before the instruction,
//! and its events. Some instructions are logged that did not run:
//!
//! - `Stopped execution of TB chain before`: an interrupt came first;
//! - `rewound execution`: the instruction accessed a device and is logged again at once;
//! - an abort was taken: the instruction may be tried again later.
//!
//! The log ends when the program ends: at a semihosting call, or at an instruction that branches to itself.
//! Data accesses come from the plugin `testdata/firmware/accesses.c`.
//!
//! ```
//! use tracewalk::program::Program;
//! use tracewalk_generate::qemu::LogReader;
//! use tracewalk_generate::record::Profile;
//!
//! // A log without any instruction is an error, not an empty path.
//! let program = Program::new();
//! assert!(LogReader::new(Profile::M, &program).finish().is_err());
//! ```

mod condition;
mod error;
mod log;

use tracewalk::ids::{Address, ContextId, Exception, Isa, Location};
use tracewalk::isa::{self, Class, Return};
use tracewalk::program::Program;

use crate::path::{Executed, Path, State, Step, Taken};
use crate::record::Profile;
use log::{Entered, Event};

pub use error::{LogError, LogErrorKind};

/// Reads a log line by line, because the log of a long run takes some hundred bytes for each instruction.
pub struct LogReader<'a> {
    reader: Reader<'a>,
    /// The instruction whose registers are being logged.
    entered: Option<Entered>,
    /// The line that was read last, from 1.
    line: usize,
    instructions: u64,
    ended: bool,
}

impl<'a> LogReader<'a> {
    /// A reader for the log of a run of `program` on a processor of this profile.
    #[must_use]
    pub fn new(profile: Profile, program: &'a Program) -> Self {
        let reader = Reader::new(profile, program);
        Self { reader, entered: None, line: 0, instructions: 0, ended: false }
    }

    /// Reads the next line; `false` once the program has ended.
    pub fn line(&mut self, line: &str) -> Result<bool, LogError> {
        self.line += 1;
        let Some(event) = log::event(line, &mut self.entered) else { return Ok(true) };
        self.instructions += u64::from(matches!(event, Some(Event::Entered(_))));
        let event = event.ok_or(LogErrorKind::Unreadable);
        let more = event.and_then(|event| self.reader.take(event)).map_err(|kind| self.error(kind))?;
        self.ended = !more;
        Ok(more)
    }

    /// How many instructions were logged so far.
    #[must_use]
    pub const fn instructions(&self) -> u64 {
        self.instructions
    }

    /// Ends the log; returns the executed path.
    pub fn finish(mut self) -> Result<Path, LogError> {
        if self.instructions == 0 {
            let without =
                if self.entered.is_some() { LogErrorKind::NoRegisters } else { LogErrorKind::NoInstructions };
            return Err(self.error(without));
        }
        if !self.ended {
            self.reader.commit().map_err(|kind| LogError { line: self.line, kind })?;
        }
        Ok(self.reader.path)
    }

    const fn error(&self, kind: LogErrorKind) -> LogError {
        LogError { line: self.line, kind }
    }
}

/// The exception number of a reset (ARMv7-M Architecture Reference Manual, DDI 0403E, table B1-4).
const RESET: u16 = 1;

/// How an exception relates to the instruction that was logged last.
enum Origin {
    /// The instruction completed; the exception came before the next one.
    Between,
    /// The instruction completed and requested the exception.
    Call,
    /// The instruction was undefined: it counts as completed, but the preferred return address is its own.
    Undefined,
    /// The instruction was aborted.
    Aborted,
}

/// An A-profile exception whose handler is about to be logged.
struct Entering {
    /// QEMU's number.
    number: u32,
    /// The code of ETMv3 and PFT.
    code: u8,
    /// The expected preferred return address, inferred from the instruction before.
    expected: Option<Address>,
    /// The address in the log, for an exception that is taken to AArch64.
    resumes_at: Option<Address>,
}

struct Reader<'a> {
    profile: Profile,
    program: &'a Program,
    path: Path,
    /// The instruction logged last, until it is known whether it ran, and the steps that it produces.
    pending: Option<(Entered, Vec<Step>)>,
    /// The last instruction that ran, if nothing has happened since.
    last: Option<Address>,
    /// Where execution continues after `last`; `None` after an indirect branch.
    next: Option<Address>,
    /// Where execution was when the instruction logged last did not run.
    stopped_at: Option<Address>,
    /// An A-profile exception whose handler is about to be logged, and the expected address in the handler's
    /// link register.
    entering: Option<Entering>,
    /// The processor's exception level and security state.
    state: Option<State>,
    /// M profile: preferred return address of the exception about to be taken, if it is known.
    resumes_at: Option<Address>,
    /// M profile: the number of the exception about to be taken.
    number: u16,
    /// M profile: a return is giving way to another exception.
    tail_chaining: bool,
    /// The stack pointer after the last instruction that ran, if that was an indirect branch.
    stack_pointer: Option<u32>,
    /// M profile: for each active exception, the steps whose preferred return address the exception's return
    /// will show.
    active: Vec<Vec<usize>>,
    /// M profile: steps whose preferred return address is the address at which execution continues now.
    resuming: Vec<usize>,
    /// M profile: steps whose preferred return address the return to this stack pointer will show. A handler
    /// may switch tasks, and then return to another one.
    interrupted: Vec<(u32, usize)>,
}

impl<'a> Reader<'a> {
    fn new(profile: Profile, program: &'a Program) -> Self {
        Self {
            profile,
            program,
            path: Path::default(),
            pending: None,
            last: None,
            next: None,
            stopped_at: None,
            entering: None,
            state: None,
            resumes_at: None,
            number: 0,
            tail_chaining: false,
            stack_pointer: None,
            active: Vec::new(),
            resuming: Vec::new(),
            interrupted: Vec::new(),
        }
    }

    /// Processes one event; false once the program has ended.
    fn take(&mut self, event: Event) -> Result<bool, LogErrorKind> {
        match event {
            Event::Entered(entered) => return self.enter(*entered),
            Event::NoRegisters => return Err(LogErrorKind::NoRegisters),
            Event::DidNotRun => self.stopped_at = self.pending.take().map(|(entered, _)| entered.address),
            Event::Accessed(access) => {
                if let Some((_, steps)) = &mut self.pending {
                    steps.push(Step::Access(access));
                }
            }
            Event::Semihosting => return Ok(false),
            Event::Taking(number) => match self.profile {
                Profile::M => self.take_m(number)?,
                Profile::Ar => self.take_ar(number)?,
            },
            // The target of a jump to an address without code. The address of a data access that faulted does
            // not matter.
            Event::FaultAddress(address) => self.resumes_at = self.resumes_at.or(Some(address)),
            Event::ReturnAddress(address) => {
                if let Some(entering) = &mut self.entering {
                    entering.resumes_at = Some(address);
                }
            }
            Event::VectorNumber(number) => self.number = number,
            Event::HandlerLoaded(handler) => self.enter_m_handler(handler),
            Event::Gateway(address) => self.pass_gateway(address),
            Event::Reset(start) => self.reset(start)?,
            Event::TailChaining => {
                self.path.steps.push(Step::ExceptionReturn);
                self.tail_chaining = true;
            }
            Event::Returned => {
                self.path.steps.push(Step::ExceptionReturn);
                self.last = None;
                self.stack_pointer = None;
                self.resuming.extend(self.active.pop().unwrap_or_default());
            }
        }
        Ok(true)
    }

    /// Whether the record contains exception levels and security states: for A64, and for an M-profile
    /// processor with two states.
    fn says_state(&self, isa: Isa) -> bool {
        self.profile == Profile::M || isa == Isa::A64 || self.state.is_some()
    }

    fn enter(&mut self, entered: Entered) -> Result<bool, LogErrorKind> {
        self.commit()?;
        if let Some(entering) = self.entering.take() {
            self.enter_ar_handler(&entering, &entered)?;
        }
        if let Some(state) = entered.state.filter(|_| self.says_state(entered.isa)) {
            if self.state != Some(state) {
                self.path.steps.push(Step::State(state));
            }
            self.state = Some(state);
        }
        let back = matches!(self.path.steps.last(), Some(Step::ExceptionReturn));
        let here = |&mut (stack_pointer, _): &mut (u32, usize)| back && stack_pointer == entered.word(13);
        self.resuming.extend(self.interrupted.extract_if(.., here).map(|(_, step)| step));
        for step in self.resuming.drain(..) {
            if let Some(Step::Exception(taken)) = self.path.steps.get_mut(step) {
                taken.preferred_return = Some(entered.address);
            }
        }
        // A program without an operating system ends in an endless loop.
        let ended = self.last == Some(entered.address);
        self.stopped_at = None;
        self.pending = Some((entered, Vec::new()));
        Ok(!ended)
    }

    /// Records that the pending instruction ran.
    fn commit(&mut self) -> Result<(), LogErrorKind> {
        let Some((entered, details)) = self.pending.take() else { return Ok(()) };
        let at = entered.address;
        let code = self.program.code(at).ok_or(LogErrorKind::NoCode { at })?;
        let instruction = isa::classify(code, at, entered.isa).map_err(|_| LogErrorKind::NoCode { at })?;
        let passed = condition::passed(&entered, code);
        let bytes = instruction.bytes;
        self.path.steps.push(Step::Instruction(Executed { address: at, isa: entered.isa, bytes, passed }));
        self.path.steps.extend(details);
        if passed {
            self.path.steps.extend(context_id(&entered, code).map(Step::ContextId));
            if self.profile == Profile::Ar && instruction.returns == Some(Return::Exception) {
                self.path.steps.push(Step::ExceptionReturn);
            }
        }
        self.last = Some(at);
        self.next = match instruction.class {
            Class::Direct(target) if passed => Some(target.address),
            Class::Indirect if passed => None,
            _ => Some(Location::new(at, entered.isa).after(bytes.into()).address),
        };
        // A return by a load has popped its words off the stack.
        let loaded = instruction.access.filter(|_| instruction.returns == Some(Return::Function));
        let words = loaded.map_or(0, |access| u32::from(access.transfers));
        self.stack_pointer = Some(entered.word(13).wrapping_add(4 * words)).filter(|_| self.next.is_none());
        Ok(())
    }

    /// Decides whether the pending instruction ran; returns where an exception of this origin returns to, if
    /// the origin determines that.
    fn settle(&mut self, origin: &Origin) -> Result<Option<Address>, LogErrorKind> {
        let at = self.pending.as_ref().map(|(entered, _)| entered.address);
        let stopped_at = self.stopped_at.take();
        let preferred_return = match origin {
            Origin::Between => {
                self.commit()?;
                stopped_at.or(self.next.filter(|_| self.last.is_some()))
            }
            Origin::Call => {
                self.commit()?;
                match self.path.steps.last() {
                    Some(Step::Instruction(executed)) => Some(executed.end()),
                    _ => None,
                }
            }
            Origin::Undefined => {
                self.commit()?;
                at
            }
            Origin::Aborted => {
                self.pending = None;
                at
            }
        };
        self.last = None;
        Ok(preferred_return)
    }

    /// A reset before the first instruction is the beginning. Any other reset is an exception that nothing
    /// returns from.
    fn reset(&mut self, start: Address) -> Result<(), LogErrorKind> {
        if self.path.steps.is_empty() && self.pending.is_none() {
            return Ok(());
        }
        self.resumes_at = self.settle(&Origin::Between)?;
        self.active.clear();
        self.number = RESET;
        self.tail_chaining = false;
        self.enter_m_handler(start);
        Ok(())
    }

    /// QEMU's numbers: target/arm/cpu.h, `EXCP_*`.
    fn take_m(&mut self, number: u32) -> Result<(), LogErrorKind> {
        let origin = match number {
            // Prefetch abort (nothing was fetched, so nothing was logged), IRQ, exception return.
            3 | 5 | 8 => Origin::Between,
            2 => Origin::Call,
            1 => Origin::Undefined,
            // Data abort; no coprocessor, invalid state, unaligned and the like: refused before execution.
            4 | 17 | 18 | 20..=23 => Origin::Aborted,
            number => return Err(LogErrorKind::UnknownException { number }),
        };
        self.resumes_at = self.settle(&origin)?;
        Ok(())
    }

    /// QEMU executes SG while it handles the exception that fetching SG raised; no exception is taken.
    fn pass_gateway(&mut self, address: Address) {
        let executed = Executed { address, isa: Isa::T32, bytes: 4, passed: true };
        self.path.steps.push(Step::Instruction(executed));
        self.last = Some(address);
        self.next = Some(executed.end());
        self.stack_pointer = None;
        self.resumes_at = None;
    }

    fn enter_m_handler(&mut self, handler: Address) {
        let step = self.path.steps.len();
        let known = self.resumes_at.take();
        let preferred_return = if self.tail_chaining { None } else { known };
        let exception = Exception::M(self.number);
        self.path.steps.push(Step::Exception(Taken { exception, preferred_return, handler }));
        if !std::mem::take(&mut self.tail_chaining) {
            // If a return led straight into this exception, both resume at the same place.
            let mut unknown = std::mem::take(&mut self.resuming);
            match (known, self.stack_pointer.take()) {
                (Some(_), _) => {}
                (None, Some(stack_pointer)) => self.interrupted.push((stack_pointer, step)),
                (None, None) => unknown.push(step),
            }
            self.active.push(unknown);
        }
    }

    fn take_ar(&mut self, number: u32) -> Result<(), LogErrorKind> {
        let (code, origin) = match number {
            1 => (9, Origin::Undefined),
            2 => (10, Origin::Call),
            // Hypervisor and secure monitor call.
            11 => (3, Origin::Call),
            13 => (2, Origin::Call),
            3 => (11, Origin::Between),
            4 => (12, Origin::Aborted),
            5 => (14, Origin::Between),
            6 => (15, Origin::Between),
            // A breakpoint instruction takes a prefetch abort.
            7 => (11, Origin::Aborted),
            number => return Err(LogErrorKind::UnknownException { number }),
        };
        let expected = self.settle(&origin)?;
        self.entering = Some(Entering { number, code, expected, resumes_at: None });
        Ok(())
    }

    /// The handler's link register gives the preferred return address, by an offset (DDI 0406C, table B1-7),
    /// if the handler is not in A64.
    fn enter_ar_handler(&mut self, entering: &Entering, entered: &Entered) -> Result<(), LogErrorKind> {
        let Entering { code, expected, .. } = *entering;
        let from_thumb = matches!(
            self.path.steps.iter().rev().find_map(|step| match step {
                Step::Instruction(executed) => Some(executed.isa),
                _ => None,
            }),
            Some(Isa::T32)
        );
        let offset = match code {
            10 => 0,
            9 if from_thumb => 2,
            12 => 8,
            _ => 4,
        };
        let found = match entering.resumes_at {
            Some(address) if entered.isa == Isa::A64 => address,
            _ => Address::from(entered.word(14).wrapping_sub(offset)),
        };
        if let Some(expected) = expected.filter(|&expected| expected != found) {
            return Err(LogErrorKind::WrongLink { expected, found });
        }
        let handler = entered.address;
        let exception = match entered.isa {
            Isa::A64 => Exception::ArType(type_of(entering.number)),
            _ => Exception::Ar(code),
        };
        self.path.steps.push(Step::Exception(Taken { exception, preferred_return: Some(found), handler }));
        Ok(())
    }
}

/// ETMv4's type of an A-profile exception (IHI 0064), by QEMU's number.
const fn type_of(number: u32) -> u16 {
    match number {
        1 => 3,
        2 | 11 | 13 => 2,
        3 => 11,
        4 => 12,
        6 => 15,
        // A breakpoint instruction.
        7 => 6,
        _ => 14,
    }
}

/// The value that an instruction writes to CONTEXTIDR (`MCR p15, 0, Rt, c13, c0, 1`; DDI 0406C, B4.1.36) or
/// CONTEXTIDR_EL1 (`MSR CONTEXTIDR_EL1, Xt`).
fn context_id(entered: &Entered, code: &[u8]) -> Option<ContextId> {
    let word = condition::word(entered.isa, code)?;
    match entered.isa {
        Isa::A64 if word & 0xffff_ffe0 == 0xd518_d020 => Some(ContextId(entered.word(word & 0b1_1111))),
        Isa::A32 | Isa::T32 if word & 0x0fff_0fff == 0x0e0d_0f30 => {
            Some(ContextId(entered.word(word >> 12 & 0xf)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program of two `NOP`s and a branch to itself, at 0x100.
    fn read(log: &str) -> Result<Path, LogError> {
        let mut program = Program::new();
        program.add(Address::new(0x100), &[0x00, 0xbf, 0x00, 0xbf, 0xfe, 0xe7]).expect("there is room");
        let mut reader = LogReader::new(Profile::M, &program);
        for line in log.lines() {
            if !reader.line(line)? {
                break;
            }
        }
        reader.finish()
    }

    fn trace(address: u32) -> String {
        format!("Trace 0: 0x7f1b84000100 [00800400/{address:08x}/00000110/ff020201] work\n")
    }

    const REGISTERS: &str = "R00=00000000 R01=00000000 R02=00000000 R03=00000000\n\
        R12=00000000 R13=20000000 R14=ffffffff R15=00000100\nXPSR=41000000 -Z-- T priv-thread\n";

    #[test]
    fn a_log_with_registers_is_what_was_executed() {
        let log = format!("{}{REGISTERS}{}{REGISTERS}", trace(0x100), trace(0x102));
        let path = read(&log).expect("a log as QEMU writes it");
        let found = path.instructions().map(|executed| executed.address).collect::<Vec<_>>();
        assert_eq!(found, [Address::new(0x100), Address::new(0x102)]);
    }

    #[test]
    fn a_log_without_registers_is_refused() {
        let kind = |log: &str| read(log).map_err(|error| (error.line, error.kind));
        let log = format!("{}{}", trace(0x100), trace(0x102));
        assert_eq!(kind(&log), Err((2, LogErrorKind::NoRegisters)));
        assert_eq!(kind(&trace(0x100)), Err((1, LogErrorKind::NoRegisters)));
        assert_eq!(kind("IN: main\n"), Err((1, LogErrorKind::NoInstructions)));
        assert_eq!(kind(""), Err((0, LogErrorKind::NoInstructions)));
    }
}
