//! What exceptions of several places are measured in: the measure of saved answers, or the best that all captures have.

use tracewalk_analysis::Window;
use tracewalk_analysis::clock::Unit;
use tracewalk_analysis::interrupts::{Measured, ProgramActivities};
use tracewalk_analysis::timeline::Probe;

use super::{GatherFront, Places, PlacesError, PlacesErrorKind};
use crate::additive::OfInterrupts;
use crate::observer::Observer;
use crate::outcome::Follow;
use crate::session::Session;
use crate::window::View;

impl Places<'_, ProgramActivities> {
    /// The question of exceptions, in a unit that all places have.
    ///
    /// # Errors
    ///
    /// If a saved answer has another unit than `stated`, or lacks `functions`.
    pub fn interrupts<F: GatherFront>(
        &self,
        window: Window,
        (stated, frequency): (Option<Unit>, Option<f64>),
        functions: bool,
    ) -> Result<OfInterrupts, F::Error> {
        self.refuse_window(&window)?;
        let saved = self.measured(stated, functions)?;
        let unit = match (stated.or(saved.map(|saved| saved.unit)), self.captures()) {
            (None, [_, _, ..]) => Some(self.common_unit::<F>()?),
            (unit, _) => unit,
        };
        let functions = functions || saved.is_some_and(|saved| saved.functions);
        Ok(OfInterrupts { view: View::new(window, stated), unit, frequency, functions })
    }

    /// How the saved answers were measured, if there are any.
    fn measured(&self, unit: Option<Unit>, functions: bool) -> Result<Option<Measured>, PlacesError> {
        self.first_saved(|path, part| {
            let Some(measured) = part.programs.values().find_map(|program| program.found.measured) else {
                return Ok(None);
            };
            if let Some(expected) = unit.filter(|unit| *unit != measured.unit) {
                return Err(PlacesErrorKind::OtherUnit { found: measured.unit, expected }.at(path));
            }
            if functions && !measured.functions {
                return Err(PlacesErrorKind::NoFunctions.at(path));
            }
            Ok(Some(measured))
        })
    }

    /// The best unit that all captures have, as far as they can be opened.
    fn common_unit<F: GatherFront>(&self) -> Result<Unit, F::Error> {
        let mut probed = Vec::new();
        let probe = |session: &mut Session, how: &Follow, _: &str, observer: &dyn Observer| {
            session.probe(how.names.as_deref(), observer)
        };
        self.gather.gathering().each(self.captures(), probe, |of| {
            probed.extend(of.found.ok());
            Ok::<(), F::Error>(())
        })?;
        Ok(Probe::best(&probed))
    }
}
