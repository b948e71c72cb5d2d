//! Charging passages that are known by the frames that they look at.

use super::NodeId;
use super::pairs::{Deed, Pair, Relative};
use super::record::{Profiler, Recorder};
use crate::analysis::Repeated;
use crate::call_stack::{Entry, FrameKind, Known};

impl Profiler {
    /// Takes a passage, or a group, that is known by frames.
    #[inline]
    pub(super) fn repeat_by_frames(&mut self, known: Known, repeated: &Repeated<'_>) {
        let charges = self.remembered.effect(known);
        let Some((relative, waiting)) =
            charges.and_then(|charges| Some((charges.relative?, charges.waiting)))
        else {
            return self.follow_all(repeated);
        };
        let Some(node) = self.calls.innermost_mut().map(|top| top.mark) else { return };
        let pair = Pair { relative, node };
        let at = self.pairs.find(pair).filter(|_| self.recorder.profile.folded_calls == 0);
        let at = at.or_else(|| self.make_pair(pair));
        match at {
            Some(at) => {
                if !self.pairs.count(at) {
                    self.charge();
                }
            }
            None => self.charge_here(relative),
        }
        self.pass_window(repeated);
        self.meter.pass(waiting);
        if let Some(group) = &mut self.recorder.group {
            group.push(relative);
        }
        self.remembered.go(known, &mut self.calls);
        let entered = self.recorder.lists.relatives.get(relative as usize).map_or(0, |known| known.entered);
        if entered > 0 {
            let marks = match at {
                Some(at) => self.pairs.entered(at, entered),
                None => self.chains.get(1..).unwrap_or_default(),
            };
            let frames = self.calls.frames_mut().rev();
            marks.iter().rev().zip(frames).for_each(|(mark, frame)| frame.mark = *mark);
        }
    }

    /// Finds out which chains come in a pair that was not seen before; `None` if there are not enough chains for it, or those of the
    /// frames that go are not told by the innermost one's.
    #[inline(never)]
    fn make_pair(&mut self, pair: Pair) -> Option<usize> {
        let Self { recorder, calls, chains, .. } = self;
        let Relative { deeds, left, entered, .. } =
            recorder.lists.relatives.get(pair.relative as usize)?.clone();
        // An exception's frame and its function are two links.
        if !recorder.profile.has_room(pair.node, 2 * deeds.len()) {
            return None;
        }
        recorder.chains_of(pair.node, left, chains);
        let is_call = |kind: FrameKind| matches!(kind, FrameKind::Call { .. });
        let mut expected = chains.iter().rev();
        let mut frames = calls.frames().rev().take(left + 1).enumerate();
        let is_told = frames.all(|(index, frame)| {
            expected.next() == Some(&frame.mark) && (index == left || is_call(frame.kind))
        });
        drop(frames);
        if !is_told || expected.next().is_some() {
            return None;
        }
        recorder.replay(pair.relative, 0, chains);
        let entered_chains = chains.get(1..).filter(|chains| chains.len() == entered)?;
        if self.pairs.is_full() {
            let entered_chains = entered_chains.to_vec();
            self.charge();
            self.pairs.clear();
            self.pairs.insert(pair, &entered_chains);
        } else {
            self.pairs.insert(pair, entered_chains);
        }
        self.pairs.find(pair)
    }

    /// Charges what a passage costs at once. Leaves the chains of the frames that come behind the one that they stand on.
    #[inline(never)]
    fn charge_here(&mut self, relative: u32) {
        let Some(left) = self.recorder.lists.relatives.get(relative as usize).map(|known| known.left) else {
            return;
        };
        let chains = &mut self.chains;
        chains.clear();
        chains.extend(self.calls.frames().rev().take(left + 1).map(|frame| frame.mark));
        chains.reverse();
        self.recorder.replay(relative, 1, chains);
    }
}

impl Recorder {
    /// Charges a pair that came so many times.
    pub(super) fn charge_pair(&mut self, pair: Pair, times: u64, chains: &mut Vec<NodeId>) {
        let Some(left) = self.lists.relatives.get(pair.relative as usize).map(|known| known.left) else {
            return;
        };
        self.chains_of(pair.node, left, chains);
        self.replay(pair.relative, times, chains);
    }

    /// The chains of a frame and of so many under it, which it was called from, the outermost first.
    fn chains_of(&self, node: NodeId, under: usize, chains: &mut Vec<NodeId>) {
        chains.clear();
        let outer = std::iter::successors(Some(node), |node| self.profile.parent(*node));
        chains.extend(outer.take(under + 1));
        chains.reverse();
    }

    /// Does what a passage does to these chains, the innermost last, and charges it so many times.
    fn replay(&mut self, relative: u32, times: u64, chains: &mut Vec<NodeId>) {
        let Some(Relative { deeds, cycle_counts, .. }) = self.lists.relatives.get(relative as usize).cloned()
        else {
            return;
        };
        self.profile.measures.cycle_counts += cycle_counts * times;
        for index in deeds {
            match self.lists.deeds.get(index).copied() {
                Some(Deed::Enters(kind, function, entry)) => {
                    let (chain, node) = self.link(chains.last().copied(), kind, function);
                    if matches!(entry, Entry::Called | Entry::TailCalled | Entry::Interrupting) {
                        self.profile.count_calls(node, times);
                    }
                    if entry == Entry::Interrupting {
                        self.profile.count_calls(chain, times);
                    }
                    chains.push(node);
                }
                Some(Deed::Leaves) => drop(chains.pop()),
                Some(Deed::Runs(piece, cost)) if times > 0 => {
                    if let Some(node) = chains.last() {
                        let entry = self.profile.entry(*node, piece);
                        self.profile.spend(entry, cost.times(times));
                    }
                }
                Some(Deed::Runs(..)) | None => {}
            }
        }
    }
}
