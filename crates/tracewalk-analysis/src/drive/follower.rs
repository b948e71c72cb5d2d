//! Following a source, once or several times.

use std::io;

use tracewalk::flow::Element;
use tracewalk::frame::PlaceMap;
use tracewalk::program::Program;
use tracewalk::source::{FlowStream, SourceConfig};

use super::{Ending, Input, Interruption, Look, Take};
use crate::Statistics;
use crate::record::FlowRecord;

/// A source and its program, and the knowledge of both gained while following.
///
/// For a short capture, learning takes most of the time: use the same follower for a part of a capture and then for all of it.
#[derive(Clone, Debug)]
pub struct Follower<'p> {
    pub(super) config: &'p SourceConfig,
    pub(super) program: &'p Program,
    stream: FlowStream,
    /// Whether the stream is still before its first byte.
    is_new: bool,
}

/// The knowledge of a source's program gained while following. Serves any source of the same program and configuration.
#[derive(Clone, Debug)]
pub struct Learned(FlowStream);

impl<'p> Follower<'p> {
    /// A follower that has learned nothing yet.
    #[must_use]
    pub fn new(config: &'p SourceConfig, program: &'p Program) -> Self {
        Self { config, program, stream: FlowStream::new(config), is_new: true }
    }

    /// A follower that starts with knowledge of the same program and configuration.
    #[must_use]
    pub fn knowing(config: &'p SourceConfig, program: &'p Program, learned: Learned) -> Self {
        Self { config, program, stream: learned.0, is_new: false }
    }

    /// The knowledge of the program so far.
    #[must_use]
    pub fn into_learned(self) -> Learned {
        Learned(self.stream)
    }

    /// The program.
    #[must_use]
    pub const fn program(&self) -> &'p Program {
        self.program
    }

    /// Whether there is no code to follow.
    #[must_use]
    pub fn has_no_program(&self) -> bool {
        self.program.is_empty()
    }

    /// The stream, before its first byte.
    pub(super) fn begin(&mut self) -> &mut FlowStream {
        if !self.is_new {
            self.stream.begin_again(self.config);
        }
        self.is_new = false;
        &mut self.stream
    }

    /// Follows the program flow of the source's bytes and calls `look` with each piece.
    ///
    /// # Errors
    ///
    /// The first error of `look`, which ends the work, or of the [rest](Input::rest) of the capture.
    pub fn flow<F>(&mut self, input: &Input<'_>, mut look: F) -> io::Result<Statistics>
    where
        F: FnMut(FlowRecord) -> io::Result<()>,
    {
        self.flow_to(input, &mut look)
    }

    /// As [`Follower::flow`]. The decoders are compiled once, not for each consumer.
    fn flow_to(&mut self, input: &Input<'_>, look: LookAtFlow<'_>) -> io::Result<Statistics> {
        let mut work = FlowWork::new(self, look);
        let ending = input.feed(&mut work)?;
        work.end(ending)
    }
}

impl Input<'_> {
    /// Follows the source's program flow once: [`Follower::flow`].
    ///
    /// # Errors
    ///
    /// As [`Follower::flow`].
    pub fn flow<F>(&self, config: &SourceConfig, program: &Program, look: F) -> io::Result<Statistics>
    where
        F: FnMut(FlowRecord) -> io::Result<()>,
    {
        Follower::new(config, program).flow(self, look)
    }
}

/// A consumer of program flow.
pub(super) type LookAtFlow<'a> = &'a mut dyn FnMut(FlowRecord) -> io::Result<()>;

impl Look<LookAtFlow<'_>> {
    fn flow(&mut self, element: Element, places: &mut PlaceMap) {
        if self.failed.is_none() {
            let last = self.last;
            let at = self.locate(element.span(), places);
            if let Element::Proof(_) = element {
                // Nothing was lost there.
                self.last = last;
            }
            self.failed = (self.look)(FlowRecord { element, at }).err();
        }
    }
}

pub(super) struct FlowWork<'a> {
    stream: &'a mut FlowStream,
    program: &'a Program,
    pub(super) places: PlaceMap,
    look: Look<LookAtFlow<'a>>,
    statistics: Statistics,
}

impl<'a> FlowWork<'a> {
    pub(super) fn new(follower: &'a mut Follower<'_>, look: LookAtFlow<'a>) -> Self {
        Self {
            program: follower.program,
            stream: follower.begin(),
            places: PlaceMap::new(),
            look: Look::new(look),
            statistics: Statistics::default(),
        }
    }

    /// The source ends.
    pub(super) fn end(self, ending: Ending) -> io::Result<Statistics> {
        let Self { stream, program, mut places, mut look, mut statistics } = self;
        statistics.bytes = places.end().0;
        if ending == Ending::Open {
            stream.forget_incomplete();
        }
        stream.finish(program, &mut |element| {
            statistics.element(&element);
            look.flow(element, &mut places);
        });
        let counts = stream.counts();
        statistics.packets = counts.packets;
        statistics.malformed = counts.malformed;
        look.end(statistics)
    }
}

impl Take for FlowWork<'_> {
    fn places(&mut self) -> &mut PlaceMap {
        &mut self.places
    }

    fn take(&mut self, bytes: &[u8]) {
        let Self { stream, program, places, look, statistics } = self;
        stream.push(bytes, program, &mut |element| {
            statistics.element(&element);
            look.flow(element, places);
        });
    }

    fn interrupt(&mut self, why: Interruption) {
        let Self { stream, program, places, look, statistics } = self;
        let mut take = |element| {
            statistics.element(&element);
            look.flow(element, places);
        };
        match why {
            Interruption::Cut => stream.cut(program, &mut take),
            Interruption::Loss => stream.lose_sync(program, &mut take),
        }
    }

    fn has_failed(&self) -> bool {
        self.look.failed.is_some()
    }
}
