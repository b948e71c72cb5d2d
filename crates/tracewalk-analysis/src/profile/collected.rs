//! The profiles of several captures, by program and source.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::Profile;
use crate::programs::{Merge, Programs, SourceId};

/// The costs of several programs' functions.
pub type Profiles = Programs<ProgramProfiles>;

/// The costs of one program's functions, by its sources.
#[derive(Clone, Debug, Default)]
pub struct ProgramProfiles {
    /// Each source's profile.
    pub sources: BTreeMap<SourceId, Profile>,
}

impl Merge for ProgramProfiles {
    fn merge(&mut self, other: Self) {
        for (source, profile) in other.sources {
            match self.sources.entry(source) {
                // Most programs have one capture: its profile is stored without a merge.
                Entry::Vacant(place) => drop(place.insert(profile)),
                Entry::Occupied(mut own) => own.get_mut().merge(&profile),
            }
        }
    }
}
