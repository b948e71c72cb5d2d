//! What is in a buffer: the container, the frames, the sources.

use std::collections::BTreeMap;

use tracewalk::frame::{Account, Cause, Deframer, Discontinuity, FrameSink, Framing, Owner, Piece};
use tracewalk::ids::TraceId;
use tracewalk_input::capture::{Buffer, Container, Protocol, SourceDescription};
use tracewalk_input::{Origin, Stated};
use tracewalk_report::drive::{Carrier, Stretch};

use crate::args::CaptureArgs;
use crate::guess;

/// What was found in one of the capture's buffers.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) container: Stated<Container>,
    /// What the frames hold; `None` for a container without frames.
    pub(crate) frames: Option<Frames>,
}

/// What the frames of a buffer hold.
#[derive(Clone, Debug)]
pub(crate) struct Frames {
    pub(crate) framing: Framing,
    pub(crate) account: Account,
    /// How many bytes each source has.
    pub(crate) sources: BTreeMap<TraceId, u64>,
    /// Where bytes in front and bytes behind do not belong together.
    pub(crate) discontinuities: u64,
    /// How many bytes stand in front of the first frame.
    in_front: u64,
}

impl Contents {
    /// Finds out whose bytes a buffer holds.
    pub(super) fn guess_sources(
        &self,
        buffer: &Buffer,
        candidates: &guess::Candidates<'_>,
        args: &CaptureArgs,
    ) -> Vec<SourceDescription> {
        match &self.frames {
            None if self.container.value == Container::Mtb => {
                vec![SourceDescription::new(Protocol::Mtb, Origin::Detected)]
            }
            None => {
                let carrier = Carrier::Stretches(vec![Stretch::all(buffer.bytes.len())]);
                guess::source(None, &buffer.bytes, carrier, candidates).into_iter().collect()
            }
            Some(frames) => {
                let wanted = |id: &&TraceId| args.ids.is_empty() || args.ids.contains(id);
                let guess = |&id| {
                    let carrier = Carrier::Frames { framing: frames.framing, id };
                    guess::source(Some(id), &buffer.bytes, carrier, candidates)
                };
                frames.sources.keys().filter(wanted).filter_map(guess).collect()
            }
        }
    }

    /// Adds to sources that were named what is not said of them.
    pub(super) fn complete(
        &self,
        stated: &[SourceDescription],
        buffer: &Buffer,
        candidates: &guess::Candidates<'_>,
    ) -> Vec<SourceDescription> {
        let mut sources = stated.to_vec();
        for source in &mut sources {
            guess::add_cpu(source, candidates);
        }
        // One source without an ID in frames: it is the one that decodes best.
        if let ([source], Some(frames)) = (sources.as_mut_slice(), &self.frames)
            && source.id.is_none()
        {
            source.id = guess::id(source, &buffer.bytes, frames);
        }
        sources
    }
}

impl Frames {
    /// Takes a whole buffer apart.
    pub(crate) fn scan(bytes: &[u8], framing: Framing) -> Self {
        let mut deframer = Deframer::new(framing);
        let mut counts = Counts::default();
        deframer.push(bytes, &mut counts);
        deframer.finish(&mut counts);
        let Counts { sources, discontinuities, in_front } = counts;
        Self { framing, account: *deframer.account(), sources, discontinuities, in_front }
    }

    /// How many bytes were lost, other than those in front of the first frame.
    pub(crate) fn lost(&self) -> u64 {
        self.account.lost.saturating_sub(self.in_front)
    }
}

#[derive(Default)]
struct Counts {
    sources: BTreeMap<TraceId, u64>,
    discontinuities: u64,
    in_front: u64,
}

impl FrameSink for Counts {
    fn data(&mut self, owner: Owner, piece: Piece<'_>) {
        if let Some(id) = owner.trace_id() {
            *self.sources.entry(id).or_default() += piece.bytes.len() as u64;
        }
    }

    fn discontinuity(&mut self, discontinuity: Discontinuity) {
        match discontinuity.cause {
            Cause::Start => self.in_front += discontinuity.bytes,
            Cause::Barrier | Cause::MisplacedSync | Cause::ImpossibleId => self.discontinuities += 1,
        }
    }
}
