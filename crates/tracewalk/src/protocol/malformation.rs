//! Why bytes are not a packet, and who is at fault.

use core::fmt;

/// Why bytes are not a packet.
///
/// [`Malformation::at_fault`] distinguishes a fault of the trace from one of the configuration it is read
/// with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
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
        /// The field's value.
        found: u64,
        /// The values that the protocol allows.
        expected: &'static str,
    },
    /// A run of zero bytes that is not an A-sync.
    NotASync {
        /// How many zero bytes.
        zeros: u32,
        /// The byte after them.
        found: u8,
        /// The fewest zero bytes of the protocol's A-sync.
        fewest: u32,
    },
    /// The trace ends inside a packet.
    Truncated {
        /// The packet's name.
        packet: &'static str,
    },
    /// The trace ends inside a packet, as trace of this protocol does that ends anywhere: no damage.
    Incomplete {
        /// The packet's name.
        packet: &'static str,
    },
    /// A synchronisation packet begins inside the packet, whose rest was lost.
    Interrupted {
        /// The packet's name.
        packet: &'static str,
    },
}

/// The part at fault if bytes cannot be decoded.
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
            Self::Incomplete { .. } => "incomplete",
            Self::Interrupted { .. } => "interrupted",
        }
    }

    /// Whether something is wrong. An incomplete packet is only cut off.
    #[must_use]
    pub const fn is_damage(self) -> bool {
        !matches!(self, Self::Incomplete { .. })
    }

    /// The part at fault.
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
                write!(
                    f,
                    "found {} {packet} packet, which the configuration excludes ({setting})",
                    article(packet)
                )
            }
            Self::ReservedValue { packet, field, found, expected } => {
                write!(
                    f,
                    "found {field} 0x{found:02x} in {} {packet} packet, expected {expected}",
                    article(packet)
                )
            }
            Self::NotASync { zeros, found, fewest } => write!(
                f,
                "found {zeros} zero bytes and then 0x{found:02x}, expected an A-sync of at least {fewest} zero bytes and 0x80"
            ),
            Self::Interrupted { packet } => {
                write!(f, "found a synchronisation packet inside {} {packet} packet", article(packet))
            }
            Self::Truncated { packet } | Self::Incomplete { packet } => {
                write!(f, "found the end of the trace inside {} {packet} packet", article(packet))
            }
        }
    }
}

/// The indefinite article before the name of a packet.
fn article(packet: &str) -> &'static str {
    if packet.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" }
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
                Malformation::NotASync { zeros: 4, found: 0x80, fewest: 5 },
                "found 4 zero bytes and then 0x80, expected an A-sync of at least 5 zero bytes and 0x80",
            ),
            (Malformation::Truncated { packet: "atom" }, "found the end of the trace inside an atom packet"),
        ];
        for (malformation, text) in texts {
            assert_eq!(malformation.to_string(), text);
        }
    }
}
