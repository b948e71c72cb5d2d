//! The cache directory.

use std::path::PathBuf;

use clap::{Args, ValueHint};

#[derive(Args, Clone, Debug)]
pub(crate) struct CacheArgs {
    /// Keep the capture's index in this directory, and use an index that is kept there. Without the option, it is tracewalk's
    /// folder in the user's cache directory: $XDG_CACHE_HOME, or ~/.cache.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Cache")]
    pub(crate) cache_dir: Option<PathBuf>,

    /// Neither keep an index nor use a kept one.
    #[arg(long, conflicts_with = "cache_dir", help_heading = "Cache")]
    pub(crate) no_cache: bool,
}
