//! Counts by binary, that is, by file of a program.

use std::collections::BTreeMap;
use std::ops::Range as Stretch;

use serde::{Deserialize, Serialize};
use tracewalk::ids::Address;
use tracewalk::program::{Program, Scope};

use super::{Branch, Counts, Range, Way, add};
use crate::programs::Merge;
use crate::{Context, Statistics};

/// The location of one file of a program in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binary {
    /// The contexts in which the file is visible.
    pub scope: Scope,
    /// The memory that it fills, in the file's order.
    pub stretches: Vec<Stretch<u64>>,
}

/// The counts of one binary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CountedBinary {
    /// The sources with counts of it, in order.
    pub sources: Vec<CountedSource>,
    /// The address of its first stretch; `None` if nothing was counted.
    pub base: Option<Address>,
    /// How often each range ran.
    pub ranges: BTreeMap<Range, u64>,
    /// How often execution went each way from each of its branches. `None` for an address outside of this binary.
    pub branches: BTreeMap<(Option<Address>, Option<Address>, Way), u64>,
}

/// The amounts that one source of one capture contributes to a binary, and those that it lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CountedSource {
    /// The capture's name.
    pub capture: String,
    /// The source's name in the capture: its trace ID, or `-`.
    pub source: String,
    /// The protocol's name.
    pub protocol: String,
    /// Bytes of trace.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
    /// Malformed stretches.
    pub malformed: u64,
    /// Instructions that were followed, in any binary.
    pub followed: u64,
    /// Places where execution could not be followed.
    pub gaps: u64,
    /// Instructions that were left out because damage puts them in doubt.
    pub left_out: u64,
    /// Branches to an address that the trace lacks, in any binary.
    pub unrecorded: u64,
    /// Instructions that were counted in this binary.
    pub counted: u64,
    /// Instructions of transactions that failed, or whose commit is not in the trace, in any binary; they are not counted. Saved
    /// only if there are any.
    #[serde(default, skip_serializing_if = "crate::saved::words::is_zero")]
    pub uncommitted: u64,
}

/// Splits counts between the binaries of a program.
#[derive(Clone, Debug)]
pub struct Split<'a> {
    program: &'a Program,
    binaries: &'a [Binary],
}

impl CountedSource {
    /// A source with these statistics.
    #[must_use]
    pub fn of(statistics: &Statistics) -> Self {
        let Statistics { bytes, packets, malformed, instructions, gaps, .. } = *statistics;
        Self { bytes, packets, malformed, followed: instructions, gaps, ..Self::default() }
    }
}

impl<'a> Split<'a> {
    /// For a program that was made of these binaries.
    #[must_use]
    pub const fn new(program: &'a Program, binaries: &'a [Binary]) -> Self {
        Self { program, binaries }
    }

    /// The counts of each binary, in their order.
    #[must_use]
    pub fn counts(&self, counts: &BTreeMap<Context, Counts>, source: &CountedSource) -> Vec<CountedBinary> {
        let unrecorded = counts.values().map(|counts| counts.unrecorded).sum();
        let nothing = |binary: &Binary| CountedBinary {
            sources: vec![CountedSource { unrecorded, ..source.clone() }],
            base: binary.stretches.first().map(|first| Address::new(first.start)),
            ..CountedBinary::default()
        };
        let mut found = self.binaries.iter().map(nothing).collect::<Vec<_>>();
        for (context, counts) in counts {
            for (range, count) in &counts.ranges {
                if let Some(binary) = self.at(*context, range.first).and_then(|at| found.get_mut(at)) {
                    add(&mut binary.ranges, *range, *count);
                    if let Some(source) = binary.sources.first_mut() {
                        let instructions = count.saturating_mul(range.instructions.into());
                        source.counted = source.counted.saturating_add(instructions);
                    }
                }
            }
            for (Branch { from, to, way }, count) in &counts.branches {
                let (of_from, of_to) = (self.at(*context, *from), self.at(*context, *to));
                let is_within = of_from == of_to;
                if let Some(binary) = of_from.and_then(|at| found.get_mut(at)) {
                    add(&mut binary.branches, (Some(*from), is_within.then_some(*to), *way), *count);
                }
                if let Some(binary) = of_to.filter(|_| !is_within).and_then(|at| found.get_mut(at)) {
                    add(&mut binary.branches, (None, Some(*to), *way), *count);
                }
            }
        }
        found
    }

    /// The binary at an address.
    fn at(&self, (context_id, vmid): Context, address: Address) -> Option<usize> {
        let scope = self.program.scope_at(context_id, vmid, address);
        let holds = |binary: &Binary| {
            binary.scope == scope && binary.stretches.iter().any(|stretch| stretch.contains(&address.get()))
        };
        self.binaries.iter().position(holds)
    }
}

impl CountedBinary {
    /// The same counts at other addresses. Counts whose address `to` does not map are left out.
    #[must_use]
    pub fn moved(self, to: impl Fn(Address) -> Option<Address>) -> Self {
        let mut moved = Self { sources: self.sources, base: self.base.and_then(&to), ..Self::default() };
        for (range, count) in self.ranges {
            if let Some((first, last)) = to(range.first).zip(to(range.last)) {
                add(&mut moved.ranges, Range { first, last, ..range }, count);
            }
        }
        for ((from, target, way), count) in self.branches {
            let branch = (from.and_then(&to), target.and_then(&to), way);
            if (branch.0, branch.1) != (None, None) {
                add(&mut moved.branches, branch, count);
            }
        }
        moved
    }
}

impl Merge for CountedBinary {
    const OF_FILES: bool = true;

    fn merge(&mut self, other: Self) {
        for source in other.sources {
            let at = self.sources.partition_point(|known| *known <= source);
            self.sources.insert(at, source);
        }
        self.base = self.base.or(other.base);
        for (range, count) in other.ranges {
            add(&mut self.ranges, range, count);
        }
        for (branch, count) in other.branches {
            add(&mut self.branches, branch, count);
        }
    }
}
