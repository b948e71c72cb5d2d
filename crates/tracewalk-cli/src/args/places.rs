//! Captures and saved files whose answers add up: the options of `coverage`, `counts`, `profile` and `interrupts`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};

use tracewalk_session::Pattern;

use super::built_in;
use super::profile::FollowArgs;

/// The places of captures, and how they are followed.
#[derive(Args, Debug)]
pub(crate) struct PlacesArgs {
    #[command(flatten)]
    pub(crate) follow: FollowArgs,

    /// Further places, whose answers are added up.
    #[arg(value_name = "PLACE", value_hint = ValueHint::AnyPath)]
    pub(crate) more: Vec<PathBuf>,

    /// In directories, take files and directories with these names or paths as captures, whatever they contain; can be given
    /// several times.
    #[arg(long = "match", value_name = "GLOB", value_parser = built_in::path, help_heading = "Selection")]
    pub(crate) patterns: Vec<Pattern>,

    /// Save progress in this file every few seconds, and start from what it holds: a stopped run continues, and a finished one
    /// adds new captures. Captures that were left out are tried again.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) resume: Option<PathBuf>,

    /// Write a table of the captures and their outcomes: as .csv, .json, .parquet or text.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) captures: Option<PathBuf>,
}

impl PlacesArgs {
    /// The places, as they were named.
    pub(crate) fn words(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(&self.follow.capture.capture).chain(&self.more).map(PathBuf::as_path)
    }
}
