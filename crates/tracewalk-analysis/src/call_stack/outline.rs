//! Outlines of passages: what a passage does to a call stack, worked out once for its number.
//!
//! ```text
//! for each element of a passage:
//!     a block of one function        goes on with the run before it if execution stays in that function;
//!                                    else begins a run: where it is entered, the function, and how it is left (call, return, jump)
//!     any other block, an exception, a return from one, a context
//!                                    a step by itself
//!     cycles                         the passage has no outline: it is taken element by element
//! ```
//!
//! An outline does not depend on the stack: a run that calls or returns does so on whatever stack it meets.

use std::ops::Range;

use tracewalk::flow::{Element, EventKind};
use tracewalk::ids::Address;
use tracewalk::program::{Scope, ViewId};

use super::frame::FunctionId;
use super::functions::{Functions, Pieces, Special};
use super::observer::{Piece, Runs};
use super::stack::Next;
use crate::by_number::ByNumber;

/// The outlines of the passages of one set of numbers.
#[derive(Debug, Default)]
pub(super) struct Outlines {
    /// The set.
    set: u32,
    /// By view of the program, which decides the functions, and by number.
    views: Vec<(Seen, ByNumber<Option<Outlined>>)>,
    /// The index of the current view.
    view: usize,
    steps: Vec<Step>,
    /// The run of each step.
    runs: Runs,
}

type Seen = (ViewId, Scope);

/// The outline of a passage: a range of the steps of all passages.
#[derive(Clone, Copy, Debug)]
pub struct Outlined {
    first: u32,
    count: u8,
    is_lost: bool,
}

/// A step of a passage.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// Blocks of one function that ran one after the other.
    Run(Entered),
    /// An element that has to be taken by itself.
    Alone(Element),
}

/// How a run is entered, and how it is left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entered {
    /// The first instruction.
    pub(super) at: Address,
    pub(super) function: FunctionId,
    /// Whether the function only calls and returns.
    pub(super) is_usual: bool,
    /// The step after the last block.
    pub(super) next: Next,
}

/// The most views with outlines of their own.
const MOST_VIEWS: usize = 16;
/// The most steps and pieces that are kept.
const MOST_STEPS: usize = 1 << 16;
const MOST_PIECES: usize = 1 << 17;

impl Outlines {
    /// Whether everything has to be [forgotten](Outlines::forget) before this passage is looked up.
    #[inline]
    pub(super) const fn is_full(&self, set: u32) -> bool {
        set != self.set
            || self.steps.len() >= MOST_STEPS
            || self.runs.pieces() >= MOST_PIECES
            || self.views.len() >= MOST_VIEWS
    }

    /// Forgets all outlines, and begins with a set of numbers.
    pub(super) fn forget(&mut self, set: u32) {
        *self = Self { set, ..Self::default() };
    }

    /// The outline of a passage with this number in the set.
    #[inline]
    pub(super) fn get<E: Iterator<Item = Element>>(
        &mut self,
        number: u32,
        elements: impl Fn() -> E,
        functions: &mut Functions,
    ) -> Option<Outlined> {
        let seen = functions.code().seen();
        if self.views.get(self.view).is_none_or(|(view, _)| *view != seen) {
            self.change_view(seen);
        }
        let Self { set, views, view, steps, runs } = self;
        let (_, known) = views.get_mut(*view)?;
        known.of((*set, number), || work_out(elements(), functions, (steps, runs)))
    }

    #[inline]
    pub(super) fn step(&self, number: u32) -> Option<&Step> {
        self.steps.get(number as usize)
    }

    pub(super) const fn runs(&self) -> &Runs {
        &self.runs
    }

    #[inline(never)]
    fn change_view(&mut self, seen: Seen) {
        self.view = self.views.iter().position(|(view, _)| *view == seen).unwrap_or_else(|| {
            self.views.push((seen, ByNumber::default()));
            self.views.len() - 1
        });
    }
}

impl Outlined {
    /// The numbers of the steps.
    #[inline]
    pub(super) const fn steps(self) -> Range<u32> {
        self.first..self.first + self.count as u32
    }

    /// Whether the passage ends after an exception without a known handler.
    #[inline]
    #[must_use]
    pub const fn is_lost(self) -> bool {
        self.is_lost
    }
}

/// Adds the steps of a passage; `None`, and no steps, if it counts cycles.
#[inline(never)]
fn work_out(
    elements: impl Iterator<Item = Element>,
    functions: &mut Functions,
    (steps, runs): (&mut Vec<Step>, &mut Runs),
) -> Option<Outlined> {
    let first = steps.len();
    let mut is_lost = false;
    for element in elements {
        match element {
            Element::Block(block) => {
                is_lost = false;
                let function = functions.entered(block.start);
                let is_alone = !matches!(function, FunctionId::Named(..) | FunctionId::Unnamed(..))
                    || !matches!(functions.pieces(&block), Pieces::One);
                let (start, end, isa, instructions) = (block.start, block.end, block.isa, block.instructions);
                let piece = Piece { start, end, isa, instructions };
                let Some(next) = Next::after(&block).filter(|_| !is_alone) else {
                    steps.push(Step::Alone(element));
                    runs.begin(piece);
                    continue;
                };
                match steps.get_mut(first..).and_then(<[_]>::last_mut) {
                    Some(Step::Run(before)) if before.leads_to(start, function) => {
                        before.next = next;
                        runs.extend(piece);
                    }
                    _ => {
                        let is_usual = functions.special(function) == Special::Nothing;
                        steps.push(Step::Run(Entered { at: start, function, is_usual, next }));
                        runs.begin(piece);
                    }
                }
            }
            Element::Event(event) if !matches!(event.kind, EventKind::Cycles(_)) => {
                if let EventKind::Exception { handler, .. } = event.kind {
                    is_lost = handler.is_none();
                }
                steps.push(Step::Alone(element));
                runs.begin_empty();
            }
            _ => {
                steps.truncate(first);
                runs.truncate(first);
                return None;
            }
        }
    }
    let count = u8::try_from(steps.len() - first).ok();
    Some(Outlined { first: u32::try_from(first).ok()?, count: count?, is_lost })
}

impl Entered {
    /// Whether execution stays in the frame if it goes on at `at`, which is in `function`.
    fn leads_to(&self, at: Address, function: FunctionId) -> bool {
        let stays = match self.next {
            Next::Straight | Next::Jump => true,
            // Position-independent code calls the next instruction to get its own address.
            Next::Call { returns_to, .. } => returns_to == at,
            _ => false,
        };
        stays && self.function.goes_on_in(function)
    }
}
