//! Names of mapped files → the same files on this machine, found by their build-ids.
//!
//! A file in an archive has no path on this machine: its bytes are passed along with a name made of the
//! archive's path and the file's name on the traced machine.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use tracewalk::ids::Address;
use tracewalk::program::Scope;

use super::archive::Archive;
use super::contexts::ContextTrace;
use super::kernel::{ByName, KernelNames, is_module};
use super::maps::{BuildId, KERNEL, Mapping};
use super::parts::processes;
use super::places::{BinaryPlaces, programs_by_build_id};
use super::recorded::Recorded;
use crate::bytes::Bytes;
use crate::capture::error::{CaptureError, CaptureErrorKind};
use crate::file;
use crate::image::elf::{build_id_of, build_id_of_file};
use crate::image::module::Unplaced;
use crate::image::{Image, ImageKind, ImageRequest};
use crate::origin::Origin;

/// The programs that ran, as images.
#[derive(Clone, Debug, Default)]
pub struct Binaries {
    /// The images, each with the contexts in which it is visible.
    pub images: Vec<ImageRequest>,
    /// What became of each file that was mapped.
    pub binaries: Vec<Binary>,
    /// The bytes of the images that are in archives, by the names in `images`.
    pub archived: Vec<(PathBuf, Bytes)>,
    /// Images that are not read from their files as they are: the kernel's names and its modules.
    pub prepared: Vec<(ImageKind, Image)>,
    /// The number of branches of modules that are left out because their targets are unknown.
    pub unknown_branches: u64,
}

/// What became of a file that was mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binary {
    /// The file's name on the traced machine.
    pub name: String,
    /// The file's build-id, if it was recorded.
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
        /// The first of these files.
        file: PathBuf,
        /// The build-id of `file`; empty if it has none.
        found: String,
    },
    /// Code without a file, such as the kernel's or a just-in-time compiler's.
    NoFile,
    /// A kernel module whose file was not found.
    Module,
    /// A kernel module without a record of where the kernel put its code.
    ModuleUnplaced,
    /// A file that is damaged, or not a kernel module for Arm.
    NoModule {
        /// The file.
        file: PathBuf,
    },
    /// There are more processes than there can be programs.
    TooManyProcesses,
}

/// The most processes with a program of their own: see [`tracewalk::program`].
const MOST_CONTEXTS: usize = 250;

