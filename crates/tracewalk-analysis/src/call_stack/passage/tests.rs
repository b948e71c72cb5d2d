//! Passages that are taken by their outlines do what their blocks do one by one, on random stacks.

use proptest::prelude::*;
use tracewalk::flow::{BranchKind, Ending, EventKind};
use tracewalk::ids::Exception;
use tracewalk::isa::Return;

use super::*;
use crate::call_stack::{Frame, FunctionId, Piece, Run, Task};
use crate::samples::{
    call, event, exception, interrupted, page, pages, pages_without_names, returns, taken, within,
};

/// What an observer receives: pieces that ran one after the other as one.
#[derive(Debug, Default)]
struct Received {
    received: Vec<Report>,
    entered: u32,
    block: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Report {
    Entered(Option<u32>, FrameKind, FunctionId, Entry),
    Ran(u32, u32),
    Left(u32, Option<u32>, Left),
    Switched(Task, Task),
}

impl Received {
    fn ran(&mut self, mark: u32, instructions: u32) {
        match self.received.last_mut() {
            Some(Report::Ran(before, count)) if *before == mark => *count += instructions,
            _ => self.received.push(Report::Ran(mark, instructions)),
        }
    }
}

impl Observer for Received {
    type Mark = u32;

    fn enter(
        &mut self,
        below: Option<&mut Frame<u32>>,
        kind: FrameKind,
        function: FunctionId,
        entry: Entry,
    ) -> u32 {
        self.received.push(Report::Entered(below.map(|below| below.mark), kind, function, entry));
        self.entered += 1;
        self.entered
    }

    fn run(&mut self, top: &mut Frame<u32>, piece: &Piece) {
        self.ran(top.mark, piece.instructions);
    }

    fn run_all(&mut self, top: &mut Frame<u32>, run: &Run<'_>) {
        assert_eq!(run.pieces.iter().map(|piece| piece.instructions).sum::<u32>(), run.instructions);
        assert_eq!(self.block, None);
        self.ran(top.mark, run.instructions);
    }

    fn begin_block(&mut self, block: &tracewalk::flow::Block) {
        self.block = Some(block.instructions);
    }

    fn end_block(&mut self) {
        assert!(self.block.take().is_some());
    }

    fn leave(&mut self, frame: &mut Frame<u32>, below: Option<&mut Frame<u32>>, how: Left) {
        self.received.push(Report::Left(frame.mark, below.map(|below| below.mark), how));
    }

