//! What a session finds worth knowing, by kind: on the project's examples, whole and damaged.

use std::path::{Path, PathBuf};

use tracewalk::ids::TraceId;
use tracewalk_analysis::sink::Nothing;
use tracewalk_input::image::{ImageKind, ImageRequest};
use tracewalk_session::{
    Notice, NoticeKind, Notices, OpenError, Policy, Remedy, Request, RunError, Session, Severity, Trust,
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
        let code = session.code(source, None, &notices)?;
        let outcome = session.follow(source, &code, Trust::default(), &mut Nothing, &notices)?;
        assert!(outcome.complete());
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

#[test]
fn the_image_of_another_program_is_refused_with_its_place() {
    let capture = example("a15-pft");
    let other = ImageRequest {
        kind: ImageKind::Elf,
        ..example("m3-etmv3/m3.elf").to_str().unwrap().parse().unwrap()
    };
    let bytes = std::fs::read(capture.join("trace.bin")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.bin");
    std::fs::write(&file, bytes).unwrap();
    let mut request = Request::new(&file);
    request.images = vec![other];
    request.stated.sources = vec!["0x10=pft,cpu=cortex-a15".parse().unwrap()];
    let notices = Notices::default();
    let outcome = Session::open_observed(request, &notices);
    let kinds = names(&notices.into_vec());
    assert!(outcome.is_ok(), "{outcome:?}");
    assert!(!kinds.is_empty());
}

#[test]
fn damage_is_incomplete_and_has_a_place() {
    let mut bytes = std::fs::read(example("a15-pft/trace.bin")).unwrap();
    let middle = bytes.len() / 2 / 16 * 16;
    bytes[middle..middle + 64].fill(0xff);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.bin");
    std::fs::write(&file, bytes).unwrap();
    let notices = follow(bare(&file, "a15-pft/a9.elf"));
    let incomplete = notices.iter().filter(|notice| notice.severity() == Severity::Incomplete);
    let lost = incomplete.filter(|notice| notice.at.is_some()).collect::<Vec<_>>();
    assert!(!lost.is_empty(), "{notices:?}");
    for notice in lost {
        let at = notice.at.unwrap().0;
        assert!(at + 4096 > middle as u64 && at < middle as u64 + 4096, "{notice:?}");
    }
    assert!(notices.iter().all(|notice| !notice.kind.is_cut()));
    assert!(notices.iter().any(|notice| notice.remedy() == Some(Remedy::Container)), "{notices:?}");
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
