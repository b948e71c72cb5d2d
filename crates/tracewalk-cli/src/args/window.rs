//! `--from` and `--to`: a part of the trace.

use clap::Args;
use tracewalk_analysis::place::ParsePlaceError;
use tracewalk_analysis::{Place, Window};
use tracewalk_session::View;

use super::numbers::number;
use crate::failure::Failure;

/// The part of the trace that is reported.
#[derive(Args, Clone, Debug)]
pub(crate) struct WindowArgs {
    /// Report execution from here on: 2000 (after 2000 instructions), 2000c (after 2000 cycles), 2000t (from timestamp
    /// 2000), @0x7d0 (from byte 0x7d0 of the capture), 0x8000306 (an address), main or main+0x10 (a function),
    /// main.c:33 (a line), exception:SysTick, exception:15 or exception:any; append #2 to start at the second time.
    #[arg(long, value_name = "PLACE", help_heading = "Window")]
    from: Option<Place>,

    /// Report execution up to here. A named place is searched for, and #2 counted, after --from.
    #[arg(long, value_name = "PLACE", help_heading = "Window")]
    to: Option<Place>,
}

/// The part of program flow around a place.
#[derive(Args, Clone, Debug)]
pub(crate) struct AroundArgs {
    /// Print N instructions before this place, and N from it on; 20 if ±N (or +-N) is omitted. The notation is that of --from.
    #[arg(long, value_name = "PLACE[±N]", value_parser = around, conflicts_with_all = ["from", "to", "last"], help_heading = "Window")]
    pub(crate) around: Option<(Place, u64)>,
}

/// Reads a place and the number of instructions on each side of it.
fn around(text: &str) -> Result<(Place, u64), String> {
    let (place_text, count) =
        text.rsplit_once('±').or_else(|| text.rsplit_once("+-")).unwrap_or((text, "20"));
    let count = number(count).ok_or("expected a number of instructions after ±, for example main±50")?;
    Ok((place_text.parse().map_err(|error: ParsePlaceError| error.to_string())?, count))
}

impl WindowArgs {
    /// The places that are named.
    pub(crate) fn places(&self) -> impl Iterator<Item = &Place> {
        self.from.iter().chain(&self.to)
    }

    pub(crate) fn window(&self) -> Result<Window, Failure> {
        Ok(View::between(self.from.clone(), self.to.clone(), None)?.window().clone())
    }
}
