//! Names of mapped files → the files here that are the same, by their build-ids.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tracewalk::ids::Address;
use tracewalk::program::Scope;

use super::maps::{BuildId, KERNEL, Mapping};
use super::parts::processes;
use super::recorded::{ContextTrace, Recorded};
use crate::file;
use crate::image::elf::build_id_of;
use crate::image::{ImageKind, ImageRequest};
use crate::origin::Origin;

/// Where the files are that ran.
#[derive(Clone, Debug, Default)]
pub struct BinaryPlaces {
    /// The traced machine's files, as a directory that stands for its root.
    pub symfs: Option<PathBuf>,
    /// Directories of files by build-id: `.build-id/ab/cdef…/elf`, as perf's cache and `perf archive` have them.
    pub debug_dirs: Vec<PathBuf>,
}

/// What became of a file that was mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binary {
    /// Its name on the machine that was traced.
    pub name: String,
    /// Its build-id, if it was recorded.
    pub build_id: Option<BuildId>,
    /// The file that is used, or why there is none.
    pub file: Result<PathBuf, NoBinary>,
}

/// Why the code of a mapping is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoBinary {
    /// No such file was found.
    NotFound,
    /// The files that were found have another build-id.
    OtherBuildId {
        /// The first of them.
        file: PathBuf,
        /// Its build-id; empty if it has none.
        found: String,
    },
    /// Code that no file has: of the kernel, of a just-in-time compiler.
    NoFile,
    /// A kernel module: its file is not what ran, because the kernel relocates it.
    Module,
    /// There are more processes than there can be programs.
    TooManyProcesses,
}

/// So many processes have a program of their own: see [`tracewalk::program`].
const MOST_CONTEXTS: usize = 250;

impl Recorded {
    /// The images of the programs that ran, each with the contexts in which it is visible.
    #[must_use]
    pub fn images(&self, places: &BinaryPlaces) -> (Vec<ImageRequest>, Vec<Binary>) {
        let mut finder = Finder { recorded: self, places, found: BTreeMap::new() };
        let mut images = Vec::new();
        images.extend(self.kcore.as_ref().map(|file| self.image(file, ImageKind::Addressed)));
        for (index, epoch) in self.epochs.iter().enumerate() {
            if self.programs.iter().all(|(program, _)| program.epoch != index) {
                continue;
            }
            let alone = processes(epoch).count() <= 1;
            let mut contexts = 0;
            for (pid, space) in &epoch.spaces {
                let scopes = self.scopes(*pid, alone);
                let fits = contexts + scopes.len() <= MOST_CONTEXTS;
                contexts += if fits { scopes.len() } else { 0 };
                for mapping in space.values() {
                    let found = finder.find(mapping, *pid);
                    if !fits {
                        finder.left_out(mapping);
                        continue;
                    }
                    let Some(file) = found else { continue };
                    let cores = self.programs.iter().filter(|(program, _)| {
                        program.epoch == index
                            && (*pid == KERNEL || program.process.is_none_or(|process| process == *pid))
                    });
                    let cores = cores.filter_map(|(_, core)| core.clone()).collect::<Vec<_>>();
                    if cores.is_empty() && self.programs.iter().any(|(_, core)| core.is_some()) {
                        continue;
                    }
                    let Some(kind) = mapped(&file, mapping) else { continue };
                    images.extend(scopes.iter().map(|scope| ImageRequest {
                        cores: cores.clone(),
                        scope: *scope,
                        ..self.image(&file, kind.clone())
                    }));
                }
            }
        }
        (images, finder.found.into_values().collect())
    }

    fn image(&self, file: &Path, kind: ImageKind) -> ImageRequest {
        ImageRequest::new(file, kind, Origin::file(&self.file))
    }

    /// The contexts in which a process' mappings are visible: those of its threads.
    fn scopes(&self, pid: u32, alone: bool) -> Vec<Scope> {
        if alone || pid == KERNEL {
            return vec![Scope::EVERYWHERE];
        }
        let threads = self.threads.iter().filter(|(tid, process)| **process == pid && **tid != pid);
        let all = [pid].into_iter().chain(threads.map(|(tid, _)| *tid));
        if self.contexts == ContextTrace::None {
            return vec![Scope::EVERYWHERE];
        }
        all.map(|tid| self.contexts.scope(tid)).collect()
    }
}

