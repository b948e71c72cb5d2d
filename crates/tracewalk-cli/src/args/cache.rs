//! The cache directory.

use std::path::PathBuf;

use clap::{Args, ValueHint};

#[derive(Args, Clone, Debug)]
pub(crate) struct CacheArgs {
    /// The directory for the capture's index, which later runs reuse; `none` to neither store an index nor use a stored one. If
    /// omitted, it is tracewalk's folder in the user's cache directory: $XDG_CACHE_HOME, or ~/.cache.
    #[arg(long, value_name = "DIR|none", value_hint = ValueHint::DirPath, help_heading = "Cache")]
    pub(crate) cache: Option<PathBuf>,
}
