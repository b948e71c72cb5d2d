//! Values that depend on one value with few possibilities.
//!
//! A class with at most five unknown bits becomes a source: its possible values are listed. What is computed from it and from
//! constants alone has a table, with the value for each value of the source. A fact about any of them rules out values of the source,
//! and with them entries of all tables: the index of a table and the pointer found there stay in step.

use super::{NONE, Place, Term, Terms, ZERO};
use crate::bits::{Bits, Width, low_mask};
use crate::relation::{self, Operation};

/// The most unknown bits of a source.
const MOST_BITS: u32 = 5;
/// The most tables in a window.
const MOST_TABLES: usize = 40_000;

/// A value with few possibilities.
#[derive(Clone, Debug)]
pub(super) struct Source {
    /// The values that are still possible, a bit for each.
    alive: u64,
    /// What depends on it; first the source itself.
    tables: Vec<Table>,
    is_stale: bool,
}

/// The value of a term for each value of a source.
#[derive(Clone, Debug)]
struct Table {
    term: Term,
    values: Box<[u64]>,
}

/// All sources of a window.
#[derive(Clone, Debug, Default)]
pub(super) struct Sources {
    all: Vec<Source>,
    tables: usize,
    /// Sources about which something new is known.
    stale: Vec<u32>,
}

/// The table that a class has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TableOf {
    source: u32,
    table: u32,
}

impl TableOf {
    /// No table.
    pub(super) const NONE: Self = Self { source: NONE, table: NONE };
}

/// An operand: a constant, or a value for each value of a source.
#[derive(Clone, Copy, Debug)]
enum Operand {
    Constant(u64),
    Table { table: TableOf, plus: u64 },
}

impl Sources {
    /// Notes that something new is known of a class with this table.
    pub(super) fn touch(&mut self, table: TableOf) {
        if let Some(source) = self.all.get_mut(table.source as usize)
            && !source.is_stale
        {
            source.is_stale = true;
            self.stale.push(table.source);
        }
    }
}

impl Terms {
    /// The possible values of a term with few of them, each with its bit in the source's list.
    fn possible(&self, table: TableOf, plus: u64, width: Width) -> impl Iterator<Item = (u32, u64)> {
        let source = &self.sources.all[table.source as usize];
        let values = &source.tables[table.table as usize].values;
        let alive = source.alive;
        let numbered = values.iter().enumerate();
        numbered.filter_map(move |(index, value)| {
            let index = u32::try_from(index).ok()?;
            (alive >> index & 1 == 1).then_some((index, value.wrapping_add(plus) & width.mask()))
        })
    }

    /// The possible addresses at a place, if they are few.
    pub(crate) fn candidates(&self, place: Place) -> Option<Vec<(u32, u64)>> {
        let table = self.nodes[place.root as usize].table;
        if place.root == ZERO || table == TableOf::NONE {
            return None;
        }
        let width = self.nodes[place.root as usize].width;
        Some(self.possible(table, self.plus(table, place), width).collect())
    }

    /// A place's difference to the term that a table is of.
    fn plus(&self, table: TableOf, place: Place) -> u64 {
        let term = self.sources.all[table.source as usize].tables[table.table as usize].term;
        place.offset.wrapping_sub(self.place(term).offset)
    }

    /// Makes a class with few possible values a source.
    pub(crate) fn make_source(&mut self, place: Place) {
        let node = &self.nodes[place.root as usize];
        let unknown = !node.bits.known & node.width.mask();
        if place.root == ZERO
            || node.table != TableOf::NONE
            || unknown.count_ones() > MOST_BITS
            || self.sources.tables >= MOST_TABLES
        {
            return;
        }
        let term = Term { node: place.root, width: node.width, plus: 0 };
        let ones = node.bits.ones;
        // All subsets of the unknown bits.
        let mut values = vec![ones];
        let mut subset = 0_u64;
        loop {
            subset = subset.wrapping_sub(unknown) & unknown;
            if subset == 0 {
                break;
            }
            values.push(ones | subset);
        }
        let number = u32::try_from(self.sources.all.len()).expect("fewer sources than values");
        let alive = low_mask(u32::try_from(values.len()).expect("at most 32"));
        let tables = vec![Table { term, values: values.into() }];
        self.sources.all.push(Source { alive, tables, is_stale: false });
        self.sources.tables += 1;
        self.nodes[place.root as usize].table = TableOf { source: number, table: 0 };
    }

