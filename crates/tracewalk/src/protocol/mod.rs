//! The trace protocols: bytes → packets (what the trace unit said) → directives (what it means).
//!
//! Each protocol is a folder with the same files: `config` (registers → named fields), `packet` (the packet table),
//! `decode`, `encode`, `lower`, `tests`. This module holds what they share: the shape of a decoder, the reasons why
//! bytes are malformed, fields that several protocols lay out alike, and [`Packets`], which feeds a decoder piece by
//! piece and keeps account of every byte.

mod a_sync;
pub mod branch_address;
pub mod etmv3;
mod i_sync_reason;
pub mod itm;
pub mod mtb;
mod packets;
pub mod pft;
mod registers;
pub(crate) mod resume;
mod skim;
mod synchronisation;
pub mod timestamp;

use core::fmt;

use crate::directive::Directive;
use crate::ids::Address;
use crate::span::Span;

pub use i_sync_reason::ISyncReason;
pub use packets::{Item, Packets, TakeItem};
pub use registers::Registers;

/// A protocol's packet decoder: a state machine without I/O.
pub trait Decode {
    /// The protocol's packet.
    type Packet: Describe;

    /// Reads what stands at the start of `input`, which is never empty.
    ///
    /// `input` may be a part of what is to come. Where it ends inside a packet the answer is [`Step::NeedInput`], the
    /// state is unchanged, and the caller asks again with the same bytes and more behind them. The answers do not
    /// depend on how the input was cut.
    fn decode(&mut self, input: &[u8]) -> Step<Self::Packet>;

    /// Reads the short and frequent packets at the start of `input`, as long as there are any, and gives each to `taker`;
    /// returns how many bytes were read. What [`Decode::decode`] would answer to the same bytes is the same; this only
    /// spares its questions.
    fn decode_frequent(&mut self, input: &[u8], taker: &mut impl TakeFrequent<Self::Packet>) -> usize {
        let _ = (input, taker);
        0
    }

    /// Passes over short and frequent packets at the start of `input`; returns how many bytes and how many packets. What they
    /// said is lost, and addresses that are compressed against it are wrong from here on: this is for who only counts.
    fn skim(&mut self, input: &[u8]) -> (usize, u64) {
        let _ = input;
        (0, 0)
    }

    /// What `input` is when nothing comes behind it, where [`Decode::decode`] asked for more.
    fn truncated(&self, input: &[u8]) -> Malformation;

    /// Bytes were lost before the next input: search for synchronisation.
    fn desynchronise(&mut self);
}

/// What a decoder found at the start of its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<P> {
    /// A packet of `bytes` bytes, at least one.
    Packet {
        /// The packet.
        packet: P,
        /// How many bytes it takes.
        bytes: usize,
    },
    /// `bytes` bytes, at least one, that are no packet. The decoder searches for synchronisation behind them.
    Malformed {
        /// What is wrong with them.
        reason: Malformation,
        /// How many bytes are certain to belong to it.
        bytes: usize,
    },
    /// `bytes` bytes, at least one, passed over in the search for synchronisation.
    Searched {
        /// How many.
        bytes: usize,
    },
    /// The input ends inside a packet.
    NeedInput,
}

/// Takes directives. Closures do; what is to be joined to a lowering in one loop has a method that is always inlined.
pub trait Emit {
    /// Takes the next directive, and the span of the packet that it came from.
    fn emit(&mut self, directive: Directive, span: Span);
}

impl<F: FnMut(Directive, Span)> Emit for F {
    #[inline(always)]
    fn emit(&mut self, directive: Directive, span: Span) {
        self(directive, span);
    }
}

/// Takes frequent packets: see [`Decode::decode_frequent`].
pub trait TakeFrequent<P> {
    /// Takes the next packet, which starts at `at` and takes `bytes` bytes.
    fn take(&mut self, packet: P, at: usize, bytes: usize);
}

/// A protocol's interpretation: packets → directives.
pub trait Lower {
    /// The protocol's packet.
    type Packet;

    /// Tells what `packet` means, in the order in which it happened.
    ///
    /// A directive may be held back until a later packet makes it certain; it is emitted with the span of the packet
    /// that it came from.
    fn lower(&mut self, packet: &Self::Packet, span: Span, emit: &mut impl Emit);

    /// Trace was malformed or lost here.
    fn lost(&mut self, span: Span, emit: &mut impl Emit);

