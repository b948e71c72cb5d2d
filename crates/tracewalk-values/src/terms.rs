//! Unknown values by name, and what is known of them.
//!
//! Each written register and each loaded value is a [`Term`]: a node and a constant. Nodes whose difference is known are in
//! one class of a union-find structure that carries the differences; the class of node 0 is that of the known values. Relations
//! between terms are worked off whenever something new is known of one of their terms, until nothing changes.

mod classes;
mod sources;

use crate::bits::{Bits, Conflict, Width};
use crate::relation::{self, Operation};
use sources::{Sources, TableOf};

/// A value by name: a node's value plus a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Term {
    node: u32,
    pub(crate) width: Width,
    plus: u64,
}

impl Term {
    /// A known value.
    pub(crate) const fn constant(value: u64, width: Width) -> Self {
        Self { node: ZERO, width, plus: value & width.mask() }
    }

    /// The value plus a constant.
    pub(crate) const fn plus(self, value: u64) -> Self {
        Self { plus: self.plus.wrapping_add(value) & self.width.mask(), ..self }
    }
}

/// The class of a value, and its difference to the class's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    /// The class; [`ZERO`] for known values.
    pub(crate) root: u32,
    /// The difference; for known values the value.
    pub(crate) offset: u64,
}

/// The node of the value zero.
pub(crate) const ZERO: u32 = 0;

/// No use.
const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Node {
    /// The node in whose class this one is; itself for the class's root.
    parent: u32,
    /// The first and the last use in the list of uses of the class; of roots only.
    first_use: u32,
    last_use: u32,
    width: Width,
    /// Whether it is an address or a value of an access to memory; of roots only.
    in_memory: bool,
    /// Whether the stack pointer was in this class; of roots only.
    is_stack: bool,
    /// The values that it has by those of a source; of roots only.
    table: TableOf,
    /// This node's value less its parent's.
    plus: u64,
    /// What is known of the root's value.
    bits: Bits,
}

/// A use of a class by a relation.
#[derive(Clone, Copy, Debug)]
struct Use {
    relation: u32,
    next: u32,
}

#[derive(Clone, Copy, Debug)]
struct Relation {
    operation: Operation,
    width: Width,
    /// The relation waits to be worked off.
    is_waiting: bool,
    /// Nothing more can follow.
    is_done: bool,
    terms: [Term; 4],
}

/// All values by name, their relations, and what is known.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    nodes: Vec<Node>,
    uses: Vec<Use>,
    relations: Vec<Relation>,
    waiting: Vec<u32>,
    sources: Sources,
    /// Two statements about one value contradict each other: nothing can be stated.
    pub(crate) has_conflict: bool,
    /// Something became known that may change what memory accesses refer to.
    pub(crate) concerns_memory: bool,
}

/// The term of a relation without an operand.
const NOTHING: Term = Term::constant(0, Width::Word);

impl Terms {
    pub(crate) fn new() -> Self {
        let zero = Node {
            parent: ZERO,
            first_use: NONE,
            last_use: NONE,
            width: Width::Double,
            in_memory: false,
            is_stack: false,
            table: TableOf::NONE,
            plus: 0,
            bits: Bits::constant(0),
        };
        Self {
            nodes: vec![zero],
            uses: Vec::new(),
            relations: Vec::new(),
            waiting: Vec::new(),
            sources: Sources::default(),
            has_conflict: false,
            concerns_memory: false,
        }
    }

    /// A new value with these known bits.
    pub(crate) fn known(&mut self, bits: Bits, width: Width) -> Term {
        if let Some(value) = bits.value() {
            return Term::constant(value, width);
        }
        let node = u32::try_from(self.nodes.len()).expect("a window has fewer values");
        self.nodes.push(Node {
            parent: node,
            first_use: NONE,
            last_use: NONE,
            width,
            in_memory: false,
            is_stack: false,
            table: TableOf::NONE,
            plus: 0,
            bits,
        });
        Term { node, width, plus: 0 }
    }

    /// A new unknown value.
    pub(crate) fn unknown(&mut self, width: Width) -> Term {
        self.known(Bits::unknown(width), width)
    }

