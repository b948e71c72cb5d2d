//! The newest pieces of flow, and the functions that were running when each exception was taken.

use std::collections::VecDeque;
use std::sync::Arc;

use tracewalk::directive::BeginReason;
use tracewalk::flow::{Block, BranchKind, Element, Ending, Event, EventKind, GapReason};
use tracewalk::ids::{Address, Exception, Isa};
use tracewalk::program::Scope;
use tracewalk::span::StreamOffset;

use crate::call_stack::{FrameKind, FunctionId, Unobserved};
use crate::{CallStack, Code};

/// How many pieces are kept.
const LONGEST: usize = 1 << 15;

/// How many functions of a stack are kept, from the innermost on.
const DEEPEST: usize = 256;

/// The longest body of a loop, in runs.
const LONGEST_BODY: usize = 12;

/// A piece of flow.
#[derive(Clone, Debug)]
pub(super) enum Happened {
    Ran(Block),
    Taken(Taken),
    Returned,
    /// Execution reached an address without code in any image.
    NoCode(Address),
    /// Execution was lost, or tracing began for a reason: the pieces before and after are unrelated.
    Lost(Option<BeginReason>),
}

impl Happened {
    /// The address at which execution went on.
    const fn goes_on_at(&self) -> Option<Address> {
        match self {
            Self::Ran(block) => Some(block.start),
            Self::NoCode(at) => Some(*at),
            Self::Taken(_) | Self::Returned | Self::Lost(_) => None,
        }
    }
}

/// An exception that was taken.
#[derive(Clone, Debug, Default)]
pub(super) struct Taken {
    pub(super) exception: Option<Exception>,
    pub(super) returns_to: Option<Address>,
    /// The first instruction of its handler, if the trace shows it.
    pub(super) handler: Option<Address>,
    pub(super) stack: Vec<Running>,
    /// The byte of the source's trace that shows it.
    pub(super) traced_at: StreamOffset,
}

/// A function that was running, and its current instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Running {
    /// The function.
    pub function: FunctionId,
    /// The instruction that it had reached, or that called the next function; `None` if unknown.
    pub at: Option<Address>,
    /// The exception that interrupted the function below, if this one is its handler.
    pub handles: Option<Option<Exception>>,
}

/// A piece of the path, with loops folded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathItem {
    /// Instructions that ran one after the other, by their addresses.
    Run {
        /// The first instruction.
        start: Address,
        /// The last instruction.
        last: Address,
        /// The address after the last instruction.
        end: Address,
        /// The number of instructions.
        instructions: u32,
    },
    /// A loop: the same path several times.
    Loop {
        /// The path of one round.
        body: Vec<Self>,
        /// The number of rounds.
        times: u64,
    },
    /// An exception was taken.
    Exception {
        /// The exception; `None` if unknown.
        exception: Option<Exception>,
        /// The return address.
        returns_to: Option<Address>,
    },
    /// The return from an exception.
    ExceptionReturn,
    /// Unknown code ran here.
    Unknown,
    /// Execution reached an address, and the code there is not known.
    NoCode {
        /// The address.
        at: Address,
    },
}

/// The newest pieces.
#[derive(Debug)]
pub(super) struct Trail {
    happened: VecDeque<Happened>,
    stack: CallStack<()>,
    /// The functions that were running before execution was last lost.
    before_loss: Vec<Running>,
}

impl Trail {
    pub(super) fn new(code: Arc<Code>) -> Self {
        Self { happened: VecDeque::new(), stack: CallStack::new(code), before_loss: Vec::new() }
    }

