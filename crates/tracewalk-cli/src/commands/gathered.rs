//! Places (captures, saved files, directories, lists) → the answer for each program, and the programs.
//!
//! A few captures are followed one after the other, each on all threads, with all their messages. Captures in directories and lists
//! are followed several at a time, and messages only name those that do not count in full.

mod capture_names;
mod copies;
mod many;
mod parts;
mod resume;
mod search;
mod sum;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tracewalk::plain::Plain;
use tracewalk::program::Program;
use tracewalk_analysis::counts::CountedBinary;
use tracewalk_analysis::coverage::{ProgramCoverage, keeps_runs};
use tracewalk_analysis::interrupts::ProgramActivities;
use tracewalk_analysis::profile::ProgramProfiles;
use tracewalk_analysis::programs::{MergeError, OfProgram, ProgramId, Programs};
use tracewalk_analysis::saved::{Save, saved_kind};
use tracewalk_analysis::{Code, Window};
use tracewalk_sentences::NO_PROGRAM;
use tracewalk_session::{Additive, Answered, Follow, FollowedProgram, Session, interrupts};

use crate::args::{CaptureArgs, PlacesArgs};
use crate::failure::Failure;
use crate::messages::Messages;
use crate::open;
use crate::output::write_to;
use capture_names::CaptureNames;
use copies::Copies;
use many::Many;
use parts::Parts;
pub(super) use parts::{read_part, unreadable};

/// The longest text file that is not a saved file.
const LONGEST_TEXT: u64 = 256 << 20;

/// The kinds of saved files.
const KINDS: [&str; 4] =
    [ProgramCoverage::KIND, ProgramProfiles::KIND, ProgramActivities::KIND, CountedBinary::KIND];

/// The captures and saved files that the arguments name.
#[derive(Debug)]
pub(super) struct Places<'a, T> {
    args: &'a PlacesArgs,
    /// The captures to be followed.
    captures: Vec<PathBuf>,
    /// The saved files. Those beside captures have been read, so that a mistake shows before captures are followed.
    saved: Vec<(PathBuf, Option<Programs<T>>)>,
    /// The sum of captures in directories and lists.
    many: Option<Many<'a, T>>,
}

/// Receives a saved file, with its contents.
type OnSaved<T> = fn(&Path, &Programs<T>, &Messages) -> Result<(), Failure>;

/// What the captures are asked, and how.
pub(super) struct Asking<'a, Q: Additive> {
    pub(super) question: &'a Q,
    pub(super) how: Follow,
    /// Opens a single capture.
    pub(super) open: &'a dyn Fn(&CaptureArgs, &Messages) -> Result<Session, Failure>,
    /// Whether each saved file without runs is a run.
    pub(super) by_run: bool,
    /// Receives each saved file.
    pub(super) saved: OnSaved<Q::Answer>,
}

impl<'a, Q: Additive> Asking<'a, Q> {
    pub(super) fn new(question: &'a Q, how: Follow) -> Self {
        Self { question, how, open: &open::live, by_run: false, saved: |_, _, _| Ok(()) }
    }
}

/// The answer of all places.
#[derive(Debug)]
pub(super) struct Gathered<T> {
    pub(super) answered: Answered<T>,
    /// The first capture of other programs than the captures before.
    other_program: Option<(PathBuf, MergeError)>,
    /// The files of traces, saved answers and images: the oldest one shows when the program was built or traced.
    dated: Vec<PathBuf>,
}

