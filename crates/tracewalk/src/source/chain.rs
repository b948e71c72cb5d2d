//! The plain chain: one protocol's decoder and lowering, and flow.
//!
//! ```text
//! bytes ─ Packets<Decoder> ─▶ Item ─ Lowering ─▶ Directive ─ Flow ─▶ Element
//! ```
//!
//! This chain determines everything that a stream reports. [`MemoChain`](super::memo::MemoChain) only repeats
//! its results faster.

use crate::directive::{Directive, Waypoints};
use crate::flow::{Element, Execution, Flow, TakeElements};
use crate::program::Program;
use crate::protocol::{Emit, Item, Loss, Lower, Malformation, Packets, Protocol, TakeItem};
use crate::span::{Span, StreamOffset};

/// The numbers of items in a source's packet stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketCounts {
    /// Packets.
    pub packets: u64,
    /// Malformed stretches.
    pub malformed: u64,
}

/// A decoder, a lowering, and flow.
#[derive(Clone, Debug)]
pub(super) struct Chain<P: Protocol> {
    pub(super) packets: Packets<P::Decoder>,
    pub(super) interpreter: Interpreter<P::Lowering>,
}

/// The part of a chain after the packets.
#[derive(Clone, Debug)]
pub(super) struct Interpreter<L> {
    pub(super) lowering: L,
    pub(super) flow: Flow,
    pub(super) counts: PacketCounts,
}

/// The state of a chain between two bytes: everything that the meaning of the next bytes depends on.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(bound(
        serialize = "P::Decoder: serde::Serialize, P::Lowering: serde::Serialize",
        deserialize = "P::Decoder: serde::Deserialize<'de>, P::Lowering: serde::Deserialize<'de>"
    ))
)]
pub(super) struct ChainState<P: Protocol> {
    packets: Packets<P::Decoder>,
    lowering: P::Lowering,
    execution: Execution,
}

impl<P: Protocol> Chain<P> {
    pub(super) fn new(config: &P, flow: Flow) -> Self {
        let counts = PacketCounts::default();
        let interpreter = Interpreter { lowering: config.lowering(), flow, counts };
        Self { packets: Packets::new(config.decoder()), interpreter }
    }

    pub(super) fn push(&mut self, bytes: &[u8], program: &Program, sink: &mut impl TakeElements) {
        self.packets.push(bytes, &mut self.interpreter.interpreting(program, sink));
    }

    /// Ends the trace so far: the next bytes do not continue it.
    pub(super) fn interrupt(&mut self, loss: Loss, program: &Program, sink: &mut impl TakeElements) {
        let span = Span::new(self.packets.position(), 0);
        let mut interpreting = self.interpreter.interpreting(program, sink);
        // The packet that the loss cut off is part of the loss, and reports it.
        interpreting.truncated = loss;
        self.packets.lose_sync(&mut interpreting);
        interpreting.lost(span, loss);
    }

    pub(super) fn finish(&mut self, program: &Program, sink: &mut impl TakeElements) {
        self.packets.finish(&mut self.interpreter.interpreting(program, sink));
        let Interpreter { lowering, flow, .. } = &mut self.interpreter;
        lowering.finish(&mut Flowing { flow: &mut *flow, program, sink });
        flow.finish(program, &mut |element| sink.element(element));
    }

    /// Restarts before the first byte, but keeps what was learned of the program.
    pub(super) fn begin_again(&mut self, config: &P) {
        self.packets = Packets::new(config.decoder());
        self.interpreter.lowering = config.lowering();
        self.interpreter.counts = PacketCounts::default();
        self.interpreter.flow.begin_again();
    }

    pub(super) fn state(&mut self, program: &Program) -> ChainState<P> {
        ChainState {
            packets: self.packets.clone(),
            lowering: self.interpreter.lowering.clone(),
            execution: self.interpreter.flow.checkpoint(program),
        }
    }

    pub(super) fn resume(&mut self, state: &ChainState<P>, program: &Program) {
        self.packets.clone_from(&state.packets);
        self.interpreter.lowering.clone_from(&state.lowering);
        self.interpreter.flow.go_on_from(&state.execution, program);
    }

    /// The plain chain: [`MemoChain`](super::memo::MemoChain) has the same method.
    pub(super) const fn plain(&self) -> &Self {
        self
    }

