//! The contents of a buffer: its container, frames and sources, as far as they are stated or can be inferred. With
//! [`Policy::Strict`] nothing is inferred, so that everything has to be stated.

use serde::{Deserialize, Serialize};
use tracewalk::frame::{
    Discontinuity, FSYNC, FrameAlignment, FrameSink, Framing, Owner, Piece, RecoveringDeframer,
};
use tracewalk::ids::TraceId;
use tracewalk::protocol::mtb::order::Dump;
use tracewalk::source::{PacketItem, PacketStream, SourceConfig};
use tracewalk::span::{CaptureOffset, Span};
use tracewalk_analysis::drive::{Carrier, Input, NoProgress, Stretch};
use tracewalk_input::capture::wire::Wire;
use tracewalk_input::capture::{Buffer, Container, Protocol, SourceDescription};
use tracewalk_input::{Origin, Stated};

use crate::error::{OpenError, Unstated};
use crate::frames::Frames;
use crate::infer::{self, Packing, Search};
use crate::keep::{Keep, of_file};
use crate::model::{Contents, Identified, SeenBuffer, stretches};
use crate::program::Known;
use crate::request::{Policy, Request};
use crate::sources::{NoConfig, config};

/// Finds the containers and the sources of all buffers.
pub(crate) fn look(
    buffers: &[Buffer],
    request: &Request,
    known: &Known,
    keep: Option<&dyn Keep>,
) -> Result<Vec<SeenBuffer>, OpenError> {
    buffers.iter().map(|buffer| look_at(buffer, request, known, keep)).collect()
}

/// Finds the container and the sources of a buffer.
pub(crate) fn look_at(
    buffer: &Buffer,
    request: &Request,
    known: &Known,
    keep: Option<&dyn Keep>,
) -> Result<SeenBuffer, OpenError> {
    let ids = &request.ids;
    let is_wanted = |id: Option<TraceId>| ids.is_empty() || id.is_some_and(|id| ids.contains(&id));
    let is_strict = request.policy == Policy::Strict;
    if is_strict {
        check_container(buffer)?;
    }
    let contents = Contents::of(buffer, request.policy, known, keep);
    let mut found = if is_strict {
        stated_sources(buffer, &contents, ids)?
    } else {
        contents.identify(buffer, ids, known)
    };
    found.retain(|found| is_wanted(found.source.id));
    let sources = found.iter().map(|found| found.source.clone()).collect();
    Ok((Contents { sources, ..contents }, found))
}

impl Contents {
    /// Works out how a buffer is packed, as far as this is not stated. With a strict policy everything is stated, or is
    /// explicit in the bytes, as FSYNCs are.
    pub(crate) fn of(buffer: &Buffer, policy: Policy, known: &Known, keep: Option<&dyn Keep>) -> Self {
        let stated = buffer.container.clone();
        let (packing, finding) = match stated.as_ref().map(|stated| stated.value) {
            None => infer::packing(&buffer.bytes, &known.units),
            Some(Container::TracePort) if buffer.frame_start.is_some() => {
                let start = buffer.frame_start.as_ref().and_then(|start| FrameAlignment::new(start.value));
                let framing = Framing::PortFrom(start.unwrap_or_default());
                return Self::new(stated, Packing::Frames(framing), buffer, keep);
            }
            Some(Container::TracePort) if policy == Policy::Strict => {
                return Self::new(stated, Packing::Frames(Framing::Port), buffer, keep);
            }
            Some(Container::TracePort) => infer::port(&buffer.bytes, &known.units),
            Some(Container::Frames) => {
                return Self::new(stated, Packing::Frames(Framing::Buffer), buffer, keep);
            }
            Some(Container::Raw) => return Self::new(stated, Packing::Raw, buffer, keep),
            Some(Container::Mtb) => return Self::new(stated, Packing::Mtb, buffer, keep),
        };
        Self { findings: vec![finding], ..Self::new(stated, packing, buffer, keep) }
    }

