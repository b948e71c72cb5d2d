//! Answers that add up over captures (counts, coverage, profiles, interrupts): one question for each, for all front ends.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use tracewalk::protocol::itm::Packet;
use tracewalk_analysis::clock::Unit;
use tracewalk_analysis::counts::CountedBinary;
use tracewalk_analysis::coverage::ProgramCoverage;
use tracewalk_analysis::interrupts::{Measured, Measuring, ProgramActivities, ReportedActivities};
use tracewalk_analysis::itm::ItmEvent;
use tracewalk_analysis::profile::{Profile, Profiling, ProgramProfiles};
use tracewalk_analysis::programs::{Merge, ProgramId, Programs, SourceId};
use tracewalk_analysis::saved::Save;
use tracewalk_analysis::timeline::Scale;
use tracewalk_analysis::{Code, Section, Statistics, Window};

use crate::error::{OpenError, RunError};
use crate::model::{Itm, Source};
use crate::observer::Observer;
use crate::outcome::{Follow, Outcome};
use crate::program::FollowedProgram;
use crate::session::Session;
use crate::window::View;

/// An answer for each program that a source ran.
pub type OfPrograms<T> = Vec<(FollowedProgram, T)>;

/// A question whose answers add up: the sum of the answers of two captures is the answer of both.
pub trait Additive: Sync {
    /// The answer for a program.
    type Answer: Save + Send;

    /// The parts of the program that the answer needs; nothing else is read.
    #[must_use]
    fn needs(&self, how: &Follow) -> Follow {
        how.clone()
    }

    /// Looks at a capture before its sources are followed, and returns its axis if the answer has one.
    ///
    /// # Errors
    ///
    /// If the capture lacks what is asked for, or an image cannot be used.
    fn begin(
        &self,
        _session: &mut Session,
        _how: &Follow,
        _observer: &dyn Observer,
    ) -> Result<Option<Scale>, RunError> {
        Ok(None)
    }

    /// Computes the answer for a source. `name` is the capture's name in the answer.
    ///
    /// # Errors
    ///
    /// If a program is needed and missing, an image cannot be used, or the rest of the capture cannot be opened.
    fn find(
        &self,
        session: &mut Session,
        source: &Source,
        how: &Follow,
        of: (&str, Option<Scale>),
        observer: &dyn Observer,
    ) -> Result<Outcome<OfPrograms<Self::Answer>>, RunError>;

    /// Computes the answer for an ITM without instruction trace; `None` if the answer needs program flow.
    ///
    /// # Errors
    ///
    /// If a part of the trace or another unit is asked for, or an image cannot be used.
    fn of_itm(
        &self,
        _session: &mut Session,
        _itm: &Itm,
        _how: &Follow,
        _observer: &dyn Observer,
    ) -> Result<Option<(FollowedProgram, Self::Answer)>, RunError> {
        Ok(None)
    }

    /// Completes the answer for a source when all of the capture was followed.
    fn end(&self, _session: &Session, _source: &Source, _name: &str, _found: &mut Self::Answer) {}
}

/// The answer of a capture, or of several.
#[derive(Clone, Debug)]
pub struct Answered<T> {
    /// The answer for each program.
    pub programs: Programs<T>,
    /// The programs.
    pub code: BTreeMap<ProgramId, Arc<Code>>,
    /// The number of sources that were followed.
    pub sources: u64,
    /// The amounts of trace and execution.
    pub statistics: Statistics,
    /// The files that hold the trace.
    pub files: Vec<PathBuf>,
    /// The files of the images; `None` for a system's recording, in which each binary is a program of its own.
    pub images: Option<Vec<PathBuf>>,
}

impl<T> Default for Answered<T> {
    fn default() -> Self {
        Self {
            programs: Programs::default(),
            code: BTreeMap::new(),
            sources: 0,
            statistics: Statistics::default(),
            files: Vec::new(),
            images: None,
        }
    }
}

impl<T> Answered<T> {
    /// The program of this identity.
    ///
    /// # Errors
    ///
    /// [`RunError::NoProgram`] if it is not known.
    pub fn code(&self, id: &ProgramId) -> Result<&Arc<Code>, RunError> {
        self.code.get(id).ok_or(RunError::NoProgram)
    }

    /// The sources with what was found of each, and their programs.
    ///
    /// # Errors
    ///
    /// [`RunError::NoProgram`] if a program is not known.
    pub fn sections<U>(
        &self,
        sources: impl Fn(&T) -> &BTreeMap<SourceId, U>,
        found: impl Fn(&U) -> U,
    ) -> Result<Vec<(Section, U)>, RunError> {
        let mut sections = Vec::new();
        for (id, program) in &self.programs.programs {
            let code = self.code(id)?;
            sections.extend(sources(&program.found).iter().map(|(source, of)| {
                let SourceId { id, protocol, number } = *source;
                (Section { id, protocol, number, code: Arc::clone(code) }, found(of))
            }));
        }
        sections.sort_by_key(|(section, _)| section.id);
        Ok(sections)
    }
}

