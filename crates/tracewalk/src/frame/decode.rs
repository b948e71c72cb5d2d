//! Frames → the bytes of each owner.
//!
//! ```text
//! bytes ─▶ frames, synchronisation taken out ─▶ held back ─▶ handed out
//!              ▲                                   │
//!              └── once more, at the right place ◀─┘ when they turn out not to be frames
//! ```

mod back;

use alloc::vec::Vec;

use super::align::{Alignment, Frames};
use super::evidence::IdSet;
use super::held::{Held, Places};
use super::layout::Frame;
use super::recover::{DECIDING_FRAMES, Split, Verdict, judge, split};
use super::search::{Search, Start};
use super::unpacker::Unpacker;
use super::watch::Watch;
use super::wire::{Partial, SyncMatcher};
use super::{Account, Cause, FRAME_BYTES, FSYNC, FrameSink, Owner};
use crate::ids::TraceId;
use crate::span::CaptureOffset;

/// What stands between the frames of a capture, and where they start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Framing {
    /// Nothing, as in a trace buffer: a frame every 16 bytes from the first byte on. Barriers are recognised.
    #[default]
    Buffer,
    /// FSYNCs and HSYNCs, as on a trace port. Frames start behind the first FSYNC, at any byte, or where the evidence
    /// says so.
    Port,
    /// As [`Framing::Port`], but it is known where the frames start. FSYNCs are obeyed where they come all the same.
    PortFrom(Alignment),
}

impl Framing {
    /// One in so many frames is looked at closely. A buffer's bytes come from memory and nearly never get lost.
    const fn interval(self) -> u64 {
        match self {
            Self::Buffer => 8,
            Self::Port | Self::PortFrom(_) => 1,
        }
    }
}

/// The incomplete frame at the end of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    /// Where it starts; the end of the capture if there is none.
    pub at: CaptureOffset,
    /// How many bytes it takes, with the HSYNCs in it.
    pub bytes: u64,
}

/// A capture, in pieces of any size, to the bytes of each owner.
///
/// How the capture is cut into pieces makes no difference, except that a run of whole frames may come as one
/// [`Piece`](super::Piece) or as several.
///
/// A deframer watches for signs that bytes were lost or inserted, and finds the frames again by FSYNC or by evidence
/// (see [`Evidence`](super::Evidence)). To be able to take back what turned out to be no frames, it holds the newest
/// frames back: at most 4 KiB of them. [`Deframer::without_recovery`] turns that off. A loss of whole frames leaves no
/// signs.
///
/// ```
/// use tracewalk::frame::{Deframer, Discontinuity, Formatter, FormatterOptions, FrameSink, Framing, Owner, Piece};
/// use tracewalk::ids::TraceId;
///
/// #[derive(Default)]
/// struct Losses(Vec<Discontinuity>);
///
/// impl FrameSink for Losses {
///     fn data(&mut self, _: Owner, _: Piece<'_>) {}
///     fn discontinuity(&mut self, discontinuity: Discontinuity) {
///         self.0.push(discontinuity);
///     }
/// }
///
/// let id = TraceId::new(0x10).expect("a trace source's ID");
/// let mut capture = Vec::new();
/// let mut formatter = Formatter::new(FormatterOptions::default());
/// for packet in 0..800 {
///     formatter.write(id, &[0x84, 0x85 + packet as u8 % 8, 0x42, 0x11], &mut capture);
///     if packet % 20 == 0 {
///         formatter.flush(&mut capture);
///     }
/// }
/// let lost_on_the_wire = 1605..1608;
/// capture.drain(lost_on_the_wire);
///
/// let mut losses = Losses::default();
/// let mut deframer = Deframer::new(Framing::Buffer);
/// deframer.push(&capture, &mut losses);
/// deframer.finish(&mut losses);
/// let [loss] = losses.0.as_slice() else { panic!("one loss, not {:?}", losses.0) };
/// assert_eq!(loss.to_string(), "3 bytes missing or 13 too many (modulo 16): 45 bytes lost at offset 1584");
/// ```
#[derive(Clone, Debug)]
pub struct Deframer {
    framing: Framing,
    state: State,
    /// The start of a frame whose rest has not come yet.
    partial: Partial,
    /// What came of an FSYNC so far, at any alignment.
    sync: SyncMatcher,
    held: Held,
    /// `None` without recovery.
    watch: Option<Watch>,
    unpacker: Unpacker,
    /// Bytes that were taken once and are to be taken again in front of new ones, the next one last.
    again: Vec<(u8, u64)>,
    /// Where the next new byte stands.
    position: u64,
    /// The place behind the last byte that was taken.
    taken: u64,
}

