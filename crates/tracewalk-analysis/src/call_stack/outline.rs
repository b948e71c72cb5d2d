//! Outlines of passages: where a passage calls, returns, and jumps to another function, and what runs in between.
//!
//! An outline is worked out once for each passage. It does not depend on the stack, unlike the effects in
//! [`Remembered`](super::Remembered).

use std::ops::Range;

use tracewalk::flow::Element;
use tracewalk::ids::Address;
use tracewalk::program::{Scope, ViewId};

use super::frame::FunctionId;
use super::functions::{Functions, Pieces, Special};
use super::observer::{Piece, Runs};
use super::stack::Next;

/// The outlines of the passages of one set of numbers.
#[derive(Debug, Default)]
pub(super) struct Outlines {
    /// The set.
    set: u32,
    /// By view of the program, which decides the functions, and by number.
    views: Vec<(Seen, Vec<Outline>)>,
    /// The index of the current view.
    view: usize,
    stretches: Vec<Stretch>,
    /// The run of each stretch.
    runs: Runs,
}

type Seen = (ViewId, Scope);

/// The stretches of a passage: a range of those of all passages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outline {
    /// Not worked out yet.
    Unknown,
    /// The passage has other elements than blocks.
    Other,
    /// No block has to be taken by itself if it is plain.
    Stretches { first: u32, count: u8, is_plain: bool },
}

/// The outline of a passage.
#[derive(Clone, Copy, Debug)]
pub struct Outlined {
    first: u32,
    end: u32,
    is_plain: bool,
}

/// Blocks of one function that ran one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    /// The first instruction.
    pub(super) at: Address,
    pub(super) function: FunctionId,
    /// The step after the last block; `None` for a single block that has to be taken by itself.
    pub(super) next: Option<Next>,
    /// Whether the function only calls and returns.
    pub(super) is_usual: bool,
    /// The index of the first block.
    pub(super) block: u8,
}

/// The most views with outlines of their own.
const MOST_VIEWS: usize = 16;
/// The most stretches and pieces that are kept.
const MOST_STRETCHES: usize = 1 << 16;
const MOST_PIECES: usize = 1 << 17;

impl Outlines {
    /// Whether everything has to be [forgotten](Outlines::forget) before this passage is looked up.
    #[inline]
    pub(super) const fn is_full(&self, set: u32) -> bool {
        set != self.set
            || self.stretches.len() >= MOST_STRETCHES
            || self.runs.pieces() >= MOST_PIECES
            || self.views.len() >= MOST_VIEWS
    }

    /// Forgets all outlines, and begins with a set of numbers.
    pub(super) fn forget(&mut self, set: u32) {
        *self = Self { set, ..Self::default() };
    }

    /// The outline of a single passage with this number in the set.
    #[inline]
    pub(super) fn get<E: Iterator<Item = Element>>(
        &mut self,
        number: u32,
        elements: impl Fn() -> E,
        functions: &mut Functions,
    ) -> Option<Outlined> {
        let seen = functions.code().seen();
        let number = number as usize;
        let known = self.views.get(self.view).filter(|(view, _)| *view == seen);
        let outline = known.and_then(|(_, known)| known.get(number)).copied().unwrap_or(Outline::Unknown);
        match outline {
            Outline::Unknown => self.work_out(number, elements(), (seen, functions)).outlined(),
            known => known.outlined(),
        }
    }

    #[inline]
    pub(super) fn stretch(&self, number: u32) -> Option<&Stretch> {
        self.stretches.get(number as usize)
    }

    pub(super) const fn runs(&self) -> &Runs {
        &self.runs
    }

    #[inline(never)]
    fn work_out(
        &mut self,
        number: usize,
        elements: impl Iterator<Item = Element>,
        (seen, functions): (Seen, &mut Functions),
    ) -> Outline {
        self.view = self.views.iter().position(|(view, _)| *view == seen).unwrap_or_else(|| {
            self.views.push((seen, Vec::new()));
            self.views.len() - 1
        });
        let Self { views, view, stretches, runs, .. } = self;
        let Some((_, known)) = views.get_mut(*view) else { return Outline::Other };
        if known.len() <= number {
            known.resize(number + 1, Outline::Unknown);
        }
        let Some(outline) = known.get_mut(number) else { return Outline::Other };
        if *outline == Outline::Unknown {
            let before = stretches.len();
            *outline = add(elements, functions, (stretches, runs)).unwrap_or(Outline::Other);
            if *outline == Outline::Other {
                stretches.truncate(before);
                runs.truncate(before);
            }
        }
        *outline
    }
}

impl Outlined {
    /// Whether all blocks belong to [runs](super::Run).
    #[must_use]
    pub const fn is_plain(self) -> bool {
        self.is_plain
    }

    /// The numbers of the stretches.
    #[inline]
    pub(super) const fn stretches(self) -> Range<u32> {
        self.first..self.end
    }
}

impl Outline {
    #[inline]
    const fn outlined(self) -> Option<Outlined> {
        match self {
            Self::Stretches { first, count, is_plain } => {
                Some(Outlined { first, end: first + count as u32, is_plain })
            }
            Self::Unknown | Self::Other => None,
        }
    }
}

/// Adds the stretches of a passage; `None` if it has other elements than blocks.
fn add(
    elements: impl Iterator<Item = Element>,
    functions: &mut Functions,
    (stretches, runs): (&mut Vec<Stretch>, &mut Runs),
) -> Option<Outline> {
    let first = stretches.len();
    for (index, element) in elements.enumerate() {
        let Element::Block(block) = element else { return None };
        let function = functions.entered(block.start);
        let is_alone = !matches!(function, FunctionId::Named(..) | FunctionId::Unnamed(..))
            || matches!(functions.pieces(&block), Pieces::Several(_));
        let next = Next::after(&block).filter(|_| !is_alone);
        let (start, end, isa, instructions) = (block.start, block.end, block.isa, block.instructions);
        let piece = Piece { start, end, isa, instructions };
        let before = stretches.get_mut(first..).and_then(<[_]>::last_mut);
        match before.filter(|before| next.is_some() && before.leads_to(block.start, function)) {
            Some(before) => {
                before.next = next;
                runs.extend(piece);
            }
            None => {
                let is_usual = functions.special(function) == Special::Nothing;
                let block = u8::try_from(index).ok()?;
                stretches.push(Stretch { at: start, function, next, is_usual, block });
                runs.begin(piece);
            }
        }
    }
    let added = stretches.get(first..).unwrap_or_default();
    let is_plain = added.iter().all(|stretch| stretch.next.is_some());
    let count = u8::try_from(added.len()).ok()?;
    Some(Outline::Stretches { first: u32::try_from(first).ok()?, count, is_plain })
}

impl Stretch {
    /// Whether execution stays in the frame if it goes on at `at`, which is in `function`.
    fn leads_to(&self, at: Address, function: FunctionId) -> bool {
        let stays = match self.next {
            Some(Next::Straight | Next::Jump) => true,
            // Position-independent code calls the next instruction to get its own address.
            Some(Next::Call { returns_to, .. }) => returns_to == at,
            _ => false,
        };
        stays && self.function.goes_on_in(function)
    }
}
