//! Captures, saved files, directories and lists → the sum of their answers for each program, and the programs.
//!
//! A few captures are followed one after the other, each on all threads, with all their notices. Captures in directories and lists
//! are followed several at a time, and notices only name those that do not count in full.

mod alike;
mod many;
mod parts;
mod problem;
mod resume;
mod search;
mod sum;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tracewalk::plain::Plain;
use tracewalk::program::Program;
use tracewalk_analysis::captures::{Captures, OneOfMany};
use tracewalk_analysis::coverage::keeps_runs;
use tracewalk_analysis::drive::Progress;
use tracewalk_analysis::programs::{MergeError, OfProgram, ProgramId, Programs};
use tracewalk_analysis::saved::Save;
use tracewalk_analysis::{Code, Window};

use self::alike::{CaptureNames, Copies};
use self::many::Many;
use self::parts::{Parts, RunNames, head};
pub use self::parts::{read_saved, saved_kind_of};
pub use self::problem::{PlacesError, PlacesErrorKind, PlacesNotice};
use crate::additive::{Additive, Answered};
use crate::error::{OpenError, RunError};
use crate::gathering::{Gathering, OfCapture};
use crate::observer::Observer;
use crate::open::interrupts;
use crate::outcome::Follow;
use crate::program::FollowedProgram;
use crate::request::Pattern;
use crate::request::Request;
use crate::session::Session;
use crate::shared::Shared;

/// What is added up, and how captures are followed.
#[derive(Clone, Debug, Default)]
pub struct Gather {
    /// Captures, saved files, directories, and lists of these, as `@FILE`.
    pub places: Vec<PathBuf>,
    /// What counts as a capture in directories, by name or path; if empty, what is described as one.
    pub patterns: Vec<Pattern>,
    /// Whether several captures are followed at a time even without directories, lists, patterns and `resume`.
    pub is_many: bool,
    /// The file of an earlier run to continue from, which receives the progress.
    pub resume: Option<PathBuf>,
    /// Results of earlier runs, which may be in the directories.
    pub results: Vec<PathBuf>,
    /// A text of everything else that the answer depends on.
    pub asked: String,
    /// The settings of all captures; its `capture` is ignored.
    pub request: Request,
    /// How sources are followed.
    pub how: Follow,
}

/// What a front end does for a gathering.
pub trait GatherFront: Sync {
    /// Why the work ends.
    type Error: fmt::Display + From<PlacesError> + From<OpenError> + From<RunError> + From<io::Error> + Send;

    /// Receives the notices of captures that are followed one after the other.
    fn observer(&self) -> &dyn Observer;

    /// Receives a notice about the sum.
    fn notice(&self, notice: &PlacesNotice);

    /// The outcome of a capture as a row of a table, with its problem in words.
    fn row<T>(&self, of: &OfCapture<Answered<T>>) -> OneOfMany;

    /// Opens a capture that is followed alone.
    ///
    /// # Errors
    ///
    /// If it cannot be opened.
    fn open(&self, request: Request) -> Result<Session, Self::Error>;

    /// Whether an error is about one capture, so that others can still be answered.
    fn is_of_capture(&self, error: &Self::Error) -> bool;

    /// Whether all captures that were followed alone were decoded to their ends.
    fn is_complete(&self) -> bool;

    /// Replaces a file by what `write` writes, once that is complete.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    fn replace(
        &self,
        file: &Path,
        write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Self::Error>;

    /// Refuses to read files that a result would replace. `find` finds them, in further directories as well.
    ///
    /// # Errors
    ///
    /// If a result would replace one of them.
    fn reads(&self, find: &mut dyn FnMut(&[PathBuf]) -> BTreeSet<PathBuf>) -> Result<(), Self::Error>;

    /// Images were read without a capture.
    fn images(&self, request: &Request);

    /// Receives the number of captures that are done, of `all`.
    fn progress(&self, all: usize) -> Box<dyn Progress>;
}

