//! The profiles of several captures, by program and source.

use std::collections::{BTreeMap, BTreeSet};

use super::Profile;
use crate::analysis::programs::{Merge, Programs, SourceId};

/// What the functions of several programs cost.
pub type Profiles = Programs<ProgramProfiles>;

/// What one program's functions cost, as its sources tell.
#[derive(Clone, Debug, Default)]
pub struct ProgramProfiles {
    /// The file names of its images.
    pub images: BTreeSet<String>,
    /// Each source's profile.
    pub sources: BTreeMap<SourceId, Profile>,
}

impl Merge for ProgramProfiles {
    fn images(&self) -> &BTreeSet<String> {
        &self.images
    }

    fn images_mut(&mut self) -> &mut BTreeSet<String> {
        &mut self.images
    }

    fn merge(&mut self, other: Self) {
        self.images.extend(other.images);
        for (source, profile) in other.sources {
            self.sources.entry(source).or_default().merge(&profile);
        }
    }
}
