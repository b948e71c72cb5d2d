//! Frames → the bytes of each owner, if bytes may be missing.
//!
//! ```text
//! bytes ─▶ Framer ─▶ watched, held back ─▶ Unpacker
//!            ▲              │
//!            └── again, from the right place, when they turn out not to be frames
//! ```

use alloc::vec::Vec;

use super::super::account::Account;
use super::super::alignment::FrameAlignment;
use super::super::deframer::{Deframer, Framing, Tail};
use super::super::framer::Completed;
use super::super::layout::{FRAME_BYTES, FSYNC};
use super::super::owner::IdSet;
use super::super::partial::FramePlaces;
use super::super::sink::{Cause, FrameSink};
use super::super::unpacker::Unpacker;
use super::held::{Held, with_half_syncs};
use super::judge::{DECIDING_FRAMES, Split, Verdict, judge, split};
use super::ranking::Frames;
use super::search::{Search, Start};
use super::watch::Watch;

/// A [`Deframer`] that finds frames again after bytes were lost or inserted.
///
/// The deframer watches for signs that frames are not where they seem, and finds them by FSYNC or by evidence
/// (see [`AlignmentEvidence`](super::AlignmentEvidence)). It holds back the newest frames, at most 4 KiB, so
/// that bytes that turn out not to be frames can be read again. A loss of whole frames leaves no signs.
///
/// How the capture is cut into pieces makes no difference, except that a run of whole frames may come as one
/// [`Piece`](super::super::Piece) or as several.
///
/// ```
/// use tracewalk::frame::{
///     Discontinuity, Formatter, FormatterOptions, FrameSink, Framing, Owner, Piece, RecoveringDeframer,
/// };
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
/// let mut deframer = RecoveringDeframer::new(Framing::Buffer);
/// deframer.push(&capture, &mut losses);
/// deframer.finish(&mut losses);
/// let [loss] = losses.0.as_slice() else { panic!("one loss, not {:?}", losses.0) };
/// assert_eq!(loss.to_string(), "3 bytes missing or 13 too many (modulo 16): 45 bytes lost at offset 1584");
/// ```
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RecoveringDeframer {
    framing: Framing,
    /// Always synchronised, because this type does the searching.
    deframer: Deframer,
    /// Present while the start of frames is unknown.
    search: Option<Search>,
    held: Held,
    watch: Watch,
    /// Bytes that were taken once and are to be taken again before new ones, the next one last.
    again: Vec<(u8, u64)>,
}

/// The number of newest frames that are held back. The first doubt after a loss must come within this number.
const HELD_FRAMES: usize = 128;

impl RecoveringDeframer {
    /// A deframer for a capture from its first byte.
    #[must_use]
    pub fn new(framing: Framing) -> Self {
        Self::with_watch(framing, Watch::new(None, sampling_interval(framing)))
    }

    /// As [`RecoveringDeframer::new`], for a capture that can have these trace IDs only: others are a sign of lost bytes.
    #[must_use]
    pub fn expecting(framing: Framing, sources: IdSet) -> Self {
        Self::with_watch(framing, Watch::new(Some(sources), sampling_interval(framing)))
    }

