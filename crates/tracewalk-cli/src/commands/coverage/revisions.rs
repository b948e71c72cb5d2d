//! Lines of a base of another revision: by a diff of the sources, or by the base's sources.

use std::io::Read;
use std::path::{Path, PathBuf};

use tracewalk::plain::Plain;
use tracewalk_analysis::coverage::{
    Difference, RevisionError, RevisionErrorKind, Revisions, SourceDiff, TextOf, Tracefile, common_folder,
};
use tracewalk_report::export::read_source_diff;
use tracewalk_session::PlacesError;

use crate::args::Coverage;
use crate::failure::Failure;
use crate::messages::Messages;

/// The longest diff.
const LONGEST_DIFF: u64 = 256 << 20;
/// The longest source file.
const LONGEST_SOURCE: u64 = 16 << 20;

/// Whether a diff is read from standard input.
pub(super) fn is_standard_input(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// The difference from `base` to `now`, by the sources that the options give.
pub(super) fn difference(
    args: &Coverage,
    base: &Tracefile,
    now: &Tracefile,
    text: TextOf<'_>,
    messages: &Messages,
) -> Result<Difference, Failure> {
    let found = if let Some(file) = args.base_src.as_ref().filter(|place| !place.is_dir()) {
        let diff = read_diff(file, args)?;
        let found = Difference::between_revisions(base, now, Revisions::Diff(&diff), text);
        if found.is_ok() && !diff.files.is_empty() && !touches(&diff, now) {
            messages.warning(
                "diff_of_nothing",
                format_args!(
                    "{}: changes no file of the program; check that it belongs to this project",
                    Plain(file.display())
                ),
            );
        }
        found
    } else if let Some(directory) = &args.base_src {
        let least = least_parts(base);
        let old = |name: &str| source_in(directory, name, least(name));
        Difference::between_revisions(base, now, Revisions::BaseSources(&old), text)
    } else {
        return Ok(Difference::between(base, now));
    };
    found.map_err(|error| refused(args, &error))
}

/// Whether a file of the diff has the name of one of the program.
fn touches(diff: &SourceDiff, now: &Tracefile) -> bool {
    let name_of = |path: &str| path.rsplit('/').next().map(str::to_owned);
    let names = now.files.keys().map(|name| name_of(name)).collect::<std::collections::HashSet<_>>();
    let paths = diff.files.iter().flat_map(|file| file.old.iter().chain(&file.new));
    paths.into_iter().any(|path| names.contains(&name_of(&path.path)))
}

fn read_diff(file: &Path, args: &Coverage) -> Result<SourceDiff, Failure> {
    let mut text = Vec::new();
    if is_standard_input(file) {
        if is_standard_input(&args.places.follow.capture.capture) {
            return Err(Failure::input(
                "standard_input_twice",
                "the capture and --base-src cannot both be read from standard input",
                "write the diff to a file",
            ));
        }
        let read = std::io::stdin().lock().take(LONGEST_DIFF).read_to_end(&mut text);
        read.map_err(|error| no_diff(file, error))?;
    } else {
        let reader = tracewalk_input::reader(file, LONGEST_DIFF)
            .map_err(|problem| PlacesError::Unreadable(file.to_owned(), problem))?;
        let mut reader = reader;
        reader.read_to_end(&mut text).map_err(|error| no_diff(file, error))?;
    }
    read_source_diff(&text).map_err(|error| no_diff(file, error))
}

fn no_diff(file: &Path, problem: impl std::fmt::Display) -> Failure {
    Failure::input(
        "not_a_diff",
        format!("{}: {problem}", Plain(file.display())),
        "give --base-src the output of `git diff OLD NEW`",
    )
}

/// The number of folders and names at the end of a base's file that have to match: all below the folder that its files share, so
/// that no file is mistaken for another one of the same name.
fn least_parts(base: &Tracefile) -> impl Fn(&str) -> usize + use<'_> {
    let root = common_folder(base.files.keys());
    move |name| parts(name.strip_prefix(root).unwrap_or(name)).len()
}

fn parts(name: &str) -> Vec<&str> {
    name.split(['/', '\\']).filter(|part| !matches!(*part, "" | "." | "..")).collect()
}

/// The text of the file in a directory that shares the most folders with a name, and at least `least` folders and names.
fn source_in(directory: &Path, name: &str, least: usize) -> Option<Vec<u8>> {
    let parts = parts(name);
    let ends = (0..=parts.len().checked_sub(least.max(1))?).filter_map(|skipped| parts.get(skipped..));
    let path = ends.map(|end| directory.join(end.iter().collect::<PathBuf>())).find(|path| {
        std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() <= LONGEST_SOURCE)
    })?;
    std::fs::read(path).ok()
}

fn refused(args: &Coverage, error: &RevisionError) -> Failure {
    let remedy = match &error.kind {
        RevisionErrorKind::OtherSource { .. } => {
            "make the diff from the base's revision to the traced one, whose sources --src-dir must contain"
        }
        RevisionErrorKind::Unequal { .. } | RevisionErrorKind::OtherBase { .. }
            if args.base_src.as_ref().is_some_and(|place| !place.is_dir()) =>
        {
            "make the diff from the base's revision, with all files and all changes of white space"
        }
        RevisionErrorKind::OtherBase { .. }
        | RevisionErrorKind::Unequal { .. }
        | RevisionErrorKind::ShortBaseSource { .. } => "give --base-src the sources of the base's revision",
        RevisionErrorKind::NoSource => "give its directory with --src-dir, or leave it out with --exclude",
        RevisionErrorKind::NoBaseSource => {
            "give --base-src all sources of the base, or leave the file out with --exclude"
        }
        RevisionErrorKind::Ambiguous { .. } | RevisionErrorKind::OtherPath { .. } => {
            "map the paths of the program's files to those of the diff with --path-map, or give their directory with --src-dir"
        }
        RevisionErrorKind::Binary => "make the diff with `git diff --text`",
        RevisionErrorKind::EmptyDiff { .. } => {
            "leave --base-src out if nothing changed, or give a base with checksums, which was made while its sources were available"
        }
        _ => "check the files of --diff and --base-src",
    };
    Failure::input(error.kind.name(), error.to_string(), remedy)
}
