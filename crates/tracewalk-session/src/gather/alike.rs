//! Captures that are alike: those of the same name in several saved files (each board calls its capture `capture.toml`), and those
//! with the same trace. Each of them counts.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use tracewalk_analysis::programs::Programs;
use tracewalk_analysis::saved::Save;

/// Knows the files of the traces that were opened.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// By how the files begin and how long they are.
    known: HashMap<u64, Vec<Trace>>,
}

/// The files of a capture's trace.
#[derive(Debug)]
struct Trace {
    capture: PathBuf,
    files: Vec<PathBuf>,
}

/// The beginning that distinguishes most files.
const BEGINNING: u64 = 4 << 10;

impl Copies {
    /// An earlier capture with the same trace as these files, if there is one. Trace from a pipe cannot be
    /// read again, and is never taken for a copy.
    pub(super) fn add(&mut self, capture: &Path, files: Vec<PathBuf>) -> Option<&Path> {
        let key = key(&files).ok().flatten()?;
        let alike = self.known.entry(key).or_default();
        let copied = alike.iter().position(|known| {
            let pairs = known.files.iter().zip(&files);
            known.files.len() == files.len()
                && pairs.into_iter().all(|(one, other)| is_same(one, other).unwrap_or(false))
        });
        match copied {
            Some(known) => alike.get(known).map(|known| known.capture.as_path()),
            None => {
                alike.push(Trace { capture: capture.to_owned(), files });
                None
            }
        }
    }
}

/// A hash of the beginnings and lengths of files; `None` if they are empty.
fn key(files: &[PathBuf]) -> io::Result<Option<u64>> {
    let mut hasher = DefaultHasher::new();
    let mut all = 0;
    for file in files {
        let file = File::open(file)?;
        let bytes = file.metadata()?;
        if !bytes.is_file() {
            return Ok(None);
        }
        all += bytes.len();
        let mut beginning = Vec::new();
        file.take(BEGINNING).read_to_end(&mut beginning)?;
        (bytes.len(), beginning).hash(&mut hasher);
    }
    Ok((all > 0).then(|| hasher.finish()))
}

/// Whether two files are equal. Different files usually differ early.
fn is_same(one: &Path, other: &Path) -> io::Result<bool> {
    let [mut one, mut other] = [BufReader::new(File::open(one)?), BufReader::new(File::open(other)?)];
    loop {
        let (left, right) = (one.fill_buf()?, other.fill_buf()?);
        let bytes = left.len().min(right.len());
        if bytes == 0 {
            return Ok(left.is_empty() && right.is_empty());
        }
        if left.get(..bytes) != right.get(..bytes) {
            return Ok(false);
        }
        one.consume(bytes);
        other.consume(bytes);
    }
}

/// The names of the captures added up so far.
#[derive(Debug, Default)]
pub(super) struct CaptureNames {
    /// By name: the saved file with it; `None` for a capture itself, and for a name that was replaced.
    known: BTreeMap<String, Option<PathBuf>>,
}

impl CaptureNames {
    /// The names of captures that were followed, which keep their names.
    pub(super) fn of<T: Save>(found: &Programs<T>) -> Self {
        Self { known: names(found).into_iter().map(|name| (name, None)).collect() }
    }

    /// Names captures in the part at `path` after their file if `sum` has captures of the same name, and those in `sum` likewise.
    pub(super) fn distinguish<T: Save>(
        &mut self,
        sum: &mut Programs<T>,
        path: &Path,
        part: &mut Programs<T>,
    ) {
        let (mut ours, mut theirs) = (BTreeMap::new(), BTreeMap::new());
        let named = |name: &str, file: &Path| format!("{}: {name}", file.display());
        for name in names(part) {
            let Some(other) = self.known.get_mut(&name) else {
                self.known.insert(name, Some(path.to_owned()));
                continue;
            };
            if let Some(other) = other.take() {
                ours.insert(name.clone(), named(&name, &other));
            }
            theirs.insert(name.clone(), named(&name, path));
        }
        for (programs, names) in [(sum, ours), (part, theirs)] {
            if !names.is_empty() {
                programs.programs.values_mut().for_each(|program| program.found.rename_captures(&names));
            }
        }
    }
}

fn names<T: Save>(programs: &Programs<T>) -> BTreeSet<String> {
    let found = programs.programs.values().flat_map(|program| program.found.captures());
    found.map(str::to_owned).collect()
}