    fn new(
        container: Option<Stated<Container>>,
        packing: Packing,
        buffer: &Buffer,
        keep: Option<&dyn Keep>,
    ) -> Self {
        let container = container.unwrap_or_else(|| Stated::new(packing.container(), Origin::Detected));
        let frames = packing.framing().map(|framing| {
            let how = ("frames", &(framing, &buffer.parts));
            of_file(&buffer.bytes, how, keep, || match &buffer.parts {
                None => Frames::scan(&buffer.bytes, framing),
                Some(parts) => Frames::scan_parts(&buffer.bytes, parts, framing),
            })
        });
        Self { container, frames, findings: Vec::new(), sources: Vec::new() }
    }

    /// The sources in the buffer: those that were named, or else those that can be recognised.
    pub(crate) fn identify(&self, buffer: &Buffer, wanted: &[TraceId], known: &Known) -> Vec<Identified> {
        if !buffer.sources.is_empty() {
            let described = buffer.sources.iter().map(|source| self.complete(source, buffer, known));
            let mut found = described.collect::<Vec<_>>();
            found.extend(self.other_itms(&found, wanted, known));
            return found;
        }
        if self.container.value == Container::Mtb {
            let source = SourceDescription::new(Protocol::Mtb, Origin::Detected);
            let dump = Dump::new(&buffer.bytes, None);
            let misses_program = infer::misses_program(dump, known.program(&source));
            return vec![Identified { guessed: true, misses_program, ..Identified::as_stated(source) }];
        }
        let Some(frames) = &self.frames else {
            return recognise(None, &whole(buffer), known).into_iter().collect();
        };
        let samples = frames.samples.iter().filter(|(id, _)| wanted.is_empty() || wanted.contains(id));
        let found =
            samples.filter_map(|(&id, sample)| recognise(Some(id), sample, known)).collect::<Vec<_>>();
        // Among many sources, some bytes look like an ITM's by chance.
        let strangers = frames.sources.len().saturating_sub(found.len());
        let is_guess = self.container.origin == Origin::Detected && strangers > infer::STRANGERS;
        let is_itm = |found: &Identified| found.source.protocol == Protocol::Itm;
        if is_guess && found.iter().all(is_itm) { Vec::new() } else { found }
    }

    /// ITMs beside the sources that were named.
    fn other_itms(&self, described: &[Identified], wanted: &[TraceId], known: &Known) -> Vec<Identified> {
        let is_described = |id| described.iter().any(|found| found.source.id == Some(id));
        let is_wanted = |id: &TraceId| wanted.is_empty() || wanted.contains(id);
        let samples = self.frames.iter().flat_map(|frames| &frames.samples);
        let others = samples.filter(|(id, _)| is_wanted(id) && !is_described(**id));
        others.filter_map(|(&id, sample)| itm(Some(id), sample, known)).collect()
    }

    /// The first bytes of a source.
    pub(crate) fn sample(&self, id: Option<TraceId>, buffer: &Buffer) -> Sample {
        match (&self.frames, id) {
            (Some(frames), Some(id)) => frames.samples.get(&id).cloned().unwrap_or_default(),
            (Some(_), None) => Sample::default(),
            (None, _) => whole(buffer),
        }
    }

    /// Whether a sample holds all bytes of a source.
    fn is_all(&self, sample: &Sample, id: Option<TraceId>, buffer: &Buffer) -> bool {
        let all = match (&self.frames, id) {
            (Some(frames), Some(id)) => frames.sources.get(&id).copied().unwrap_or_default(),
            (Some(_), None) => return false,
            (None, _) => stretches(buffer).iter().map(|stretch| stretch.bytes.len() as u64).sum(),
        };
        sample.bytes().len() as u64 == all
    }