impl<'a, T: Save + Send> Places<'a, T> {
    /// Finds the captures and saved files. `results` are files that may lie among them; `asked` is a text of everything that the
    /// answer depends on, apart from the places and how they are opened.
    pub(super) fn find(
        args: &'a PlacesArgs,
        results: &[Option<&Path>],
        asked: &str,
        messages: &Messages,
    ) -> Result<Self, Failure> {
        if many::is_asked_for(args) {
            return Many::find(args, results, asked, messages);
        }
        let (saved, captures): (Vec<_>, Vec<_>) = args.words().partition(|path| kind_of(path).is_some());
        refuse_twice(saved.iter().chain(&captures).copied())?;
        let mut parts = Parts::new(messages);
        let read = |path: &Path| match captures.is_empty() {
            true => Ok((path.to_owned(), None)),
            false => Ok((path.to_owned(), Some(parts.read(path)?))),
        };
        let saved = saved.into_iter().map(read).collect::<Result<_, Failure>>()?;
        let captures = captures.into_iter().map(Path::to_owned).collect();
        Ok(Self { args, captures, saved, many: None })
    }

    /// The captures to be followed.
    pub(super) fn captures(&self) -> &[PathBuf] {
        &self.captures
    }

    /// Refuses a window if there are saved files.
    pub(super) fn refuse_window(&self, window: &Window) -> Result<(), Failure> {
        match self.saved.first().filter(|_| *window != Window::default()) {
            None => Ok(()),
            Some((path, _)) => Err(Failure::input(
                "window_of_saved",
                format!("{}: was saved as a whole, so a window cannot be cut out of it", path.display()),
                "give --from and --to when you save it",
            )),
        }
    }

    /// Whether a saved file has runs.
    pub(super) fn knows_runs(&self) -> bool {
        self.saved.iter().any(|(path, _)| keeps_runs(&head(path)))
    }

    /// The answer to the question of all places.
    pub(super) fn ask<Q: Additive<Answer = T>>(
        self,
        asking: &Asking<'_, Q>,
        messages: &Messages,
    ) -> Result<Gathered<T>, Failure> {
        let Self { args, captures, saved, many } = self;
        if let Some(many) = many {
            return many.ask(&captures, saved, asking, messages);
        }
        let mut gathered = Gathered::new(args);
        let (mut copies, mut left_out) = (Copies::default(), None);
        for capture in &captures {
            let args = CaptureArgs { capture: capture.clone(), ..args.follow.capture.clone() };
            match answer(&args, asking, messages) {
                Ok(answered) => {
                    if let Some(known) = copies.add(capture, answered.files.clone()) {
                        warn_of_copy("the trace", capture, known, messages);
                    }
                    gathered.add(capture, answered);
                }
                Err(failure) if captures.len() == 1 || !failure.is_of_capture() => return Err(failure),
                Err(failure) => {
                    let (reason, name) = (failure.to_string(), capture.display());
                    let named =
                        if reason.contains(&name.to_string()) { String::new() } else { format!("{name}: ") };
                    messages.incomplete("captures_left_out", format_args!("left out: {named}{reason}"));
                    left_out.get_or_insert(failure);
                }
            }
        }
        if let (true, true, Some(failure)) =
            (gathered.answered.programs.programs.is_empty(), saved.is_empty(), left_out)
        {
            return Err(failure);
        }
        gathered.answered.programs.complete &= messages.complete();
        if captures.is_empty() {
            let saved = || saved.iter().map(|(path, _)| path.as_path());
            gathered.load_images(args, saved(), messages)?;
        }
        let (mut names, mut runs) = (CaptureNames::of(&gathered.answered.programs), RunNames::new(messages));
        let mut parts = Parts::new(messages);
        for (path, part) in saved {
            let mut part = match part {
                Some(part) => part,
                None => parts.read(&path)?,
            };
            if asking.by_run {
                runs.name(&path, &mut part);
            }
            (asking.saved)(&path, &part, messages)?;
            gathered.refuse_other_program(&path, &part)?;
            names.distinguish(&mut gathered.answered.programs, &path, &mut part);
            gathered.answered.programs.merge(part).map_err(|error| cannot_add(&path, &error))?;
            gathered.dated.push(path);
        }
        Ok(gathered)
    }
}

