//! The activity of a channel.

use std::fmt;

use super::role::Wire;

/// The signals on a channel, by the beginning of the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelSeen {
    /// The channel.
    pub name: String,
    /// Its activity.
    pub signal: Signal,
}

/// What a channel did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// It kept its level.
    Still {
        /// Which one.
        high: bool,
    },
    /// It changed as evenly as a clock.
    Clock {
        /// How often.
        changes: u64,
    },
    /// It can be read as bytes.
    Bytes {
        /// In which way.
        wire: Wire,
        /// Whether only with high for low.
        inverted: bool,
        /// The bit rate, if the recording states one.
        bits_per_second: Option<u64>,
        /// How many bytes were read.
        bytes: u64,
        /// How many errors were among them.
        errors: u64,
    },
    /// It did something else.
    Other {
        /// How often it changed.
        changes: u64,
    },
}

/// Channels in a sentence: those that did something before those that did not.
pub(super) struct Listed<'a>(pub(super) &'a [ChannelSeen]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// As many as fit into a sentence.
        const SHOWN: usize = 8;
        let is_still = |seen: &&ChannelSeen| matches!(seen.signal, Signal::Still { .. });
        let (still, moving): (Vec<_>, Vec<_>) = self.0.iter().partition(is_still);
        for (index, seen) in moving.into_iter().chain(still).take(SHOWN).enumerate() {
            write!(f, "{}{seen}", if index == 0 { "" } else { ", " })?;
        }
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

impl fmt::Display for ChannelSeen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, signal } = self;
        match signal {
            Signal::Still { high: true } => write!(f, "{name} stays high"),
            Signal::Still { high: false } => write!(f, "{name} stays low"),
            Signal::Clock { changes } => write!(f, "{name} is like a clock ({changes} changes)"),
            Signal::Other { changes } => write!(f, "{name} has an unknown signal ({changes} changes)"),
            Signal::Bytes { wire, inverted, bits_per_second, bytes, errors } => {
                write!(f, "{name} reads as {wire}")?;
                if let Some(rate) = bits_per_second {
                    write!(f, " of {rate} baud")?;
                }
                let turned = if *inverted { " if it is inverted" } else { "" };
                write!(f, "{turned} ({errors} errors in {bytes} bytes)")
            }
        }
    }
}
