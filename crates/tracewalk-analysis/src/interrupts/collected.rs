//! Durations of several captures, by program and source.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Activities;
use crate::clock::Unit;
use crate::programs::{Merge, Programs, SourceId};

/// How long exceptions and functions of several programs took.
pub type AllActivities = Programs<ProgramActivities>;

/// The durations of one program's exceptions and functions, by its sources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramActivities {
    /// How durations were measured; `None` if none were.
    pub measured: Option<Measured>,
    /// Each source's exceptions and functions.
    pub sources: BTreeMap<SourceId, Activities>,
}

/// How durations were measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// The unit of durations.
    pub unit: Unit,
    /// Whether places between timestamps were always interpolated by cycles; otherwise by instructions.
    pub counts_cycles: bool,
    /// Whether functions were measured as well.
    pub functions: bool,
}

impl Merge for ProgramActivities {
    fn measure(&self) -> Option<String> {
        let Measured { unit, functions, .. } = self.measured?;
        Some(format!("{}{}", unit.name(), if functions { " with functions" } else { "" }))
    }

    fn merge(&mut self, other: Self) {
        if let Some(measured) = other.measured {
            let own = self.measured.get_or_insert(measured);
            own.counts_cycles &= measured.counts_cycles;
        }
        for (source, activities) in other.sources {
            self.sources.entry(source).or_default().merge(&activities);
        }
    }
}