impl<T: Save + Send + Clone> Places<'_, T> {
    /// The first thing of this kind that a saved answer has: in the sum so far, or in a saved file.
    pub(super) fn first_saved<U>(
        &self,
        mut look: impl FnMut(&Path, &Programs<T>) -> Result<Option<U>, Failure>,
    ) -> Result<Option<U>, Failure> {
        let mut found = None;
        if let Some(sum) = self.many.as_ref().and_then(Many::so_far) {
            found = look(sum.0, sum.1)?;
        }
        for (path, part) in &self.saved {
            let part = match part {
                Some(part) => Cow::Borrowed(part),
                None => Cow::Owned(read_part(path)?),
            };
            let of_part = look(path, &part)?;
            found = found.or(of_part);
        }
        Ok(found)
    }
}

/// The answer of a single capture.
fn answer<Q: Additive>(
    args: &CaptureArgs,
    asking: &Asking<'_, Q>,
    messages: &Messages,
) -> Result<Answered<Q::Answer>, Failure> {
    let mut session = (asking.open)(args, messages)?;
    let name = Plain(args.capture.display()).to_string();
    Ok(session.answer(asking.question, &asking.how, &name, messages)?)
}

impl<T: Save> Gathered<T> {
    fn new(args: &PlacesArgs) -> Self {
        Self {
            answered: Answered::default(),
            other_program: None,
            dated: args.follow.capture.images.iter().map(|image| image.file.clone()).collect(),
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
    pub(super) fn dated(&self) -> impl Iterator<Item = &Path> {
        self.dated.iter().map(PathBuf::as_path)
    }

    /// Refuses a report of captures of different programs, whose numbers would be added.
    pub(super) fn refuse_several_programs(&self) -> Result<(), Failure> {
        match &self.other_program {
            Some((capture, error)) => Err(cannot_add(capture, error)),
            None => Ok(()),
        }
    }

    /// Saves the answers. For a program that is identified by its memory, notes its images, because the file does not name them
    /// otherwise.
    pub(super) fn save(&self, file: &Path, messages: &Messages) -> Result<(), Failure> {
        write_to(Some(file), |out| self.answered.programs.save(out))?;
        for (id, program) in &self.answered.programs.programs {
            if T::NEEDS_PROGRAM && matches!(id, ProgramId::Code(_)) && !program.images.is_empty() {
                messages.note("known_by_memory", format_args!(
                    "{}: an image has no build ID, so the program is identified by all of its memory; report it with --image for \
                     each of {}",
                    file.display(),
                    program.name()
                ));
            }
        }
        Ok(())
    }

    /// Loads the images of the options: for saved files without captures.
    fn load_images<'p>(
        &mut self,
        args: &PlacesArgs,
        saved: impl Iterator<Item = &'p Path>,
        messages: &Messages,
    ) -> Result<(), Failure> {
        let (capture, source_dirs) = (&args.follow.capture, &args.follow.source_dirs);
        let interrupts = interrupts(&capture.request(), messages)?;
        // A source without a known program has no names.
        let unknown = Arc::new(Code { interrupts, ..Code::unknown() });
        let nothing = ProgramId::of(&Program::new(), []);
        if capture.images.is_empty() {
            for path in saved {
                if read_part::<T>(path)?.programs.contains_key(&nothing) {
                    self.answered.code.insert(nothing, unknown);
                    break;
                }
            }
            return Ok(());
        }
        self.answered.code.insert(nothing, unknown);
        messages
            .replaced
            .spare(|directories| FollowedProgram::source_files(&capture.request(), directories))?;
        messages.record(|record| {
            capture.images.iter().for_each(|image| record.program(&image.file));
            Ok(())
        })?;
        let programs = FollowedProgram::of_images(&capture.request(), source_dirs, messages)?;
        self.answered.code.extend(programs.into_iter().map(|program| (program.id, program.code)));
        Ok(())
    }

    /// Refuses a part of another program than the current one.
    fn refuse_other_program(&self, path: &Path, part: &Programs<T>) -> Result<(), Failure> {
        if self.answered.code.is_empty() {
            return Ok(());
        }
        match part.programs.keys().find(|id| !self.answered.code.contains_key(*id)) {
            None => Ok(()),
            Some(other) => {
                let nothing = ProgramId::of(&Program::new(), []);
                let known = self.answered.code.keys().filter(|id| **id != nothing);
                let known = known.map(ToString::to_string).collect::<Vec<_>>().join(" or ");
                let images = part.programs.get(other).map(OfProgram::name).unwrap_or_default();
                let remedy = match other {
                    ProgramId::Code(_) if !images.is_empty() => {
                        format!("all of its memory identifies it: give each of {images} with --image")
                    }
                    _ => NO_PROGRAM.to_owned(),
                };
                Err(Failure::input(
                    "other_program",
                    format!("{}: is of another program: found {other}, expected {known}", path.display()),
                    remedy,
                ))
            }
        }
    }
}

/// Refuses a capture or saved file that is given twice: it would count twice.
fn refuse_twice<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Result<(), Failure> {
    let mut known = BTreeSet::new();
    for path in paths {
        let Ok(file) = path.canonicalize() else { continue };
        if !known.insert(file) {
            let problem = format!("{}: is given twice, and would count twice", path.display());
            return Err(Failure::input("named_twice", problem, "give each run once"));
        }
    }
    Ok(())
}

/// Warns of a copy: two runs may be equal, but a copy counts twice.
fn warn_of_copy(what: &str, path: &Path, known: &Path, messages: &Messages) {
    messages.warning(
        "equal_content",
        format_args!(
            "{}: contains exactly {what} of {}; if both are from one run, the run counts twice: leave one out",
            path.display(),
            known.display()
        ),
    );
}

/// Names the runs of saved files.
#[derive(Debug)]
struct RunNames<'a> {
    messages: &'a Messages,
    /// The runs, each with the first file that has it.
    known: BTreeMap<String, PathBuf>,
}