    fn switch(&mut self, from: Task, to: Task, _: crate::call_stack::Evidence) {
        self.received.push(Report::Switched(from, to));
    }
}

fn indirect() -> Ending {
    Ending::Branch { kind: BranchKind::Indirect, taken: true, link: false, returns: None }
}

fn leaves_handler() -> Ending {
    Ending::Branch { kind: BranchKind::Indirect, taken: true, link: false, returns: Some(Return::Exception) }
}

/// Passages of a few functions, which call each other and return to few places, so that many stacks fit the same passage.
fn passages() -> Vec<Vec<Element>> {
    let mut all = Vec::new();
    for name in ["main", "sort", "swap", "a"] {
        for ending in [call(), returns(), taken(), indirect(), interrupted()] {
            all.push(vec![within(name, 0, 4, ending)]);
            all.push(vec![within(name, 4, 8, ending)]);
            all.push(vec![within(name, 4, 8, taken()), within("swap", 0, 4, ending)]);
            all.push(vec![
                within(name, 0, 4, call()),
                within("a", 0, 4, returns()),
                within(name, 4, 8, ending),
            ]);
        }
        let irq = |number| exception(Exception::M(number), Some(page(name) + 4), page("handler"));
        all.push(vec![within(name, 0, 4, interrupted()), irq(16), within("handler", 0, 4, leaves_handler())]);
        all.push(vec![irq(17)]);
        all.push(vec![within(name, 0, 4, interrupted()), irq(14), within("handler", 0, 4, taken())]);
    }
    all.push(vec![within("handler", 0, 4, returns()), event(EventKind::ExceptionReturn)]);
    all.push(vec![within("handler", 0, 4, leaves_handler())]);
    all.push(vec![within("handler", 0, 4, call())]);
    all.push(vec![exception(Exception::M(15), None, page("handler"))]);
    all.push(vec![within("setjmp", 0, 4, returns())]);
    all.push(vec![
        within("main", 0, 4, call()),
        within("setjmp", 0, 4, returns()),
        within("main", 4, 8, taken()),
    ]);
    all.push(vec![within("longjmp", 0, 4, indirect())]);
    all.push(vec![within("vTaskSwitchContext", 0, 4, returns())]);
    // One block in two functions.
    all.push(vec![within("sort", 0xfc, 0x104, call())]);
    all
}

fn by_element(passage: &[Element], calls: &mut CallStack<u32>, received: &mut Received) {
    for element in passage {
        let _ = calls.element(element, received);
    }
}

/// Takes passages by these numbers. Returns how many of them had an outline.
fn check(code: &std::sync::Arc<crate::Code>, numbers: &[usize]) -> usize {
    let passages = passages();
    let (mut calls, mut expected) = (CallStack::new(code.clone()), CallStack::new(code.clone()));
    let (mut received, mut expected_received) = (Received::default(), Received::default());
    let mut outlined = 0;
    for (index, number) in numbers.iter().map(|number| number % passages.len()).enumerate() {
        let passage = &passages[number];
        let elements = || passage.iter().copied();
        match calls.outline_of((1, u32::try_from(number).unwrap()), elements, &mut received) {
            Some(found) => {
                outlined += 1;
                calls.follow(found, &mut received);
            }
            None => by_element(passage, &mut calls, &mut received),
        }
        by_element(passage, &mut expected, &mut expected_received);
        assert_eq!(received.received, expected_received.received, "passage {index}: {passage:?}");
        let frames = |calls: &CallStack<u32>| calls.frames().copied().collect::<Vec<_>>();
        assert_eq!(frames(&calls), frames(&expected), "passage {index}: {passage:?}");
        assert_eq!(calls.stack.jumps, expected.stack.jumps, "passage {index}: {passage:?}");
        assert_eq!(calls.stack.origin, expected.stack.origin, "passage {index}: {passage:?}");
        assert_eq!(calls.next, expected.next, "passage {index}: {passage:?}");
    }
    outlined
}

#[test]
fn a_passage_that_counts_no_cycles_has_an_outline() {
    let numbers = (0..passages().len()).collect::<Vec<_>>();
    assert_eq!(check(&pages(), &numbers), numbers.len());
    let (mut calls, cycles) = (CallStack::<u32>::new(pages()), [event(EventKind::Cycles(3))]);
    assert!(calls.outline_of((1, 0), || cycles.iter().copied(), &mut Received::default()).is_none());
}

#[test]
fn blocks_of_one_function_are_one_run() {
    let mut calls = CallStack::<u32>::new(pages());
    let passage = [
        within("main", 0, 4, taken()),
        within("main", 8, 12, call()),
        within("sort", 0, 4, taken()),
        within("sort", 8, 16, returns()),
        within("main", 12, 16, taken()),
    ];
    let received = &mut Received::default();
    let outlined = calls.outline_of((1, 0), || passage.iter().copied(), received).unwrap();
    assert!(!outlined.is_lost());
    let runs = outlined.steps().map(|number| calls.runs().get(number).unwrap().pieces.len());
    assert_eq!(runs.collect::<Vec<_>>(), [2, 2, 1]);
}

proptest! {
    #[test]
    fn outlines_do_what_their_blocks_do(numbers in proptest::collection::vec(any::<usize>(), 1..200)) {
        check(&pages(), &numbers);
    }

    #[test]
    fn outlines_of_code_without_names_do_what_their_blocks_do(
        numbers in proptest::collection::vec(any::<usize>(), 1..200),
    ) {
        check(&pages_without_names(), &numbers);
    }

    #[test]
    fn loops_of_a_few_passages_do_what_their_blocks_do(
        numbers in proptest::collection::vec(any::<usize>(), 1..6),
    ) {
        check(&pages(), &numbers.repeat(20));
    }
}
