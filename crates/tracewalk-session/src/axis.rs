//! The clocks that a capture has (cycles, timestamps), by its beginning, and the axis of an answer.

use std::path::PathBuf;

use tracewalk_analysis::clock::Unit;
use tracewalk_analysis::drive::{NoProgress, Spread};
use tracewalk_analysis::timeline::{Probe, Probing, Scale};

use crate::error::RunError;
use crate::observer::Observer;
use crate::outcome::Follow;
use crate::session::Session;
use crate::window::WindowError;

/// How much of a capture is decoded.
const PROBE: usize = 4 << 20;

impl Session {
    /// The clocks of each source in its first megabytes; [`Probe::best`] is an axis that all
    /// of them have. Names are those of [`Follow`](crate::Follow).
    ///
    /// # Errors
    ///
    /// If an image cannot be used.
    pub fn probe(
        &mut self,
        names: Option<&[PathBuf]>,
        observer: &dyn Observer,
    ) -> Result<Vec<Probe>, RunError> {
        let mut probes = Vec::new();
        for source in self.sources().to_vec() {
            let code = self.code(&source, names, observer)?;
            let mut probe = Probe::default();
            let input = self.input(&source, &NoProgress).head(PROBE);
            let (mut follower, alone) =
                (self.shared.follower(&source.config, &code.program), Spread::over(1));
            follower.flow_parts(&input, alone.for_counts(), &Probing::default(), |part| {
                probe.add(&part.part.probe);
                Ok(())
            })?;
            // The answer begins with what was learned here.
            self.shared.keep_learned(&source.config, &code.program, follower.into_learned());
            probes.push(probe);
        }
        Ok(probes)
    }

    /// The axis of a unit, or of the best unit that all sources have. A capture that is still arriving may have more units than
    /// were seen.
    ///
    /// # Errors
    ///
    /// If the trace lacks the unit, or an image cannot be used.
    pub fn scale(
        &mut self,
        unit: Option<Unit>,
        frequency: Option<f64>,
        how: &Follow,
        observer: &dyn Observer,
    ) -> Result<Scale, RunError> {
        let probed = [self.probe(how.names.as_deref(), observer)?];
        let unit = unit.unwrap_or_else(|| Probe::best(&probed));
        let [probes] = probed;
        let lacks = |probe: &Probe| probe.instructions > 0 && !probe.has(unit);
        if !self.is_live() && probes.iter().any(lacks) {
            return Err(WindowError::NotMeasured(unit).into());
        }
        // Interpolation between timestamps is by each capture alone, so that saved and followed captures add up to the same.
        Ok(Scale::of(&probes, unit, frequency))
    }
}
