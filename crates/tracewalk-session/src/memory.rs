//! Memory and registers that were saved: a buffer in a dump, and what a debugger saved beside the trace or in the same file.

use std::cmp::Reverse;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use tracewalk::ids::Address;
use tracewalk::program::Program;
use tracewalk::protocol::mtb::{Config, Registers, order};
use tracewalk_analysis::crash::{Doubt, Snapshot};
use tracewalk_input::capture::dump::{Form, JoinedMemory, MemoryDump, MemoryPiece, ProcessorRegisters};
use tracewalk_input::capture::{Buffer, Capture, Container, Protocol, SourceDescription, mtb_values};
use tracewalk_input::image::{Image, ImageError, ImageKind, Memory};
use tracewalk_input::{Origin, Stated};

use crate::error::OpenError;
use crate::infer;
use crate::model::{Dumped, Source};
use crate::notice::NoticeKind;
use crate::observer::{Observer, Say};
use crate::outcome::{Follow, Outcome};
use crate::request::Request;
use crate::session::Session;

/// The most missing bytes between pieces of memory that may hold parts of one buffer. Larger buffers are rare.
const NEAR: u64 = 64 << 10;

/// Reads the memory that the capture's files describe, if they do.
pub(crate) fn read(capture: &Capture, request: &Request) -> Result<Vec<Option<MemoryDump>>, OpenError> {
    let address = request.stated.dump_address;
    let dump = |buffer: &Buffer| -> Result<Option<MemoryDump>, OpenError> {
        if buffer.parts.is_some() {
            return Ok(None);
        }
        let dump = match request.may_lack_trace && capture.buffers.len() == 1 {
            true => MemoryDump::read_all(&buffer.file, &buffer.bytes)?,
            false => MemoryDump::read(&buffer.file, &buffer.bytes)?,
        };
        let Some(address) = address else { return Ok(dump) };
        let bytes = match &dump {
            None => &buffer.bytes,
            Some(MemoryDump { form: Form::Numbers | Form::Bytes, pieces, .. }) => {
                pieces.first().map_or(&buffer.bytes, |piece| &piece.bytes)
            }
            Some(dump) if dump.is_file => {
                let past_end = || {
                    OpenError::Registers(format!(
                        "the listing from {address} on extends past the end of memory"
                    ))
                };
                return Ok(Some(dump.clone().placed_at(address).ok_or_else(past_end)?));
            }
            Some(dump) => {
                return Err(OpenError::AddressTwice { file: buffer.file.clone(), form: dump.form.clone() });
            }
        };
        Ok(Some(MemoryDump::binary(&buffer.file, address, bytes)?))
    };
    capture.buffers.iter().map(dump).collect()
}

/// The System Control Space and the other components of a processor of M profile (ARMv6-M Architecture Reference
/// Manual, DDI 0419E, B3.1: the Private Peripheral Bus).
const SYSTEM_CONTROL: Range<u64> = 0xe000_0000..0xe010_0000;

/// Gives a buffer the piece of memory that holds its trace, and the registers that the dump names.
pub(crate) fn choose(
    buffer: &mut Buffer,
    dump: MemoryDump,
    program: &Program,
    request: &Request,
    observer: &dyn Observer,
) -> Result<Dumped, OpenError> {
    say_what_was_read(&buffer.file, &dump, observer);
    add_registers(buffer, &dump, observer);
    let refused = |error| match error {
        OpenError::NoPiece { file, .. } if is_of_records(&dump) => {
            OpenError::Program { file, form: dump.form.clone() }
        }
        error => error,
    };
    let may_lack = request.may_lack_trace && dump.processor.core[15].is_some();
    let chosen = match trace_pieces(buffer, &dump, program, may_lack) {
        Err(OpenError::NoPiece { .. } | OpenError::NoBuffer { .. }) if may_lack => {
            let code = code_beside(buffer, &dump, &(0..0));
            buffer.bytes = Vec::new().into();
            return Ok(Dumped { dump, address: None, holes: Vec::new(), code, has_trace: false });
        }
        chosen => chosen.map_err(refused)?,
    };
    // Pieces are chosen so that they can be joined.
    let Some(JoinedMemory { address, bytes, holes }) = dump.join(chosen.clone()) else {
        return Err(OpenError::NoPiece { file: buffer.file.clone(), pieces: dump.pieces.len() as u64 });
    };
    let code = code_beside(buffer, &dump, &chosen);
    buffer.bytes = bytes;
    Ok(Dumped { dump, address, holes, code, has_trace: true })
}

/// The pieces besides the chosen ones that may be code.
fn code_beside(buffer: &Buffer, dump: &MemoryDump, chosen: &Range<usize>) -> Vec<Arc<Image>> {
    let others = dump.pieces.iter().enumerate();
    let others =
        others.filter(|(other, piece)| !chosen.contains(other) && piece.may_be_code() && !dump.is_file);
    // A piece without an address, or with an address that it does not fit, is not code.
    let code = others.filter_map(|(_, piece)| {
        let kind = ImageKind::raw(piece.address?);
        Image::from_bytes(&buffer.file, &kind, piece.bytes.clone()).ok().map(Arc::new)
    });
    code.collect()
}

