//! How a logic analyser's recording is read.

use clap::Args;
use tracewalk_input::capture::wire::{ParseWireError, Role, Samples, Wire, WireOptions, parse_rate};

/// The user's statements about a recording.
#[derive(Args, Clone, Debug)]
pub(crate) struct RecordingArgs {
    /// The encoding on the wires of a recording: [ENCODING][,key=value…].
    ///
    /// ENCODING is `uart` or `manchester` (SWO), or `port` (a trace port). It may be left out. Keys:
    ///
    /// `baud=BITS`: the bit rate of SWO in bits per second; measured if omitted;
    /// `invert`: the levels are inverted. For SWO, tracewalk detects this if the bytes leave no doubt;
    /// `rate=RATE`: the sample rate of a file of bare samples, such as sigrok's format `binary`, for example 24MHz. Channels are named
    /// by their bit numbers: --channel 0=swo; `bytes=N`: the size of each sample, 1 if omitted.
    #[arg(long, value_name = "WIRE", value_delimiter = ',', value_parser = wiring, help_heading = "Recording")]
    pub(crate) wire: Vec<Wiring>,

    /// The role of a channel, if its name does not state it: `swo`, `clk`, `d0`, `d1` …; can be given several times.
    #[arg(long = "channel", value_name = "NAME=ROLE", value_parser = channel, help_heading = "Recording")]
    pub(crate) channels: Vec<(String, Role)>,
}

/// A word of `--wire`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wiring {
    Is(Wire),
    Baud(u64),
    Invert,
    Rate(u64),
    Bytes(u8),
}

impl RecordingArgs {
    pub(crate) fn options(&self) -> WireOptions {
        let mut options = WireOptions { channels: self.channels.clone(), ..WireOptions::default() };
        let (mut samples, mut size) = (None, 1);
        for wiring in &self.wire {
            match *wiring {
                Wiring::Is(wire) => options.wire = Some(wire),
                Wiring::Baud(baud) => options.baud = Some(baud),
                Wiring::Invert => options.inverted = Some(true),
                Wiring::Rate(rate) => samples = Some(rate),
                Wiring::Bytes(bytes) => size = bytes,
            }
        }
        options.samples = samples.map(|rate| Samples { rate, bytes: size });
        options
    }
}

fn wiring(word: &str) -> Result<Wiring, String> {
    let Some((key, value)) = word.split_once('=') else {
        return match word {
            "invert" => Ok(Wiring::Invert),
            _ => word.parse().map(Wiring::Is).map_err(|error: ParseWireError| error.to_string()),
        };
    };
    match key {
        "baud" => {
            let baud = value.parse().ok().filter(|baud| *baud > 0).map(Wiring::Baud);
            baud.ok_or_else(|| "expected bits per second after baud=".to_owned())
        }
        "rate" => rate(value).map(Wiring::Rate),
        "bytes" => {
            let bytes = value.parse().ok().filter(|bytes| (1..=8).contains(bytes)).map(Wiring::Bytes);
            bytes.ok_or_else(|| "expected a number from 1 to 8 after bytes=".to_owned())
        }
        _ => Err("the keys are baud=, invert, rate= and bytes=".to_owned()),
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
    let role = role.parse().map_err(|error: ParseWireError| error.to_string())?;
    Ok((name.to_owned(), role))
}