    pub(super) fn element(&mut self, element: &Element) {
        // A call or return just before an exception has happened, though nothing ran at its target. An address without code is
        // not shown as a function.
        let before = match element {
            Element::Event(Event { kind: EventKind::Exception { preferred_return, .. }, .. })
                if !preferred_return.is_some_and(|at| self.is_in_function(at)) =>
            {
                Some(self.running(*preferred_return, 0))
            }
            _ => None,
        };
        if let (Element::Gap(_), Some(Happened::Ran(_))) = (element, self.happened.back()) {
            self.before_loss = self.running(None, 0);
        }
        self.stack.element(element, &mut Unobserved);
        let happened = match element {
            Element::Block(block) => Some(Happened::Ran(*block)),
            Element::Gap(gap) => Some(match gap.reason {
                GapReason::NoCode(at) if !gap.doubt => Happened::NoCode(at.address),
                _ => Happened::Lost(None),
            }),
            Element::Event(event) => match event.kind {
                EventKind::TraceOn(reason) => Some(Happened::Lost(Some(reason))),
                EventKind::Exception { exception, preferred_return, handler } => {
                    Some(Happened::Taken(Taken {
                        exception,
                        returns_to: preferred_return,
                        handler: handler.map(|handler| handler.address),
                        stack: before.unwrap_or_else(|| {
                            self.running(preferred_return, usize::from(handler.is_some()))
                        }),
                        traced_at: event.span.start,
                    }))
                }
                EventKind::ExceptionReturn => Some(Happened::Returned),
                _ => None,
            },
            Element::Proof(_) => None,
        };
        if let Some(happened) = happened {
            // An ETMv4 exception packet does not name the handler: execution goes on there.
            if let (Some(Happened::Taken(taken)), Some(next)) =
                (self.happened.back_mut(), happened.goes_on_at())
            {
                taken.handler = taken.handler.or(Some(next));
            }
            if self.happened.len() == LONGEST {
                self.happened.pop_front();
            }
            self.happened.push_back(happened);
        }
    }

    fn is_in_function(&self, at: Address) -> bool {
        self.stack.code().symbols.function(at).is_some()
    }

    /// The functions that are running, innermost first, at `at`, without this number of innermost ones.
    pub(super) fn running(&self, at: Option<Address>, without: usize) -> Vec<Running> {
        let last = self.happened.back().and_then(|happened| match happened {
            Happened::Ran(block) => Some(block.last),
            _ => None,
        });
        // If execution went to an address without code, the branch is the last place in the function.
        let mut place = at.filter(|at| self.is_in_function(*at)).or(last).or(at);
        let mut running = Vec::new();
        for frame in self.stack.frames().rev().skip(without).take(DEEPEST) {
            let handles = match frame.kind {
                FrameKind::Exception(interruption) => Some(interruption.exception),
                _ => None,
            };
            running.push(Running { function: frame.function, at: place, handles });
            place = match frame.kind {
                FrameKind::Call { site, .. } => site,
                FrameKind::Exception(interruption) => interruption.returns_to,
                FrameKind::Root => None,
            };
        }
        running
    }

    /// The functions that are running if execution has gone on to `at` since: the last instruction may have called or entered a function of
    /// which nothing has run.
    pub(super) fn running_at(&self, at: Address) -> Vec<Running> {
        let mut running = self.running(None, 0);
        let symbols = &self.stack.code().symbols;
        let (Some(entered), Some(innermost)) = (symbols.function(at), running.first_mut()) else {
            return running;
        };
        let known = match innermost.function {
            FunctionId::Named(start, scope) => Some((start, scope)),
            _ => None,
        };
        match known {
            Some((start, _)) if start == entered.start => innermost.at = Some(at),
            _ => {
                let scope = known.map_or(Scope::EVERYWHERE, |(_, scope)| scope);
                let function = FunctionId::Named(entered.start, scope);
                let calls = matches!(
                    self.happened.back(),
                    Some(Happened::Ran(Block { ending: Ending::Branch { link: true, taken: true, .. }, .. }))
                );
                if calls {
                    running.insert(0, Running { function, at: Some(at), handles: None });
                } else {
                    *innermost = Running { function, at: Some(at), ..*innermost };
                }
            }
        }
        running
    }

    /// The functions that were running when the trace ended, or when execution was lost if nothing ran after that.
    pub(super) fn at_end(&self) -> Vec<Running> {
        match self.happened.back() {
            Some(Happened::Lost(_) | Happened::NoCode(_)) => self.before_loss.clone(),
            _ => self.running(None, 0),
        }
    }

    /// The pieces, oldest first.
    pub(super) fn pieces(&self) -> Vec<&Happened> {
        self.happened.iter().collect()
    }
}

/// Folds the loops of these pieces into a path. Addresses without code are left out.
pub(super) fn folded(pieces: &[&Happened]) -> Vec<PathItem> {
    path(pieces, false)
}

