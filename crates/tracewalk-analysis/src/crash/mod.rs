//! The cause of a fault that ended a program, if the trace and a debugger's dump of the processor prove one.
//!
//! In: program flow ([`CrashRecorder`]), and registers and memory as they were found ([`Snapshot`]). Out: a [`Crash`]: the
//! exception that the trace ends in, its address, the functions that were running, the last path with its loops
//! folded, and a [`Cause`] with everything that proves it. M profile only.
//!
//! A cause is reported only if its evidence is complete; a likely cause is not enough. Two sources have to agree on the address at
//! which the exception was taken: the trace, and the stacked frame or, in an MTB, the branch to that address.
//!
//! ```
//! use std::sync::Arc;
//! use tracewalk_analysis::Code;
//! use tracewalk_analysis::crash::{CrashRecorder, Snapshot};
//!
//! # use tracewalk::{ids::Address, program::Program, protocol::etmv3, source::SourceConfig};
//! # use tracewalk_analysis::drive::{Carrier, Follower, Input, NoProgress, Stretch};
//! # let config = SourceConfig::Etmv3(etmv3::Config::for_core("cortex-m3").expect("a known core"));
//! # let mut program = Program::new();
//! # program.add(Address::new(0x100), &[0x00, 0xbf, 0x00, 0xbf])?;
//! # let trace = [0, 0, 0, 0, 0, 0x80, 0x08, 0x21, 0x01, 0x01, 0x00, 0x00, 0x84, 0x84];
//! # let carrier = Carrier::Stretches(vec![Stretch::all(trace.len())]);
//! # let input = Input { capture: &trace, carrier, rest: None, progress: &NoProgress };
//! // `config`, `program` and `input` are made as in the example of `drive`.
//! // A trace of two instructions, after which no exception was taken.
//! let mut recorder = CrashRecorder::new(Arc::new(Code::unknown()), false);
//! Follower::new(&config, &program).flow(&input, |record| {
//!     recorder.element(&record.element);
//!     Ok(())
//! })?;
//! assert!(recorder.finish(&Snapshot::default()).is_none());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod branch;
mod cause;
mod end;
mod ending;
mod evidence;
mod fault;
mod handlers;
mod look;
mod path;
mod proven;
mod state;
mod stopped;
mod trail;
mod untraced;
mod waiting;

use std::cell::OnceCell;
use std::io;
use std::sync::Arc;

use tracewalk::flow::Element;
use tracewalk::ids::{Address, Exception};

use crate::analysis::FlowSink;
use crate::record::FlowRecord;
use crate::sink::Sink;
use crate::values::{Profile, ValueSetup};
use crate::{Code, Section};
pub use end::{Doubt, TraceEnd};
use ending::{ending, frame, number, returns_to, stacked};
pub use evidence::{Cause, CauseKind, Evidence, Holder, Role, Stop, Target};
use handlers::{RESET, is_fault};
use look::Look;
use path::Path;
use proven::Values;
pub use state::{FaultStatus, Snapshot, StackedFrame, StatusRegister};
use stopped::Stopped;
use trail::{Happened, Taken, Trail};
pub use trail::{PathItem, Running};
pub use untraced::{Caller, Callers, Halted, NO_TRACE};
use waiting::EndLoop;
pub use waiting::{Waited, Waiting};

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crash {
    /// The exception; `None` if neither the trace nor the vector table nor the registers identify it.
    pub exception: Option<Exception>,
    /// Whether only the registers identify the exception.
    pub numbered_by_registers: bool,
    /// The address at which it was taken: the instruction that faulted, or the next one that would have run.
    pub at: Option<Address>,
    /// The first instruction of its handler.
    pub handler: Option<Address>,
    /// The fault status registers that were saved.
    pub status: Vec<StatusRegister>,
    /// The frame that the exception stacked, if it was saved.
    pub frame: Option<StackedFrame>,
    /// The functions that were running, innermost first.
    pub stack: Vec<Running>,
    /// The path to the exception, oldest first; empty if nothing traced it.
    pub path: Vec<PathItem>,
    /// The last instructions that were executed, oldest first.
    pub last: Vec<Address>,
    /// The cause, if it is proven.
    pub cause: Option<Cause>,
    /// Missing information that might prove a cause.
    pub missing: Vec<Missing>,
}

