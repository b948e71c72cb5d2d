//! Captures that say what memory held: which of it is the trace buffer, and which is the program.

use std::cmp::Reverse;
use std::path::Path;
use std::sync::Arc;

use tracewalk::ids::Address;
use tracewalk::program::Program;
use tracewalk::protocol::mtb::order::{self, Dump};
use tracewalk::protocol::mtb::{Config, Registers};
use tracewalk_input::capture::dump::{Form, MemoryDump, MemoryPiece};
use tracewalk_input::capture::{Buffer, Capture, Container, Protocol, SourceDescription};
use tracewalk_input::image::{Image, ImageKind, Memory};
use tracewalk_input::{Origin, Stated};

use crate::error::OpenError;
use crate::infer;
use crate::model::Dumped;
use crate::mtb;
use crate::notice::NoticeKind;
use crate::observer::{Observer, Say};

/// Reads the memory that the capture's files say, as far as they say any. `address` is where memory was that is in a
/// file as it is.
pub(crate) fn read(
    capture: &Capture,
    address: Option<Address>,
) -> Result<Vec<Option<MemoryDump>>, OpenError> {
    let dump = |buffer: &Buffer| -> Result<Option<MemoryDump>, OpenError> {
        let dump = MemoryDump::read(&buffer.file, &buffer.bytes)?;
        let Some(address) = address else { return Ok(dump) };
        let bytes = match &dump {
            None => &buffer.bytes,
            Some(MemoryDump { form: Form::Numbers, pieces, .. }) => {
                pieces.first().map_or(&buffer.bytes, |piece| &piece.bytes)
            }
            Some(dump) => {
                return Err(OpenError::AddressTwice { file: buffer.file.clone(), form: dump.form.clone() });
            }
        };
        Ok(Some(MemoryDump::binary(&buffer.file, address, bytes)?))
    };
    capture.buffers.iter().map(dump).collect()
}

/// Gives a buffer the piece of memory that holds its trace, and the registers that the dump names.
pub(crate) fn choose(
    buffer: &mut Buffer,
    dump: MemoryDump,
    program: &Program,
    observer: &dyn Observer,
) -> Result<Dumped, OpenError> {
    say_what_was_read(&buffer.file, &dump, observer);
    add_registers(buffer, &dump, observer);
    let index = trace_piece(buffer, &dump, program)?;
    let trace = dump.pieces.get(index);
    let address = trace.and_then(|piece| piece.address);
    let others =
        dump.pieces.iter().enumerate().filter(|(other, piece)| *other != index && piece.may_be_code());
    // A piece without an address, or one that does not fit it, is none of these.
    let code = others.filter_map(|(_, piece)| {
        let kind = ImageKind::raw(piece.address?);
        Image::from_bytes(&buffer.file, &kind, piece.bytes.clone()).ok().map(Arc::new)
    });
    let code = code.collect();
    if let Some(piece) = trace {
        buffer.bytes = piece.bytes.clone();
    }
    Ok(Dumped { dump, address, code })
}

/// Adds what may be code to the program. What images say of the same addresses comes first.
pub(crate) fn add_code(dumped: &Dumped, memory: &mut Memory, observer: Option<&dyn Observer>) {
    for image in &dumped.code {
        let is_known = image.segments.iter().all(|segment| {
            memory.program.code(segment.address).is_some_and(|known| known.len() >= segment.len())
        });
        let added = memory.add(Arc::clone(image));
        let Some(observer) = observer else { continue };
        match added {
            Err(error) => observer.say(NoticeKind::MemoryContradictsImage(error)),
            Ok(()) if is_known => {}
            Ok(()) => {
                for segment in &image.segments {
                    observer.say(NoticeKind::MemoryAsCode {
                        file: image.file.clone(),
                        bytes: segment.len() as u64,
                        address: segment.address,
                    });
                }
            }
        }
    }
}

/// Says what the file was taken for.
fn say_what_was_read(file: &Path, dump: &MemoryDump, observer: &dyn Observer) {
    if dump.form == Form::Binary {
        return;
    }
    observer.say(NoticeKind::MemoryRead { file: file.to_owned(), memory: dump.clone() });
    if let Some((line, text)) = &dump.other_lines.first {
        observer.say(NoticeKind::LinesPassedOver {
            file: file.to_owned(),
            count: dump.other_lines.count.into(),
            line: *line,
            text: text.clone(),
        });
    }
}

