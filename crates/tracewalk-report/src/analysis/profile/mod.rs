//! Where time went: what each function cost, in every chain of calls in which it ran.
//!
//! ```text
//! Profiler   flow elements → a Profile: cost by chain of calls and by piece of code, as numbers alone
//! Profile    several of one program can be merged
//! Tree       a Profile with names, lines and inlined functions → what exporters write
//! ```
//!
//! Nothing is looked up by name while elements come. Memory is bounded by the program and the chains of calls that it
//! makes, not by the trace's length.

mod record;
mod tables;
mod time;
mod tree;

use std::collections::{BTreeMap, HashMap};

use tracewalk::ids::{Address, Exception, Isa};
use tracewalk::program::Scope;

use super::call_stack::{Evidence, FunctionId, Piece, Task};
use super::clock::{Cost, Unit};

pub use record::Profiler;
pub use tables::{Edge, FunctionCost, LineCost};
pub use tree::{Label, LabelId, LabelKind, Place, Tree, TreeNode, TreeOptions};

/// What a program's functions cost.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    nodes: Vec<Node>,
    index: HashMap<(Option<NodeId>, NodeKind), NodeId>,
    entries: Vec<PieceCost>,
    entry_index: HashMap<(NodeId, Piece), EntryId>,
    /// Cycles and time of what was traced and could not be followed.
    pub unfollowed: Cost,
    /// Cycles and time of what was not traced.
    pub untraced: Cost,
    /// What the source's trace told beside instructions.
    pub measures: Measures,
    /// How often another task was seen to run, by what showed it.
    pub switches: BTreeMap<Evidence, u64>,
    /// Calls that were counted to their callers, because there were too many chains of calls to tell apart.
    pub folded_calls: u64,
}

/// What a trace has to measure cost by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measures {
    /// Events with cycle counts.
    pub cycle_counts: u64,
    /// Timestamps that were known.
    pub timestamps: u64,
    /// Instructions that lie between two timestamps, so that their time is known.
    pub timed_instructions: u64,
}

/// A chain of calls, by its innermost link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u32);

/// A piece of code in a chain of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct EntryId(u32);

/// The innermost link of a chain of calls.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// The link outside; it comes earlier in the list.
    parent: Option<NodeId>,
    kind: NodeKind,
    calls: u64,
}

/// A link of a chain of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum NodeKind {
    /// What a task runs.
    Task(Task),
    /// What handles an exception.
    Exception(Option<Exception>),
    /// A function, called from the instruction at `site`.
    Function { function: FunctionId, site: Option<Address> },
}

/// What a piece of code cost in one chain of calls.
#[derive(Clone, Copy, Debug)]
struct PieceCost {
    node: NodeId,
    piece: Piece,
    cost: Cost,
}

/// More chains of calls than this are not told apart.
const MOST_NODES: usize = 1 << 20;
/// More pieces of code than this are not told apart; their cost goes to their function's start.
const MOST_ENTRIES: usize = 1 << 22;

impl Measures {
    /// The best measure that the trace has.
    #[must_use]
    pub const fn best(&self) -> Unit {
        if self.cycle_counts > 0 {
            Unit::Cycles
        } else if self.timed_instructions > 0 {
            Unit::Time
        } else {
            Unit::Instructions
        }
    }

    /// Whether the trace has this measure.
    #[must_use]
    pub const fn has(&self, unit: Unit) -> bool {
        match unit {
            Unit::Instructions => true,
            Unit::Cycles => self.cycle_counts > 0,
            Unit::Time => self.timed_instructions > 0,
        }
    }
}

impl Profile {
    /// What was spent on code that was followed.
    #[must_use]
    pub fn total(&self) -> Cost {
        let mut total = Cost::default();
        self.entries.iter().for_each(|entry| total += entry.cost);
        total
    }

    /// Adds what was recorded of another part of the same program's execution.
    pub fn merge(&mut self, other: &Self) {
        let mut nodes = Vec::with_capacity(other.nodes.len());
        for node in &other.nodes {
            // Parents come first.
            let parent = node.parent.and_then(|parent| nodes.get(parent.index()).copied());
            let own = self.node(parent, node.kind);
            self.count_calls(own, node.calls);
            nodes.push(own);
        }
        for entry in &other.entries {
            if let Some(node) = nodes.get(entry.node.index()) {
                let own = self.entry(*node, entry.piece);
                self.spend(own, entry.cost);
            }
        }
        self.unfollowed += other.unfollowed;
        self.untraced += other.untraced;
        self.folded_calls += other.folded_calls;
        for (evidence, times) in &other.switches {
            *self.switches.entry(*evidence).or_default() += times;
        }
        let Measures { cycle_counts, timestamps, timed_instructions } = other.measures;
        self.measures.cycle_counts += cycle_counts;
        self.measures.timestamps += timestamps;
        self.measures.timed_instructions += timed_instructions;
    }

    /// The chain that adds a link to another one.
    fn node(&mut self, parent: Option<NodeId>, kind: NodeKind) -> NodeId {
        if let Some(known) = self.index.get(&(parent, kind)) {
            return *known;
        }
        if let (true, Some(parent)) = (self.nodes.len() >= MOST_NODES, parent) {
            self.folded_calls += 1;
            return parent;
        }
        let id = NodeId(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        self.nodes.push(Node { parent, kind, calls: 0 });
        self.index.insert((parent, kind), id);
        id
    }

    /// Whose the code of a chain's innermost function is.
    fn scope_of(&self, node: NodeId) -> Option<Scope> {
        match self.nodes.get(node.index())?.kind {
            NodeKind::Function { function, .. } => Some(function.scope()),
            NodeKind::Task(_) | NodeKind::Exception(_) => None,
        }
    }

    fn count_calls(&mut self, node: NodeId, calls: u64) {
        if let Some(node) = self.nodes.get_mut(node.index()) {
            node.calls += calls;
        }
    }

    /// Where the cost of a piece of code in a chain of calls is kept.
    fn entry(&mut self, node: NodeId, piece: Piece) -> EntryId {
        if let Some(known) = self.entry_index.get(&(node, piece)) {
            return *known;
        }
        if self.entries.len() >= MOST_ENTRIES {
            let anywhere = self.anywhere_in(node);
            if anywhere != piece {
                return self.entry(node, anywhere);
            }
        }
        let id = EntryId(u32::try_from(self.entries.len()).unwrap_or(u32::MAX));
        self.entries.push(PieceCost { node, piece, cost: Cost::default() });
        self.entry_index.insert((node, piece), id);
        id
    }

    /// The piece that stands for all code of a function.
    fn anywhere_in(&self, node: NodeId) -> Piece {
        let start = match self.nodes.get(node.index()).map(|node| node.kind) {
            Some(NodeKind::Function { function, .. }) => function.address().unwrap_or_default(),
            _ => Address(0),
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
    const fn index(self) -> usize {
        self.0 as usize
    }
}

impl EntryId {
    const fn index(self) -> usize {
        self.0 as usize
    }
}

#[cfg(test)]
mod tests;
