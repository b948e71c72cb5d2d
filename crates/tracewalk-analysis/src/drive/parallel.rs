//! One source's flow, decoded by several threads.
//!
//! ```text
//! this thread:  cut ─▶ segments ─▶ workers ─▶ guesses, in order ─▶ join ─▶ parts, in order
//! a worker:     begins in the middle of the trace, and notes checkpoints at intervals
//! to join:      decode on from the end of the previous segment, until the state is that of one of the checkpoints;
//!               take over the worker's parts after that; decode again the parts that are not certain
//! ```
//!
//! The result is that of a single thread: a worker's parts count only after its state was proven. Each thread has at most a few
//! segments in work, so that memory does not grow with the capture.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use tracewalk::frame::PlaceMap;
use tracewalk::program::Program;
use tracewalk::source::{Checkpoint, FlowStream, SourceConfig};
use tracewalk::span::StreamOffset;

use super::part::{Gathered, Gathering, Last};
use super::segment::{Cut, CutPlace, Cutter, Segment, Whereabouts};
use super::{Ending, Interruption, Take};
use super::{Follower, Input, Progress, Spread};
use crate::Doubt;
use crate::sink::Part;

/// A worker's parts of a segment.
struct Guess<'a, P> {
    at: CutPlace,
    segment: Segment<'a>,
    parts: Vec<GuessedPart<P>>,
}

/// Takes the parts of a source's flow, in order.
pub(super) trait TakeParts<P> {
    /// Takes the next part. The first error ends the work.
    fn part(&mut self, part: Gathered<P>) -> io::Result<()>;

    /// A segment begins after the previous parts. `state` returns the state on which the meaning of its bytes depends.
    fn segment(&mut self, begun: Begun, state: &mut dyn FnMut() -> Checkpoint) {
        let _ = (begun, state);
    }
}

/// The beginning of a segment.
pub(super) struct Begun {
    pub(super) at: CutPlace,
    pub(super) start: StreamOffset,
    pub(super) last: Last,
    /// The number of the segment's bytes.
    pub(super) bytes: u64,
    /// The number of the capture's bytes that are done at its end.
    pub(super) done: u64,
}

impl<P, F: FnMut(Gathered<P>) -> io::Result<()>> TakeParts<P> for F {
    fn part(&mut self, part: Gathered<P>) -> io::Result<()> {
        self(part)
    }
}

/// A worker's part between two checkpoints.
struct GuessedPart<P> {
    /// The checkpoint's offset in the segment.
    end: usize,
    gathered: Gathered<P>,
    checkpoint: Checkpoint,
    last: Last,
}

