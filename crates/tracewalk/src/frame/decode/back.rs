//! Taking frames back that turned out not to be frames.

use alloc::vec::Vec;

use super::super::search::Search;
use super::super::wire::SyncMatcher;
use super::super::{Cause, FRAME_BYTES, FrameSink, HSYNC};
use super::{Deframer, State};

impl Deframer {
    /// Only the frames in front of `keep` are right. Goes on with byte `resume` behind the first held frame's start.
    pub(super) fn restart(&mut self, keep: u64, resume: usize, cause: Cause, sink: &mut impl FrameSink) {
        let (mut bytes, lost) = self.take_back(keep, resume, sink);
        self.unpacker.overhead_until(lost);
        let end = bytes.first().map_or(self.taken, |&(_, at)| at);
        let cause = if lost == 0 { Cause::Start } else { cause };
        self.unpacker.lose_until(end, cause, sink);
        bytes.reverse();
        self.again.append(&mut bytes);
        self.restart_watch();
    }

    /// Only the frames in front of `keep` are right, and the next one does not start where it seemed to.
    pub(super) fn lose_frames(&mut self, keep: u64, sink: &mut impl FrameSink) {
        let index = usize::try_from(keep - self.held.first()).unwrap_or(usize::MAX);
        let (mut bytes, lost) = self.take_back(keep, index.saturating_mul(FRAME_BYTES) + 1, sink);
        self.unpacker.overhead_until(lost);
        bytes.reverse();
        self.again.append(&mut bytes);
        self.state = State::Searching(Search::new(Cause::NoFrames));
    }

    /// Hands out the frames in front of `keep`, and takes back all bytes from byte `resume` on, counted from the
    /// first held frame's start. Returns them with their places and the HSYNCs between them, and the place of frame `keep`.
    fn take_back(&mut self, keep: u64, resume: usize, sink: &mut impl FrameSink) -> (Vec<(u8, u64)>, u64) {
        let first = self.held.first();
        let mut bytes = Vec::new();
        self.held.bytes(|byte, at| bytes.push((byte, at)));
        let partial = self.partial.bytes().iter().enumerate();
        bytes.extend(partial.map(|(index, &byte)| (byte, self.partial.place(index))));
        let kept = usize::try_from(keep - first).unwrap_or(usize::MAX).saturating_mul(FRAME_BYTES);
        let lost = bytes.get(kept).map_or(self.taken, |&(_, at)| at);
        self.release(keep, sink);
        self.held.clear();
        self.partial.clear();
        self.sync = SyncMatcher::default();
        bytes.drain(..resume.min(bytes.len()));
        (with_half_syncs(&bytes, self.taken), lost)
    }
}

/// The bytes up to the place `end`, and the HSYNCs between them that were left out: at another alignment they are data.
fn with_half_syncs(bytes: &[(u8, u64)], end: u64) -> Vec<(u8, u64)> {
    /// So many bytes of them are a port's that has nothing to send.
    const IDLE: u64 = 256;
    let next_places = bytes.iter().skip(1).map(|&(_, at)| at).chain([end]);
    let with_gap = bytes.iter().zip(next_places).flat_map(|(&(byte, at), next)| {
        let gap =
            Some(at + 1..next).filter(|gap| gap.end.saturating_sub(gap.start) <= IDLE).unwrap_or_default();
        core::iter::once((byte, at)).chain(HSYNC.into_iter().cycle().zip(gap))
    });
    with_gap.collect()
}
