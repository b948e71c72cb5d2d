//! The shape of a packet decoder.

use crate::span::StreamOffset;

use super::a_sync::ASync;
use super::describe::Describe;
use super::item::TakeItem;
use super::malformation::Malformation;
use super::step::Step;

/// A protocol's packet decoder: a state machine without I/O.
pub trait Decode {
    /// The protocol's packet.
    type Packet: Describe;

    /// The protocol's synchronisation packet, if it is a run of zero bytes and 0x80.
    const A_SYNC: Option<ASync> = None;

    /// The length of the longest packet that [`Decode::decode_frequent`] reads. It reads no packet that has fewer bytes of
    /// input from its start on.
    const LONGEST_FREQUENT: usize = 8;

    /// Decodes the start of `input`, which is never empty.
    ///
    /// `input` may be incomplete. If it ends inside a packet, the decoder returns [`Step::NeedInput`] and
    /// keeps its state; the caller repeats the call with the same bytes and more after them. Results do not
    /// depend on how the input was cut.
    fn decode(&mut self, input: &[u8]) -> Step<Self::Packet>;

    /// Reads the short and frequent packets at the start of `input`, which starts at `start`, and gives each to `taker`;
    /// returns the number of bytes read, 0 if another packet comes first.
    ///
    /// An optimisation: [`Decode::decode`] gives the same packets for the same bytes, one per call.
    fn decode_frequent(
        &mut self,
        input: &[u8],
        start: StreamOffset,
        taker: &mut impl TakeItem<Self::Packet>,
    ) -> usize {
        let _ = (input, start, taker);
        0
    }

    /// As [`Decode::decode`], if the source ends after `input`, for which [`Decode::decode`] asked for more.
    fn decode_last(&mut self, input: &[u8]) -> Step<Self::Packet> {
        Step::Malformed { reason: self.truncated(input), bytes: input.len() }
    }

    /// The malformation of `input` if the source ends after it, though [`Decode::decode`] asked for more.
    fn truncated(&self, input: &[u8]) -> Malformation;

    /// Bytes were lost before the next input: search for synchronisation.
    fn desynchronise(&mut self);
}
