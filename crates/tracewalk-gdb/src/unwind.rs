//! Artificial addresses of frames on an unknown stack.
//!
//! A trace has no stack pointer, and GDB needs one to distinguish calls. The distances between frames follow from the
//! program: the call frame information gives the distance of the stack pointer from the canonical frame address (CFA)
//! at each instruction, and a callee's CFA is the caller's stack pointer at the call. Only the address of the stack is
//! unknown, and is chosen once.
//!
//! ```text
//! call           CFA of the callee = stack pointer of the caller at the call
//! exception      CFA of the handler = stack pointer of the interrupted code − size of the processor's exception frame
//! tail call      the CFA stays
//! return beyond  the stack pointer of the outer function is the CFA of the inner one
//! ```

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use serde::{Deserialize, Serialize};
use tracewalk::ids::{Address, Isa};
use tracewalk_analysis::call_stack::{Entry, Frame, FrameKind, FunctionId, Left, Observer, Piece};
use tracewalk_input::symbols::{CallFrames, FrameRow};

use crate::registers::Architecture;

/// The call frame information of a program, with a cache of its rows.
#[derive(Debug)]
pub(crate) struct Unwinder {
    pub(crate) architecture: Architecture,
    frames: CallFrames,
    rows: RefCell<HashMap<Address, Option<Rc<FrameRow>>>>,
    /// The CFA of a stack's outermost known frame.
    anchor: u64,
}

/// The kept data of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Mark {
    pub(crate) cfa: Cfa,
    /// The step at which the frame began, or was first seen.
    pub(crate) began: u64,
    /// The last instruction set of the frame.
    pub(crate) isa: Option<Isa>,
}

/// The address of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) enum Cfa {
    /// The canonical frame address.
    At(u64),
    /// The stack pointer at the frame's next instruction.
    StackPointerAt(u64),
}

/// Gives frames their addresses as they begin and end.
#[derive(Debug)]
pub(crate) struct Placing<'u> {
    unwinder: &'u Unwinder,
    /// The current step.
    step: u64,
    /// The frame that another function takes over.
    replaced: Option<Mark>,
    /// The stack pointer after the outermost known frame returned.
    returned: Option<u64>,
}

/// The size of the frame that M profile pushes when it takes an exception: r0 to r3, r12, lr, the return address, xPSR.
pub(crate) const EXCEPTION_FRAME: u64 = 0x20;

/// The size assumed for a function's local variables, if call frame information gives the CFA relative to a register
/// other than the stack pointer.
const LOCALS: u64 = 0x40;

/// The most rows in the cache.
const MOST_ROWS: usize = 1 << 20;

impl Unwinder {
    pub(crate) fn new(architecture: Architecture, frames: CallFrames, anchor: u64) -> Self {
        Self { architecture, frames, rows: RefCell::default(), anchor }
    }

    /// The row that is valid before the instruction at `address`.
    pub(crate) fn row(&self, address: Address) -> Option<Rc<FrameRow>> {
        let mut rows = self.rows.borrow_mut();
        if let Some(known) = rows.get(&address) {
            return known.clone();
        }
        if rows.len() >= MOST_ROWS {
            rows.clear();
        }
        let found = self.frames.row(address).map(Rc::new);
        rows.insert(address, found.clone());
        found
    }

    /// The distance of the stack pointer from the CFA before the instruction at `address`.
    fn distance(&self, address: Address) -> u64 {
        match self.row(address) {
            Some(row) if row.register == self.architecture.stack_pointer() => row.offset.unsigned_abs(),
            Some(_) => {
                self.frames.depth(address).unwrap_or_default().next_multiple_of(8).saturating_add(LOCALS)
            }
            None => 0,
        }
    }

    /// The stack pointer before the instruction at `address`, in a frame with this CFA.
    pub(crate) fn stack_pointer(&self, cfa: u64, address: Address) -> u64 {
        cfa.wrapping_sub(self.distance(address))
    }

    /// Gives addresses to the frames that begin and end with the element at a step.
    pub(crate) const fn placing(&self, step: u64) -> Placing<'_> {
        Placing { unwinder: self, step, replaced: None, returned: None }
    }

    /// The size of the frame that an exception pushes.
    pub(crate) const fn exception_frame(&self) -> u64 {
        match self.architecture {
            Architecture::M => EXCEPTION_FRAME,
            Architecture::A32 | Architecture::A64 => 0,
        }
    }
}

impl Cfa {
    pub(crate) const fn moved(self, by: u64) -> Self {
        match self {
            Self::At(at) => Self::At(at.wrapping_add(by)),
            Self::StackPointerAt(at) => Self::StackPointerAt(at.wrapping_add(by)),
        }
    }
}

impl Mark {
    /// The CFA, if the frame's next instruction is at `at`.
    pub(crate) fn cfa(&self, unwinder: &Unwinder, at: Address) -> u64 {
        match self.cfa {
            Cfa::At(cfa) => cfa,
            Cfa::StackPointerAt(pointer) => pointer.wrapping_add(unwinder.distance(at)),
        }
    }
}

impl Observer for Placing<'_> {
    type Mark = Mark;

    fn enter(
        &mut self,
        below: Option<&mut Frame<Mark>>,
        kind: FrameKind,
        _: FunctionId,
        entry: Entry,
    ) -> Mark {
        let replaced = self.replaced.take().filter(|_| matches!(entry, Entry::TailCalled | Entry::Joined));
        if let Some(mark) = replaced {
            return mark;
        }
        let returned = self.returned.take();
        let unwinder = self.unwinder;
        let pointer = |at: Option<Address>| {
            let below = below.as_ref()?.mark;
            Some(at.map_or_else(
                || match below.cfa {
                    Cfa::At(at) | Cfa::StackPointerAt(at) => at.wrapping_sub(LOCALS),
                },
                |at| unwinder.stack_pointer(below.cfa(unwinder, at), at),
            ))
        };
        let anchor = unwinder.anchor;
        let cfa = match kind {
            FrameKind::Root => returned.map_or(Cfa::At(anchor), Cfa::StackPointerAt),
            FrameKind::Call { site, .. } => Cfa::At(pointer(site).unwrap_or(anchor)),
            FrameKind::Exception(interruption) => {
                let pointer = pointer(interruption.returns_to).unwrap_or(anchor);
                Cfa::At(pointer.wrapping_sub(unwinder.exception_frame()))
            }
        };
        Mark { cfa, began: self.step, isa: None }
    }

    fn run(&mut self, top: &mut Frame<Mark>, piece: &Piece) {
        top.mark.cfa = Cfa::At(top.mark.cfa(self.unwinder, piece.start));
        top.mark.isa = Some(piece.isa);
    }

    fn leave(&mut self, frame: &mut Frame<Mark>, below: Option<&mut Frame<Mark>>, how: Left) {
        match how {
            Left::Replaced => self.replaced = Some(frame.mark),
            Left::Returned if below.is_none() => {
                self.returned = match frame.mark.cfa {
                    Cfa::At(cfa) => Some(cfa),
                    Cfa::StackPointerAt(_) => None,
                };
            }
            Left::Returned | Left::Unwound | Left::Lost => self.returned = None,
        }
    }
}
