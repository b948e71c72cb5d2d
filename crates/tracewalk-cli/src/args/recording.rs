//! How a logic analyser's recording is read.

use clap::Args;
use tracewalk_input::capture::wire::{Role, Wire, WireOptions};

/// What the user says of a recording.
#[derive(Args, Clone, Debug)]
pub(crate) struct RecordingArgs {
    /// How bytes went over the wires of a recording: `uart` or `manchester` (SWO), or `port` (a trace port).
    #[arg(long, value_name = "WIRE", help_heading = "Recording")]
    pub(crate) wire: Option<Wire>,

    /// How many bits SWO sent in a second, instead of measuring it.
    #[arg(long, value_name = "BITS", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Recording")]
    pub(crate) baud: Option<u64>,

    /// What a channel is, if its name does not say it: `swo`, `clk`, `d0`, `d1` …; can be given several times.
    #[arg(long = "channel", value_name = "NAME=ROLE", value_parser = channel, help_heading = "Recording")]
    pub(crate) channels: Vec<(String, Role)>,
}

impl RecordingArgs {
    pub(crate) fn options(&self) -> WireOptions {
        WireOptions { wire: self.wire, baud: self.baud, channels: self.channels.clone() }
    }
}

fn channel(text: &str) -> Result<(String, Role), String> {
    // A name may have a `=` in it, a role has none.
    let (name, role) = text.rsplit_once('=').ok_or("expected NAME=ROLE, like PB3=swo")?;
    let role =
        role.parse().map_err(|error: tracewalk_input::capture::wire::ParseWireError| error.to_string())?;
    Ok((name.to_owned(), role))
}
