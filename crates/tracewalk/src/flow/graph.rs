//! The block graph: blocks found once for each place and linked to the ones that follow.
//!
//! For each region of the program and each instruction set there is an index, one entry for a halfword
//! (Thumb) or a word (A32, A64), that names the block starting there. The index takes memory only for code
//! that was executed. A block has its end, its number of instructions, and the kind of its last instruction.
//! The next blocks are determined when first needed, and remembered: following an atom is then one dependent
//! load.
//!
//! The graph is a cache. It belongs to one worker, is made from one view of one program, and can be emptied
//! at any time.

use alloc::vec::Vec;

use crate::directive::{Granularity, Rules};
use crate::ids::{Address, Isa, Location};
use crate::isa::{self, Instruction, Return};
use crate::program::{Program, ViewId};
use crate::span::Span;

use super::code::{Exit, code_at, farthest_waypoint, is_waypoint, may_be_in_it_block};
use super::element::{Block, BranchKind, Ending};
use super::pages::PagedTable;

/// Identifies a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct NodeId(u32);

/// A block: straight code up to an instruction whose outcome flow needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) start: Address,
    pub(super) end: Address,
    /// The instruction that ends the block.
    pub(super) last: Address,
    pub(super) instructions: u32,
    pub(super) isa: Isa,
    pub(super) kind: BranchKind,
    pub(super) link: bool,
    pub(super) returns: Option<Return>,
    /// Whether the block also ends with its last instruction if that instruction was not executed.
    pub(super) may_fail: bool,
    /// The target in the code: a direct branch's target, or the address after a barrier. Meaningless if
    /// `kind` is indirect.
    target: Location,
    /// The next blocks, as far as known: if the last instruction is not taken, and if it is.
    next: [u32; 2],
}

/// No block: not looked up yet, in an index or a link.
const UNKNOWN: u32 = 0;
/// No block: the graph cannot hold the code there.
const UNFIT: u32 = u32::MAX;

/// The maximum number of blocks. A program that executes more starts again with an empty graph, which costs
/// time, not memory. The limit in tests is small, so that graphs are emptied often.
const MOST_NODES: usize = if cfg!(test) { 8 } else { 1 << 18 };

/// The cache.
#[derive(Clone, Debug)]
pub(super) struct Graph {
    rules: Rules,
    /// The view of the program that the graph was made from.
    view: ViewId,
    /// One index for each region of the program, in the program's order.
    regions: Vec<RegionIndex>,
    /// The region in which the last block was looked up.
    last_region: usize,
    /// The first entry is not a block, so that `UNKNOWN` names none.
    nodes: Vec<Node>,
}

/// The blocks by their start, in one region.
#[derive(Clone, Debug)]
struct RegionIndex {
    start: Address,
    bytes: u64,
    words: PagedTable,
    halfwords: PagedTable,
    /// Words as A64.
    wide_words: PagedTable,
}

impl Node {
    /// Fills the entry of `UNKNOWN`.
    const NONE: Self = Self {
        start: Address::new(0),
        end: Address::new(0),
        last: Address::new(0),
        instructions: 0,
        isa: Isa::A32,
        kind: BranchKind::Direct,
        link: false,
        returns: None,
        may_fail: false,
        target: Location::new(Address::new(0), Isa::A32),
        next: [UNKNOWN; 2],
    };

    /// The whole block as an element.
    #[inline]
    pub(super) const fn block(&self, taken: bool, span: Span) -> Block {
        Block {
            start: self.start,
            end: self.end,
            isa: self.isa,
            instructions: self.instructions,
            last: self.last,
            ending: Ending::Branch { kind: self.kind, taken, link: self.link, returns: self.returns },
            span,
        }
    }

    /// The block's first instruction.
    #[inline]
    pub(super) const fn first_location(&self) -> Location {
        Location::new(self.start, self.isa)
    }

    /// The location of the instruction that ends the block.
    #[inline]
    pub(super) const fn last_location(&self) -> Location {
        Location::new(self.last, self.isa)
    }

