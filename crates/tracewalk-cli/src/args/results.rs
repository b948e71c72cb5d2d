//! What a command reads and writes, as its arguments name it.

use std::path::{Path, PathBuf};

use tracewalk_input::capture::files;

use tracewalk_report::formats::MakeTimeline;

use super::{CaptureArgs, Command};
use crate::output::{Destination, DestinationKind, file};

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

    /// Where its results go.
    pub(crate) fn destinations(&self) -> Vec<Destination<'_>> {
        let named = |option, path, kind| Destination { option, path, kind };
        let file = |path| named("-o", path, DestinationKind::File);
        let (output, save, prints) = match self {
            Self::Coverage(args) => (&args.output, &args.save, args.format.is_some() || args.save.is_none()),
            Self::Profile(args) => (&args.output, &args.save, args.format.is_some() || args.save.is_none()),
            Self::Interrupts(args) => {
                (&args.output, &args.save, args.format.is_some() || args.save.is_none())
            }
            Self::Timeline(args) if matches!(args.format.make, MakeTimeline::Folder(_)) => {
                let folder = |path| named("-o", path, DestinationKind::NewFolder);
                return args.output.as_deref().map(folder).into_iter().collect();
            }
            Self::Timeline(args) => (&args.output, &None, true),
            Self::Diff(args) => (&args.output, &None, true),
            Self::Merge(args) => (&args.output, &None, true),
            Self::Describe(args) => (&args.output, &None, true),
            Self::Snapshot(args) => return vec![named("-o", &args.output, DestinationKind::NewFolder)],
            Self::Man { directory } => return vec![named("DIR", directory, DestinationKind::Folder)],
            Self::Info(_)
            | Self::Packets(_)
            | Self::Flow(_)
            | Self::Itm(_)
            | Self::Calls(_)
            | Self::Completions { .. } => return vec![standard_output()],
        };
        let output = output.as_deref().map(file).or_else(|| prints.then(standard_output));
        let save = save.as_deref().map(|path| named("--save", path, DestinationKind::File));
        output.into_iter().chain(save).collect()
    }

    /// The files and folders that its results go to.
    pub(crate) fn results(&self) -> Vec<&Path> {
        self.destinations().into_iter().filter_map(|result| file(Some(result.path))).collect()
    }

    /// The saved files among what it reads.
    pub(crate) fn named(&self) -> Vec<&Path> {
        self.places().into_iter().filter(|path| self.takes_saved() && path.is_file()).collect()
    }

    /// Every file that it reads, as far as that is known before it is run.
    pub(crate) fn inputs(&self) -> Vec<PathBuf> {
        // Standard input may be a file.
        let place =
            |path: &Path| if path.as_os_str() == "-" { vec!["/dev/stdin".into()] } else { files(path) };
        let mut inputs = self.places().into_iter().flat_map(place).collect::<Vec<_>>();
        if let Some(capture) = self.capture() {
            inputs.extend(capture.images.iter().map(|image| image.file.clone()));
            inputs.extend(capture.svd.iter().chain(&capture.registers).cloned());
        }
        if let Self::Coverage(args) = self {
            inputs.extend(args.diff.clone());
        }
        inputs
    }

    /// The captures and saved files.
    fn places(&self) -> Vec<&Path> {
        let more: &[PathBuf] = match self {
            Self::Coverage(args) => &args.more,
            Self::Profile(args) => &args.more,
            Self::Interrupts(args) => &args.more,
            Self::Merge(args) => &args.parts,
            _ => &[],
        };
        let other = match self {
            Self::Diff(args) => Some(&args.other),
            _ => None,
        };
        let first = self.capture().map(|capture| &capture.capture);
        first.into_iter().chain(other).chain(more).map(PathBuf::as_path).collect()
    }

    const fn takes_saved(&self) -> bool {
        matches!(self, Self::Coverage(_) | Self::Profile(_) | Self::Interrupts(_) | Self::Merge(_))
    }

    /// What is said of its captures.
    fn capture(&self) -> Option<&CaptureArgs> {
        Some(match self {
            Self::Info(args) => &args.capture,
            Self::Packets(args) => &args.capture,
            Self::Flow(args) => &args.capture,
            Self::Itm(args) => &args.capture,
            Self::Coverage(args) => &args.follow.capture,
            Self::Profile(args) => &args.follow.capture,
            Self::Calls(args) => &args.follow.capture,
            Self::Timeline(args) => &args.axis.follow.capture,
            Self::Interrupts(args) => &args.axis.follow.capture,
            Self::Diff(args) => &args.follow.capture,
            Self::Describe(args) => &args.capture,
            Self::Snapshot(args) => &args.capture,
            Self::Merge(_) | Self::Completions { .. } | Self::Man { .. } => return None,
        })
    }
}

fn standard_output() -> Destination<'static> {
    Destination { option: "the result", path: Path::new("-"), kind: DestinationKind::File }
}
