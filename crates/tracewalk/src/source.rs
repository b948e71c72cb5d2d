//! One source's bytes, whatever its protocol, to packets or to program flow.
//!
//! This is where the rooms are joined: [`PacketStream`] runs a protocol's decoder, [`FlowStream`] its decoder and
//! lowering and the flow behind them. Both take bytes in pieces of any size, and both give the same items however the
//! pieces were cut.
//!
//! ```
//! use tracewalk::flow::Element;
//! use tracewalk::ids::Address;
//! use tracewalk::program::Program;
//! use tracewalk::protocol::etmv3;
//! use tracewalk::source::{FlowStream, SourceConfig};
//!
//! let mut program = Program::new();
//! program.add(Address::new(0x100), &[0x01, 0x20, 0x70, 0x47])?; // movs r0, #1; bx lr
//! let config = SourceConfig::Etmv3(etmv3::Config::for_core("cortex-m3").expect("a known core"));
//! let mut flow = FlowStream::new(&config);
//! let mut instructions = 0;
//! let mut count = |element| {
//!     if let Element::Block(block) = element {
//!         instructions += block.instructions;
//!     }
//! };
//! // A-sync, I-sync at 0x100 in Thumb, two executed instructions.
//! flow.push(&[0, 0, 0, 0, 0, 0x80, 0x08, 0x21, 0x01, 0x01, 0x00, 0x00, 0x88], &program, &mut count);
//! flow.finish(&program, &mut count);
//! assert_eq!(instructions, 2);
//! # Ok::<(), tracewalk::program::AddRegionError>(())
//! ```

mod chain;
mod counter;
mod intern;
mod memo;
mod segment;
#[cfg(test)]
mod tests;

use crate::directive::Rules;
use crate::flow::{Element, Engine, Flow, TakeElements};
use crate::ids::{Address, TraceId};
use crate::program::Program;
use crate::protocol::{Describe, Item, Malformation, Packets, etmv3, mtb, pft};
use crate::span::Span;

use chain::Chain;
pub use counter::PacketCounter;
pub use segment::Checkpoint;

/// A source's protocol and its configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceConfig {
    /// ETMv3.
    Etmv3(etmv3::Config),
    /// A micro trace buffer, its packets in order. Nothing else of its configuration matters to them.
    Mtb {
        /// Where the processor was found halted, if tracing went on up to there.
        halted_at: Option<Address>,
    },
    /// PFT.
    Pft(pft::Config),
}

impl SourceConfig {
    /// The protocol's name, as the command line has it.
    #[must_use]
    pub const fn protocol(&self) -> &'static str {
        match self {
            Self::Etmv3(_) => "etmv3",
            Self::Mtb { .. } => "mtb",
            Self::Pft(_) => "pft",
        }
    }

    /// The source's ID in formatted trace, where its registers say it.
    #[must_use]
    pub const fn trace_id(&self) -> Option<TraceId> {
        match self {
            Self::Etmv3(config) => config.trace_id,
            Self::Mtb { .. } => None,
            Self::Pft(config) => config.trace_id,
        }
    }

    /// What flow has to know of the source.
    #[must_use]
    pub const fn rules(&self) -> Rules {
        match self {
            Self::Etmv3(config) => config.rules(),
            Self::Mtb { .. } => mtb::RULES,
            Self::Pft(config) => config.rules(),
        }
    }
}

/// One item of a packet stream, its packet seen only through what it says of itself.
#[derive(Clone, Copy)]
pub enum PacketItem<'a> {
    /// A packet.
    Packet(&'a dyn Describe),
    /// Bytes that are no packet, up to where decoding goes on.
    Malformed(Malformation),
    /// Bytes passed over in the search for synchronisation.
    Unsynchronised,
}

/// A source's bytes to packets.
#[derive(Clone, Debug)]
pub struct PacketStream(PacketChain);

#[derive(Clone, Debug)]
enum PacketChain {
    Etmv3(Packets<etmv3::Decoder>),
    Mtb(Packets<mtb::Decoder>),
    Pft(Packets<pft::Decoder>),
}