#[derive(Clone, Debug)]
enum State {
    /// The next byte belongs to a frame.
    Synchronised,
    /// It is not known where frames start.
    Searching(Search),
}

/// How many frames behind the newest one are held back. It must outlast the time from a loss to the first doubt.
const HELD_FRAMES: usize = 128;

/// How many frames are taken at a time: few enough to stay in the fastest cache.
const BLOCK_FRAMES: usize = 1024;

impl Deframer {
    /// A deframer for a capture from its first byte.
    #[must_use]
    pub fn new(framing: Framing) -> Self {
        Self {
            framing,
            state: match framing {
                Framing::Port => State::Searching(Search::new(Cause::Start)),
                Framing::PortFrom(start) if start != Alignment::default() => {
                    State::Searching(Search::until(start))
                }
                Framing::Buffer | Framing::PortFrom(_) => State::Synchronised,
            },
            partial: Partial::default(),
            sync: SyncMatcher::default(),
            held: Held::default(),
            watch: Some(Watch::new(None, framing.interval())),
            unpacker: Unpacker::new(),
            again: Vec::new(),
            position: 0,
            taken: 0,
        }
    }

    /// Only these trace IDs can be in the capture: others are a sign of lost bytes. To be called before the first
    /// byte is pushed.
    #[must_use]
    pub fn expecting(mut self, sources: IdSet) -> Self {
        self.watch = self.watch.map(|_| Watch::new(Some(sources), self.framing.interval()));
        self
    }

    /// Takes the frames as they come: only FSYNCs correct where they start. Nothing is held back but an incomplete
    /// frame. To be called before the first byte is pushed.
    #[must_use]
    pub fn without_recovery(mut self) -> Self {
        self.watch = None;
        self
    }

    /// Takes the next bytes of the capture.
    pub fn push(&mut self, input: &[u8], sink: &mut impl FrameSink) {
        let mut input = input;
        while !input.is_empty() {
            self.take_again(sink);
            let taken = self.take(input, sink);
            input = input.get(taken..).unwrap_or_default();
        }
        self.take_again(sink);
    }

    /// The capture ends here: hands out what was held back.
    pub fn finish(&mut self, sink: &mut impl FrameSink) -> Tail {
        loop {
            match &mut self.state {
                State::Synchronised => self.look(true, sink),
                State::Searching(search) => match search.find(self.watch.as_ref()) {
                    Some(start) => self.start_at(start, sink),
                    None => self.unpacker.lose_until(self.taken, search.cause, sink),
                },
            }
            if self.again.is_empty() {
                break;
            }
            self.take_again(sink);
        }
        self.release(self.held.end(), sink);
        let start = self.partial.start().unwrap_or(self.taken);
        self.partial.clear();
        self.unpacker.overhead_until(start);
        let bytes = self.taken - start;
        self.unpacker.tally.tail += bytes;
        self.unpacker.accounted = self.taken;
        Tail { at: CaptureOffset(start), bytes }
    }

    /// What became of the bytes so far. Those that are held back are not in it yet.
    #[must_use]
    pub fn account(&self) -> Account {
        self.unpacker.tally.account()
    }

    /// Up to where all bytes were handed out, or are nobody's.
    pub(super) const fn handed_out(&self) -> u64 {
        self.unpacker.accounted
    }

    /// Whose bytes are handed out next.
    pub(super) fn owner(&self) -> Owner {
        self.unpacker.owner.owner()
    }

    /// How many bytes of each source were handed out, by ID.
    pub(super) fn sources(&self) -> impl Iterator<Item = (TraceId, u64)> {
        self.unpacker.tally.owners().filter_map(|(owner, bytes)| Some((owner.trace_id()?, bytes)))
    }

    /// How often something else was handed out than whole frames that lie one behind the other.
    pub(super) const fn breaks(&self) -> u64 {
        self.unpacker.breaks
    }

    fn is_port(&self) -> bool {
        self.framing != Framing::Buffer
    }

    /// Takes some bytes from the start of `input`, which is not empty; returns how many.
    fn take(&mut self, input: &[u8], sink: &mut impl FrameSink) -> usize {
        let is_at_frame = matches!(self.state, State::Synchronised) && self.partial.start().is_none();
        if is_at_frame && !self.sync.is_nearly_complete() {
            let frames = input.as_chunks().0;
            let taken = self.take_frames(frames.get(..BLOCK_FRAMES).unwrap_or(frames), sink);
            if taken != 0 {
                return taken * FRAME_BYTES;
            }
        }
        let Some(&byte) = input.first() else { return 0 };
        self.position += 1;
        self.take_byte(byte, self.position - 1, sink);
        1
    }

