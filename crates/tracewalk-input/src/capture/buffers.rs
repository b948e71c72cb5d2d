//! The trace file of a snapshot: its buffers, each source's buffers, and each core's sources.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::arrangement::Arrangement;
use super::container::{Blocks, Container};
use super::contents::Buffer;
use super::error::{CaptureError, CaptureErrorKind as Kind};
use super::ini::{Entry, Ini, Section};
use super::place::{Place, entry_number};
use super::unused::Unused;
use crate::excerpt::excerpt;
use crate::file::{self, FileProblem};
use crate::nearest::nearest;
use crate::origin::{Naming, Origin, Stated};
use crate::paths::Confinement;

/// The most buffers: more than any system has. Each may be a large file.
pub(super) const MOST_BUFFERS: usize = 256;

/// The keys of a buffer's section.
const BUFFER_KEYS: [&str; 3] = ["name", "file", "format"];

/// The content of the trace file.
#[derive(Debug)]
pub(super) struct Metadata {
    path: PathBuf,
    buffers: Vec<BufferSection>,
    /// Entries `source = buffers`.
    pub(super) source_buffers: Vec<Entry>,
    /// Entries `core = source`. A core with two sources has two entries.
    pub(super) core_sources: Vec<Entry>,
    pub(super) timestamp_frequency: Option<Stated<u64>>,
}

/// A buffer's section.
#[derive(Debug)]
struct BufferSection {
    name: String,
    file: PathBuf,
    file_named: Naming,
    container: Option<Stated<Container>>,
    blocks: Blocks,
    origin: Origin,
}

impl Metadata {
    /// Reads the trace file at `path`.
    pub(super) fn read(
        path: &Path,
        confinement: &Confinement,
        unused: &mut Vec<Unused>,
    ) -> Result<Self, CaptureError> {
        let mut ini = Ini::read(path)?;
        let place = Place { path, confinement };
        let list = ini.section("trace_buffers").ok_or_else(|| place.error(None, Kind::NoBuffer))?;
        let names = place.required(list, "buffers")?;
        let mut buffers = Vec::<BufferSection>::new();
        let wanted = names.value.split(',').map(str::trim).filter(|name| !name.is_empty());
        for name in wanted.clone() {
            let section = ini.section(name).ok_or_else(|| {
                let nearest = nearest(name, ini.sections.iter().map(|section| section.name.as_str()));
                let nearest = nearest.map(str::to_owned);
                place.error(
                    Some(names.line),
                    Kind::Undefined { what: "section", name: excerpt(name), nearest },
                )
            })?;
            let buffer = BufferSection::read(section, &place)?;
            if buffers.iter().any(|known| known.name == buffer.name) {
                return Err(place.error(Some(section.line), Kind::Repeated { key: excerpt(&buffer.name) }));
            }
            if buffers.len() == MOST_BUFFERS {
                let found = names.value.split(',').count();
                let kind = Kind::TooMany { what: "trace buffers", found, limit: MOST_BUFFERS };
                return Err(place.error(Some(names.line), kind));
            }
            buffers.push(buffer);
        }
        if buffers.is_empty() {
            return Err(place.error(Some(names.line), Kind::NoBuffer));
        }
        ini.add_unused(path, unused, |section, entry| match &*section.name.to_ascii_lowercase() {
            "trace_buffers" => entry.is("buffers"),
            "source_buffers" | "core_trace_sources" => true,
            "timestamp" => entry.is("frequency"),
            _ => {
                wanted.clone().any(|wanted| section.is(wanted)) && BUFFER_KEYS.iter().any(|key| entry.is(key))
            }
        });
        let frequency = ini.section("timestamp").and_then(|section| section.entry("frequency"));
        let timestamp_frequency = match frequency {
            Some(entry) => Some(Stated::new(entry_number(entry, &place)?, Origin::line(path, entry.line))),
            None => None,
        };
        let mut entries = |name: &str| {
            let section = ini.sections.iter_mut().find(|section| section.is(name));
            section.map(|section| std::mem::take(&mut section.entries)).unwrap_or_default()
        };
        Ok(Self {
            path: path.to_owned(),
            buffers,
            source_buffers: entries("source_buffers"),
            core_sources: entries("core_trace_sources"),
            timestamp_frequency,
        })
    }