impl Recorded {
    /// The images of the programs that ran.
    ///
    /// # Errors
    ///
    /// If a place of binaries is a file but not an archive.
    pub fn images(&self, places: &BinaryPlaces) -> Result<Binaries, CaptureError> {
        let archives = places.debug_dirs.iter().filter(|place| place.is_file()).map(|file| {
            Archive::open(file).map_err(|problem| CaptureError {
                file: file.clone(),
                line: None,
                kind: CaptureErrorKind::Perf(problem),
            })
        });
        let archives = archives.collect::<Result<Vec<_>, _>>()?;
        let names = KernelNames::of(self, places, &archives)?;
        let mut modules = Modules::of(names.as_ref());
        let archived = BTreeMap::new();
        let mut finder = Finder { recorded: self, places, archives, archived, found: BTreeMap::new() };
        let mut images = Vec::new();
        images.extend(self.kcore.as_ref().map(|file| self.image(file, ImageKind::Addressed)));
        images.extend(modules.prepared.iter().map(|(kind, image)| self.image(&image.file, kind.clone())));
        for (index, epoch) in self.epochs.iter().enumerate() {
            if self.programs.iter().all(|(program, _)| program.epoch != index) {
                continue;
            }
            let alone = processes(epoch).count() <= 1;
            let mut contexts = 0;
            // The kernel's core file holds the code that ran, so the kernel's mappings are not needed.
            let spaces = epoch.spaces.iter().filter(|(pid, _)| **pid != KERNEL || self.kcore.is_none());
            for (pid, space) in spaces {
                let scopes = self.scopes(*pid, alone);
                let fits = contexts + scopes.len() <= MOST_CONTEXTS;
                contexts += if fits { scopes.len() } else { 0 };
                for mapping in space.values() {
                    let found = finder.find(mapping, *pid);
                    if !fits {
                        finder.not_used(mapping, NoBinary::TooManyProcesses);
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
                    let kind = match *pid {
                        KERNEL => modules.place(&mut finder, &file, mapping),
                        _ => mapped(finder.length(&file), mapping),
                    };
                    let Some(kind) = kind else { continue };
                    images.extend(scopes.iter().map(|scope| ImageRequest {
                        cores: cores.clone(),
                        scope: *scope,
                        ..self.image(&file, kind.clone())
                    }));
                }
            }
        }
        let Finder { found, archived, .. } = finder;
        let (binaries, archived) = (found.into_values().collect(), archived.into_iter().collect());
        let Modules { prepared, unknown_branches, .. } = modules;
        Ok(Binaries { images, binaries, archived, prepared, unknown_branches })
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
        // Threads of a process may have the same context in the trace.
        let scopes = all.map(|tid| self.contexts.scope(tid)).collect::<BTreeSet<_>>();
        scopes.into_iter().collect()
    }
}

/// The part of a mapping that the file contains: the last page of a mapping extends beyond the file's end.
fn mapped(bytes: Option<u64>, mapping: &Mapping) -> Option<ImageKind> {
    let length = bytes?.checked_sub(mapping.offset)?.min(mapping.length);
    let address = Address::new(mapping.start);
    (length > 0).then_some(ImageKind::Raw {
        address,
        offset: mapping.offset,
        length: Some(length),
        space: None,
    })
}

/// The kernel's modules at their addresses.
struct Modules<'a> {
    names: Option<ByName<'a>>,
    prepared: Vec<(ImageKind, Image)>,
    unknown_branches: u64,
}

impl<'a> Modules<'a> {
    fn of(names: Option<&'a KernelNames>) -> Self {
        let list = names.map(|names| Image::of_names(names.file.clone(), names.list.clone()));
        let prepared = list.into_iter().map(|image| (ImageKind::Placed { address: Address::new(0) }, image));
        Self { names: names.map(KernelNames::by_name), prepared: prepared.collect(), unknown_branches: 0 }
    }

    /// Places a module's file at the address of its mapping.
    fn place(&mut self, finder: &mut Finder<'_>, file: &Path, mapping: &Mapping) -> Option<ImageKind> {
        let kind = ImageKind::Placed { address: Address::new(mapping.start) };
        if self.prepared.iter().any(|(known, image)| *known == kind && image.file == file) {
            return Some(kind);
        }
        let placed = match finder.bytes(file) {
            Some(bytes) => finder.recorded.place_module((file, &bytes), mapping, self.names.as_ref()),
            None => Err(Unplaced::Damaged),
        };
        match placed {
            Ok(placed) => {
                self.unknown_branches += placed.branches;
                self.prepared.push((kind.clone(), placed.image));
                Some(kind)
            }
            Err(why) => {
                finder.not_used(
                    mapping,
                    match why {
                        Unplaced::Unknown => NoBinary::ModuleUnplaced,
                        Unplaced::Damaged => NoBinary::NoModule { file: file.to_owned() },
                    },
                );
                None
            }
        }
    }
}

