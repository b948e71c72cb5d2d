//! A limit of memory, an ITM in the same frames, or a capture that arrives does not split passages.

use std::io;
use std::path::Path;
use std::thread;

use tracewalk_analysis::Section;
use tracewalk_analysis::analysis::{FlowSink, Repeated};
use tracewalk_analysis::record::{FlowRecord, ItmRecord};
use tracewalk_analysis::sink::Sink;
use tracewalk_input::MemoryLimit;
use tracewalk_session::{Arrival, Begin, Follow, Notices, Request, RunError, Session};

/// How many elements came in passages, how many alone, and how many records of ITMs came between them.
#[derive(Debug, Default, PartialEq)]
struct Came {
    shows_itm: bool,
    in_passages: usize,
    alone: usize,
    of_itms: usize,
}

impl Sink<FlowRecord> for Came {
    fn section(&mut self, _: &Section) -> io::Result<()> {
        Ok(())
    }

    fn record(&mut self, _: FlowRecord) -> io::Result<()> {
        self.alone += 1;
        Ok(())
    }

    fn shows_itm(&self) -> bool {
        self.shows_itm
    }

    fn itm(&mut self, _: &ItmRecord) -> io::Result<()> {
        self.of_itms += 1;
        Ok(())
    }
}

impl FlowSink for Came {
    fn passage(&mut self, repeated: &Repeated<'_>) -> io::Result<()> {
        self.in_passages += repeated.elements().count();
        Ok(())
    }

    fn needs_places(&self) -> bool {
        false
    }
}

/// How the elements of all sources come.
fn came(mut session: Session, shows_itm: bool) -> Came {
    let (notices, mut came) = (Notices::default(), Came { shows_itm, ..Came::default() });
    let followed = session.each_source(&notices, |session, source| {
        session.run_observed(source, &Follow::default(), &mut came, &notices).map(|_| ())
    });
    followed.unwrap_or_else(|error: RunError| panic!("{error}"));
    came
}

fn opened(request: Request) -> Session {
    Session::open(request).expect("the example opens").0
}

/// A capture in frames, with an ITM beside the source. A short capture is followed by its elements unless a segment is stated.
fn request() -> Request {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/examples/m3-etmv3/capture.toml");
    Request { segment: Some(32 << 10), ..Request::new(example) }
}

#[test]
fn passages_stay_whole_when_memory_is_limited() {
    let plain = came(opened(request()), false);
    assert!(plain.in_passages > 20 * plain.alone, "{plain:?}");
    let limit = MemoryLimit::of(1 << 30).expect("enough");
    assert_eq!(came(opened(Request { limit, ..request() }), false), plain);
}

#[test]
fn passages_stay_whole_between_the_records_of_an_itm() {
    let plain = came(opened(request()), false);
    let mixed = came(opened(request()), true);
    assert_eq!(mixed.in_passages + mixed.alone, plain.in_passages + plain.alone);
    // A record is in at most one passage, of a few elements.
    assert!(mixed.of_itms > 0 && mixed.alone < plain.alone + 16 * mixed.of_itms, "{mixed:?}, {plain:?}");
}

#[test]
fn passages_stay_whole_when_the_capture_arrives() {
    let plain = came(opened(request()), false);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/examples/m3-etmv3");
    let bytes = std::fs::read(folder.join("trace.bin")).expect("the example is there");
    let image = folder.join("m3.elf").to_str().expect("a plain name").parse().expect("an image");
    let request = Request { images: vec![image], ..Request::new("fed") };
    let (feeder, arrival) = Arrival::fed();
    let sender = thread::spawn(move || bytes.chunks(1000).try_for_each(|piece| feeder.feed(piece)));
    let begin = Begin::Trace { at_least: 0 };
    let session = Session::open_arriving(request, arrival, begin, &Notices::default());
    let arrived = came(session.expect("the example opens"), false);
    assert!(sender.join().is_ok_and(|fed| fed.is_ok()));
    assert_eq!(arrived.in_passages + arrived.alone, plain.in_passages + plain.alone);
    // At the ends of pieces, bytes of a passage come apart.
    assert!(arrived.in_passages > 10 * arrived.alone, "{arrived:?}");
}