    /// The class of a term.
    pub(crate) fn place(&self, term: Term) -> Place {
        let (mut node, mut plus) = (term.node, term.plus);
        loop {
            let Node { parent, plus: more, .. } = self.nodes[node as usize];
            if parent == node {
                return Place { root: node, offset: plus & term.width.mask() };
            }
            plus = plus.wrapping_add(more);
            node = parent;
        }
    }

    /// The class of a term; shortens the way to it.
    fn find(&mut self, term: Term) -> Place {
        let place = self.place(term);
        let (mut node, mut rest) = (term.node, place.offset.wrapping_sub(term.plus));
        while node != place.root {
            let entry = &mut self.nodes[node as usize];
            let (parent, plus) = (entry.parent, entry.plus);
            (entry.parent, entry.plus) = (place.root, rest & entry.width.mask());
            rest = rest.wrapping_sub(plus);
            node = parent;
        }
        place
    }

    /// What is known of a class's value plus an offset.
    pub(crate) fn bits_at(&self, place: Place) -> Bits {
        if place.root == ZERO {
            return Bits::constant(place.offset);
        }
        let node = &self.nodes[place.root as usize];
        node.bits.plus(place.offset, node.width)
    }

    /// What is known of a value.
    pub(crate) fn bits(&self, term: Term) -> Bits {
        self.bits_at(self.place(term))
    }

    /// The smallest and the greatest possible value of a class's value plus an offset.
    pub(crate) fn bounds(&self, place: Place) -> (u64, u64) {
        if place.root == ZERO {
            return (place.offset, place.offset);
        }
        let node = &self.nodes[place.root as usize];
        let (least, greatest) = (node.bits.least(), node.bits.greatest());
        let mask = node.width.mask();
        let low = least.wrapping_add(place.offset) & mask;
        let high = greatest.wrapping_add(place.offset) & mask;
        // Both wrap, or neither does.
        if low <= high && high - low == greatest - least { (low, high) } else { (0, mask) }
    }

    /// The value, if it is known.
    pub(crate) fn value(&self, term: Term) -> Option<u64> {
        let place = self.place(term);
        (place.root == ZERO).then_some(place.offset)
    }

    /// Notes that a class is an address or a value of an access to memory.
    pub(crate) fn is_in_memory(&mut self, term: Term) {
        let root = self.find(term).root;
        self.nodes[root as usize].in_memory = true;
    }

    /// Notes that the stack pointer has this value.
    pub(crate) fn is_stack_pointer(&mut self, term: Term) {
        let root = self.find(term).root;
        if root != ZERO {
            self.nodes[root as usize].is_stack = true;
        }
    }

    /// Whether the stack pointer was in this class.
    pub(crate) fn is_stack(&self, root: u32) -> bool {
        self.nodes[root as usize].is_stack
    }

    /// States what is known of a value.
    pub(crate) fn learn(&mut self, term: Term, bits: Bits) {
        let place = self.find(term);
        let node = &self.nodes[place.root as usize];
        if place.root == ZERO {
            self.has_conflict |= !bits.may_equal(Bits::constant(place.offset));
            return;
        }
        if bits.known & node.width.mask() == 0 {
            return;
        }
        let width = node.width;
        let of_root = bits.plus(width.mask().wrapping_sub(place.offset).wrapping_add(1), width);
        self.learn_root(place.root, of_root);
    }

    fn learn_root(&mut self, root: u32, bits: Bits) {
        let node = &mut self.nodes[root as usize];
        let Ok(both) = node.bits.meet(bits) else {
            self.has_conflict = true;
            return;
        };
        if both == node.bits {
            return;
        }
        node.bits = both;
        self.concerns_memory |= node.in_memory;
        if let Some(value) = both.value() {
            (node.parent, node.plus) = (ZERO, value);
        }
        let (first, table) = (node.first_use, node.table);
        self.sources.touch(table);
        self.wake(first);
    }

