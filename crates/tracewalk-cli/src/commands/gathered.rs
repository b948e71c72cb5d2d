//! Captures and saved files → the answer for each program, and the programs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tracewalk::plain::Plain;
use tracewalk::program::Program;
use tracewalk_analysis::counts::CountedBinary;
use tracewalk_analysis::coverage::ProgramCoverage;
use tracewalk_analysis::interrupts::ProgramActivities;
use tracewalk_analysis::profile::ProgramProfiles;
use tracewalk_analysis::programs::{MergeError, OfProgram, ProgramId, Programs};
use tracewalk_analysis::saved::{Save, saved_kind};
use tracewalk_analysis::{Code, Statistics, Window};

use super::copies::Copies;
use super::parts::{Parts, unreadable};

use crate::args::{CaptureArgs, FollowArgs};
use crate::failure::Failure;
use crate::messages::Messages;
use crate::output::write_to;
use tracewalk_sentences::NO_PROGRAM;
use tracewalk_session::{FollowedProgram, Session, interrupts};

/// The longest text file that is not a saved file.
const LONGEST_TEXT: u64 = 256 << 20;

/// The kinds of saved files, which `merge` adds up.
const KINDS: [&str; 4] =
    [ProgramCoverage::KIND, ProgramProfiles::KIND, ProgramActivities::KIND, CountedBinary::KIND];

/// The answers gathered so far.
#[derive(Debug)]
pub(super) struct Gathered<'a, T> {
    pub(super) found: Programs<T>,
    pub(super) statistics: Statistics,
    follow: &'a FollowArgs,
    captures: Vec<&'a Path>,
    /// The saved files, with their contents.
    parts: Vec<(&'a Path, Programs<T>)>,
    copies: Copies,
    /// The programs of the captures.
    programs: BTreeMap<ProgramId, Arc<Code>>,
    /// The first capture of other programs than the captures before.
    other_program: Option<(PathBuf, MergeError)>,
    /// The files of traces, saved answers and images: the oldest one shows when the program was built or traced.
    dated: Vec<PathBuf>,
}

impl<'a, T: Save> Gathered<'a, T> {
    /// Reads the saved files among the arguments; the captures are followed later.
    pub(super) fn open(
        follow: &'a FollowArgs,
        more: &'a [PathBuf],
        messages: &Messages,
    ) -> Result<Self, Failure> {
        let mut gathered = Self {
            found: Programs::default(),
            statistics: Statistics::default(),
            follow,
            captures: Vec::new(),
            parts: Vec::new(),
            copies: Copies::default(),
            programs: BTreeMap::new(),
            other_program: None,
            dated: follow.capture.images.iter().map(|image| image.file.clone()).collect(),
        };
        let mut parts = Parts::new(messages);
        for path in std::iter::once(&follow.capture.capture).chain(more) {
            match kind_of(path) {
                Some(_) => {
                    gathered.parts.push((path, parts.read(path)?));
                    gathered.dated.push(path.clone());
                }
                None => gathered.captures.push(path),
            }
        }
        refuse_twice(gathered.parts.iter().map(|(path, _)| *path).chain(gathered.captures.iter().copied()))?;
        Ok(gathered)
    }

    /// The captures to be followed.
    pub(super) fn captures(&self) -> Vec<CaptureArgs> {
        let args = &self.follow.capture;
        let capture = |path: &&Path| CaptureArgs { capture: path.to_path_buf(), ..args.clone() };
        self.captures.iter().map(capture).collect()
    }

    /// A capture was opened to be followed: warns if it is a copy of another one.
    pub(super) fn opened(&mut self, capture: &CaptureArgs, session: &Session, messages: &Messages) {
        let opened = session.capture();
        // A description may be older or newer than the trace.
        self.dated.extend(opened.buffers.iter().map(|buffer| buffer.file.clone()));
        // The binaries of a system were built long before.
        if opened.recorded.is_none() {
            self.dated.extend(opened.images.iter().map(|image| image.file.clone()));
        }
        if self.captures.len() > 1 {
            self.copies.opened(&capture.capture, session, messages);
        }
    }

    /// Refuses a window if there are saved files.
    pub(super) fn refuse_window(&self, window: &Window) -> Result<(), Failure> {
        match self.parts.first().filter(|_| *window != Window::default()) {
            None => Ok(()),
            Some((path, _)) => Err(Failure::input(
                "window_of_saved",
                format!("{}: was saved as a whole, so a window cannot be cut out of it", path.display()),
                "give --from and --to when you save it",
            )),
        }
    }

    /// The contents of the saved files.
    pub(super) fn parts(&self) -> impl Iterator<Item = (&'a Path, &Programs<T>)> {
        self.parts.iter().map(|(path, part)| (*path, part))
    }

    /// The files whose times show when the program was built or traced.
    pub(super) fn dated(&self) -> impl Iterator<Item = &Path> {
        self.dated.iter().map(PathBuf::as_path)
    }

    /// Whether a saved file has runs.
    pub(super) fn knows_runs(&self) -> bool {
        self.parts.iter().any(|(_, part)| knows_runs(part))
    }

