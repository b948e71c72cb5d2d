//! One source's flow, decoded by several threads.
//!
//! ```text
//! this thread:  cut ─▶ segments ─▶ workers ─▶ guesses, in order ─▶ join ─▶ parts, in order
//! a worker:     begins in the middle of the trace, and notes a checkpoint now and then
//! to join:      decode on from where the segment before ended, until the state is that of one of the checkpoints;
//!               take over what the worker found after that; where it is not certain, decode on again
//! ```
//!
//! What comes out is what one thread alone would give: a worker's parts count only where its state was proven. No more
//! segments are in work than a few for each thread, so that memory does not grow with the capture.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use tracewalk::program::Program;
use tracewalk::source::{Checkpoint, FlowStream, SourceConfig};
use tracewalk::span::StreamOffset;

use super::part::{Gathered, Gathering, Last};
use super::segment::{Cut, CutPlace, Cutter, Segment, Whereabouts};
use super::{Follower, Input, Progress};
use crate::Doubting;
use crate::analysis::Growth;
use crate::sink::Part;

/// How the work is spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// How many threads decode; with one, nothing is decoded twice.
    pub threads: usize,
    /// About how many bytes a segment has.
    pub segment: usize,
}

impl Spread {
    /// Over this number of threads.
    #[must_use]
    pub const fn over(threads: usize) -> Self {
        Self { threads, segment: SEGMENT }
    }

    /// For parts that do not grow with the trace. Few of them have to be joined then, and the thread that joins, which
    /// knows little of the program by itself, has little to decode.
    #[must_use]
    pub const fn for_counts(self) -> Self {
        Self { segment: if self.threads <= 1 { SEGMENT_ALONE } else { SEGMENT_OF_COUNTS }, ..self }
    }

    /// For parts that grow so. A size that somebody chose stays.
    #[must_use]
    pub const fn growing(self, growth: Growth) -> Self {
        match growth {
            _ if self.segment != SEGMENT => self,
            Growth::Bounded => self.for_counts(),
            Growth::Lines => self,
            Growth::LongLines => Self { segment: SEGMENT_OF_LONG_LINES, ..self },
        }
    }

    /// How many segments a source has at least for which several threads are worth starting. Each has to learn the program, and
    /// with two the thread that joins does little else: 3 MB that were only counted took longer by two threads than by one.
    const fn least_segments(self) -> usize {
        match self.segment {
            SEGMENT_OF_COUNTS => 4,
            _ => 2,
        }
    }

    /// The parts of a segment of `bytes` bytes, each up to a checkpoint; at least one.
    fn steps(self, bytes: usize) -> impl Iterator<Item = Range<usize>> {
        // Counts that are the same in every part take time for each; lines are decoded again up to the next checkpoint.
        let (growing, longest) = match self.segment {
            SEGMENT_OF_COUNTS => (3, LAST_STEP_OF_COUNTS),
            _ => (1, LAST_STEP),
        };
        let (first, last) =
            ((self.segment / SMALLEST_STEP).clamp(1, FIRST_STEP), (self.segment / longest).max(1));
        let mut next = Some(0_usize);
        std::iter::from_fn(move || {
            let start = next?;
            let end = (start + (start * growing).clamp(first, last)).min(bytes);
            next = (end < bytes).then_some(end);
            Some(start..end)
        })
    }
}

/// A worker's outputs of this many bytes of trace have to fit into memory several times, and joining two segments costs
/// some kilobytes of decoding.
const SEGMENT: usize = 1 << 18;

/// Counts take no room, and a capture of a few megabytes should occupy all threads.
const SEGMENT_OF_COUNTS: usize = 1 << 20;

/// Some hundred bytes of lines come from each byte of trace, so that less of it has to do.
const SEGMENT_OF_LONG_LINES: usize = 1 << 15;

/// One source's bytes are collected from between those of others up to this many. Where they stood takes as much again, or more.
const SEGMENT_ALONE: usize = 1 << 22;

