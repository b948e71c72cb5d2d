//! Reads `capture.toml`, which describes a capture in one file.
//!
//! ```toml
//! [capture]
//! file = "swo.bin"            # relative to this file, and not outside its directory, unless the caller allows it
//! container = "frames"        # auto, frames, tpiu, raw, mtb; auto if left out
//! frame_start = 3             # tpiu without FSYNC: bytes before the first frame
//! name = "ETB_0"              # for messages; the file's name if left out
//! blocks = "dstream"          # 504 bytes of trace and 8 others in turn, from a DSTREAM unit
//! read_pointer = 0x1230       # a buffer that wrapped: the offset of its oldest byte in the file
//! words = "swapped"           # each 32-bit word has its highest byte first
//! timestamp_frequency = 25_000_000
//! dump = "crash.log"          # registers and memory of the halted processor, as a debugger printed them, for `crash`
//! wire = "uart"               # of a logic analyser's recording: uart, manchester, port; inferred if left out
//! baud = 8_000_000            # the bits that SWO sends in a second; measured if left out
//! channels = { PB3 = "swo" }  # which channel is swo, clk, d0, d1 …; known by their names if left out
//! invert = true               # the wires are inverted; for SWO inferred if left out and certain
//! rate = 24_000_000           # bare samples, as sigrok's format binary has them: samples per second
//! sample_bytes = 2            # bytes of each sample; 1 if left out
//!
//! [[source]]
//! protocol = "etmv3"          # etmv3, pft, mtb, itm, unknown
//! capture = "ETB_0"           # the name of its buffer, if there are several
//! id = 0x02                   # the trace ID, if there is one
//! cpu = "cortex-m3"           # registers that are not given have the values that are usual for it
//! registers = { etmcr = 0x500 }  # or a file of lines like MTB_POSITION=0x1bc
//! name = "ETM_0"
//! core = "cpu_0"              # whose trace it is; images may be for one core
//! other_registers = { ETMTEEVR = 0x6f }  # kept, and change nothing
//!
//! [[image]]
//! file = "app.elf"
//!
//! [[image]]
//! file = "ram.bin"
//! address = 0x2000_0000       # the file is the memory's bytes from this address on
//! offset = 0x100              # from this byte of the file on
//! length = 0x1000             # and not more than these
//! space = "S"
//! cores = ["cpu_0"]           # every core's if left out
//!
//! [[image]]
//! file = "init.elf"
//! context = 0x42              # visible while the context ID is this one, instead of what is there otherwise
//! vmid = 1                    # and while this virtual machine runs; any if left out
//! ```
//!
//! A capture with several buffers has one `[[capture]]` for each instead of `[capture]`.

use std::path::{Path, PathBuf};

use tracewalk::ids::{Address, ContextId, Vmid};
use tracewalk::plain::plain;
use tracewalk::program::Scope;

use super::arrangement::{Arrangement, ReadPointerOutside};
use super::buffers::MOST_BUFFERS;
use super::container::{self, Blocks, Container};
use super::contents::{Buffer, Capture};
use super::document::{Document, Table};
use super::dump::MemoryDump;
use super::error::{CaptureError, CaptureErrorKind as Kind, OUTSIDE_TABLES};
use super::format::{Format, Holds, description_in, names_of, no_description};
use super::registers::{DECODING, Registers, known};
use super::source::{Protocol, SourceDescription, known_cpu, trace_id};
use super::wire::{self, Recording, RecordingProblem, Role, Samples, Wire, WireOptions};
use crate::bytes::Bytes;
use crate::excerpt::excerpt;
use crate::file::{self, FileProblem};
use crate::image::{ImageKind, ImageRequest};
use crate::nearest::nearest;
use crate::origin::Stated;
use crate::paths::has_extension;

/// A `capture.toml`, or the directory with one.
pub(super) const FORMAT: Format = Format {
    name: "a capture.toml",
    holds: Holds::Description,
    streams: false,
    sniff: |given| match given.path.is_dir() {
        true => description_in(given, FILE).is_some(),
        false => has_extension(&given.path, "toml"),
    },
    open: |given, wires| match description_in(given, FILE) {
        Some(path) => read(&path?, wires, &given.roots),
        None => Err(no_description(given)),
    },
    names: |given| names_of(given, FILE, |path, roots| named_by(path, roots).unwrap_or_default()),
};

