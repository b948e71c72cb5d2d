//! Differences between two captures of one program, as text, tables and JSON.

mod json;
mod tables;
mod text;
use std::sync::Arc;

use std::collections::BTreeMap;

use tracewalk::ids::{Address, TraceId};
use tracewalk::program::Scope;

use tracewalk_analysis::Code;
use tracewalk_analysis::clock::{Cost, Unit};
use tracewalk_analysis::coverage::Difference;
use tracewalk_analysis::diff::Aftermath;
use tracewalk_analysis::profile::{LabelKind, Profile, Tree, TreeOptions};

pub use json::write_diff_json;
pub use tables::DIFF_TABLES;
pub use text::write_diff_text;

/// The differences.
#[derive(Debug)]
pub struct DiffReport {
    /// The names of the captures.
    pub names: [String; 2],
    /// By source.
    pub sources: Vec<SourceDiff>,
    /// Whether both captures were decoded to their ends.
    pub complete: bool,
}

/// The differences between one source's traces.
#[derive(Debug)]
pub struct SourceDiff {
    /// The source's trace ID, in each.
    pub ids: [Option<TraceId>; 2],
    /// The program of each.
    pub code: [Arc<Code>; 2],
    /// How many instructions ran, in each.
    pub instructions: [u64; 2],
    /// The point at which the paths part, seen from each; `None` if they are the same.
    pub parting: Option<[Aftermath; 2]>,
    /// Functions that cost more in one than in the other.
    pub functions: Vec<FunctionDiff>,
    /// The lines that only one trace runs, and the functions that only the second one runs; `None` without a program.
    pub coverage: Option<(Difference, BTreeMap<String, Vec<String>>)>,
}

/// A function that cost more in one than in the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionDiff {
    /// The name.
    pub name: String,
    /// The start.
    pub address: Option<Address>,
    /// How often it was called, in each.
    pub calls: [u64; 2],
    /// The function's own cost, in each.
    pub own: [Cost; 2],
    /// The cost including the functions that it called, in each.
    pub total: [Cost; 2],
}

impl DiffReport {
    /// Whether nothing differs.
    #[must_use]
    pub fn is_same(&self) -> bool {
        self.sources.iter().all(SourceDiff::is_same)
    }
}

impl SourceDiff {
    /// Whether nothing differs.
    #[must_use]
    pub fn is_same(&self) -> bool {
        let covers_the_same = self
            .coverage
            .as_ref()
            .is_none_or(|(difference, gained)| *difference == Difference::default() && gained.is_empty());
        self.parting.is_none() && self.functions.is_empty() && covers_the_same
    }
}

impl FunctionDiff {
    /// The functions that differ, the greatest difference first. Costs that only one of the captures can measure are not
    /// compared.
    #[must_use]
    pub fn between(profiles: [(&Profile, &Code); 2]) -> Vec<Self> {
        let has = |unit| profiles.iter().all(|(profile, _)| profile.measures.has(unit));
        let units = [Unit::Instructions, Unit::Cycles, Unit::Time].map(|unit| (unit, has(unit)));
        let known = |cost: Cost| {
            let part = |wanted: Unit| {
                let is_known = units.iter().any(|(unit, known)| *unit == wanted && *known);
                if is_known { cost.in_unit(wanted) } else { 0 }
            };
            Cost {
                instructions: part(Unit::Instructions),
                cycles: part(Unit::Cycles),
                time: part(Unit::Time),
            }
        };
        let mut found = BTreeMap::<(Option<Address>, Scope, String), Self>::new();
        for (index, (profile, code)) in profiles.into_iter().enumerate() {
            let tree = Tree::of(profile, code, TreeOptions { inlined: false, sites: false });
            for function in tree.functions(|cost| cost.instructions) {
                let label = &tree.labels[function.function.index()];
                if label.kind != LabelKind::Function {
                    continue;
                }
                let entry =
                    found.entry((label.address, label.scope, label.name.clone())).or_insert_with(|| Self {
                        name: label.name.clone(),
                        address: label.address,
                        calls: [0; 2],
                        own: [Cost::default(); 2],
                        total: [Cost::default(); 2],
                    });
                entry.calls[index] += function.calls;
                entry.own[index] += known(function.own);
                entry.total[index] += known(function.total);
            }
        }
        let mut differing = found.into_values().filter(Self::differs).collect::<Vec<_>>();
        differing.sort_by_key(|function| {
            let [a, b] = function.own;
            std::cmp::Reverse(a.instructions.abs_diff(b.instructions))
        });
        differing
    }

    fn differs(&self) -> bool {
        self.calls[0] != self.calls[1] || self.own[0] != self.own[1]
    }
}
