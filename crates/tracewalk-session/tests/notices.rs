//! The notices of a session, by kind: on the project's examples, whole and damaged.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use tracewalk::ids::{Address, TraceId};
use tracewalk_analysis::Code;
use tracewalk_analysis::drive::Progress;
use tracewalk_analysis::sink::Nothing;
use tracewalk_input::capture::CaptureErrorKind;
use tracewalk_session::{
    Arrival, Begin, Follow, Notice, NoticeKind, Notices, Observer, OpenError, Policy, Remedy, Request,
    RunError, Session, Severity,
};

use crate::support::{bare, copy_with, example};

/// Opens a capture and follows all of it.
fn follow(request: Request) -> Vec<Notice> {
    let notices = Notices::default();
    let mut session = Session::open_observed(request, &notices).unwrap();
    let followed = session.each_source(&notices, |session, source| {
        let how = Follow { names: None, ..Follow::default() };
        let outcome = session.run_observed(source, &how, &mut Nothing, &notices)?;
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
        let notices = follow(bare(&example(capture), &example(elf)));
        assert_eq!(names(&notices), ["inferred"], "{capture}");
        assert_eq!(notices[0].severity(), Severity::Note);
        assert_eq!(notices[0].remedy(), None);
    }
}

#[test]
fn another_program_is_detected_by_the_code_that_is_missing() {
    let elsewhere = |text: Vec<u8>| {
        let text = String::from_utf8(text).unwrap();
        text.replace("\"a9.elf\"", "\"trace.bin\"\naddress = 0x80000000").into_bytes()
    };
    let folder = copy_with(&example("a15-pft"), "capture.toml", elsewhere);
    let notices = follow(Request::new(folder.path().to_owned()));
    let [missing] = notices.as_slice() else { panic!("{notices:?}") };
    assert_eq!((missing.severity(), missing.remedy()), (Severity::Incomplete, Some(Remedy::Image)));
    assert!(missing.at.is_some());
    let NoticeKind::CodeMissing { elsewhere: Some((file, start)), .. } = &missing.kind else {
        panic!("{missing:?}")
    };
    assert_eq!((file.ends_with("trace.bin"), start.get()), (true, 0x8000_0000));

    let other = std::fs::read(example("m3-etmv3/m3.elf")).unwrap();
    let folder = copy_with(&example("a15-pft"), "a9.elf", |_| other);
    assert_eq!(names(&follow(Request::new(folder.path().to_owned()))), ["foreign_image"]);
}

#[test]
fn damage_is_incomplete_and_has_a_place() {
    let mut bytes = std::fs::read(example("a15-pft/trace.bin")).unwrap();
    let middle = bytes.len() / 2 / 16 * 16;
    bytes[middle..middle + 64].fill(0xff);
    let folder = copy_with(&example("a15-pft"), "trace.bin", |_| bytes);
    let notices = follow(Request::new(folder.path().join("capture.toml")));
    let incomplete = notices.iter().filter(|notice| notice.severity() == Severity::Incomplete);
    let places = incomplete.filter_map(|notice| notice.at).map(|at| at.0).collect::<Vec<_>>();
    assert!(!places.is_empty(), "{notices:?}");
    let near = middle as u64 - 64..middle as u64 + 512;
    assert!(places.iter().all(|at| near.contains(at)), "{middle}: {notices:?}");
    assert!(notices.iter().all(|notice| !notice.kind.is_cut()));
}

#[test]
fn damaged_perf_data_is_refused_whatever_names_it() {
    // A header of 104 bytes, as perf writes it; the packets of a Micro Trace Buffer may look like its offsets and sizes.
    let header = [0x68, 0x88, 0x1c8, 0x90, 0x258, 0x2a00, 0, 0, 0x4_0000, 0, 0, 0].map(u64::to_le_bytes);
    let bytes = [b"PERFILE2".as_slice(), header.as_flattened(), &[0; 64]].concat();
    let folder = copy_with(&example("a15-pft"), "trace.bin", |_| bytes);
    let file = folder.path().join("trace.bin");
    let mut at_an_address = Request::new(file.clone());
    at_an_address.stated.dump_address = Some(Address::new(0x2000_0000));
    let described = Request::new(folder.path().join("capture.toml"));
    assert!(matches!(Session::open(described), Err(OpenError::PerfData(_))));
    // The header's offsets point outside the file.
    for request in [Request::new(file), at_an_address] {
        let Err(OpenError::Capture(error)) = Session::open(request) else { panic!("it is damaged") };
        assert!(matches!(error.kind, CaptureErrorKind::Perf(_)), "{error:?}");
    }
}

#[test]
fn what_cannot_be_opened_says_why_as_data() {
    let bare = Request { policy: Policy::Strict, ..Request::new(example("m3-etmv3/trace.bin")) };
    assert!(matches!(Session::open(bare), Err(OpenError::NotStated { .. })));
    let text = Request::new(example("README.md"));
    assert!(matches!(Session::open(text), Err(OpenError::NoTrace { .. })));
    let elf = Request::new(example("m3-etmv3/m3.elf"));
    assert!(matches!(Session::open(elf), Err(OpenError::ElfFile(_))));
    let missing = Request::new(example("missing"));
    assert!(matches!(Session::open(missing), Err(OpenError::Capture(_))));
    let opened = |bytes: &[u8]| {
        let folder = copy_with(&example("m3-etmv3"), "trace.bin", |_| bytes.to_vec());
        Session::open(Request::new(folder.path().join("trace.bin"))).map(drop)
    };
    let saved = opened(b"{\"saved\":\"coverage\",\"version\":1}\n");
    assert!(matches!(saved, Err(OpenError::SavedFile { kind: "coverage", .. })));
    // Vectors, and the handler after them.
    let program = ":10000000001000201100000011000000110000008D\n:0400100000BF704776\n:00000001FF\n";
    assert!(matches!(opened(program.as_bytes()), Err(OpenError::Program { .. })));
    // A UART at 4 microseconds a bit.
    let mut recording = "$timescale 1 us $end $var wire 1 ! TX $end $enddefinitions $end\n#0 1!\n".to_owned();
    let levels = b"hello world".iter().flat_map(|byte| {
        let bits = (0..8).map(move |bit| byte >> bit & 1);
        std::iter::once(0).chain(bits).chain([1])
    });
    for (level, number) in levels.zip(0..) {
        recording += &format!("#{} {level}!\n", 100 + 4 * number);
    }
    recording += "#1000\n";
    let Err(OpenError::WireText { text, .. }) = opened(recording.as_bytes()) else { panic!("text on a wire") };
    assert_eq!(text, "hello world");
    let absent = Request { ids: vec![TraceId::new(0x33).unwrap()], ..Request::new(example("a15-pft")) };
    assert!(matches!(Session::open(absent), Err(OpenError::IdAbsent { .. } | OpenError::NoTraceIds(_))));
}

#[test]
fn an_image_of_a_description_that_cannot_be_used_is_left_out() {
    let with_another = |text: Vec<u8>| [&text[..], b"[[image]]\nfile = 'trace.bin'\n"].concat();
    let folder = copy_with(&example("m3-etmv3"), "capture.toml", with_another);
    let notices = follow(Request::new(folder.path().to_owned()));
    let left_out = notices.iter().find(|notice| notice.kind.name() == "image_left_out");
    assert_eq!(left_out.map(Notice::severity), Some(Severity::Incomplete));
}

#[test]
fn names_of_notices_are_kinds_names() {
    let kind = NoticeKind::StatedAbsent { id: TraceId::new(1).unwrap() };
    assert_eq!((kind.name(), kind.to_string()), ("stated_absent", "stated_absent".to_owned()));
}

/// Several threads read the same program.
#[test]
fn programs_can_be_shared_between_threads() {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<Arc<Code>>();
}

/// An example's ELF file whose debug information begins with a length that DWARF reserves.
fn without_lines(elf: &Path) -> Vec<u8> {
    use object::{Object as _, ObjectSection as _};

    let mut bytes = std::fs::read(elf).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let (start, _) = file.section_by_name(".debug_info").unwrap().file_range().unwrap();
    let start = usize::try_from(start).unwrap();
    bytes[start..start + 4].copy_from_slice(&0xffff_fff0_u32.to_le_bytes());
    bytes
}

/// However the capture arrives, whatever is inferred, and however often its program is read.
#[test]
fn that_names_are_missing_is_reported_once() {
    let broken = without_lines(&example("m3-etmv3/m3.elf"));
    let folder = copy_with(&example("m3-etmv3"), "m3.elf", |_| broken);
    let described = Request::new(folder.path().join("capture.toml"));
    let image = folder.path().join("m3.elf").to_str().unwrap().parse().unwrap();
    let bare = Request { images: vec![image], ..Request::new(folder.path().join("trace.bin")) };
    for (request, begin) in [
        (described, None),
        (bare.clone(), None),
        (bare.clone(), Some(Begin::Whole)),
        (bare, Some(Begin::Trace { at_least: 0 })),
    ] {
        let notices = Notices::default();
        let mut session = match begin {
            None => Session::open_observed(request, &notices).unwrap(),
            Some(begin) => {
                let trace = std::fs::read(&request.capture).unwrap();
                let (feeder, arrival) = Arrival::fed();
                std::thread::spawn(move || trace.chunks(512).try_for_each(|piece| feeder.feed(piece)));
                Session::open_arriving(request, arrival, begin, &notices).unwrap()
            }
        };
        let followed = session.each_source(&notices, |session, source| {
            let how = Follow { names: Some(Vec::new()), ..Follow::default() };
            session.run_observed(source, &how, &mut Nothing, &notices).map(drop)
        });
        followed.unwrap();
        let notices = notices.into_vec();
        let missing = notices.iter().filter(|notice| matches!(notice.kind, NoticeKind::NamesMissing(_)));
        assert_eq!(missing.count(), 1, "{begin:?}: {:?}", names(&notices));
    }
}

/// Counts how often a capture is decoded.
#[derive(Default)]
struct Passes {
    notices: Notices,
    works: RefCell<Vec<Pass>>,
}

/// The progress of one pass.
#[derive(Clone, Debug, Default)]
struct Pass(Rc<Cell<u64>>);

impl Progress for Pass {
    fn done(&self, bytes: u64) -> bool {
        assert!(bytes >= self.0.replace(bytes), "a pass never goes back");
        true
    }
}

impl Observer for Passes {
    fn notice(&self, notice: Notice) {
        self.notices.notice(notice);
    }

    fn work(&self, _: u64) -> Box<dyn Progress + '_> {
        let pass = Pass::default();
        self.works.borrow_mut().push(pass.clone());
        Box::new(pass)
    }
}

#[test]
fn places_of_losses_take_no_pass_of_their_own() {
    for places in [false, true] {
        let mut bytes = std::fs::read(example("a15-pft/trace.bin")).unwrap();
        let (length, middle) = (bytes.len() as u64, bytes.len() / 2 / 16 * 16);
        bytes[middle..middle + 64].fill(0xff);
        let folder = copy_with(&example("a15-pft"), "trace.bin", |_| bytes);
        let mut session = Session::open(Request::new(folder.path().join("capture.toml"))).unwrap().0;
        let (passes, source) = (Passes::default(), session.sources()[0].clone());
        let how = Follow { names: None, places, ..Follow::default() };
        let outcome = session.run_observed(&source, &how, &mut Nothing, &passes).unwrap();
        assert_eq!(outcome.losses.places.is_some(), places);
        let works = passes.works.borrow();
        assert_eq!(works.len(), 1, "{places}");
        assert_eq!(works[0].0.get(), length, "{places}");
    }
}