    pub(super) const fn plain_mut(&mut self) -> &mut Self {
        self
    }
}

impl<P: Protocol> ChainState<P> {
    /// The state before the byte at `at`, with nothing known of the bytes before it.
    pub(super) fn in_the_middle(config: &P, at: StreamOffset) -> Self {
        Self {
            packets: Packets::starting_at(config.decoder(), at),
            lowering: config.lowering(),
            execution: Execution::in_the_middle(config.rules()),
        }
    }

    pub(super) fn position(&self) -> StreamOffset {
        self.packets.position()
    }

    /// Whether malformed or unsynchronised bytes before this state are still to be reported.
    pub(super) fn is_in_gap(&self) -> bool {
        self.packets.is_in_gap()
    }

    pub(super) fn proves(&self, guess: &Self) -> bool {
        self.packets == guess.packets
            && self.lowering == guess.lowering
            && self.execution.proves(&guess.execution)
    }

    pub(super) fn is_certain(&self, real: &Self, guess: &Self) -> bool {
        self.execution.is_certain(&real.execution, &guess.execution)
    }

    /// This state advanced to the last of `parts`, which follow `guess`.
    pub(super) fn continued<'a>(
        &'a self,
        guess: &Self,
        parts: impl Iterator<Item = &'a Self> + Clone,
    ) -> Self {
        let Some(end) = parts.clone().last() else { return self.clone() };
        Self {
            execution: self.execution.continued(&guess.execution, parts.map(|part| &part.execution)),
            ..end.clone()
        }
    }
}

impl PacketCounts {
    #[inline]
    const fn count<P>(&mut self, item: &Item<P>) {
        match item {
            Item::Packet(_) => self.packets += 1,
            Item::Malformed(_) => self.malformed += 1,
            Item::Unsynchronised => {}
        }
    }
}

// The methods from here to the graph are always inlined, so that frequent packets are decoded in one loop.

impl<L> Interpreter<L> {
    #[inline(always)]
    pub(super) fn interpreting<'a, S>(
        &'a mut self,
        program: &'a Program,
        sink: &'a mut S,
    ) -> Interpreting<'a, L, S> {
        Interpreting { interpreter: self, program, sink, truncated: Loss::Cut }
    }
}

/// Receives items, and passes on the elements that they prove.
pub(super) struct Interpreting<'a, L, S> {
    interpreter: &'a mut Interpreter<L>,
    program: &'a Program,
    sink: &'a mut S,
    /// The treatment of an incomplete packet at the end of the input.
    truncated: Loss,
}

impl<L: Lower, S: TakeElements> Interpreting<'_, L, S> {
    fn lost(&mut self, span: Span, loss: Loss) {
        let Interpreter { lowering, flow, .. } = &mut *self.interpreter;
        lowering.lost(span, loss, &mut Flowing { flow, program: self.program, sink: self.sink });
    }
}

impl<L: Lower, S: TakeElements> TakeItem<L::Packet> for Interpreting<'_, L, S> {
    #[inline(always)]
    fn take(&mut self, item: Item<L::Packet>, span: Span, _bytes: &[u8]) {
        self.interpreter.counts.count(&item);
        match item {
            Item::Packet(packet) => {
                let Interpreter { lowering, flow, .. } = &mut *self.interpreter;
                lowering.lower(&packet, span, &mut Flowing { flow, program: self.program, sink: self.sink });
            }
            Item::Malformed(Malformation::Truncated { .. }) => self.lost(span, self.truncated),
            Item::Malformed(_) => self.lost(span, Loss::Lost),
            // No position is known to lose: before the first synchronisation, or after a malformed stretch.
            Item::Unsynchronised => {}
        }
    }
}

/// Receives directives, and passes on the elements that they prove.
struct Flowing<'a, S> {
    flow: &'a mut Flow,
    program: &'a Program,
    sink: &'a mut S,
}

impl<S: TakeElements> Emit for Flowing<'_, S> {
    #[inline(always)]
    fn emit(&mut self, directive: Directive, span: Span) {
        self.flow.follow(self.program, directive, span, &mut |element: Element| self.sink.element(element));
    }

    #[inline(always)]
    fn emit_waypoints(&mut self, waypoints: Waypoints, span: Span) {
        let sink = &mut |element: Element| self.sink.element(element);
        self.flow.follow_waypoints(self.program, waypoints, span, sink);
    }
}
