//! The state that the meaning of the next repeatable packets depends on.

use crate::flow::state::FlowState;
use crate::protocol::memoised::{MemoDecode, MemoLower, MemoState};
use crate::protocol::{Decode, Protocol};
use crate::source::chain::Chain;
use crate::span::StreamOffset;

use super::table::{SituationId, WindowKey};

/// A protocol with repeatable packets.
pub(in crate::source) trait Memoised:
    Protocol<Decoder = Self::MemoDecoder, Lowering = Self::MemoLowering>
{
    type MemoDecoder: MemoDecode + Clone + core::fmt::Debug + PartialEq;
    type MemoLowering: MemoLower<Packet = <Self::MemoDecoder as Decode>::Packet>
        + Clone
        + core::fmt::Debug
        + PartialEq;
}

impl<P: Protocol<Decoder: MemoDecode, Lowering: MemoLower>> Memoised for P {
    type MemoDecoder = P::Decoder;
    type MemoLowering = P::Lowering;
}

/// The state that the meaning of the next repeatable packets depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Situation<D, L> {
    decoder: D,
    lowering: L,
    flow: FlowState,
}

/// The situations of one protocol.
pub(in crate::source) type SituationOf<P> = Situation<
    <<P as Protocol>::Decoder as MemoState>::State,
    <<P as Protocol>::Lowering as MemoState>::State,
>;

impl<D, L> Situation<D, L>
where
    D: Clone,
{
    /// The situation before the next byte; `None` for a state that few packets lead to.
    pub(super) fn of<P>(chain: &Chain<P>) -> Option<Self>
    where
        P: Protocol<Decoder: MemoDecode<State = D>, Lowering: MemoLower<State = L>>,
    {
        let at = chain.packets.position();
        Some(Self {
            decoder: chain.packets.decoder().state(at).filter(|_| chain.packets.is_between_packets())?,
            lowering: chain.interpreter.lowering.state(at)?,
            flow: chain.interpreter.flow.state(at)?,
        })
    }

    /// Restores this situation before the byte at `at`.
    pub(super) fn resume<P>(&self, chain: &mut Chain<P>, at: StreamOffset)
    where
        P: Protocol<Decoder: MemoDecode<State = D>, Lowering: MemoLower<State = L>>,
    {
        chain.packets.decoder_mut().resume(&self.decoder, at);
        chain.interpreter.lowering.resume(&self.lowering, at);
        chain.interpreter.flow.resume(&self.flow, at);
    }
}

/// The key of the window at the start of `input`, in this state; `None` if the next packet is not repeatable.
#[inline(always)]
pub(super) fn window<D: MemoDecode>(decoder: &D, input: &[u8], state: SituationId) -> Option<WindowKey> {
    let word = decoder.word(input)?;
    key(decoder, word, state)
}

/// The key of the window at the start of `word`.
#[inline(always)]
pub(super) fn key<D: MemoDecode>(decoder: &D, word: u64, state: SituationId) -> Option<WindowKey> {
    Some(WindowKey::new(word, decoder.window(word), state)?.nine_bytes(D::is_nine_bytes(word)))
}
