//! Sums of many captures and saved files → sentences.

use tracewalk::plain::Plain;
use tracewalk_analysis::programs::ProgramId;
use tracewalk_analysis::saved::SavedErrorKind;
use tracewalk_report::counted;
use tracewalk_session::{PlacesError, PlacesErrorKind as K, PlacesNotice};

use crate::NO_PROGRAM;

/// The sentence of a reason why places cannot be added up, and what to try.
pub(super) fn of_places(error: &PlacesError) -> String {
    let option = if matches!(error.kind, K::Resume(_)) { "--resume " } else { "" };
    format!("{option}{error}; {}", remedy(error))
}

fn remedy(error: &PlacesError) -> String {
    let text = match &error.kind {
        K::NamedTwice => "give each run once",
        K::Unreadable(_) => "check the file's name",
        K::Saved(error) if matches!(error.kind, SavedErrorKind::Version { .. }) => {
            return format!("save it again: `tracewalk {} --save`", error.saved);
        }
        K::Saved(error) => return format!("give a file that `tracewalk {} --save` wrote", error.saved),
        K::SavedNothing => {
            "leave it out; if it was saved with status 2, its messages name the reason, such as an image that was not traced"
        }
        K::OtherKind { found, .. } => return format!("use `tracewalk {found}`, or leave the file out"),
        K::OtherProgram { found: ProgramId::Code(_), images, .. } if !images.is_empty() => {
            return format!("all of its memory identifies it: give each of {images} with --image");
        }
        K::OtherProgram { .. } => NO_PROGRAM,
        K::CannotAdd(_) => "only runs of the same program that were measured in the same way can be merged",
        K::WindowOfSaved => "give --from and --to when you save it",
        K::OtherUnit { .. } => "leave out --unit, or give it when you save the file",
        K::NoFunctions => "leave out --functions, or give it when you save the file",
        K::Arrives => "name it without directories, lists, --match, --resume and --captures",
        K::Directory(_) => "check its permissions, or give other places",
        K::List(_) => "after @, give a text file that names one capture on each line",
        K::NoCaptures => "select files of trace bytes by name: --match '*.bin'",
        K::IsCapture => {
            let directory = error.file.display();
            return format!(
                "leave out --match, or name the files of trace bytes: {directory}/*.bin without quotes"
            );
        }
        K::CaptureChanged => "start over with another file for --resume",
        // A newer session may have reasons that have no remedy here yet.
        _ => "give the options that it was written with, or start over with another file",
    };
    text.to_owned()
}

/// The sentence of a notice about a sum.
#[must_use]
pub fn of_places_notice(notice: &PlacesNotice) -> String {
    match notice {
        PlacesNotice::SameTrace { count: None, file, other } => {
            format!("{}: contains exactly the trace of {}; {COPY}", file.display(), other.display())
        }
        PlacesNotice::SameTrace { count: Some(count), file, other } => format!(
            "found {} with exactly the trace of another one, for example {} with that of {}; {COPY}",
            counted(*count, "capture"),
            file.display(),
            other.display()
        ),
        PlacesNotice::SameContents { file, other } => {
            format!("{}: contains exactly the contents of {}; {COPY}", file.display(), other.display())
        }
        PlacesNotice::SameRun { file, run, other } => format!(
            "{}: has a run {}, as has {}; both count as one run; save each run with its own name",
            file.display(),
            Plain(run),
            other.display()
        ),
        PlacesNotice::KnownByMemory { file, program } => format!(
            "{}: an image has no build ID, so the program is identified by all of its memory; report it with --image for each \
             of {program}",
            file.display()
        ),
        PlacesNotice::CapturesLeftOut { count, all, first, problem } => {
            incomplete("left out", (*count, *all), first, problem)
        }
        PlacesNotice::CapturesInPart { count, all, first, problem } => {
            incomplete("decoded partly", (*count, *all), first, problem)
        }
        // A newer session may have notices that have no sentence here yet.
        other => other.name().replace('_', " "),
    }
}

const COPY: &str = "if both are from one run, the run counts twice: leave one out";

fn incomplete(what: &str, (count, all): (u64, Option<u64>), first: &str, problem: &str) -> String {
    // Most sentences begin with the file.
    let named = if problem.contains(first) { String::new() } else { format!("{first}: ") };
    match all {
        Some(all) => format!("{count} of {} {what}; the first: {named}{problem}", counted(all, "capture")),
        None => format!("{what}: {named}{problem}"),
    }
}
