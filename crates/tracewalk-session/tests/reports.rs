//! Captures that people had, as public reports describe them: what they are, without options.

use std::path::Path;

use tracewalk_session::{Notice, NoticeKind, Severity};

use crate::support::{Flow, bare, corpus};

/// The number of runs, and the notices.
fn flow(name: &str, elf: &str) -> (usize, Vec<Notice>) {
    let folder = corpus("found3/reports");
    let Flow { runs, notices, error } = Flow::of(bare(&folder.join(name), &folder.join(elf)));
    assert!(error.is_none(), "{name}: {error:?}");
    (runs.lines().filter(|line| line.starts_with("R ")).count(), notices)
}

/// How many zeros are said to be at the beginning and at the end, if nothing is wrong.
fn unfilled(notices: &[Notice]) -> Option<(u64, u64)> {
    assert!(notices.iter().all(|notice| notice.severity() == Severity::Note), "{notices:?}");
    notices.iter().find_map(|notice| match &notice.kind {
        NoticeKind::Unfilled { first, last, .. } => Some((*first, *last)),
        _ => None,
    })
}

#[tracewalk_corpus::test]
fn a_buffer_that_was_not_filled_is_not_turned() {
    for (name, runs) in [("cut1.bin", 179), ("cut3.bin", 174), ("cut11.bin", 154)] {
        let folder = Path::new("03-read-pointer-loses-newest");
        let name = folder.join(name);
        let name = name.to_str().expect("a plain name");
        assert_eq!(flow(name, "03-read-pointer-loses-newest/a.elf").0, runs, "{name}");
    }
}

#[tracewalk_corpus::test]
fn zeros_around_trace_are_noted_and_nothing_else() {
    for (name, zeros) in [("z12288.bin", 12288), ("z16384.bin", 16384)] {
        let name = format!("04-zeros-before-raw-etmv4/{name}");
        let (runs, kinds) = flow(&name, "04-zeros-before-raw-etmv4/a.elf");
        assert_eq!((runs, unfilled(&kinds)), (540, Some((zeros + 11, 0))), "{name}");
    }
    let (runs, kinds) = flow("05-zeros-after-raw/rawbeg_1_8192.bin", "05-zeros-after-raw/a.elf");
    assert_eq!((runs, unfilled(&kinds)), (9, Some((0, 8113))));
}

/// Its debug halt has the TYPE of an A profile's transaction failure.
#[tracewalk_corpus::test]
fn a_debug_halt_without_a_transaction_is_of_m_profile() {
    use tracewalk_session::{Request, Session};
    let capture = corpus("found3/reports/06-m33-taken-for-a510/m33.bin");
    let (session, notices) = Session::open(Request::new(capture)).expect("it is recognised");
    let cpu = session.sources()[0].description.cpu.as_ref().map(|cpu| cpu.value.as_str());
    assert_eq!(cpu, Some("cortex-m33"), "{notices:?}");
    let doubts = notices.iter().filter(|notice| notice.severity() > Severity::Note);
    assert_eq!(doubts.count(), 0, "{notices:?}");
}
