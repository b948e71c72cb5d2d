//! Profiles: the cost of each function, in every chain of calls in which it ran.
//!
//! ```text
//! Profiler   flow elements → a Profile: cost by chain of calls and by piece of code, as numbers alone
//! Profile    several of one program can be merged, and saved
//! Tree       a Profile with names, lines and inlined functions → what exporters write
//! ```
//!
//! Names are not looked up during recording. The program and its chains of calls bound the memory; the trace's length does not
//! matter.
//!
//! ```
//! use std::sync::Arc;
//! use tracewalk_analysis::profile::{Profiler, Tree, TreeOptions};
//! use tracewalk_analysis::{Code, Window};
//!
//! # use tracewalk::{ids::Address, program::Program, protocol::etmv3, source::SourceConfig};
//! # use tracewalk_analysis::drive::{Carrier, Follower, Input, NoProgress, Stretch};
//! # let config = SourceConfig::Etmv3(etmv3::Config::for_core("cortex-m3").expect("a known core"));
//! # let mut program = Program::new();
//! # program.add(Address::new(0x100), &[0x00, 0xbf, 0x00, 0xbf])?;
//! # let trace = [0, 0, 0, 0, 0, 0x80, 0x08, 0x21, 0x01, 0x01, 0x00, 0x00, 0x84, 0x84];
//! # let carrier = Carrier::Stretches(vec![Stretch::all(trace.len())]);
//! # let input = Input { capture: &trace, carrier, rest: None, progress: &NoProgress };
//! // `config`, `program` and `input` are made as in the example of `drive`.
//! // A trace of two instructions.
//! let code = Arc::new(Code { program: Arc::new(program.clone()), ..Code::unknown() });
//! let mut profiler = Profiler::new(Arc::clone(&code), &Window::default());
//! Follower::new(&config, &program).flow(&input, |record| {
//!     profiler.element(&record.element, record.at);
//!     Ok(())
//! })?;
//! let tree = Tree::of(&profiler.finish(), &code, TreeOptions { inlined: true, sites: false });
//! assert_eq!(tree.total().instructions, 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod analysis;
mod binaries;
mod collected;
mod record;
mod runs;
mod samples;
mod saved;
mod saved_parts;
mod tables;
mod time;
mod tree;

use std::collections::BTreeMap;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};
use tracewalk::ids::{Address, Exception, Isa};
use tracewalk::program::Scope;

use super::InDoubt;
use super::call_stack::{Evidence, FunctionId, Piece, Run, Task};
use super::clock::{Cost, Unit};
use crate::quick::QuickIndex;

pub use analysis::Profiling;
pub use binaries::BinaryCost;
pub use collected::{Profiles, ProgramProfiles};
pub use record::Profiler;
pub use tables::{Edge, FunctionCost, LineCost};
pub use tree::{Label, LabelId, LabelKind, Place, Tree, TreeNode, TreeOptions};

/// The costs of a program's functions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    nodes: Vec<Node>,
    index: QuickIndex,
    entries: Vec<PieceCost>,
    entry_index: QuickIndex,
    /// Cycles and time of traced code that could not be followed.
    pub unfollowed: Cost,
    /// Cycles and time without trace.
    pub untraced: Cost,
    /// The cycle counts and timestamps in the source's trace.
    pub measures: Measures,
    /// The number of task switches, by evidence.
    pub switches: BTreeMap<Evidence, u64>,
    /// Calls that were counted to their callers, because the limit of chains of calls was reached.
    pub folded_calls: u64,
    /// Instructions in doubt.
    pub in_doubt: InDoubt,
}

/// The data in a trace that cost is measured by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Measures {
    /// Events with cycle counts.
    pub cycle_counts: u64,
    /// Instructions of captures that have no cycle counts.
    pub without_cycles: u64,
    /// Instructions of captures that have no time.
    pub without_time: u64,
    /// Known timestamps.
    pub timestamps: u64,
    /// Instructions that lie between two timestamps, so that their time is known.
    pub timed_instructions: u64,
    /// Samples of the program counter. If there are any, costs count them, and no instructions.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub samples: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde wants")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A chain of calls, by its innermost link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u32);

/// A piece of code in a chain of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct EntryId(u32);

/// The innermost link of a chain of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Node {
    /// The link outside; it comes earlier in the list.
    parent: Option<NodeId>,
    /// How many links are outside.
    depth: usize,
    kind: NodeKind,
    calls: u64,
}

/// A link of a chain of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum NodeKind {
    /// A task's execution.
    Task(Task),
    /// An exception's handler.
    Exception(Option<Exception>),
    /// A function, called from the instruction at `site`.
    Function { function: FunctionId, site: Option<Address> },
}

/// The cost of a piece of code in one chain of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PieceCost {
    node: NodeId,
    piece: Piece,
    cost: Cost,
}

