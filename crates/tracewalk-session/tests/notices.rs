//! What a session finds worth knowing, by kind: on the project's examples, whole and damaged.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tracewalk::ids::TraceId;
use tracewalk_analysis::Code;
use tracewalk_analysis::analysis::InOrder;
use tracewalk_analysis::sink::Nothing;
use tracewalk_session::{
    Follow, Notice, NoticeKind, Notices, OpenError, Policy, Remedy, Request, RunError, Session, Severity,
};

fn example(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/examples").join(path)
}

/// A capture of which nothing is stated but the program.
fn bare(capture: &Path, elf: &str) -> Request {
    Request { images: vec![example(elf).to_str().unwrap().parse().unwrap()], ..Request::new(capture) }
}

/// Opens a capture and follows all of it.
fn follow(request: Request) -> Vec<Notice> {
    let notices = Notices::default();
    let mut session = Session::open_observed(request, &notices).unwrap();
    let followed = session.each_source(&notices, |session, source| {
        let how = Follow { names: None, ..Follow::default() };
        let outcome = session.run_observed(source, &how, InOrder(&mut Nothing), &notices)?;
        assert!(outcome.complete);
        assert!(outcome.statistics.packets > 0);
        Ok::<(), RunError>(())
    });
    followed.unwrap();
    notices.into_vec()
}

fn names(notices: &[Notice]) -> Vec<&'static str> {
    notices.iter().map(|notice| notice.kind.name()).collect()
}

#[test]
fn a_described_capture_is_worth_no_notice() {
    for name in ["m3-etmv3", "a7-etmv3", "a15-pft", "m0-crash-mtb"] {
        let request = Request { policy: Policy::Strict, ..Request::new(example(name).join("capture.toml")) };
        assert_eq!(names(&follow(request)), [""; 0], "{name}");
    }
}

#[test]
fn what_is_inferred_is_a_note() {
    for (capture, elf) in [("m3-etmv3/trace.bin", "m3-etmv3/m3.elf"), ("a15-pft/trace.bin", "a15-pft/a9.elf")]
    {
        let notices = follow(bare(&example(capture), elf));
        assert_eq!(names(&notices), ["inferred"], "{capture}");
        assert_eq!(notices[0].severity(), Severity::Note);
        assert_eq!(notices[0].remedy(), None);
    }
}

/// A copy of an example's folder with one file changed.
fn copy_with(name: &str, file: &str, bytes: &[u8]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(example(name)).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
    }
    std::fs::write(folder.path().join(file), bytes).unwrap();
    folder
}

#[test]
fn another_program_is_told_by_the_code_that_is_missing() {
    let folder = copy_with("a15-pft", "a9.elf", &std::fs::read(example("m3-etmv3/m3.elf")).unwrap());
    let notices = follow(Request::new(folder.path().join("capture.toml")));
    let missing = notices.iter().find(|notice| matches!(notice.kind, NoticeKind::CodeMissing { .. }));
    let missing = missing.unwrap_or_else(|| panic!("{notices:?}"));
    assert_eq!((missing.severity(), missing.remedy()), (Severity::Incomplete, Some(Remedy::Image)));
    assert!(missing.at.is_some());
}

#[test]
fn damage_is_incomplete_and_has_a_place() {
    let mut bytes = std::fs::read(example("a15-pft/trace.bin")).unwrap();
    let middle = bytes.len() / 2 / 16 * 16;
    bytes[middle..middle + 64].fill(0xff);
    let folder = copy_with("a15-pft", "trace.bin", &bytes);
    let notices = follow(Request::new(folder.path().join("capture.toml")));
    let incomplete = notices.iter().filter(|notice| notice.severity() == Severity::Incomplete);
    let places = incomplete.filter_map(|notice| notice.at).map(|at| at.0).collect::<Vec<_>>();
    assert!(!places.is_empty(), "{notices:?}");
    let near = middle as u64 - 64..middle as u64 + 512;
    assert!(places.iter().all(|at| near.contains(at)), "{middle}: {notices:?}");
    assert!(notices.iter().all(|notice| !notice.kind.is_cut()));
}

#[test]
fn what_cannot_be_opened_says_why_as_data() {
    let bare = Request { policy: Policy::Strict, ..Request::new(example("m3-etmv3/trace.bin")) };
    assert!(matches!(Session::open(bare), Err(OpenError::NotStated { .. })));
    let text = Request::new(example("README.md"));
    assert!(matches!(Session::open(text), Err(OpenError::NoTrace { .. })));
    let elf = Request::new(example("m3-etmv3/m3.elf"));
    assert!(matches!(Session::open(elf), Err(OpenError::ElfFile(_))));
    let missing = Request::new(example("no such file"));
    assert!(matches!(Session::open(missing), Err(OpenError::Capture(_))));
    let absent = Request { ids: vec![TraceId::new(0x33).unwrap()], ..Request::new(example("a15-pft")) };
    assert!(matches!(Session::open(absent), Err(OpenError::IdAbsent { .. } | OpenError::NoTraceIds(_))));
}

#[test]
fn names_of_notices_are_kinds_names() {
    let kind = NoticeKind::StatedAbsent { id: TraceId::new(1).unwrap() };
    assert_eq!((kind.name(), kind.to_string()), ("stated_absent", "stated_absent".to_owned()));
}

/// Programs are looked at by several threads.
#[test]
fn programs_can_be_shared_between_threads() {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<Arc<Code>>();
}
