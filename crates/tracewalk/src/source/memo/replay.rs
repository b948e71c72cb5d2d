//! Repeats known windows.

use crate::flow::TakeElements;
use crate::flow::passage::Waited;
use crate::flow::state::StackEffects;
use crate::protocol::memoised::{MemoDecode, MemoLower, WaitCycles};
use crate::source::chain::Chain;
use crate::span::{Span, StreamOffset};

use super::situation::{Memoised, SituationOf, key, window};
use super::table::{Entry, Found, Memo, SituationId};

/// The result of repeating windows.
pub(super) struct Replayed {
    /// The state after the last window.
    state: SituationId,
    /// The number of bytes, including W atoms after the last window.
    pub(super) bytes: usize,
    /// The number of blocks of executed instructions.
    pub(super) blocks: i32,
    packets: u64,
    /// The W atoms after the last window.
    pub(super) waited: Option<Waited>,
}

/// Why repeating ended.
#[derive(PartialEq, Eq)]
enum ReplayEnd {
    /// The next packet is not repeatable.
    NoWindow,
    /// The next window is not known.
    Unknown,
}

impl Replayed {
    /// The state before the next byte.
    pub(super) const fn last(&self) -> SituationId {
        self.state.with_wait_cycles(self.waited.is_some())
    }

    /// The number of bytes of W atoms after the last window.
    pub(super) fn skipped(&self) -> u64 {
        self.waited.map_or(0, |waited| waited.bytes)
    }

    /// Adds a window.
    #[inline(always)]
    fn window(&mut self, entry: &Entry) {
        self.state = entry.next.with_wait_cycles(false);
        self.bytes += entry.bytes();
        self.blocks += i32::from(entry.blocks);
        self.packets += u64::from(entry.packets);
    }
}

/// Repeats the known windows at the start of `input`, from the state `first` on.
pub(super) fn replay<P: Memoised>(
    chain: &mut Chain<P>,
    memo: &mut Memo<SituationOf<P>>,
    first: SituationId,
    input: &[u8],
    sink: &mut impl TakeElements,
) -> Replayed {
    let before = chain.interpreter.lowering.take_wait_cycles();
    let waited = before.map(|WaitCycles { cycles, span }| Waited { cycles, span, bytes: 0 });
    let state = first.with_wait_cycles(false);
    let mut replayed = Replayed { state, bytes: 0, blocks: 0, packets: 0, waited };
    loop {
        let end = match replayed.waited.take() {
            None => windows(chain, memo, input, &mut replayed, sink),
            Some(waited) => match window_after(waited, chain, memo, input, &mut replayed, sink) {
                Ok(()) => continue,
                Err(end) => {
                    replayed.waited = Some(waited);
                    end
                }
            },
        };
        if end == ReplayEnd::Unknown || !wait(chain, input, &mut replayed) {
            break;
        }
    }
    chain.packets.step_over(input.get(..replayed.bytes).unwrap_or(input));
    chain.interpreter.counts.packets += replayed.packets;
    let after = replayed.waited.map(|Waited { cycles, span, .. }| WaitCycles { cycles, span });
    chain.interpreter.lowering.put_wait_cycles(after);
    replayed
}

/// Repeats windows with no W atoms before them.
///
/// Usually windows recur in the same order. Each round then depends only on the number of the next entry, not
/// on where the next window begins or on which bytes belong to it.
#[inline(always)]
fn windows<P: Memoised>(
    chain: &mut Chain<P>,
    memo: &mut Memo<SituationOf<P>>,
    input: &[u8],
    replayed: &mut Replayed,
    sink: &mut impl TakeElements,
) -> ReplayEnd {
    let start = chain.packets.position();
    loop {
        let next = input.get(replayed.bytes..).and_then(|rest| chain.packets.decoder().word(rest));
        let Some(word) = next else { return ReplayEnd::NoWindow };
        let flow = &mut chain.interpreter.flow;
        let allows = |effects: &StackEffects| flow.allows(effects);
        let found = if let Some(successor) = memo.successor(word, replayed.state, allows) {
            successor
        } else {
            let key = key(chain.packets.decoder(), word, replayed.state);
            let Some(key) = key else { return ReplayEnd::NoWindow };
            let Some(found) = memo.find(key, allows) else { return ReplayEnd::Unknown };
            found
        };
        let Found { id, entry, effects } = found;
        if let Some(effects) = effects {
            flow.apply(effects);
        }
        sink.passage(memo.passage(entry, StreamOffset(start.0 + replayed.bytes as u64), None));
        replayed.window(entry);
        memo.came(id);
    }
}

/// Repeats the window after some W atoms, whose cycles stay pending if the window reports none.
fn window_after<P: Memoised>(
    waited: Waited,
    chain: &mut Chain<P>,
    memo: &mut Memo<SituationOf<P>>,
    input: &[u8],
    replayed: &mut Replayed,
    sink: &mut impl TakeElements,
) -> Result<(), ReplayEnd> {
    let rest = input.get(replayed.bytes..).unwrap_or_default();
    let key = window(chain.packets.decoder(), rest, replayed.state.with_wait_cycles(true));
    let flow = &mut chain.interpreter.flow;
    let found = memo.find(key.ok_or(ReplayEnd::NoWindow)?, |effects| flow.allows(effects));
    // An entry after which the cycles stay pending was learned with no W atoms between its state and its
    // window.
    let is_known = |found: &Found<'_>| !found.entry.next.waits() || waited.bytes == 0;
    let Found { id, entry, effects } = found.filter(is_known).ok_or(ReplayEnd::Unknown)?;
    if let Some(effects) = effects {
        flow.apply(effects);
    }
    let position = StreamOffset(chain.packets.position().0 + replayed.bytes as u64);
    sink.passage(memo.passage(entry, position, Some(waited)));
    replayed.window(entry);
    replayed.waited = entry.next.waits().then_some(waited);
    memo.came(id);
    Ok(())
}

/// Counts W atoms; `false` if there are none.
fn wait<P: Memoised>(chain: &Chain<P>, input: &[u8], replayed: &mut Replayed) -> bool {
    let rest = input.get(replayed.bytes..).unwrap_or_default();
    let (bytes, cycles) = chain.packets.decoder().wait_cycles(rest);
    if bytes == 0 {
        return false;
    }
    replayed.bytes += bytes;
    replayed.packets += bytes as u64;
    let last = StreamOffset(chain.packets.position().0 + replayed.bytes as u64 - 1);
    let (before, skipped) = replayed.waited.map_or((0, 0), |waited| (waited.cycles, waited.bytes));
    let span = Span::new(last, 1);
    replayed.waited = Some(Waited { cycles: before + cycles, span, bytes: skipped + bytes as u64 });
    true
}
