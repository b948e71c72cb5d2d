//! Files: whatever a file contains, the answer is a value or a one-line message.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tracewalk::frame::{Discontinuity, FrameSink, Framing, Indexer, Owner, Piece};
use tracewalk::ids::{Address, TraceId};
use tracewalk::plain::plain;
use tracewalk::span::CaptureOffset;
use tracewalk_analysis::clock::Unit;
use tracewalk_analysis::coverage::ProgramCoverage;
use tracewalk_analysis::interrupts::ProgramActivities;
use tracewalk_analysis::profile::ProgramProfiles;
use tracewalk_analysis::programs::{Programs, SourceId};
use tracewalk_analysis::saved::Save;
use tracewalk_analysis::table::Tabular as _;
use tracewalk_analysis::timeline::Scale;
use tracewalk_analysis::{Code, Section};
use tracewalk_input::Bytes;
use tracewalk_input::capture::dump::MemoryDump;
use tracewalk_input::capture::perf::BinaryPlaces;
use tracewalk_input::capture::wire::{self, Recording, Role, Samples, Wire, WireOptions};
use tracewalk_input::capture::{Capture, CaptureError};
use tracewalk_input::image::{Image, ImageKind, Memory};
use tracewalk_input::symbols::{SymbolTable, VectorTable};
use tracewalk_report::{Look, export};

use crate::input::Input;

/// A message is one line that says something, and nothing in it does something to a terminal.
fn is_sentence(message: &str) {
    assert!(!message.is_empty() && is_plain(message), "{message:?}");
}

/// An error is a sentence.
fn is_refused(error: &dyn std::error::Error) {
    is_sentence(&error.to_string());
}

fn is_plain(text: &str) -> bool {
    matches!(plain(text.into()), Cow::Borrowed(_))
}

/// An ELF file's code, symbols and source lines.
pub fn elf(data: &[u8]) {
    let image = match Image::from_bytes(Path::new("fuzz.elf"), &ImageKind::Addressed, data.to_vec()) {
        Ok(image) => image,
        Err(error) => return is_refused(&error),
    };
    let mut memory = Memory::default();
    if let Err(error) = memory.add(Arc::new(image)) {
        return is_refused(&error);
    }
    let symbols = SymbolTable::of(&memory);
    symbols.notes().iter().for_each(|note| is_sentence(&note.problem));
    let _ = VectorTable::of(&memory, symbols.profile());
    let mut lines = symbols.source_lines();
    for region in memory.program.regions().iter().take(4) {
        let bytes = region.bytes().len() as u64;
        let place = |offset| Address::new(region.start().get().wrapping_add(offset));
        for at in [0, 2, 4, bytes / 2, bytes.saturating_sub(2)] {
            let at = place(at);
            let _ = (symbols.isa_at(at), symbols.content_at(at));
            assert!(symbols.function_at(at).is_none_or(|function| is_plain(&function.name)));
            for frame in lines.lines_for(at).iter() {
                assert!(is_plain(&frame.to_string()), "{frame:?}");
            }
        }
        let _ = lines.rows(region.start()..place(bytes.min(4096)));
    }
    lines.notes().iter().for_each(|note| is_sentence(&note.problem));
}

/// A directory of this process for the files of one input.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        // The path has the same length in every run, because messages contain it.
        let path = std::env::temp_dir().join(format!("tracewalk-fuzz-{:010}", std::process::id()));
        std::fs::create_dir_all(&path).expect("the temporary directory is writable");
        Self(path)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.0.join(name), bytes).expect("the temporary directory is writable");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn opened(capture: Result<Capture, CaptureError>) {
    match capture {
        Ok(capture) => {
            capture.notes.iter().for_each(|note| is_sentence(&note.to_string()));
            for source in capture.sources() {
                let _ = capture.images_for(source).count();
            }
        }
        Err(error) => is_refused(&error),
    }
}

/// The files of a snapshot, one after the other with a line of `@` between two.
pub fn snapshot(data: &[u8]) {
    const NAMES: [&str; 5] = ["snapshot.ini", "trace.ini", "device1.ini", "device2.ini", "trace.bin"];
    let folder = Folder::new();
    let text = String::from_utf8_lossy(data);
    for (name, part) in NAMES.iter().zip(text.split("@\n")) {
        folder.write(name, part.as_bytes());
    }
    opened(Capture::open(&folder.0));
}