/// The captures and saved files that a [`Gather`] names.
#[derive(Debug)]
pub struct Places<'a, T> {
    pub(crate) gather: &'a Gather,
    /// The captures to be followed.
    captures: Vec<PathBuf>,
    /// The saved files. Those beside captures have been read, so that a mistake shows before captures are followed.
    saved: Vec<(PathBuf, Option<Programs<T>>)>,
    /// The sum of captures in directories and lists.
    many: Option<Many<'a, T>>,
}

/// The sum of all places.
#[derive(Debug)]
pub struct Gathered<T> {
    /// The sum.
    pub answered: Answered<T>,
    /// The outcomes of captures that were followed several at a time.
    pub captures: Option<Captures>,
    /// The first capture of other programs than the captures before.
    other_program: Option<(PathBuf, MergeError)>,
    /// The files of traces, saved answers and images: the oldest one shows when the program was built or traced.
    dated: Vec<PathBuf>,
}

impl Gather {
    /// Whether captures are followed several at a time: if there are directories or lists, or something asks for them.
    #[must_use]
    pub fn is_many(&self) -> bool {
        let is_list = |path: &Path| path.to_str().is_some_and(|word| word.starts_with('@'));
        let is_searched = |path: &Path| path.is_dir() && search::is_searched(path);
        self.is_many
            || !self.patterns.is_empty()
            || self.resume.is_some()
            || self.places.iter().any(|path| is_list(path) || is_searched(path))
    }

    /// Finds the captures and saved files.
    ///
    /// # Errors
    ///
    /// If a place cannot be read, or is no capture and no saved file of this kind.
    pub fn find<T: Save + Send, F: GatherFront>(&self, front: &F) -> Result<Places<'_, T>, F::Error> {
        if self.is_many() {
            return Many::find(self, front);
        }
        let (saved, captures): (Vec<_>, Vec<_>) =
            self.places.iter().cloned().partition(|path| saved_kind_of(path).is_some());
        refuse_twice(saved.iter().chain(&captures))?;
        let mut parts = Parts::default();
        let read = |path: PathBuf| match captures.is_empty() {
            true => Ok((path, None)),
            false => {
                let part = parts.read(&path, front)?;
                Ok((path, Some(part)))
            }
        };
        let saved = saved.into_iter().map(read).collect::<Result<_, F::Error>>()?;
        Ok(Places { gather: self, captures, saved, many: None })
    }
}

impl<T: Save + Send> Places<'_, T> {
    /// The captures to be followed.
    #[must_use]
    pub fn captures(&self) -> &[PathBuf] {
        &self.captures
    }

    /// Refuses a window if there are saved files.
    ///
    /// # Errors
    ///
    /// [`PlacesErrorKind::WindowOfSaved`].
    pub fn refuse_window(&self, window: &Window) -> Result<(), PlacesError> {
        match self.saved.first().filter(|_| *window != Window::default()) {
            None => Ok(()),
            Some((path, _)) => Err(PlacesErrorKind::WindowOfSaved.at(path)),
        }
    }

    /// Whether a saved file has runs.
    #[must_use]
    pub fn knows_runs(&self) -> bool {
        self.saved.iter().any(|(path, _)| keeps_runs(&head(path)))
    }

    /// The answer to the question of all places. With `by_run`, each saved file without runs is a run. `saved` receives each
    /// saved file, unless captures are followed several at a time.
    ///
    /// # Errors
    ///
    /// If the only capture cannot be followed, or a saved file is not of this sum.
    pub fn ask<Q: Additive<Answer = T>, F: GatherFront>(
        self,
        question: &Q,
        by_run: bool,
        mut saved_part: impl FnMut(&Path, &Programs<T>),
        front: &F,
    ) -> Result<Gathered<T>, F::Error> {
        let Self { gather, captures, saved, many } = self;
        if let Some(many) = many {
            return many.ask(&captures, (question, by_run), front);
        }
        let mut gathered = Gathered::new(gather);
        let (mut copies, mut left_out) = (Copies::default(), None);
        for capture in &captures {
            match gather.answer(capture, question, front) {
                Ok(answered) => {
                    if let Some(known) = copies.add(capture, answered.files.clone()) {
                        let (file, other) = (capture.clone(), known.to_owned());
                        front.notice(&PlacesNotice::SameTrace { count: None, file, other });
                    }
                    gathered.add(capture, answered);
                }
                Err(error) if captures.len() == 1 || !front.is_of_capture(&error) => return Err(error),
                Err(error) => {
                    let (first, problem) = (capture.display().to_string(), error.to_string());
                    front.notice(&PlacesNotice::CapturesLeftOut { count: 1, all: None, first, problem });
                    left_out.get_or_insert(error);
                }
            }
        }
        if let (true, true, Some(error)) =
            (gathered.answered.programs.programs.is_empty(), saved.is_empty(), left_out)
        {
            return Err(error);
        }
        gathered.answered.programs.complete &= front.is_complete();
        if captures.is_empty() {
            gathered.load_images(gather, saved.iter().map(|(path, _)| path.as_path()), front)?;
        }
        let (mut names, mut runs) = (CaptureNames::of(&gathered.answered.programs), RunNames::default());
        let mut parts = Parts::default();
        for (path, part) in saved {
            let mut part = match part {
                Some(part) => part,
                None => parts.read(&path, front)?,
            };
            if by_run {
                runs.name(&path, &mut part, front);
            }
            saved_part(&path, &part);
            gathered.refuse_other_program(&path, &part)?;
            names.distinguish(&mut gathered.answered.programs, &path, &mut part);
            let merged = gathered.answered.programs.merge(part);
            merged.map_err(|error| PlacesErrorKind::CannotAdd(error).at(&path))?;
            gathered.dated.push(path);
        }
        Ok(gathered)
    }
}