/// The bytes of a mapping that the file has: the last page of a mapping reaches beyond its end.
fn mapped(file: &Path, mapping: &Mapping) -> Option<ImageKind> {
    let bytes = std::fs::metadata(file).ok()?.len();
    let length = bytes.checked_sub(mapping.offset)?.min(mapping.length);
    let address = Address::new(mapping.start);
    (length > 0).then_some(ImageKind::Raw {
        address,
        offset: mapping.offset,
        length: Some(length),
        space: None,
    })
}

struct Finder<'a> {
    recorded: &'a Recorded,
    places: &'a BinaryPlaces,
    /// By name and build-id.
    found: BTreeMap<(u32, Option<BuildId>), Binary>,
}

impl Finder<'_> {
    fn find(&mut self, mapping: &Mapping, pid: u32) -> Option<PathBuf> {
        let key = (mapping.file, mapping.build_id);
        if let Some(known) = self.found.get(&key) {
            return known.file.as_ref().ok().cloned();
        }
        let name = self.recorded.names.get(mapping.file).to_owned();
        let by_name = self.recorded.build_ids.iter().find(|(known, _)| *known == name);
        let build_id = mapping.build_id.or(by_name.map(|(_, id)| *id));
        let file = self.look(&name, build_id, pid);
        let found = file.as_ref().ok().cloned();
        self.found.insert(key, Binary { name, build_id, file });
        found
    }

    fn left_out(&mut self, mapping: &Mapping) {
        if let Some(binary) = self.found.get_mut(&(mapping.file, mapping.build_id))
            && binary.file.is_ok()
        {
            binary.file = Err(NoBinary::TooManyProcesses);
        }
    }

    fn look(&self, name: &str, build_id: Option<BuildId>, pid: u32) -> Result<PathBuf, NoBinary> {
        if pid == KERNEL {
            let is_module = name.ends_with(".ko") || name.starts_with('[') && !name.starts_with("[kernel");
            return Err(if is_module { NoBinary::Module } else { NoBinary::NoFile });
        }
        let is_file = name.starts_with('/') && !name.starts_with("//") && !name.starts_with("/memfd:");
        let own = name.strip_suffix(" (deleted)").unwrap_or(name);
        let symfs = || self.places.symfs.as_ref();
        // `[vdso]` may be dumped there. Names of the traced machine do not lead out of the directory.
        let inside = Path::new(own.trim_start_matches('/'));
        let is_inside = inside.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        let below = symfs().filter(|_| is_inside).map(|symfs| symfs.join(inside));
        let beside = symfs().filter(|_| is_inside).and_then(|symfs| Some(symfs.join(inside.file_name()?)));
        let stated = below.into_iter().chain(beside).map(|file| (file, true));
        let cached = build_id.into_iter().flat_map(|id| self.cached(&id)).map(|file| (file, false));
        // What is here under that name may be another machine's.
        let here = (is_file && build_id.is_some()).then(|| (PathBuf::from(own), false));
        let mut other = None;
        for (file, is_stated) in stated.chain(cached).chain(here) {
            if !file.is_file() {
                continue;
            }
            let found = file::map(&file, file::LONGEST_IMAGE).ok().and_then(|bytes| build_id_of(&bytes));
            match (&build_id, &found) {
                (Some(wanted), Some(found)) if wanted.is_of(found) => return Ok(file),
                (None, _) if is_stated => return Ok(file),
                _ => {}
            }
            let found = found.unwrap_or_default().iter().map(|byte| format!("{byte:02x}")).collect();
            other.get_or_insert(NoBinary::OtherBuildId { file, found });
        }
        Err(other.unwrap_or(if is_file { NoBinary::NotFound } else { NoBinary::NoFile }))
    }

    /// Where directories by build-id have a file.
    fn cached(&self, id: &BuildId) -> Vec<PathBuf> {
        // Zeros at the end may belong to it.
        let lengths = [id.known().len(), 16, 20].map(|bytes| 2 * bytes);
        let id = id.to_string();
        let names =
            lengths.into_iter().filter(|length| *length >= id.len()).map(|length| format!("{id:0<length$}"));
        let places = names.filter_map(|name| Some(PathBuf::from(name.get(..2)?).join(name.get(2..)?)));
        let places = places.collect::<std::collections::BTreeSet<_>>();
        let of = |dir: &PathBuf| {
            let dir = dir.join(".build-id");
            let files = |place: &PathBuf| {
                let file = dir.join(place);
                [file.join("elf"), file.clone(), file.with_extension("debug")]
            };
            places.iter().flat_map(files).collect::<Vec<_>>()
        };
        self.places.debug_dirs.iter().flat_map(of).collect()
    }
}
