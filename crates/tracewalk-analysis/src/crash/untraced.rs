//! A fault that no trace shows: what the registers and the memory of the halted processor prove of it.
//!
//! ```text
//! exception number → EXC_RETURN → frame → is it stored? → place → fault status and instruction → cause
//!                                                              → call frame information   → call stack
//! ```
//!
//! The processor has to be halted at the handler's first instruction: later, nothing shows that the words at the stack pointer are the frame.

mod cause;
mod frame;
mod stack;

use std::ops::Range;

use tracewalk::ids::{Address, Exception};

use super::handlers::{is_fault, is_unhandled};
use super::look::Look;
use super::path::Path;
use super::state::{ICSR, Snapshot};
use super::trail::Taken;
use super::{Crash, Missing};
use crate::Code;
use frame::Frame;
pub use stack::{Caller, Callers};

/// The protocol's name of a [`Section`](crate::Section) whose program nothing traced.
pub const NO_TRACE: &str = "none";

/// A halted processor that nothing traced.
#[derive(Clone, Copy)]
pub struct Halted<'a> {
    /// The program.
    pub code: &'a Code,
    /// The registers and the memory.
    pub snapshot: &'a Snapshot,
    /// The callers of the program's functions.
    pub callers: &'a dyn Callers,
    /// The memory of the program's variables, to distinguish it from addresses without memory.
    pub variables: &'a [Range<u64>],
}

impl Halted<'_> {
    /// The fault that the processor handles, or the exception that has no handler; `None` if it handles neither.
    #[must_use]
    pub fn crash(&self) -> Option<Crash> {
        let Self { code, snapshot, .. } = *self;
        let number = self.number()?;
        let exception = Exception::M(number);
        let halted = snapshot.registers[15].map(|at| Address::from(at & !1));
        let handler = self.handlers(number).first().copied();
        let taken = Taken { exception: Some(exception), handler, ..Taken::default() };
        let is_fault = is_fault(exception);
        if !(is_fault || handler == halted && is_unhandled(&taken, code, snapshot)) {
            return None;
        }
        let frame = self.frame(number);
        let (stack, is_cut) = frame.map(|frame| self.call_stack(frame)).unwrap_or_default();
        let at = frame.map(|Frame { stacked, .. }| stacked.returns_to());
        // A place in a proof of an exception without a handler is the trace's.
        let taken = Taken { returns_to: at.filter(|_| is_fault), stack, ..taken };
        let look = Look {
            code,
            snapshot,
            taken: &taken,
            exception: Some(exception),
            numbered_by_registers: true,
            handler_by_vector: true,
            frame: frame.map(|frame| frame.stacked),
            before: &[],
            states_return: false,
            path: &Path::default(),
        };
        let cause = self.cause(&look);
        let status = snapshot.fault_status();
        let is_baseline = snapshot.is_baseline() == Some(true);
        let jump = frame.and_then(|frame| self.newest_call(frame)).map(|call| Missing::Jump { call });
        let missing = [
            (Missing::Trace, true),
            (Missing::Registers, snapshot.registers.iter().all(Option::is_none)),
            (Missing::NotStacked, frame.is_none() && status.is_not_stacked()),
            (Missing::Frame, frame.is_none() && !status.is_not_stacked()),
            (Missing::Stack, is_cut),
            (Missing::NoFaultStatus, is_fault && is_baseline),
            (Missing::FaultStatus, is_fault && status.cfsr.is_none() && !is_baseline),
        ];
        Some(Crash {
            exception: Some(exception),
            numbered_by_registers: true,
            at,
            handler,
            status: if is_fault { status.registers() } else { Vec::new() },
            frame: look.frame,
            cause,
            stack: taken.stack,
            path: Vec::new(),
            last: Vec::new(),
            missing: jump
                .into_iter()
                .chain(missing.into_iter().filter(|(_, is)| *is).map(|it| it.0))
                .collect(),
        })
    }

    /// The exception that is being handled: by xPSR, or by ICSR.VECTACTIVE (DDI 0403E, B3.2.4).
    fn number(&self) -> Option<u16> {
        match self.snapshot.xpsr {
            Some(_) => self.snapshot.exception_number(),
            None => self.number_by_control(),
        }
    }

    fn number_by_control(&self) -> Option<u16> {
        let active = self.snapshot.word(ICSR)? & 0x1ff;
        u16::try_from(active).ok().filter(|number| *number != 0)
    }

    /// The first instruction of an exception's handler: by the table at VTOR, and by the program's.
    fn handlers(&self, number: u16) -> Vec<Address> {
        let Self { code, snapshot, .. } = *self;
        let at_vtor = snapshot.word(super::state::VTOR).map(Address::from);
        let tables = at_vtor.into_iter().chain(code.program.vector_table());
        let vector = |table: Address| {
            let at = table.checked_add(4 * u64::from(number))?;
            let word = code.program.word(at).or_else(|| snapshot.word(u32::try_from(at.get()).ok()?))?;
            Some(Address::from(word & !1))
        };
        tables.filter_map(vector).collect()
    }
}
