//! Problems with a recording.

use std::fmt;

use super::role::Role;
use super::seen::{ChannelSeen, Listed};

/// Why a recording cannot be read, or no bytes can be read from it.
#[derive(Clone, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", prefix = "recording_")]
#[non_exhaustive]
pub enum RecordingProblem {
    /// Starts like a zip file but is not one; the zip reader's message.
    Zip(String),
    /// A zip file without a file that a sigrok session needs.
    NoEntry {
        /// The name of the missing file.
        name: String,
    },
    /// A file in the archive is damaged, or packed in a way that sigrok does not use.
    Entry {
        /// The file's name.
        name: String,
        /// The problem.
        problem: String,
    },
    /// A required key is missing.
    MissingKey {
        /// The key.
        key: &'static str,
    },
    /// A value is invalid.
    Value {
        /// The key.
        key: &'static str,
        /// The expected form.
        expected: &'static str,
        /// The value found.
        found: String,
    },
    /// More of something than a limit allows.
    TooMuch {
        /// The items that exceed the limit.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// The time goes backwards.
    TimeGoesBack,
    /// A table has no column of levels.
    NoLevels,
    /// No channel is recorded.
    NoChannels,
    /// An option names a channel that is not recorded.
    UnknownChannel {
        /// The name.
        name: String,
        /// The nearest channel name, if one is near enough.
        nearest: Option<String>,
        /// The channels, or the first few of them.
        channels: Vec<String>,
    },
    /// Two channels have the same role.
    RoleTwice {
        /// The role.
        role: Role,
    },
    /// SWO and a trace port are both requested.
    BothWires,
    /// The channel of a required role is unknown.
    NoChannel {
        /// The role.
        role: Role,
        /// The channels, or the first few of them.
        channels: Vec<String>,
    },
    /// A channel, or every channel, carries no signal.
    NoSignal {
        /// The channel's name; `None` for every channel.
        channel: Option<String>,
        /// The activity of all channels.
        seen: Vec<ChannelSeen>,
    },
    /// Several channels carry readable bytes.
    Ambiguous {
        /// The channels' names.
        channels: Vec<String>,
    },
    /// Nothing in the recording can be read as bytes.
    Unreadable {
        /// The activity of all channels.
        seen: Vec<ChannelSeen>,
    },
    /// A bit rate is given for a trace port, whose clock is recorded.
    RateOfPort,
    /// A bit rate is given, but the recording's sample rate is unknown.
    NoRate,
    /// A bit has too few samples.
    TooSlow {
        /// The number of samples in a bit, in tenths.
        tenths: u64,
    },
    /// Options for recordings are given, but the file is not a recording.
    NotARecording,
    /// A sample rate is given, but the recording states its own rate.
    RateTwice,
    /// The recording names channels but has no samples.
    NoSamples,
}

impl RecordingProblem {
    /// A stable short name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::NotARecording { .. } => "recording_not_a_recording",
            _ => self.into(),
        }
    }
}

impl fmt::Display for RecordingProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zip(words) => write!(f, "is not a complete zip file: {words}"),
            Self::NoEntry { name } => write!(f, "is a zip file without `{name}`, expected a sigrok session"),
            Self::Entry { name, problem } => write!(f, "`{name}` in the archive {problem}"),
            Self::MissingKey { key } => write!(f, "has no `{key}`"),
            Self::Value { key, expected, found } if key.contains(' ') => {
                write!(f, "expected {expected} for {key}, found `{found}`")
            }
            Self::Value { key, expected, found } => {
                write!(f, "expected {expected} for `{key}`, found `{found}`")
            }
            Self::TooMuch { what, limit } => write!(f, "has more than {limit} {what}"),
            Self::TimeGoesBack => f.write_str("a time is earlier than the one before it"),
            Self::NoLevels => f.write_str("is not a recording: no column has levels"),
            Self::NoChannels => f.write_str("contains no channels"),
            Self::UnknownChannel { name, nearest: Some(nearest), channels } => {
                let channels = channels.join(", ");
                write!(f, "there is no channel `{name}`, the nearest name is `{nearest}` among {channels}")
            }
            Self::UnknownChannel { name, nearest: None, channels } => {
                write!(f, "there is no channel `{name}`, expected one of {}", channels.join(", "))
            }
            Self::RoleTwice { role } => write!(f, "two channels have the role {role}"),
            Self::BothWires => {
                f.write_str("the options select both SWO and a trace port, expected one of them")
            }
            Self::NoChannel { role, channels } => {
                write!(f, "the channel for {role} is unknown, expected one of {}", channels.join(", "))
            }
            Self::NoSignal { channel: Some(channel), seen } => {
                write!(f, "channel `{channel}` carries no signal: {}", Listed(seen))
            }
            Self::NoSignal { channel: None, seen } => {
                write!(f, "no channel carries a signal: {}", Listed(seen))
            }
            Self::Ambiguous { channels } => {
                write!(f, "several channels carry bytes: {}", channels.join(", "))
            }
            Self::Unreadable { seen } => {
                write!(f, "no bytes can be read with these options: {}", Listed(seen))
            }
            Self::RateOfPort => {
                f.write_str("is read as a trace port, which has its own clock, but a bit rate is for SWO")
            }
            Self::NoRate => {
                f.write_str("a bit rate is given, but the recording does not state its sample rate")
            }
            Self::TooSlow { tenths } => {
                write!(f, "has only {}.{} samples per bit, expected 2 or more", tenths / 10, tenths % 10)
            }
            Self::RateTwice => f.write_str("states its own sample rate, and another one is given"),
            Self::NoSamples => f.write_str("names channels but has no samples"),
            Self::NotARecording => f.write_str(
                "is not a recording of a logic analyser, but options for such recordings were given",
            ),
        }
    }
}