    /// Keeps the saved files apart as runs: those in them, or else a run with the file's name.
    pub(super) fn name_runs(&mut self, messages: &Messages) {
        let mut names = RunNames::new(messages);
        self.parts.iter_mut().for_each(|(path, part)| names.name(path, part));
    }

    /// Adds the answer for a program.
    pub(super) fn add(&mut self, program: FollowedProgram, found: T) {
        self.found.add(program.id.clone(), program.images, found);
        self.programs.insert(program.id, program.code);
    }

    /// Adds the answers of a capture, which keeps its programs apart from those of the captures before. Notes the first capture
    /// whose programs `merge` would refuse, unless each answer is about a file.
    pub(super) fn add_capture(
        &mut self,
        capture: &Path,
        found: Vec<(FollowedProgram, T)>,
        is_of_files: bool,
    ) {
        let mut part = Programs::default();
        for (program, found) in found {
            part.add(program.id.clone(), program.images, found);
            self.programs.insert(program.id, program.code);
        }
        if let (false, Err(error)) = (is_of_files, self.found.accepts(&part)) {
            self.other_program.get_or_insert_with(|| (capture.to_owned(), error));
        }
        self.found.add_all(part);
    }

    /// Refuses a report of captures of different programs, whose numbers would be added.
    pub(super) fn refuse_several_programs(&self) -> Result<(), Failure> {
        match &self.other_program {
            Some((capture, error)) => Err(cannot_add(capture, error)),
            None => Ok(()),
        }
    }

    /// Adds the saved files, after all captures were followed.
    pub(super) fn finish(mut self, messages: &Messages) -> Result<Self, Failure> {
        self.found.complete &= messages.complete();
        if self.captures.is_empty() {
            self.load_images(messages)?;
        }
        for (path, part) in std::mem::take(&mut self.parts) {
            self.refuse_other_program(path, &part)?;
            add_part(&mut self.found, path, part)?;
        }
        Ok(self)
    }

    /// Saves the answers. For a program that is identified by its memory, notes its images, because the file does not name them
    /// otherwise.
    pub(super) fn save(&self, file: &Path, messages: &Messages) -> Result<(), Failure> {
        write_to(Some(file), |out| self.found.save(out))?;
        for (id, program) in &self.found.programs {
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

    /// The program with this identity; `None` if it was not given.
    pub(super) fn code(&self, id: &ProgramId) -> Option<&Arc<Code>> {
        self.programs.get(id)
    }

    /// Loads the images of the options, if no capture did.
    fn load_images(&mut self, messages: &Messages) -> Result<(), Failure> {
        let args = &self.follow.capture;
        let interrupts = interrupts(&args.request(), messages)?;
        // A source without a known program has no names.
        let unknown = Arc::new(Code { interrupts, ..Code::unknown() });
        let nothing = ProgramId::of(&Program::new(), []);
        let is_of_nothing = |part: &Programs<T>| part.programs.contains_key(&nothing);
        if args.images.is_empty() {
            if self.parts.iter().any(|(_, part)| is_of_nothing(part)) {
                self.programs.insert(nothing, unknown);
            }
            return Ok(());
        }
        self.programs.insert(nothing, unknown);
        messages.replaced.spare(|directories| FollowedProgram::source_files(&args.request(), directories))?;
        let programs = FollowedProgram::of_images(&args.request(), &self.follow.source_dirs, messages)?;
        self.programs.extend(programs.into_iter().map(|program| (program.id, program.code)));
        Ok(())
    }

    /// Refuses a part of another program than the current one.
    fn refuse_other_program(&self, path: &Path, part: &Programs<T>) -> Result<(), Failure> {
        if self.programs.is_empty() {
            return Ok(());
        }
        match part.programs.keys().find(|id| !self.programs.contains_key(*id)) {
            None => Ok(()),
            Some(other) => {
                let nothing = ProgramId::of(&Program::new(), []);
                let known = self.programs.keys().filter(|id| **id != nothing);
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
pub(super) fn refuse_twice<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Result<(), Failure> {
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

/// Whether runs are known of one of the programs.
pub(super) fn knows_runs<T: Save>(part: &Programs<T>) -> bool {
    part.programs.values().any(|program| !program.found.runs().is_empty())
}

/// Names the runs of saved files.
#[derive(Debug)]
pub(super) struct RunNames<'a> {
    messages: &'a Messages,
    /// The runs, each with the first file that has it.
    known: BTreeMap<String, PathBuf>,
}

impl<'a> RunNames<'a> {
    /// Starts without named runs.
    pub(super) const fn new(messages: &'a Messages) -> Self {
        Self { messages, known: BTreeMap::new() }
    }

    /// Names the run of a saved file without runs after the file. Warns of runs of the same name in two files, which become one.
    pub(super) fn name<T: Save>(&mut self, path: &Path, part: &mut Programs<T>) {
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

/// Adds the contents of a saved file.
pub(super) fn add_part<T: Save>(
    found: &mut Programs<T>,
    path: &Path,
    part: Programs<T>,
) -> Result<(), Failure> {
    found.merge(part).map_err(|error| cannot_add(path, &error))
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
pub(super) fn head(path: &Path) -> Vec<u8> {
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