impl Follower<'_> {
    /// Follows the program flow of the source's bytes, and calls `take` with all parts in order. Their boundaries depend on the
    /// number of threads; the joined result does not. Each part begins as `empty`. If the [rest](Input::rest) of the
    /// capture is still to come, this thread follows each piece as it arrives.
    ///
    /// # Errors
    ///
    /// The first error of `take`, which ends the work.
    pub fn flow_parts<P: Part>(
        &mut self,
        input: &Input<'_>,
        spread: Spread,
        empty: &P,
        mut take: impl FnMut(Gathered<P>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.parts_to(input, spread, empty, &mut take)
    }

    /// As [`Follower::flow_parts`], and also reports where segments begin.
    pub(super) fn parts_to<P: Part>(
        &mut self,
        input: &Input<'_>,
        spread: Spread,
        empty: &P,
        take: &mut dyn TakeParts<P>,
    ) -> io::Result<()> {
        if input.rest.is_some() {
            let program = self.program;
            let join = Join::new(self.begin(), program, empty, take);
            let mut arriving = Arriving { join, result: Ok(()) };
            let ending = input.feed(&mut arriving)?;
            let Arriving { join, result } = arriving;
            if ending == Ending::Open {
                join.stream.forget_incomplete();
            }
            return result.and_then(|()| join.finish());
        }
        let mut cutter = Cutter::new(input.capture, &input.carrier, spread.segment);
        let mut segments = std::iter::from_fn(|| {
            let at = cutter.place();
            cutter.next().map(|cut| (at, cut))
        });
        let (config, program) = (self.config, self.program);
        let stream = self.begin();
        let synchronises = Checkpoint::in_the_middle(config, StreamOffset(0)).is_some();
        let least = spread.least_segments();
        let first = segments.by_ref().take(least).collect::<Vec<_>>();
        let is_short = first.len() < least;
        let segments = first.into_iter().chain(segments);
        if spread.threads <= 1 || is_short || !synchronises {
            return alone(segments, input.progress, Join::new(stream, program, empty, take));
        }
        // Workers start with the present knowledge of the program.
        let known = &stream.clone();
        let (send, tasks) = channel();
        let tasks = &Mutex::new(tasks);
        std::thread::scope(|scope| {
            let begins = |_: &usize| {
                let mut empty = empty.clone();
                let work = move || work(known, (config, program), spread, &mut empty, tasks);
                std::thread::Builder::new().spawn_scoped(scope, work).is_ok()
            };
            // The system may refuse threads: this one can do all the work.
            let threads = (0..spread.threads).take_while(begins).count();
            let join = Join::new(stream, program, empty, take);
            if threads == 0 {
                return alone(segments, input.progress, join);
            }
            let result = together(segments, input.progress, join, &send, Spread { threads, ..spread });
            drop(send);
            result
        })
    }
}

fn alone<'a, P: Part>(
    segments: impl Iterator<Item = (CutPlace, Cut<'a>)>,
    progress: &dyn Progress,
    mut join: Join<'_, P>,
) -> io::Result<()> {
    for (at, cut) in segments {
        let mut segment = cut.segment();
        join.begin(at, &mut segment);
        join.decode(&segment, 0..segment.bytes.len())?;
        if !progress.done(segment.done) {
            join.stream.forget_incomplete();
            break;
        }
    }
    join.finish()
}

fn together<'a, P: Part>(
    mut segments: impl Iterator<Item = (CutPlace, Cut<'a>)>,
    progress: &dyn Progress,
    mut join: Join<'_, P>,
    tasks: &Sender<Task<'a, P>>,
    spread: Spread,
) -> io::Result<()> {
    let mut in_work = VecDeque::new();
    let mut trust = Trust::default();
    loop {
        while in_work.len() < 2 * spread.threads {
            let Some((at, segment)) = segments.next() else { break };
            in_work.push_back(if trust.is_left() {
                let (answer, guess) = channel();
                if tasks.send(Task { at, segment, answer }).is_err() {
                    break;
                }
                InWork::Elsewhere(guess)
            } else {
                InWork::Here(Box::new((at, segment)))
            });
        }
        let done = match in_work.pop_front() {
            Some(InWork::Elsewhere(guess)) => {
                // A worker that panicked sends nothing; the scope propagates its panic.
                let Ok(guess) = guess.recv() else { break };
                let (done, proven) = join.join(guess)?;
                trust.note(proven);
                done
            }
            Some(InWork::Here(here)) => {
                let (at, segment) = *here;
                let mut segment = segment.segment();
                join.begin(at, &mut segment);
                join.decode(&segment, 0..segment.bytes.len())?;
                segment.done
            }
            None => break,
        };
        if !progress.done(done) {
            join.stream.forget_incomplete();
            break;
        }
    }
    join.finish()
}