/// How far after a segment's start the first checkpoint is: there a trace has usually said where it is. In a short segment
/// it is this part of it. The next ones lie twice as far (of counts four times), up to an eighth (a quarter) of the segment apart.
const FIRST_STEP: usize = 1 << 10;
const SMALLEST_STEP: usize = 256;
const LAST_STEP: usize = 8;
const LAST_STEP_OF_COUNTS: usize = 4;

/// What a worker found in a segment.
struct Guess<'a, P> {
    at: CutPlace,
    segment: Segment<'a>,
    parts: Vec<GuessedPart<P>>,
}

/// Takes the parts of a source's flow, in order.
pub(super) trait Take<P> {
    /// Takes the next part. The first error ends the work.
    fn part(&mut self, part: Gathered<P>) -> io::Result<()>;

    /// A segment begins after the parts before it. `state` works out what the meaning of its bytes depends on.
    fn segment(&mut self, begun: Begun, state: &mut dyn FnMut() -> Checkpoint) {
        let _ = (begun, state);
    }
}

/// Where a segment begins.
pub(super) struct Begun {
    pub(super) at: CutPlace,
    pub(super) start: StreamOffset,
    pub(super) last: Last,
    /// How many bytes it has.
    pub(super) bytes: u64,
    /// How many bytes of the capture are done with it.
    pub(super) done: u64,
}

impl<P, F: FnMut(Gathered<P>) -> io::Result<()>> Take<P> for F {
    fn part(&mut self, part: Gathered<P>) -> io::Result<()> {
        self(part)
    }
}

/// What a worker found up to a checkpoint, from the one before on.
struct GuessedPart<P> {
    /// Where the checkpoint is in the segment.
    end: usize,
    gathered: Gathered<P>,
    checkpoint: Checkpoint,
    last: Last,
}

