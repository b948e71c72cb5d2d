//! The block graph: blocks found once for each place and linked to the ones that follow.
//!
//! For each region of the program and each instruction set there is a dense index, one entry for a halfword (Thumb) or
//! a word (ARM), that names the block starting there. A block knows its end, how many instructions it has, and what
//! ends it; which blocks come next is found out when they are first needed and remembered. Following an atom is then
//! one dependent load.
//!
//! The graph is a cache: it belongs to one worker, is made from one view of one program, and can be emptied at any time.

use alloc::vec::Vec;

use crate::directive::{Counts, Rules};
use crate::ids::{Address, Isa, Location};
use crate::isa::{self, Barrier, Class, Instruction, Return};
use crate::program::{Program, ViewId};
use crate::span::Span;

use super::element::{Block, BranchKind, Ending};
use super::walk::{FARTHEST_WAYPOINT, may_be_in_it_block};

/// A block's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct NodeId(u32);

/// A block: straight code up to an instruction that flow has to ask about.
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
    /// Whether the last instruction can fail its condition.
    pub(super) may_fail: bool,
    /// Where the last instruction goes by itself: a direct branch's target, or the address behind a barrier.
    /// Meaningless where `kind` is indirect.
    target: Location,
    /// The blocks that come next where the last instruction is taken and where it is not, as far as they are known.
    next: [u32; 2],
}

/// No block: not looked up yet, in an index or a link.
const UNKNOWN: u32 = 0;
/// No block: the code there is not one that the graph can hold.
const UNFIT: u32 = u32::MAX;

/// How many blocks are kept. Programs that execute more start again with an empty graph; that costs time, not memory.
/// Tests have so few that forgetting comes all the time.
const MOST_NODES: usize = if cfg!(test) { 8 } else { 1 << 18 };

/// The cache.
#[derive(Clone, Debug)]
pub(super) struct Graph {
    rules: Rules,
    /// What of the program it was made from.
    view: ViewId,
    /// One for each region of the program, in its order.
    regions: Vec<RegionIndex>,
    /// The region in which the last block was looked up.
    last_region: usize,
    /// The first one is no block, so that `UNKNOWN` names none.
    nodes: Vec<Node>,
}

/// Which blocks start where, in one region.
#[derive(Clone, Debug)]
struct RegionIndex {
    start: Address,
    bytes: u64,
    /// Made when the first block of the instruction set is looked up.
    words: Vec<u32>,
    halfwords: Vec<u32>,
}

impl Node {
    /// What fills the place of `UNKNOWN`.
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

    /// The first `instructions` instructions as an element, of which the last stands at `last`, the next one at `end`.
    pub(super) const fn part(&self, instructions: u32, (last, end): (Address, Address), span: Span) -> Block {
        let ending = Ending::Interrupted;
        Block { start: self.start, end, isa: self.isa, instructions, last, ending, span }
    }

    /// The instruction that ends the block.
    pub(super) const fn last_location(&self) -> Location {
        Location::new(self.last, self.isa)
    }

    /// Where the last instruction goes by itself; `None` where only the trace can say.
    #[inline]
    pub(super) const fn target(&self) -> Option<Location> {
        match self.kind {
            BranchKind::Direct | BranchKind::Barrier => Some(self.target),
            BranchKind::Indirect => None,
        }
    }

    /// The class of the last instruction.
    pub(super) const fn class(&self) -> Class {
        match self.kind {
            BranchKind::Direct => Class::Direct(self.target),
            BranchKind::Indirect => Class::Indirect,
            // Which barrier it is matters to nobody behind the block.
            BranchKind::Barrier => Class::Barrier(Barrier::Isb),
        }
    }

    /// The address behind the block.
    #[inline]
    pub(super) const fn behind(&self) -> Location {
        Location::new(self.end, self.isa)
    }

    /// How many of the block's instructions start at or before `until`, which lies before the last one. `program` is what
    /// is visible of it.
    pub(super) fn instructions_through(&self, program: &Program, until: Address) -> u32 {
        let code = program.code(self.start).unwrap_or_default();
        let (mut count, mut at) = (0, Location::new(self.start, self.isa));
        while at.address <= until && count < self.instructions {
            at = at.after(self.size_at(code, at));
            count += 1;
        }
        count
    }

    /// Where the block's instruction number `index` stands, and the one before it. `program` is what is visible of it.
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
    /// An empty graph of what is visible of `program`.
    pub(super) fn new(rules: Rules, program: &Program, view: ViewId) -> Self {
        let regions = program.view(view).regions().iter().map(|region| RegionIndex {
            start: region.start(),
            bytes: region.bytes().len() as u64,
            words: Vec::new(),
            halfwords: Vec::new(),
        });
        Self { rules, view, regions: regions.collect(), last_region: 0, nodes: alloc::vec![Node::NONE] }
    }

