//! Converts a logic analyser's recording into the bytes that were sent over the wires.
//!
//! A recording is a sigrok session (`.sr`), a value change dump (VCD) or a table (CSV). It states the moments
//! at which its channels changed. This module turns the changes into the bytes that a debug probe would have
//! received:
//!
//! ```text
//! recording        sigrok, vcd, csv, bare samples → channels and the moments of their changes, read piece by piece
//! roles            which channel is which pin
//! unit             how long a bit takes, measured
//! uart, manchester, port    changes → bytes, each with its moment
//! ```
//!
//! tracewalk infers what the options omit by trial: it takes the way of reading that gives the fewest errors.
//! The meaning of the bytes is not decoded here; they are a capture like any other.
//!
//! ```
//! use tracewalk_input::capture::wire::{self, Recording, Wire, WireOptions};
//!
//! // A byte 0x41 at 1 Mbaud, and the line before and after it.
//! let mut dump = String::from("$timescale 1 us $end $var wire 1 ! SWO $end $enddefinitions $end\n#0 1!\n");
//! for (at, level) in [(20, 0), (21, 1), (22, 0), (27, 1), (28, 0), (29, 1)] {
//!     dump += &format!("#{at} {level}!\n");
//! }
//! dump += "#40\n";
//! let bytes = dump.into_bytes().into();
//! let recording = Recording::from_bytes("swo.vcd".as_ref(), bytes)?.expect("a value change dump");
//! let (bytes, reading) = wire::read(&recording, &WireOptions::default())?;
//! assert_eq!((bytes.as_slice(), reading.wire), (&b"A"[..], Wire::Uart));
//! assert_eq!(reading.bits_per_second().map(f64::round), Some(1e6));
//! # Ok::<(), tracewalk_input::capture::CaptureError>(())
//! ```

mod changes;
pub(super) mod csv;
mod error;
mod manchester;
mod place;
mod port;
mod reading;
mod recording;
mod role;
mod roles;
mod seen;
mod sigrok;
mod survey;
mod times;
mod uart;
mod unit;
mod vcd;
mod ways;

pub use changes::Tick;
pub use error::RecordingProblem;
pub use reading::{Reading, WireError, read};
pub use recording::Recording;
pub use role::{Role, Wire};
pub use roles::ParseWireError;
pub use seen::{ChannelSeen, Signal};
pub use sigrok::parse_rate;
pub use survey::seen_in;
pub use times::ByteTimes;

/// The options for a recording. tracewalk infers what they omit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WireOptions {
    /// The form in which bytes are sent over the wires.
    pub wire: Option<Wire>,
    /// The bit rate of SWO, in bits a second.
    pub baud: Option<u64>,
    /// The roles of channels, by the channels' names.
    pub channels: Vec<(String, Role)>,
    /// Whether the levels are inverted.
    pub inverted: Option<bool>,
    /// The rate and size of bare samples in a file without a header.
    pub samples: Option<Samples>,
}

/// Bare samples of a logic analyser, without a header, as in sigrok's format `binary`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Samples {
    /// The number of samples in a second.
    pub rate: u64,
    /// The number of bytes in a sample, 1 to 8; channel n is bit n, and the first byte holds the lowest bits.
    pub bytes: u8,
}

impl WireOptions {
    /// Whether no option is given.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The options of `self`; those it omits are taken from `other`.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        let channels = if self.channels.is_empty() { &other.channels } else { &self.channels };
        Self {
            wire: self.wire.or(other.wire),
            baud: self.baud.or(other.baud),
            channels: channels.clone(),
            inverted: self.inverted.or(other.inverted),
            samples: self.samples.or(other.samples),
        }
    }
}

/// Receives the bytes read from the wires.
trait Receiver {
    /// Receives a byte and the moment at which it began.
    fn byte(&mut self, byte: u8, at: Tick);

    /// Reports an error on the wires: bytes near this moment may be missing or wrong.
    fn error(&mut self, at: Tick);
}

#[cfg(test)]
mod tests;