impl<T: Save + Send + Clone> Places<'_, T> {
    /// The first thing of this kind that a saved answer has: in the sum so far, or in a saved file.
    pub(crate) fn first_saved<U>(
        &self,
        mut look: impl FnMut(&Path, &Programs<T>) -> Result<Option<U>, PlacesError>,
    ) -> Result<Option<U>, PlacesError> {
        let mut found = None;
        if let Some(sum) = self.many.as_ref().and_then(Many::so_far) {
            found = look(sum.0, sum.1)?;
        }
        for (path, part) in &self.saved {
            let part = match part {
                Some(part) => Cow::Borrowed(part),
                None => Cow::Owned(read_saved(path)?),
            };
            let of_part = look(path, &part)?;
            found = found.or(of_part);
        }
        Ok(found)
    }
}

impl Gather {
    /// Asks several captures at a time.
    pub(crate) fn gathering(&self) -> Gathering {
        let (request, how) = (self.request.clone(), self.how.clone());
        Gathering { request, how, shared: Shared::default(), stop: Default::default() }
    }

    /// The answer of a single capture.
    fn answer<Q: Additive, F: GatherFront>(
        &self,
        capture: &Path,
        question: &Q,
        front: &F,
    ) -> Result<Answered<Q::Answer>, F::Error> {
        let mut session = front.open(Request { capture: capture.to_owned(), ..self.request.clone() })?;
        let name = Plain(capture.display()).to_string();
        Ok(session.answer(question, &self.how, &name, front.observer())?)
    }
}

impl<T: Save> Gathered<T> {
    fn new(gather: &Gather) -> Self {
        Self {
            answered: Answered::default(),
            captures: None,
            other_program: None,
            dated: gather.request.images.iter().map(|image| image.file.clone()).collect(),
        }
    }

    /// Adds the answer of a capture, which keeps its programs apart from those of the captures before. Notes the first capture
    /// whose programs differ, unless each answer is about a file.
    fn add(&mut self, capture: &Path, answered: Answered<T>) {
        let mut found = std::mem::take(&mut self.answered.programs);
        self.add_to(&mut found, capture, answered);
        self.answered.programs = found;
    }