    /// The operand that a term is; `None` if many values are possible.
    fn operand(&mut self, term: Term) -> Option<Operand> {
        let place = self.find(term);
        if place.root == ZERO {
            return Some(Operand::Constant(place.offset));
        }
        if self.nodes[place.root as usize].table == TableOf::NONE {
            self.make_source(place);
        }
        let table = self.nodes[place.root as usize].table;
        (table != TableOf::NONE).then(|| Operand::Table { table, plus: self.plus(table, place) })
    }

    /// Learns from the possible values of a relation's operands, if they depend on one source.
    pub(super) fn by_sources(&mut self, operation: Operation, width: Width, [d, operands @ ..]: [Term; 4]) {
        self.result_by_sources(operation, width, d, operands);
        // A difference is an operand of a sum.
        if operation == Operation::Add {
            let [a, b, _] = operands;
            self.operand_by_sources(width, d, a, b);
            self.operand_by_sources(width, d, b, a);
        }
    }

    /// The operand of a sum that depends on a source because the sum and the other operand do.
    fn operand_by_sources(&mut self, width: Width, sum: Term, operand: Term, other: Term) {
        let is_known = |terms: &Self, term| {
            let root = terms.place(term).root;
            root == ZERO || terms.nodes[root as usize].table != TableOf::NONE
        };
        if is_known(self, operand) {
            return;
        }
        let (Some(sum), Some(other)) = (self.operand(sum), self.operand(other)) else { return };
        let source = match (sum, other) {
            (Operand::Table { table: sum, .. }, Operand::Table { table: other, .. })
                if sum.source != other.source =>
            {
                return;
            }
            (Operand::Table { table, .. }, _) | (_, Operand::Table { table, .. }) => table.source,
            _ => return,
        };
        let length = self.sources.all[source as usize].tables[0].values.len();
        let value = |terms: &Self, operand, index: usize| match operand {
            Operand::Constant(value) => value,
            Operand::Table { table, plus } => {
                let own = &terms.sources.all[source as usize].tables[table.table as usize];
                own.values[index].wrapping_add(plus)
            }
        };
        let values = (0..length)
            .map(|index| value(self, sum, index).wrapping_sub(value(self, other, index)) & width.mask());
        let values = values.collect();
        self.depends(operand, source, values);
    }

    /// Learns of a relation's result.
    fn result_by_sources(&mut self, operation: Operation, width: Width, d: Term, operands: [Term; 3]) {
        let used = match operation {
            Operation::Field { .. } | Operation::Permute(_) | Operation::LeadingZeros | Operation::IsZero => {
                1
            }
            Operation::Share { to, count, .. } => {
                // The result depends on the operand alone if all its other bits are known.
                let field = low_mask(count.into()) << to;
                if self.bits(d).known | field != u64::MAX {
                    return;
                }
                1
            }
            Operation::Carry | Operation::NoBorrow | Operation::Select => 3,
            _ => 2,
        };
        let mut source = None;
        let mut found = [Operand::Constant(0); 3];
        for (operand, found) in operands.into_iter().take(used).zip(&mut found) {
            let Some(operand) = self.operand(operand) else { return };
            if let Operand::Table { table, .. } = operand {
                if source.is_some_and(|source| source != table.source) {
                    return;
                }
                source = Some(table.source);
            }
            *found = operand;
        }
        let Some(source) = source else { return };
        let around = match operation {
            Operation::Share { to, count, .. } => self.bits(d).ones & !(low_mask(count.into()) << to),
            _ => 0,
        };
        let (alive, length) = {
            let source = &self.sources.all[source as usize];
            (source.alive, source.tables[0].values.len())
        };
        let mut values = vec![0; length];
        for (index, value) in values.iter_mut().enumerate().filter(|(index, _)| alive >> index & 1 == 1) {
            let [a, b, c] = [0, 1, 2].map(|number| match found[number] {
                Operand::Constant(value) => value,
                Operand::Table { table, plus } => {
                    let own = &self.sources.all[source as usize].tables[table.table as usize];
                    let mask = operands[number].width.mask();
                    own.values[index].wrapping_add(plus) & mask
                }
            });
            *value = relation::evaluate(operation, width, a, b, c) | around;
        }
        self.depends(d, source, values);
    }

