//! Reads snapshot directories as DS-5 and OpenCSD write them.
//!
//! ```text
//! snapshot.ini   [device_list]           deviceN = FILE, one for each
//!                [trace] metadata = FILE
//! device files   [device]                name, class (core, trace_source), type (Cortex-A7, ETM3.5, PTM1.1)
//!                [regs]                  ETMCR(0x000)=… or ETMCR(id:0x0)=… or ETMCR=…
//!                [dump] [dump1] …        file, address, length, offset, space: memory of a core
//! trace file     [trace_buffers]         buffers = a,b: the sections of the buffers
//!                [a]                     name, file, format (coresight, source_data, dstream_coresight)
//!                [source_buffers]        source = buffer[,buffer]
//!                [core_trace_sources]    core = source
//!                [timestamp]             frequency
//! ```
//!
//! Tools add their own sections and keys. Unknown ones are listed in [`Capture::unused`]. An inconsistency
//! that leaves the rest usable becomes a note of the capture.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::buffers::{self, Metadata};
use super::contents::{Buffer, Capture};
use super::devices::{self, Class, Device};
use super::error::{CaptureError, CaptureErrorKind as Kind};
use super::format::{Format, Holds, description_in, names_of, no_description, refuse_options};
use super::ini::Ini;
use super::place::Place;
use super::source::SourceDescription;
use super::unused::Unused;
use crate::excerpt::excerpt;
use crate::image::{ImageKind, ImageRequest};
use crate::nearest::nearest;
use crate::paths::{Confinement, has_extension};

/// The most devices: a system has some dozens. The limit is for a list that names one file a million times.
const MOST_DEVICES: usize = 4096;

/// A `snapshot.ini`, or the directory with one.
pub(super) const FORMAT: Format = Format {
    name: "a snapshot",
    holds: Holds::Description,
    streams: false,
    sniff: |given| match given.path.is_dir() {
        true => description_in(given, FILE).is_some(),
        false => has_extension(&given.path, "ini"),
    },
    open: |given, wires| match description_in(given, FILE) {
        Some(path) => refuse_options(read(&path?, &given.roots)?, wires),
        None => Err(no_description(given)),
    },
    names: |given| names_of(given, FILE, named_by),
};

/// The name of the list of devices in a directory.
const FILE: &str = "snapshot.ini";

/// Reads the snapshot whose list of devices is at `path`.
fn read(path: &Path, roots: &[PathBuf]) -> Result<Capture, CaptureError> {
    let confinement = Confinement::new(path.parent().unwrap_or(Path::new("")), roots);
    let list = Ini::read(path)?;
    let place = Place { path, confinement: &confinement };
    check_version(&list, &place)?;
    let (mut notes, mut unused) = (Vec::new(), Vec::new());
    list.add_unused(path, &mut unused, |section, entry| match &*section.name.to_ascii_lowercase() {
        "snapshot" => entry.is("version"),
        "device_list" => true,
        "trace" => entry.is("metadata"),
        _ => false,
    });
    let mut devices = read_devices(&list, &place, &mut unused)?;
    let trace = list.section("trace").and_then(|section| Some((section, section.entry("metadata")?)));
    let (section, trace) = trace.ok_or_else(|| place.error(None, Kind::NoBuffer))?;
    let metadata = Metadata::read(&place.file(section, trace)?, &confinement, &mut unused)
        .map_err(|error| place.named(section, trace, error))?;

    connect_cores(&mut devices, &metadata, &mut notes);
    let images = images(&devices);
    let (buffers, other_sources) = distribute(devices, &metadata, &mut notes)?;
    Ok(Capture {
        path: path.to_owned(),
        buffers,
        other_sources,
        images,
        timestamp_frequency: metadata.timestamp_frequency,
        notes,
        unused,
        dump: None,
        recorded: None,
    })
}

fn check_version(list: &Ini, place: &Place<'_>) -> Result<(), CaptureError> {
    // The oldest snapshots have no version; their list of devices is the same.
    let version = list.section("snapshot").and_then(|section| section.entry("version"));
    match version {
        Some(version) if !matches!(version.value.as_str(), "1" | "1.0") => {
            Err(place.error(Some(version.line), Kind::Version { found: excerpt(&version.value) }))
        }
        _ => Ok(()),
    }
}

fn read_devices(
    list: &Ini,
    place: &Place<'_>,
    unused: &mut Vec<Unused>,
) -> Result<Vec<Device>, CaptureError> {
    let Some(section) = list.section("device_list") else { return Ok(Vec::new()) };
    let entries = section.entries.as_slice();
    if entries.len() > MOST_DEVICES {
        let kind = Kind::TooMany { what: "devices", found: entries.len(), limit: MOST_DEVICES };
        return Err(place.error(None, kind));
    }
    let mut devices = Vec::<Device>::new();
    for entry in entries {
        let path = place.file(section, entry)?;
        let device = devices::read(&path, place.confinement, unused)
            .map_err(|error| place.named(section, entry, error))?;
        if devices.iter().any(|known| known.name == device.name) {
            return Err(place.error(Some(entry.line), Kind::Repeated { key: excerpt(&device.name) }));
        }
        devices.push(device);
    }
    Ok(devices)
}