/// Folds the loops of pieces that were followed without a program, so that only addresses are known.
pub(super) fn folded_addresses(pieces: &[&Happened]) -> Vec<PathItem> {
    path(pieces, true)
}

fn path(pieces: &[&Happened], has_addresses: bool) -> Vec<PathItem> {
    let mut path = Vec::new();
    let mut open = None::<(Block, Address, u32)>;
    let close = |path: &mut Vec<PathItem>, open: &mut Option<(Block, Address, u32)>| {
        if let Some((last, start, instructions)) = open.take() {
            add(path, PathItem::Run { start, last: last.last, end: last.end, instructions });
        }
    };
    for piece in pieces {
        if let Happened::Ran(block) = piece {
            let (start, before) = match open.take() {
                Some((last, start, instructions)) if goes_on(&last, block) => (start, instructions),
                closed => {
                    open = closed;
                    close(&mut path, &mut open);
                    (block.start, 0)
                }
            };
            open = Some((*block, start, before.saturating_add(block.instructions)));
            continue;
        }
        close(&mut path, &mut open);
        let item = match piece {
            Happened::NoCode(at) if has_addresses => PathItem::NoCode { at: *at },
            Happened::Ran(_) | Happened::NoCode(_) => continue,
            Happened::Taken(taken) => {
                PathItem::Exception { exception: taken.exception, returns_to: taken.returns_to }
            }
            Happened::Returned => PathItem::ExceptionReturn,
            Happened::Lost(_) => PathItem::Unknown,
        };
        add(&mut path, item);
    }
    close(&mut path, &mut open);
    path
}

/// Whether `next` follows `block` in memory as well.
fn goes_on(block: &Block, next: &Block) -> bool {
    let jumps = matches!(
        block.ending,
        Ending::Branch { taken: true, kind: BranchKind::Direct | BranchKind::Indirect, .. }
    );
    !jumps && block.end == next.start && block.isa == next.isa
}

/// Adds an item to a path, and folds the repetitions at its end.
fn add(path: &mut Vec<PathItem>, item: PathItem) {
    path.push(item);
    while fold_end(path) {}
}

fn fold_end(path: &mut Vec<PathItem>) -> bool {
    let length = path.len();
    for period in 1..=LONGEST_BODY.min(length.saturating_sub(1)) {
        let (before, body) = path.split_at(length - period);
        if let Some(PathItem::Loop { body: known, .. }) = before.last()
            && known == body
        {
            path.truncate(length - period);
            if let Some(PathItem::Loop { times, .. }) = path.last_mut() {
                *times += 1;
            }
            return true;
        }
        let only_runs = || {
            body.iter().all(|item| {
                matches!(item, PathItem::Run { .. } | PathItem::Loop { .. } | PathItem::NoCode { .. })
            })
        };
        if before.ends_with(body) && only_runs() {
            let body = body.to_vec();
            path.truncate(length - 2 * period);
            path.push(PathItem::Loop { body, times: 2 });
            return true;
        }
    }
    false
}

/// The places of the instructions of a block.
pub(super) fn instructions(block: &Block, code: &Code) -> Vec<Address> {
    let mut at = block.start;
    let mut places = Vec::new();
    if block.isa != Isa::T32 {
        return places;
    }
    for _ in 0..block.instructions {
        places.push(at);
        at = code.after(tracewalk::ids::Location::new(at, block.isa));
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(start: u32) -> PathItem {
        let at = |offset: u32| Address::from(start + offset);
        PathItem::Run { start: at(0), last: at(2), end: at(4), instructions: 2 }
    }

    #[test]
    fn what_repeats_is_a_loop_and_loops_nest() {
        let mut path = Vec::new();
        for _ in 0..3 {
            for _ in 0..5 {
                add(&mut path, run(0x10));
            }
            add(&mut path, run(0x20));
        }
        let inner = PathItem::Loop { body: vec![run(0x10)], times: 5 };
        assert_eq!(path, [PathItem::Loop { body: vec![inner, run(0x20)], times: 3 }]);
    }

    #[test]
    fn exceptions_are_not_folded() {
        let taken = PathItem::Exception { exception: None, returns_to: None };
        let mut path = Vec::new();
        for _ in 0..2 {
            add(&mut path, run(0x10));
            add(&mut path, taken.clone());
        }
        assert_eq!(path.len(), 4);
    }
}