/// Adds the pieces that may be code to the program. Images take precedence at the same addresses.
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

/// Reports how the file was read.
fn say_what_was_read(file: &Path, dump: &MemoryDump, observer: &dyn Observer) {
    if dump.form == Form::Binary {
        return;
    }
    observer.say(NoticeKind::MemoryRead { file: file.to_owned(), memory: Box::new(dump.clone()) });
    if let Some(damage) = &dump.damage {
        observer.say(NoticeKind::MemoryDamaged { file: file.to_owned(), damage: damage.clone() });
    }
    if let Some((line, text)) = &dump.other_lines.first {
        observer.say(NoticeKind::LinesPassedOver {
            file: file.to_owned(),
            count: dump.other_lines.count.into(),
            line: *line,
            text: text.clone(),
        });
    }
}

/// Adds the registers that the dump names, unless they are stated otherwise.
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
        for (name, value) in mtb_values(registers) {
            found.set(name, value, Origin::Detected);
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

/// The pieces of memory that hold the trace. If the trace may be lacking, a single piece may be a stack.
fn trace_pieces(
    buffer: &mut Buffer,
    dump: &MemoryDump,
    program: &Program,
    may_lack: bool,
) -> Result<Range<usize>, OpenError> {
    let (file, pieces) = (buffer.file.clone(), dump.pieces.len() as u64);
    if may_lack && buffer.container.is_none() && has_no_mtb(dump) {
        return Err(OpenError::NoPiece { file, pieces });
    }
    if let [piece] = &dump.pieces[..]
        && !(may_lack && buffer.container.is_none())
    {
        // The processor's own registers are not a trace buffer: the log lacks it. Nor is code.
        let is_registers = piece.address.is_some_and(|address| SYSTEM_CONTROL.contains(&address.get()));
        return if is_registers || is_of_records(dump) && has_vectors(piece) {
            Err(OpenError::NoPiece { file, pieces })
        } else {
            Ok(0..1)
        };
    }
    if let Some(container) = buffer.container.as_ref().filter(|container| container.value != Container::Mtb) {
        return Err(OpenError::SeveralPieces { file, pieces, container: container.value });
    }
    let source = buffer.sources.iter().find(|source| source.protocol == Protocol::Mtb);
    if let Some(registers) = source.and_then(|source| source.registers.mtb()) {
        let found = by_registers(dump, registers, program);
        return found.ok_or(OpenError::NoBuffer { file, registers });
    }
    // Pieces that cannot be joined hold no buffer together.
    let clusters = dump.clusters(NEAR).flat_map(|pieces| {
        let step = if dump.join(pieces.clone()).is_some() { pieces.len() } else { 1 };
        let end = pieces.end;
        pieces.step_by(step).map(move |start| start..(start + step).min(end))
    });
    let found = by_evidence(dump, clusters, program, buffer.container.is_some());
    let found = found.ok_or(OpenError::NoPiece { file, pieces })?;
    buffer.container.get_or_insert_with(|| Stated::new(Container::Mtb, Origin::Detected));
    Ok(found)
}

/// Whether the processor has no MTB, by the architecture and the part number in CPUID: no processor of ARMv7-M has one.
fn has_no_mtb(dump: &MemoryDump) -> bool {
    const CPUID: u32 = 0xe000_ed00;
    let printed = dump.pieces.iter().find_map(|piece| piece.word(Address::from(CPUID)));
    let cpuid = printed.or(dump.processor.system.get(&CPUID).copied());
    cpuid.is_some_and(|cpuid| cpuid >> 16 & 0xf == 0xf && cpuid >> 12 & 0xf == 0xc)
}

/// Whether the file may be a program's.
const fn is_of_records(dump: &MemoryDump) -> bool {
    matches!(dump.form, Form::IntelHex | Form::SRecords)
}

/// Whether memory begins with an M-profile processor's vectors: a stack pointer, and handlers after them.
fn has_vectors(piece: &MemoryPiece) -> bool {
    let Some(start) = piece.address else { return false };
    let word = |index: u64| piece.word(start.checked_add(4 * index)?);
    let is_handler = |index| {
        word(index).is_some_and(|word| {
            let offset = Address::from(word).offset_from(start);
            word & 1 == 1 && offset.is_some_and(|offset| offset < piece.bytes.len() as u64)
        })
    };
    word(0).is_some_and(|stack| stack >> 28 == 2 && stack % 4 == 0) && (1..4).all(is_handler)
}

/// The pieces that hold most of the buffer that the registers describe.
///
/// The registers give the low bits of an address; without BASE, any piece may be meant.
fn by_registers(dump: &MemoryDump, registers: Registers, program: &Program) -> Option<Range<usize>> {
    let config = Config::from_registers(registers);
    let alone = (0..dump.pieces.len()).map(|index| index..index + 1);
    let candidates = alone.chain(dump.in_blocks(config.size().bytes()));
    let missing = |pieces: Range<usize>| {
        let layout = order::by_registers(dump.join(pieces.clone())?.dump(), &config).ok()?;
        Some((layout.missing_bytes(), pieces))
    };
    let held = candidates.filter_map(missing).collect::<Vec<_>>();
    let least = held.iter().map(|(missing, _)| *missing).min()?;
    let mut best = held.into_iter().filter(|(missing, _)| *missing == least).map(|(_, pieces)| pieces);
    let first = best.next()?;
    let others = best.collect::<Vec<_>>();
    if others.is_empty() {
        return Some(first);
    }
    by_evidence(dump, [first.clone()].into_iter().chain(others), program, true).or(Some(first))
}

/// The pieces whose bytes look most like trace. Without `certain`, the evidence for trace must be strong.
fn by_evidence(
    dump: &MemoryDump,
    among: impl Iterator<Item = Range<usize>>,
    program: &Program,
    certain: bool,
) -> Option<Range<usize>> {
    let score = |pieces: Range<usize>| {
        let memory = dump.join(pieces.clone())?;
        let evidence = infer::mtb(memory.dump(), program)?.best.evidence;
        let is_trace = certain || infer::speaks_for_trace(&evidence);
        is_trace.then(|| (evidence.score(), Reverse(pieces.start), with_bytes(dump, pieces, &evidence.bytes)))
    };
    among.filter_map(score).max_by_key(|(score, first, _)| (*score, *first)).map(|(.., pieces)| pieces)
}

/// The pieces that have any of these bytes, which count from the first piece's first byte.
fn with_bytes(dump: &MemoryDump, pieces: Range<usize>, bytes: &Range<usize>) -> Range<usize> {
    let first = dump.pieces.get(pieces.start).and_then(|piece| piece.address);
    let start = if dump.is_file { Some(Address::new(0)) } else { first };
    let place = |piece: &MemoryPiece| usize::try_from(piece.address?.offset_from(start?)?).ok();
    let has_some = |index: &usize| {
        let piece = dump.pieces.get(*index);
        let place = piece.and_then(place).unwrap_or(0);
        let end = place.saturating_add(piece.map_or(0, |piece| piece.bytes.len()));
        place < bytes.end && bytes.start < end
    };
    let mut chosen = pieces.clone().filter(has_some);
    let first = chosen.next().unwrap_or(pieces.start);
    first..chosen.next_back().unwrap_or(first) + 1
}

impl Session {
    /// The registers and the memory in the capture's files and in `file`, or else in the file that the description names.
    /// `file` takes precedence.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, or has neither registers nor memory.
    pub fn snapshot(&self, file: Option<&Path>) -> Result<Snapshot, OpenError> {
        let mut snapshot = Snapshot::default();
        for dumped in self.dumps.iter().flatten() {
            add(&mut snapshot, &dumped.dump);
        }
        let named = self.capture().dump.as_ref().map(|dump| dump.value.as_path());
        if let Some(file) = file.or(named) {
            let dump = MemoryDump::open(file)?.ok_or_else(|| OpenError::NoSnapshot(file.to_owned()))?;
            add(&mut snapshot, &dump);
        }
        Ok(snapshot)
    }

    /// The reasons to doubt how a source's program ended, by an outcome of following the source in the same way.
    ///
    /// # Errors
    ///
    /// If an image cannot be used.
    pub fn doubts_of_end<T>(
        &mut self,
        source: &Source,
        how: &Follow,
        outcome: &Outcome<T>,
        observer: &dyn Observer,
    ) -> Result<Vec<Doubt>, ImageError> {
        let is_refused = outcome.code.program.is_empty()
            && !self.code(source, how.names.as_deref(), observer)?.program.is_empty();
        let other = is_refused.then_some(Doubt::OtherProgram);
        Ok(other.into_iter().chain(Doubt::of_gaps(&outcome.losses.gaps)).collect())
    }
}

fn add(snapshot: &mut Snapshot, dump: &MemoryDump) {
    // The address of a file's bytes in memory is unknown.
    for piece in dump.pieces.iter().filter(|_| !dump.is_file) {
        let Some(address) = piece.address.and_then(|address| u32::try_from(address.get()).ok()) else {
            continue;
        };
        snapshot.memory.insert(address, piece.bytes.to_vec());
    }
    add_saved(snapshot, &dump.processor);
}

fn add_saved(snapshot: &mut Snapshot, found: &ProcessorRegisters) {
    for (known, value) in snapshot.registers.iter_mut().zip(found.core) {
        *known = value.or(*known);
    }
    snapshot.wide.extend(&found.wide);
    snapshot.xpsr = found.xpsr.or(snapshot.xpsr);
    for (known, value) in snapshot.stack_pointers.iter_mut().zip(found.stack_pointers) {
        *known = value.or(*known);
    }
    // In a handler the stack pointer is the main one, the only one that OpenOCD prints.
    let in_handler = snapshot.exception_number().is_some();
    let [main, _] = snapshot.stack_pointers;
    if let Some(stack_pointer) = snapshot.registers.get_mut(13)
        && in_handler
    {
        *stack_pointer = stack_pointer.or(main);
    }
    for (address, value) in &found.system {
        if snapshot.word(*address).is_none() {
            snapshot.memory.insert(*address, value.to_le_bytes().to_vec());
        }
    }
}