    /// As [`add`](Self::add), but adds the answer itself to another sum.
    fn add_to(&mut self, sum: &mut Programs<T>, capture: &Path, answered: Answered<T>) {
        let Answered { programs, code, statistics, files, images, .. } = answered;
        // The binaries of a system were built long before, and each recording may have others.
        if let Some(images) = images {
            self.dated.extend(images);
            if let Err(error) = sum.accepts(&programs) {
                self.other_program.get_or_insert_with(|| (capture.to_owned(), error));
            }
        }
        // A description may be older or newer than the trace.
        self.dated.extend(files);
        self.answered.statistics.add(&statistics);
        self.answered.code.extend(code);
        sum.add_all(programs);
    }

    /// The files whose times show when the program was built or traced.
    pub fn dated(&self) -> impl Iterator<Item = &Path> {
        self.dated.iter().map(PathBuf::as_path)
    }

    /// Refuses a report of captures of different programs, whose numbers would be added.
    ///
    /// # Errors
    ///
    /// [`PlacesErrorKind::CannotAdd`].
    pub fn refuse_several_programs(&self) -> Result<(), PlacesError> {
        match &self.other_program {
            Some((capture, error)) => Err(PlacesErrorKind::CannotAdd(error.clone()).at(capture)),
            None => Ok(()),
        }
    }

    /// Saves the answers. For a program that is identified by its memory, notes its images, because the file does not name them
    /// otherwise.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn save<F: GatherFront>(&self, file: &Path, front: &F) -> Result<(), F::Error> {
        front.replace(file, &mut |out| self.answered.programs.save(out))?;
        for (id, program) in &self.answered.programs.programs {
            if T::NEEDS_PROGRAM && matches!(id, ProgramId::Code(_)) && !program.images.is_empty() {
                let (file, program) = (file.to_owned(), program.name());
                front.notice(&PlacesNotice::KnownByMemory { file, program });
            }
        }
        Ok(())
    }

    /// Loads the images of the request: for saved files without captures.
    fn load_images<'p, F: GatherFront>(
        &mut self,
        gather: &Gather,
        saved: impl Iterator<Item = &'p Path>,
        front: &F,
    ) -> Result<(), F::Error> {
        let request = &gather.request;
        let interrupts = interrupts(request, front.observer())?;
        // A source without a known program has no names.
        let unknown = Arc::new(Code { interrupts, ..Code::unknown() });
        let nothing = ProgramId::of(&Program::new(), []);
        if request.images.is_empty() {
            for path in saved {
                if read_saved::<T>(path)?.programs.contains_key(&nothing) {
                    self.answered.code.insert(nothing, unknown);
                    break;
                }
            }
            return Ok(());
        }
        self.answered.code.insert(nothing, unknown);
        front.reads(&mut |directories| FollowedProgram::source_files(request, directories))?;
        front.images(request);
        let source_dirs = gather.how.names.as_deref().unwrap_or_default();
        let programs = FollowedProgram::of_images(request, source_dirs, front.observer())?;
        self.answered.code.extend(programs.into_iter().map(|program| (program.id, program.code)));
        Ok(())
    }

    /// Refuses a part of another program than the current one.
    fn refuse_other_program(&self, path: &Path, part: &Programs<T>) -> Result<(), PlacesError> {
        if self.answered.code.is_empty() {
            return Ok(());
        }
        match part.programs.keys().find(|id| !self.answered.code.contains_key(*id)) {
            None => Ok(()),
            Some(found) => {
                let nothing = ProgramId::of(&Program::new(), []);
                let known = self.answered.code.keys().filter(|id| **id != nothing);
                let kind = PlacesErrorKind::OtherProgram {
                    found: found.clone(),
                    images: part.programs.get(found).map(OfProgram::name).unwrap_or_default(),
                    expected: known.cloned().collect(),
                };
                Err(kind.at(path))
            }
        }
    }
}

/// Refuses a capture or saved file that is given twice: it would count twice.
fn refuse_twice<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Result<(), PlacesError> {
    let mut known = BTreeSet::new();
    for path in paths {
        let Ok(file) = path.canonicalize() else { continue };
        if !known.insert(file) {
            return Err(PlacesErrorKind::NamedTwice.at(path));
        }
    }
    Ok(())
}
