//! Captures that the program feeds to the session as they arrive.

use std::io;
use std::thread;

use tracewalk_analysis::Section;
use tracewalk_analysis::analysis::FlowSink;
use tracewalk_analysis::record::FlowRecord;
use tracewalk_analysis::sink::Sink;
use tracewalk_input::capture::stream::{End, Place};
use tracewalk_session::{Arrival, Begin, Follow, Notices, OpenError, Request, RunError, Session};

use crate::support::example;


/// The records of flow, in order.
#[derive(Default)]
struct Records(Vec<FlowRecord>);

impl Sink<FlowRecord> for Records {
    fn section(&mut self, _: &Section) -> io::Result<()> {
        Ok(())
    }

    fn record(&mut self, record: FlowRecord) -> io::Result<()> {
        self.0.push(record);
        Ok(())
    }
}

impl FlowSink for Records {}

fn flow(mut session: Session) -> Vec<FlowRecord> {
    let (notices, mut records) = (Notices::default(), Records::default());
    let followed = session.each_source(&notices, |session, source| {
        session.run_observed(source, &Follow::default(), &mut records, &notices).map(|_| ())
    });
    followed.unwrap_or_else(|error: RunError| panic!("{error}"));
    records.0
}

#[test]
fn what_is_fed_in_pieces_is_what_a_file_holds() {
    for (folder, elf, pieces) in [("a15-pft", "a9.elf", 100), ("m3-etmv3", "m3.elf", 4099)] {
        let trace = example(folder).join("trace.bin");
        let bytes = std::fs::read(&trace).expect("the example is there");
        let image = example(folder).join(elf).to_str().expect("a plain name").parse().expect("an image");
        let request = Request { images: vec![image], ..Request::new(&trace) };
        let whole = flow(Session::open(request.clone()).expect("the example opens").0);
        assert!(whole.len() > 1000, "{folder}: {}", whole.len());

        for begin in [Begin::Trace { at_least: 0 }, Begin::Whole] {
            let (feeder, arrival) = Arrival::fed();
            let sent = bytes.clone();
            let sender = thread::spawn(move || sent.chunks(pieces).try_for_each(|piece| feeder.feed(piece)));
            let session = Session::open_arriving(request.clone(), arrival, begin, &Notices::default());
            assert_eq!(flow(session.expect("the example opens")), whole, "{folder} {begin:?}");
            assert!(sender.join().is_ok_and(|fed| fed.is_ok()), "{folder}");
        }
    }
}

#[test]
fn a_feeder_that_is_dropped_ends_the_capture_and_one_that_nobody_reads_says_so() {
    let (feeder, arrival) = Arrival::fed();
    drop(feeder);
    let nothing = Session::open_arriving(Request::new("fed"), arrival, Begin::Whole, &Notices::default());
    assert!(matches!(nothing, Err(OpenError::NoByte { place: Place::Fed, end: End::Closed })), "{nothing:?}");
    let (feeder, arrival) = Arrival::fed();
    drop(arrival);
    assert!(feeder.feed(&[0]).is_err());
}