    /// Completes the description of a named source.
    fn complete(&self, stated: &SourceDescription, buffer: &Buffer, known: &Known) -> Identified {
        if matches!(stated.protocol, Protocol::Mtb | Protocol::Itm | Protocol::Stm | Protocol::Unknown(_)) {
            return Identified::as_stated(stated.clone());
        }
        let id = stated.id.or_else(|| config(stated).ok()?.trace_id());
        let candidates = match (&self.frames, id) {
            (Some(frames), Some(id)) => {
                frames.samples.get(&id).map(|sample| (Some(id), sample.clone())).into_iter().collect()
            }
            // A source without an ID in frames is the one that decodes best.
            (Some(frames), None) => {
                frames.samples.iter().map(|(&id, sample)| (Some(id), sample.clone())).collect()
            }
            (None, _) => vec![(id, whole(buffer))],
        };
        let completed = candidates.into_iter().filter_map(|(id, sample)| {
            let source = SourceDescription { id, ..stated.clone() };
            let mut search = Search::new(&sample, known.traced(&source), &known.units);
            let found = search.completed(&source)?;
            let correction = search.correction(&found.source);
            let fits = found.reading.fits_program() && self.is_all(&sample, id, buffer);
            Some((found.reading, Identified { correction, fits, ..Identified::from(found) }))
        });
        let best = completed.min_by_key(|(reading, _)| reading.rank());
        best.map_or_else(
            || Identified::as_stated(stated.clone()),
            |(_, mut identified)| {
                identified.guessed |= identified.source.id != id;
                identified
            },
        )
    }
}

/// Recognises the source with these bytes.
pub(crate) fn recognise(id: Option<TraceId>, sample: &Sample, known: &Known) -> Option<Identified> {
    if infer::is_surely_itm(sample.bytes()) {
        return itm(id, sample, known);
    }
    match Search::new(sample, known.traced_by_any(), &known.units).anything(id) {
        Some(found) => Some(Identified { guessed: true, ..Identified::from(found) }),
        None => itm(id, sample, known),
    }
}

/// The source with these bytes, if it is an ITM.
fn itm(id: Option<TraceId>, sample: &Sample, known: &Known) -> Option<Identified> {
    let found = infer::itm(id, sample, &known.everything.program, &known.units)?;
    Some(Identified { guessed: true, findings: vec![found.finding], ..Identified::as_stated(found.source) })
}

/// A buffer that is one source's bytes.
fn whole(buffer: &Buffer) -> Sample {
    let mut stretches = stretches(buffer);
    // Memory that was not written says nothing.
    if let Some(Stretch { bytes, .. }) = stretches.first_mut() {
        let zeros = buffer.bytes.get(bytes.clone()).unwrap_or_default().iter().take_while(|byte| **byte == 0);
        bytes.start += zeros.count().saturating_sub(2 * A_SYNC.len());
    }
    Sample::of_stretches(&buffer.bytes, &stretches)
}

/// Refuses a recording if its reading is not stated.
pub(crate) fn check_wires(buffer: &Buffer) -> Result<(), OpenError> {
    let Some(reading) = &buffer.wires else { return Ok(()) };
    let needed = match (reading.said.wire, reading.wire) {
        (None, Wire::Port) => Unstated::Port,
        (None, Wire::Uart | Wire::Manchester) => Unstated::Wire,
        (Some(_), Wire::Uart | Wire::Manchester) if reading.said.baud.is_none() => Unstated::Baud,
        (Some(_), _) if reading.inverted && reading.said.inverted.is_none() => Unstated::Inverted,
        (Some(_), _) if reading.found_channels().next().is_some() => Unstated::Channels,
        (Some(_), _) => return Ok(()),
    };
    Err(refuse(buffer, vec![needed]))
}

