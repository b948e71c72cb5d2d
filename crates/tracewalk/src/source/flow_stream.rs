//! A source's bytes to program flow.

use crate::flow::{Engine, TakeElements};
use crate::program::Program;
use crate::protocol::Loss;

use super::chain::{ChainState, PacketCounts};
use super::checkpoint::Checkpoint;
use super::dispatch::{FlowChain, SourceConfig, VariantOf, each};

/// A source's bytes to program flow.
#[derive(Clone, Debug)]
pub struct FlowStream(FlowChain);

impl FlowStream {
    /// A stream from the source's first byte.
    #[must_use]
    pub fn new(config: &SourceConfig) -> Self {
        Self::with_engine(config, Engine::default())
    }

    /// A stream from the source's first byte, followed by this engine.
    #[must_use]
    pub fn with_engine(config: &SourceConfig, engine: Engine) -> Self {
        Self(FlowChain::new(config, engine))
    }

    /// Restarts before the source's first byte, with counts of 0. The stream keeps what it learned of the
    /// program: `config` must be that of [`FlowStream::new`], and later calls must pass the same program. For
    /// another one, make a new stream.
    pub fn begin_again(&mut self, config: &SourceConfig) {
        each!(FlowChain, &mut self.0, chain => {
            if let Some(config) = VariantOf::of(config) {
                chain.begin_again(config);
                return;
            }
        });
        *self = Self::new(config);
    }

    /// Takes the next bytes; gives `sink` the elements that they prove. Pass the same program in all calls: the
    /// stream remembers its code.
    pub fn push(&mut self, bytes: &[u8], program: &Program, mut sink: &mut dyn TakeElements) {
        each!(FlowChain, &mut self.0, chain => chain.push(bytes, program, &mut sink));
    }

    /// Bytes were lost before the next ones.
    pub fn lose_sync(&mut self, program: &Program, sink: &mut dyn TakeElements) {
        self.interrupt(Loss::Lost, program, sink);
    }

    /// The trace was cut here on purpose, and the next bytes belong to another recording: as
    /// [`FlowStream::lose_sync`], but the trace before is sound, and the gap casts no
    /// [doubt](crate::flow::Gap::doubt).
    pub fn cut(&mut self, program: &Program, sink: &mut dyn TakeElements) {
        self.interrupt(Loss::Cut, program, sink);
    }

    /// The source ends here. Afterwards call only [`FlowStream::begin_again`] or [`FlowStream::go_on_from`].
    pub fn finish(&mut self, program: &Program, mut sink: &mut dyn TakeElements) {
        each!(FlowChain, &mut self.0, chain => chain.plain_mut().finish(program, &mut sink));
    }

    /// Discards an incomplete packet at the end of the input: see
    /// [`Packets::forget_incomplete`](crate::protocol::Packets::forget_incomplete).
    pub fn forget_incomplete(&mut self) -> usize {
        each!(FlowChain, &mut self.0, chain => chain.plain_mut().packets.forget_incomplete())
    }

    /// The numbers of items in the source's packet stream so far.
    #[must_use]
    pub const fn counts(&self) -> PacketCounts {
        each!(FlowChain, &self.0, chain => chain.plain().interpreter.counts)
    }

    /// Notes the state, for [`FlowStream::go_on_from`].
    pub fn checkpoint(&mut self, program: &Program) -> Checkpoint {
        Checkpoint(each!(FlowChain, &mut self.0, chain => chain.plain_mut().state(program).into()))
    }

    /// Continues in a state that a stream with the same configuration noted, whatever this stream decoded
    /// before: the next byte is the one at [`Checkpoint::position`]. The stream keeps what it learned of the
    /// program, and its counts.
    pub fn go_on_from(&mut self, checkpoint: &Checkpoint, program: &Program) {
        each!(FlowChain, &mut self.0, chain => {
            if let Some(state) = ChainState::of(&checkpoint.0) {
                chain.plain_mut().resume(state, program);
            }
        });
    }

    fn interrupt(&mut self, loss: Loss, program: &Program, mut sink: &mut dyn TakeElements) {
        each!(FlowChain, &mut self.0, chain => chain.plain_mut().interrupt(loss, program, &mut sink));
    }
}
