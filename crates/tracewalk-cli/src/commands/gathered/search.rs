//! Directories and lists → captures, and saved files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};

use tracewalk_analysis::saved::Save;
use tracewalk_input::capture::stream;
use tracewalk_input::capture::{FoundPath, files, is_described, walk};

use super::{head, kind_of};
use crate::args::{Pattern, PlacesArgs};
use crate::failure::Failure;

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
pub(super) fn search<T: Save>(args: &PlacesArgs, results: &[Option<&Path>]) -> Result<Vec<Place>, Failure> {
    let mut seeker =
        Seeker { args, results: canonical(args, results), found: BTreeMap::new(), passed_over: None };
    for word in args.words() {
        match word.to_str().and_then(|word| word.strip_prefix('@')) {
            Some(list) => {
                for line in listed(list)? {
                    seeker.named::<T>(Path::new(&line))?;
                }
            }
            None => seeker.named::<T>(word)?,
        }
    }
    if let (true, Some(directory)) = (seeker.found.is_empty(), &seeker.passed_over) {
        let directory = directory.display();
        return Err(Failure::input(
            "no_captures",
            format!(
                "{directory}: is one capture, because it has a description, and --match matches only its name, not its files"
            ),
            format!("leave out --match, or name the files of trace bytes: {directory}/*.bin without quotes"),
        ));
    }
    if seeker.found.is_empty() {
        return Err(Failure::input(
            "no_captures",
            "found no capture; in directories, only snapshots, capture.toml, perf.data and recordings of logic analysers are recognised",
            "select files of trace bytes by name: --match '*.bin'",
        ));
    }
    Ok(seeker.found.into_values().collect())
}

/// The results of an earlier run, which may be in the directories that are searched.
fn canonical(args: &PlacesArgs, results: &[Option<&Path>]) -> BTreeSet<PathBuf> {
    let own = [args.captures.as_deref(), args.resume.as_deref()];
    own.iter().chain(results).flatten().filter_map(|path| path.canonicalize().ok()).collect()
}

/// The lines of a file, or of standard input.
fn listed(list: &str) -> Result<Vec<String>, Failure> {
    let read = |from: &mut dyn Read| BufReader::new(from).lines().collect::<io::Result<Vec<_>>>();
    let lines = match list {
        "-" => read(&mut io::stdin().lock()),
        file => std::fs::File::open(file).and_then(|mut file| read(&mut file)),
    };
    let lines = lines.map_err(|error| {
        let hint = "after @, give a text file that names one capture on each line";
        Failure::input("list", format!("{list}: cannot be read as a list of captures: {error}"), hint)
    })?;
    Ok(lines.into_iter().filter(|line| !line.is_empty()).collect())
}

struct Seeker<'a> {
    args: &'a PlacesArgs,
    results: BTreeSet<PathBuf>,
    /// By canonical name.
    found: BTreeMap<PathBuf, Place>,
    /// The first directory with a description whose name `--match` does not match.
    passed_over: Option<PathBuf>,
}

impl Seeker<'_> {
    /// Adds an argument: a directory to search, or a capture or saved file.
    fn named<T: Save>(&mut self, path: &Path) -> Result<(), Failure> {
        if path.as_os_str() == "-" || !matches!(stream::Place::of(path), Ok(None)) {
            return Err(Failure::input(
                "arrives",
                format!(
                    "{}: arrives over time, but directories and lists hold only complete captures",
                    path.display()
                ),
                "name it without directories, lists, --match, --resume and --captures",
            ));
        }
        if !path.is_dir() {
            return self.add::<T>(FoundPath { path: path.to_owned(), is_capture: true }, true);
        }
        let patterns = &self.args.patterns;
        let found = walk(path).map_err(|(directory, error)| {
            let problem = format!("{}: cannot be searched: {error}", directory.display());
            Failure::input("directory", problem, "check its permissions, or give other places")
        })?;
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

    fn add<T: Save>(&mut self, found: FoundPath, is_named: bool) -> Result<(), Failure> {
        let FoundPath { path, is_capture } = found;
        let known_as = path.canonicalize().unwrap_or_else(|_| path.clone());
        let saved = kind_of(&path);
        let is_result = self.results.contains(&known_as);
        let kind = match saved {
            Some(_) if is_result => return Ok(()),
            Some(kind) if kind == T::KIND => PlaceKind::Saved,
            // The same directory may contain saved files of other kinds.
            Some(_) if !is_named => return Ok(()),
            Some(kind) => {
                return Err(Failure::input(
                    "other_kind",
                    format!(
                        "{}: was saved by `tracewalk {kind}`, not by `tracewalk {}`",
                        path.display(),
                        T::KIND
                    ),
                    format!("use `tracewalk {kind}`, or leave the file out"),
                ));
            }
            None if is_result && is_state(&path) => return Ok(()),
            None if !is_capture => return Ok(()),
            None => PlaceKind::Capture,
        };
        let stamp = stamp(&path, self.args);
        let place = Place { path, known_as: known_as.clone(), kind, stamp };
        self.found.entry(known_as).or_insert(place);
        Ok(())
    }
}

impl Place {
    /// The place's files, as far as known before it is opened.
    pub(super) fn files(&self, args: &PlacesArgs) -> Vec<PathBuf> {
        files(&self.path, &args.follow.capture.roots)
    }
}

/// Whether a directory is searched: unless it is a capture itself.
pub(super) fn is_searched(directory: &Path) -> bool {
    !is_described(directory)
}

/// Whether a file is one of `--resume`.
fn is_state(path: &Path) -> bool {
    head(path).starts_with(b"{\"gathering\":")
}

fn is_matched(patterns: &[Pattern], path: &Path) -> bool {
    let whole = path.to_string_lossy().replace('\\', "/");
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    patterns.iter().any(|pattern| [&*whole, &*name].iter().any(|name| pattern.is_match(name)))
}

/// A hash of the lengths and times of a capture's files.
fn stamp(path: &Path, args: &PlacesArgs) -> u64 {
    let mut hasher = DefaultHasher::new();
    for file in files(path, &args.follow.capture.roots) {
        let found = std::fs::metadata(&file).ok().filter(Metadata::is_file);
        found.map(|found| (found.len(), found.modified().ok())).hash(&mut hasher);
    }
    hasher.finish()
}
