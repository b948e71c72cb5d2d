//! What a command reads and writes, as its arguments name it.

use std::path::{Path, PathBuf};

use super::Command;

impl Command {
    /// Its name.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Info(_) => "info",
            Self::Packets(_) => "packets",
            Self::Flow(_) => "flow",
            Self::Itm(_) => "itm",
            Self::Coverage(_) => "coverage",
            Self::Profile(_) => "profile",
            Self::Calls(_) => "calls",
            Self::Timeline(_) => "timeline",
            Self::Interrupts(_) => "interrupts",
            Self::Diff(_) => "diff",
            Self::Merge(_) => "merge",
            Self::Describe(_) => "describe",
            Self::Snapshot(_) => "snapshot",
            Self::Completions { .. } => "completions",
            Self::Man { .. } => "man",
        }
    }

    /// The files that its results go to.
    pub(crate) fn results(&self) -> Vec<&Path> {
        let files = match self {
            Self::Coverage(args) => [args.output.as_deref(), args.save.as_deref()],
            Self::Profile(args) => [args.output.as_deref(), args.save.as_deref()],
            Self::Interrupts(args) => [args.output.as_deref(), args.save.as_deref()],
            Self::Timeline(args) => [args.output.as_deref(), None],
            Self::Diff(args) => [args.output.as_deref(), None],
            Self::Merge(args) => [args.output.as_deref(), None],
            Self::Describe(args) => [args.output.as_deref(), None],
            _ => [None, None],
        };
        files.into_iter().flatten().collect()
    }

    /// The saved files among what it reads.
    pub(crate) fn named(&self) -> Vec<&Path> {
        let (first, more) = match self {
            Self::Coverage(args) => (Some(&args.follow.capture.capture), &args.more),
            Self::Profile(args) => (Some(&args.follow.capture.capture), &args.more),
            Self::Interrupts(args) => (Some(&args.axis.follow.capture.capture), &args.more),
            Self::Merge(args) => (None, &args.parts),
            _ => return Vec::new(),
        };
        first.into_iter().chain(more).map(PathBuf::as_path).filter(|path| path.is_file()).collect()
    }
}