/// The name of the description in a directory.
const FILE: &str = "capture.toml";

/// Reads the description at `path` and the trace that it names, in its directory or in `roots`. `wires` takes precedence over the
/// description.
fn read(path: &Path, wires: &WireOptions, roots: &[PathBuf]) -> Result<Capture, CaptureError> {
    let document = Document::read(path, roots)?;
    let root = document.parse()?;
    root.check_keys(OUTSIDE_TABLES, &["capture", "source", "image"])?;
    let tables = match root.is_list("capture") {
        true => root.tables("capture")?,
        false => root.table("capture")?.into_iter().collect(),
    };
    if tables.is_empty() {
        let kind = Kind::MissingKey { place: OUTSIDE_TABLES.to_owned(), key: "[capture]" };
        return Err(document.error(None, kind));
    }
    if tables.len() > MOST_BUFFERS {
        let kind = Kind::TooMany { what: "trace buffers", found: tables.len(), limit: MOST_BUFFERS };
        return Err(document.error(None, kind));
    }
    let mut buffers = Vec::<Buffer>::new();
    let (mut timestamp_frequency, mut dump) = (None, None);
    let (mut notes, mut left_out, mut other_sources) = (Vec::new(), Vec::new(), Vec::new());
    for table in &tables {
        timestamp_frequency = timestamp_frequency.or(table.number("timestamp_frequency", u64::MAX)?);
        match table.file("capture", "dump")? {
            Some(named) if !named.value.exists() => {
                notes.push(table.unreadable("[capture]", "dump", &named.value, FileProblem::Missing));
            }
            named => dump = dump.or(named),
        }
        let buffer = match read_buffer(&document, table, wires) {
            Err(error) if tables.len() > 1 && matches!(error.kind, Kind::NamedFile { .. }) => {
                left_out.extend(name_of(table)?);
                notes.push(error);
                continue;
            }
            buffer => buffer?,
        };
        if buffers.iter().any(|known| known.name == buffer.name) {
            return Err(table.error_at("name", Kind::Repeated { key: excerpt(&buffer.name) }));
        }
        buffers.push(buffer);
    }
    if buffers.is_empty()
        && let Some(error) = notes.pop()
    {
        return Err(error);
    }
    for table in root.tables("source")? {
        let source = read_source(&document, &table, &mut notes)?;
        if table.text("capture")?.is_some_and(|name| left_out.contains(&name.value)) {
            other_sources.push(source);
            continue;
        }
        let sources = &mut buffer_of(&table, &mut buffers)?.sources;
        if let Some(id) = source.id.filter(|id| sources.iter().any(|known| known.id == Some(*id))) {
            return Err(table.error_at("id", Kind::Repeated { key: format!("id = {id}") }));
        }
        sources.push(source);
    }
    let images =
        root.tables("image")?.iter().map(|table| read_image(&document, table)).collect::<Result<_, _>>()?;
    Ok(Capture {
        path: path.to_owned(),
        buffers,
        other_sources,
        images,
        timestamp_frequency: timestamp_frequency.map(|stated| Stated::new(stated.value, stated.origin)),
        dump,
        notes,
        unused: Vec::new(),
        recorded: None,
    })
}

/// A buffer's name: the stated one, else the file's.
fn name_of(table: &Table<'_, '_>) -> Result<Option<String>, CaptureError> {
    if let Some(name) = table.text("name")? {
        return Ok(Some(name.value));
    }
    let file = table.file("[capture]", "file")?;
    Ok(file.map(|file| plain(file.value.file_name().unwrap_or_default().to_string_lossy()).into_owned()))
}

