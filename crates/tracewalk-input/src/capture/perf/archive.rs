//! An archive of `perf archive` → the files in it, by name.
//!
//! perf's cache has a link for each build-id. The link leads to a directory named after the original path,
//! which contains the file. An archive has the same tree. Links are followed inside the archive; no file is
//! unpacked to a named file on the disk.

use std::collections::BTreeMap;
use std::io::Read;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use tar::EntryType;

use super::problem::PerfProblem;
use crate::bytes::Bytes;
use crate::file;

/// A tar file, as it is or compressed by gzip or bzip2.
#[derive(Debug)]
pub(super) struct Archive {
    /// The file, for messages.
    pub(super) file: PathBuf,
    /// The archive without its compression.
    bytes: Bytes,
    entries: BTreeMap<PathBuf, Entry>,
}

#[derive(Debug)]
enum Entry {
    /// The place of the file's bytes in the archive.
    File(Range<usize>),
    /// The link's target, relative to the archive's root.
    Link(PathBuf),
}

/// The most entries of an archive: perf's cache has a few for each binary.
const MOST_ENTRIES: usize = 1 << 16;

/// The most links followed for a path: more are taken for a circle.
const MOST_LINKS: usize = 40;

impl Archive {
    /// Reads the names in an archive.
    pub(super) fn open(file: &Path) -> Result<Self, PerfProblem> {
        let problem = |why: &dyn std::fmt::Display| PerfProblem::Archive { why: why.to_string() };
        let bytes = file::map(file, file::LONGEST_IMAGE).map_err(|error| problem(&error))?;
        let unpacked = |reader: &mut dyn Read| {
            file::read_from(reader, file::LONGEST_IMAGE).map_err(|error| problem(&error))
        };
        let bytes = match &*bytes {
            [0x1f, 0x8b, ..] => unpacked(&mut flate2::read::MultiGzDecoder::new(&*bytes))?,
            [b'B', b'Z', b'h', ..] => unpacked(&mut bzip2_rs::DecoderReader::new(&*bytes))?,
            _ => bytes,
        };
        let entries = entries(&bytes).map_err(|error| problem(&error))?;
        if entries.is_empty() {
            return Err(problem(&"the archive has no files"));
        }
        Ok(Self { file: file.to_owned(), bytes, entries })
    }

    /// The bytes of a file. Its path may contain links.
    pub(super) fn file(&self, path: &Path) -> Option<&[u8]> {
        let mut path = normal(path)?;
        for _ in 0..MOST_LINKS {
            match self.step(&path)? {
                (Entry::File(range), true) => return self.bytes.get(range.clone()),
                (Entry::File(_), false) => return None,
                (Entry::Link(to), whole) => {
                    let rest = if whole { PathBuf::new() } else { self.rest(&path)? };
                    path = normal(&to.join(rest))?;
                }
            }
        }
        None
    }

    /// The first entry on the way to a path that is no directory, and whether it is the path's end.
    fn step(&self, path: &Path) -> Option<(&Entry, bool)> {
        let on_the_way = path.ancestors().collect::<Vec<_>>();
        on_the_way.into_iter().rev().find_map(|part| Some((self.entries.get(part)?, part == path)))
    }

    /// The rest of a path after its first component that is not a directory.
    fn rest(&self, path: &Path) -> Option<PathBuf> {
        let on_the_way = path.ancestors().collect::<Vec<_>>();
        let link = on_the_way.into_iter().rev().find(|part| self.entries.contains_key(*part))?;
        path.strip_prefix(link).ok().map(Path::to_owned)
    }
}

fn entries(bytes: &[u8]) -> std::io::Result<BTreeMap<PathBuf, Entry>> {
    let mut entries = BTreeMap::new();
    for entry in tar::Archive::new(bytes).entries()? {
        let entry = entry?;
        let Some(path) = normal(&entry.path()?) else { continue };
        let kind = entry.header().entry_type();
        let link = entry.link_name()?;
        let known = match (kind, link) {
            (EntryType::Symlink, Some(to)) => {
                let directory = path.parent().unwrap_or(Path::new(""));
                normal(&directory.join(to)).map(Entry::Link)
            }
            (EntryType::Link, Some(to)) => normal(&to).map(Entry::Link),
            (EntryType::Regular | EntryType::Continuous, _) => {
                let start = usize::try_from(entry.raw_file_position()).ok();
                let length = usize::try_from(entry.size()).ok();
                let end = start.zip(length).and_then(|(start, length)| start.checked_add(length));
                start.zip(end).map(|(start, end)| Entry::File(start..end))
            }
            _ => None,
        };
        entries.extend(known.map(|known| (path, known)));
        if entries.len() > MOST_ENTRIES {
            return Err(std::io::Error::other(format!("the archive has more than {MOST_ENTRIES} files")));
        }
    }
    Ok(entries)
}

