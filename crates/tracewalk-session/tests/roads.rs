//! A limit of memory does not change how elements reach an analysis.

use std::io;
use std::path::Path;

use tracewalk_analysis::Section;
use tracewalk_analysis::analysis::{FlowSink, InOrder, Repeated};
use tracewalk_analysis::record::FlowRecord;
use tracewalk_analysis::sink::Sink;
use tracewalk_input::MemoryLimit;
use tracewalk_session::{Follow, Notices, Request, RunError, Session};

/// How many elements came in passages, and how many alone.
#[derive(Debug, Default, PartialEq)]
struct Came {
    in_passages: usize,
    alone: usize,
}

impl Sink<FlowRecord> for Came {
    fn section(&mut self, _: &Section) -> io::Result<()> {
        Ok(())
    }

    fn record(&mut self, _: FlowRecord) -> io::Result<()> {
        self.alone += 1;
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

fn came(request: &Request) -> Came {
    let (notices, mut came) = (Notices::default(), Came::default());
    let (mut session, _) = Session::open(request.clone()).expect("the example opens");
    let followed = session.each_source(&notices, |session, source| {
        session.run_observed(source, &Follow::default(), InOrder(&mut came), &notices).map(|_| ())
    });
    followed.unwrap_or_else(|error: RunError| panic!("{error}"));
    came
}

#[test]
fn passages_stay_whole_when_memory_is_limited() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/examples/m3-etmv3/capture.toml");
    // A short capture is followed by its elements unless a segment is stated.
    let request = Request { segment: Some(32 << 10), ..Request::new(example) };
    let plain = came(&request);
    assert!(plain.in_passages > 20 * plain.alone, "{plain:?}");
    let limit = MemoryLimit::of(1 << 30).expect("enough");
    assert_eq!(came(&Request { limit, ..request }), plain);
}
