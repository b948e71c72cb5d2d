//! Captures in directories and lists, on all processors, as one answer.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tracewalk::program::Program;
use tracewalk_analysis::captures::{CaptureOutcome, Captures};
use tracewalk_analysis::programs::{ProgramId, Programs};
use tracewalk_analysis::saved::Save;
use tracewalk_report::counted;
use tracewalk_session::{Additive, Follow, Gathering, Observer, Request, RunError, Session, Shared};

use super::resume::Resume;
use super::search::{Place, PlaceKind, is_searched, search};
use super::sum::Sum;
use super::{Asking, Gathered, Places, RunNames};
use crate::args::PlacesArgs;
use crate::failure::Failure;
use crate::messages::Messages;
use crate::open;
use crate::output::{look_for, write_to};

/// The shortest time between two saves of progress.
const NOTED_EVERY: Duration = Duration::from_secs(10);

/// The largest share of the time that saving progress may take: one part in this number.
const NOTING_SHARE: u32 = 20;

/// The sum of many captures.
#[derive(Debug)]
pub(super) struct Many<'a, T> {
    args: &'a PlacesArgs,
    request: Request,
    resume: Option<Resume<'a>>,
    sum: Sum<T>,
    /// The saved files that do not count yet.
    saved: Vec<Place>,
}

/// Whether places are directories to search or lists, or an option is for them.
pub(super) fn is_asked_for(args: &PlacesArgs) -> bool {
    let is_list = |path: &Path| path.to_str().is_some_and(|word| word.starts_with('@'));
    !args.patterns.is_empty()
        || args.resume.is_some()
        || args.captures.is_some()
        || args.words().any(|path| is_list(path) || (path.is_dir() && is_searched(path)))
}