/// Refuses a buffer if its packing is not stated.
fn check_container(buffer: &Buffer) -> Result<(), OpenError> {
    let needed = match buffer.container.as_ref().map(|stated| stated.value) {
        None if buffer.sources.is_empty() => vec![Unstated::Container, Unstated::Sources],
        None => vec![Unstated::Container],
        Some(Container::TracePort) if buffer.frame_start.is_none() && !has_full_sync(&buffer.bytes) => {
            vec![Unstated::FrameStart]
        }
        Some(_) => return Ok(()),
    };
    Err(refuse(buffer, needed))
}

/// The described sources. An error if the description of one leaves something to infer.
fn stated_sources(
    buffer: &Buffer,
    contents: &Contents,
    wanted: &[TraceId],
) -> Result<Vec<Identified>, OpenError> {
    let mut needed = Vec::new();
    for source in &buffer.sources {
        needed.extend(missing(source, contents));
    }
    let described = |id: &TraceId| buffer.sources.iter().any(|source| source_id(source) == Some(*id));
    match &contents.frames {
        Some(frames) => {
            let ids = frames.sources.keys().filter(|id| wanted.is_empty() || wanted.contains(id));
            needed.extend(
                ids.filter(|id| !described(id)).map(|&id| Unstated::Source { id: Some(id), protocol: None }),
            );
        }
        None if buffer.sources.is_empty() => needed.push(Unstated::Source { id: None, protocol: None }),
        None => {}
    }
    if !needed.is_empty() {
        return Err(refuse(buffer, needed));
    }
    Ok(buffer.sources.iter().cloned().map(Identified::as_stated).collect())
}

/// The missing settings of a source.
fn missing(source: &SourceDescription, contents: &Contents) -> Option<Unstated> {
    let id = source_id(source);
    let protocol = &source.protocol;
    match protocol {
        _ if matches!(config(source), Err(NoConfig::Registers(_))) => {
            Some(Unstated::Source { id, protocol: Some(protocol.clone()) })
        }
        Protocol::Mtb if source.registers.get("MTB_POSITION").is_none() => Some(Unstated::MtbRegisters),
        _ if id.is_none() && contents.frames.is_some() => Some(Unstated::TraceId(protocol.clone())),
        _ => None,
    }
}

fn source_id(source: &SourceDescription) -> Option<TraceId> {
    source.id.or_else(|| config(source).ok()?.trace_id())
}

fn has_full_sync(bytes: &[u8]) -> bool {
    bytes.windows(FSYNC.len()).any(|bytes| bytes == FSYNC)
}

fn refuse(buffer: &Buffer, needed: Vec<Unstated>) -> OpenError {
    OpenError::NotStated { file: buffer.file.clone(), needed }
}

/// How many bytes of a source are enough to judge readings by: some dozens of synchronisations.
const ENOUGH: usize = 1 << 16;

/// The A-sync packet of ETMv3, PFT and ITM.
const A_SYNC: [u8; 6] = [0, 0, 0, 0, 0, 0x80];

/// Some of a source's bytes, up to a limit.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Sample {
    bytes: Vec<u8>,
    /// The positions before which bytes were lost.
    breaks: Vec<usize>,
}

impl Sample {
    /// The first bytes of stretches that belong to one source.
    pub(crate) fn of_stretches(capture: &[u8], stretches: &[Stretch]) -> Self {
        let mut sample = Self::default();
        for stretch in stretches {
            let end = stretch.bytes.end.min(capture.len());
            if !stretch.continues {
                sample.lose();
            }
            sample.take(capture.get(stretch.bytes.start..end).unwrap_or_default());
        }
        sample
    }

