//! What the tests share: captures, and what a session says of them.

#[path = "../../../tracewalk-cli/tests/support/firmware.rs"]
#[allow(dead_code, reason = "the command's tests use all of it")]
pub(crate) mod firmware;

use std::fs;
use std::path::{Path, PathBuf};

use tracewalk_analysis::analysis::FlowSink;
use tracewalk_report::Look;
use tracewalk_report::export::LastInstructions;
use tracewalk_report::formats::{FLOW, FlowOptions, find};
use tracewalk_session::{
    Follow, Notice, NoticeKind, Notices, OpenError, Request, RunError, Session, Severity,
};

/// The project's own example captures.
pub(crate) fn example(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/examples").join(path)
}

/// A path in the corpus, which is beside the project and not part of it.
pub(crate) fn corpus(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus").join(path)
}

/// A capture with nothing stated but the program.
pub(crate) fn bare(capture: &Path, elf: &Path) -> Request {
    Request {
        images: vec![elf.to_str().expect("a plain name").parse().expect("an image")],
        ..Request::new(capture)
    }
}

/// A copy of an example's folder with one file changed.
pub(crate) fn copy_with(
    example: &Path,
    file: &str,
    change: impl FnOnce(Vec<u8>) -> Vec<u8>,
) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("room for a folder");
    for entry in fs::read_dir(example).expect("the example is a folder") {
        let path = entry.expect("the folder is readable").path();
        // The copy of a file that cannot be written cannot be written either.
        let bytes = fs::read(&path).expect("the file is readable");
        fs::write(folder.path().join(path.file_name().expect("a name")), bytes).expect("room for a copy");
    }
    let changed = folder.path().join(file);
    let bytes = fs::read(&changed).expect("a file of the example");
    fs::write(changed, change(bytes)).expect("room for the change");
    folder
}

/// The flow of all sources of a capture, and what was said of it.
pub(crate) struct Flow {
    /// In the format `runs`.
    pub(crate) runs: String,
    pub(crate) notices: Vec<Notice>,
    /// The reason why there is nothing.
    pub(crate) error: Option<OpenError>,
}

impl Flow {
    pub(crate) fn of(request: Request) -> Self {
        Self::last(request, None)
    }

    /// As `tracewalk flow --format runs`, with `--last` if there is a number.
    pub(crate) fn last(request: Request, last: Option<u64>) -> Self {
        let (mut out, notices) = (Vec::new(), Notices::default());
        let error = match Session::open_observed(request, &notices) {
            Ok(session) => {
                write_runs(session, last, &mut out, &notices);
                None
            }
            Err(error) => Some(error),
        };
        Self { runs: String::from_utf8(out).expect("runs are text"), notices: notices.into_vec(), error }
    }

    pub(crate) fn find(&self, is_it: impl Fn(&NoticeKind) -> bool) -> Option<&NoticeKind> {
        self.notices.iter().map(|notice| &notice.kind).find(|kind| is_it(kind))
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.find(|kind| kind.name() == name).is_some()
    }

    /// Whether everything was read and followed: the command's status would be 0.
    pub(crate) fn is_whole(&self) -> bool {
        self.error.is_none() && self.notices.iter().all(|notice| notice.severity() < Severity::Incomplete)
    }

    /// What went wrong, for a failed assertion.
    pub(crate) fn said(&self) -> String {
        format!("{:?} {:?}\n{}", self.error, self.notices, self.runs)
    }
}

fn write_runs(mut session: Session, last: Option<u64>, out: &mut Vec<u8>, notices: &Notices) {
    let runs = find(FLOW, "runs").expect("a format of flow").make;
    let options = FlowOptions { look: Look::PLAIN, source_lines: false, at_once: false };
    let sink = (runs.sink)(out, &options);
    let mut sink: Box<dyn FlowSink + '_> = match last {
        Some(count) => Box::new(LastInstructions::new(sink, count)),
        None => sink,
    };
    sink.begin().expect("memory takes it");
    let how = Follow { names: None, threads: 1, ..Follow::default() };
    let followed = session.each_source(notices, |session, source| {
        session.run_observed(source, &how, &mut *sink, notices).map(drop)
    });
    followed.unwrap_or_else(|error: RunError| panic!("{error}"));
    sink.finish(true).expect("memory takes it");
}
