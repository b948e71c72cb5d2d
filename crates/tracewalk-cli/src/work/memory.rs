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

use crate::failure::Failure;
use crate::guess;
use crate::messages::{Messages, counted};
use crate::mtb;

/// The memory that a capture's file says, of which one piece holds the trace.
#[derive(Debug)]
pub(crate) struct Dumped {
    pub(crate) dump: MemoryDump,
    /// Where the bytes start that the buffer has.
    pub(super) address: Option<Address>,
    /// What may be code of the rest.
    pub(super) code: Vec<Arc<Image>>,
}

/// How many pieces of memory a note names.
const NAMED_PIECES: usize = 4;

/// Reads the memory that the capture's files say, as far as they say any. `address` is where memory was that is in a
/// file as it is.
pub(super) fn read(capture: &Capture, address: Option<Address>) -> Result<Vec<Option<MemoryDump>>, Failure> {
    let dump = |buffer: &Buffer| -> Result<Option<MemoryDump>, Failure> {
        let dump = MemoryDump::read(&buffer.file, &buffer.bytes)?;
        let Some(address) = address else { return Ok(dump) };
        let bytes = match &dump {
            None => &buffer.bytes,
            Some(MemoryDump { form: Form::Numbers, pieces, .. }) => {
                pieces.first().map_or(&buffer.bytes, |piece| &piece.bytes)
            }
            Some(dump) => {
                let problem =
                    format!("{}: is {}, which says the addresses itself", buffer.file.display(), dump.form);
                return Err(Failure::input(problem, "leave out --dump-address"));
            }
        };
        Ok(Some(MemoryDump::binary(&buffer.file, address, bytes)?))
    };
    capture.buffers.iter().map(dump).collect()
}

/// Gives a buffer the piece of memory that holds its trace, and the registers that the dump names.
pub(super) fn choose(
    buffer: &mut Buffer,
    dump: MemoryDump,
    program: &Program,
    messages: &Messages,
) -> Result<Dumped, Failure> {
    tell(&buffer.file, &dump, messages);
    add_registers(buffer, &dump, messages);
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

impl Dumped {
    /// Adds what may be code to the program. What images say of the same addresses comes first.
    pub(super) fn add_code(&self, memory: &mut Memory, messages: Option<&Messages>) {
        for image in &self.code {
            let is_known = image.segments.iter().all(|segment| {
                memory.program.code(segment.address).is_some_and(|known| known.len() >= segment.len())
            });
            let added = memory.add(Arc::clone(image));
            let Some(messages) = messages else { continue };
            match added {
                Err(error) => messages.warning(format_args!(
                    "{error}, and is not used there; check that --image is the program that was in the chip"
                )),
                Ok(()) if is_known => {}
                Ok(()) => {
                    for segment in &image.segments {
                        messages.note(format_args!(
                            "found out: what may be code in {}, {} at {}, used where no image says anything",
                            image.file.display(),
                            counted(segment.len() as u64, "byte"),
                            segment.address
                        ));
                    }
                }
            }
        }
    }
}

/// Says what the file was taken for.
fn tell(file: &Path, dump: &MemoryDump, messages: &Messages) {
    if dump.form == Form::Binary {
        return;
    }
    let named = dump.pieces.iter().take(NAMED_PIECES).map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let more = match dump.pieces.len().saturating_sub(NAMED_PIECES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    messages.note(format_args!("found out: {} is {}: {named}{more}", file.display(), dump.form));
    if let Some((line, text)) = &dump.other_lines.first {
        messages.note(format_args!(
            "{}: {} passed over that hold no memory, first line {line}: {text}",
            file.display(),
            counted(dump.other_lines.count.into(), "line")
        ));
    }
}

/// Adds the registers that the dump names, unless somebody else said them.
fn add_registers(buffer: &mut Buffer, dump: &MemoryDump, messages: &Messages) {
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
        && let Some((at, Registers { position, master, flow, base })) = dump.mtb_registers()
    {
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
        messages.note(format_args!(
            "found out: the MTB's registers at {at}, --mtb-position 0x{position:x} --mtb-master 0x{master:x} \
             --mtb-base 0x{:x}",
            base.unwrap_or(0)
        ));
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
fn trace_piece(buffer: &mut Buffer, dump: &MemoryDump, program: &Program) -> Result<usize, Failure> {
    if dump.pieces.len() == 1 {
        return Ok(0);
    }
    let file = buffer.file.display();
    if let Some(container) = buffer.container.as_ref().filter(|container| container.value != Container::Mtb) {
        return Err(Failure::input(
            format!(
                "{file}: has {} of memory, expected one for --container {}",
                counted(dump.pieces.len() as u64, "piece"),
                container.value
            ),
            "save only the memory that the trace is in",
        ));
    }
    let source = buffer.sources.iter().find(|source| source.protocol == Protocol::Mtb);
    if let Some(registers) = source.and_then(mtb::registers) {
        return by_registers(&dump.pieces, registers, program).ok_or_else(|| {
            let Registers { position, base, .. } = registers;
            let base = base.map_or_else(String::new, |base| format!(" and MTB_BASE 0x{base:x}"));
            Failure::input(
                format!(
                    "{file}: has no memory where the trace buffer is by MTB_POSITION 0x{position:x}{base}"
                ),
                "save the memory there, or correct --mtb-position and --mtb-base",
            )
        });
    }
    let all = 0..dump.pieces.len();
    let found = by_evidence(&dump.pieces, all, program, buffer.container.is_some()).ok_or_else(|| {
        Failure::input(
            format!(
                "{file}: nothing in its {} of memory looks like an MTB's trace",
                counted(dump.pieces.len() as u64, "piece")
            ),
            "save the memory that holds the trace buffer, or give --registers FILE",
        )
    })?;
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
        let evidence = guess::mtb(memory(piece), program)?.best.evidence;
        (certain || guess::speaks_for_trace(&evidence)).then(|| evidence.score())
    };
    let scores = among.filter_map(|index| Some((score(pieces.get(index)?)?, Reverse(index))));
    scores.max().map(|(_, Reverse(index))| index)
}

fn memory(piece: &MemoryPiece) -> Dump<'_> {
    Dump { data: &piece.bytes, address: piece.address }
}
