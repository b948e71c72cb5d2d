//! Where the trace says that execution is, or goes on.

use crate::directive::{BeginReason, Counts, PreferredReturn};
use crate::ids::{Exception, Location};
use crate::isa::{self, Class, Instruction, Raises, Return};
use crate::program::Program;
use crate::span::Span;

use super::super::element::{Contradiction, Element, Ending, EventKind, GapReason};
use super::super::vectors::{self, Entered};
use super::{Passed, Position, Trust, Walk};

impl Walk {
    /// Where the trace says that execution goes on.
    pub(in crate::flow) fn go_on_at(&mut self, target: Location, span: Span, sink: &mut impl FnMut(Element)) {
        let target = self.resumed(target);
        if let (Some(passed), Position::At(expected)) = (self.unconfirmed, self.position)
            && expected != target
        {
            let contradiction = match passed {
                Passed { at, class: Class::Direct(expected), taken: true, .. } => {
                    Contradiction::WrongTarget { at, expected, found: target }
                }
                Passed { at, .. } => Contradiction::NotABranch { at, went_to: target },
            };
            self.contradict(contradiction, span, sink);
        }
        if self.position != Position::At(target) {
            self.close(Ending::Interrupted, sink);
        }
        self.position = Position::At(target);
        self.unconfirmed = None;
        self.half_passed = false;
    }

    /// Where a return from an exception really goes that the trace says goes to `target`.
    ///
    /// A change of the instruction set needs an address of five bytes. Where the next exception comes before the first
    /// instruction behind a return, captures were seen to send fewer: the instruction set is then that of the handler,
    /// and the address is rounded down to its alignment. A return into the word that was interrupted, in another
    /// instruction set, is such a one: it goes where the exception was taken from.
    pub(in crate::flow) fn unrounded(&mut self, target: Location) -> Location {
        let rounded = |interrupted: &Location| {
            interrupted.address != target.address
                && interrupted.address.aligned_for(target.isa) == target.address
        };
        self.interrupted.newest().filter(rounded).unwrap_or(target)
    }

    /// Where execution goes on that the trace says goes on at `target`.
    fn resumed(&mut self, target: Location) -> Location {
        let returns =
            self.unconfirmed.is_some_and(|passed| passed.taken && passed.returns == Some(Return::Exception));
        if !returns {
            return target;
        }
        let target = self.unrounded(target);
        self.interrupted.pop();
        target
    }

    /// Tracing begins.
    pub(in crate::flow) fn begin(
        &mut self,
        at: Option<Location>,
        why: BeginReason,
        span: Span,
        sink: &mut impl FnMut(Element),
    ) {
        // An ETM says where a branch went even where nothing behind it is traced; where it overflowed it cannot.
        let waits_for_target = self.rules.counts == Counts::Instructions
            && self.position == Position::Elsewhere
            && self.unconfirmed.is_some();
        if waits_for_target && matches!(why, BeginReason::Enabled | BeginReason::DebugExit) {
            self.close(Ending::Interrupted, sink);
            self.gap(GapReason::AddressUnknown, span, sink);
        }
        self.jump(at);
        self.forget_returns();
        self.last = None;
        self.event(EventKind::TraceOn(why), span, sink);
    }

    /// A periodic synchronisation.
    pub(in crate::flow) fn confirm(&mut self, at: Location, span: Span, sink: &mut impl FnMut(Element)) {
        match self.position {
            Position::At(expected) if expected == at => {}
            Position::At(expected) => {
                let was_sound = self.trust == Trust::Sound;
                self.contradict(Contradiction::WrongPosition { expected, found: at }, span, sink);
                if was_sound {
                    self.trust = Trust::Disputed;
                }
                self.jump(Some(at));
            }
            Position::Nowhere | Position::Elsewhere => self.jump(Some(at)),
        }
        self.forget_returns();
    }

    pub(in crate::flow) fn exception(
        &mut self,
        program: &Program,
        exception: Option<Exception>,
        handler: Option<Location>,
        preferred_return: PreferredReturn,
        span: Span,
        sink: &mut impl FnMut(Element),
    ) {
        let preferred_return = match (preferred_return, self.position) {
            (PreferredReturn::At(address), _) => Some(address),
            (PreferredReturn::Next, Position::At(at)) => Some(at.address),
            // A branch that was passed is not the instruction that could not be executed: that one was not traced.
            (PreferredReturn::Last, position) => match (self.last, position) {
                (Some(last), _) if !is_branch(program, last) => Some(last.address),
                (_, Position::At(at)) => Some(at.address),
                _ => None,
            },
            (PreferredReturn::AtFault, position) => match (self.last, position) {
                (Some(last), _) if is_undefined(program, last) => Some(last.address),
                (_, Position::At(at)) => Some(at.address),
                _ => None,
            },
            _ => None,
        };
        if let (Position::At(at), Some(address)) = (self.position, preferred_return) {
            self.interrupted.push(Location::new(address, at.isa));
        }
        let entered = match (exception, handler) {
            (None, Some(handler)) if self.rules.vectors_hold_addresses => vectors::entered(program, handler),
            _ => Entered::Exception(exception),
        };
        let kind = match entered {
            Entered::Exception(exception) => EventKind::Exception { exception, preferred_return, handler },
            Entered::ByDebugger => EventKind::TraceOn(BeginReason::DebugExit),
        };
        self.event(kind, span, sink);
        self.jump(handler);
        if handler.is_none() && exception.is_some_and(Exception::is_debug_entry) {
            // Nothing is executed that is traced before the trace begins again.
            self.position = Position::Elsewhere;
        }
    }

    /// Where execution goes on behind a return from an exception.
    pub(in crate::flow) fn resume(
        &mut self,
        program: &Program,
        target: Location,
        span: Span,
        sink: &mut impl FnMut(Element),
    ) {
        match vectors::tail_chained(program, target) {
            Some(exception) => {
                let handler = Some(target);
                self.event(EventKind::Exception { exception, preferred_return: None, handler }, span, sink);
                self.jump(handler);
            }
            None => self.go_on_at(target, span, sink),
        }
    }
}

/// Whether the instruction is one that always faults.
fn is_undefined(program: &Program, location: Location) -> bool {
    instruction(program, location).is_some_and(|instruction| instruction.raises == Some(Raises::Undefined))
}

/// Whether the instruction branches.
fn is_branch(program: &Program, location: Location) -> bool {
    instruction(program, location).is_some_and(|instruction| instruction.is_branch())
}

fn instruction(program: &Program, Location { address, isa }: Location) -> Option<Instruction> {
    program.code(address).and_then(|code| isa::classify(code, address, isa).ok())
}
