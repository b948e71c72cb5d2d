//! The sum so far.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tracewalk_analysis::captures::{CaptureOutcome, Captures, OneOfMany};
use tracewalk_analysis::programs::Programs;
use tracewalk_analysis::saved::Save;

use super::alike::Copies;
use super::parts::{Parts, RunNames};
use super::search::Place;
use super::{GatherFront, Gathered, PlacesError, PlacesErrorKind, PlacesNotice};
use crate::additive::Answered;
use crate::gathering::OfCapture;

/// The sum so far.
#[derive(Debug)]
pub(super) struct Sum<T> {
    pub(super) found: Programs<T>,
    /// The captures that count, by canonical name.
    pub(super) captures: BTreeMap<PathBuf, Counted>,
    /// The captures that were left out in this run.
    left_out: BTreeMap<PathBuf, OneOfMany>,
    /// The places of this run, by how they were named.
    names: BTreeMap<PathBuf, (PathBuf, u64)>,
    copies: Copies,
    /// The number of copies in this run, and the first pair.
    copied: (u64, Option<[PathBuf; 2]>),
}

/// A capture that counts.
#[derive(Clone, Debug, serde::Deserialize, serde::Serialize)]
pub(super) struct Counted {
    /// A hash of the lengths and times of its files.
    pub(super) stamp: u64,
    pub(super) row: OneOfMany,
}

impl<T> Default for Sum<T> {
    fn default() -> Self {
        Self {
            found: Programs::default(),
            captures: BTreeMap::new(),
            left_out: BTreeMap::new(),
            names: BTreeMap::new(),
            copies: Copies::default(),
            copied: (0, None),
        }
    }
}

impl<T: Save> Sum<T> {
    /// Whether a place counts already, as it is now.
    pub(super) fn knows(&mut self, place: &Place) -> Result<bool, PlacesError> {
        self.names.insert(place.path.clone(), (place.known_as.clone(), place.stamp));
        match self.captures.get(&place.known_as) {
            None => Ok(false),
            Some(counted) if counted.stamp == place.stamp => Ok(true),
            Some(_) => Err(PlacesErrorKind::CaptureChanged.at(&place.path)),
        }
    }

    /// Adds a saved file.
    pub(super) fn saved(
        &mut self,
        place: &Place,
        runs: Option<&mut RunNames>,
        front: &impl GatherFront,
    ) -> Result<(), PlacesError> {
        let mut part = Parts::default().read::<T>(&place.path, front)?;
        if let Some(runs) = runs {
            runs.name(&place.path, &mut part, front);
        }
        self.found.add_all(part);
        let row = OneOfMany::saved(place.path.display().to_string());
        self.captures.insert(place.known_as.clone(), Counted { stamp: place.stamp, row });
        Ok(())
    }

    /// Adds the answer of a capture.
    pub(super) fn capture(
        &mut self,
        of: OfCapture<Answered<T>>,
        gathered: &mut Gathered<T>,
        front: &impl GatherFront,
    ) {
        let row = front.row(&of);
        let (known_as, stamp) = self.names.get(&of.capture).cloned().unwrap_or((of.capture, 0));
        match of.found {
            Ok(answered) => {
                if let Some(other) = self.copies.add(&known_as, answered.files.clone()) {
                    self.copied.0 += 1;
                    self.copied.1.get_or_insert_with(|| [known_as.clone(), other.to_owned()]);
                }
                gathered.add_to(&mut self.found, &known_as, answered);
                self.captures.insert(known_as, Counted { stamp, row });
            }
            Err(_) => drop(self.left_out.insert(known_as, row)),
        }
    }

    /// Warns of copies: two runs may be equal, but a copy counts twice.
    pub(super) fn say_copies(&self, front: &impl GatherFront) {
        if let (count, Some([file, other])) = &self.copied {
            let (file, other) = (file.clone(), other.clone());
            front.notice(&PlacesNotice::SameTrace { count: Some(*count), file, other });
        }
    }

    /// The captures that count, without the saved files.
    pub(super) fn counted(&self) -> impl Iterator<Item = &PathBuf> {
        let followed = |counted: &Counted| counted.row.outcome != CaptureOutcome::Saved;
        self.captures.iter().filter(move |(_, counted)| followed(counted)).map(|(path, _)| path)
    }

    /// The sum, and the table of captures and their outcomes.
    pub(super) fn into_parts(self) -> (Programs<T>, Captures) {
        let counted = self.captures.into_iter().map(|(path, counted)| (path, counted.row));
        let mut rows = self.left_out;
        rows.extend(counted);
        let table = Captures { captures: rows.into_values().collect(), complete: self.found.complete };
        (self.found, table)
    }
}
