//! Recordings of a logic analyser → the bytes that went over the wires.
//!
//! A recording is a sigrok session (`.sr`), a value change dump (VCD) or a table (CSV). It states when its channels
//! changed; here that becomes bytes, as a debug probe would have received them:
//!
//! ```text
//! recording        sigrok, vcd, csv, bare samples → channels and the moments of their changes, read piece by piece
//! roles            which channel is which pin
//! unit             how long a bit takes, measured
//! uart, manchester, port    changes → bytes, each with its moment
//! ```
//!
//! What was not stated is inferred by trying: the way of reading that gives the fewest errors is right. Not here: what
//! the bytes mean. They are a capture like any other.
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
mod csv;
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

/// The statements about a recording. The rest is inferred.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WireOptions {
    /// How bytes go over the wires.
    pub wire: Option<Wire>,
    /// How many bits a second SWO sends.
    pub baud: Option<u64>,
    /// What channels are, by their names.
    pub channels: Vec<(String, Role)>,
    /// Whether the wires have high for low.
    pub inverted: Option<bool>,
    /// The rate and size of bare samples in a file without a header.
    pub samples: Option<Samples>,
}

/// Bare samples of a logic analyser, without a header, as in sigrok's format `binary`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Samples {
    /// How many were taken in a second.
    pub rate: u64,
    /// How many bytes each has, 1 to 8; channel n is bit n, and the first byte holds the lowest bits.
    pub bytes: u8,
}

impl WireOptions {
    /// Whether nothing is stated.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The options of `self`, and for the rest those of `other`.
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
    /// A byte, and when it began.
    fn byte(&mut self, byte: u8, at: Tick);

    /// An error on the wires at this place: bytes may be missing or wrong.
    fn error(&mut self, at: Tick);
}

#[cfg(test)]
mod tests;
