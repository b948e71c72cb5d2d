//! The chain that looks bytes up and decodes only unknown ones.

use crate::flow::{Flow, TakeElements};
use crate::program::Program;
use crate::protocol::memoised::{MemoDecode, MemoLower};
use crate::source::chain::Chain;
use crate::span::StreamOffset;

use super::learn::Learner;
use super::patience::Patience;
use super::replay::replay;
use super::situation::{Memoised, Situation, SituationOf, window};
use super::table::Memo;

/// A plain chain with a memo, with the same results as the plain chain alone.
#[derive(Clone, Debug)]
pub(in crate::source) struct MemoChain<P: Memoised> {
    chain: Chain<P>,
    memo: Memo<SituationOf<P>>,
    learner: Learner,
    patience: Patience,
}

impl<P: Memoised> MemoChain<P> {
    pub(in crate::source) fn new(config: &P, flow: Flow) -> Self {
        let chain = Chain::new(config, flow);
        Self { chain, memo: Memo::new(), learner: Learner::default(), patience: Patience::NEW }
    }

    pub(in crate::source) const fn plain(&self) -> &Chain<P> {
        &self.chain
    }

    pub(in crate::source) const fn plain_mut(&mut self) -> &mut Chain<P> {
        &mut self.chain
    }

    pub(in crate::source) fn begin_again(&mut self, config: &P) {
        self.chain.begin_again(config);
        self.patience = Patience::NEW;
    }

    pub(in crate::source) fn push(&mut self, bytes: &[u8], program: &Program, sink: &mut impl TakeElements) {
        if !self.chain.interpreter.lowering.has_states() {
            self.chain.push(bytes, program, sink);
            return;
        }
        let Chain { packets, interpreter } = &mut self.chain;
        let mut input = packets.push_carried(bytes, &mut interpreter.interpreting(program, sink));
        while let Some(next) = input.first_chunk::<8>() {
            let Chain { packets, .. } = &self.chain;
            let asleep = self.patience.asleep(packets.position());
            let is_repeatable = |decoder: &P::Decoder| {
                decoder.word(input).is_some_and(|word| decoder.window(word) > 0)
                    || decoder.wait_cycles(next).0 > 0
            };
            if asleep == 0 && is_repeatable(packets.decoder()) {
                let known = self.push_repeatable(input, program, sink);
                input = input.get(known..).unwrap_or_default();
            }
            // The next packet is not repeatable, or the situation is not.
            let Chain { packets, interpreter } = &mut self.chain;
            let taker = &mut interpreter.interpreting(program, sink);
            let decoded = packets.decode_some(input, asleep.max(1), taker);
            if decoded == 0 {
                break;
            }
            input = input.get(decoded..).unwrap_or_default();
        }
        self.chain.push(input, program, sink);
    }

    /// Replays or learns windows of repeatable packets as long as situations are known; returns the number of
    /// bytes consumed.
    fn push_repeatable(&mut self, input: &[u8], program: &Program, sink: &mut impl TakeElements) -> usize {
        let Self { chain, memo, learner, patience } = self;
        let mut done = 0;
        let mut state = None;
        loop {
            if memo.is_full() || learner.forgotten != chain.interpreter.flow.forgotten() {
                memo.forget();
                learner.forgotten = chain.interpreter.flow.forgotten();
                state = None;
            }
            let known = state.or_else(|| Situation::of(chain).map(|state| memo.number(state)));
            let Some(first) = known else { return done };
            let replayed = replay(chain, memo, first, input.get(done..).unwrap_or_default(), sink);
            patience.found(replayed.blocks);
            let (last, skipped) = (replayed.last(), replayed.skipped());
            if replayed.bytes > 0 {
                let at = StreamOffset(chain.packets.position().0 - skipped);
                memo.state(last).into_iter().for_each(|situation| situation.resume(chain, at));
            }
            done += replayed.bytes;
            let rest = input.get(done..).unwrap_or_default();
            if skipped > 0 && chain.packets.decoder().waits_on(rest) {
                // The W atoms stay pending: compute the state after them.
                state = None;
                continue;
            }
            let Some(key) = window(chain.packets.decoder(), rest, last) else { return done };
            let start = chain.packets.position();
            let learned = learner.learn((&mut *chain, &mut *memo), (key, skipped), rest, program, sink);
            if !learned.waits {
                patience.missed(start);
            }
            done += learned.bytes;
            state = learned.next;
            if learned.bytes == 0 || patience.asleep(chain.packets.position()) > 0 {
                return done;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::flow::{Element, EventKind};
    use crate::ids::Address;
    use crate::protocol::{Registers, etmv3};

    #[test]
    fn a_branch_after_waits_is_remembered_and_the_cycles_wait_on() {
        let registers = Registers {
            etmcr: Some(1 << 12),
            etmidr: Some(0x411c_f250),
            etmccer: Some(0x34c0_1ac2),
            etmtraceidr: None,
        };
        let config = etmv3::Config::from_registers(registers, None).expect("sound registers");
        let mut program = Program::new();
        // blx r3
        program.add(Address::new(0x1000), &[0x98, 0x47]).expect("there is room");
        let start = [0, 0, 0, 0, 0, 0x80, 0x08, 0x21, 0x01, 0x10, 0, 0];
        // WE, 8 W, 1 to 3 W, a branch to 0x1000.
        let call = |round: u8| [0x84, 0xbc, 0xa0 + 4 * (round % 3), 0x01];
        let bytes = start.into_iter().chain((0..30).flat_map(call)).collect::<Vec<_>>();
        let mut chain = MemoChain::new(&config, Flow::new(config.rules()));
        let mut cycles = Vec::new();
        chain.push(&bytes, &program, &mut |element| {
            if let Element::Event(event) = element
                && let EventKind::Cycles(count) = event.kind
            {
                cycles.push(count);
            }
        });
        assert!(chain.memo.windows().any(|window| window == (0x01, 1)), "the branch alone is a window");
        let expected = (0..29).map(|round| 8 + 1 + round % 3 + 1).collect::<Vec<u64>>();
        assert_eq!(cycles, [&[1], &expected[..]].concat());
    }
}