/// The buffer with a source's trace: the one that the source names, or the only one.
fn buffer_of<'b>(source: &Table<'_, '_>, buffers: &'b mut [Buffer]) -> Result<&'b mut Buffer, CaptureError> {
    let names = buffers.iter().map(|buffer| buffer.name.clone()).collect::<Vec<_>>();
    let named = match source.text("capture")? {
        Some(name) => buffers.iter_mut().find(|buffer| buffer.name == name.value).ok_or_else(|| {
            let nearest = nearest(&name.value, names.iter().map(String::as_str)).map(str::to_owned);
            Kind::Undefined { what: "trace buffer", name: excerpt(&name.value), nearest }
        }),
        None => match buffers {
            [buffer] => Ok(buffer),
            _ => Err(Kind::MissingKey { place: "[[source]]".to_owned(), key: "capture" }),
        },
    };
    named.map_err(|kind| source.error_at("capture", kind))
}

fn read_buffer(
    document: &Document,
    table: &Table<'_, '_>,
    wires: &WireOptions,
) -> Result<Buffer, CaptureError> {
    const KEYS: [&str; 15] = [
        "file",
        "container",
        "frame_start",
        "name",
        "blocks",
        "read_pointer",
        "words",
        "timestamp_frequency",
        "wire",
        "baud",
        "channels",
        "invert",
        "rate",
        "sample_bytes",
        "dump",
    ];
    table.check_keys("[capture]", &KEYS)?;
    let file = table.required_file("[capture]", "file")?;
    let container = match table.text("container")? {
        Some(word) if word.value != "auto" => {
            let container = word.value.parse::<Container>();
            Some(Stated::new(
                container.map_err(|error| table.error_at("container", error.into()))?,
                word.origin,
            ))
        }
        _ => None,
    };
    let frame_start = table.number("frame_start", 15)?;
    let frame_start =
        frame_start.and_then(|start| Some(Stated::new(u8::try_from(start.value).ok()?, start.origin)));
    let blocks = match table.text("blocks")?.map(|word| word.value) {
        None => Blocks::None,
        Some(word) if word == "dstream" => Blocks::Dstream,
        Some(word) => {
            let found = excerpt(&word);
            let kind = Kind::UnknownValue { key: "blocks".to_owned(), found, nearest: "dstream" };
            return Err(table.error_at("blocks", kind));
        }
    };
    let name_problem = |problem| table.unreadable("[capture]", "file", &file.value, problem);
    let wires = wires.or(&read_wire_options(table)?);
    let recording = Recording::open_with(&file.value, &wires).map_err(|error| match error.kind {
        Kind::File(problem) => name_problem(problem),
        _ => error,
    })?;
    let (bytes, wires) = match recording {
        Some(recording) => {
            let (bytes, reading) = wire::read(&recording, &wires)?;
            (bytes.into(), Some(reading))
        }
        None if !wires.is_empty() => {
            let kind = Kind::Recording(RecordingProblem::NotARecording);
            return Err(CaptureError { file: file.value, line: None, kind });
        }
        None => {
            let bytes = file::map(&file.value, file::LONGEST_CAPTURE);
            let is_there = |bytes: Bytes| if bytes.is_empty() { Err(FileProblem::Empty) } else { Ok(bytes) };
            let bytes = bytes.and_then(is_there).and_then(|bytes| blocks.payload(bytes));
            (bytes.map_err(name_problem)?, None)
        }
    };
    let container = container.or_else(|| container::of_wires(wires.as_ref()?));
    let name = name_of(table)?.unwrap_or_default();
    let arrangement = read_arrangement(table)?;
    let mut buffer = Buffer {
        name,
        file: file.value,
        bytes,
        parts: None,
        container,
        frame_start,
        sources: Vec::new(),
        blocks,
        arrangement: Arrangement::default(),
        wires,
        origin: document.origin(table.line()),
    };
    buffer.arrange(arrangement).map_err(|ReadPointerOutside { found, bytes }| {
        let key = "read_pointer".to_owned();
        table.error_at("read_pointer", Kind::TooLarge { key, found, limit: bytes.saturating_sub(1) })
    })?;
    Ok(buffer)
}

