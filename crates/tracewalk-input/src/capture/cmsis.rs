//! Reads the folder `.trace` of the CMSIS-Toolbox, with what pyOCD recorded.
//!
//! ```text
//! NAME.ctrace-run.yml    ctrace-run:
//!                          ctrace-setup:   pname, timestamps: clock (hertz), itm-prescaler
//!                          ctrace-refs:    type, pname, stream (the trace ID), symbol-file, regs: name, value
//! NAME.SWO.raw           an ITM's bytes, without frames
//! NAME.TB.raw            a trace buffer, in frames; with several: NAME.TB_BUFFER.raw
//! NAME.ER.raw            the Event Recorder's records, which are no trace
//! ```
//!
//! The form is an experimental one of 2026 (CMSIS-Toolbox, "Experimental Features"), so that only what is needed is read, and everything
//! else is let pass.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tracewalk::ids::TraceId;
use tracewalk::program::Scope;

use super::arrangement::Arrangement;
use super::container::{Blocks, Container};
use super::contents::{Buffer, Capture};
use super::error::{CaptureError, CaptureErrorKind as Kind};
use super::format::{Format, Given, Holds, no_description, refuse_options};
use super::source::{Protocol, SourceDescription};
use super::yaml::{Fault, Node};
use crate::file::{self, FileProblem};
use crate::image::{ImageKind, ImageRequest};
use crate::number;
use crate::origin::{Naming, Origin, Stated};
use crate::paths::Confinement;

/// A description, or the folder with one.
pub(super) const FORMAT: Format = Format {
    name: "a trace of the CMSIS-Toolbox",
    holds: Holds::Description,
    streams: false,
    sniff: |given| !descriptions(&given.path).is_empty(),
    open: |given, wires| refuse_options(open(given)?, wires),
    names: |given| {
        let files = descriptions(&given.path);
        let raw = files.iter().flat_map(|file| channels(file).into_iter().map(|(_, raw)| raw));
        raw.chain(files.iter().filter(|file| **file != given.path).cloned()).collect()
    },
};

const ENDING: &str = ".ctrace-run.yml";

/// The most bytes of a description.
const LONGEST: u64 = 1 << 20;

/// The descriptions that a path names: itself, or those in a folder.
pub(super) fn descriptions(path: &Path) -> Vec<PathBuf> {
    let is_one = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(ENDING));
    if !path.is_dir() {
        return if is_one(path) { vec![path.to_owned()] } else { Vec::new() };
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files = entries.filter(|path| is_one(path)).collect::<Vec<_>>();
    files.sort();
    files
}

/// The recorded channels of a description, by their names, with their files.
fn channels(description: &Path) -> Vec<(String, PathBuf)> {
    let folder =
        description.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = description.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let prefix = format!("{}.", name.strip_suffix(ENDING).unwrap_or(&name));
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found = entries
        .filter_map(|path| {
            let name = path.file_name()?.to_string_lossy().into_owned();
            let channel = name.strip_prefix(&prefix)?.strip_suffix(".raw")?.to_owned();
            Some((channel, path))
        })
        .collect::<Vec<_>>();
    found.sort();
    found
}

fn open(given: &Given) -> Result<Capture, CaptureError> {
    let files = descriptions(&given.path);
    let [path] = files.as_slice() else {
        let names = files.iter().filter_map(|file| file.file_name());
        let files = names.map(|name| name.to_string_lossy().into_owned()).collect::<Vec<_>>();
        return match files.is_empty() {
            true => Err(no_description(given)),
            false => Err(CaptureError {
                file: given.path.clone(),
                line: None,
                kind: Kind::SeveralDescriptions { files },
            }),
        };
    };
    let bytes = file::read(path, LONGEST).map_err(|problem| CaptureError::of_file(path, problem))?;
    let text = String::from_utf8_lossy(&bytes);
    let root = Node::parse(&text).map_err(|(line, words): Fault| CaptureError {
        file: path.clone(),
        line: Some(line),
        kind: Kind::Yaml(words),
    })?;
    let missing = || {
        let kind = Kind::MissingKey { place: "the description".to_owned(), key: "ctrace-run" };
        CaptureError { file: path.clone(), line: None, kind }
    };
    let run = root.get("ctrace-run").ok_or_else(missing)?;
    let sources = sources(run, path);
    let mut notes = Vec::new();
    let mut buffers = Vec::new();
    for (channel, file) in channels(path) {
        match buffer(&channel, &file, &sources) {
            Ok(Some(buffer)) => buffers.push(buffer),
            Ok(None) => {}
            Err(problem) => notes.push(CaptureError::of_file(&file, problem)),
        }
    }
    if buffers.is_empty() {
        return Err(notes.pop().unwrap_or(CaptureError {
            file: path.clone(),
            line: None,
            kind: Kind::NoBuffer,
        }));
    }
    Ok(Capture {
        path: path.clone(),
        buffers,
        other_sources: Vec::new(),
        images: images(run, path, &given.roots),
        timestamp_frequency: frequency(run, path),
        dump: None,
        notes,
        unused: Vec::new(),
        recorded: None,
    })
}

