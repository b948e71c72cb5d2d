//! The cache directory.

use std::path::PathBuf;

use clap::{Args, ValueHint};

#[derive(Args, Clone, Debug)]
pub(crate) struct CacheArgs {
    /// The directory for the capture's index, which later runs reuse. If omitted, it is tracewalk's folder in the
    /// user's cache directory: $XDG_CACHE_HOME, or ~/.cache.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Cache")]
    pub(crate) cache_dir: Option<PathBuf>,

    /// Neither store an index nor use a stored one.
    #[arg(long, conflicts_with = "cache_dir", help_heading = "Cache")]
    pub(crate) no_cache: bool,
}
