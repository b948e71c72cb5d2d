//! Builds the profiles of one program from the items of a file.

use super::{NodeId, NodeKind, Profile, ProgramProfiles};
use crate::call_stack::Piece;
use crate::clock::Cost;
use crate::programs::SourceId;
use crate::saved::SavedErrorKind;

/// The most instructions of all pieces of code in a file: looking each of them up takes time.
const MOST_INSTRUCTIONS: u64 = 1 << 28;
/// The most that all costs in a file, or all calls, add up to: two years at a gigahertz.
const MOST_COST: u64 = 1 << 56;

/// The profiles read so far.
#[derive(Debug, Default)]
pub(super) struct Parts {
    found: ProgramProfiles,
    /// The current source.
    source: Option<Source>,
    /// How many instructions all pieces of code have.
    instructions: u64,
    /// The sums of all costs and of all calls.
    sum: Cost,
    calls: u64,
}

#[derive(Debug)]
struct Source {
    id: SourceId,
    profile: Profile,
    /// The current chain of calls, outermost first.
    chain: Vec<NodeId>,
}

impl Parts {
    /// The next items are of this source.
    pub(super) fn source(&mut self, id: SourceId) {
        self.end_source();
        self.source = Some(Source { id, profile: Profile::default(), chain: Vec::new() });
    }

    /// The profile of the current source.
    pub(super) fn profile(&mut self) -> Result<&mut Profile, SavedErrorKind> {
        self.source.as_mut().map(|source| &mut source.profile).ok_or(SavedErrorKind::Misplaced)
    }

    /// A link of a chain of calls after `depth` others.
    pub(super) fn link(&mut self, depth: usize, kind: NodeKind, calls: u64) -> Result<(), SavedErrorKind> {
        let source = self.source.as_mut().ok_or(SavedErrorKind::Misplaced)?;
        if depth > source.chain.len() {
            return Err(SavedErrorKind::field("number of links", depth));
        }
        self.calls = self.calls.saturating_add(calls);
        within(self.calls, MOST_COST, "count", calls)?;
        source.chain.truncate(depth);
        let node = source.profile.add(source.chain.last().copied(), kind, calls);
        source.chain.push(node);
        Ok(())
    }

    /// The cost of a piece of code in the current chain of calls.
    pub(super) fn code(&mut self, piece: Piece, cost: Cost) -> Result<(), SavedErrorKind> {
        let cost = self.cost(cost)?;
        let piece = self.piece(piece)?;
        let source = self.source.as_mut().ok_or(SavedErrorKind::Misplaced)?;
        let node = source.chain.last().ok_or(SavedErrorKind::Misplaced)?;
        let entry = source.profile.entry(*node, piece);
        source.profile.spend(entry, cost);
        Ok(())
    }

    /// Checks a cost: the sum of all costs has a limit.
    pub(super) fn cost(&mut self, cost: Cost) -> Result<Cost, SavedErrorKind> {
        self.sum += cost;
        within(self.sum.instructions, MOST_COST, "instructions", cost.instructions)?;
        within(self.sum.cycles, MOST_COST, "cycles", cost.cycles)?;
        within(self.sum.time, MOST_COST, "ticks", cost.time)?;
        Ok(cost)
    }

    fn piece(&mut self, piece: Piece) -> Result<Piece, SavedErrorKind> {
        const INSTRUCTIONS: &str = "number of instructions";
        let Piece { start, end, isa, instructions } = piece;
        if end < start {
            return Err(SavedErrorKind::field("end", format_args!("{end:x}")));
        }
        let most = end.offset_from(start).unwrap_or(0) / u64::from(isa.alignment());
        within(instructions.into(), most, INSTRUCTIONS, instructions.into())?;
        self.instructions = self.instructions.saturating_add(instructions.into());
        within(self.instructions, MOST_INSTRUCTIONS, INSTRUCTIONS, instructions.into())?;
        Ok(piece)
    }

    fn end_source(&mut self) {
        if let Some(Source { id, profile, .. }) = self.source.take() {
            self.found.sources.entry(id).or_default().merge(&profile);
        }
    }

    /// The profiles.
    pub(super) fn finish(mut self) -> ProgramProfiles {
        self.end_source();
        self.found
    }
}

/// Refuses a field that makes a sum exceed its limit.
fn within(sum: u64, most: u64, field: &'static str, found: u64) -> Result<(), SavedErrorKind> {
    if sum <= most { Ok(()) } else { Err(SavedErrorKind::field(field, found)) }
}
