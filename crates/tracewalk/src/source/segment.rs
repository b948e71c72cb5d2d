//! Decoding parts of a source side by side.
//!
//! A [`Checkpoint`] is all that the meaning of the next bytes depends on. A worker that begins in the middle of a source
//! notes one now and then; where the worker before it comes to the same, everything behind is what the source says:
//!
//! ```
//! use tracewalk::program::Program;
//! use tracewalk::protocol::etmv3;
//! use tracewalk::source::{Checkpoint, FlowStream, SourceConfig};
//! use tracewalk::span::StreamOffset;
//!
//! let config = SourceConfig::Etmv3(etmv3::Config::for_core("cortex-m3").expect("a known core"));
//! let program = Program::new();
//! // A-sync, I-sync at 0x100 in Thumb, and one executed instruction each time.
//! let source = [0, 0, 0, 0, 0, 0x80, 0x08, 0x21, 0x01, 0x01, 0x00, 0x00, 0x84].repeat(2);
//!
//! let mut next = FlowStream::new(&config);
//! let unknown = Checkpoint::in_the_middle(&config, StreamOffset(11)).expect("ETMv3 synchronises");
//! next.go_on_from(&unknown, &program);
//! next.push(&source[11..], &program, &mut |_| ());
//!
//! let mut before = FlowStream::new(&config);
//! before.push(&source, &program, &mut |_| ());
//! assert!(before.checkpoint(&program).proves(&next.checkpoint(&program)));
//! ```

use crate::flow::Walk;
use crate::program::Program;
use crate::protocol::{Packets, etmv3, pft};
use crate::span::StreamOffset;

use super::{FlowChain, FlowStream, SourceConfig};

/// The state of a [`FlowStream`] between two bytes.
#[derive(Clone, Debug)]
pub struct Checkpoint(State);

#[derive(Clone, Debug)]
enum State {
    Etmv3(ChainState<etmv3::Decoder, etmv3::Lowering>),
    Pft(ChainState<pft::Decoder, pft::Lowering>),
    /// Of a source that is not decoded from the middle.
    Whole,
}

/// The state of one protocol's stages.
#[derive(Clone, Debug)]
pub(super) struct ChainState<D, L> {
    pub(super) packets: Packets<D>,
    pub(super) lowering: L,
    pub(super) walk: Walk,
}

impl Checkpoint {
    /// The state in front of the byte at `at` while nothing is known of what came before; `None` for sources that never
    /// synchronise.
    #[must_use]
    pub fn in_the_middle(config: &SourceConfig, at: StreamOffset) -> Option<Self> {
        let walk = Walk::in_the_middle(config.rules());
        Some(Self(match config {
            SourceConfig::Etmv3(config) => State::Etmv3(ChainState {
                packets: Packets::starting_at(etmv3::Decoder::new(config), at),
                lowering: etmv3::Lowering::new(config),
                walk,
            }),
            SourceConfig::Pft(config) => State::Pft(ChainState {
                packets: Packets::starting_at(pft::Decoder::new(config), at),
                lowering: pft::Lowering::new(),
                walk,
            }),
            SourceConfig::Mtb { .. } => return None,
        }))
    }

    /// Whether what comes behind this state is what comes behind `guess`, which was noted by a stream that began in the
    /// middle: as far as that one's next checkpoints are [certain](Self::is_certain).
    #[must_use]
    pub fn proves(&self, guess: &Self) -> bool {
        match (&self.0, &guess.0) {
            (State::Etmv3(real), State::Etmv3(guess)) => real.proves(guess),
            (State::Pft(real), State::Pft(guess)) => real.proves(guess),
            _ => false,
        }
    }

    /// Whether what came between the checkpoint before and this one depends on nothing that was not known: `real` is a
    /// state that [proves](Self::proves) `guess`, an earlier checkpoint of the stream that noted this one.
    #[must_use]
    pub fn is_certain(&self, real: &Self, guess: &Self) -> bool {
        match (&self.0, &real.0, &guess.0) {
            (State::Etmv3(state), State::Etmv3(real), State::Etmv3(guess)) => {
                state.walk.is_certain(&real.walk, &guess.walk)
            }
            (State::Pft(state), State::Pft(real), State::Pft(guess)) => {
                state.walk.is_certain(&real.walk, &guess.walk)
            }
            _ => false,
        }
    }

    /// The state that this one, which [proves](Self::proves) `guess`, comes to at the last of `parts`: the checkpoints that
    /// the stream of `guess` noted next, all of them certain.
    #[must_use]
    pub fn continued(&self, guess: &Self, parts: &[Self]) -> Self {
        match (&self.0, &guess.0, parts.last().map(|end| &end.0)) {
            (State::Etmv3(real), State::Etmv3(guess), Some(State::Etmv3(end))) => {
                let walks = parts.iter().filter_map(|part| match &part.0 {
                    State::Etmv3(state) => Some(&state.walk),
                    _ => None,
                });
                Self(State::Etmv3(ChainState {
                    walk: real.walk.continued(&guess.walk, walks),
                    ..end.clone()
                }))
            }
            (State::Pft(real), State::Pft(guess), Some(State::Pft(end))) => {
                let walks = parts.iter().filter_map(|part| match &part.0 {
                    State::Pft(state) => Some(&state.walk),
                    _ => None,
                });
                Self(State::Pft(ChainState { walk: real.walk.continued(&guess.walk, walks), ..end.clone() }))
            }
            _ => self.clone(),
        }
    }
}

impl<D: PartialEq, L: PartialEq> ChainState<D, L> {
    fn proves(&self, guess: &Self) -> bool {
        self.packets == guess.packets && self.lowering == guess.lowering && self.walk.proves(&guess.walk)
    }
}

impl FlowStream {
    /// Notes the state. To be called between two pieces of input.
    pub fn checkpoint(&mut self, program: &Program) -> Checkpoint {
        Checkpoint(match &mut self.0 {
            FlowChain::Etmv3(chain) => State::Etmv3(chain.checkpoint(program)),
            FlowChain::Pft(chain) => State::Pft(chain.checkpoint(program)),
            FlowChain::Mtb(_) => State::Whole,
        })
    }

    /// Goes on in a state that a stream with the same configuration noted, whatever was decoded before. What was learned of
    /// the program is kept, and counts go on.
    pub fn go_on_from(&mut self, checkpoint: &Checkpoint, program: &Program) {
        match (&mut self.0, &checkpoint.0) {
            (FlowChain::Etmv3(chain), State::Etmv3(state)) => chain.go_on_from(state, program),
            (FlowChain::Pft(chain), State::Pft(state)) => chain.go_on_from(state, program),
            _ => {}
        }
    }
}