impl Crash {
    /// Whether no exception ended the program: it stopped itself, or waits.
    #[must_use]
    pub const fn is_without_exception(&self) -> bool {
        let kind = match &self.cause {
            Some(cause) => &cause.kind,
            None => return false,
        };
        matches!(kind, CauseKind::Stopped { .. } | CauseKind::Waiting(_))
    }
}

/// Missing information about a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The fault status registers were not saved.
    FaultStatus,
    /// The frame that the exception stacked was not saved, or is not at the address that the registers imply.
    Frame,
    /// The core registers were not saved.
    Registers,
    /// The number of the exception.
    Number,
    /// The trace does not show the path to the exception.
    Path,
    /// The processor has no fault status registers.
    NoFaultStatus,
    /// Nothing traced the program.
    Trace,
    /// The exception could not store its frame.
    NotStacked,
    /// The call stack goes on in memory that was not saved.
    Stack,
    /// The place where the exception was taken is no code, and nothing shows what led there.
    Jump {
        /// The newest call that is known. Execution may have gone on after it.
        call: Address,
    },
    /// Nothing shows that the image is the program.
    Program,
}

/// Follows program flow and reports how it ends.
#[derive(Debug)]
pub struct CrashRecorder {
    code: Arc<Code>,
    /// Whether the trace itself states where exceptions were taken, apart from the code that ran before.
    states_return: bool,
    trail: Trail,
    /// What is known of the processor without its path, to prove values.
    setup: Option<ValueSetup>,
    /// The loop that the trace ends in, once it was searched.
    waits: OnceCell<Option<Waiting>>,
}

impl CrashRecorder {
    /// A recorder before the first element. `states_return`: the protocol states where exceptions are taken, as an MTB's packets
    /// do.
    #[must_use]
    pub fn new(code: Arc<Code>, states_return: bool) -> Self {
        Self {
            trail: Trail::new(Arc::clone(&code)),
            code,
            states_return,
            setup: None,
            waits: OnceCell::new(),
        }
    }

    /// Takes the next element.
    pub fn element(&mut self, element: &Element) {
        self.trail.element(element);
    }

    /// How the program ended, by its flow and the saved state of the processor; `None` if it did not end in an exception that
    /// ends a program.
    #[must_use]
    pub fn finish(&self, snapshot: &Snapshot) -> Option<Crash> {
        let pieces = self.trail.pieces();
        let Some(index) = ending(&pieces, &self.code, snapshot) else {
            let by_registers = self.by_registers(&pieces, snapshot);
            return by_registers.or_else(|| self.without_exception(&pieces, snapshot));
        };
        let Happened::Taken(taken) = pieces.get(index)? else { return None };
        let before = pieces.get(..index).unwrap_or_default();
        let mut taken = taken.clone();
        let states_return = self.states_return && taken.returns_to.is_some();
        taken.returns_to = returns_to(&taken, before, &self.code);
        // The trace ends before the handler's first instruction, but names the exception.
        let is_last = pieces.len() == index + 1;
        let vector = || handlers::vector(&self.code, snapshot, taken.exception.filter(|_| is_last)?.number());
        let handler_by_vector = taken.handler.is_none();
        taken.handler = taken.handler.or_else(|| vector().map(|(_, handler)| handler));
        let taken = &taken;
        let (exception, numbered_by_registers) = number(taken, &self.code, snapshot);
        let frame = frame(taken, snapshot);
        // If the trace does not show the place, only the registers have it, and nothing can be proven of it.
        let shown_frame = frame.or_else(|| stacked(taken, snapshot).filter(|_| taken.returns_to.is_none()));
        let status = snapshot.fault_status();
        let unproven = Path::default();
        let look = Look {
            code: &self.code,
            snapshot,
            taken,
            exception,
            numbered_by_registers,
            handler_by_vector,
            frame,
            before,
            states_return,
            path: &unproven,
        };
        let path = Path::of(before, &self.code, &self.values(&pieces, index, &look));
        let look = Look { path: &path, ..look };
        let last = look::listed(&path);
        let is_fault = exception.is_some_and(is_fault);
        let missing = [
            (Missing::Number, exception.is_none()),
            (Missing::Path, path.steps.is_empty()),
            (Missing::Registers, snapshot.registers.iter().all(Option::is_none)),
            (Missing::Frame, shown_frame.is_none() && exception != Some(RESET)),
            (Missing::NoFaultStatus, is_fault && snapshot.is_baseline() == Some(true)),
            (Missing::FaultStatus, is_fault && status.cfsr.is_none() && snapshot.is_baseline() != Some(true)),
        ];
        Some(Crash {
            exception,
            numbered_by_registers,
            at: taken.returns_to,
            handler: taken.handler,
            status: if is_fault { status.registers() } else { Vec::new() },
            frame: shown_frame,
            stack: taken.stack.clone(),
            path: trail::folded(before),
            last,
            cause: look.cause(),
            missing: missing.into_iter().filter(|(_, is)| *is).map(|(missing, _)| missing).collect(),
        })
    }