impl PacketStream {
    /// A stream from the source's first byte.
    #[must_use]
    pub fn new(config: &SourceConfig) -> Self {
        Self(match config {
            SourceConfig::Etmv3(config) => PacketChain::Etmv3(Packets::new(etmv3::Decoder::new(config))),
            SourceConfig::Mtb { .. } => PacketChain::Mtb(Packets::new(mtb::Decoder)),
            SourceConfig::Pft(config) => PacketChain::Pft(Packets::new(pft::Decoder::new(config))),
        })
    }

    /// Takes the next bytes; calls `sink` with each item, its place and its bytes.
    pub fn push(&mut self, bytes: &[u8], sink: &mut impl FnMut(PacketItem<'_>, Span, &[u8])) {
        match &mut self.0 {
            PacketChain::Etmv3(packets) => packets.push(bytes, &mut described(sink)),
            PacketChain::Mtb(packets) => packets.push(bytes, &mut described(sink)),
            PacketChain::Pft(packets) => packets.push(bytes, &mut described(sink)),
        }
    }

    /// Bytes were lost before the next ones.
    pub fn lose_sync(&mut self, sink: &mut impl FnMut(PacketItem<'_>, Span, &[u8])) {
        match &mut self.0 {
            PacketChain::Etmv3(packets) => packets.lose_sync(&mut described(sink)),
            PacketChain::Mtb(packets) => packets.lose_sync(&mut described(sink)),
            PacketChain::Pft(packets) => packets.lose_sync(&mut described(sink)),
        }
    }

    /// The source ends here.
    pub fn finish(&mut self, sink: &mut impl FnMut(PacketItem<'_>, Span, &[u8])) {
        match &mut self.0 {
            PacketChain::Etmv3(packets) => packets.finish(&mut described(sink)),
            PacketChain::Mtb(packets) => packets.finish(&mut described(sink)),
            PacketChain::Pft(packets) => packets.finish(&mut described(sink)),
        }
    }

    /// Nobody waits for the rest of a packet that has begun: see [`Packets::forget_incomplete`].
    pub fn forget_incomplete(&mut self) -> usize {
        match &mut self.0 {
            PacketChain::Etmv3(packets) => packets.forget_incomplete(),
            PacketChain::Mtb(packets) => packets.forget_incomplete(),
            PacketChain::Pft(packets) => packets.forget_incomplete(),
        }
    }
}

/// A sink for any protocol's items.
fn described<P: Describe>(
    sink: &mut impl FnMut(PacketItem<'_>, Span, &[u8]),
) -> impl FnMut(Item<P>, Span, &[u8]) {
    |item, span, bytes| match item {
        Item::Packet(packet) => sink(PacketItem::Packet(&packet), span, bytes),
        Item::Malformed(reason) => sink(PacketItem::Malformed(reason), span, bytes),
        Item::Unsynchronised => sink(PacketItem::Unsynchronised, span, bytes),
    }
}

/// How many items a source's packet stream had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketCounts {
    /// Packets.
    pub packets: u64,
    /// Malformed stretches.
    pub malformed: u64,
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

/// A source's bytes to program flow.
#[derive(Clone, Debug)]
pub struct FlowStream(FlowChain);

#[derive(Clone, Debug)]
enum FlowChain {
    Etmv3(Chain<etmv3::Decoder, etmv3::Lowering>),
    Mtb(Chain<mtb::Decoder, mtb::Lowering>),
    Pft(Chain<pft::Decoder, pft::Lowering>),
}

impl FlowStream {
    /// A stream from the source's first byte.
    #[must_use]
    pub fn new(config: &SourceConfig) -> Self {
        Self::with_engine(config, Engine::default())
    }

    /// A stream from the source's first byte, followed in this way.
    #[must_use]
    pub fn with_engine(config: &SourceConfig, engine: Engine) -> Self {
        let flow = Flow::with_engine(config.rules(), engine);
        Self(match config {
            SourceConfig::Etmv3(config) => {
                FlowChain::Etmv3(Chain::new(etmv3::Decoder::new(config), etmv3::Lowering::new(config), flow))
            }
            &SourceConfig::Mtb { halted_at } => {
                FlowChain::Mtb(Chain::new(mtb::Decoder, mtb::Lowering::new().halted_at(halted_at), flow))
            }
            SourceConfig::Pft(config) => {
                FlowChain::Pft(Chain::new(pft::Decoder::new(config), pft::Lowering::new(), flow))
            }
        })
    }

    /// Goes back in front of the source's first byte, and counts from 0. What was learned of the program is kept: program and
    /// configuration have to be those from before.
    pub fn begin_again(&mut self, config: &SourceConfig) {
        match (&mut self.0, Self::new(config).0) {
            (FlowChain::Etmv3(chain), FlowChain::Etmv3(new)) => chain.begin_again(new),
            (FlowChain::Mtb(chain), FlowChain::Mtb(new)) => chain.begin_again(new),
            (FlowChain::Pft(chain), FlowChain::Pft(new)) => chain.begin_again(new),
            (chain, new) => *chain = new,
        }
    }

    /// Takes the next bytes; calls `sink` with what they prove.
    pub fn push(&mut self, bytes: &[u8], program: &Program, sink: &mut impl FnMut(Element)) {
        self.push_to(bytes, program, sink);
    }

    /// [`FlowStream::push`] for one who can take several elements at once.
    pub fn push_to(&mut self, bytes: &[u8], program: &Program, sink: &mut impl TakeElements) {
        match &mut self.0 {
            FlowChain::Etmv3(chain) => chain.push(bytes, program, sink),
            FlowChain::Mtb(chain) => chain.push(bytes, program, sink),
            FlowChain::Pft(chain) => chain.push(bytes, program, sink),
        }
    }

    /// Bytes were lost before the next ones.
    pub fn lose_sync(&mut self, program: &Program, sink: &mut impl FnMut(Element)) {
        self.lose_sync_to(program, sink);
    }

    /// [`FlowStream::lose_sync`] for one who can take several elements at once.
    pub fn lose_sync_to(&mut self, program: &Program, sink: &mut impl TakeElements) {
        match &mut self.0 {
            FlowChain::Etmv3(chain) => chain.lose_sync(program, sink),
            FlowChain::Mtb(chain) => chain.lose_sync(program, sink),
            FlowChain::Pft(chain) => chain.lose_sync(program, sink),
        }
    }

    /// The trace was cut here on purpose, and what comes next belongs to another time: as [`FlowStream::lose_sync`], but
    /// nothing is wrong with what came before, and it is not in [doubt](crate::flow::Doubt).
    pub fn cut(&mut self, program: &Program, sink: &mut impl FnMut(Element)) {
        self.cut_to(program, sink);
    }

    /// [`FlowStream::cut`] for one who can take several elements at once.
    pub fn cut_to(&mut self, program: &Program, sink: &mut impl TakeElements) {
        match &mut self.0 {
            FlowChain::Etmv3(chain) => chain.cut(program, sink),
            FlowChain::Mtb(chain) => chain.cut(program, sink),
            FlowChain::Pft(chain) => chain.cut(program, sink),
        }
    }

    /// The source ends here.
    pub fn finish(&mut self, program: &Program, sink: &mut impl FnMut(Element)) {
        self.finish_to(program, sink);
    }

    /// [`FlowStream::finish`] for one who can take several elements at once.
    pub fn finish_to(&mut self, program: &Program, sink: &mut impl TakeElements) {
        match &mut self.0 {
            FlowChain::Etmv3(chain) => chain.finish(program, sink),
            FlowChain::Mtb(chain) => chain.finish(program, sink),
            FlowChain::Pft(chain) => chain.finish(program, sink),
        }
    }

    /// Nobody waits for the rest of a packet that has begun: see [`Packets::forget_incomplete`].
    pub fn forget_incomplete(&mut self) -> usize {
        match &mut self.0 {
            FlowChain::Etmv3(chain) => chain.forget_incomplete(),
            FlowChain::Mtb(chain) => chain.forget_incomplete(),
            FlowChain::Pft(chain) => chain.forget_incomplete(),
        }
    }

    /// What the packet stream behind the flow had so far.
    #[must_use]
    pub const fn counts(&self) -> PacketCounts {
        match &self.0 {
            FlowChain::Etmv3(chain) => chain.counts(),
            FlowChain::Mtb(chain) => chain.counts(),
            FlowChain::Pft(chain) => chain.counts(),
        }
    }
}