/// A recording of perf. Everything that it refers to is in the file, and its binaries do not exist.
pub fn perf(data: &[u8]) {
    let bytes = [b"PERFILE2", data].concat();
    let opened = Capture::read_from(Path::new("fuzz"), bytes.as_slice(), &WireOptions::default());
    let capture = match opened {
        Ok(capture) => capture,
        Err(error) => return is_refused(&error),
    };
    let Some(recorded) = &capture.recorded else { return };
    let found = recorded.images(&BinaryPlaces::default()).expect("no place was named that could be unusable");
    assert!(found.images.is_empty() && found.archived.is_empty());
    assert!(found.binaries.iter().all(|binary| binary.file.is_err()));
    let _ = recorded.processes().count();
    for buffer in &capture.buffers {
        let parts = buffer.parts.as_deref().unwrap_or_default();
        let mut indexer = Indexer::new(Framing::Buffer);
        for part in parts {
            let bytes = buffer.bytes.get(part.clone()).expect("parts are inside the file");
            indexer.skip_to(CaptureOffset(part.start as u64), &mut Nobody);
            // Parts of a damaged file may overlap, so only the beginning of each is read.
            indexer.push(bytes.get(..256).unwrap_or(bytes), &mut Nobody);
        }
        let (index, ..) = indexer.finish(&mut Nobody);
        for (id, bytes) in index.sources() {
            let mut extraction = index.extraction(id, index.sections());
            let mut count = Count { id, bytes: 0 };
            while extraction.advance(&buffer.bytes, &mut count).is_some() {}
            assert_eq!(count.bytes, bytes);
        }
    }
}

struct Nobody;

impl FrameSink for Nobody {
    fn data(&mut self, _: Owner, _: Piece<'_>) {}
    fn discontinuity(&mut self, _: Discontinuity) {}
}

/// How many bytes of a source are handed out.
struct Count {
    id: TraceId,
    bytes: u64,
}

impl FrameSink for Count {
    fn data(&mut self, owner: Owner, piece: Piece<'_>) {
        if owner == Owner::Source(self.id) {
            self.bytes += piece.bytes.len() as u64;
        }
    }

    fn discontinuity(&mut self, _: Discontinuity) {}
}

/// A `capture.toml` beside a file of trace bytes.
pub fn description(data: &[u8]) {
    let folder = Folder::new();
    folder.write("capture.toml", data);
    folder.write("trace.bin", &[0; 32]);
    opened(Capture::open(&folder.0.join("capture.toml")));
}

/// A recording of a logic analyser: `.sr`, VCD or CSV.
pub fn recording(data: &[u8]) {
    let mut input = Input(data);
    let first = input.byte();
    let options = WireOptions {
        wire: match first % 4 {
            0 => None,
            1 => Some(Wire::Uart),
            2 => Some(Wire::Manchester),
            _ => Some(Wire::Port),
        },
        baud: input.flag().then(|| u64::from(input.word())),
        channels: if input.flag() { vec![("D0".to_owned(), Role::Swo)] } else { Vec::new() },
        inverted: [None, Some(false), Some(true)].get(usize::from(first >> 2 & 3)).copied().flatten(),
        samples: (first >> 4 & 1 == 1).then_some(Samples { rate: 1_000_000, bytes: first >> 5 }),
    };
    let recording = match Recording::from_bytes_with(Path::new("fuzz"), input.0.to_vec().into(), &options) {
        Ok(Some(recording)) => recording,
        Ok(None) => return,
        Err(error) => return is_refused(&error),
    };
    match wire::read(&recording, &options) {
        Ok((bytes, reading)) => {
            let _ = (bytes.len(), reading.bits_per_second());
        }
        Err(error) => is_refused(&error),
    }
}

/// Memory as a debugger printed it.
pub fn dump(data: &[u8]) {
    match MemoryDump::read(Path::new("fuzz"), &Bytes::from(data.to_vec())) {
        Ok(Some(dump)) => {
            assert!(!dump.pieces.is_empty());
            // The file contains at least one bit for every byte.
            assert!(dump.bytes() <= 8 * data.len() as u64, "{} bytes", dump.bytes());
            for piece in &dump.pieces {
                let _ = piece.word(piece.address.unwrap_or(Address::new(0)));
            }
        }
        Ok(None) => {}
        Err(error) => is_refused(&error),
    }
}

/// Reads saved data of one kind, if the text is of that kind.
fn saved_as<T: Save + Clone>(text: &str) -> Option<Programs<T>> {
    let found = match Programs::<T>::read(text.as_bytes()) {
        Ok(found) => found,
        Err(error) => {
            is_sentence(&error.to_string());
            return None;
        }
    };
    let mut saved = Vec::new();
    found.save(&mut saved).expect("memory takes everything");
    let saved = String::from_utf8(saved).expect("what is saved is text");
    let again = Programs::<T>::read(saved.as_bytes()).expect("what was saved can be read");
    let mut twice = Vec::new();
    again.save(&mut twice).expect("memory takes everything");
    assert_eq!(saved.as_bytes(), twice, "saving what was saved changes it");
    // The data of a file can be merged with itself.
    let mut sum = again;
    sum.merge(found.clone()).expect("it is of the same programs");
    Some(found)
}

/// The same lines with an end that fits them: all changes would be refused for that.
fn ended(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("{\"end\":")).map(|line| line.to_owned() + "\n");
    let lines = lines.collect::<String>();
    format!("{lines}{{\"end\":[{},{}]}}\n", lines.lines().count(), crc32fast::hash(lines.as_bytes()))
}

