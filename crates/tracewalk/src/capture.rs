//! A formatted capture of several sources to the program flow of each.
//!
//! [`CaptureDecoder`] joins what every reader of a formatted capture needs: it takes the frames apart, gives
//! each source's bytes to a [`FlowStream`] of its own, and reports the frames' discontinuities to each
//! stream. Inference of a capture's sources, and file access, are in other crates. [`elements`] is for the bytes
//! of one source without frames.
//!
//! ```
//! use tracewalk::flow::Element;
//! use tracewalk::frame::{Formatter, FormatterOptions, Framing};
//! use tracewalk::ids::{Address, TraceId};
//! use tracewalk::program::Program;
//! use tracewalk::protocol::etmv3;
//! use tracewalk::span::CaptureOffset;
//! use tracewalk::{CaptureDecoder, SourceConfig};
//!
//! let mut program = Program::new();
//! program.add(Address::new(0x100), &[0x01, 0x20, 0x70, 0x47])?; // T32: movs r0, #1; bx lr
//! let id = TraceId::new(0x10).unwrap();
//! let mut formatter = Formatter::new(FormatterOptions::default());
//! let mut capture = Vec::new();
//! formatter.write(id, &[0, 0, 0, 0, 0, 0x80, 0x08, 0x21, 0x01, 0x01, 0, 0, 0x88], &mut capture);
//! formatter.flush(&mut capture);
//!
//! // The byte of the capture that proves the two instructions: 0x88, after the frame's ID byte.
//! let config = SourceConfig::Etmv3(etmv3::Config::for_core("cortex-m3").unwrap());
//! let decoder = CaptureDecoder::new(Framing::Buffer, [(id, config, &program)]);
//! let located = decoder.located_elements(&capture);
//! let blocks = located.filter(|(_, _, element)| matches!(element, Element::Block(_)));
//! assert!(blocks.map(|(_, at, _)| at).eq([CaptureOffset(13)]));
//! # Ok::<(), tracewalk::program::AddRegionError>(())
//! ```

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::borrow::Borrow;

use crate::flow::Element;
use crate::frame::{
    Cause, Discontinuity, FrameSink, Framing, Owner, Piece, PlaceMap, RecoveringDeframer, Tail,
};
use crate::ids::TraceId;
use crate::program::Program;
use crate::source::{FlowStream, SourceConfig};
use crate::span::{CaptureOffset, StreamOffset};

/// The number of bytes that an iterator decodes at once, to bound its memory.
const PIECE_BYTES: usize = 4096;

/// The number of a source's newest bytes that can be located. A decoder holds back a gap of at most 4 KiB.
const LOCATED_BYTES: u64 = 1 << 16;

/// Decodes a formatted capture: frames of bytes to the program flow of each source.
///
/// Bytes of other trace IDs are skipped. A source that is cut by a barrier, or that lost bytes with their
/// frames, has a [`Gap`](crate::flow::Gap) there and continues at its next synchronisation.
///
/// The decoder reports neither the [account](crate::frame::Account) of the frames nor their [discontinuities](Discontinuity). An element's
/// span counts the bytes of its source: [`CaptureDecoder::locate`] converts it. If you need more, give the bytes of a
/// [`RecoveringDeframer`] to a [`FlowStream`] for each source.
///
/// ```
/// use tracewalk::flow::Element;
/// use tracewalk::frame::{Formatter, FormatterOptions, Framing};
/// use tracewalk::ids::{Address, TraceId};
/// use tracewalk::program::Program;
/// use tracewalk::protocol::{etmv3, pft};
/// use tracewalk::{CaptureDecoder, SourceConfig};
///
/// let mut program = Program::new();
/// program.add(Address::new(0x100), &[0x01, 0x20, 0x70, 0x47])?; // T32: movs r0, #1; bx lr
/// let (m3, a9) = (TraceId::new(0x10).unwrap(), TraceId::new(0x20).unwrap());
///
/// // Two sources, each with an A-sync, an I-sync at 0x100 in Thumb, and two instructions, in the frames of one buffer.
/// let mut formatter = Formatter::new(FormatterOptions::default());
/// let mut capture = Vec::new();
/// formatter.write(m3, &[0, 0, 0, 0, 0, 0x80, 0x08, 0x21, 0x01, 0x01, 0, 0, 0x88], &mut capture);
/// formatter.write(a9, &[0, 0, 0, 0, 0, 0x80, 0x08, 0x01, 0x01, 0, 0, 0x21, 0x01], &mut capture);
/// formatter.flush(&mut capture);
///
/// let sources = [
///     (m3, SourceConfig::Etmv3(etmv3::Config::for_core("cortex-m3").unwrap()), &program),
///     (a9, SourceConfig::Pft(pft::Config::for_core("cortex-a9").unwrap()), &program),
/// ];
/// let mut instructions = [0, 0];
/// for (id, element) in CaptureDecoder::new(Framing::Buffer, sources).elements(&capture) {
///     if let Element::Block(block) = element {
///         instructions[usize::from(id == a9)] += block.instructions;
///     }
/// }
/// assert_eq!(instructions, [2, 2]);
/// # Ok::<(), tracewalk::program::AddRegionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct CaptureDecoder<P> {
    deframer: RecoveringDeframer,
    sources: Vec<Source<P>>,
}

