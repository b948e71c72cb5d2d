//! One capture without a description, and how well tracewalk infers it.

use std::fmt;

use tracewalk_analysis::drive::NoProgress;
use tracewalk_report::Look;
use tracewalk_report::formats::{PACKETS, find};
use tracewalk_session::{Notice, Notices, Request, Session, Severity, Statements};

use crate::support::Flow;

/// A capture, the statements that describe it, and its content.
pub(crate) struct Case {
    /// A short description of the capture.
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    /// The program as the user has it, and at its true address: values of `--image`.
    pub(crate) images: Vec<String>,
    pub(crate) right_images: Vec<String>,
    /// The statements that describe the capture completely.
    pub(crate) stated: Statements,
    /// The capture's content in the format `runs`, if it is known independently.
    pub(crate) runs: Option<String>,
}

/// The result of inferring a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Guess {
    /// Right, without a warning.
    Quiet,
    /// Right, with a warning.
    Warned(Warning),
    /// Wrong, with a warning.
    Reported,
    /// Wrong, without a warning.
    Silent,
}

/// The warning with a right answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Warning {
    /// Another answer gives the same execution with other details.
    OtherDetails,
    /// Another answer gives a different result, and nothing contradicts it.
    AnotherAnswer,
    /// Packets of an MTB also continue each other in another order.
    AnotherOrder,
    /// Nothing shows which packet of an MTB is the newest.
    EndUnknown,
    /// The image was stated at another address.
    ImageMoved,
    Other,
}

impl Warning {
    fn of(kind: &str) -> Self {
        match kind {
            "other_details" => Self::OtherDetails,
            "another_answer" => Self::AnotherAnswer,
            "mtb_another_order" => Self::AnotherOrder,
            "mtb_end_unknown" => Self::EndUnknown,
            "image_moved" => Self::ImageMoved,
            _ => Self::Other,
        }
    }
}

/// The warnings: the kind of each, and its place.
type Warnings = Vec<(&'static str, Option<u64>)>;

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherDetails => "other details",
            Self::AnotherAnswer => "another answer",
            Self::AnotherOrder => "another order",
            Self::EndUnknown => "end unknown",
            Self::ImageMoved => "image moved",
            Self::Other => "other",
        })
    }
}

/// The input besides the capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum With {
    /// The program, to decode execution.
    Program,
    /// Nothing, to decode packets.
    Nothing,
}

impl Case {
    /// Infers the capture. Unless the result is right and quiet, returns what was said.
    pub(crate) fn try_with(&self, with: With) -> (Guess, String) {
        let request = |images: &[String], stated: &Statements| {
            let images: &[String] = if with == With::Program { images } else { &[] };
            let images = images.iter().map(|image| image.parse().expect("an image")).collect();
            Request { images, stated: stated.clone(), ..Request::default() }
        };
        let content = |request| {
            let (_folder, request) = on_file(&self.bytes, request);
            if with == With::Program { flow(request) } else { packets(request) }
        };
        let (found, warnings) = content(request(&self.images, &Statements::default()));
        let stated = || content(request(&self.right_images, &self.stated));
        let complete = || {
            let (complete, warnings) = stated();
            assert!(complete.lines().count() > 2, "{}: {warnings:?}", self.name);
            complete
        };
        let runs = self.runs.as_ref().filter(|_| with == With::Program);
        let expected = runs.cloned().unwrap_or_else(complete);
        let mut guess = judge(&found, &expected, &warnings);
        if matches!(guess, Guess::Warned(_)) {
            // Warnings that remain with everything stated are unrelated to inferring.
            let (_, anyway) = stated();
            let others = warnings.iter().filter(|warning| !anyway.contains(warning)).copied();
            guess = judge(&found, &expected, &others.collect::<Vec<_>>());
        }
        if runs.is_some() && guess > Guess::Quiet {
            assert!(complete() == expected, "{}: not even with {:?}", self.name, self.stated);
        }
        (guess, format!("{guess:?}: {}: {:?}: {warnings:?}", self.name, self.stated))
    }
}

/// A request for these bytes, in a file.
pub(crate) fn on_file(bytes: &[u8], request: Request) -> (tempfile::TempDir, Request) {
    let folder = tempfile::tempdir().expect("room for a folder");
    let capture = folder.path().join("trace.bin");
    std::fs::write(&capture, bytes).expect("room for a capture");
    (folder, Request { capture, ..request })
}

/// What was executed.
fn flow(request: Request) -> (String, Warnings) {
    let flow = Flow::of(request);
    let failed = flow.error.is_some().then_some(("failed", None));
    (flow.runs, failed.into_iter().chain(warnings(&flow.notices)).collect())
}

/// The packets of all sources.
fn packets(request: Request) -> (String, Warnings) {
    let notices = Notices::default();
    let Ok(session) = Session::open_observed(request, &notices) else {
        return (String::new(), vec![("failed", None)]);
    };
    let mut out = Vec::new();
    let make = find(PACKETS, "jsonl").expect("a format of packets").make;
    let mut exporter = make(&mut out, Look::PLAIN).expect("a format that writes");
    for source in session.sources() {
        let input = session.input(source, &NoProgress);
        exporter
            .section(&session.section(source, tracewalk_analysis::Code::unknown().into()))
            .expect("memory");
        input.packets(&source.config, |record| exporter.record(record)).expect("memory takes it");
        exporter.end_section().expect("memory takes it");
    }
    drop(exporter);
    (String::from_utf8(out).expect("JSON is text"), warnings(&notices.into_vec()).collect())
}

fn warnings(notices: &[Notice]) -> impl Iterator<Item = (&'static str, Option<u64>)> {
    let notices = notices.iter().filter(|notice| notice.severity() > Severity::Note);
    notices.map(|notice| (notice.kind.name(), notice.at.map(|at| at.0)))
}

fn judge(found: &str, expected: &str, warnings: &[(&'static str, Option<u64>)]) -> Guess {
    let worst = warnings.iter().map(|(kind, _)| Warning::of(kind)).max();
    match (found == expected, worst) {
        (true, None) => Guess::Quiet,
        (true, Some(warning)) => Guess::Warned(warning),
        (false, Some(_)) => Guess::Reported,
        (false, None) => Guess::Silent,
    }
}