/// The most chains of calls that are distinguished.
const MOST_NODES: usize = 1 << 20;
/// The longest chain, because each may be written out whole.
const DEEPEST: usize = 1 << 12;
/// The most pieces of code that are distinguished; the cost of others goes to their function's start.
const MOST_ENTRIES: usize = 1 << 22;

impl Measures {
    /// The best measure that the trace has.
    #[must_use]
    pub const fn best(&self) -> Unit {
        if self.has(Unit::Samples) {
            Unit::Samples
        } else if self.has(Unit::Cycles) {
            Unit::Cycles
        } else if self.has(Unit::Time) {
            Unit::Time
        } else {
            Unit::Instructions
        }
    }

    /// Whether the trace has this measure; for several captures, whether all have it.
    #[must_use]
    pub const fn has(&self, unit: Unit) -> bool {
        match unit {
            Unit::Instructions => self.samples == 0,
            Unit::Samples => self.samples > 0,
            Unit::Cycles => self.cycle_counts > 0 && self.without_cycles == 0,
            Unit::Time => self.timed_instructions > 0 && self.without_time == 0,
        }
    }
}

impl AddAssign for Measures {
    fn add_assign(&mut self, other: Self) {
        let Self { cycle_counts, without_cycles, without_time, timestamps, timed_instructions, samples } =
            other;
        let add = |sum: &mut u64, more| *sum = sum.saturating_add(more);
        add(&mut self.cycle_counts, cycle_counts);
        add(&mut self.without_cycles, without_cycles);
        add(&mut self.without_time, without_time);
        add(&mut self.timestamps, timestamps);
        add(&mut self.timed_instructions, timed_instructions);
        add(&mut self.samples, samples);
    }
}

impl Profile {
    /// The cost of code that was followed.
    #[must_use]
    pub fn total(&self) -> Cost {
        let mut total = Cost::default();
        self.entries.iter().for_each(|entry| total += entry.cost);
        total
    }