    /// Whether the file describes a buffer with this name.
    pub(super) fn describes(&self, buffer: &str) -> bool {
        self.buffers.iter().any(|known| known.name == buffer)
    }

    /// An error in the trace file.
    pub(super) fn error(&self, line: u32, kind: Kind) -> CaptureError {
        CaptureError { file: self.path.clone(), line: Some(line), kind }
    }
}

impl BufferSection {
    fn read(section: &Section, place: &Place<'_>) -> Result<Self, CaptureError> {
        let file = place.required(section, "file")?;
        let (container, blocks) = match section.entry("format") {
            Some(entry) => {
                let (container, blocks) =
                    format(&entry.value).map_err(|kind| place.error(Some(entry.line), kind))?;
                (Some(Stated::new(container, Origin::line(place.path, entry.line))), blocks)
            }
            None => (None, Blocks::None),
        };
        Ok(Self {
            name: section.entry("name").map_or(&section.name, |name| &name.value).clone(),
            file: place.file(section, file)?,
            file_named: place.naming(section, file),
            container,
            blocks,
            origin: Origin::line(place.path, section.line),
        })
    }
}

/// The packing of bytes in a buffer with this `format`.
fn format(word: &str) -> Result<(Container, Blocks), Kind> {
    const FORMATS: [&str; 3] = ["coresight", "source_data", "dstream_coresight"];
    match word.to_ascii_lowercase().as_str() {
        "coresight" => Ok((Container::Frames, Blocks::None)),
        "source_data" => Ok((Container::Raw, Blocks::None)),
        // DSTREAM units capture trace ports, so there are synchronisation patterns between the frames.
        "dstream_coresight" => Ok((Container::TracePort, Blocks::Dstream)),
        _ => Err(Kind::UnknownValue {
            key: "format".to_owned(),
            found: excerpt(word),
            nearest: nearest(word, FORMATS).unwrap_or(""),
        }),
    }
}

/// Reads the buffers' files, each once. Buffers that cannot be read are left out, with a note, if others can be.
pub(super) fn load(metadata: &Metadata, notes: &mut Vec<CaptureError>) -> Result<Vec<Buffer>, CaptureError> {
    let mut files = BTreeMap::new();
    let mut buffers = Vec::new();
    for section in &metadata.buffers {
        let error = |problem| {
            let by = Box::new(section.file_named.clone());
            metadata.error(by.line, Kind::NamedFile { file: section.file.clone(), problem, by })
        };
        let bytes = match files.get(&(&section.file, section.blocks)) {
            Some(bytes) => Ok(crate::bytes::Bytes::clone(bytes)),
            None => file::map(&section.file, file::LONGEST_CAPTURE)
                .and_then(|bytes| section.blocks.payload(bytes))
                .and_then(|bytes| if bytes.is_empty() { Err(FileProblem::Empty) } else { Ok(bytes) }),
        };
        let bytes = match bytes {
            Ok(bytes) => bytes,
            Err(problem) => {
                notes.push(error(problem));
                continue;
            }
        };
        files.insert((&section.file, section.blocks), bytes.clone());
        buffers.push(Buffer {
            name: section.name.clone(),
            file: section.file.clone(),
            bytes,
            parts: None,
            container: section.container.clone(),
            frame_start: None,
            sources: Vec::new(),
            blocks: section.blocks,
            arrangement: Arrangement::default(),
            wires: None,
            origin: section.origin.clone(),
        });
    }
    match notes.pop() {
        Some(error) if buffers.is_empty() => return Err(error),
        note => notes.extend(note),
    }
    Ok(buffers)
}