/// The description's statements about the order of bytes in the file.
fn read_arrangement(table: &Table<'_, '_>) -> Result<Arrangement, CaptureError> {
    let swapped_words = match table.text("words")? {
        None => None,
        Some(word) if word.value == "swapped" => Some(Stated::new(true, word.origin)),
        Some(word) => {
            let kind = Kind::UnknownValue {
                key: "words".to_owned(),
                found: excerpt(&word.value),
                nearest: "swapped",
            };
            return Err(table.error_at("words", kind));
        }
    };
    Ok(Arrangement { read_pointer: table.number("read_pointer", u64::MAX)?, swapped_words })
}

/// The description's statements about a recording.
fn read_wire_options(table: &Table<'_, '_>) -> Result<WireOptions, CaptureError> {
    let wire = match table.text("wire")? {
        Some(word) => {
            let wire = word.value.parse::<Wire>();
            Some(wire.map_err(|error| table.error_at("wire", error.into()))?)
        }
        None => None,
    };
    let mut channels = Vec::new();
    if let Some(table) = table.table("channels")? {
        for name in table.keys() {
            let Some(word) = table.text(name)? else { continue };
            let role = word.value.parse::<Role>();
            let role = role.map_err(|error| table.error_at(name, error.into()))?;
            channels.push((name.to_owned(), role));
        }
    }
    let baud = table.number("baud", u64::MAX)?.map(|baud| baud.value);
    if baud == Some(0) {
        let found = "0".to_owned();
        return Err(
            table.error_at("baud", Kind::Type { key: "baud".to_owned(), expected: "bits a second", found })
        );
    }
    let inverted = table.flag("invert")?;
    let rate = table.number("rate", u64::MAX)?.map(|rate| rate.value).filter(|rate| *rate > 0);
    let bytes = table.number("sample_bytes", 8)?.and_then(|bytes| u8::try_from(bytes.value).ok());
    let samples = rate.map(|rate| Samples { rate, bytes: bytes.unwrap_or(1).max(1) });
    Ok(WireOptions { wire, baud, channels, inverted, samples })
}

/// Reads a source. Registers with unknown names are left out, with a note.
fn read_source(
    document: &Document,
    table: &Table<'_, '_>,
    notes: &mut Vec<CaptureError>,
) -> Result<SourceDescription, CaptureError> {
    const PLACE: &str = "[[source]]";
    table.check_keys(
        PLACE,
        &["id", "protocol", "capture", "cpu", "registers", "other_registers", "name", "core"],
    )?;
    let protocol = table.required(PLACE, "protocol", table.text("protocol")?)?;
    let protocol = Protocol::from_name(&protocol.value).map_err(|kind| table.error_at("protocol", kind))?;
    let mut source = SourceDescription::new(protocol, document.origin(table.line()));
    if let Some(number) = table.number("id", u64::MAX)? {
        source.id = Some(trace_id(number.value).map_err(|kind| table.error_at("id", kind))?);
    }
    if let Some(cpu) = table.text("cpu")? {
        let known = known_cpu(&cpu.value).map_err(|kind| table.error_at("cpu", kind))?;
        source.cpu = Some(Stated::new(known, cpu.origin));
    }
    source.name = table.text("name")?.map(|name| name.value);
    source.core = table.text("core")?.map(|core| core.value);
    source.registers = read_registers(table, &source.protocol, notes)?;
    add_other_registers(table, &mut source)?;
    source.add_usual_registers();
    source.add_id_from_registers();
    Ok(source)
}