#[derive(Clone, Debug)]
struct Source<P> {
    id: TraceId,
    stream: FlowStream,
    program: P,
    /// Whether the source had bytes. A discontinuity before the first byte loses nothing.
    begun: bool,
    /// The places of the newest bytes, if they are wanted.
    places: Option<PlaceMap>,
}

impl<P: Borrow<Program>> CaptureDecoder<P> {
    /// A decoder for a capture from its first byte, of these sources: each with its trace ID, its configuration and the program
    /// that its processor executes, which is borrowed, or shared by an `Arc`.
    #[must_use]
    pub fn new(framing: Framing, sources: impl IntoIterator<Item = (TraceId, SourceConfig, P)>) -> Self {
        let source = |(id, config, program): (TraceId, SourceConfig, P)| {
            let stream = FlowStream::new(&config);
            Source { id, stream, program, begun: false, places: None }
        };
        let sources = sources.into_iter().map(source).collect();
        Self { deframer: RecoveringDeframer::new(framing), sources }
    }

    /// The same decoder before its first byte, keeping the places of each source's newest bytes for [`CaptureDecoder::locate`].
    #[must_use]
    pub fn with_places(mut self) -> Self {
        self.sources.iter_mut().for_each(|source| source.places = Some(PlaceMap::new()));
        self
    }

    /// The offset in the capture of a source's byte, such as the start of an element's [span](Element::span). `None` without
    /// [`CaptureDecoder::with_places`], if the byte has not arrived yet, or if at least 64 KiB of the source came after it: locate
    /// elements after each push, and push pieces of at most that size.
    ///
    /// ```
    /// # use tracewalk::flow::Element;
    /// # use tracewalk::frame::{Formatter, FormatterOptions, Framing};
    /// # use tracewalk::ids::{Address, TraceId};
    /// # use tracewalk::program::Program;
    /// # use tracewalk::protocol::etmv3;
    /// # use tracewalk::span::CaptureOffset;
    /// # use tracewalk::{CaptureDecoder, SourceConfig};
    /// # let (mut program, id) = (Program::new(), TraceId::new(0x10).unwrap());
    /// # program.add(Address::new(0x100), &[0x01, 0x20, 0x70, 0x47])?;
    /// # let mut formatter = Formatter::new(FormatterOptions::default());
    /// # let mut capture = Vec::new();
    /// # formatter.write(id, &[0, 0, 0, 0, 0, 0x80, 0x08, 0x21, 0x01, 0x01, 0, 0, 0x88], &mut capture);
    /// # formatter.flush(&mut capture);
    /// # let config = SourceConfig::Etmv3(etmv3::Config::for_core("cortex-m3").unwrap());
    /// // `id`, `config`, `program` and `capture` are made as in the example of the module.
    /// let mut decoder = CaptureDecoder::new(Framing::Buffer, [(id, config, &program)]).with_places();
    /// let mut found = Vec::new();
    /// for piece in capture.chunks(4096) {
    ///     decoder.push(piece, &mut |id, element| found.push((id, element)));
    ///     // Locate the elements of this piece here.
    /// }
    /// decoder.finish(&mut |id, element| found.push((id, element)));
    /// let (id, block) = found.iter().find(|(_, element)| matches!(element, Element::Block(_))).unwrap();
    /// assert_eq!(decoder.locate(*id, block.span().start), Some(CaptureOffset(13)));
    /// # Ok::<(), tracewalk::program::AddRegionError>(())
    /// ```
    #[must_use]
    pub fn locate(&mut self, id: TraceId, at: StreamOffset) -> Option<CaptureOffset> {
        self.sources.iter_mut().find(|source| source.id == id)?.places.as_mut()?.locate(at)
    }