impl<T: Merge> Answered<T> {
    /// The names of the known programs.
    #[must_use]
    pub fn names(&self) -> Vec<(Arc<Code>, String)> {
        let programs = self.programs.programs.iter();
        let named =
            programs.filter_map(|(id, program)| Some((Arc::clone(self.code.get(id)?), program.name())));
        named.filter(|(_, name)| !name.is_empty()).collect()
    }
}

impl Session {
    /// The answer to a question, over all sources. `name` is the capture's name in the answer.
    ///
    /// ```
    /// use tracewalk_session::{Follow, Notices, OfCounts, Request, Session};
    ///
    /// let (mut session, _) = Session::open(Request::new("../../testdata/examples/a7-etmv3/capture.toml"))?;
    /// let answered = session.answer(&OfCounts, &Follow::default(), "example", &Notices::default())?;
    /// assert_eq!((answered.sources, answered.programs.programs.len()), (1, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Additive::begin`] and [`Additive::find`].
    pub fn answer<Q: Additive>(
        &mut self,
        question: &Q,
        how: &Follow,
        name: &str,
        observer: &dyn Observer,
    ) -> Result<Answered<Q::Answer>, RunError> {
        let how = question.needs(how);
        let scale = question.begin(self, &how, observer)?;
        let mut answered = Answered::default();
        let mut followed = Vec::new();
        self.each_source(observer, |session, source| {
            let outcome = question.find(session, source, &how, (name, scale), observer)?;
            answered.sources += 1;
            answered.statistics.add(&outcome.statistics);
            answered.programs.complete &= outcome.complete;
            followed
                .extend(outcome.found.into_iter().map(|(program, found)| (source.clone(), program, found)));
            Ok::<(), RunError>(())
        })?;
        let mut all = Vec::new();
        for (source, program, mut found) in followed {
            question.end(self, &source, name, &mut found);
            all.push((program, found));
        }
        for itm in self.itms_alone() {
            let Some(found) = question.of_itm(self, &itm, &how, observer)? else {
                return Err(OpenError::OnlyItm(self.request.capture.clone()).into());
            };
            answered.sources += 1;
            all.push(found);
        }
        for (program, found) in all {
            answered.programs.add(program.id.clone(), program.images, found);
            answered.code.insert(program.id, program.code);
        }
        answered.files = self.capture().buffers.iter().map(|buffer| buffer.file.clone()).collect();
        if self.capture().recorded.is_none() {
            let images = self.capture().images.iter().map(|image| image.file.clone());
            answered.images = Some(images.collect());
        }
        Ok(answered)
    }
}

/// How often each stretch and branch of each binary ran.
#[derive(Clone, Copy, Debug, Default)]
pub struct OfCounts;

impl Additive for OfCounts {
    type Answer = CountedBinary;

    /// Counts are by address: no names or lines are looked up.
    fn needs(&self, how: &Follow) -> Follow {
        Follow { names: None, ..how.clone() }
    }

    fn find(
        &self,
        session: &mut Session,
        source: &Source,
        how: &Follow,
        (name, _): (&str, Option<Scale>),
        observer: &dyn Observer,
    ) -> Result<Outcome<OfPrograms<CountedBinary>>, RunError> {
        session.counts(source, how, name, observer)
    }
}

/// Which code ran.
#[derive(Clone, Copy, Debug, Default)]
pub struct OfCoverage {
    /// Whether the capture is a run of its own, which the answer names.
    pub by_run: bool,
}

impl Additive for OfCoverage {
    type Answer = ProgramCoverage;

    fn find(
        &self,
        session: &mut Session,
        source: &Source,
        how: &Follow,
        (name, _): (&str, Option<Scale>),
        observer: &dyn Observer,
    ) -> Result<Outcome<OfPrograms<ProgramCoverage>>, RunError> {
        session.coverage(source, how, name, observer)
    }

    fn end(&self, session: &Session, source: &Source, name: &str, found: &mut ProgramCoverage) {
        // Whether the end cuts off a frame is known when all of the capture has arrived.
        found.cut_off(session.cut_frame_bytes(source));
        if self.by_run {
            found.name_run(name);
        }
    }
}

/// What functions cost, in a part of the trace.
#[derive(Debug, Default)]
pub struct OfProfile {
    /// The part.
    pub view: View,
}

impl Additive for OfProfile {
    type Answer = ProgramProfiles;

    fn begin(
        &self,
        session: &mut Session,
        how: &Follow,
        observer: &dyn Observer,
    ) -> Result<Option<Scale>, RunError> {
        self.view.check(session, how, observer)?;
        Ok(None)
    }