/// A segment that is not joined yet.
enum InWork<'a, P> {
    /// A worker has the segment.
    Elsewhere(Receiver<Guess<'a, P>>),
    /// The joining thread decodes the segment in its turn.
    Here(Box<(CutPlace, Cut<'a>)>),
}

/// Whether guessing pays. Some traces lack the state that workers need: those without synchronisation, or with returns to earlier
/// calls.
#[derive(Debug, Default)]
struct Trust {
    /// The number of segments in a row that had to be decoded again.
    in_vain: u32,
    /// The number of segments to decode without a guess before the next try.
    pause: u32,
}

impl Trust {
    /// The number of failed guesses that end guessing for a while.
    const PATIENCE: u32 = 16;
    const PAUSE: u32 = 64;

    /// Whether the next segment should be guessed.
    fn is_left(&mut self) -> bool {
        self.pause = self.pause.saturating_sub(1);
        self.pause == 0
    }

    /// Notes whether at least half of a guess was proven.
    fn note(&mut self, proven: bool) {
        self.in_vain = if proven { 0 } else { self.in_vain + 1 };
        if self.in_vain == Self::PATIENCE {
            *self = Self { in_vain: 0, pause: Self::PAUSE };
        }
    }
}

/// A segment to decode, and the receiver of the result.
struct Task<'a, P> {
    at: CutPlace,
    segment: Cut<'a>,
    answer: Sender<Guess<'a, P>>,
}

/// A worker: decodes segments until there are no more.
fn work<P: Part>(
    known: &FlowStream,
    (config, program): (&SourceConfig, &Program),
    spread: Spread,
    empty: &mut P,
    tasks: &Mutex<Receiver<Task<'_, P>>>,
) {
    // The stream's knowledge of the program serves the next segment.
    let mut stream = known.clone();
    loop {
        let task = tasks.lock().map(|tasks| tasks.recv());
        let Ok(Ok(Task { at, segment, answer })) = task else { return };
        // The receiver is gone if the work ended early.
        let (segment, parts) = guess(&mut stream, (config, program), spread, empty, segment.segment());
        let _ = answer.send(Guess { at, segment, parts });
    }
}

/// Decodes a segment without the state before it.
fn guess<'a, P: Part>(
    stream: &mut FlowStream,
    (config, program): (&SourceConfig, &Program),
    spread: Spread,
    empty: &mut P,
    mut segment: Segment<'a>,
) -> (Segment<'a>, Vec<GuessedPart<P>>) {
    if let Some(unknown) = Checkpoint::in_the_middle(config, segment.start) {
        stream.go_on_from(&unknown, program);
    }
    let mut places = Whereabouts::default();
    places.go_on(segment.take_places());
    let (mut last, mut doubt) = (Last::default(), Doubt::default());
    let mut parts = Vec::new();
    for range in spread.steps(segment.bytes.len()) {
        let mut gathered = Gathered::after(doubt, empty.with_tables());
        let (before, end) = (stream.counts(), range.end);
        let mut gathering = Gathering { gathered: &mut gathered, places: &mut places, last: &mut last };
        segment.feed(range, stream, program, &mut gathering);
        gathered.count(before, stream.counts());
        doubt = gathered.doubt;
        empty.take_tables(&mut gathered.part);
        last.settle(&mut places);
        parts.push(GuessedPart { end, gathered, checkpoint: stream.checkpoint(program), last });
    }
    segment.places = places.into_now();
    (segment, parts)
}

/// Joins parts: has decoded everything up to here.
struct Join<'p, P> {
    stream: &'p mut FlowStream,
    program: &'p Program,
    places: Whereabouts,
    last: Last,
    doubt: Doubt,
    empty: P,
    take: &'p mut dyn TakeParts<P>,
}

impl<'p, P: Part> Join<'p, P> {
    fn new(
        stream: &'p mut FlowStream,
        program: &'p Program,
        empty: &P,
        take: &'p mut dyn TakeParts<P>,
    ) -> Self {
        let (places, last) = (Whereabouts::default(), Last::default());
        Self { stream, program, places, last, doubt: Doubt::default(), empty: empty.clone(), take }
    }

    /// Begins the next segment.
    fn begin(&mut self, at: CutPlace, segment: &mut Segment<'_>) {
        let Self { stream, program, take, last, .. } = self;
        let Segment { start, done, .. } = *segment;
        let begun = Begun { at, start, last: *last, bytes: segment.bytes.len() as u64, done };
        take.segment(begun, &mut || stream.checkpoint(program));
        self.places.go_on(segment.take_places());
    }

