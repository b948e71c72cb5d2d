//! The clocks that captures have (cycles, timestamps), by their beginning, and the axis of an answer: that of saved answers, or the
//! best that all captures have.

use std::path::PathBuf;

use tracewalk_analysis::Window;
use tracewalk_analysis::clock::Unit;
use tracewalk_analysis::drive::{NoProgress, Spread};
use tracewalk_analysis::interrupts::{Measured, ProgramActivities};
use tracewalk_analysis::itm::ItmEvent;
use tracewalk_analysis::timeline::{Probe, Probing, Scale};

use crate::additive::OfInterrupts;
use crate::error::RunError;
use crate::gather::{GatherFront, Places, PlacesError, PlacesErrorKind};
use crate::model::Itm;
use crate::observer::Observer;
use crate::outcome::Follow;
use crate::session::Session;
use crate::window::{View, WindowError};

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
        if self.is_itm_alone() {
            // An ITM's only axis is that of its timestamps.
            let is_timed = |itm: &Itm| {
                let mut records = self.itm_records(itm);
                records.any(|record| matches!(record.event, ItmEvent::LocalTime { .. }))
            };
            let has_time = self.is_live() || self.itms_alone().iter().any(is_timed);
            return match unit {
                None | Some(Unit::Time) if has_time => Ok(Scale::of(&[], Unit::Time, frequency)),
                unit => Err(WindowError::NotMeasured(unit.unwrap_or(Unit::Time)).into()),
            };
        }
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
            if session.is_itm_alone() {
                return Ok(None);
            }
            session.probe(how.names.as_deref(), observer).map(Some)
        };
        self.gather.gathering().each(self.captures(), probe, |of| {
            probed.extend(of.found.ok());
            Ok::<(), F::Error>(())
        })?;
        // ITMs alone have no other axis than their timestamps.
        let is_of_itms = !probed.is_empty() && probed.iter().all(Option::is_none);
        let probed = probed.into_iter().flatten().collect::<Vec<_>>();
        Ok(if is_of_itms { Unit::Time } else { Probe::best(&probed) })
    }
}
