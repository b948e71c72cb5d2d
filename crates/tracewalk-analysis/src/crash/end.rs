//! How a trace ends, whether or not a fault ended the program, and whether the saved registers can be of that moment.

use tracewalk::flow::{BranchKind, Ending, GapReason};
use tracewalk::ids::{Address, Isa};
use tracewalk::isa::{self, Class};
use tracewalk::span::CaptureOffset;

use super::ending::{ending, stacked};
use super::path::Path;
use super::proven::Values;
use super::state::Snapshot;
use super::trail::{Happened, PathItem, Running, Taken, Trail, folded, folded_addresses};
use super::waiting::Waiting;
use super::{handlers, look};
use crate::{Code, Gaps};

/// The end of a source's trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceEnd {
    /// The functions that were running, innermost first.
    pub stack: Vec<Running>,
    /// The path, oldest first. It ends before execution that could not be followed.
    pub path: Vec<PathItem>,
    /// The last instructions that were executed, oldest first.
    pub last: Vec<Address>,
    /// The reasons to doubt the end.
    pub doubts: Vec<Doubt>,
    /// The loop over a device's registers that the trace ends in.
    pub polls: Option<Waiting>,
}

/// A reason to doubt how a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Doubt {
    /// The image is not the program that was traced, and was not followed.
    OtherProgram,
    /// Trace and image contradict each other.
    Contradicted {
        /// How often.
        count: u64,
        /// The place of the first contradiction in the capture.
        at: CaptureOffset,
        /// The first contradiction.
        first: GapReason,
    },
    /// Trace is malformed or missing.
    TraceLost {
        /// In how many places.
        count: u64,
        /// The first of them in the capture.
        at: CaptureOffset,
    },
    /// Parts of the trace are missing or cannot be read, which may include its end.
    Incomplete,
    /// There is no program, so that nothing could be followed.
    NoProgram,
    /// The trace ends in one function, but the processor was halted in another that execution does not lead to from there.
    HaltedElsewhere {
        /// The last instruction of the trace, or the handler that it ends in.
        traced: Address,
        /// The program counter.
        halted: Address,
    },
    /// The saved memory has other code than the image.
    OtherCode {
        /// The first byte that differs.
        at: Address,
    },
    /// The trace and the stacked registers have different addresses for the exception.
    StackedElsewhere {
        /// The address at which the exception was taken, by the trace.
        traced: Address,
        /// The stacked program counter.
        stacked: Address,
    },
}

impl Doubt {
    /// The reasons that gaps give.
    pub fn of_gaps(gaps: &Gaps) -> impl Iterator<Item = Self> {
        let contradicted = gaps.contradictions.first.map(|(at, first)| {
            let count = gaps.contradictions.count;
            Self::Contradicted { count, at, first }
        });
        let count = gaps.trace_lost.count.saturating_sub(gaps.cuts);
        let lost = gaps.trace_lost.first.filter(|_| count > 0);
        contradicted.into_iter().chain(lost.map(|(at, ())| Self::TraceLost { count, at }))
    }
}

impl TraceEnd {
    /// The end of a trail, and whether the saved state of the processor can be of that moment.
    pub(super) fn of(trail: &Trail, code: &Code, snapshot: &Snapshot) -> Self {
        let pieces = trail.pieces();
        let is_known = |piece: &&Happened| !matches!(piece, Happened::Lost(_));
        let known = pieces.iter().rposition(is_known).map_or(0, |last| last + 1);
        let before = pieces.get(..known).unwrap_or_default();
        let stack = trail.at_end();
        let doubts = elsewhere(&pieces, &stack, code, snapshot).into_iter().collect();
        let path = if code.program.is_empty() { folded_addresses(before) } else { folded(before) };
        Self {
            path,
            last: look::listed(&Path::of(before, code, &Values::default())),
            stack,
            doubts,
            polls: None,
        }
    }
}

/// Whether the registers contradict the end of the trace.
pub(super) fn elsewhere(
    pieces: &[&Happened],
    stack: &[Running],
    code: &Code,
    snapshot: &Snapshot,
) -> Option<Doubt> {
    let halted = Address::from(snapshot.registers[15]? & !1);
    if let Some(index) = ending(pieces, code, snapshot)
        && let Some(Happened::Taken(taken)) = pieces.get(index)
        && taken.handler == Some(halted)
    {
        let traced = taken.returns_to?;
        let stacked = stacked(taken, snapshot)?.returns_to();
        return (stacked != traced).then_some(Doubt::StackedElsewhere { traced, stacked });
    }
    let function = |at: Address| code.symbols.function(at).map(|function| function.start);
    let in_function = function(halted)?;
    let active = snapshot.exception_number();
    let (traced, reached) = match pieces.last()? {
        Happened::Taken(Taken { handler: Some(handler), .. }) => {
            // The handler may have switched tracing off, and called any function.
            let vector = active.and_then(|number| handlers::vector(code, snapshot, number));
            if snapshot.xpsr.is_none() || vector.is_some_and(|(_, vector)| vector == *handler) {
                return None;
            }
            (*handler, None)
        }
        // Tracing may have been switched off before the exception.
        Happened::Ran(_) if active.is_some() || is_handler(in_function, code, snapshot) => return None,
        Happened::Ran(block) => {
            let target = match block.ending {
                Ending::Branch { kind: BranchKind::Indirect, taken: true, .. } => return None,
                Ending::Branch { kind: BranchKind::Direct, taken: true, .. } => {
                    Some(target(block.last, block.isa, code)?)
                }
                _ => None,
            };
            (block.last, target)
        }
        _ => return None,
    };
    // Code without a symbol may be anything.
    let mut leads_to = stack.iter().filter_map(|running| running.at).chain([traced]).chain(reached);
    let leads = leads_to.any(|at| function(at).is_none_or(|start| start == in_function));
    (!leads).then_some(Doubt::HaltedElsewhere { traced, halted })
}

/// Whether a function is the handler of an exception.
fn is_handler(start: Address, code: &Code, snapshot: &Snapshot) -> bool {
    !handlers::sharing(code, snapshot, start).is_empty()
}

/// The target of a direct branch.
fn target(at: Address, isa: Isa, code: &Code) -> Option<Address> {
    match isa::classify(code.program.code(at)?, at, isa).ok()?.class {
        Class::Direct(target) => Some(target.address),
        _ => None,
    }
}