impl Follower<'_> {
    /// Follows the program flow of the source's bytes, and calls `take` with all parts of it, in order. Where they end depends on
    /// the number of threads; what they are together does not. All begin as `empty`. The first error of `take` ends the work.
    /// Nobody waits for the [rest](Input::rest) of a capture that is still to come.
    pub fn flow_parts<P: Part>(
        &mut self,
        input: &Input<'_>,
        spread: Spread,
        empty: &P,
        mut take: impl FnMut(Gathered<P>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.parts_to(input, spread, empty, &mut take)
    }

    /// As [`Follower::flow_parts`], for somebody who wants to know where segments begin as well.
    pub(super) fn parts_to<P: Part>(
        &mut self,
        input: &Input<'_>,
        spread: Spread,
        empty: &P,
        take: &mut dyn Take<P>,
    ) -> io::Result<()> {
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
        // What is known already, the workers need not learn.
        let known = &stream.clone();
        let (send, tasks) = channel();
        let tasks = &Mutex::new(tasks);
        std::thread::scope(|scope| {
            for _ in 0..spread.threads {
                let mut empty = empty.clone();
                scope.spawn(move || work(known, (config, program), spread, &mut empty, tasks));
            }
            let result =
                together(segments, input.progress, Join::new(stream, program, empty, take), &send, spread);
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
                // A worker that panicked does not answer; the scope passes its panic on.
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
    /// A worker has it.
    Elsewhere(Receiver<Guess<'a, P>>),
    /// It is decoded when its turn comes.
    Here(Box<(CutPlace, Cut<'a>)>),
}

/// Whether guessing is worth it. There are traces that do not say what workers would have to know: without synchronisation,
/// or with returns to calls from before.
#[derive(Debug, Default)]
struct Trust {
    /// How many segments in a row had to be decoded again.
    in_vain: u32,
    /// How many are decoded without a guess before the next try.
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

    /// Half of a guess, or more, was proven, or was not.
    fn note(&mut self, proven: bool) {
        self.in_vain = if proven { 0 } else { self.in_vain + 1 };
        if self.in_vain == Self::PATIENCE {
            *self = Self { in_vain: 0, pause: Self::PAUSE };
        }
    }
}

/// A segment to decode, and who wants to know.
struct Task<'a, P> {
    at: CutPlace,
    segment: Cut<'a>,
    answer: Sender<Guess<'a, P>>,
}

/// A worker: decodes segments as long as there are any.
fn work<P: Part>(
    known: &FlowStream,
    (config, program): (&SourceConfig, &Program),
    spread: Spread,
    empty: &mut P,
    tasks: &Mutex<Receiver<Task<'_, P>>>,
) {
    // What it learns of the program is of use for the next segment.
    let mut stream = known.clone();
    loop {
        let task = tasks.lock().map(|tasks| tasks.recv());
        let Ok(Ok(Task { at, segment, answer })) = task else { return };
        // Nobody waits for it where the work has ended early.
        let (segment, parts) = guess(&mut stream, (config, program), spread, empty, segment.segment());
        let _ = answer.send(Guess { at, segment, parts });
    }
}

/// Decodes a segment without knowing what came before.
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
    let (mut last, mut doubting) = (Last::default(), Doubting::default());
    let mut parts = Vec::new();
    for range in spread.steps(segment.bytes.len()) {
        let mut gathered = Gathered::behind(doubting, empty.lend());
        let (before, end) = (stream.counts(), range.end);
        let mut gathering = Gathering { gathered: &mut gathered, places: &mut places, last: &mut last };
        segment.feed(range, stream, program, &mut gathering);
        gathered.count(before, stream.counts());
        doubting = gathered.doubting;
        empty.learn(&mut gathered.part);
        last.settle(&mut places);
        parts.push(GuessedPart { end, gathered, checkpoint: stream.checkpoint(program), last });
    }
    segment.places = places.into_now();
    (segment, parts)
}

/// Puts parts together: has decoded everything up to here.
struct Join<'p, P> {
    stream: &'p mut FlowStream,
    program: &'p Program,
    places: Whereabouts,
    last: Last,
    doubting: Doubting,
    empty: P,
    take: &'p mut dyn Take<P>,
}

impl<'p, P: Part> Join<'p, P> {
    fn new(stream: &'p mut FlowStream, program: &'p Program, empty: &P, take: &'p mut dyn Take<P>) -> Self {
        let (places, last) = (Whereabouts::default(), Last::default());
        Self { stream, program, places, last, doubting: Doubting::default(), empty: empty.clone(), take }
    }

    /// Comes to the next segment.
    fn begin(&mut self, at: CutPlace, segment: &mut Segment<'_>) {
        let Self { stream, program, take, last, .. } = self;
        let Segment { start, done, .. } = *segment;
        let begun = Begun { at, start, last: *last, bytes: segment.bytes.len() as u64, done };
        take.segment(begun, &mut || stream.checkpoint(program));
        self.places.go_on(segment.take_places());
    }

    /// Decodes some of the segment, and hands on what is in it.
    fn decode(&mut self, segment: &Segment<'_>, range: Range<usize>) -> io::Result<()> {
        let mut gathered = Gathered::behind(self.doubting, self.empty.lend());
        gathered.statistics.bytes = range.len() as u64;
        let before = self.stream.counts();
        let Self { stream, program, places, last, doubting, empty, take } = self;
        segment.feed(range, stream, program, &mut Gathering { gathered: &mut gathered, places, last });
        gathered.count(before, stream.counts());
        *doubting = gathered.doubting;
        last.settle(places);
        empty.learn(&mut gathered.part);
        take.part(gathered)
    }

    /// Hands on what is in a segment, as far as possible from what a worker found in it. Returns how many of the capture's
    /// bytes are done, and whether that was possible for half of the segment.
    fn join(&mut self, guess: Guess<'_, P>) -> io::Result<(u64, bool)> {
        let Guess { at, mut segment, parts } = guess;
        self.begin(at, &mut segment);
        let mut parts = parts.into_iter();
        let (mut position, mut proven_bytes) = (0, 0);
        while let Some(part) = parts.next() {
            self.decode(&segment, position..part.end)?;
            position = part.end;
            if part.last != self.last || part.gathered.doubting != self.doubting {
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
                self.doubting = part.gathered.doubting;
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
        let mut gathered = Gathered::behind(self.doubting, self.empty.lend());
        let before = self.stream.counts();
        let Self { stream, program, places, last, take, .. } = &mut self;
        stream.finish(program, &mut Gathering { gathered: &mut gathered, places, last });
        gathered.count(before, stream.counts());
        take.part(gathered)
    }
}