    /// States that a load at one of a place's possible addresses found these values.
    pub(crate) fn found(&mut self, address: Place, value: Term, found: &[(u32, Bits)]) {
        let table = self.nodes[address.root as usize].table;
        let Some(source) = self.sources.all.get(table.source as usize) else { return };
        let (known, length) = (self.bits(value), source.tables[0].values.len());
        let possible = found.iter().filter(|(_, bits)| bits.may_equal(known));
        let alive = possible.clone().fold(0, |alive, (index, _)| alive | 1 << index);
        self.restrict(table.source, alive);
        let joined = possible.clone().map(|(_, bits)| *bits).reduce(Bits::join);
        if let Some(joined) = joined {
            self.learn(value, joined);
        }
        let constants =
            possible.map(|(index, bits)| Some((*index, bits.value()?))).collect::<Option<Vec<_>>>();
        if let Some(constants) = constants {
            let mut values = vec![0; length];
            for (index, value) in constants {
                values[index as usize] = value;
            }
            self.depends(value, table.source, values);
        }
    }

    /// States that a term has these values by those of a source.
    fn depends(&mut self, term: Term, source: u32, values: Vec<u64>) {
        let place = self.find(term);
        let table = self.nodes[place.root as usize].table;
        let bits = self.bits_at(place);
        let mut alive = 0;
        let own = (place.root != ZERO && table.source == source).then(|| {
            let plus = self.plus(table, place);
            (plus, &self.sources.all[source as usize].tables[table.table as usize].values)
        });
        for (index, value) in values.iter().enumerate() {
            let agrees =
                own.is_none_or(|(plus, own)| own[index].wrapping_add(plus) & term.width.mask() == *value);
            if agrees && bits.may_equal(Bits::constant(*value)) {
                alive |= 1 << index;
            }
        }
        self.restrict(source, alive);
        if place.root != ZERO && table == TableOf::NONE && self.sources.tables < MOST_TABLES {
            let tables = &mut self.sources.all[source as usize].tables;
            let number = u32::try_from(tables.len()).expect("fewer tables than values");
            tables.push(Table { term, values: values.into() });
            self.sources.tables += 1;
            self.nodes[place.root as usize].table = TableOf { source, table: number };
            self.sources.touch(TableOf { source, table: number });
        }
    }

    /// Rules out values of a source.
    fn restrict(&mut self, source: u32, alive: u64) {
        let entry = &mut self.sources.all[source as usize];
        let left = entry.alive & alive;
        if left != entry.alive {
            entry.alive = left;
            self.sources.touch(TableOf { source, table: 0 });
        }
        self.has_conflict |= left == 0;
    }

    /// Works off the sources about which something new is known. Whether there were any.
    pub(super) fn settle_sources(&mut self) -> bool {
        let Some(number) = self.sources.stale.pop() else { return false };
        let source = &mut self.sources.all[number as usize];
        source.is_stale = false;
        let source = &self.sources.all[number as usize];
        let mut alive = source.alive;
        for table in &source.tables {
            let bits = self.bits(table.term);
            for (index, value) in table.values.iter().enumerate() {
                if !bits.may_equal(Bits::constant(*value)) {
                    alive &= !(1 << index);
                }
            }
        }
        if alive == 0 {
            self.has_conflict = true;
            return true;
        }
        self.sources.all[number as usize].alive = alive;
        let facts = self.sources.all[number as usize].tables.iter().map(|table| {
            let values = table.values.iter().enumerate().filter(|(index, _)| alive >> index & 1 == 1);
            let joined = values.map(|(_, value)| Bits::constant(*value)).reduce(Bits::join);
            (table.term, joined)
        });
        for (term, joined) in facts.collect::<Vec<_>>() {
            if let Some(joined) = joined {
                self.learn(term, joined);
            }
            // Fewer addresses are possible, even if no bit became known.
            let root = self.find(term).root;
            self.concerns_memory |= root != ZERO && self.nodes[root as usize].in_memory;
        }
        true
    }
}
