//! How deep in calls and exceptions execution is.
//!
//! Calls push where they return to, exceptions where they were taken. A return is recognised by where it goes, not by
//! its instruction: execution that jumps to an address on the stack has returned there, whatever was in between, which
//! also covers tail calls, `longjmp` and functions that ran in code no image holds. After a gap nothing is known and
//! depth is counted from 0 again.

use std::collections::VecDeque;

use tracewalk::flow::{Block, BranchKind, Element, Ending, EventKind, GapReason};
use tracewalk::ids::Address;
use tracewalk::isa::Return;

/// Follows calls, returns and exceptions.
#[derive(Clone, Debug, Default)]
pub struct CallDepth {
    /// The innermost last.
    frames: VecDeque<Frame>,
    next: Next,
}

/// How execution came to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Nothing is known of what ran before.
    Unknown,
    /// It went straight on.
    Straight,
    /// By a branch that neither called nor returned.
    Jump,
    /// By a call.
    Call,
    /// By a return to where a known call, or one before the trace began, came from.
    Return,
    /// By taking an exception.
    Exception,
    /// By returning from an exception.
    ExceptionReturn,
}

/// Where one call or exception will return to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frame {
    Call { returns_to: Address },
    Exception { returns_to: Option<Address> },
}

/// What has to happen before the next block begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Next {
    #[default]
    Unknown,
    Straight,
    Jump,
    /// An indirect branch, which may be a return by another means.
    IndirectJump,
    Call {
        returns_to: Address,
    },
    Return,
    /// Applied already.
    Exception,
    /// The handler is left already; its exception was taken at `from`, where that is known.
    ExceptionReturn {
        from: Option<Address>,
    },
    /// Code that no image holds ran; it may come back by returning.
    Elsewhere,
}

/// Recursion deeper than this loses its outermost frames, so that memory stays bounded.
const DEEPEST: usize = 1 << 14;

