//! The packets of pushed bytes, for a program that requested them: read separately from the flow, and before it.

use tracewalk::frame::{Cause, Discontinuity, FrameSink, Framing, Owner, Piece, RecoveringDeframer};
use tracewalk::ids::TraceId;
use tracewalk::source::{PacketItem, PacketStream, SourceConfig};
use tracewalk::span::Span;

use crate::packet::PacketCallback;

/// Reports packets to a program's callback, if there is one.
#[derive(Debug)]
pub(crate) struct Tap {
    /// The deframer; `None` if the bytes are one source's.
    deframer: Option<RecoveringDeframer>,
    streams: Vec<(Option<TraceId>, PacketStream)>,
    pub(crate) callback: Option<PacketCallback>,
}

impl Tap {
    /// A tap on one source's bytes.
    pub(crate) fn of_source(id: Option<TraceId>, config: &SourceConfig) -> Self {
        Self { deframer: None, streams: vec![(id, PacketStream::new(config))], callback: None }
    }

    /// A tap on frames.
    pub(crate) fn of_frames<'a>(
        framing: Framing,
        sources: impl IntoIterator<Item = (TraceId, &'a SourceConfig)>,
    ) -> Self {
        let stream = |(id, config)| (Some(id), PacketStream::new(config));
        let streams = sources.into_iter().map(stream).collect();
        Self { deframer: Some(RecoveringDeframer::new(framing)), streams, callback: None }
    }

    /// Reads bytes before the decoder takes them.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.work(|deframer, streams| match deframer {
            Some(deframer) => deframer.push(bytes, streams),
            None => streams.each(|stream, give| stream.push(bytes, give)),
        });
    }

    /// Bytes were lost before the next ones.
    pub(crate) fn lose_sync(&mut self) {
        self.work(|_, streams| streams.each(|stream, give| stream.lose_sync(give)));
    }

    /// The trace ends here.
    pub(crate) fn finish(&mut self) {
        self.work(|deframer, streams| {
            if let Some(deframer) = deframer {
                // An incomplete frame holds no packet.
                let _ = deframer.finish(streams);
            }
            streams.each(|stream, give| stream.finish(give));
        });
    }

    fn work(&mut self, work: impl FnOnce(Option<&mut RecoveringDeframer>, &mut Streams<'_>)) {
        let Self { deframer, streams, callback: Some(callback) } = self else { return };
        work(deframer.as_mut(), &mut Streams { streams, callback, bytes: Vec::new() });
    }
}

/// The sources' packet streams, and the callback.
struct Streams<'a> {
    streams: &'a mut [(Option<TraceId>, PacketStream)],
    callback: &'a mut PacketCallback,
    /// The bytes of a piece without a hole, in a buffer that is used again.
    bytes: Vec<u8>,
}

/// Receives a stream's packets.
type Give<'a> = dyn FnMut(PacketItem<'_>, Span, &[u8]) + 'a;

impl Streams<'_> {
    fn each(&mut self, mut work: impl FnMut(&mut PacketStream, &mut &mut Give<'_>)) {
        for (id, stream) in &mut *self.streams {
            let callback = &mut *self.callback;
            let mut give = |item: PacketItem<'_>, span: Span, bytes: &[u8]| {
                callback.give((item, bytes), *id, span.start, None);
            };
            work(stream, &mut (&mut give as &mut Give<'_>));
        }
    }
}

impl FrameSink for Streams<'_> {
    fn data(&mut self, owner: Owner, piece: Piece<'_>) {
        let Some(id) = owner.trace_id() else { return };
        let Some((id, stream)) = self.streams.iter_mut().find(|(known, _)| *known == Some(id)) else {
            return;
        };
        self.bytes.clear();
        piece.append_to(&mut self.bytes);
        stream.push(&self.bytes, &mut |item, span, bytes| {
            self.callback.give((item, bytes), *id, span.start, None);
        });
    }

    fn discontinuity(&mut self, discontinuity: Discontinuity) {
        if discontinuity.cause != Cause::Start {
            self.each(|stream, give| stream.lose_sync(give));
        }
    }
}