struct Finder<'a> {
    recorded: &'a Recorded,
    places: &'a BinaryPlaces,
    archives: Vec<Archive>,
    /// The files extracted from the archives.
    archived: BTreeMap<PathBuf, Bytes>,
    /// Results of earlier searches, by name and build-id.
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

    /// Records why a file that was found is not used.
    fn not_used(&mut self, mapping: &Mapping, why: NoBinary) {
        if let Some(binary) = self.found.get_mut(&(mapping.file, mapping.build_id))
            && binary.file.is_ok()
        {
            binary.file = Err(why);
        }
    }

    /// The content of a file that was found.
    fn bytes(&self, file: &Path) -> Option<Bytes> {
        match self.archived.get(file) {
            Some(bytes) => Some(bytes.clone()),
            None => file::map(file, file::LONGEST_IMAGE).ok(),
        }
    }

    /// The length of a file that was found.
    fn length(&self, file: &Path) -> Option<u64> {
        match self.archived.get(file) {
            Some(bytes) => Some(bytes.len() as u64),
            None => std::fs::metadata(file).ok().map(|metadata| metadata.len()),
        }
    }

    fn look(&mut self, name: &str, build_id: Option<BuildId>, pid: u32) -> Result<PathBuf, NoBinary> {
        if pid == KERNEL && !is_module(name) {
            return Err(NoBinary::NoFile);
        }
        let is_file = name.starts_with('/') && !name.starts_with("//") && !name.starts_with("/memfd:");
        let own = name.strip_suffix(" (deleted)").unwrap_or(name);
        let symfs = || self.places.symfs.as_ref();
        // `symfs` may contain a dump of `[vdso]`. A name of the traced machine must not lead out of the
        // directory.
        let inside = Path::new(own.trim_start_matches('/'));
        let is_inside = inside.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        let below = symfs().filter(|_| is_inside).map(|symfs| symfs.join(inside));
        let beside = symfs().filter(|_| is_inside).and_then(|symfs| Some(symfs.join(inside.file_name()?)));
        let stated = below.into_iter().chain(beside).map(|file| (file, true));
        let cached = build_id.into_iter().flat_map(|id| self.cached(&id)).map(|file| (file, false));
        // A local file of that name may belong to another system: only its build-id can identify it.
        let here = (is_file && build_id.is_some()).then(|| (PathBuf::from(own), false));
        let mut other = None;
        for (file, is_stated) in stated.chain(cached).chain(here) {
            if !file.is_file() {
                continue;
            }
            let found = build_id_of_file(&file);
            match (&build_id, &found) {
                (Some(wanted), Some(found)) if wanted.is_of(found) => return Ok(file),
                (None, _) if is_stated => return Ok(file),
                _ => {}
            }
            let found = found.unwrap_or_default().iter().map(|byte| format!("{byte:02x}")).collect();
            other.get_or_insert(NoBinary::OtherBuildId { file, found });
        }
        if let Some(file) = build_id.and_then(|id| self.unpacked(name, &id)) {
            return Ok(file);
        }
        let nothing = match is_file {
            _ if pid == KERNEL => NoBinary::Module,
            true => NoBinary::NotFound,
            false => NoBinary::NoFile,
        };
        Err(other.unwrap_or(nothing))
    }

    /// The paths at which directories by build-id may have a file.
    fn cached(&self, id: &BuildId) -> Vec<PathBuf> {
        let places = programs_by_build_id(id);
        let of = |dir: &PathBuf| places.iter().map(|place| dir.join(place)).collect::<Vec<_>>();
        self.places.debug_dirs.iter().flat_map(of).collect()
    }

    /// Extracts a file from the first archive that has it.
    fn unpacked(&mut self, name: &str, id: &BuildId) -> Option<PathBuf> {
        let places = programs_by_build_id(id);
        let is_it = |bytes: &&[u8]| build_id_of(bytes).is_some_and(|found| id.is_of(&found));
        let in_archive = |archive: &Archive| {
            places.iter().filter_map(|place| archive.file(place)).find(is_it).map(<[u8]>::to_vec)
        };
        let found = self.archives.iter().find_map(|archive| Some((&archive.file, in_archive(archive)?)));
        let (archive, bytes) = found?;
        let file = archive.join(id.to_string()).join(name.trim_start_matches('/'));
        self.archived.insert(file.clone(), bytes.into());
        Some(file)
    }
}