    /// What of the program it was made from.
    pub(super) const fn view(&self) -> ViewId {
        self.view
    }

    /// Whether it should be emptied before more blocks are added.
    pub(super) fn is_full(&self) -> bool {
        self.nodes.len() >= MOST_NODES
    }

    /// Forgets all blocks; no [`NodeId`] is valid behind this.
    pub(super) fn clear(&mut self) {
        self.nodes.truncate(1);
        for region in &mut self.regions {
            region.words = Vec::new();
            region.halfwords = Vec::new();
        }
    }

    /// The block.
    #[inline]
    pub(super) fn node(&self, id: NodeId) -> &Node {
        // Every id was given out by this graph and its block is still there.
        self.nodes.get(id.0 as usize).unwrap_or(&Node::NONE)
    }

    /// The block that starts at `at`; `None` where there is no code, or code that only the plain walk can follow.
    #[inline]
    pub(super) fn node_at(&mut self, program: &Program, at: Location) -> Option<NodeId> {
        match *self.slot(at)? {
            UNKNOWN => self.find(program, at),
            UNFIT => None,
            id => Some(NodeId(id)),
        }
    }

    /// The block that comes behind `id`, by the outcome of its last instruction alone.
    #[inline]
    pub(super) fn successor(&mut self, program: &Program, id: NodeId, taken: bool) -> Option<NodeId> {
        let node = self.nodes.get(id.0 as usize)?;
        match node.next[usize::from(taken)] {
            UNKNOWN => {
                let at = if taken { node.target()? } else { node.behind() };
                let next = self.node_at(program, at)?;
                self.nodes.get_mut(id.0 as usize)?.next[usize::from(taken)] = next.0;
                Some(next)
            }
            next => Some(NodeId(next)),
        }
    }

    /// The index entry for `at`.
    #[inline]
    fn slot(&mut self, at: Location) -> Option<&mut u32> {
        let inside = |region: &RegionIndex| at.address.get().wrapping_sub(region.start.get()) < region.bytes;
        if !self.regions.get(self.last_region).is_some_and(inside) {
            let behind = self.regions.partition_point(|region| region.start <= at.address);
            self.last_region = behind.checked_sub(1)?;
        }
        let region = self.regions.get_mut(self.last_region).filter(|region| inside(region))?;
        let (index, shift) = match at.isa {
            Isa::A32 => (&mut region.words, 2),
            Isa::T32 => (&mut region.halfwords, 1),
            Isa::T32EE | Isa::Jazelle | Isa::A64 => return None,
        };
        if index.is_empty() {
            index.resize(usize::try_from(region.bytes >> shift).ok()? + 2, UNKNOWN);
        }
        let entry = (at.address.get() >> shift) - (region.start.get() >> shift);
        index.get_mut(usize::try_from(entry).ok()?)
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
        let code = program.code(start.address)?;
        let (mut offset, mut instructions) = (0, 0);
        loop {
            let at = start.after(offset as u64);
            let instruction = isa::classify(code.get(offset..)?, at.address, at.isa).ok()?;
            instructions += 1;
            let end = at.after(instruction.bytes.into());
            if let Some((kind, target)) = self.ends_block(&instruction, end) {
                return Some(Node {
                    start: start.address,
                    end: end.address,
                    last: at.address,
                    instructions,
                    isa: start.isa,
                    kind,
                    link: instruction.link,
                    returns: instruction.returns,
                    may_fail: instruction.conditional
                        || kind == BranchKind::Barrier
                        || may_be_in_it_block(program, at),
                    target,
                    next: [UNKNOWN; 2],
                });
            }
            if offset as u64 > FARTHEST_WAYPOINT {
                return None;
            }
            offset += usize::from(instruction.bytes);
        }
    }

    /// What kind of end an instruction is, if it is one, and where it goes.
    fn ends_block(&self, instruction: &Instruction, behind: Location) -> Option<(BranchKind, Location)> {
        let waypoints = self.rules.counts == Counts::Waypoints;
        match instruction.class {
            Class::Direct(target) => Some((BranchKind::Direct, target)),
            Class::Indirect => Some((BranchKind::Indirect, behind)),
            Class::Barrier(Barrier::Isb) if waypoints => Some((BranchKind::Barrier, behind)),
            Class::Barrier(_) if waypoints && self.rules.barriers_are_waypoints => {
                Some((BranchKind::Barrier, behind))
            }
            Class::Barrier(_) | Class::Other => None,
        }
    }
}