    /// The fast path: takes frames as long as they are in order, and hands out all but the newest ones from where they
    /// lie; returns how many it took.
    fn take_frames(&mut self, frames: &[[u8; FRAME_BYTES]], sink: &mut impl FrameSink) -> usize {
        let Some(watch) = &mut self.watch else {
            let has_sync_byte = |bytes| Frame::new(bytes).has_sync_byte();
            let taken = frames.iter().position(has_sync_byte).unwrap_or(frames.len());
            let frames = frames.get(..taken).unwrap_or_default();
            self.unpacker.frames(Places::Contiguous(self.position), frames, sink);
            self.held.pass(taken);
            self.step_over(frames);
            return taken;
        };
        let usual = watch.look_at(frames);
        if usual == 0 {
            return self.take_deciding_frames(frames, sink);
        }
        let (frames, _) = frames.split_at(usual);
        let (old, new) = frames.split_at(usual.saturating_sub(HELD_FRAMES));
        if !old.is_empty() {
            self.release(self.held.end(), sink);
            self.unpacker.frames(Places::Contiguous(self.position), old, sink);
            self.held.pass(old.len());
        }
        self.held.extend(new, self.position + old.as_flattened().len() as u64);
        self.release(self.held.end().saturating_sub(HELD_FRAMES as u64), sink);
        self.step_over(frames);
        usual
    }

    /// Takes frames that tell whether a doubtful one is right, as many as are missing; returns how many.
    fn take_deciding_frames(&mut self, frames: &[[u8; FRAME_BYTES]], sink: &mut impl FrameSink) -> usize {
        let Some(doubtful) = self.watch.as_ref().map(|watch| watch.next) else { return 0 };
        let missing = (doubtful + DECIDING_FRAMES).saturating_sub(self.held.end());
        let missing = usize::try_from(missing).unwrap_or(usize::MAX);
        let deciding = frames.iter().take(missing).take_while(|bytes| !Frame::new(bytes).has_sync_byte());
        let taken = deciding.count();
        if let Some(deciding @ [_, ..]) = frames.get(..taken) {
            self.held.extend(deciding, self.position);
            self.step_over(deciding);
            self.look(false, sink);
        }
        taken
    }

    /// These frames came next, and have no synchronisation in them.
    fn step_over(&mut self, frames: &[[u8; FRAME_BYTES]]) {
        if let Some([.., last]) = frames.last() {
            self.sync = SyncMatcher::after(*last);
        }
        self.position += frames.as_flattened().len() as u64;
        self.taken = self.position;
    }

    fn take_again(&mut self, sink: &mut impl FrameSink) {
        while let Some((byte, at)) = self.again.pop() {
            self.take_byte(byte, at, sink);
        }
        // Behind the last of them there may have been an HSYNC.
        self.taken = self.position;
    }

    fn take_byte(&mut self, byte: u8, at: u64, sink: &mut impl FrameSink) {
        self.taken = at + 1;
        if let State::Searching(search) = &mut self.state {
            search.take(byte, at);
            self.go_on_searching(byte, sink);
            return;
        }
        self.partial.take(byte, at);
        if self.is_port() {
            if self.sync.take(byte) {
                self.full_sync(sink);
                return;
            }
            self.partial.drop_half_sync();
        }
        if self.partial.is_complete() && !self.is_port() && self.partial.frame().is_barrier() {
            self.partial.clear();
            self.prove(sink);
            self.unpacker.overhead_until(self.taken);
            self.unpacker.lose_until(self.taken, Cause::Barrier, sink);
            self.restart_watch();
            return;
        }
        // Without recovery only an FSYNC can help after an ID that does not exist. An `ff` in a mixed place may be
        // the start of one as long as only `ff`s follow it.
        let decided = self.partial.is_complete() || !self.sync.is_in_progress();
        if self.is_port() && self.watch.is_none() && decided && self.partial.frame().has_sync_byte() {
            self.unpacker.overhead_until(self.partial.start().unwrap_or(at));
            self.partial.clear();
            self.state = State::Searching(Search::new(Cause::ImpossibleId));
            return;
        }
        if self.partial.is_complete() {
            self.held.push(&self.partial);
            self.partial.clear();
            self.look(false, sink);
        }
    }

    /// An FSYNC was completed.
    fn full_sync(&mut self, sink: &mut impl FrameSink) {
        let sync = self.taken.saturating_sub(FSYNC.len() as u64);
        if self.partial.start() == Some(sync) {
            self.partial.clear();
            self.prove(sink);
        } else if let Some(Split { keep, resume, .. }) = self.split_before_sync() {
            self.restart(keep, resume, Cause::MisplacedSync, sink);
            return;
        } else {
            // What is held may be right; the frame that the FSYNC cut is not.
            self.release(self.held.end(), sink);
            self.unpacker.overhead_until(self.partial.start().unwrap_or(sync).min(sync));
            self.partial.clear();
            self.unpacker.lose_until(sync, Cause::MisplacedSync, sink);
            self.restart_watch();
        }
        self.unpacker.overhead_until(self.taken);
    }