    fn with_watch(framing: Framing, watch: Watch) -> Self {
        let search = match framing {
            Framing::Port => Some(Search::new(Cause::Start)),
            Framing::PortFrom(start) if start != FrameAlignment::default() => Some(Search::until(start)),
            Framing::Buffer | Framing::PortFrom(_) => None,
        };
        let deframer = Deframer::synchronised(framing);
        Self { framing, deframer, search, held: Held::default(), watch, again: Vec::new() }
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

    /// Ends the capture: hands out the bytes that were held back.
    pub fn finish(&mut self, sink: &mut impl FrameSink) -> Tail {
        loop {
            match self.search.as_ref().map(|search| (search.find(&self.watch), search.cause)) {
                None => self.look(true, sink),
                Some((Some(start), _)) => self.start_at(start, sink),
                Some((None, cause)) => {
                    let end = self.deframer.framer.taken();
                    self.deframer.unpacker.lose_until(end, cause, sink);
                }
            }
            if self.again.is_empty() {
                break;
            }
            self.take_again(sink);
        }
        self.release(self.held.end(), sink);
        self.deframer.finish(sink)
    }

    /// The account of the bytes so far, without those that are held back.
    #[must_use]
    pub fn account(&self) -> Account {
        self.deframer.account()
    }

    /// The owner of the next bytes, and the bytes that were handed out.
    pub(in super::super) const fn unpacker(&self) -> &Unpacker {
        &self.deframer.unpacker
    }

    /// Takes some bytes from the start of `input`, which is not empty; returns how many.
    fn take(&mut self, input: &[u8], sink: &mut impl FrameSink) -> usize {
        if self.search.is_none() {
            let taken = self.take_frames(self.deframer.framer.whole_frames(input), sink);
            if taken != 0 {
                return taken * FRAME_BYTES;
            }
        }
        let passed = self.take_unframed(input, sink);
        if passed != 0 {
            return passed;
        }
        let Some(&byte) = input.first() else { return 0 };
        let at = self.deframer.framer.advance();
        self.take_byte(byte, at, sink);
        1
    }

    /// Takes bytes during a search, up to the next look or the possible end of an FSYNC. Returns the number
    /// of bytes taken.
    fn take_unframed(&mut self, input: &[u8], sink: &mut impl FrameSink) -> usize {
        let Some(search) = &mut self.search else { return 0 };
        let room = search.room();
        let bytes = input.get(..room).unwrap_or(input);
        let bytes = bytes.split(|byte| *byte == FSYNC[3]).next().unwrap_or_default();
        if !bytes.is_empty() {
            search.take_all(bytes, self.deframer.framer.position());
            self.deframer.framer.pass_over_all(bytes);
            self.go_on_searching(false, sink);
        }
        bytes.len()
    }

    /// The fast path: takes frames as long as they are in order, and hands out all but the newest ones
    /// directly from the input; returns the number of frames taken.
    fn take_frames(&mut self, frames: &[[u8; FRAME_BYTES]], sink: &mut impl FrameSink) -> usize {
        let framer = &self.deframer.framer;
        let usual = self.watch.look_at(frames, |bytes| framer.may_be_sync(bytes));
        if usual == 0 {
            return self.take_deciding_frames(frames, sink);
        }
        let position = self.deframer.framer.position();
        let (frames, _) = frames.split_at(usual);
        let (old, new) = frames.split_at(usual.saturating_sub(HELD_FRAMES));
        if !old.is_empty() {
            self.release(self.held.end(), sink);
            self.deframer.unpacker.frames(FramePlaces::Contiguous(position), old, sink);
            self.held.pass(old.len());
        }
        self.held.extend(new, position + old.as_flattened().len() as u64);
        self.release(self.held.end().saturating_sub(HELD_FRAMES as u64), sink);
        self.deframer.framer.step_over(frames);
        usual
    }

    /// Takes frames that show whether a doubtful one is right, as many as are missing; returns how many.
    fn take_deciding_frames(&mut self, frames: &[[u8; FRAME_BYTES]], sink: &mut impl FrameSink) -> usize {
        let missing = (self.watch.next + DECIDING_FRAMES).saturating_sub(self.held.end());
        let missing = usize::try_from(missing).unwrap_or(usize::MAX);
        let deciding = self.deframer.framer.without_sync(frames.get(..missing).unwrap_or(frames));
        if !deciding.is_empty() {
            self.held.extend(deciding, self.deframer.framer.position());
            self.deframer.framer.step_over(deciding);
            self.look(false, sink);
        }
        deciding.len()
    }

    fn take_again(&mut self, sink: &mut impl FrameSink) {
        while let Some((byte, at)) = self.again.pop() {
            self.take_byte(byte, at, sink);
        }
        // An HSYNC may have followed the last of these bytes.
        self.deframer.framer.take_all();
    }

    fn take_byte(&mut self, byte: u8, at: u64, sink: &mut impl FrameSink) {
        if let Some(search) = &mut self.search {
            search.take(byte, at);
            let completes_sync = self.deframer.framer.pass_over(byte, at);
            self.go_on_searching(completes_sync, sink);
            return;
        }
        match self.deframer.framer.take(byte, at) {
            Some(Completed::Frame) => {
                self.held.push(&self.deframer.framer.partial);
                self.deframer.framer.partial.clear();
                self.look(false, sink);
            }
            Some(Completed::FullSync) => self.full_sync(sink),
            Some(Completed::Barrier) => {
                self.deframer.framer.partial.clear();
                self.prove(sink);
                self.deframer.barrier(sink);
                self.restart_watch();
            }
            None => {}
        }
    }

    /// Handles a completed FSYNC.
    fn full_sync(&mut self, sink: &mut impl FrameSink) {
        let framer = &mut self.deframer.framer;
        if framer.partial.start() == Some(framer.full_sync_start()) {
            framer.partial.clear();
            self.prove(sink);
        } else if let Some(Split { keep, resume, .. }) = self.split_before_sync() {
            self.restart(keep, resume, Cause::MisplacedSync, sink);
            return;
        } else {
            // The bytes held back may be right; the frame that the FSYNC cut is not.
            self.release(self.held.end(), sink);
            self.restart_watch();
        }
        self.deframer.full_sync(sink);
    }

    /// Frames end at an FSYNC, so the frames before a misplaced FSYNC are misaligned from some place on.
    /// Finds that place; `None` if nothing shows that it lies before the frame that the FSYNC cuts.
    fn split_before_sync(&self) -> Option<Split> {
        /// A few frames at the wrong alignment have this much against them; a healthy frame never has.
        const CLEARLY: i64 = 24;
        let held = self.held.frames(self.held.first(), self.held.end()).as_flattened();
        let mut region = [held, self.deframer.framer.partial.bytes()].concat();
        region.truncate(region.len().checked_sub(FSYNC.len())?);
        let alignment = FrameAlignment::new(u8::try_from(region.len() % FRAME_BYTES).ok()?)?;
        let ends_with_region = Frames::new(&region, alignment).last()?.end == region.len();
        let usable = alignment != FrameAlignment::default() && ends_with_region;
        let owner = self.unpacker().owner.owner();
        let found = usable.then(|| split(&region, alignment, &self.watch, owner))?;
        (found.gain >= CLEARLY).then_some(Split { keep: self.held.first() + found.keep, ..found })
    }

    /// Records that the frames so far are aligned.
    fn prove(&mut self, sink: &mut impl FrameSink) {
        self.watch.be_quiet_until(self.held.end());
        self.look(false, sink);
        self.release(self.held.end(), sink);
    }

    /// Looks at the new frames and hands out the old ones. `is_end` states that no frames follow.
    fn look(&mut self, is_end: bool, sink: &mut impl FrameSink) {
        loop {
            let Self { watch, held, deframer, framing, .. } = self;
            let new = held.frames(watch.next, held.end());
            let Some(doubtful) = new.iter().find(|bytes| watch.look(bytes)) else { break };
            if !is_end && held.end() - watch.next < DECIDING_FRAMES {
                break;
            }
            match judge(held, watch, deframer.unpacker.owner.owner(), *framing != Framing::Buffer) {
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
        self.release(self.watch.next.saturating_sub(HELD_FRAMES as u64), sink);
    }

    /// Hands out the frames before number `until`.
    fn release(&mut self, until: u64, sink: &mut impl FrameSink) {
        while let Some((places, frames)) = self.held.front(until) {
            self.deframer.unpacker.frames(places, frames, sink);
            let count = frames.len();
            self.held.drop_front(count);
        }
    }

    fn restart_watch(&mut self) {
        self.watch.restart(self.held.end());
    }

    /// Continues the search after a byte, which may have completed an FSYNC.
    fn go_on_searching(&mut self, completes_sync: bool, sink: &mut impl FrameSink) {
        let Some(search) = &mut self.search else { return };
        if completes_sync {
            if let Some(start) = search.find_before_sync(&self.watch) {
                self.start_at(start, sink);
                return;
            }
            self.deframer.first_full_sync(search.cause, sink);
            self.search = None;
            self.restart_watch();
        } else if search.skip == Some(search.bytes.len()) {
            let lost = search.bytes.len();
            self.start_after(lost, sink);
        } else if let Some(start) = search.find_now_and_then(&self.watch) {
            self.start_at(start, sink);
        }
    }

    /// Ends the search at the frames that it found.
    fn start_at(&mut self, start: Start, sink: &mut impl FrameSink) {
        self.watch.trust(start.sources);
        self.start_after(start.index, sink);
    }

    /// Ends the search: frames start after the first `lost` of its bytes.
    fn start_after(&mut self, lost: usize, sink: &mut impl FrameSink) {
        let Some(search) = self.search.take() else { return };
        let end = search.places.get(lost).copied().unwrap_or(self.deframer.framer.taken());
        self.deframer.unpacker.lose_until(end, search.cause, sink);
        self.again.extend(search.bytes.into_iter().zip(search.places).skip(lost).rev());
        self.deframer.framer.start_frame();
        self.restart_watch();
    }

    /// Keeps only the frames before `keep`. Continues with byte `resume`, counted from the first held frame's
    /// start.
    fn restart(&mut self, keep: u64, resume: usize, cause: Cause, sink: &mut impl FrameSink) {
        let (mut bytes, lost) = self.take_back(keep, resume, sink);
        self.deframer.unpacker.overhead_until(lost);
        let end = bytes.first().map_or(self.deframer.framer.taken(), |&(_, at)| at);
        let cause = if lost == 0 { Cause::Start } else { cause };
        self.deframer.unpacker.lose_until(end, cause, sink);
        bytes.reverse();
        self.again.append(&mut bytes);
        self.restart_watch();
    }

    /// Keeps only the frames before `keep`, and searches for the next one.
    fn lose_frames(&mut self, keep: u64, sink: &mut impl FrameSink) {
        let index = usize::try_from(keep - self.held.first()).unwrap_or(usize::MAX);
        let (mut bytes, lost) = self.take_back(keep, index.saturating_mul(FRAME_BYTES) + 1, sink);
        self.deframer.unpacker.overhead_until(lost);
        bytes.reverse();
        self.again.append(&mut bytes);
        self.search = Some(Search::new(Cause::NoFrames));
    }

    /// Hands out the frames before `keep`, and takes back all bytes from byte `resume` on, counted from the
    /// first held frame's start. Returns them with their places and the HSYNCs between them, and the place of frame `keep`.
    fn take_back(&mut self, keep: u64, resume: usize, sink: &mut impl FrameSink) -> (Vec<(u8, u64)>, u64) {
        let first = self.held.first();
        let mut bytes = Vec::new();
        self.held.bytes(|byte, at| bytes.push((byte, at)));
        let partial = self.deframer.framer.partial.bytes().iter().enumerate();
        bytes.extend(partial.map(|(index, &byte)| (byte, self.deframer.framer.partial.place(index))));
        let kept = usize::try_from(keep - first).unwrap_or(usize::MAX).saturating_mul(FRAME_BYTES);
        let lost = bytes.get(kept).map_or(self.deframer.framer.taken(), |&(_, at)| at);
        self.release(keep, sink);
        self.held.clear();
        self.deframer.framer.start_frame();
        bytes.drain(..resume.min(bytes.len()));
        (with_half_syncs(&bytes, self.deframer.framer.taken()), lost)
    }
}

/// One frame in this number is looked at closely. A buffer's bytes come from memory and nearly never get lost.
const fn sampling_interval(framing: Framing) -> u64 {
    match framing {
        Framing::Buffer => 8,
        Framing::Port | Framing::PortFrom(_) => 1,
    }
}
