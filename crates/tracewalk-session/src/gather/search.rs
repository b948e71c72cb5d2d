//! Directories and lists → captures, and saved files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};

use tracewalk_analysis::saved::Save;
use tracewalk_input::capture::stream;
use tracewalk_input::capture::{FoundPath, files, is_described, walk};

use super::parts::{head, saved_kind_of};
use super::{Gather, PlacesError, PlacesErrorKind};
use crate::request::Pattern;

/// A capture, or a saved file.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// The path as it was named.
    pub(super) path: PathBuf,
    /// The canonical name.
    pub(super) known_as: PathBuf,
    pub(super) kind: PlaceKind,
    /// A hash of the lengths and times of its files.
    pub(super) stamp: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlaceKind {
    Capture,
    Saved,
}

/// All places, each once, in the order of names.
pub(super) fn search<T: Save>(gather: &Gather) -> Result<Vec<Place>, PlacesError> {
    let results = gather.resume.iter().chain(&gather.results);
    let results = results.filter_map(|path| path.canonicalize().ok()).collect();
    let mut seeker = Seeker { gather, results, found: BTreeMap::new(), passed_over: None };
    for word in &gather.places {
        match word.to_str().and_then(|word| word.strip_prefix('@')) {
            Some(list) => {
                for line in listed(list)? {
                    seeker.named::<T>(Path::new(&line))?;
                }
            }
            None => seeker.named::<T>(word)?,
        }
    }
    match seeker.passed_over {
        Some(directory) if seeker.found.is_empty() => Err(PlacesErrorKind::IsCapture.at(directory)),
        None if seeker.found.is_empty() => Err(PlacesErrorKind::NoCaptures.at("")),
        _ => Ok(seeker.found.into_values().collect()),
    }
}

/// The lines of a file, or of standard input.
fn listed(list: &str) -> Result<Vec<String>, PlacesError> {
    let read = |from: &mut dyn Read| BufReader::new(from).lines().collect::<io::Result<Vec<_>>>();
    let lines = match list {
        "-" => read(&mut io::stdin().lock()),
        file => std::fs::File::open(file).and_then(|mut file| read(&mut file)),
    };
    let lines = lines.map_err(|error| PlacesErrorKind::List(error.to_string()).at(list))?;
    Ok(lines.into_iter().filter(|line| !line.is_empty()).collect())
}

struct Seeker<'a> {
    gather: &'a Gather,
    /// The results of an earlier run, which may be in the directories that are searched.
    results: BTreeSet<PathBuf>,
    /// By canonical name.
    found: BTreeMap<PathBuf, Place>,
    /// The first directory with a description whose name no pattern matches.
    passed_over: Option<PathBuf>,
}

impl Seeker<'_> {
    /// Adds an argument: a directory to search, or a capture or saved file.
    fn named<T: Save>(&mut self, path: &Path) -> Result<(), PlacesError> {
        if path.as_os_str() == "-" || !matches!(stream::Place::of(path), Ok(None)) {
            return Err(PlacesErrorKind::Arrives.at(path));
        }
        if !path.is_dir() {
            return self.add::<T>(FoundPath { path: path.to_owned(), is_capture: true }, true);
        }
        let patterns = &self.gather.patterns;
        let found = walk(path)
            .map_err(|(directory, error)| PlacesErrorKind::Directory(error.to_string()).at(directory))?;
        for found in found {
            let is_wanted = match patterns.as_slice() {
                [] => found.is_capture,
                patterns => is_matched(patterns, &found.path),
            };
            if found.is_capture && !is_wanted && found.path.is_dir() {
                self.passed_over.get_or_insert_with(|| found.path.clone());
            }
            self.add::<T>(FoundPath { is_capture: is_wanted, ..found }, false)?;
        }
        Ok(())
    }

    fn add<T: Save>(&mut self, found: FoundPath, is_named: bool) -> Result<(), PlacesError> {
        let FoundPath { path, is_capture } = found;
        let known_as = path.canonicalize().unwrap_or_else(|_| path.clone());
        let saved = saved_kind_of(&path);
        let is_result = self.results.contains(&known_as);
        let kind = match saved {
            Some(_) if is_result => return Ok(()),
            Some(kind) if kind == T::KIND => PlaceKind::Saved,
            // The same directory may contain saved files of other kinds.
            Some(_) if !is_named => return Ok(()),
            Some(found) => return Err(PlacesErrorKind::OtherKind { found, expected: T::KIND }.at(path)),
            None if is_result && is_state(&path) => return Ok(()),
            None if !is_capture => return Ok(()),
            None => PlaceKind::Capture,
        };
        let stamp = stamp(&path, &self.gather.request.roots);
        let place = Place { path, known_as: known_as.clone(), kind, stamp };
        self.found.entry(known_as).or_insert(place);
        Ok(())
    }
}

impl Place {
    /// The place's files, as far as known before it is opened.
    pub(super) fn files(&self, gather: &Gather) -> Vec<PathBuf> {
        files(&self.path, &gather.request.roots)
    }
}

/// Whether a directory is searched: unless it is a capture itself.
pub(super) fn is_searched(directory: &Path) -> bool {
    !is_described(directory)
}

/// Whether a file is one that an earlier run can be continued from.
fn is_state(path: &Path) -> bool {
    head(path).starts_with(b"{\"gathering\":")
}

fn is_matched(patterns: &[Pattern], path: &Path) -> bool {
    let whole = path.to_string_lossy().replace('\\', "/");
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    patterns.iter().any(|pattern| [&*whole, &*name].iter().any(|name| pattern.is_match(name)))
}

/// A hash of the lengths and times of a capture's files.
fn stamp(path: &Path, roots: &[PathBuf]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for file in files(path, roots) {
        let found = std::fs::metadata(&file).ok().filter(Metadata::is_file);
        found.map(|found| (found.len(), found.modified().ok())).hash(&mut hasher);
    }
    hasher.finish()
}
