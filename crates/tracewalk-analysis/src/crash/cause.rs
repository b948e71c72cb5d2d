//! From the evidence of a crash to its cause.
//!
//! ```text
//! the last instruction branched to a register or a loaded address, and the exception was taken there:
//!     no code there → the branch is the cause; its target, the target's origin, and the store that wrote it, if they can be derived
//! the exception was taken at an instruction of the program: see `fault`
//! the exception is not a fault: it has no handler of its own, or a watchdog's
//! ```

use tracewalk::ids::{Address, Exception};

use super::evidence::{Cause, CauseKind, Evidence, Role};
use super::handlers::{RESET, endless_loop, is_fault, is_unhandled, is_watchdog, sharing};
use super::look::Look;
use super::trail::{self, Happened, PathItem};

/// The fewest iterations of a loop that counts as stuck: with fewer, it may have ended by itself.
const STUCK: u64 = 16;

impl Look<'_> {
    /// The cause, if it is proven.
    pub(super) fn cause(&self) -> Option<Cause> {
        if self.exception == Some(RESET) {
            return self.watchdog();
        }
        if !self.exception.is_some_and(is_fault) {
            return self.watchdog().or_else(|| self.no_handler());
        }
        if let Some(cause) = self.stack_limit() {
            return Some(cause);
        }
        let mut cause = if self.ends_in_branch() { self.branch() } else { self.fault() }?;
        cause.proof.extend(self.taken());
        Some(cause)
    }

    /// An exception other than a fault, taken by the shared handler of exceptions without a handler of their own.
    pub(super) fn no_handler(&self) -> Option<Cause> {
        let handler = self.taken.handler.filter(|_| is_unhandled(self.taken, self.code, self.snapshot))?;
        let sharing = sharing(self.code, self.snapshot, handler);
        let mut proof = vec![Evidence::Instruction {
            role: Role::Handler,
            at: handler,
            bytes: endless_loop(handler, self.code)?,
            executed: None,
        }];
        let others = sharing.iter().filter(|number| Some(Exception::M(**number)) != self.exception);
        proof.extend(others.take(2).filter_map(|number| self.vector(*number)));
        proof.extend(self.taken());
        let vectors = u16::try_from(sharing.len()).ok()?;
        Some(Cause { kind: CauseKind::NoHandler { handler, vectors, exception: self.exception }, proof })
    }

    /// A watchdog's interrupt interrupted a loop. If the processor was reset, the reset came while that interrupt was being
    /// handled.
    fn watchdog(&self) -> Option<Cause> {
        let reset = self.exception == Some(RESET);
        let (warning, before) = if reset {
            let index = self.before.iter().rposition(|piece| matches!(piece, Happened::Taken(_)))?;
            let since = self.before.get(index..)?;
            let Some(Happened::Taken(taken)) = since.first() else { return None };
            let ran = |piece: &&&Happened| !matches!(piece, Happened::Ran(_));
            if since.iter().skip(1).any(|piece| ran(&piece)) {
                return None;
            }
            (taken, self.before.get(..index)?)
        } else {
            // A debugger halted the processor in the handler.
            self.snapshot
                .exception_number()
                .filter(|number| self.exception.is_some_and(|exception| exception.number() == *number))?;
            (self.taken, self.before)
        };
        let handler = warning.handler.filter(|_| is_watchdog(warning, self.code))?;
        let path = trail::folded(before);
        let stuck = path.iter().rev().take(2).find_map(|item| match item {
            PathItem::Loop { body, times } if *times >= STUCK => Some((bounds(body)?, *times)),
            _ => None,
        });
        let (stuck, times) = stuck?;
        let mut proof = vec![Evidence::Repeated { start: stuck.0, last: stuck.1, times }];
        if let Some(at) = warning.returns_to.filter(|_| reset) {
            let traced_at = warning.traced_at;
            proof.push(Evidence::Taken { exception: warning.exception, at, handler, traced_at });
        }
        let functions = self.code.symbols.functions();
        let function = functions.into_iter().find(|function| function.start == handler)?;
        let end = Address::from(u32::try_from(function.end).ok()?);
        proof.push(Evidence::Symbol { name: function.symbol, start: handler, end });
        proof.extend(warning.exception.and_then(|exception| self.vector(exception.number())));
        proof.extend(self.taken());
        if !reset {
            proof.extend(self.snapshot.xpsr.map(|value| Evidence::Register { name: "xpsr", value }));
        }
        Some(Cause { kind: CauseKind::Watchdog { handler, reset, stuck, times }, proof })
    }
}

/// The first and the last instruction of a loop's body.
fn bounds(body: &[PathItem]) -> Option<(Address, Address)> {
    let ends = body.iter().filter_map(|item| match item {
        PathItem::Run { start, last, .. } => Some((*start, *last)),
        PathItem::Loop { body, .. } => bounds(body),
        _ => None,
    });
    ends.reduce(|(start, last), (other, end)| (start.min(other), last.max(end)))
}