    /// States that two values are equal.
    pub(crate) fn equate(&mut self, left: Term, right: Term) {
        let (left, right) = (self.find(left), self.find(right));
        if left.root == right.root {
            self.has_conflict |= left.offset != right.offset;
            return;
        }
        let (from, to) = if left.root == ZERO { (right, left) } else { (left, right) };
        let width = self.nodes[from.root as usize].width;
        let plus = to.offset.wrapping_sub(from.offset) & width.mask();
        let bits = self.nodes[from.root as usize].bits;
        if to.root == ZERO {
            self.learn_root(from.root, Bits::constant(plus));
            return;
        }
        let node = &mut self.nodes[from.root as usize];
        (node.parent, node.plus) = (to.root, plus);
        let (first, last) = (node.first_use, node.last_use);
        let (in_memory, is_stack, table) = (node.in_memory, node.is_stack, node.table);
        self.sources.touch(table);
        self.wake(first);
        let target = &mut self.nodes[to.root as usize];
        let known_first = target.first_use;
        target.in_memory |= in_memory;
        target.is_stack |= is_stack;
        if target.table == TableOf::NONE {
            target.table = table;
        }
        self.sources.touch(target.table);
        self.concerns_memory |= target.in_memory;
        if first != NONE {
            if known_first == NONE {
                target.last_use = last;
            }
            target.first_use = first;
            self.uses[last as usize].next = known_first;
        }
        self.wake(known_first);
        let of_target = bits.plus(width.mask().wrapping_sub(plus).wrapping_add(1), width);
        self.learn_root(to.root, of_target);
    }

    /// Puts the relations of a list of uses on the waiting list.
    fn wake(&mut self, first: u32) {
        let mut next = first;
        while next != NONE {
            let Use { relation, next: following } = self.uses[next as usize];
            let entry = &mut self.relations[relation as usize];
            if !entry.is_waiting && !entry.is_done {
                entry.is_waiting = true;
                self.waiting.push(relation);
            }
            next = following;
        }
    }

    /// States a relation between values: the result and up to three operands.
    pub(crate) fn relate(&mut self, operation: Operation, width: Width, result: Term, operands: &[Term]) {
        let mut terms = [result, NOTHING, NOTHING, NOTHING];
        for (term, operand) in terms[1..].iter_mut().zip(operands) {
            *term = *operand;
        }
        let mut relation = Relation { operation, width, is_waiting: false, is_done: false, terms };
        if self.work_off(&mut relation) {
            return;
        }
        let number = u32::try_from(self.relations.len()).expect("a window has fewer relations");
        self.relations.push(relation);
        let mut roots = [ZERO; 4];
        for (index, term) in terms.into_iter().enumerate() {
            let root = self.find(term).root;
            if root != ZERO && !roots.contains(&root) {
                roots[index] = root;
                let entry = u32::try_from(self.uses.len()).expect("fewer than four uses a relation");
                let node = &mut self.nodes[root as usize];
                if node.first_use == NONE {
                    node.last_use = entry;
                }
                self.uses.push(Use { relation: number, next: node.first_use });
                node.first_use = entry;
            }
        }
    }

    /// Works off relations until nothing new follows.
    pub(crate) fn settle(&mut self) {
        loop {
            if self.has_conflict {
                return;
            }
            let Some(number) = self.waiting.pop() else {
                if self.settle_sources() {
                    continue;
                }
                return;
            };
            let mut relation = self.relations[number as usize];
            relation.is_waiting = false;
            self.relations[number as usize].is_waiting = false;
            if self.work_off(&mut relation) {
                self.relations[number as usize].is_done = true;
            }
        }
    }

    /// Learns what follows from a relation. Whether nothing more can follow.
    fn work_off(&mut self, relation: &mut Relation) -> bool {
        let Relation { operation, width, terms, .. } = *relation;
        if self.by_classes(operation, width, terms) {
            return true;
        }
        let places = terms.map(|term| self.find(term));
        let before = places.map(|place| self.bits_at(place));
        let mut values = before;
        if relation::refine(operation, width, &mut values) == Err(Conflict) {
            self.has_conflict = true;
            return true;
        }
        for ((term, bits), before) in terms.into_iter().zip(values).zip(before) {
            if bits != before {
                self.learn(term, bits);
            }
        }
        if values.iter().all(|bits| bits.value().is_some()) {
            return true;
        }
        self.by_sources(operation, width, terms);
        false
    }
}