impl<'a, T: Save + Send> Many<'a, T> {
    /// Finds the captures and saved files.
    pub(super) fn find(
        args: &'a PlacesArgs,
        results: &[Option<&Path>],
        asked: &str,
        messages: &Messages,
    ) -> Result<Places<'a, T>, Failure> {
        if messages.records() {
            return Err(Failure::input(
                "provenance_of_many",
                "--provenance describes the result of a few captures, but directories and lists have any number of them",
                "use the table of captures instead: --captures captures.csv",
            ));
        }
        let places = search::<T>(args, results)?;
        messages.replaced.spare(|_| places.iter().flat_map(|place| place.files(args)).collect())?;
        let capture = &args.follow.capture;
        let request = Request { capture: PathBuf::new(), ..open::request(capture) };
        let settings = format!("{request:?} {:?} {asked}", args.follow.trust());
        let resume = args.resume.as_deref().map(|file| Resume::new(file, &settings));
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
        Ok(Places { args, captures, saved: paths, many: Some(Self { args, request, resume, sum, saved }) })
    }

    /// The sum that a run goes on from, and its file.
    pub(super) fn so_far(&self) -> Option<(&Path, &Programs<T>)> {
        Some((self.args.resume.as_deref()?, &self.sum.found))
    }

    /// The answer to the question of all places.
    pub(super) fn ask<Q: Additive<Answer = T>>(
        mut self,
        captures: &[PathBuf],
        saved: Vec<(PathBuf, Option<Programs<T>>)>,
        asking: &Asking<'_, Q>,
        messages: &Messages,
    ) -> Result<Gathered<T>, Failure> {
        drop(saved);
        let mut runs = asking.by_run.then(|| RunNames::new(messages));
        for place in std::mem::take(&mut self.saved) {
            self.sum.saved(&place, runs.as_mut(), messages)?;
        }
        let before = self.sum.counted().cloned().collect::<Vec<_>>();
        let mut gathered = Gathered::new(self.args);
        self.follow(captures, asking, &mut gathered, messages)?;
        if let Some(resume) = &self.resume {
            resume.write(&self.sum)?;
        }
        self.sum.say_copies(messages);
        if T::NEEDS_PROGRAM {
            self.find_programs(&before, asking, &mut gathered, messages)?;
        }
        let (found, table) = self.sum.into_parts();
        gathered.answered.programs = found;
        if let (Some(file), Some(format)) = (&self.args.captures, self.args.captures_format()) {
            write_to(Some(file), |out| (format.make)(out, &table, look_for(Some(file))))?;
        }
        say(&table, messages);
        Ok(gathered)
    }

    /// Asks captures, several at a time.
    fn follow<Q: Additive<Answer = T>>(
        &mut self,
        captures: &[PathBuf],
        asking: &Asking<'_, Q>,
        gathered: &mut Gathered<T>,
        messages: &Messages,
    ) -> Result<(), Failure> {
        let gathering = self.gathering(&asking.how);
        let refused = Mutex::new(None);
        let ask = |session: &mut Session, how: &Follow, name: &str, observer: &dyn Observer| {
            // No result may replace a source file, which is known only now.
            if let Err(failure) = messages.replaced.spare(|directories| session.source_files(directories)) {
                refused.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
                return Err(RunError::NoProgram);
            }
            session.answer(asking.question, how, name, observer)
        };
        let progress = messages.captures(captures.len());
        let (mut done, mut noted, mut noting) = (0, Instant::now(), Duration::ZERO);
        let (sum, resume) = (&mut self.sum, &self.resume);
        gathering.each(captures, ask, |of| {
            if let Some(failure) = refused.lock().unwrap_or_else(PoisonError::into_inner).take() {
                return Err(failure);
            }
            sum.capture(of, gathered);
            done += 1;
            progress.done(done);
            let is_time = noted.elapsed() > NOTED_EVERY.max(noting * NOTING_SHARE);
            if let Some(resume) = resume.as_ref().filter(|_| is_time) {
                let begin = Instant::now();
                resume.write(sum)?;
                (noted, noting) = (Instant::now(), begin.elapsed());
            }
            Ok(())
        })
    }

    fn gathering(&self, how: &Follow) -> Gathering {
        let shared = Shared::default();
        Gathering { request: self.request.clone(), how: how.clone(), shared, stop: Default::default() }
    }

    /// Finds the programs of answers that were saved: among the images of the options, or in a capture of an earlier run.
    fn find_programs<Q: Additive<Answer = T>>(
        &self,
        before: &[PathBuf],
        asking: &Asking<'_, Q>,
        gathered: &mut Gathered<T>,
        messages: &Messages,
    ) -> Result<(), Failure> {
        let nothing = ProgramId::of(&Program::new(), []);
        let is_complete = |gathered: &Gathered<T>| {
            let mut ids = self.sum.found.programs.keys();
            ids.all(|id| *id == nothing || gathered.answered.code.contains_key(id))
        };
        if is_complete(gathered) {
            return Ok(());
        }
        gathered.load_images(self.args, std::iter::empty(), messages)?;
        for capture in before {
            if is_complete(gathered) {
                break;
            }
            self.gathering(&asking.how).run(asking.question, std::slice::from_ref(capture), |of| {
                gathered.answered.code.extend(of.found.map(|answered| answered.code).unwrap_or_default());
                Ok::<(), Failure>(())
            })?;
        }
        Ok(())
    }
}

/// Reports captures that do not count in full, with the first problem.
fn say(table: &Captures, messages: &Messages) {
    let all = table.captures.len() as u64;
    for (outcome, kind, what) in [
        (CaptureOutcome::LeftOut, "captures_left_out", "left out"),
        (CaptureOutcome::Partial, "captures_in_part", "decoded partly"),
    ] {
        let count = table.count(outcome);
        let first = table.captures.iter().find(|capture| capture.outcome == outcome);
        if let Some((first, (_, problem))) = first.and_then(|first| Some((first, first.problem.as_ref()?))) {
            // Most sentences begin with the file.
            let capture = &first.capture;
            let named = if problem.contains(capture) { String::new() } else { format!("{capture}: ") };
            let captures = counted(all, "capture");
            messages
                .incomplete(kind, format_args!("{count} of {captures} {what}; the first: {named}{problem}"));
        }
    }
}
