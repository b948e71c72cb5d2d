//! Flow in parts: what several threads put together is what one finds, and who counts passages counts their elements.

use tracewalk::flow::{Element, Passage};
use tracewalk::program::Program;
use tracewalk::source::SourceConfig;
use tracewalk::span::{CaptureOffset, StreamOffset};
use tracewalk_analysis::analysis::{Analysis as _, End};
use tracewalk_analysis::coverage::{Conditions, ProgramCoverage, Recorder};
use tracewalk_analysis::drive::{Carrier, Follower, Input, NoProgress, Spread, Stretch};
use tracewalk_analysis::log::{Log, Noting, Reader};
use tracewalk_analysis::sink::Part;
use tracewalk_analysis::{Doubtful, Statistics};
use tracewalk_session::Covered;

/// Smaller than what a segment usually has, so that a short trace has several.
const SMALLEST_SEGMENT: usize = 64;

/// The elements with their places.
#[derive(Clone, Debug, Default)]
struct Elements(Vec<(Element, CaptureOffset)>);

impl Part for Elements {
    fn element(&mut self, element: &Element, at: impl FnOnce() -> CaptureOffset) {
        self.0.push((*element, at()));
    }

    fn passage(&mut self, passage: &Passage<'_>, mut at: impl FnMut(StreamOffset) -> CaptureOffset) {
        self.0.extend(passage.elements().map(|element| (element, at(element.span().start))));
    }
}

/// Follows the trace by one thread, and by two in segments of about `segment` bytes.
pub(crate) fn parts(config: &SourceConfig, program: &Program, trace: &[u8], segment: usize) {
    let carrier = Carrier::Stretches(vec![Stretch::all(trace.len())]);
    let input = Input { capture: trace, carrier, rest: None, progress: &NoProgress };
    let found = |spread: Spread| -> (Vec<(Element, CaptureOffset)>, ProgramCoverage) {
        let mut elements = Vec::new();
        let mut follower = Follower::new(config, program);
        follower
            .flow_parts(&input, spread, &Elements::default(), |gathered| {
                elements.extend(gathered.part.0);
                Ok(())
            })
            .expect("nobody stops it");
        let mut covering = Covered::of_all(Conditions::recorded_by(config), Doubtful::Keep);
        let (mut reader, mut statistics) = (Reader::new(Doubtful::Keep, false), Statistics::default());
        let empty = Log::new(Noting::Passages);
        let noted = follower.flow_parts(&input, spread, &empty, |gathered| {
            statistics.add(&gathered.statistics);
            reader.part(gathered.part, &mut covering)
        });
        noted.and_then(|()| reader.finish(&mut covering)).expect("nobody stops it");
        let covered = covering.answer(&End { statistics, complete: true }).pop();
        (elements, covered.expect("all code is one program").1)
    };
    let (elements, covered) = found(Spread { threads: 1, segment: usize::MAX });
    let mut one_by_one = Recorder::new(Conditions::recorded_by(config), Doubtful::Keep);
    elements.iter().for_each(|(element, _)| one_by_one.element(element, false));
    let one_by_one = ProgramCoverage::of(one_by_one.finish("", "", "", trace.len() as u64));
    assert_eq!(covered, one_by_one, "passages cover what their elements do not");
    let (by_two, covered_by_two) = found(Spread { threads: 2, segment: SMALLEST_SEGMENT + segment });
    if let Some(index) = (0..elements.len().max(by_two.len())).find(|&at| elements.get(at) != by_two.get(at))
    {
        panic!("one thread {:?}, two {:?}", elements.get(index), by_two.get(index));
    }
    assert_eq!(covered, covered_by_two, "two threads cover what one does not");
}