    /// The last instruction's target; `None` if only the trace can state it.
    #[inline]
    pub(super) const fn target(&self) -> Option<Location> {
        match self.kind {
            BranchKind::Direct | BranchKind::Barrier => Some(self.target),
            BranchKind::Indirect => None,
        }
    }

    /// The instruction that ends the block.
    #[inline]
    pub(super) const fn exit(&self) -> Exit {
        let (at, following, target) = (self.last_location(), self.following(), self.target());
        Exit { at, following, kind: self.kind, target, link: self.link, returns: self.returns }
    }

    /// The address after the block.
    #[inline]
    pub(super) const fn following(&self) -> Location {
        Location::new(self.end, self.isa)
    }

    /// The number of the block's instructions that start at or before `until`, which lies before the last
    /// one. `program` is the visible view.
    pub(super) fn instructions_through(&self, program: &Program, until: Address) -> u32 {
        let code = program.code(self.start).unwrap_or_default();
        let (mut count, mut at) = (0, self.first_location());
        while at.address <= until {
            at = at.after(self.size_at(code, at));
            count += 1;
        }
        count
    }

    /// The addresses of the instruction before the block's instruction number `index`, and of that
    /// instruction. `program` is the visible view.
    pub(super) fn instruction(&self, program: &Program, index: u32) -> (Option<Address>, Address) {
        let code = program.code(self.start).unwrap_or_default();
        let (mut before, mut at) = (None, Location::new(self.start, self.isa));
        for _ in 0..index {
            before = Some(at.address);
            at = at.after(self.size_at(code, at));
        }
        (before, at.address)
    }

    /// The size of the block's instruction at `at`; `code` is the block's.
    fn size_at(&self, code: &[u8], at: Location) -> u64 {
        let offset = usize::try_from(at.bytes_since(self.start)).unwrap_or(usize::MAX);
        isa::size(code.get(offset..).unwrap_or_default(), self.isa)
    }
}

impl Graph {
    /// An empty graph of a view of `program`.
    pub(super) fn new(rules: Rules, program: &Program, view: ViewId) -> Self {
        let regions = program.view(view).regions().iter().map(|region| {
            // A region may start and end inside a word.
            let entries = |shift: u32| (region.bytes().len() >> shift) + 2;
            RegionIndex {
                start: region.start(),
                bytes: region.bytes().len() as u64,
                words: PagedTable::new(entries(2)),
                halfwords: PagedTable::new(entries(1)),
                wide_words: PagedTable::new(entries(2)),
            }
        });
        Self { rules, view, regions: regions.collect(), last_region: 0, nodes: alloc::vec![Node::NONE] }
    }

    /// The view of the program that the graph was made from.
    pub(super) const fn view(&self) -> ViewId {
        self.view
    }

    /// Whether the graph has to be emptied before more blocks are added.
    pub(super) fn is_full(&self) -> bool {
        self.nodes.len() >= MOST_NODES
    }

    /// Forgets all blocks; no [`NodeId`] is valid after this.
    pub(super) fn clear(&mut self) {
        self.nodes.truncate(1);
        for region in &mut self.regions {
            region.words.clear();
            region.halfwords.clear();
            region.wide_words.clear();
        }
    }

    /// The block.
    #[inline]
    pub(super) fn node(&self, id: NodeId) -> &Node {
        // Every id was given out by this graph and its block is still there.
        self.nodes.get(id.0 as usize).unwrap_or(&Node::NONE)
    }

    /// The block that starts at `at`; `None` if there is no code, or code that only the walk can follow.
    #[inline]
    pub(super) fn node_at(&mut self, program: &Program, at: Location) -> Option<NodeId> {
        match *self.slot(at)? {
            UNKNOWN => self.find(program, at),
            UNFIT => None,
            id => Some(NodeId(id)),
        }
    }