/// A path relative to the archive's root, without `.` and `..`; `None` for one that leads out of the archive.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => parts.push(name),
            Component::CurDir | Component::RootDir => {}
            Component::ParentDir => parts = parts.parent()?.to_owned(),
            Component::Prefix(_) => return None,
        }
    }
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small ELF file with this build-id, packed by `tar cjf` as `perf archive` calls it. Its name is longer than a header has room for.
    const BUILD_ID: &str = "00112233445566778899aabbccddeeff01020304";
    const PACKED: &str = "425a68393141592653590e86df24000100fffffe88a4405403ffe0478d0a00ffeffea0c0400020001000884004810280010008c00229c550\
    36194a7a83269900188d0000000000d0d3409220a87a99193d40c8d0191ea0f501a1a00000d0e699190c9821a3098234d1a31034c9918000\
    822a9842647a229ea3d41a347a87a9a7943401a311a7a468031d24f392baab4587bc16b067369cb628be54050a66712480c30ccd31d04c14\
    1361adb090b85810bda0e69317190180db66cf87de1a4235500b47762f480c166812be2c871254b6fdac79246b9ba802bf381f5b83c82872\
    31020b1a80bc7e8301f14a1c23ee198f28ea0792a188f38c07a06231180d63ca3b07a47f7c1c47b489fd8b13a339ae298e74ec45e319e81a\
    0c8d54b000d750ae6a85799f844a00d4d57026a2aa0cca0206206aa5343e538a0136531ecb442b76241008ad4130e4897054e5090442dbb0\
    c97466120916c886558241404a442361e3398383b07101d618a35db4f6be30c33976ed2e479a6f3faf745328f00e21c3c41b875a6f1903ce\
    0cf78d41b036541bc320edae21b42c1cc3756370ed1f40c0683685e18c06ce31dc130bc1f8e84269e090d01a87a86970c7aaf1efb98640de\
    f67aeb862331c074a9018213603aaca0e4190f592c1c0733110a0e71d235836ce837d0198e03987bc988fdd311b47a4634c8370d8301d168\
    e907190358d6382e0c40612002c8296a53b2f4043aaa005419cb030db6fd7ba1f34bc905efb01f64918ffc5dc914e142403a1b7c90";

    fn packed() -> Vec<u8> {
        let digits = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        PACKED.as_bytes().chunks(2).map(digits).collect()
    }

    fn opened(bytes: &[u8]) -> Result<Archive, PerfProblem> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("perf.data.tar.bz2");
        std::fs::write(&file, bytes).unwrap();
        Archive::open(&file)
    }

    #[test]
    fn a_file_is_found_over_the_link_of_its_build_id_however_the_archive_is_packed() {
        let mut tar = Vec::new();
        bzip2_rs::DecoderReader::new(&*packed()).read_to_end(&mut tar).unwrap();
        let mut gzip = flate2::read::GzEncoder::new(&*tar, flate2::Compression::fast());
        let mut compressed = Vec::new();
        gzip.read_to_end(&mut compressed).unwrap();
        let link = Path::new(".build-id").join(&BUILD_ID[..2]).join(&BUILD_ID[2..]);
        for bytes in [packed(), tar, compressed] {
            let archive = opened(&bytes).unwrap();
            let found = archive.file(&link.join("elf")).unwrap();
            let id = crate::image::elf::build_id_of(found).unwrap();
            assert_eq!(id.iter().map(|byte| format!("{byte:02x}")).collect::<String>(), BUILD_ID);
            // The link itself leads to a directory.
            assert!(archive.file(&link).is_none());
            assert!(archive.file(&link.join("elf/elf")).is_none());
        }
    }

    #[test]
    fn links_lead_in_circles_or_out_of_the_archive_to_nothing() {
        let mut tar = tar::Builder::new(Vec::new());
        for (name, to) in [("a", "b"), ("b", "a"), ("c", "../../etc/passwd"), ("d", "/e"), ("f", "g/f")] {
            let mut header = tar::Header::new_ustar();
            header.set_entry_type(EntryType::Symlink);
            header.set_size(0);
            tar.append_link(&mut header, name, to).unwrap();
        }
        let mut header = tar::Header::new_ustar();
        header.set_size(3);
        tar.append_data(&mut header, "e", &b"one"[..]).unwrap();
        let archive = opened(&tar.into_inner().unwrap()).unwrap();
        let found = ["a", "b", "c", "f", "e/x"].map(|name| archive.file(Path::new(name)).is_some());
        assert_eq!(found, [false; 5]);
        assert_eq!(archive.file(Path::new("./d")), Some(&b"one"[..]));
        assert_eq!(archive.file(Path::new("x/../e")), Some(&b"one"[..]));
    }

    #[test]
    fn what_is_no_archive_or_is_cut_is_refused() {
        let packed = packed();
        for bytes in [&packed[..300], &packed[..0], b"BZh9", b"\x1f\x8b\x08\0", &[7; 2000]] {
            let opened = opened(bytes);
            assert!(matches!(opened, Err(PerfProblem::Archive { .. })), "{} bytes", bytes.len());
        }
    }
}
