//! Effects that are applied from memory equal those of elements that are followed one by one, on random stacks.

use proptest::prelude::*;
use tracewalk::flow::BranchKind;
use tracewalk::ids::Exception;
use tracewalk::isa::Return;

use super::*;
use crate::call_stack::{Entry, FrameKind, FunctionId, Left, Observer, Piece};
use crate::samples::{call, event, exception, interrupted, page, pages, returns, taken, within};
use tracewalk::flow::{Element, Ending, EventKind};

/// An observer whose mark is the number of frames that it had seen entered.
#[derive(Debug, Default)]
struct Numbering(u32);

impl Observer for Numbering {
    type Mark = u32;

    fn enter(&mut self, _: Option<&mut Frame<u32>>, _: FrameKind, _: FunctionId, _: Entry) -> u32 {
        self.0 += 1;
        self.0
    }
    fn run(&mut self, _: &mut Frame<u32>, _: &Piece) {}
    fn leave(&mut self, _: &mut Frame<u32>, _: Option<&mut Frame<u32>>, _: Left) {}
}

fn indirect() -> Ending {
    Ending::Branch { kind: BranchKind::Indirect, taken: true, link: false, returns: None }
}

fn leaves_handler() -> Ending {
    Ending::Branch { kind: BranchKind::Indirect, taken: true, link: false, returns: Some(Return::Exception) }
}

/// Passages of a few functions, which call each other and return to few places, so that many stacks fit the same passage.
pub(in super::super) fn passages() -> Vec<Vec<Element>> {
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

/// Takes a passage as analyses do. Returns whether its effect was known.
fn take(
    number: u32,
    passage: &[Element],
    (remembered, calls, marks): (&mut Remembered<u32, u32>, &mut CallStack<u32>, &mut Numbering),
) -> bool {
    let key = (1, number);
    if let Some(known) = remembered.find(calls, key, |_| 0) {
        assert_eq!(remembered.effect(known), Some(&number));
        remembered.go(known, calls);
        return true;
    }
    if remembered.is_full(1) {
        remembered.forget(1, calls);
    }
    let learning = remembered.begin_learning(calls, key);
    for element in passage {
        let _ = calls.element(element, marks);
    }
    remembered.end_learning(calls, learning, Some((number, false)), |_| 0);
    false
}

fn check(numbers: &[usize]) -> usize {
    let passages = passages();
    let (mut remembered, mut marks) = (Remembered::default(), Numbering::default());
    let (mut calls, mut expected) = (CallStack::new(pages()), CallStack::new(pages()));
    let mut known = 0;
    for (index, number) in numbers.iter().map(|number| number % passages.len()).enumerate() {
        let passage = &passages[number];
        let number = u32::try_from(number).unwrap();
        known += usize::from(take(number, passage, (&mut remembered, &mut calls, &mut marks)));
        for element in passage {
            let _ = expected.element(element, &mut Numbering::default());
        }
        let frames = |calls: &CallStack<u32>| {
            calls.frames().map(|frame| (frame.kind, frame.function, frame.schedules)).collect::<Vec<_>>()
        };
        assert_eq!(frames(&calls), frames(&expected), "passage {index}: {passage:?}");
        assert_eq!(calls.stack.jumps, expected.stack.jumps, "passage {index}: {passage:?}");
        assert_eq!(calls.stack.origin, expected.stack.origin, "passage {index}: {passage:?}");
        // The pending step is known without the stack.
        let next = remembered.here.and_then(|here| remembered.shapes.next(here));
        assert_eq!(next.unwrap_or(calls.next), expected.next, "passage {index}: {passage:?}");
    }
    known
}

#[test]
fn an_effect_is_known_from_the_second_time_on() {
    let passages = passages();
    let find = |wanted: &[Element]| passages.iter().position(|passage| passage == wanted).unwrap();
    let main = find(&[within("main", 0, 4, call())]);
    let sort = find(&[within("sort", 0, 4, returns())]);
    let then = find(&[within("main", 4, 8, taken())]);
    // `main` is followed once without a known stack, and once after a jump.
    assert_eq!(check(&[main, sort, then, main]), 0);
    assert_eq!(check(&[main, sort, then].repeat(3)), 5);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn effects_on_any_stack_equal_those_of_elements(numbers in proptest::collection::vec(any::<usize>(), 1..400)) {
        check(&numbers);
    }

    /// Fewer passages come more often, so that more effects are known.
    #[test]
    fn effects_on_similar_stacks_equal_those_of_elements(
        chosen in proptest::collection::vec(any::<usize>(), 2..12),
        order in proptest::collection::vec(any::<usize>(), 1..600),
    ) {
        check(&order.into_iter().map(|index| chosen[index % chosen.len()]).collect::<Vec<_>>());
    }
}
