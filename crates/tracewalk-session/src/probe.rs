//! The clocks that a capture has (cycles, timestamps), by its beginning.

use std::path::PathBuf;

use tracewalk_analysis::drive::{NoProgress, Spread};
use tracewalk_analysis::timeline::{Probe, Probing};

use crate::error::RunError;
use crate::observer::Observer;
use crate::session::Session;

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
}