impl<'a> RunNames<'a> {
    /// Starts without named runs.
    const fn new(messages: &'a Messages) -> Self {
        Self { messages, known: BTreeMap::new() }
    }

    /// Names the run of a saved file without runs after the file. Warns of runs of the same name in two files, which become one.
    fn name<T: Save>(&mut self, path: &Path, part: &mut Programs<T>) {
        let mut names = BTreeSet::new();
        for program in part.programs.values_mut() {
            program.found.name_run(&path.display().to_string());
            names.extend(program.found.runs().iter().cloned());
        }
        for name in names {
            if let Some(other) = self.known.get(&name) {
                self.messages.warning(
                    "same_run",
                    format_args!(
                        "{}: has a run {}, as has {}; both count as one run; save each run with its own name",
                        path.display(),
                        Plain(&name),
                        other.display()
                    ),
                );
            } else {
                self.known.insert(name, path.to_owned());
            }
        }
    }
}

fn cannot_add(path: &Path, error: &MergeError) -> Failure {
    Failure::input(
        error.name(),
        format!("{}: {error}", path.display()),
        "only runs of the same program that were measured in the same way can be merged",
    )
}

/// The saved kind of a file; `None` for other files.
pub(super) fn kind_of(path: &Path) -> Option<&'static str> {
    saved_kind(&head(path), &KINDS)
}

/// The first bytes of a file. Empty for a pipe, whose bytes could not be read again.
fn head(path: &Path) -> Vec<u8> {
    let is_file = std::fs::metadata(path).is_ok_and(|found| found.is_file());
    let mut head = Vec::new();
    if let Some(file) = File::open(path).ok().filter(|_| is_file) {
        // An unreadable file counts as not saved; reading it later reports the error.
        let _ = file.take(64).read_to_end(&mut head);
    }
    head
}

/// Reads a text file.
pub(super) fn read_text(path: &Path) -> Result<String, Failure> {
    tracewalk_input::read_text(path, LONGEST_TEXT).map_err(|problem| unreadable(path, &problem))
}