    /// The part of [`Profile::total`] of tasks that are not resolved: the callers of what ran there are unknown.
    #[must_use]
    pub fn unresolved(&self) -> Cost {
        let mut is_unresolved = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let above = node.parent.and_then(|parent| is_unresolved.get(parent.index()).copied());
            is_unresolved.push(above.unwrap_or(node.kind == NodeKind::Task(Task::Unresolved)));
        }
        let mut unresolved = Cost::default();
        let entries =
            self.entries.iter().filter(|entry| is_unresolved.get(entry.node.index()) == Some(&true));
        entries.for_each(|entry| unresolved += entry.cost);
        unresolved
    }

    /// Adds a profile of another part of the same program's execution.
    pub fn merge(&mut self, other: &Self) {
        let mut nodes = Vec::with_capacity(other.nodes.len());
        for node in &other.nodes {
            // Parents come first.
            let parent = node.parent.and_then(|parent| nodes.get(parent.index()).copied());
            nodes.push(self.add(parent, node.kind, node.calls));
        }
        for entry in &other.entries {
            if let Some(node) = nodes.get(entry.node.index()) {
                let own = self.entry(*node, entry.piece);
                self.spend(own, entry.cost);
            }
        }
        self.unfollowed += other.unfollowed;
        self.untraced += other.untraced;
        self.folded_calls = self.folded_calls.saturating_add(other.folded_calls);
        for (evidence, times) in &other.switches {
            let sum = self.switches.entry(*evidence).or_default();
            *sum = sum.saturating_add(*times);
        }
        self.measures += other.measures;
        self.in_doubt.add(other.in_doubt);
    }

    /// The same with its chains of calls in an order that does not depend on when each was first seen.
    #[must_use]
    pub fn in_order(&self) -> Self {
        let mut ordered = Self {
            unfollowed: self.unfollowed,
            untraced: self.untraced,
            measures: self.measures,
            switches: self.switches.clone(),
            folded_calls: self.folded_calls,
            in_doubt: self.in_doubt,
            ..Self::default()
        };
        let mut inside: Vec<Vec<NodeId>> = vec![Vec::new(); self.nodes.len()];
        let mut open = Vec::new();
        for (index, node) in self.nodes.iter().enumerate() {
            let list = node.parent.and_then(|parent| inside.get_mut(parent.index()));
            list.unwrap_or(&mut open).push(NodeId::of(index));
        }
        let mut costs: Vec<Vec<&PieceCost>> = vec![Vec::new(); self.nodes.len()];
        for entry in &self.entries {
            if let Some(costs) = costs.get_mut(entry.node.index()) {
                costs.push(entry);
            }
        }
        let latest_first = |list: &mut Vec<NodeId>| {
            list.sort_by_key(|id| std::cmp::Reverse(self.nodes.get(id.index()).map(|node| node.kind)));
        };
        latest_first(&mut open);
        let mut open = open.into_iter().map(|id| (None, id)).collect::<Vec<_>>();
        while let Some((parent, id)) = open.pop() {
            let (Some(node), Some(list), Some(costs)) =
                (self.nodes.get(id.index()), inside.get_mut(id.index()), costs.get_mut(id.index()))
            else {
                continue;
            };
            let own = ordered.add(parent, node.kind, node.calls);
            costs.sort_by_key(|entry| entry.piece);
            for entry in costs.iter() {
                let piece = ordered.entry(own, entry.piece);
                ordered.spend(piece, entry.cost);
            }
            let mut list = std::mem::take(list);
            latest_first(&mut list);
            open.extend(list.into_iter().map(|id| (Some(own), id)));
        }
        ordered
    }

    /// The chain that adds a link to another one, with the number of its calls.
    fn add(&mut self, parent: Option<NodeId>, kind: NodeKind, calls: u64) -> NodeId {
        let folded = self.folded_calls;
        let own = self.node(parent, kind);
        if self.folded_calls > folded {
            self.folded_calls = folded.saturating_add(calls);
        }
        self.count_calls(own, calls);
        own
    }

    /// The chain that adds a link to another one.
    fn node(&mut self, parent: Option<NodeId>, kind: NodeKind) -> NodeId {
        let is_known = |node: &Node| node.parent == parent && node.kind == kind;
        if let Some(known) = self.index.find(&self.nodes, &(parent, kind), is_known) {
            return NodeId(known);
        }
        let outside = parent.and_then(|parent| self.nodes.get(parent.index()));
        let depth = outside.map_or(0, |outside| outside.depth + 1);
        if let (true, Some(parent)) = (self.nodes.len() >= MOST_NODES || depth >= DEEPEST, parent) {
            self.folded_calls = self.folded_calls.saturating_add(1);
            return parent;
        }
        let id = NodeId::of(self.nodes.len());
        self.nodes.push(Node { parent, depth, kind, calls: 0 });
        self.index.note(&self.nodes, |node| (node.parent, node.kind));
        id
    }

    /// The contexts in which the code of a chain's innermost function is visible.
    fn scope_of(&self, node: NodeId) -> Option<Scope> {
        match self.nodes.get(node.index())?.kind {
            NodeKind::Function { function, .. } => Some(function.scope()),
            NodeKind::Task(_) | NodeKind::Exception(_) => None,
        }
    }

    fn count_calls(&mut self, node: NodeId, calls: u64) {
        if let Some(node) = self.nodes.get_mut(node.index()) {
            node.calls = node.calls.saturating_add(calls);
        }
    }

    /// The entry of a piece of code in a chain of calls.
    fn entry(&mut self, node: NodeId, piece: Piece) -> EntryId {
        self.entry_index.note(&self.entries, |entry| (entry.node, entry.piece));
        let is_known = |entry: &PieceCost| entry.node == node && entry.piece == piece;
        if let Some(known) = self.entry_index.find(&self.entries, &(node, piece), is_known) {
            return EntryId(known);
        }
        if self.entries.len() >= MOST_ENTRIES {
            let anywhere = self.anywhere_in(node);
            if anywhere != piece {
                return self.entry(node, anywhere);
            }
        }
        let id = EntryId(u32::try_from(self.entries.len()).unwrap_or(u32::MAX));
        self.entries.push(PieceCost { node, piece, cost: Cost::default() });
        id
    }

    /// Charges the instructions of a run that ran this many times in a chain of calls.
    fn run(&mut self, node: NodeId, run: &Run<'_>, times: u64) {
        for piece in run.pieces {
            let entry = self.entry(node, *piece);
            let cost = Cost { instructions: piece.instructions.into(), ..Cost::default() };
            self.spend(entry, cost.times(times));
        }
    }

    /// Sorts the pieces: their order does not depend on when each was first charged.
    fn sort_entries(&mut self) {
        self.entries.sort_unstable_by_key(|entry| (entry.node, entry.piece));
        self.entry_index.clear();
    }

    /// The piece that represents all code of a function.
    fn anywhere_in(&self, node: NodeId) -> Piece {
        let start = match self.nodes.get(node.index()).map(|node| node.kind) {
            Some(NodeKind::Function { function, .. }) => function.address().unwrap_or_default(),
            _ => Address::new(0),
        };
        Piece { start, end: start, isa: Isa::T32, instructions: 0 }
    }

    fn spend(&mut self, entry: EntryId, cost: Cost) {
        if let Some(entry) = self.entries.get_mut(entry.index()) {
            entry.cost += cost;
        }
    }
}

impl NodeId {
    fn of(index: usize) -> Self {
        Self(u32::try_from(index).unwrap_or(u32::MAX))
    }

    const fn index(self) -> usize {
        self.0 as usize
    }

    /// The node's number.
    const fn number(&self) -> u32 {
        self.0
    }
}

impl EntryId {
    const fn index(self) -> usize {
        self.0 as usize
    }
}

#[cfg(test)]
mod tests;