    /// What is proven of the pieces before the exception at this index.
    fn values(&self, pieces: &[&Happened], index: usize, look: &Look<'_>) -> Values {
        let Some(setup) = &self.setup else { return Values::default() };
        match look.frame {
            // Nothing ran at the address without code at which the exception was taken.
            Some(frame) => {
                let ran = pieces.get(..index).unwrap_or_default();
                let ran = ran
                    .split_last()
                    .filter(|(last, _)| matches!(last, Happened::NoCode(_)))
                    .map_or(ran, |it| it.1);
                Values::of(ran, &self.code, proven::ending_at(setup, frame, &look.end()))
            }
            // Nothing is claimed against a frame that was saved.
            None if stacked(look.taken, look.snapshot).is_some() => Values::default(),
            None => Values::of(pieces, &self.code, setup.clone()),
        }
    }

    /// The end of the trace, and whether the saved state of the processor can be of that moment.
    #[must_use]
    pub fn end(&self, snapshot: &Snapshot) -> TraceEnd {
        let polls = self.waits(&self.trail.pieces()).filter(|waiting| waiting.is_on_device());
        TraceEnd { polls: polls.cloned(), ..TraceEnd::of(&self.trail, &self.code, snapshot) }
    }

    /// The loop that the trace ends in, if it waits.
    fn waits(&self, pieces: &[&Happened]) -> Option<&Waiting> {
        let found = || {
            let setup = self.setup.as_ref().filter(|setup| setup.profile == Profile::M)?;
            let ends_in = EndLoop::of(pieces, &self.code)?;
            let values = Values::of(pieces, &self.code, setup.clone());
            ends_in.waiting(pieces, &self.code, &values, &setup.image)
        };
        self.waits.get_or_init(found).as_ref()
    }

    /// A program that goes on no more, although no exception ended it.
    fn without_exception(&self, pieces: &[&Happened], snapshot: &Snapshot) -> Option<Crash> {
        let setup = self.setup.as_ref().filter(|setup| setup.profile == Profile::M)?;
        if end::elsewhere(pieces, &self.trail.at_end(), &self.code, snapshot).is_some() {
            return None;
        }
        let (at, cause, stack) = match Stopped::of(pieces, &self.code, snapshot) {
            Some(stopped) => {
                let stack = self.trail.running_at(stopped.at);
                let values = stopped.calls_debugger().then(|| Values::of(pieces, &self.code, setup.clone()));
                let operation = values.and_then(|values| Path::of(pieces, &self.code, &values).end()[0]);
                (stopped.at, stopped.cause(pieces, &stack, &self.code, operation)?, stack)
            }
            None => {
                let waiting = self.waits(pieces).filter(|waiting| !waiting.is_on_device())?;
                let stack = self.trail.running_at(waiting.at);
                let is_idle =
                    |running: &Running| running.function.name(&self.code).to_lowercase().contains("idle");
                if stack.iter().any(is_idle) {
                    return None;
                }
                (waiting.at, waiting.clone().cause(pieces, &self.code)?, stack)
            }
        };
        Some(Crash {
            exception: None,
            numbered_by_registers: false,
            at: Some(at),
            handler: None,
            status: Vec::new(),
            frame: None,
            stack,
            path: trail::folded(pieces),
            last: look::listed(&Path::of(pieces, &self.code, &Values::default())),
            cause: Some(cause),
            missing: Vec::new(),
        })
    }

