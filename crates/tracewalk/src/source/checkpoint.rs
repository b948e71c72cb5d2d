//! The state of a [`FlowStream`] between two bytes.
//!
//! A [`Checkpoint`] is everything that the meaning of the next bytes depends on. A checkpoint serves two
//! purposes.
//!
//! *Going back.* A stream resumes at a checkpoint that it, or another stream with the same configuration, noted before, and
//! reports from [`Checkpoint::position`] on what it reported then:
//!
//! ```
//! use tracewalk::flow::Element;
//! use tracewalk::program::Program;
//! use tracewalk::protocol::etmv3;
//! use tracewalk::source::{FlowStream, SourceConfig};
//!
//! let config = SourceConfig::Etmv3(etmv3::Config::for_core("cortex-m3").expect("a known core"));
//! let program = Program::new();
//! // A-sync, I-sync at 0x100 in Thumb, and one executed instruction each time.
//! let source = [0, 0, 0, 0, 0, 0x80, 0x08, 0x21, 0x01, 0x01, 0x00, 0x00, 0x84].repeat(2);
//! let (before, after) = source.split_at(13);
//!
//! let mut stream = FlowStream::new(&config);
//! stream.push(before, &program, &mut |_: Element| ());
//! let checkpoint = stream.checkpoint(&program);
//! assert_eq!(checkpoint.position().0, 13);
//! let mut first = Vec::new();
//! stream.push(after, &program, &mut |element: Element| first.push(element));
//!
//! let mut again = Vec::new();
//! stream.go_on_from(&checkpoint, &program);
//! stream.push(after, &program, &mut |element: Element| again.push(element));
//! assert_eq!(first, again);
//! ```
//!
//! *Decoding parts of a source side by side.* A worker that begins in the middle of a source notes
//! checkpoints at intervals. If the worker before it reaches the same state, everything after that state is
//! valid:
//!
//! ```
//! use tracewalk::flow::Element;
//! use tracewalk::program::Program;
//! use tracewalk::protocol::etmv3;
//! use tracewalk::source::{Checkpoint, FlowStream, SourceConfig};
//! use tracewalk::span::StreamOffset;
//!
//! let config = SourceConfig::Etmv3(etmv3::Config::for_core("cortex-m3").expect("a known core"));
//! let program = Program::new();
//! let source = [0, 0, 0, 0, 0, 0x80, 0x08, 0x21, 0x01, 0x01, 0x00, 0x00, 0x84].repeat(2);
//!
//! let mut next = FlowStream::new(&config);
//! let unknown = Checkpoint::in_the_middle(&config, StreamOffset(11)).expect("ETMv3 synchronises");
//! next.go_on_from(&unknown, &program);
//! next.push(&source[11..], &program, &mut |_: Element| ());
//!
//! let mut before = FlowStream::new(&config);
//! before.push(&source, &program, &mut |_: Element| ());
//! assert!(before.checkpoint(&program).proves(&next.checkpoint(&program)));
//! ```
//!
//! [`FlowStream`]: super::FlowStream

use crate::protocol::{Decode, Protocol};
use crate::span::StreamOffset;

use super::chain::ChainState;
use super::dispatch::{SourceConfig, SourceState, VariantOf, each};

/// The state of a [`FlowStream`](super::FlowStream) between two bytes: decoder, lowering, and flow with its stacks of
/// places to return to.
///
/// A checkpoint depends on the configuration and the program, not on the engine or on how the input was cut.
/// Checkpoints are bounded in size (some kilobytes), `Send` and `Clone`.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Checkpoint(pub(super) SourceState);

impl Checkpoint {
    /// The state before the byte at `at`, with nothing known of the bytes before it; `None` for sources that
    /// never synchronise.
    #[must_use]
    pub fn in_the_middle(config: &SourceConfig, at: StreamOffset) -> Option<Self> {
        fn state<P: Protocol>(config: &P, at: StreamOffset) -> Option<ChainState<P>> {
            <P::Decoder as Decode>::A_SYNC.map(|_| ChainState::in_the_middle(config, at))
        }
        each!(SourceConfig, config, config => state(config, at).map(SourceState::from)).map(Self)
    }

    /// The position of the source's next byte.
    #[must_use]
    pub fn position(&self) -> StreamOffset {
        each!(SourceState, &self.0, state => state.position())
    }

    /// Whether this is a state of a source with the protocol of `config`.
    #[must_use]
    pub fn is_of(&self, config: &SourceConfig) -> bool {
        self.0.protocol() == config.protocol()
    }

    /// Whether malformed or unsynchronised bytes before this state are still to be reported. Do not serialise
    /// such a state (feature `serde`): the reason would be lost.
    #[must_use]
    pub fn is_in_gap(&self) -> bool {
        each!(SourceState, &self.0, state => state.is_in_gap())
    }

    /// Whether this state and `guess`, noted by a stream that began in the middle, have the same
    /// continuation, as far as that stream's next checkpoints are [certain](Self::is_certain).
    #[must_use]
    pub fn proves(&self, guess: &Self) -> bool {
        each!(SourceState, &self.0, real => {
            ChainState::of(&guess.0).is_some_and(|guess| real.proves(guess))
        })
    }

    /// Whether the elements between the previous checkpoint and this one depend on nothing unknown. `real` is
    /// a state that [proves](Self::proves) `guess`, an earlier checkpoint of the stream that noted this one.
    #[must_use]
    pub fn is_certain(&self, real: &Self, guess: &Self) -> bool {
        each!(SourceState, &self.0, state => {
            let others = ChainState::of(&real.0).zip(ChainState::of(&guess.0));
            others.is_some_and(|(real, guess)| state.is_certain(real, guess))
        })
    }

    /// This state, which [proves](Self::proves) `guess`, advanced to the last of `parts`: the checkpoints
    /// that the stream of `guess` noted next, all of them certain.
    #[must_use]
    pub fn continued(&self, guess: &Self, parts: &[Self]) -> Self {
        each!(SourceState, &self.0, real => {
            let Some(guess) = ChainState::of(&guess.0) else { return self.clone() };
            let parts = parts.iter().filter_map(|part| ChainState::of(&part.0));
            Self(real.continued(guess, parts).into())
        })
    }
}