impl CallDepth {
    /// How many calls and exceptions enclose the last block, as far as they are known.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.frames.len()
    }

    /// Takes the next element. For a block: how execution came to it.
    pub fn element(&mut self, element: &Element) -> Option<Arrival> {
        match element {
            Element::Block(block) => {
                let arrival = self.arrive(block.start);
                self.leave(block);
                return Some(arrival);
            }
            Element::Event(event) => match event.kind {
                EventKind::TraceOn(_) => self.forget(),
                EventKind::Exception { preferred_return, .. } => {
                    // A call or return just before it has happened, though nothing ran where it went.
                    match preferred_return {
                        Some(address) => drop(self.arrive(address)),
                        None if self.next == Next::Unknown => {}
                        None => self.next = Next::Straight,
                    }
                    self.push(Frame::Exception { returns_to: preferred_return });
                    self.next = Next::Exception;
                }
                EventKind::ExceptionReturn => self.exception_return(),
                EventKind::Context { .. }
                | EventKind::Timestamp(_)
                | EventKind::Cycles(_)
                | EventKind::Trigger
                | EventKind::Data(_) => {}
            },
            Element::Gap(gap) => match gap.reason {
                GapReason::NoCode(at) | GapReason::Undecodable(at, _) => {
                    let _ = self.arrive(at.address);
                    self.next = Next::Elsewhere;
                }
                GapReason::AddressUnknown | GapReason::Contradiction(_) | GapReason::TraceLost => {
                    self.forget();
                }
            },
        }
        None
    }

    fn arrive(&mut self, at: Address) -> Arrival {
        match std::mem::replace(&mut self.next, Next::Straight) {
            Next::Unknown => Arrival::Unknown,
            Next::Straight => Arrival::Straight,
            Next::Jump => Arrival::Jump,
            Next::Exception => Arrival::Exception,
            Next::ExceptionReturn { from } => {
                if from != Some(at) {
                    self.return_from_outer_exception(at);
                }
                Arrival::ExceptionReturn
            }
            Next::Call { returns_to } => {
                self.push(Frame::Call { returns_to });
                Arrival::Call
            }
            Next::IndirectJump => {
                if self.return_to(at) {
                    Arrival::Return
                } else {
                    Arrival::Jump
                }
            }
            Next::Return => {
                // A return to nowhere known leaves the innermost call all the same.
                if !self.return_to(at) && matches!(self.frames.back(), Some(Frame::Call { .. })) {
                    self.frames.pop_back();
                }
                Arrival::Return
            }
            Next::Elsewhere => {
                if self.return_to(at) {
                    Arrival::Return
                } else {
                    self.frames.clear();
                    Arrival::Unknown
                }
            }
        }
    }

    fn leave(&mut self, block: &Block) {
        self.next = match block.ending {
            Ending::Branch { kind, taken: true, link, returns } => match (kind, link, returns) {
                (BranchKind::Barrier, ..) => Next::Straight,
                (_, true, _) => Next::Call { returns_to: block.end },
                (_, false, Some(Return::Function)) => Next::Return,
                (_, false, Some(Return::Exception)) => Next::ExceptionReturn { from: self.pop_exception() },
                (BranchKind::Indirect, false, None) => Next::IndirectJump,
                (BranchKind::Direct, false, None) => Next::Jump,
            },
            Ending::Branch { taken: false, .. } | Ending::Interrupted | Ending::ConditionFailed => {
                Next::Straight
            }
        };
    }

    /// The event behind an instruction whose form may have said so already.
    fn exception_return(&mut self) {
        if !matches!(self.next, Next::ExceptionReturn { .. }) {
            self.next = Next::ExceptionReturn { from: self.pop_exception() };
        }
    }

    /// Leaves the innermost exception's handler. Returns where the exception was taken, if that is known.
    fn pop_exception(&mut self) -> Option<Address> {
        for (index, frame) in self.frames.iter().enumerate().rev() {
            if let Frame::Exception { returns_to } = *frame {
                self.frames.truncate(index);
                return returns_to;
            }
        }
        // It was taken before the trace began; so were the calls of its handler that are known.
        self.frames.clear();
        None
    }

    /// An exception return went to `at`, which is not where the innermost exception was taken. Where an outer one was
    /// taken there, the inner one had been tail-chained to it: the outer handler ended when the inner one began.
    fn return_from_outer_exception(&mut self, at: Address) {
        let outer = Frame::Exception { returns_to: Some(at) };
        if let Some(index) = self.frames.iter().rposition(|frame| *frame == outer) {
            self.frames.truncate(index);
        }
    }

    /// Whether a call since the last exception returns to `at`; if so it, and all that it called, is left.
    fn return_to(&mut self, at: Address) -> bool {
        for (index, frame) in self.frames.iter().enumerate().rev() {
            match *frame {
                Frame::Call { returns_to } if returns_to == at => {
                    self.frames.truncate(index);
                    return true;
                }
                Frame::Call { .. } => {}
                Frame::Exception { returns_to: Some(address) } if address == at => {
                    self.frames.truncate(index);
                    return true;
                }
                Frame::Exception { .. } => return false,
            }
        }
        false
    }

    fn push(&mut self, frame: Frame) {
        if self.frames.len() == DEEPEST {
            self.frames.pop_front();
        }
        self.frames.push_back(frame);
    }

    fn forget(&mut self) {
        self.frames.clear();
        self.next = Next::Unknown;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::samples::{block, event, gap, interrupted, taken};
    use tracewalk::directive::BeginReason;
    use tracewalk::ids::{Exception, Isa, Location};

    fn branch(kind: BranchKind, link: bool, returns: Option<Return>) -> Ending {
        Ending::Branch { kind, taken: true, link, returns }
    }

    fn call() -> Ending {
        branch(BranchKind::Direct, true, None)
    }

    fn returns() -> Ending {
        branch(BranchKind::Indirect, false, Some(Return::Function))
    }

    fn exception(preferred_return: u32) -> Element {
        event(EventKind::Exception {
            exception: Some(Exception::M(15)),
            preferred_return: Some(Address(preferred_return)),
            handler: None,
        })
    }

    /// The arrival at each block and the depth there.
    fn depths(elements: &[Element]) -> Vec<(Arrival, usize)> {
        let mut calls = CallDepth::default();
        elements.iter().filter_map(|element| Some((calls.element(element)?, calls.depth()))).collect()
    }

    #[test]
    fn calls_go_deeper_and_returns_come_back() {
        let found = depths(&[
            block(0x100, 0x104, call()),
            block(0x200, 0x204, call()),
            block(0x300, 0x302, returns()),
            block(0x204, 0x206, returns()),
            block(0x104, 0x106, taken()),
        ]);
        let expected = [
            (Arrival::Unknown, 0),
            (Arrival::Call, 1),
            (Arrival::Call, 2),
            (Arrival::Return, 1),
            (Arrival::Return, 0),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_tail_call_returns_to_the_caller_of_its_caller() {
        let found = depths(&[
            block(0x100, 0x104, call()),
            block(0x200, 0x204, taken()),
            block(0x300, 0x302, returns()),
            block(0x104, 0x106, taken()),
        ]);
        assert_eq!(found[2..], [(Arrival::Jump, 1), (Arrival::Return, 0)]);
    }

    #[test]
    fn a_return_through_several_calls_leaves_them_all() {
        let indirect = branch(BranchKind::Indirect, false, None);
        let found = depths(&[
            block(0x100, 0x104, call()),
            block(0x200, 0x204, call()),
            block(0x300, 0x302, indirect),
            block(0x104, 0x106, taken()),
        ]);
        assert_eq!(found[3], (Arrival::Return, 0));
    }

    #[test]
    fn exceptions_nest_and_a_tail_chained_one_does_not() {
        let found = depths(&[
            block(0x100, 0x104, call()),
            block(0x200, 0x204, interrupted()),
            exception(0x204),
            block(0x800, 0x802, call()),
            block(0x900, 0x902, returns()),
            block(0x802, 0x804, returns()),
            event(EventKind::ExceptionReturn),
            exception(0x204),
            block(0xa00, 0xa02, returns()),
            event(EventKind::ExceptionReturn),
            block(0x204, 0x206, returns()),
            block(0x104, 0x106, taken()),
        ]);
        let expected = [
            (Arrival::Unknown, 0),
            (Arrival::Call, 1),
            (Arrival::Exception, 2),
            (Arrival::Call, 3),
            (Arrival::Return, 2),
            (Arrival::Exception, 2),
            (Arrival::ExceptionReturn, 1),
            (Arrival::Return, 0),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_tail_chained_exception_of_which_no_return_was_traced_ends_the_handler_before_it() {
        let tail_chained =
            EventKind::Exception { exception: Some(Exception::M(14)), preferred_return: None, handler: None };
        let found = depths(&[
            block(0x100, 0x104, interrupted()),
            exception(0x104),
            block(0x800, 0x802, interrupted()),
            event(tail_chained),
            block(0x900, 0x902, returns()),
            event(EventKind::ExceptionReturn),
            block(0x104, 0x106, taken()),
        ]);
        assert_eq!(found[3], (Arrival::ExceptionReturn, 0));
    }

    #[test]
    fn an_exception_directly_behind_a_call_is_inside_it() {
        let found = depths(&[
            block(0x100, 0x104, call()),
            exception(0x200),
            block(0x800, 0x802, returns()),
            event(EventKind::ExceptionReturn),
            block(0x200, 0x202, returns()),
            block(0x104, 0x106, taken()),
        ]);
        assert_eq!(
            found[1..],
            [(Arrival::Exception, 2), (Arrival::ExceptionReturn, 1), (Arrival::Return, 0),]
        );
    }

    #[test]
    fn code_that_no_image_holds_may_return_to_its_caller() {
        let missing = gap(GapReason::NoCode(Location::new(Address(0x700), Isa::T32)));
        let found = depths(&[block(0x100, 0x104, call()), missing, block(0x104, 0x106, taken())]);
        assert_eq!(found[1], (Arrival::Return, 0));
        let found = depths(&[block(0x100, 0x104, call()), missing, block(0x400, 0x406, taken())]);
        assert_eq!(found[1], (Arrival::Unknown, 0));
    }

    #[test]
    fn nothing_is_known_behind_a_gap() {
        let found = depths(&[
            block(0x100, 0x104, call()),
            block(0x200, 0x204, taken()),
            event(EventKind::TraceOn(BeginReason::Overflow)),
            block(0x200, 0x204, returns()),
            block(0x104, 0x106, taken()),
        ]);
        assert_eq!(found[2..], [(Arrival::Unknown, 0), (Arrival::Return, 0)]);
    }
}
