//! Flow in parts: what several threads put together is what one finds, and who counts passages counts their elements.

use tracewalk::flow::{Element, Passage};
use tracewalk::program::Program;
use tracewalk::source::SourceConfig;
use tracewalk::span::{CaptureOffset, StreamOffset};
use tracewalk_analysis::coverage::{Conditions, Part as Covered, RecordedPart, Recorder};
use tracewalk_analysis::drive::{Carrier, Follower, Input, NoProgress, Spread, Stretch};
use tracewalk_analysis::sink::Part;
use tracewalk_analysis::{Doubtful, Doubting};

/// Smaller than what a segment usually has, so that a short trace has several.
const SMALLEST_SEGMENT: usize = 64;

/// The elements with their places, and what they cover.
#[derive(Clone, Debug)]
struct Elements {
    elements: Vec<(Element, CaptureOffset)>,
    covered: RecordedPart,
}

impl Part for Elements {
    fn begin(&mut self, doubting: Doubting) {
        self.covered.begin(doubting);
    }

    fn element(&mut self, element: &Element, at: impl FnOnce() -> CaptureOffset) {
        self.elements.push((*element, at()));
        self.covered.element(element, || CaptureOffset(0));
    }

    fn passage(&mut self, passage: &Passage<'_>, mut at: impl FnMut(StreamOffset) -> CaptureOffset) {
        self.elements.extend(passage.elements().map(|element| (element, at(element.span().start))));
        self.covered.passage(passage, at);
    }
}

/// Follows the trace by one thread, and by two in segments of about `segment` bytes.
pub(crate) fn parts(config: &SourceConfig, program: &Program, trace: &[u8], segment: usize) {
    let carrier = Carrier::Stretches(vec![Stretch::all(trace.len())]);
    let input = Input { capture: trace, carrier, rest: None, progress: &NoProgress };
    let recorder = || Recorder::new(Conditions::recorded_by(config), Doubtful::Keep);
    let finished = |recorder: Recorder| recorder.finish("", "", "", trace.len() as u64);
    let found = |spread: Spread| -> (Vec<(Element, CaptureOffset)>, Covered) {
        let (mut elements, mut covered) = (Vec::new(), recorder());
        let empty = Elements { elements: Vec::new(), covered: covered.part() };
        Follower::new(config, program)
            .flow_parts(&input, spread, &empty, |gathered| {
                elements.extend(gathered.part.elements);
                covered.join(gathered.part.covered);
                Ok(())
            })
            .expect("nobody stops it");
        (elements, finished(covered))
    };
    let (elements, covered) = found(Spread { threads: 1, segment: usize::MAX });
    let mut one_by_one = recorder();
    elements.iter().for_each(|(element, _)| one_by_one.element(element));
    assert_eq!(covered, finished(one_by_one), "passages cover what their elements do not");
    let (by_two, covered_by_two) = found(Spread { threads: 2, segment: SMALLEST_SEGMENT + segment });
    if let Some(index) = (0..elements.len().max(by_two.len())).find(|&at| elements.get(at) != by_two.get(at))
    {
        panic!("one thread {:?}, two {:?}", elements.get(index), by_two.get(index));
    }
    assert_eq!(covered, covered_by_two, "two threads cover what one does not");
}