    /// Takes the next bytes of the capture, in pieces of any size; calls `sink` with the elements that they prove.
    pub fn push(&mut self, bytes: &[u8], sink: &mut impl FnMut(TraceId, Element)) {
        self.deframer.push(bytes, &mut Sources { sources: &mut self.sources, bytes: Vec::new(), sink });
    }

    /// Ends the capture: calls `sink` with the last elements. Returns the rest of an incomplete frame.
    pub fn finish(&mut self, sink: &mut impl FnMut(TraceId, Element)) -> Tail {
        let mut sources = Sources { sources: &mut self.sources, bytes: Vec::new(), sink };
        let tail = self.deframer.finish(&mut sources);
        for Source { id, stream, program, .. } in sources.sources {
            stream.finish((*program).borrow(), &mut |element| (sources.sink)(*id, element));
        }
        tail
    }

    /// All elements of a capture that is in memory, in the order in which they are found. A source's elements are in the order
    /// in which they happened. Drops the [`Tail`] that [`CaptureDecoder::finish`] returns: the only sign that the capture ends within a
    /// frame.
    pub fn elements(mut self, capture: &[u8]) -> impl Iterator<Item = (TraceId, Element)> + use<'_, P> {
        pull(capture, move |piece, found| {
            let mut note = |id, element| found.push_back((id, element));
            match piece {
                Some(bytes) => self.push(bytes, &mut note),
                None => _ = self.finish(&mut note),
            }
        })
    }
}

impl<P: Borrow<Program>> CaptureDecoder<P> {
    /// As [`CaptureDecoder::elements`], each element with the offset in the capture of the first byte that proves it. An element
    /// without bytes of its own has the offset of the element before it.
    pub fn located_elements(
        self,
        capture: &[u8],
    ) -> impl Iterator<Item = (TraceId, CaptureOffset, Element)> + use<'_, P> {
        let mut decoder = self.with_places();
        let mut last = alloc::vec![CaptureOffset(0); decoder.sources.len()];
        pull(capture, move |piece, found| {
            let mut elements = Vec::new();
            let mut note = |id, element: Element| elements.push((id, element));
            match piece {
                Some(bytes) => decoder.push(bytes, &mut note),
                None => _ = decoder.finish(&mut note),
            }
            for (id, element) in elements {
                let mut sources = decoder.sources.iter_mut().zip(&mut last);
                let Some((source, last)) = sources.find(|(source, _)| source.id == id) else { continue };
                let start = Some(element.span()).filter(|span| span.bytes() > 0).map(|span| span.start);
                let place = start.and_then(|start| source.places.as_mut()?.locate(start));
                let at = place.unwrap_or(*last);
                // A proof may begin after elements that follow it.
                if !matches!(element, Element::Proof(_)) {
                    *last = at;
                }
                found.push_back((id, at, element));
            }
        })
    }
}

/// All elements of one source's bytes that are in memory, without frames around them.
///
/// ```
/// use tracewalk::flow::Element;
/// use tracewalk::ids::Address;
/// use tracewalk::program::Program;
/// use tracewalk::protocol::etmv3;
/// use tracewalk::{FlowStream, SourceConfig};
///
/// let mut program = Program::new();
/// program.add(Address::new(0x100), &[0x01, 0x20, 0x70, 0x47])?; // T32: movs r0, #1; bx lr
/// let config = SourceConfig::Etmv3(etmv3::Config::for_core("cortex-m3").unwrap());
/// let trace = [0, 0, 0, 0, 0, 0x80, 0x08, 0x21, 0x01, 0x01, 0, 0, 0x88];
/// let elements = tracewalk::capture::elements(FlowStream::new(&config), &trace, &program);
/// let blocks = elements.filter(|element| matches!(element, Element::Block(_)));
/// assert_eq!(blocks.count(), 1);
/// # Ok::<(), tracewalk::program::AddRegionError>(())
/// ```
pub fn elements(mut stream: FlowStream, bytes: &[u8], program: &Program) -> impl Iterator<Item = Element> {
    pull(bytes, move |piece, found| {
        let mut note = |element| found.push_back(element);
        match piece {
            Some(bytes) => stream.push(bytes, program, &mut note),
            None => stream.finish(program, &mut note),
        }
    })
}