    /// Frames end where an FSYNC is: in front of a misplaced one, from some place on, they are not where they seemed.
    /// `None` where nothing tells that it is farther away than the frame that the FSYNC cuts.
    fn split_before_sync(&self) -> Option<Split> {
        /// A few frames at the wrong alignment have so much against them, a healthy one never has.
        const CLEARLY: i64 = 24;
        let watch = self.watch.as_ref()?;
        let held = self.held.frames(self.held.first(), self.held.end()).as_flattened();
        let mut region = [held, self.partial.bytes()].concat();
        region.truncate(region.len().checked_sub(FSYNC.len())?);
        let alignment = Alignment::new(u8::try_from(region.len() % FRAME_BYTES).ok()?)?;
        let ends_with_region = Frames::new(&region, alignment).last()?.end == region.len();
        let usable = alignment != Alignment::default() && ends_with_region;
        let found = usable.then(|| split(&region, alignment, watch, self.owner()))?;
        (found.gain >= CLEARLY).then_some(Split { keep: self.held.first() + found.keep, ..found })
    }

    /// The frames up to here are where they were taken to be.
    fn prove(&mut self, sink: &mut impl FrameSink) {
        if let Some(watch) = &mut self.watch {
            watch.be_quiet_until(self.held.end());
        }
        self.look(false, sink);
        self.release(self.held.end(), sink);
    }

    /// Looks at the new frames and hands out the old ones. `is_end` says that nothing comes behind them.
    fn look(&mut self, is_end: bool, sink: &mut impl FrameSink) {
        loop {
            let Some(watch) = &mut self.watch else {
                self.release(self.held.end(), sink);
                return;
            };
            let new = self.held.frames(watch.next, self.held.end());
            let Some(doubtful) = new.iter().find(|bytes| watch.look(bytes)) else { break };
            if !is_end && self.held.end() - watch.next < DECIDING_FRAMES {
                break;
            }
            match judge(&self.held, watch, self.unpacker.owner.owner(), self.framing != Framing::Buffer) {
                Verdict::Unfounded => watch.acquit(doubtful),
                Verdict::Realign { keep, resume, alignment } => {
                    self.restart(keep, resume, Cause::Shifted { by: alignment }, sink);
                    return;
                }
                Verdict::Lost { keep } => {
                    self.lose_frames(keep, sink);
                    return;
                }
            }
        }
        if let Some(watch) = &self.watch {
            self.release(watch.next.saturating_sub(HELD_FRAMES as u64), sink);
        }
    }

    /// Hands out the frames in front of number `until`.
    fn release(&mut self, until: u64, sink: &mut impl FrameSink) {
        while let Some((places, frames)) = self.held.front(until) {
            self.unpacker.frames(places, frames, sink);
            let count = frames.len();
            self.held.drop_front(count);
        }
    }

    fn restart_watch(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.restart(self.held.end());
        }
    }

    /// A byte was added to the search.
    fn go_on_searching(&mut self, byte: u8, sink: &mut impl FrameSink) {
        let State::Searching(search) = &mut self.state else { return };
        if self.sync.take(byte) {
            if let Some(start) = search.find_before_sync(self.watch.as_ref()) {
                self.start_at(start, sink);
                return;
            }
            let cause = search.cause;
            self.unpacker.lose_until(self.taken.saturating_sub(FSYNC.len() as u64), cause, sink);
            self.unpacker.overhead_until(self.taken);
            self.state = State::Synchronised;
            self.restart_watch();
        } else if search.skip == Some(search.bytes.len()) {
            let lost = search.bytes.len();
            self.start_behind(lost, sink);
        } else if let Some(start) = search.find_now_and_then(self.watch.as_ref()) {
            self.start_at(start, sink);
        }
    }

    /// The search found frames.
    fn start_at(&mut self, start: Start, sink: &mut impl FrameSink) {
        if let Some(watch) = &mut self.watch {
            watch.trust(start.sources);
        }
        self.start_behind(start.index, sink);
    }

    /// The search ends: frames start behind the first `lost` of its bytes.
    fn start_behind(&mut self, lost: usize, sink: &mut impl FrameSink) {
        let State::Searching(search) = core::mem::replace(&mut self.state, State::Synchronised) else {
            return;
        };
        let end = search.places.get(lost).copied().unwrap_or(self.taken);
        self.unpacker.lose_until(end, search.cause, sink);
        self.again.extend(search.bytes.into_iter().zip(search.places).skip(lost).rev());
        self.sync = SyncMatcher::default();
        self.restart_watch();
    }
}