/// Sets the core that each trace source traces, and that core's type.
fn connect_cores(devices: &mut [Device], metadata: &Metadata, notes: &mut Vec<CaptureError>) {
    let types = devices.iter().filter(|device| device.class == Class::Core);
    let types = types.map(|core| (core.name.clone(), core.cpu.clone())).collect::<BTreeMap<_, _>>();
    for link in &metadata.core_sources {
        let problem = no_source(&link.value, devices);
        let source = devices.iter_mut().find(|device| device.name == link.value);
        let Some(source) = source.and_then(|device| device.source.as_mut()) else {
            notes.push(metadata.error(link.line, problem));
            continue;
        };
        source.core = Some(link.key.clone());
        source.cpu = types.get(&link.key).cloned().flatten();
    }
    // A single core is the only one that a trace unit could trace.
    if let (1, Some((core, cpu))) = (types.len(), types.first_key_value()) {
        let sources = devices.iter_mut().filter_map(|device| device.source.as_mut());
        for source in sources.filter(|source| source.core.is_none() && source.protocol.traces_a_core()) {
            source.core = Some(core.clone());
            source.cpu.clone_from(cpu);
        }
    }
    for source in devices.iter_mut().filter_map(|device| device.source.as_mut()) {
        source.add_usual_registers();
        source.add_id_from_registers();
    }
}

/// The memory dumps of all cores. A dump that several cores describe identically is one image.
fn images(devices: &[Device]) -> Vec<ImageRequest> {
    let mut images = Vec::<ImageRequest>::new();
    let mut known = BTreeMap::<(&Path, &ImageKind), usize>::new();
    for device in devices {
        for dump in &device.dumps {
            let index = *known.entry((&dump.file, &dump.kind)).or_insert(images.len());
            match images.get_mut(index) {
                Some(image) => image.cores.push(device.name.clone()),
                None => images.push(ImageRequest { cores: vec![device.name.clone()], ..dump.clone() }),
            }
        }
    }
    images
}

/// Assigns the sources to their buffers. Returns the buffers, and the sources without trace in any buffer.
fn distribute(
    devices: Vec<Device>,
    metadata: &Metadata,
    notes: &mut Vec<CaptureError>,
) -> Result<(Vec<Buffer>, Vec<SourceDescription>), CaptureError> {
    let mut buffers = buffers::load(metadata, notes)?;
    let unknown =
        metadata.source_buffers.iter().map(|link| no_source(&link.key, &devices)).collect::<Vec<_>>();
    let buffer_names = buffers.iter().map(|buffer| buffer.name.clone()).collect::<Vec<_>>();
    let sources = devices.into_iter().filter_map(|device| Some((device.name, device.source?)));
    let mut sources = sources.map(|(name, source)| (name, source, false)).collect::<Vec<_>>();
    for (link, problem) in metadata.source_buffers.iter().zip(unknown) {
        let Some((_, source, placed)) = sources.iter_mut().find(|(name, ..)| *name == link.key) else {
            notes.push(metadata.error(link.line, problem));
            continue;
        };
        for name in link.value.split(',').map(str::trim) {
            match buffers.iter_mut().find(|buffer| buffer.name == name) {
                Some(buffer) => {
                    buffer.sources.push(source.clone());
                    *placed = true;
                }
                // It could not be read.
                None if metadata.describes(name) => {}
                None => notes.push(metadata.error(link.line, undefined("trace buffer", name, &buffer_names))),
            }
        }
    }
    let others = sources.into_iter().filter(|(.., placed)| !placed).map(|(_, source, _)| source);
    Ok((buffers, others.collect()))
}

/// The problem with a name that no trace source has.
fn no_source(name: &str, devices: &[Device]) -> Kind {
    match devices.iter().find(|device| device.name == name) {
        Some(device) => Kind::Type {
            key: excerpt(name),
            expected: "the class trace_source",
            found: format!("`{}`", excerpt(&device.class_word)),
        },
        None => {
            let sources = devices.iter().filter(|device| device.source.is_some());
            undefined("trace source", name, &sources.map(|device| device.name.clone()).collect::<Vec<_>>())
        }
    }
}

fn undefined(what: &'static str, name: &str, known: &[String]) -> Kind {
    let nearest = nearest(name, known.iter().map(String::as_str)).map(str::to_owned);
    Kind::Undefined { what, name: excerpt(name), nearest }
}

/// The device and trace files that the list of devices names, and the files that these name as `file`.
fn named_by(path: &Path, roots: &[PathBuf]) -> Vec<PathBuf> {
    let inside = Confinement::new(path.parent().unwrap_or(Path::new("")), roots);
    let Ok(list) = Ini::read(path) else { return Vec::new() };
    let sections = list.sections.iter().filter(|section| section.is("device_list") || section.is("trace"));
    let values = sections.flat_map(|section| &section.entries).map(|entry| &entry.value).take(MOST_DEVICES);
    let mut files = values.filter_map(|name| inside.resolve(name).ok()).collect::<Vec<_>>();
    for description in files.clone() {
        let Ok(ini) = Ini::read(&description) else { continue };
        let entries = ini.sections.iter().flat_map(|section| &section.entries);
        let named = entries.filter(|entry| entry.is("file"));
        files.extend(named.filter_map(|entry| inside.resolve(&entry.value).ok()));
    }
    files
}
