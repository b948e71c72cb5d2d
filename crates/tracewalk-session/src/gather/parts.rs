//! Saved files → their contents, each file once.

use std::collections::hash_map::{DefaultHasher, Entry};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::hash::Hasher;
use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};

use tracewalk_analysis::counts::CountedBinary;
use tracewalk_analysis::coverage::ProgramCoverage;
use tracewalk_analysis::interrupts::ProgramActivities;
use tracewalk_analysis::profile::ProgramProfiles;
use tracewalk_analysis::programs::Programs;
use tracewalk_analysis::saved::{Save, saved_kind};

use super::{GatherFront, PlacesError, PlacesErrorKind, PlacesNotice};

/// The longest saved file. Files are read line by line, and entries for the same place are merged.
const LONGEST: u64 = 1 << 30;

/// The kinds of saved files.
const KINDS: [&str; 4] =
    [ProgramCoverage::KIND, ProgramProfiles::KIND, ProgramActivities::KIND, CountedBinary::KIND];

/// Reads saved files, and knows which it has read.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// The files by a hash of their contents.
    read: HashMap<u64, PathBuf>,
}

impl Parts {
    /// Reads a saved file. Refuses one without an answer: it would be no part of the sum. Warns if one with the same content was
    /// read before: two runs may be equal, but a copy counts twice.
    pub(super) fn read<T: Save>(
        &mut self,
        path: &Path,
        front: &impl GatherFront,
    ) -> Result<Programs<T>, PlacesError> {
        let (part, hash) = read_hashed::<T>(path)?;
        if part.programs.is_empty() {
            return Err(PlacesErrorKind::SavedNothing.at(path));
        }
        match self.read.entry(hash) {
            Entry::Occupied(known) => {
                let (file, other) = (path.to_owned(), known.get().clone());
                front.notice(&PlacesNotice::SameContents { file, other });
            }
            Entry::Vacant(place) => {
                place.insert(path.to_owned());
            }
        }
        Ok(part)
    }
}

/// Names the runs of saved files.
#[derive(Debug, Default)]
pub(super) struct RunNames {
    /// The runs, each with the first file that has it.
    known: BTreeMap<String, PathBuf>,
}

impl RunNames {
    /// Names the run of a saved file without runs after the file. Warns of runs of the same name in two files, which become one.
    pub(super) fn name<T: Save>(&mut self, path: &Path, part: &mut Programs<T>, front: &impl GatherFront) {
        let mut names = BTreeSet::new();
        for program in part.programs.values_mut() {
            program.found.name_run(&path.display().to_string());
            names.extend(program.found.runs().iter().cloned());
        }
        for run in names {
            if let Some(other) = self.known.get(&run) {
                front.notice(&PlacesNotice::SameRun { file: path.to_owned(), run, other: other.clone() });
            } else {
                self.known.insert(run, path.to_owned());
            }
        }
    }
}

/// The kind of answer that a file saves; `None` for other files.
#[must_use]
pub fn saved_kind_of(path: &Path) -> Option<&'static str> {
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

/// Reads a saved file that is not added to others.
///
/// # Errors
///
/// If the file cannot be read, or does not save this kind of answer.
pub fn read_saved<T: Save>(path: &Path) -> Result<Programs<T>, PlacesError> {
    read_hashed(path).map(|(part, _)| part)
}

fn read_hashed<T: Save>(path: &Path) -> Result<(Programs<T>, u64), PlacesError> {
    let unreadable = |problem| PlacesErrorKind::Unreadable(problem).at(path);
    let file = tracewalk_input::reader(path, LONGEST).map_err(unreadable)?;
    let mut file = Hashed { inner: file, hasher: DefaultHasher::new() };
    let part = Programs::read(&mut file).map_err(|error| PlacesErrorKind::Saved(error).at(path))?;
    Ok((part, file.hasher.finish()))
}

/// Hashes the bytes that are read.
struct Hashed<R> {
    inner: R,
    hasher: DefaultHasher,
}

impl<R: BufRead> Read for Hashed<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(into)?;
        self.hasher.write(into.get(..read).unwrap_or_default());
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Hashed<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        // Consumed bytes have been read already.
        if let Ok(bytes) = self.inner.fill_buf() {
            self.hasher.write(bytes.get(..amount).unwrap_or_default());
        }
        self.inner.consume(amount);
    }
}
