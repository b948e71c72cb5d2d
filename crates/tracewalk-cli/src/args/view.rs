//! The options of `view`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use tracewalk_session::At;

use super::FollowArgs;
use super::cache::CacheArgs;

pub(crate) const VIEW_EXAMPLES: &str = "\
Examples:
  tracewalk view capture.toml
      the recording as a page in the browser
  tracewalk view swo.bin --image firmware.elf --no-open
      the same; the page's address is printed
  tracewalk view crash.log --image firmware.elf --at last -o crash.html
      the last steps as one file, for a bug report

Exit status:
  0  the page was written
  2  something could not be read, or no client can connect";

#[derive(Args, Debug)]
pub(crate) struct View {
    #[command(flatten)]
    pub(crate) follow: FollowArgs,

    /// The initial place: first, last, or the number of a step, from 0.
    #[arg(long, value_name = "PLACE", default_value = "first", help_heading = "Page")]
    pub(crate) at: At,

    /// The local port that the browser connects to; 0 selects a free one.
    #[arg(long, value_name = "PORT", default_value_t = 0, help_heading = "Page")]
    pub(crate) port: u16,

    /// Print the page's address without opening it in the browser.
    #[arg(long, help_heading = "Page")]
    pub(crate) no_open: bool,

    #[command(flatten)]
    pub(crate) cache: CacheArgs,

    /// Write the page and the data of a window to one file, and serve nothing. The window is centred on the place of
    /// --at.
    #[arg(short, long, value_name = "FILE.html", value_hint = ValueHint::FilePath, conflicts_with_all = ["port", "no_open"], help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    /// The number of steps of each source that -o writes: instructions, events and gaps; at most 1048576.
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..=1 << 20), requires = "output", help_heading = "Output")]
    pub(crate) steps: u64,
}
