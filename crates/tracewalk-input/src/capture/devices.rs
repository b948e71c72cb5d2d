//! The device files of a snapshot: cores with their memory, trace sources with their registers.

use std::path::Path;

use tracewalk::ids::Address;

use super::error::{CaptureError, CaptureErrorKind as Kind};
use super::ini::{Ini, Section};
use super::place::{Place, entry_number};
use super::registers::{DECODING, meant_by, named_by, parse_value};
use super::source::{Protocol, SourceDescription};
use super::unused::Unused;
use crate::excerpt::excerpt;
use crate::image::{ImageKind, ImageRequest};
use crate::nearest::nearest;
use crate::number;
use crate::origin::{Origin, Stated};
use crate::paths::Confinement;

/// The device that a file describes.
#[derive(Debug)]
pub(super) struct Device {
    pub(super) name: String,
    pub(super) class: Class,
    /// The class, as the file spells it.
    pub(super) class_word: String,
    /// A core's type.
    pub(super) cpu: Option<Stated<String>>,
    /// A core's memory.
    pub(super) dumps: Vec<ImageRequest>,
    /// A trace source's description.
    pub(super) source: Option<SourceDescription>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Core,
    TraceSource,
    /// A device that neither executes nor traces.
    Other,
}

/// Reads the device file at `path`.
pub(super) fn read(
    path: &Path,
    confinement: &Confinement,
    unused: &mut Vec<Unused>,
) -> Result<Device, CaptureError> {
    let ini = Ini::read(path)?;
    let place = Place { path, confinement };
    let missing = || Kind::MissingKey { place: "the file".to_owned(), key: "[device]" };
    let section = ini.section("device").ok_or_else(|| place.error(None, missing()))?;
    let name = place.required(section, "name")?.value.clone();
    let class_word = place.required(section, "class")?.value.clone();
    let class = match class_word.to_ascii_lowercase().as_str() {
        "core" => Class::Core,
        "trace_source" => Class::TraceSource,
        _ => Class::Other,
    };
    let kind = section.entry("type");
    ini.add_unused(path, unused, |section, entry| match &*section.name.to_ascii_lowercase() {
        "device" => ["name", "class", "type"].iter().any(|key| entry.is(key)),
        // Only a trace source's registers are kept. A processor has many, which only show its state when it
        // stopped.
        "regs" => class != Class::TraceSource || number::parse_u32(&entry.value).is_some(),
        _ => section.is_numbered("dump") && DUMP_KEYS.iter().any(|key| entry.is(key)),
    });
    let mut device = Device { name, class, class_word, cpu: None, dumps: Vec::new(), source: None };
    match class {
        Class::Core => {
            device.cpu = kind.map(|kind| Stated::new(kind.value.clone(), Origin::line(path, kind.line)));
            for section in ini.sections.iter().filter(|section| section.is_numbered("dump")) {
                device.dumps.push(dump(section, &place)?);
            }
        }
        Class::TraceSource => {
            let protocol = protocol(kind.map_or("", |kind| &kind.value));
            let mut source = SourceDescription::new(protocol, Origin::line(path, section.line));
            source.name = Some(device.name.clone());
            for section in ini.sections.iter().filter(|section| section.is("regs")) {
                add_registers(&mut source, section, &place)?;
            }
            device.source = Some(source);
        }
        Class::Other => {}
    }
    Ok(device)
}

/// The protocol of a trace source with this type. Types end in a version: `ETM3.5`, `PTM1.1`, `PFT1.1`.
fn protocol(kind: &str) -> Protocol {
    let upper = kind.to_ascii_uppercase();
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| upper.starts_with(prefix));
    if starts(&["ETM3", "ETMV3"]) {
        Protocol::EtmV3
    } else if starts(&["PTM", "PFT"]) {
        Protocol::Pft
    } else if starts(&["ETM4", "ETMV4", "ETE"]) {
        Protocol::Etmv4
    } else if starts(&["MTB"]) {
        Protocol::Mtb
    } else if starts(&["ITM"]) {
        Protocol::Itm
    } else if starts(&["STM"]) {
        Protocol::Stm
    } else {
        Protocol::Unknown(kind.to_owned())
    }
}

/// Adds the registers of a `[regs]` section. Only registers that change decoding have to be valid: there are
/// hundreds of others, some of 64 bits.
fn add_registers(
    source: &mut SourceDescription,
    section: &Section,
    place: &Place<'_>,
) -> Result<(), CaptureError> {
    let name_of = match source.protocol {
        Protocol::EtmV3 | Protocol::Pft | Protocol::Itm => meant_by,
        // Tools write offsets or numbers after the names of ETMv4's registers, but always use Arm's names.
        Protocol::Etmv4 | Protocol::Mtb | Protocol::Stm | Protocol::Unknown(_) => named_by,
    };
    let registers = &mut source.registers;
    for entry in &section.entries {
        let name = name_of(&entry.key);
        let known = registers.get(&name);
        if !DECODING.contains(&name.as_str()) {
            // Registers with the same name differ in the number or index after it.
            let name = if known.is_some() { entry.key.trim() } else { &name };
            if let (Some(value), None) = (number::parse_u32(&entry.value), registers.get(name)) {
                registers.set(name, value, Origin::line(place.path, entry.line));
            }
            continue;
        }
        let value = parse_value(&name, &entry.value).map_err(|kind| place.error(Some(entry.line), kind))?;
        if known.is_some_and(|known| known != value) {
            return Err(place.error(Some(entry.line), Kind::Repeated { key: name }));
        }
        registers.set(&name, value, Origin::line(place.path, entry.line));
    }
    Ok(())
}

const DUMP_KEYS: [&str; 5] = ["file", "address", "length", "offset", "space"];

/// A stretch of a core's memory.
fn dump(section: &Section, place: &Place<'_>) -> Result<ImageRequest, CaptureError> {
    // An unknown key is ignored, unless it is probably a misspelling of a required key that is missing.
    let is_complete = section.entry("address").is_some() && section.entry("file").is_some();
    for entry in section.entries.iter().filter(|_| !is_complete) {
        if !DUMP_KEYS.iter().any(|key| entry.is(key)) {
            let nearest = nearest(&entry.key, DUMP_KEYS).unwrap_or("");
            let section = format!("[{}]", excerpt(&section.name));
            let kind = Kind::UnknownKey { place: section, key: excerpt(&entry.key), nearest };
            return Err(place.error(Some(entry.line), kind));
        }
    }
    let address = place.required(section, "address")?;
    let named = place.required(section, "file")?;
    let file = place.file(section, named)?;
    let start = entry_number(address, place)?;
    let number = |key| section.entry(key).map(|entry| entry_number(entry, place)).transpose();
    let kind = ImageKind::Raw {
        address: Address::new(start),
        offset: number("offset")?.unwrap_or(0),
        // Some writers use a length of 0 for the whole file.
        length: number("length")?.filter(|&length| length != 0),
        space: section.entry("space").map(|space| space.value.clone()),
    };
    let request = ImageRequest::new(file, kind, Origin::line(place.path, section.line));
    Ok(ImageRequest { named_by: Some(place.naming(section, named)), ..request })
}