    /// The source's bytes from a place in the capture on.
    pub(crate) fn from_place(capture: &[u8], carrier: &Carrier, place: CaptureOffset) -> Self {
        match carrier {
            Carrier::Frames { framing, id } => {
                let mut later = Later { id: *id, place, sample: Self::default() };
                let mut deframer = RecoveringDeframer::new(*framing);
                deframer.push(capture, &mut later);
                deframer.finish(&mut later);
                later.sample
            }
            Carrier::Indexed { index, id } => {
                let mut later = Later { id: *id, place, sample: Self::default() };
                let mut extraction = index.extraction(*id, index.sections());
                while !later.sample.is_full() && extraction.advance(capture, &mut later).is_some() {}
                later.sample
            }
            Carrier::Stretches(stretches) => {
                let place = usize::try_from(place.0).unwrap_or(usize::MAX);
                let passed = stretches.iter().position(|stretch| stretch.bytes.contains(&place));
                let mut rest = stretches.get(passed.unwrap_or(0)..).unwrap_or_default().to_vec();
                if let Some(first) = rest.first_mut() {
                    first.bytes.start = first.bytes.start.max(place);
                }
                Self::of_stretches(capture, &rest)
            }
        }
    }

    /// At most `bytes` bytes from the first A-sync on; `None` if there is none.
    pub(super) fn synchronised(&self, bytes: usize) -> Option<Self> {
        let found = self.bytes.windows(A_SYNC.len()).position(|window| window == A_SYNC)?;
        // An ETMv4 A-sync has more zeros before these. Many more are memory that was not written.
        let before = self.bytes.get(..found).unwrap_or_default().iter().rev().take(A_SYNC.len());
        let start = found - before.take_while(|byte| **byte == 0).count();
        let end = self.bytes.len().min(start + bytes);
        let breaks = self.breaks.iter().filter(|at| (start + 1..end).contains(*at));
        Some(Self {
            bytes: self.bytes.get(start..end)?.to_vec(),
            breaks: breaks.map(|at| at - start).collect(),
        })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The number of places where bytes were lost.
    pub(super) const fn cuts(&self) -> u64 {
        self.breaks.len() as u64
    }

    pub(super) fn input(&self) -> Input<'_> {
        let starts = [0].into_iter().chain(self.breaks.iter().copied());
        let ends = self.breaks.iter().copied().chain([self.bytes.len()]);
        let stretches =
            starts.zip(ends).map(|(start, end)| Stretch { bytes: start..end, continues: false }).collect();
        Input {
            capture: &self.bytes,
            carrier: Carrier::Stretches(stretches),
            rest: None,
            progress: &NoProgress,
        }
    }

    /// Decodes the packets and calls `look` with each item and its bytes.
    pub(super) fn packets(&self, config: &SourceConfig, look: &mut dyn FnMut(PacketItem<'_>, &[u8])) {
        let mut stream = PacketStream::new(config);
        let look = &mut |item: PacketItem<'_>, _: Span, bytes: &[u8]| look(item, bytes);
        let mut start = 0;
        for &end in self.breaks.iter().chain([&self.bytes.len()]) {
            if start > 0 {
                stream.lose_sync(look);
            }
            stream.push(self.bytes.get(start..end).unwrap_or_default(), look);
            start = end;
        }
        stream.finish(look);
    }

    /// Whether no more bytes are wanted.
    const fn is_full(&self) -> bool {
        self.bytes.len() >= ENOUGH
    }

    /// Adds the source's next bytes, as far as they are wanted.
    #[inline]
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        if !self.is_full() {
            let room = ENOUGH.saturating_sub(self.bytes.len());
            self.bytes.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        }
    }

    /// Bytes were lost before the next ones.
    pub(crate) fn lose(&mut self) {
        let here = self.bytes.len();
        if here > 0 && here < ENOUGH && self.breaks.last() != Some(&here) {
            self.breaks.push(here);
        }
    }
}

/// Takes one source's bytes from a place on.
struct Later {
    id: TraceId,
    place: CaptureOffset,
    sample: Sample,
}

impl FrameSink for Later {
    fn data(&mut self, owner: Owner, piece: Piece<'_>) {
        if owner.trace_id() == Some(self.id) && piece.at >= self.place {
            self.sample.take(piece.bytes);
        }
    }

    fn discontinuity(&mut self, _: Discontinuity) {
        self.sample.lose();
    }
}
