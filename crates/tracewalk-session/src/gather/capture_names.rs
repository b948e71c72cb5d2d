//! Distinguishes captures of the same name in several saved files: each board calls its capture `capture.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use tracewalk_analysis::programs::Programs;
use tracewalk_analysis::saved::Save;

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
        for name in names(part) {
            let Some(other) = self.known.get_mut(&name) else {
                self.known.insert(name, Some(path.to_owned()));
                continue;
            };
            if let Some(other) = other.take() {
                rename(sum, &name, &other);
            }
            rename(part, &name, path);
        }
    }
}

fn names<T: Save>(programs: &Programs<T>) -> BTreeSet<String> {
    let found = programs.programs.values().flat_map(|program| program.found.captures());
    found.map(str::to_owned).collect()
}

fn rename<T: Save>(programs: &mut Programs<T>, name: &str, file: &Path) {
    let to = format!("{}: {name}", file.display());
    programs.programs.values_mut().for_each(|program| program.found.rename_capture(name, &to));
}
