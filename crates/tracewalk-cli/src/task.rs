//! The interface of every command: its inputs, the destinations of its results, and the work.
//!
//! No method of [`Task`] has a default, so that none is forgotten.

use std::path::{Path, PathBuf};

use tracewalk_input::capture::files;

use crate::args::{CaptureArgs, FollowArgs, PlacesArgs};
use crate::failure::Failure;
use crate::messages::Messages;
use crate::open;
use crate::output::{Destination, file};

/// A command with its arguments.
pub(crate) trait Task {
    /// The files that the command reads.
    fn reads(&self) -> Reads<'_>;

    /// The destinations of its results.
    fn writes(&self) -> Vec<Destination<'_>>;

    /// Whether it prints text for people, which may go through a pager.
    fn is_for_people(&self) -> bool;

    /// Does the work.
    fn run(&self, messages: &Messages) -> Result<(), Failure>;
}

/// The files that a command reads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reads<'a> {
    /// The first capture, and the statements about all captures; `None` for a command that reads none.
    pub(crate) capture: Option<&'a CaptureArgs>,
    /// Further captures, or saved files.
    pub(crate) more: &'a [PathBuf],
    /// Whether a file saved by `--save` can stand for a capture.
    pub(crate) takes_saved: bool,
    /// Files beside the captures.
    pub(crate) beside: Vec<&'a Path>,
    /// Further directories of source files.
    pub(crate) source_dirs: &'a [PathBuf],
}

impl<'a> Reads<'a> {
    /// One capture.
    pub(crate) fn one(capture: &'a CaptureArgs) -> Self {
        Self { capture: Some(capture), ..Self::default() }
    }

    /// One capture whose program is followed.
    pub(crate) fn followed(follow: &'a FollowArgs) -> Self {
        Self { source_dirs: &follow.source_dirs, ..Self::one(&follow.capture) }
    }

    /// Captures and saved files whose answers are added up.
    pub(crate) fn places(places: &'a PlacesArgs) -> Self {
        Self { more: &places.more, takes_saved: true, ..Self::followed(&places.follow) }
    }

    /// The captures and saved files.
    fn paths(&self) -> impl Iterator<Item = &'a Path> {
        let first = self.capture.map(|args| args.capture.as_path());
        first.into_iter().chain(self.more.iter().map(PathBuf::as_path))
    }
}

impl dyn Task + '_ {
    /// Whether its output may go through a pager: text for people, of a complete capture.
    pub(crate) fn is_paged(&self) -> bool {
        let prints = self.writes().iter().any(Destination::is_standard_output);
        let waits = |capture| open::comes_over_time(capture).unwrap_or(true);
        self.is_for_people() && prints && !self.reads().capture.is_some_and(waits)
    }

    /// The files and folders that the results go to.
    pub(crate) fn results(&self) -> Vec<&Path> {
        self.writes().into_iter().filter_map(|result| file(Some(result.path))).collect()
    }

    /// The saved files among the files that it reads.
    pub(crate) fn saved(&self) -> Vec<&Path> {
        let reads = self.reads();
        reads.paths().filter(|path| reads.takes_saved && path.is_file()).collect()
    }

    /// Every file that it reads, as far as known before it runs. The programs' source files are known only after a capture is
    /// opened: see [`Replaced`](crate::output::Replaced).
    pub(crate) fn inputs(&self) -> Vec<PathBuf> {
        // Standard input may be a file.
        let reads = self.reads();
        let roots = reads.capture.map_or(&[][..], |capture| &capture.roots);
        let place = |path: &Path| {
            if path.as_os_str() == "-" { vec!["/dev/stdin".into()] } else { files(path, roots) }
        };
        // A file that is not a capture names no other files.
        let mut inputs = match reads.capture {
            Some(_) => reads.paths().flat_map(place).collect::<Vec<_>>(),
            None => reads.paths().map(Path::to_owned).collect(),
        };
        if let Some(capture) = reads.capture {
            inputs.extend(capture.images.iter().map(|image| image.file.clone()));
            inputs.extend(capture.svd.iter().chain(&capture.registers).cloned());
        }
        inputs.extend(reads.beside.into_iter().map(Path::to_owned));
        inputs
    }
}