/// Saved coverage, profiles and figures of interrupts, in every format that the last two are shown in.
pub fn saved(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Err(error) = Programs::<ProgramCoverage>::read(data) {
        is_sentence(&error.to_string());
    }
    let text = ended(&text);
    saved_as::<ProgramCoverage>(&text);
    let section = |source: &SourceId| Section {
        id: source.id,
        protocol: source.protocol,
        number: source.number,
        code: Code::unknown().into(),
    };
    let mut out = std::io::sink();
    for program in
        saved_as::<ProgramProfiles>(&text).into_iter().flat_map(|found| found.programs.into_values())
    {
        let sources =
            program.found.sources.iter().map(|(source, profile)| (section(source), profile.in_order()));
        let sources = sources.collect::<Vec<_>>();
        let unit = export::best_unit(sources.iter().map(|(_, profile)| profile));
        let name = "fuzz".to_owned();
        let report = export::ProfileReport {
            sources,
            name,
            unit,
            programs: Vec::new(),
            frequency: Some(1e6),
            inlined: true,
            complete: true,
        };
        for write in [
            export::write_folded,
            export::write_callgrind,
            export::write_flamegraph,
            export::write_pprof,
            export::write_speedscope,
            export::write_firefox,
        ] {
            write(&mut out, &report).expect("nobody refuses it");
        }
        let table = export::ProfileTable::Calls;
        let options = export::ProfileTextOptions { look: Look::PLAIN, table, rows: None };
        export::write_profile_text(&mut out, &report, &options).expect("nobody refuses it");
    }
    for program in
        saved_as::<ProgramActivities>(&text).into_iter().flat_map(|found| found.programs.into_values())
    {
        let sources = program.found.sources.iter().map(|(source, found)| (section(source), found.clone()));
        let scale = Scale { unit: Unit::Cycles, counts_cycles: true, frequency: None };
        let report = export::InterruptReport {
            scale,
            sources: sources.collect(),
            programs: Vec::new(),
            complete: true,
        };
        export::write_interrupts_text(&mut out, &report, Look::PLAIN).expect("nobody refuses it");
        for table in report.tables() {
            export::write_table_csv(&mut out, &table).expect("nobody refuses it");
        }
        export::write_interrupts_json(&mut out, &report).expect("nobody refuses it");
    }
}

/// LCOV tracefiles.
pub fn coverage(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Err(error) = export::read_lcov(&text) {
        is_sentence(&error.to_string());
    }
}

/// A chip's description.
pub fn svd(data: &[u8]) {
    match tracewalk_input::svd::InterruptNames::from_bytes(Path::new("fuzz.svd"), data) {
        Ok(interrupts) => {
            let _ = interrupts.iter().count();
        }
        Err(error) => is_sentence(&error.to_string()),
    }
}
