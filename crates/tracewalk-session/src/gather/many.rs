//! Captures in directories and lists, on all processors, as one answer.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tracewalk::program::Program;
use tracewalk_analysis::captures::{CaptureOutcome, Captures};
use tracewalk_analysis::programs::{ProgramId, Programs};
use tracewalk_analysis::saved::Save;

use super::parts::RunNames;
use super::resume::Resume;
use super::search::{Place, PlaceKind, search};
use super::sum::Sum;
use super::{Gather, GatherFront, Gathered, Places, PlacesNotice};
use crate::additive::Additive;
use crate::error::RunError;
use crate::observer::Observer;
use crate::outcome::Follow;
use crate::request::Request;
use crate::session::Session;

/// The shortest time between two saves of progress.
const NOTED_EVERY: Duration = Duration::from_secs(10);

/// The largest share of the time that saving progress may take: one part in this number.
const NOTING_SHARE: u32 = 20;

/// The sum of many captures.
#[derive(Debug)]
pub(super) struct Many<'a, T> {
    gather: &'a Gather,
    resume: Option<Resume<'a>>,
    sum: Sum<T>,
    /// The saved files that do not count yet.
    saved: Vec<Place>,
}

impl<'a, T: Save + Send> Many<'a, T> {
    /// Finds the captures and saved files.
    pub(super) fn find<F: GatherFront>(gather: &'a Gather, front: &F) -> Result<Places<'a, T>, F::Error> {
        let places = search::<T>(gather)?;
        front.reads(&mut |_| places.iter().flat_map(|place| place.files(gather)).collect())?;
        let request = Request { capture: PathBuf::new(), ..gather.request.clone() };
        let settings = format!("{request:?} {:?} {}", gather.how.trust, gather.asked);
        let resume = gather.resume.as_deref().map(|file| Resume::new(file, &settings));
        let mut sum = match &resume {
            Some(resume) => resume.read::<T>()?,
            None => Sum::default(),
        };
        let (mut captures, mut saved) = (Vec::new(), Vec::new());
        for place in places {
            match (sum.knows(&place)?, place.kind) {
                (true, _) => {}
                (false, PlaceKind::Capture) => captures.push(place.path),
                (false, PlaceKind::Saved) => saved.push(place),
            }
        }
        let paths = saved.iter().map(|place| (place.path.clone(), None)).collect();
        Ok(Places { gather, captures, saved: paths, many: Some(Self { gather, resume, sum, saved }) })
    }

    /// The sum that a run goes on from, and its file.
    pub(super) fn so_far(&self) -> Option<(&Path, &Programs<T>)> {
        Some((self.gather.resume.as_deref()?, &self.sum.found))
    }

    /// The answer to the question of all places.
    pub(super) fn ask<Q: Additive<Answer = T>, F: GatherFront>(
        mut self,
        captures: &[PathBuf],
        (question, by_run): (&Q, bool),
        front: &F,
    ) -> Result<Gathered<T>, F::Error> {
        let mut runs = by_run.then(RunNames::default);
        for place in std::mem::take(&mut self.saved) {
            self.sum.saved(&place, runs.as_mut(), front)?;
        }
        let before = self.sum.counted().cloned().collect::<Vec<_>>();
        let mut gathered = Gathered::new(self.gather);
        self.follow(captures, question, &mut gathered, front)?;
        if let Some(resume) = &self.resume {
            resume.write(&self.sum, front)?;
        }
        self.sum.say_copies(front);
        if T::NEEDS_PROGRAM {
            self.find_programs(&before, question, &mut gathered, front)?;
        }
        let (found, table) = self.sum.into_parts();
        gathered.answered.programs = found;
        say(&table, front);
        gathered.captures = Some(table);
        Ok(gathered)
    }

    /// Asks captures, several at a time.
    fn follow<Q: Additive<Answer = T>, F: GatherFront>(
        &mut self,
        captures: &[PathBuf],
        question: &Q,
        gathered: &mut Gathered<T>,
        front: &F,
    ) -> Result<(), F::Error> {
        let gathering = self.gather.gathering();
        let refused = Mutex::new(None);
        let ask = |session: &mut Session, how: &Follow, name: &str, observer: &dyn Observer| {
            // No result may replace a source file, which is known only now.
            if let Err(error) = front.reads(&mut |directories| session.source_files(directories)) {
                refused.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                return Err(RunError::NoProgram);
            }
            session.answer(question, how, name, observer)
        };
        let progress = front.progress(captures.len());
        let (mut done, mut noted, mut noting) = (0, Instant::now(), Duration::ZERO);
        let (sum, resume) = (&mut self.sum, &self.resume);
        gathering.each(captures, ask, |of| {
            if let Some(error) = refused.lock().unwrap_or_else(PoisonError::into_inner).take() {
                return Err(error);
            }
            sum.capture(of, gathered, front);
            done += 1;
            progress.done(done);
            let is_time = noted.elapsed() > NOTED_EVERY.max(noting * NOTING_SHARE);
            if let Some(resume) = resume.as_ref().filter(|_| is_time) {
                let begin = Instant::now();
                resume.write(sum, front)?;
                (noted, noting) = (Instant::now(), begin.elapsed());
            }
            Ok(())
        })
    }

    /// Finds the programs of answers that were saved: among the images of the request, or in a capture of an earlier run.
    fn find_programs<Q: Additive<Answer = T>, F: GatherFront>(
        &self,
        before: &[PathBuf],
        question: &Q,
        gathered: &mut Gathered<T>,
        front: &F,
    ) -> Result<(), F::Error> {
        let nothing = ProgramId::of(&Program::new(), []);
        let is_complete = |gathered: &Gathered<T>| {
            let mut ids = self.sum.found.programs.keys();
            ids.all(|id| *id == nothing || gathered.answered.code.contains_key(id))
        };
        if is_complete(gathered) {
            return Ok(());
        }
        gathered.load_images(self.gather, std::iter::empty(), front)?;
        for capture in before {
            if is_complete(gathered) {
                break;
            }
            self.gather.gathering().run(question, std::slice::from_ref(capture), |of| {
                gathered.answered.code.extend(of.found.map(|answered| answered.code).unwrap_or_default());
                Ok::<(), F::Error>(())
            })?;
        }
        Ok(())
    }
}

/// Reports captures that do not count in full, with the first problem.
fn say(table: &Captures, front: &impl GatherFront) {
    let all = Some(table.captures.len() as u64);
    for outcome in [CaptureOutcome::LeftOut, CaptureOutcome::Partial] {
        let found = table.captures.iter().find(|capture| capture.outcome == outcome);
        let Some((first, (_, problem))) = found.and_then(|first| Some((first, first.problem.clone()?)))
        else {
            continue;
        };
        let (count, first) = (table.count(outcome), first.capture.clone());
        front.notice(&match outcome {
            CaptureOutcome::LeftOut => PlacesNotice::CapturesLeftOut { count, all, first, problem },
            _ => PlacesNotice::CapturesInPart { count, all, first, problem },
        });
    }
}
