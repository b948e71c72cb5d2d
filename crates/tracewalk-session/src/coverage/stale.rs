//! Detects source files that are not those that were compiled.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tracewalk_analysis::coverage::{File, Report, Stale};
use tracewalk_analysis::symbols::SourceFile;

/// The times of files from one checkout or archive differ by at most this much.
const TOGETHER: Duration = Duration::from_secs(10);

/// Marks the files whose source is not the one that was compiled: by the checksum that the program has of it, or else by its
/// length and its time. The earliest time of the files in `dated` shows when the program was built or traced. Returns the names
/// of the files whose source was not found.
pub(super) fn mark(
    report: &mut Report,
    dated: &[PathBuf],
    source: impl Fn(&str) -> Option<SourceFile>,
) -> Vec<String> {
    let recorded = dated.iter().filter_map(|file| modified(file)).min();
    let mut missing = Vec::new();
    for file in &mut report.files {
        match source(&file.name) {
            Some(found) => file.stale = why(file, &found, recorded),
            None => missing.push(file.name.clone()),
        }
    }
    missing
}

fn why(file: &File, found: &SourceFile, recorded: Option<SystemTime>) -> Option<Stale> {
    if !file.checksums.is_empty() {
        return (!found.is_text_of(&file.checksums)).then_some(Stale::Checksum);
    }
    if is_shorter(file, &found.text) {
        return Some(Stale::Shorter);
    }
    is_newer(&found.path, recorded).then_some(Stale::Newer)
}

fn is_shorter(file: &File, text: &[u8]) -> bool {
    let lines = text.split(|byte| *byte == b'\n').count();
    file.lines.last().is_some_and(|last| usize::try_from(last.number).is_ok_and(|number| number > lines))
}

fn is_newer(path: &str, recorded: Option<SystemTime>) -> bool {
    let modified = modified(Path::new(path));
    modified.zip(recorded).is_some_and(|(modified, recorded)| modified > recorded + TOGETHER)
}

/// The time of a file's last change; `None` if it is not a file.
fn modified(path: &Path) -> Option<SystemTime> {
    let found = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    found.modified().ok()
}