/// Adds the registers that the dump names, unless somebody else said them.
fn add_registers(buffer: &mut Buffer, dump: &MemoryDump, observer: &dyn Observer) {
    if buffer.container.as_ref().is_some_and(|container| container.value != Container::Mtb) {
        return;
    }
    let mut found = dump.registers.clone();
    let is_known = |buffer: &Buffer, name| {
        let sources = buffer.sources.iter().filter(|source| source.protocol == Protocol::Mtb);
        sources.filter_map(|source| source.registers.get(name)).next().is_some()
    };
    let is_complete = |name| found.get(name).is_some() || is_known(buffer, name);
    if !(is_complete("MTB_POSITION") && is_complete("MTB_MASTER"))
        && let Some((address, registers)) = dump.mtb_registers()
    {
        let Registers { position, master, flow, base } = registers;
        let values = [
            ("MTB_POSITION", Some(position)),
            ("MTB_MASTER", Some(master)),
            ("MTB_FLOW", flow),
            ("MTB_BASE", base),
        ];
        for (name, value) in values {
            if let Some(value) = value {
                found.set(name, value, Origin::Detected);
            }
        }
        observer.say(NoticeKind::MtbRegistersFound { address, registers });
    }
    let Some((_, first)) = found.iter().next() else { return };
    let origin = first.origin.clone();
    buffer.container.get_or_insert_with(|| Stated::new(Container::Mtb, origin.clone()));
    if buffer.sources.is_empty() {
        buffer.sources.push(SourceDescription::new(Protocol::Mtb, origin));
    }
    for source in buffer.sources.iter_mut().filter(|source| source.protocol == Protocol::Mtb) {
        for (name, stated) in found.iter() {
            if source.registers.stated(name).is_none() {
                source.registers.set(name, stated.value, stated.origin.clone());
            }
        }
    }
}

/// Which piece of memory holds the trace.
fn trace_piece(buffer: &mut Buffer, dump: &MemoryDump, program: &Program) -> Result<usize, OpenError> {
    if dump.pieces.len() == 1 {
        return Ok(0);
    }
    let (file, pieces) = (buffer.file.clone(), dump.pieces.len() as u64);
    if let Some(container) = buffer.container.as_ref().filter(|container| container.value != Container::Mtb) {
        return Err(OpenError::SeveralPieces { file, pieces, container: container.value });
    }
    let source = buffer.sources.iter().find(|source| source.protocol == Protocol::Mtb);
    if let Some(registers) = source.and_then(mtb::registers) {
        let found = by_registers(&dump.pieces, registers, program);
        return found.ok_or(OpenError::NoBuffer { file, registers });
    }
    let all = 0..dump.pieces.len();
    let found = by_evidence(&dump.pieces, all, program, buffer.container.is_some());
    let found = found.ok_or(OpenError::NoPiece { file, pieces })?;
    buffer.container.get_or_insert_with(|| Stated::new(Container::Mtb, Origin::Detected));
    Ok(found)
}

/// The piece that has most of what the registers describe.
///
/// They give the low bits of an address, and without BASE any piece may be meant.
fn by_registers(pieces: &[MemoryPiece], registers: Registers, program: &Program) -> Option<usize> {
    let config = Config::from_registers(registers);
    let missing = |piece| order::by_registers(memory(piece), &config).ok().map(|layout| layout.missing);
    let held = pieces.iter().enumerate().filter_map(|(index, piece)| Some((missing(piece)?, index)));
    let held = held.collect::<Vec<_>>();
    let least = held.iter().map(|(missing, _)| *missing).min()?;
    let best = held.iter().filter(|(missing, _)| *missing == least).map(|(_, index)| *index);
    match best.clone().count() {
        1 => best.clone().next(),
        _ => by_evidence(pieces, best.clone(), program, true).or(best.clone().next()),
    }
}

/// Which of the pieces has bytes that look most like trace. Without `certain`, they have to look like nothing else.
fn by_evidence(
    pieces: &[MemoryPiece],
    among: impl Iterator<Item = usize>,
    program: &Program,
    certain: bool,
) -> Option<usize> {
    let score = |piece: &MemoryPiece| {
        let evidence = infer::mtb(memory(piece), program)?.best.evidence;
        (certain || infer::speaks_for_trace(&evidence)).then(|| evidence.score())
    };
    let scores = among.filter_map(|index| Some((score(pieces.get(index)?)?, Reverse(index))));
    scores.max().map(|(_, Reverse(index))| index)
}

fn memory(piece: &MemoryPiece) -> Dump<'_> {
    Dump { data: &piece.bytes, address: piece.address }
}