    /// A fault that only the registers show: its handler ran for so long that the trace lost everything before it.
    fn by_registers(&self, pieces: &[&Happened], snapshot: &Snapshot) -> Option<Crash> {
        let number = snapshot.exception_number().filter(|number| is_fault(Exception::M(*number)))?;
        let taken = Taken::default();
        let path = Path::of(pieces, &self.code, &Values::default());
        let look = Look {
            code: &self.code,
            snapshot,
            taken: &taken,
            exception: Some(Exception::M(number)),
            numbered_by_registers: true,
            handler_by_vector: true,
            frame: None,
            before: pieces,
            states_return: false,
            path: &path,
        };
        let halted = snapshot.registers[15].map(Address::from);
        // Without the vector table, the trace may show that the processor was halted at a handler.
        let entered = pieces.iter().rev().find_map(|piece| match piece {
            Happened::Taken(taken) => Some(taken.handler),
            _ => None,
        });
        let handler = handlers::vector(&self.code, snapshot, number).map(|(_, handler)| handler);
        let handler = handler.or(entered.flatten().filter(|handler| Some(*handler) == halted));
        let frame = stacked(&Taken { handler, ..Taken::default() }, snapshot);
        // A trace that does not end in the handler may have ended long before the fault.
        let function = |at: Address| self.code.symbols.function(at).map(|function| function.start);
        let ends_in = path.steps.last().and_then(|last| function(Address::from(last.at)));
        let shows_handler =
            [handler, halted].into_iter().flatten().any(|at| ends_in.is_some() && function(at) == ends_in);
        let (shown, last) = match shows_handler {
            true => (trail::folded(pieces), look::listed(&path)),
            false => (Vec::new(), Vec::new()),
        };
        let status = snapshot.fault_status();
        let is_baseline = snapshot.is_baseline() == Some(true);
        let missing = [
            (Missing::Path, true),
            (Missing::Frame, frame.is_none()),
            (Missing::NoFaultStatus, is_baseline),
            (Missing::FaultStatus, status.cfsr.is_none() && !is_baseline),
        ];
        Some(Crash {
            exception: look.exception,
            numbered_by_registers: true,
            at: None,
            handler,
            status: status.registers(),
            frame,
            stack: Vec::new(),
            path: shown,
            last,
            cause: None,
            missing: missing.into_iter().filter(|(_, is)| *is).map(|(missing, _)| missing).collect(),
        })
    }
}

/// Records how the program of each source ends.
#[derive(Debug, Default)]
pub struct CrashRecording {
    sources: Vec<(Section, CrashRecorder)>,
}

impl CrashRecording {
    /// Whether values could prove a cause of how the last source ended.
    #[must_use]
    pub fn needs_values(&self, snapshot: &Snapshot) -> bool {
        let ends = |recorder: &CrashRecorder| {
            let (pieces, code) = (recorder.trail.pieces(), &recorder.code);
            ending(&pieces, code, snapshot).is_some()
                || Stopped::of(&pieces, code, snapshot).is_some()
                || EndLoop::of(&pieces, code).is_some()
        };
        self.sources.last().is_some_and(|(_, recorder)| ends(recorder))
    }

    /// States what is known of the last source's processor without its path, to prove values.
    pub fn prove(&mut self, setup: ValueSetup) {
        if let Some((_, recorder)) = self.sources.last_mut() {
            recorder.setup = Some(setup);
        }
    }

    /// The end of each source's trace. `doubts` are those that are known of each source already.
    #[must_use]
    pub fn ends(&self, snapshot: &Snapshot, doubts: Vec<Vec<Doubt>>) -> Vec<TraceEnd> {
        let doubts = doubts.into_iter().chain(std::iter::repeat_with(Vec::new));
        let ended = |((_, recorder), mut doubts): (&(Section, CrashRecorder), Vec<Doubt>)| {
            let end = recorder.end(snapshot);
            doubts.extend(end.doubts);
            TraceEnd { doubts, ..end }
        };
        self.sources.iter().zip(doubts).map(ended).collect()
    }

    /// The end of each source's program.
    #[must_use]
    pub fn finish(self, snapshot: &Snapshot) -> Vec<(Section, Option<Crash>)> {
        let finish = |(section, recorder): (Section, CrashRecorder)| {
            let crash = recorder.finish(snapshot);
            (section, crash)
        };
        self.sources.into_iter().map(finish).collect()
    }
}

impl Sink<FlowRecord> for CrashRecording {
    fn section(&mut self, section: &Section) -> io::Result<()> {
        // Each packet of an MTB has a source and a destination address.
        let states_return = section.protocol == "mtb";
        self.sources.push((section.clone(), CrashRecorder::new(Arc::clone(&section.code), states_return)));
        Ok(())
    }

    fn record(&mut self, record: FlowRecord) -> io::Result<()> {
        if let Some((_, recorder)) = self.sources.last_mut() {
            recorder.element(&record.element);
        }
        Ok(())
    }
}

impl FlowSink for CrashRecording {}