    /// Decodes a range of the segment, and hands on its part.
    fn decode(&mut self, segment: &Segment<'_>, range: Range<usize>) -> io::Result<()> {
        self.gather(range.len(), |stream, program, sink| segment.feed(range, stream, program, sink))
    }

    /// Decodes some bytes, which `feed` hands to the stream, and hands on their part.
    fn gather(
        &mut self,
        bytes: usize,
        feed: impl FnOnce(&mut FlowStream, &Program, &mut Gathering<'_, P>),
    ) -> io::Result<()> {
        let mut gathered = Gathered::after(self.doubt, self.empty.with_tables());
        gathered.statistics.bytes = bytes as u64;
        let before = self.stream.counts();
        let Self { stream, program, places, last, doubt, empty, take } = self;
        feed(stream, program, &mut Gathering { gathered: &mut gathered, places, last });
        gathered.count(before, stream.counts());
        *doubt = gathered.doubt;
        last.settle(places);
        empty.take_tables(&mut gathered.part);
        take.part(gathered)
    }

    /// Hands on the parts of a segment, as far as possible those of the worker. Returns the number of the capture's bytes that
    /// are done, and whether the worker's parts covered half of the segment.
    fn join(&mut self, guess: Guess<'_, P>) -> io::Result<(u64, bool)> {
        let Guess { at, mut segment, parts } = guess;
        self.begin(at, &mut segment);
        let mut parts = parts.into_iter();
        let (mut position, mut proven_bytes) = (0, 0);
        while let Some(part) = parts.next() {
            self.decode(&segment, position..part.end)?;
            position = part.end;
            if part.last != self.last || part.gathered.doubt != self.doubt {
                continue;
            }
            let here = self.stream.checkpoint(self.program);
            if !here.proves(&part.checkpoint) {
                continue;
            }
            let is_certain = |next: &&GuessedPart<P>| next.checkpoint.is_certain(&here, &part.checkpoint);
            let certain = parts.as_slice().iter().take_while(is_certain).count();
            if certain == 0 {
                continue;
            }
            let mut proven = Vec::with_capacity(certain);
            for mut part in parts.by_ref().take(certain) {
                part.gathered.statistics.bytes = (part.end - position) as u64;
                self.doubt = part.gathered.doubt;
                self.take.part(part.gathered)?;
                proven_bytes += part.end - position;
                (position, self.last) = (part.end, part.last);
                proven.push(part.checkpoint);
            }
            self.stream.go_on_from(&here.continued(&part.checkpoint, &proven), self.program);
        }
        Ok((segment.done, proven_bytes * 2 >= segment.bytes.len()))
    }

    /// The source ends here.
    fn finish(mut self) -> io::Result<()> {
        self.gather(0, |stream, program, sink| stream.finish(program, sink))
    }
}

/// Follows bytes as they arrive, a part for each piece.
struct Arriving<'p, P> {
    join: Join<'p, P>,
    result: io::Result<()>,
}

impl<P: Part> Take for Arriving<'_, P> {
    fn places(&mut self) -> &mut PlaceMap {
        self.join.places.now()
    }

    fn take(&mut self, bytes: &[u8]) {
        if self.result.is_ok() && !bytes.is_empty() {
            self.result =
                self.join.gather(bytes.len(), |stream, program, sink| stream.push(bytes, program, sink));
        }
    }

    fn interrupt(&mut self, why: Interruption) {
        if self.result.is_ok() {
            self.result = self.join.gather(0, |stream, program, sink| match why {
                Interruption::Cut => stream.cut(program, sink),
                Interruption::Loss => stream.lose_sync(program, sink),
            });
        }
    }

    fn has_failed(&self) -> bool {
        self.result.is_err()
    }
}