    /// The block that comes after `id`, by the outcome of its last instruction alone.
    #[inline]
    pub(super) fn successor(&mut self, program: &Program, id: NodeId, taken: bool) -> Option<NodeId> {
        let node = self.nodes.get(id.0 as usize)?;
        match node.next[usize::from(taken)] {
            UNKNOWN => {
                let at = if taken { node.target()? } else { node.following() };
                let next = self.node_at(program, at)?;
                self.nodes.get_mut(id.0 as usize)?.next[usize::from(taken)] = next.0;
                Some(next)
            }
            next => Some(NodeId(next)),
        }
    }

    /// The block `id`, and the one that comes after it by the outcome of its last instruction, if that one is linked: no
    /// indirect branch was taken, and no instruction that always passes its condition failed.
    #[inline(always)]
    pub(super) fn linked(&self, id: NodeId, taken: bool) -> Option<(&Node, NodeId)> {
        let node = self.nodes.get(id.0 as usize)?;
        match node.next[usize::from(taken)] {
            UNKNOWN => None,
            next => {
                debug_assert!(!taken || node.returns.is_none(), "only indirect branches return");
                Some((node, NodeId(next)))
            }
        }
    }

    /// The index entry for `at`.
    #[inline]
    fn slot(&mut self, at: Location) -> Option<&mut u32> {
        let inside = |region: &RegionIndex| at.address.get().wrapping_sub(region.start.get()) < region.bytes;
        if !self.regions.get(self.last_region).is_some_and(inside) {
            let after = self.regions.partition_point(|region| region.start <= at.address);
            self.last_region = after.checked_sub(1)?;
        }
        let region = self.regions.get_mut(self.last_region).filter(|region| inside(region))?;
        let (index, shift) = match at.isa {
            Isa::A32 => (&mut region.words, 2),
            Isa::T32 => (&mut region.halfwords, 1),
            Isa::A64 => (&mut region.wide_words, 2),
            Isa::T32EE | Isa::Jazelle => return None,
        };
        let entry = (at.address.get() >> shift) - (region.start.get() >> shift);
        index.entry(usize::try_from(entry).ok()?)
    }

    /// Finds the block that starts at `at`.
    #[cold]
    fn find(&mut self, program: &Program, at: Location) -> Option<NodeId> {
        if self.is_full() {
            return None;
        }
        let found = self.read(program.view(self.view), at);
        let id = u32::try_from(self.nodes.len()).unwrap_or(UNFIT);
        *self.slot(at)? = if found.is_some() { id } else { UNFIT };
        self.nodes.push(found?);
        Some(NodeId(id))
    }

    /// Reads code up to the instruction that ends the block.
    fn read(&self, program: &Program, start: Location) -> Option<Node> {
        let code = code_at(program, start)?;
        let (mut offset, mut instructions) = (0, 0);
        loop {
            let at = start.after(offset as u64);
            let instruction = isa::classify(code.get(offset..)?, at.address, at.isa).ok()?;
            instructions += 1;
            if self.ends_block(&instruction) {
                let exit = Exit::of(&instruction, at);
                return Some(Node {
                    start: start.address,
                    end: exit.following.address,
                    last: at.address,
                    instructions,
                    isa: start.isa,
                    kind: exit.kind,
                    link: exit.link,
                    returns: exit.returns,
                    may_fail: match exit.kind {
                        // A barrier that fails its condition is passed like any instruction that is not a
                        // branch.
                        BranchKind::Barrier => !self.rules.waypoints_fail_by_condition,
                        _ => instruction.conditional || may_be_in_it_block(program, at),
                    },
                    target: exit.target.unwrap_or(exit.following),
                    next: [UNKNOWN; 2],
                });
            }
            if offset as u64 > farthest_waypoint(self.rules) {
                return None;
            }
            offset += usize::from(instruction.bytes);
        }
    }

    /// Whether flow needs the outcome of an instruction.
    const fn ends_block(&self, instruction: &Instruction) -> bool {
        let waypoints = matches!(self.rules.granularity, Granularity::Waypoints);
        instruction.is_branch() || waypoints && is_waypoint(self.rules, instruction)
    }
}
