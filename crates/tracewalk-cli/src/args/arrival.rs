//! Captures that arrive over time.

use clap::Args;

/// How long to wait for a capture that arrives over time.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct ArrivalArgs {
    /// Keep reading as the file grows, until Ctrl-C or SIGTERM.
    #[arg(short, long, help_heading = "Capture")]
    pub(crate) follow: bool,

    /// End when nothing has arrived for this long; for --follow, tcp:HOST:PORT and standard input.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, help_heading = "Capture")]
    pub(crate) idle: Option<f64>,
}

fn seconds(text: &str) -> Result<f64, String> {
    /// A hundred years, which every clock can represent.
    const MOST: f64 = 3.2e9;
    let seconds = text.parse::<f64>().ok().filter(|seconds| *seconds > 0.0 && *seconds < MOST);
    seconds.ok_or_else(|| "expected a time in seconds, for example 0.5".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_positive_and_finite() {
        assert_eq!(seconds("0.5"), Ok(0.5));
        for wrong in ["", "0", "-1", "nan", "inf", "1e300", "soon"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