/// Reads `registers`: a table, or the name of a file.
fn read_registers(
    source: &Table<'_, '_>,
    protocol: &Protocol,
    notes: &mut Vec<CaptureError>,
) -> Result<Registers, CaptureError> {
    if source.is_text("registers") {
        return match source.file("[[source]]", "registers")? {
            Some(file) => MemoryDump::registers_of(&file.value).map_err(|error| match error.kind {
                Kind::File(problem) => source.unreadable("[[source]]", "registers", &file.value, problem),
                _ => error,
            }),
            None => Ok(Registers::new()),
        };
    }
    let mut registers = Registers::new();
    let Some(table) = source.table("registers")? else { return Ok(registers) };
    for key in table.keys() {
        let name = known(key, &DECODING).ok().filter(|name| protocol.has_register(name));
        let Some(name) = name else {
            let nearest = nearest(key, protocol.register_names().iter().copied()).unwrap_or("");
            let place = format!("the registers of {}", protocol.name());
            notes.push(table.error_at(key, Kind::UnknownKey { place, key: excerpt(key), nearest }));
            continue;
        };
        if registers.stated(name).is_some() {
            return Err(table.error_at(key, Kind::Repeated { key: name.to_owned() }));
        }
        if let Some(number) = table.number(key, u64::from(u32::MAX))? {
            let value = u32::try_from(number.value).unwrap_or(u32::MAX);
            registers.set(name, value, number.origin);
        }
    }
    Ok(registers)
}

/// Adds `other_registers`, which do not affect decoding and may have any names.
fn add_other_registers(
    source_table: &Table<'_, '_>,
    source: &mut SourceDescription,
) -> Result<(), CaptureError> {
    let Some(table) = source_table.table("other_registers")? else { return Ok(()) };
    for key in table.keys() {
        if source.protocol.has_register(key) {
            let (key, expected) = (excerpt(key), "a register without effect on packets");
            let kind = Kind::Type {
                key: key.clone(),
                expected,
                found: "one that belongs in `registers`".to_owned(),
            };
            return Err(table.error_at(&key, kind));
        }
        if let Some(number) = table.number(key, u64::from(u32::MAX))? {
            source.registers.set(
                &plain(key.into()),
                u32::try_from(number.value).unwrap_or(u32::MAX),
                number.origin,
            );
        }
    }
    Ok(())
}

fn read_image(document: &Document, table: &Table<'_, '_>) -> Result<ImageRequest, CaptureError> {
    const PLACE: &str = "[[image]]";
    table.check_keys(PLACE, &["file", "address", "offset", "length", "space", "cores", "context", "vmid"])?;
    let file = table.required_file(PLACE, "file")?;
    let address = table.number("address", u64::MAX)?;
    let offset = table.number("offset", u64::MAX)?;
    let length = table.number("length", u64::MAX)?;
    let space = table.text("space")?;
    let kind = match address {
        Some(address) => ImageKind::Raw {
            address: Address::new(address.value),
            offset: offset.map_or(0, |offset| offset.value),
            length: length.map(|length| length.value),
            space: space.map(|space| space.value),
        },
        None if offset.is_some() || length.is_some() || space.is_some() => {
            let kind = Kind::MissingKey { place: PLACE.to_owned(), key: "address" };
            return Err(document.error(Some(table.line()), kind));
        }
        None => ImageKind::Addressed,
    };
    let mut request = ImageRequest::new(file.value, kind, document.origin(table.line()));
    request.named_by = Some(table.naming(PLACE, "file"));
    request.cores = table.texts("cores")?;
    let context_id = table.number("context", u64::from(u32::MAX))?;
    let vmid = table.number("vmid", u64::from(u8::MAX))?;
    request.scope = Scope {
        context_id: context_id.and_then(|id| u32::try_from(id.value).ok()).map(ContextId),
        vmid: vmid.and_then(|vmid| u32::try_from(vmid.value).ok()).map(Vmid),
    };
    Ok(request)
}

/// The files that the description at `path` names.
fn named_by(path: &Path, roots: &[PathBuf]) -> Result<Vec<PathBuf>, CaptureError> {
    let document = Document::read(path, roots)?;
    let root = document.parse()?;
    let mut files = Vec::new();
    let keys = [("capture", "file"), ("capture", "dump"), ("image", "file"), ("source", "registers")];
    for (name, key) in keys {
        let tables = match root.is_list(name) {
            true => root.tables(name)?,
            false => root.table(name)?.into_iter().collect(),
        };
        let named = tables.iter().filter(|table| table.is_text(key)).filter_map(|table| {
            // Opening the capture reports a wrong name.
            table.file(name, key).ok().flatten()
        });
        files.extend(named.map(|file| file.value));
    }
    Ok(files)
}