/// The sources that frames can contain: one for each stream.
fn sources(run: &Node<'_>, path: &Path) -> Vec<SourceDescription> {
    let mut sources = BTreeMap::<u8, SourceDescription>::new();
    for reference in run.list("ctrace-refs") {
        let id = reference.text("stream").and_then(number::parse).and_then(|id| u8::try_from(id).ok());
        let Some(id) = id.and_then(TraceId::new) else { continue };
        let origin = Origin::line(path, reference.line);
        let source =
            sources.entry(id.get()).or_insert_with(|| SourceDescription::new(Protocol::Itm, origin.clone()));
        source.id = Some(id);
        if let Some(name) = reference.text("pname").filter(|_| source.name.is_none()) {
            source.name = Some(name.to_owned());
            let setup = run.list("ctrace-setup").iter().find(|setup| setup.text("pname") == Some(name));
            let core = setup.and_then(|setup| Some((setup.text("core")?, setup.line)));
            source.cpu =
                core.map(|(core, line)| Stated::new(core.to_ascii_lowercase(), Origin::line(path, line)));
        }
        for register in reference.list("regs") {
            let value =
                register.text("value").and_then(number::parse).and_then(|value| u32::try_from(value).ok());
            let (Some(name), Some(value)) = (register.text("name"), value) else { continue };
            // The registers of an ITM are written in parts, under masks.
            let protocol = match name {
                name if name.starts_with("TRC") => Protocol::Etmv4,
                name if name.starts_with("ETM") => Protocol::EtmV3,
                _ => continue,
            };
            source.protocol = protocol;
            source.registers.set(name, value, Origin::line(path, register.line));
        }
    }
    sources.into_values().collect()
}

/// A channel's bytes; `None` if they are no trace.
fn buffer(channel: &str, file: &Path, sources: &[SourceDescription]) -> Result<Option<Buffer>, FileProblem> {
    let origin = Origin::file(file);
    let container = |container| Some(Stated::new(container, origin.clone()));
    let is_buffer = channel == "TB" || channel.starts_with("TB_");
    let (container, sources) = match channel {
        "ER" => return Ok(None),
        "SWO" => (container(Container::Raw), vec![SourceDescription::new(Protocol::Itm, origin.clone())]),
        _ if is_buffer && !sources.is_empty() => (container(Container::Frames), sources.to_vec()),
        // The name of a buffer is any.
        _ => (None, Vec::new()),
    };
    let bytes = file::map(file, file::LONGEST_CAPTURE)?;
    if bytes.is_empty() {
        return Err(FileProblem::Empty);
    }
    Ok(Some(Buffer {
        name: channel.to_owned(),
        file: file.to_owned(),
        bytes,
        parts: None,
        container,
        frame_start: None,
        sources,
        blocks: Blocks::None,
        arrangement: Arrangement::default(),
        wires: None,
        origin,
    }))
}

/// The program's files that are at hand. The description has their names without folders.
fn images(run: &Node<'_>, path: &Path, roots: &[PathBuf]) -> Vec<ImageRequest> {
    let confinement = Confinement::new(path.parent().unwrap_or(Path::new("")), roots);
    let mut images = Vec::<ImageRequest>::new();
    for reference in run.list("ctrace-refs") {
        let Some(name) = reference.text("symbol-file") else { continue };
        let Some(file) = confinement.resolve(name).ok().filter(|file| file.is_file()) else { continue };
        if images.iter().all(|image| image.file != file) {
            let naming = Naming {
                key: "symbol-file".to_owned(),
                section: "ctrace-refs".to_owned(),
                file: path.to_owned(),
                line: reference.line,
            };
            images.push(ImageRequest {
                file,
                kind: ImageKind::Addressed,
                cores: Vec::new(),
                scope: Scope::EVERYWHERE,
                origin: Origin::line(path, reference.line),
                named_by: Some(naming),
            });
        }
    }
    images
}

/// The frequency of an ITM's timestamps, if it is the same for all processors.
fn frequency(run: &Node<'_>, path: &Path) -> Option<Stated<u64>> {
    let stated = run.list("ctrace-setup").iter().filter_map(|setup| {
        let timestamps = setup.get("timestamps")?;
        let clock = number::parse(timestamps.text("clock")?)?;
        let prescaler =
            timestamps.text("itm-prescaler").and_then(number::parse).filter(|by| *by > 0).unwrap_or(1);
        Some((clock / prescaler, timestamps.line))
    });
    let stated = stated.collect::<Vec<_>>();
    let (first, line) = *stated.first()?;
    let is_one = first > 0 && stated.iter().all(|(frequency, _)| *frequency == first);
    is_one.then(|| Stated::new(first, Origin::line(path, line)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_of_one_clock_have_a_frequency() {
        let of = |second: &str| {
            let folder = tempfile::tempdir().expect("room for a folder");
            let text = format!(
                "ctrace-run:\n  ctrace-setup:\n  - pname: A\n    timestamps:\n      clock: 240000000\n      itm-prescaler: 4\n\
                 {second}  ctrace-refs: []\n"
            );
            std::fs::write(folder.path().join("x.ctrace-run.yml"), text).expect("room for a file");
            std::fs::write(folder.path().join("x.SWO.raw"), [0, 0, 0, 0, 0, 0x80]).expect("room for a file");
            let capture = Capture::open(folder.path()).expect("a capture");
            assert_eq!((capture.buffers.len(), capture.buffers[0].name.as_str()), (1, "SWO"));
            capture.timestamp_frequency.map(|stated| stated.value)
        };
        assert_eq!(of(""), Some(60_000_000));
        assert_eq!(of("  - pname: B\n    timestamps:\n      clock: 480000000\n"), None);
    }
}
