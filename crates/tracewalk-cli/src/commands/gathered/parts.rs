//! Saved files → their contents, each file once.

use std::collections::HashMap;
use std::collections::hash_map::{DefaultHasher, Entry};
use std::hash::Hasher;
use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};

use tracewalk_analysis::programs::Programs;
use tracewalk_analysis::saved::{Save, SavedErrorKind};
use tracewalk_input::FileProblem;

use crate::failure::Failure;
use crate::messages::Messages;

/// The longest saved file. Files are read line by line, and entries for the same place are merged.
const LONGEST: u64 = 1 << 30;

/// Reads saved files, and knows which it has read.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    messages: &'a Messages,
    /// The files by a hash of their contents.
    read: HashMap<u64, PathBuf>,
}

impl<'a> Parts<'a> {
    /// No file is read yet.
    pub(super) fn new(messages: &'a Messages) -> Self {
        Self { messages, read: HashMap::new() }
    }

    /// Reads a saved file. Refuses one without an answer: it would be no part of the sum. Warns if one with the same content was read before: two runs may be equal, but a copy counts twice.
    pub(super) fn read<T: Save>(&mut self, path: &Path) -> Result<Programs<T>, Failure> {
        let (part, hash) = read_hashed::<T>(path)?;
        if part.programs.is_empty() {
            return Err(Failure::input(
                "saved_nothing",
                format!("{}: contains no program: nothing was measured when it was saved", path.display()),
                "leave it out; if it was saved with status 2, its messages name the reason, such as an image that was not traced",
            ));
        }
        match self.read.entry(hash) {
            Entry::Occupied(known) => super::warn_of_copy("the contents", path, known.get(), self.messages),
            Entry::Vacant(place) => {
                place.insert(path.to_owned());
            }
        }
        Ok(part)
    }
}

/// Reads a saved file that is not added to others.
pub(in crate::commands) fn read_part<T: Save>(path: &Path) -> Result<Programs<T>, Failure> {
    read_hashed(path).map(|(part, _)| part)
}

fn read_hashed<T: Save>(path: &Path) -> Result<(Programs<T>, u64), Failure> {
    let file = tracewalk_input::reader(path, LONGEST).map_err(|problem| unreadable(path, &problem))?;
    let mut file = Hashed { inner: file, hasher: DefaultHasher::new() };
    let part = Programs::read(&mut file).map_err(|error| {
        let command = T::KIND;
        let hint = match error.kind {
            SavedErrorKind::Version { .. } => format!("save it again: `tracewalk {command} --save`"),
            _ => format!("give a file that `tracewalk {command} --save` wrote"),
        };
        Failure::input(error.kind.name(), format!("{}: {error}", path.display()), hint)
    })?;
    Ok((part, file.hasher.finish()))
}

/// The error for an unreadable file.
pub(in crate::commands) fn unreadable(path: &Path, problem: &FileProblem) -> Failure {
    Failure::input(problem.name(), format!("{}: {problem}", path.display()), "check the file's name")
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
