//! How a logic analyser's recording is read.

use clap::Args;
use tracewalk_input::capture::wire::{Role, Samples, Wire, WireOptions, parse_rate};

/// The user's statements about a recording.
#[derive(Args, Clone, Debug)]
pub(crate) struct RecordingArgs {
    /// The encoding on the wires of a recording: `uart` or `manchester` (SWO), or `port` (a trace port).
    #[arg(long, value_name = "WIRE", help_heading = "Recording")]
    pub(crate) wire: Option<Wire>,

    /// The bit rate of SWO in bits per second; measured if omitted.
    #[arg(long, value_name = "BITS", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Recording")]
    pub(crate) baud: Option<u64>,

    /// The role of a channel, if its name does not state it: `swo`, `clk`, `d0`, `d1` …; can be given several times.
    #[arg(long = "channel", value_name = "NAME=ROLE", value_parser = channel, help_heading = "Recording")]
    pub(crate) channels: Vec<(String, Role)>,

    /// The levels on the wires are inverted. For SWO, tracewalk detects this if the bytes leave no doubt.
    #[arg(long, help_heading = "Recording")]
    pub(crate) invert: bool,

    /// The sample rate of a file of bare samples, such as sigrok's format `binary`, for example 24MHz. Channels are
    /// named by their bit numbers: --channel 0=swo.
    #[arg(long, value_name = "RATE", value_parser = rate, help_heading = "Recording")]
    pub(crate) rate: Option<u64>,

    /// The size of each sample in bytes.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u8).range(1..=8), requires = "rate", default_value_t = 1, help_heading = "Recording")]
    pub(crate) sample_bytes: u8,
}

impl RecordingArgs {
    pub(crate) fn options(&self) -> WireOptions {
        WireOptions {
            wire: self.wire,
            baud: self.baud,
            channels: self.channels.clone(),
            inverted: self.invert.then_some(true),
            samples: self.rate.map(|rate| Samples { rate, bytes: self.sample_bytes }),
        }
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate is positive, and far less than 2^63"
)]
fn rate(text: &str) -> Result<u64, String> {
    let rate = parse_rate(text).filter(|rate| (1.0..1e15).contains(rate));
    rate.map(|rate| rate.round() as u64).ok_or_else(|| "expected a rate, for example 24MHz".to_owned())
}

fn channel(text: &str) -> Result<(String, Role), String> {
    // A name may have a `=` in it, a role has none.
    let (name, role) = text.rsplit_once('=').ok_or("expected NAME=ROLE, for example PB3=swo")?;
    let role =
        role.parse().map_err(|error: tracewalk_input::capture::wire::ParseWireError| error.to_string())?;
    Ok((name.to_owned(), role))
}
