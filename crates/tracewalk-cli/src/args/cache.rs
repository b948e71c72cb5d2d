//! Where what takes long to make is kept for the next time.

use std::path::PathBuf;

use clap::{Args, ValueHint};

#[derive(Args, Clone, Debug)]
pub(crate) struct CacheArgs {
    /// Keep the index of the capture in this directory, and use what is kept there. Without the option it is tracewalk's folder in the
    /// user's cache directory: $XDG_CACHE_HOME, or ~/.cache.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Cache")]
    pub(crate) cache_dir: Option<PathBuf>,

    /// Keep nothing, and use nothing that is kept.
    #[arg(long, conflicts_with = "cache_dir", help_heading = "Cache")]
    pub(crate) no_cache: bool,
}
