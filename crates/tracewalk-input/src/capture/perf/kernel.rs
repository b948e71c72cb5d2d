//! The kernel of a recording: its names, from the list that perf keeps in a recording's directory or in its
//! cache, and the places of its modules.

use std::path::{Path, PathBuf};

use super::archive::Archive;
use super::maps::{KERNEL, Mapping};
use super::places::{BinaryPlaces, by_build_id};
use super::recorded::Recorded;
use crate::bytes::Bytes;
use crate::capture::error::CaptureError;
use crate::file;
use crate::image::module::{Placed, Placing, Unplaced, place};
use crate::symbols::kallsyms::{Line, lines};

/// The names of the kernel that ran.
pub(super) struct KernelNames {
    /// The list's file, for messages.
    pub(super) file: PathBuf,
    /// The list, with the addresses of the recording.
    pub(super) list: Bytes,
}

/// The list's lines by which modules are placed, sorted by name.
pub(super) struct ByName<'a>(Vec<Line<'a>>);

/// The beginning of the name of the kernel's own mapping. The rest is the symbol whose address the mapping
/// states.
const KERNEL_NAME: &str = "[kernel.kallsyms]";

/// The file name of a list in perf's cache and in recordings that are directories.
pub(super) const LIST: &str = "kallsyms";

impl KernelNames {
    /// The list that the user states, or that is in the recording's directory, or that has the kernel's
    /// build-id.
    pub(super) fn of(
        recorded: &Recorded,
        places: &BinaryPlaces,
        archives: &[Archive],
    ) -> Result<Option<Self>, CaptureError> {
        let kernel = recorded.kernel_mapping();
        let beside = || recorded.kallsyms.clone();
        let (file, bytes) = match places.kallsyms.clone().or_else(beside) {
            Some(file) => {
                let bytes = file::map(&file, file::LONGEST_IMAGE);
                let bytes = bytes.map_err(|problem| CaptureError::of_file(&file, problem))?;
                (file, bytes)
            }
            // A list is large: search for it only if the kernel ran.
            None if kernel.is_none() => return Ok(None),
            None => match recorded.listed(places, archives) {
                Some(found) => found,
                None => return Ok(None),
            },
        };
        let moved = kernel.and_then(|(mapping, name)| slide(&bytes, &mapping, name)).unwrap_or(0);
        let list = if moved == 0 {
            bytes
        } else {
            // Modules have other addresses after another boot, and the recording does not state them.
            let own = lines(&bytes).filter(|line| line.module.is_none());
            own.map(|line| line.moved(moved)).collect::<String>().into_bytes().into()
        };
        Ok(Some(Self { file, list }))
    }

    pub(super) fn by_name(&self) -> ByName<'_> {
        let mut all = lines(&self.list).collect::<Vec<_>>();
        all.sort_by_key(|line| line.name);
        ByName(all)
    }
}

/// The distance of the kernel from its address in the list: the kernel is moved at each boot.
fn slide(list: &[u8], mapping: &Mapping, name: &str) -> Option<u64> {
    let symbol = name.strip_prefix(KERNEL_NAME)?;
    // perf writes the symbol's address as the mapping's offset, simpleperf as its start.
    let recorded = if mapping.offset == 0 { mapping.start } else { mapping.offset };
    let line = lines(list).find(|line| line.module.is_none() && line.name == symbol)?;
    // The caller that reads names reports a list without addresses.
    (line.address != 0).then(|| recorded.wrapping_sub(line.address))
}

impl ByName<'_> {
    fn named(&self, name: &str) -> impl Iterator<Item = &Line<'_>> {
        let from = self.0.partition_point(|line| line.name < name);
        self.0.iter().skip(from).take_while(move |line| line.name == name)
    }

    /// The address of a symbol, if all lines with this name that are wanted agree.
    fn only(&self, name: &str, is_wanted: impl Fn(&Line<'_>) -> bool) -> Option<u64> {
        let mut found = self.named(name).filter(|line| is_wanted(line)).map(|line| line.address);
        let first = found.next()?;
        found.all(|other| other == first).then_some(first)
    }
}

impl Recorded {
    /// The kernel's own mapping, and its name.
    fn kernel_mapping(&self) -> Option<(Mapping, &str)> {
        let mut mappings = self.epochs.iter().filter_map(|epoch| epoch.spaces.get(&KERNEL));
        mappings.find_map(|space| {
            let mut named = space.values().map(|mapping| (*mapping, self.names.get(mapping.file)));
            named.find(|(_, name)| name.starts_with(KERNEL_NAME))
        })
    }

    /// The list in perf's cache.
    fn listed(&self, places: &BinaryPlaces, archives: &[Archive]) -> Option<(PathBuf, Bytes)> {
        let (_, id) = self.build_ids.iter().find(|(name, _)| name.starts_with(KERNEL_NAME))?;
        let names = by_build_id(id).into_iter().map(|place| place.join(LIST)).collect::<Vec<_>>();
        let dirs = places.debug_dirs.iter().flat_map(|dir| names.iter().map(|name| dir.join(name)));
        let mut here = dirs.filter(|file| file.is_file());
        if let Some(found) =
            here.find_map(|file| Some((file.clone(), file::map(&file, file::LONGEST_IMAGE).ok()?)))
        {
            return Some(found);
        }
        archives.iter().find_map(|archive| {
            let bytes = names.iter().find_map(|name| archive.file(name))?;
            Some((archive.file.join(id.to_string()).join(LIST), bytes.to_vec().into()))
        })
    }

    /// A module's code where it was mapped.
    pub(super) fn place_module(
        &self,
        (file, bytes): (&Path, &Bytes),
        mapping: &Mapping,
        names: Option<&ByName<'_>>,
    ) -> Result<Placed, Unplaced> {
        let name = self.names.get(mapping.file);
        let module = module_name(name);
        let function = |name: &str| names?.only(name, |line| line.module == Some(&*module));
        // A symbol of the kernel takes precedence over one of a module.
        let export = |name: &str| {
            let names = names?;
            let own = names.only(name, |line| line.module.is_none());
            own.or_else(|| names.only(name, |line| line.module.is_some_and(|other| other != module)))
        };
        let (start, length) = (mapping.start, mapping.length);
        let text = self.module_text.get(name).copied();
        place(file, bytes, &Placing { start, length, text, function: &function, export: &export })
    }
}

/// The kernel's name of the module in a file.
fn module_name(file: &str) -> String {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.strip_suffix(".ko").unwrap_or(name).replace('-', "_")
}

/// Whether one of the kernel's mappings is a module's.
pub(super) fn is_module(name: &str) -> bool {
    name.ends_with(".ko") || name.starts_with('[') && !name.starts_with("[kernel")
}
