//! The places of the traced machine's files: the user's options, and the names in perf's cache.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::maps::BuildId;

/// The places to search for the files that ran.
#[derive(Clone, Debug, Default)]
pub struct BinaryPlaces {
    /// The traced machine's files, as a directory that stands for its root.
    pub symfs: Option<PathBuf>,
    /// Directories of files by build-id, such as perf's cache (`.build-id/ab/cdef…/elf`), or archives that
    /// `perf archive` made of them.
    pub debug_dirs: Vec<PathBuf>,
    /// The names of the kernel that ran: a copy of its `/proc/kallsyms`.
    pub kallsyms: Option<PathBuf>,
}

/// The paths at which a directory by build-ids may have an ID's file, or a directory with several files.
pub(super) fn by_build_id(id: &BuildId) -> Vec<PathBuf> {
    // Zeros at the end may belong to the ID.
    let lengths = [id.known().len(), 16, 20].map(|bytes| 2 * bytes);
    let id = id.to_string();
    let names =
        lengths.into_iter().filter(|length| *length >= id.len()).map(|length| format!("{id:0<length$}"));
    let places = names.filter_map(|name| Some(PathBuf::from(name.get(..2)?).join(name.get(2..)?)));
    let places = places.collect::<BTreeSet<_>>();
    places.into_iter().map(|place| Path::new(".build-id").join(place)).collect()
}

/// The paths at which a directory by build-ids may have a program.
pub(super) fn programs_by_build_id(id: &BuildId) -> Vec<PathBuf> {
    let files = |file: PathBuf| [file.join("elf"), file.clone(), file.with_extension("debug")];
    by_build_id(id).into_iter().flat_map(files).collect()
}