/// The items that `feed` finds in the pieces of `bytes`, and at their end, one by one.
fn pull<T>(bytes: &[u8], mut feed: impl FnMut(Option<&[u8]>, &mut VecDeque<T>)) -> impl Iterator<Item = T> {
    let (mut pieces, mut found, mut done) = (bytes.chunks(PIECE_BYTES), VecDeque::new(), false);
    core::iter::from_fn(move || {
        while found.is_empty() && !done {
            let piece = pieces.next();
            done = piece.is_none();
            feed(piece, &mut found);
        }
        found.pop_front()
    })
}

/// Gives each source its bytes.
struct Sources<'a, P, S> {
    sources: &'a mut [Source<P>],
    /// A piece's bytes in one slice; the allocation is reused.
    bytes: Vec<u8>,
    sink: &'a mut S,
}

impl<P: Borrow<Program>, S: FnMut(TraceId, Element)> FrameSink for Sources<'_, P, S> {
    fn data(&mut self, owner: Owner, piece: Piece<'_>) {
        let Some(id) = owner.trace_id() else { return };
        let Some(source) = self.sources.iter_mut().find(|source| source.id == id) else { return };
        self.bytes.clear();
        piece.append_to(&mut self.bytes);
        source.begun = true;
        if let Some(places) = &mut source.places {
            places.trim(StreamOffset(places.end().0.saturating_sub(LOCATED_BYTES)));
            places.append(piece);
        }
        source.stream.push(&self.bytes, source.program.borrow(), &mut |element| (self.sink)(id, element));
    }

    fn discontinuity(&mut self, discontinuity: Discontinuity) {
        for Source { id, stream, program, .. } in self.sources.iter_mut().filter(|source| source.begun) {
            let program = (*program).borrow();
            let mut note = |element| (self.sink)(*id, element);
            match discontinuity.cause {
                Cause::Start => {}
                Cause::Barrier => stream.cut(program, &mut note),
                Cause::MisplacedSync | Cause::ImpossibleId | Cause::Shifted { .. } | Cause::NoFrames => {
                    stream.lose_sync(program, &mut note);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::{Gap, GapReason};
    use crate::frame::{Formatter, FormatterOptions};
    use crate::ids::Address;
    use crate::protocol::{etmv3, pft};

    const ETM: [u8; 13] = [0, 0, 0, 0, 0, 0x80, 0x08, 0x21, 0x01, 0x01, 0, 0, 0x88];
    const PTM: [u8; 13] = [0, 0, 0, 0, 0, 0x80, 0x08, 0x01, 0x01, 0, 0, 0x21, 0x01];

    fn id(number: u8) -> TraceId {
        TraceId::new(number).expect("a source's")
    }

    fn program() -> Program {
        let mut program = Program::new();
        program.add(Address::new(0x100), &[0x01, 0x20, 0x70, 0x47]).expect("one region");
        program
    }

    fn sources(program: &Program) -> [(TraceId, SourceConfig, &Program); 2] {
        let etm = etmv3::Config::for_core("cortex-m3").expect("a known core");
        let ptm = pft::Config::for_core("cortex-a9").expect("a known core");
        [(id(0x10), SourceConfig::Etmv3(etm), program), (id(0x20), SourceConfig::Pft(ptm), program)]
    }

    /// Both sources, a barrier, then the first source again and one that is not in the list of sources.
    fn capture() -> Vec<u8> {
        let (mut formatter, mut capture) = (Formatter::new(FormatterOptions::default()), Vec::new());
        formatter.write(id(0x10), &ETM, &mut capture);
        formatter.write(id(0x20), &PTM, &mut capture);
        formatter.barrier(&mut capture);
        formatter.write(id(0x10), &ETM, &mut capture);
        formatter.write(id(0x30), &PTM, &mut capture);
        formatter.flush(&mut capture);
        capture
    }

    #[test]
    fn each_source_has_its_own_flow_and_a_barrier_cuts_all() {
        let program = program();
        let decoder = CaptureDecoder::new(Framing::Buffer, sources(&program));
        let (mut instructions, mut gaps) = ([0, 0], [0, 0]);
        for (found, element) in decoder.elements(&capture()) {
            let index = usize::from(found == id(0x20));
            assert!(index == 1 || found == id(0x10), "{found}");
            match element {
                Element::Block(block) => instructions[index] += block.instructions,
                Element::Gap(Gap { reason: GapReason::TraceLost, doubt: false, .. }) => gaps[index] += 1,
                Element::Gap(gap) => panic!("{}", gap.reason),
                Element::Event(_) | Element::Proof(_) => {}
            }
        }
        assert_eq!((instructions, gaps), ([4, 2], [1, 1]));
    }

    #[test]
    fn elements_do_not_depend_on_how_the_capture_is_cut() {
        let (program, capture) = (program(), capture());
        let whole = CaptureDecoder::new(Framing::Buffer, sources(&program)).elements(&capture);
        let mut decoder = CaptureDecoder::new(Framing::Buffer, sources(&program));
        let mut pieces = Vec::new();
        let mut note = |id, element| pieces.push((id, element));
        capture.chunks(1).for_each(|byte| decoder.push(byte, &mut note));
        assert_eq!(decoder.finish(&mut note).bytes, 0);
        // The order between sources may differ.
        let of = |id| pieces.iter().copied().filter(move |(found, _)| *found == id);
        let whole = whole.collect::<Vec<_>>();
        for id in [id(0x10), id(0x20)] {
            assert!(of(id).eq(whole.iter().copied().filter(|(found, _)| *found == id)), "{id}");
        }
    }
    /// The places come from the frames alone: a byte of the capture that has the packet's header, restored as the deframer does.
    #[test]
    fn elements_are_located_in_the_capture() {
        let (program, capture) = (program(), capture());
        let located = CaptureDecoder::new(Framing::Buffer, sources(&program)).located_elements(&capture);
        let located = located.collect::<Vec<_>>();
        let plain = CaptureDecoder::new(Framing::Buffer, sources(&program)).elements(&capture);
        assert!(located.iter().map(|(id, _, element)| (*id, *element)).eq(plain));
        let mut places = PlaceMap::new();
        let mut sink = Only(id(0x10), &mut places, Vec::new());
        let mut deframer = crate::frame::Deframer::new(Framing::Buffer);
        deframer.push(&capture, &mut sink);
        let Only(_, places, bytes) = sink;
        let mut blocks = 0;
        for (found, at, element) in &located {
            if let (true, Element::Block(block)) = (*found == id(0x10), element) {
                let start = block.span.start;
                assert_eq!(
                    (Some(*at), bytes[usize::try_from(start.0).unwrap()]),
                    (places.locate(start), 0x88)
                );
                blocks += 1;
            }
        }
        assert_eq!(blocks, 2);
    }

    #[test]
    fn a_byte_is_located_while_it_is_new_and_only_if_asked_for() {
        let program = Program::new();
        let mut formatter = Formatter::new(FormatterOptions::default());
        let mut capture = Vec::new();
        formatter.write(id(0x10), &alloc::vec![0x84; 100_000], &mut capture);
        formatter.flush(&mut capture);
        let mut without = CaptureDecoder::new(Framing::Buffer, sources(&program));
        let mut with = without.clone().with_places();
        for piece in capture.chunks(4096) {
            without.push(piece, &mut |_, _| ());
            with.push(piece, &mut |_, _| ());
        }
        // The newest frames are held back, because they may prove to be none.
        assert_eq!(with.locate(id(0x10), StreamOffset(99_999)), None);
        with.finish(&mut |_, _| ());
        // The first frame has an ID byte and 14 data bytes, each other one 15; the last byte comes after another ID.
        assert_eq!(with.locate(id(0x10), StreamOffset(99_998)), Some(CaptureOffset(106_665)));
        assert_eq!(with.locate(id(0x10), StreamOffset(0)), None);
        assert_eq!(with.locate(id(0x10), StreamOffset(100_000)), None);
        assert_eq!(with.locate(id(0x20), StreamOffset(0)), None);
        assert_eq!(with.locate(id(0x30), StreamOffset(0)), None);
        assert_eq!(without.locate(id(0x10), StreamOffset(99_999)), None);
    }

    /// Collects the bytes of one source, and their places.
    struct Only<'a>(TraceId, &'a mut PlaceMap, Vec<u8>);

    impl FrameSink for Only<'_> {
        fn data(&mut self, owner: Owner, piece: Piece<'_>) {
            if owner == Owner::Source(self.0) {
                self.1.append(piece);
                self.2.extend(piece.bytes);
            }
        }

        fn discontinuity(&mut self, _: Discontinuity) {}
    }
}