    /// The samples of the program counter.
    fn of_itm(
        &self,
        session: &mut Session,
        itm: &Itm,
        how: &Follow,
        observer: &dyn Observer,
    ) -> Result<Option<(FollowedProgram, ProgramProfiles)>, RunError> {
        self.view.check_itm(session)?;
        let program = session.itm_program(itm, how.names.as_deref(), observer)?;
        let mut found = Profile::default();
        session.each_report(itm, observer, |record| {
            if let ItmEvent::Packet(Packet::PcSample(at)) = record.event {
                found.sample(at, &program.code);
            }
            Ok(())
        })?;
        let sources = BTreeMap::from([(session.itm_id(itm), found)]);
        Ok(Some((program, ProgramProfiles { sources })))
    }

    fn find(
        &self,
        session: &mut Session,
        source: &Source,
        how: &Follow,
        _: (&str, Option<Scale>),
        observer: &dyn Observer,
    ) -> Result<Outcome<OfPrograms<ProgramProfiles>>, RunError> {
        let profiling = Profiling::new(self.view.window().clone());
        let outcome = self.view.run(session, source, how, profiling, observer)?;
        let program = session.followed(source, &outcome.code)?;
        let id = session.source_id(source);
        Ok(outcome
            .map(|found, _| vec![(program, ProgramProfiles { sources: BTreeMap::from([(id, found)]) })]))
    }
}

/// How often exceptions were taken in a part of the trace, and how long they took.
#[derive(Debug, Default)]
pub struct OfInterrupts {
    /// The part.
    pub view: View,
    /// The unit of the axis; `None` for the best that the capture has. Answers in different units do not add up.
    pub unit: Option<Unit>,
    /// The frequency of the clock that the axis counts.
    pub frequency: Option<f64>,
    /// Whether functions are measured, too.
    pub functions: bool,
}

impl Additive for OfInterrupts {
    type Answer = ProgramActivities;

    fn begin(
        &self,
        session: &mut Session,
        how: &Follow,
        observer: &dyn Observer,
    ) -> Result<Option<Scale>, RunError> {
        if session.is_itm_alone() {
            return Ok(None);
        }
        let scale = session.scale(self.unit, self.frequency, how, observer)?;
        self.view.check(session, how, observer)?;
        Ok(Some(scale))
    }

    fn of_itm(
        &self,
        session: &mut Session,
        itm: &Itm,
        how: &Follow,
        observer: &dyn Observer,
    ) -> Result<Option<(FollowedProgram, ProgramActivities)>, RunError> {
        self.view.check_itm(session)?;
        let program = session.itm_program(itm, how.names.as_deref(), observer)?;
        let mut found = ReportedActivities::default();
        session.each_report(itm, observer, |record| {
            found.event(&record.event);
            Ok(())
        })?;
        let measured = Some(Measured { unit: Unit::Time, counts_cycles: false, functions: false });
        let sources = BTreeMap::from([(session.itm_id(itm), found.finish())]);
        Ok(Some((program, ProgramActivities { measured, sources })))
    }

    fn find(
        &self,
        session: &mut Session,
        source: &Source,
        how: &Follow,
        (_, scale): (&str, Option<Scale>),
        observer: &dyn Observer,
    ) -> Result<Outcome<OfPrograms<ProgramActivities>>, RunError> {
        let nothing = Scale { unit: Unit::Instructions, counts_cycles: false, frequency: None };
        let (scale, functions) = (scale.unwrap_or(nothing), self.functions);
        let measured = Measured { unit: scale.unit, counts_cycles: scale.counts_cycles, functions };
        let window = self.view.window();
        // A complete capture's ITMs can be read separately.
        let is_apart = !session.is_live() && *window == Window::default();
        let measuring = Measuring::new(scale, window.clone(), functions);
        let measuring = if is_apart { measuring } else { measuring.with_itms() };
        let outcome = self.view.run(session, source, how, measuring, observer)?;
        let program = session.followed(source, &outcome.code)?;
        let (id, itms) = (session.source_id(source), session.itms_beside(source));
        Ok(outcome.map(|(activities, mut reported), _| {
            if is_apart {
                for itm in &itms {
                    let mut of_itm = ReportedActivities::default();
                    session.itm_records(itm).for_each(|record| of_itm.event(&record.event));
                    reported.insert(itm.id, of_itm.counts());
                }
                reported.retain(|_, found| !found.exceptions.is_empty());
            }
            let mut sources = BTreeMap::from([(id, activities)]);
            let of_itm = |itm| Some((session.itm_id(itm), reported.remove(&itm.id)?));
            sources.extend(itms.iter().filter_map(of_itm));
            vec![(program, ProgramActivities { measured: Some(measured), sources })]
        }))
    }
}