    /// The trace ends: what was held back is certain now.
    fn finish(&mut self, emit: &mut impl Emit);
}

/// A packet that can tell its name and fields, so that exporters need to know no protocol.
pub trait Describe {
    /// The packet's name in the line formats, like `i_sync`.
    fn name(&self) -> &'static str;

    /// Calls `visit` with each field's name and value, in a fixed order. Absent fields are not visited.
    fn fields(&self, visit: &mut dyn FnMut(&'static str, Field<'_>));
}

/// The value of a packet's field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field<'a> {
    /// A number; flags are 0 and 1.
    Number(u64),
    /// An address in the traced processor's memory.
    Address(Address),
    /// A word from a fixed set, or a string of atoms.
    Text(&'a str),
}

/// Why bytes are not a packet.
///
/// [`Malformation::at_fault`] says where to look: at the trace, or at the configuration it is read with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Malformation {
    /// The protocol defines no packet with this header.
    ReservedHeader {
        /// The header byte.
        found: u8,
    },
    /// The packet exists, but the trace unit was configured not to make it.
    NotEnabled {
        /// The packet's name.
        packet: &'static str,
        /// The setting that would allow it, by Arm's register name.
        setting: &'static str,
    },
    /// A field has a value that the protocol reserves.
    ReservedValue {
        /// The packet's name.
        packet: &'static str,
        /// The field.
        field: &'static str,
        /// What it holds.
        found: u64,
        /// What it may hold.
        expected: &'static str,
    },
    /// A run of zero bytes that is not an A-sync.
    NotASync {
        /// How many zero bytes.
        zeros: u32,
        /// The byte behind them.
        found: u8,
    },
    /// The trace ends inside a packet.
    Truncated {
        /// The packet's name.
        packet: &'static str,
    },
}

/// Who is to blame for something that could not be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The bytes themselves: damaged, cut, or not this protocol.
    Trace,
    /// The configuration that they are read with.
    Configuration,
}

impl Malformation {
    /// A short name for line formats.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReservedHeader { .. } => "reserved_header",
            Self::NotEnabled { .. } => "not_enabled",
            Self::ReservedValue { .. } => "reserved_value",
            Self::NotASync { .. } => "not_a_sync",
            Self::Truncated { .. } => "truncated",
        }
    }

    /// Who is to blame.
    #[must_use]
    pub const fn at_fault(self) -> Fault {
        match self {
            Self::NotEnabled { .. } => Fault::Configuration,
            _ => Fault::Trace,
        }
    }
}

impl fmt::Display for Malformation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ReservedHeader { found } => {
                write!(f, "found reserved header 0x{found:02x}, expected a packet header")
            }
            Self::NotEnabled { packet, setting } => {
                write!(f, "found a {packet} packet, which the configuration excludes ({setting})")
            }
            Self::ReservedValue { packet, field, found, expected } => {
                write!(f, "found {field} 0x{found:02x} in a {packet} packet, expected {expected}")
            }
            Self::NotASync { zeros, found } => write!(
                f,
                "found {zeros} zero bytes and then 0x{found:02x}, expected an A-sync of at least five zero bytes and 0x80"
            ),
            Self::Truncated { packet } => write!(f, "found the end of the trace inside a {packet} packet"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn a_malformation_says_what_was_found_and_what_was_expected() {
        let texts = [
            (
                Malformation::ReservedHeader { found: 0x1a },
                "found reserved header 0x1a, expected a packet header",
            ),
            (
                Malformation::NotEnabled { packet: "vmid", setting: "ETMCR[30]" },
                "found a vmid packet, which the configuration excludes (ETMCR[30])",
            ),
            (
                Malformation::ReservedValue {
                    packet: "branch",
                    field: "byte 5",
                    found: 0x80,
                    expected: "bit 7 clear",
                },
                "found byte 5 0x80 in a branch packet, expected bit 7 clear",
            ),
            (
                Malformation::NotASync { zeros: 4, found: 0x80 },
                "found 4 zero bytes and then 0x80, expected an A-sync of at least five zero bytes and 0x80",
            ),
            (Malformation::Truncated { packet: "atom" }, "found the end of the trace inside a atom packet"),
        ];
        for (malformation, text) in texts {
            assert_eq!(malformation.to_string(), text);
        }
    }
}
