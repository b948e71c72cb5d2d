//! Answers that add up over captures (counts, coverage, profiles): one function for each, for all front ends.

use std::collections::BTreeMap;

use tracewalk_analysis::Window;
use tracewalk_analysis::counts::CountedBinary;
use tracewalk_analysis::coverage::ProgramCoverage;
use tracewalk_analysis::profile::{Profiling, ProgramProfiles};
use tracewalk_analysis::saved::Save;

use crate::error::RunError;
use crate::model::Source;
use crate::observer::Observer;
use crate::outcome::{Follow, Outcome};
use crate::program::FollowedProgram;
use crate::session::Session;

/// An answer for each program that a source ran.
pub type OfPrograms<T> = Vec<(FollowedProgram, T)>;

/// An answer that adds up: the sum of the answers of two captures is the answer of both.
pub trait Additive: Save + Send {
    /// The parts of the program that the answer needs; nothing else is read.
    #[must_use]
    fn needs(how: &Follow) -> Follow {
        how.clone()
    }

    /// Computes the answer for a source. `name` is the capture's name in the answer.
    ///
    /// # Errors
    ///
    /// If a program is needed and missing, an image cannot be used, or the rest of the capture cannot be opened.
    fn find(
        session: &mut Session,
        source: &Source,
        how: &Follow,
        name: &str,
        observer: &dyn Observer,
    ) -> Result<Outcome<OfPrograms<Self>>, RunError>;
}

impl Additive for CountedBinary {
    /// Counts are by address: no names or lines are looked up.
    fn needs(how: &Follow) -> Follow {
        Follow { names: None, ..how.clone() }
    }

    fn find(
        session: &mut Session,
        source: &Source,
        how: &Follow,
        name: &str,
        observer: &dyn Observer,
    ) -> Result<Outcome<OfPrograms<Self>>, RunError> {
        session.counts(source, how, name, observer)
    }
}

impl Additive for ProgramCoverage {
    fn find(
        session: &mut Session,
        source: &Source,
        how: &Follow,
        name: &str,
        observer: &dyn Observer,
    ) -> Result<Outcome<OfPrograms<Self>>, RunError> {
        session.coverage(source, how, name, observer)
    }
}

impl Additive for ProgramProfiles {
    fn find(
        session: &mut Session,
        source: &Source,
        how: &Follow,
        _: &str,
        observer: &dyn Observer,
    ) -> Result<Outcome<OfPrograms<Self>>, RunError> {
        let outcome = session.run_observed(source, how, Profiling::new(Window::default()), observer)?;
        let program = session.followed(source, &outcome.code)?;
        let id = session.source_id(source);
        Ok(outcome.map(|found, _| vec![(program, Self { sources: BTreeMap::from([(id, found)]) })]))
    }
}
