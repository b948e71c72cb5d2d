//! The interface of a protocol to everything outside its folder.

use core::fmt;

use crate::directive::Rules;
use crate::ids::TraceId;

use super::decode::Decode;
use super::lower::Lower;

/// A trace protocol, by the configuration of one source.
///
/// Streams use nothing else of a protocol. A protocol implements this trait for its configuration and has one
/// line in `source/dispatch.rs`.
pub trait Protocol: Clone + fmt::Debug + Eq {
    /// The protocol's name on the command line and in the line formats.
    const NAME: &'static str;

    /// Bytes → packets.
    type Decoder: Decode + Clone + fmt::Debug + PartialEq;

    /// Packets → directives.
    type Lowering: Lower<Packet = <Self::Decoder as Decode>::Packet> + Clone + fmt::Debug + PartialEq;

    /// A decoder for the source's first byte.
    fn decoder(&self) -> Self::Decoder;

    /// A lowering for the source's first packet.
    fn lowering(&self) -> Self::Lowering;

    /// The rules by which flow follows the source's directives.
    fn rules(&self) -> Rules;

    /// The source's ID in formatted trace, if its registers hold one.
    fn trace_id(&self) -> Option<TraceId>;
}
