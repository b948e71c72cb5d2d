//! The activity of a channel.

use std::fmt;

use super::role::Wire;

/// The activity of one channel at the beginning of the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelSeen {
    /// The channel.
    pub name: String,
    /// The channel's activity.
    pub signal: Signal,
}

/// The kind of a channel's activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The level is constant.
    Still {
        /// Whether the level is high.
        high: bool,
    },
    /// The level changes as evenly as a clock.
    Clock {
        /// The number of changes.
        changes: u64,
    },
    /// The signal can be read as bytes.
    Bytes {
        /// The form in which the bytes are sent.
        wire: Wire,
        /// Whether the bytes can be read only with inverted levels.
        inverted: bool,
        /// The bit rate, if the recording states its sample rate.
        bits_per_second: Option<u64>,
        /// The number of bytes read.
        bytes: u64,
        /// The number of errors among the bytes.
        errors: u64,
    },
    /// The channel carries some other signal.
    Other {
        /// The number of changes.
        changes: u64,
    },
}

/// Channels in a sentence: active channels first.
pub(super) struct Listed<'a>(pub(super) &'a [ChannelSeen]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// The most channels in a sentence.
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
            Signal::Clock { changes } => write!(f, "{name} looks like a clock ({changes} changes)"),
            Signal::Other { changes } => write!(f, "{name} carries an unknown signal ({changes} changes)"),
            Signal::Bytes { wire, inverted, bits_per_second, bytes, errors } => {
                write!(f, "{name} reads as {wire}")?;
                if let Some(rate) = bits_per_second {
                    write!(f, " at {rate} baud")?;
                }
                let turned = if *inverted { " if inverted" } else { "" };
                write!(f, "{turned} ({errors} errors in {bytes} bytes)")
            }
        }
    }
}
