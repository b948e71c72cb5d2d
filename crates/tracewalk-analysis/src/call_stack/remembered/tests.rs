//! Random stories in pieces that come again and again: what is remembered of them is what following them does.

use std::sync::Arc;

use tracewalk::flow::{BranchKind, Element, Ending, EventKind};
use tracewalk::ids::Exception;
use tracewalk::isa::Return;

use super::Remembered;
use crate::call_stack::{
    CallStack, Entry, Evidence, Frame, FrameKind, FunctionId, Left, Observer, Piece, Task,
};
use crate::samples::{block, call, event, exception, interrupted, page, pages, returns, taken};

/// What an observer is told, and of which functions below.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Told {
    Entered(FrameKind, FunctionId, Entry),
    Ran(Piece),
    Left(FunctionId, Left),
    Switched(Task),
}

#[derive(Debug, Default)]
struct Noting(Vec<Told>);

impl Observer for Noting {
    type Mark = ();

    fn enter(&mut self, _: Option<&mut Frame<()>>, kind: FrameKind, function: FunctionId, entry: Entry) {
        self.0.push(Told::Entered(kind, function, entry));
    }

    fn run(&mut self, _: &mut Frame<()>, piece: &Piece) {
        self.0.push(Told::Ran(*piece));
    }

    fn leave(&mut self, frame: &mut Frame<()>, _: Option<&mut Frame<()>>, how: Left) {
        self.0.push(Told::Left(frame.function, how));
    }

    fn switch(&mut self, _: Task, to: Task, _: Evidence) {
        self.0.push(Told::Switched(to));
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) as usize % limit
    }

    fn function(&mut self, names: &[&str]) -> u32 {
        page(names[self.below(names.len())])
    }

    /// A piece of a story. Its addresses are few, so that returns, jumps and exceptions often meet what is on the stack.
    fn passage(&mut self, names: &[&str]) -> Vec<Element> {
        (0..=self.below(4)).flat_map(|_| self.step(names)).collect()
    }

    fn step(&mut self, names: &[&str]) -> Vec<Element> {
        let (from, to) = (self.function(names) + [0, 4, 8][self.below(3)], self.function(names));
        let jump = Ending::Branch { kind: BranchKind::Indirect, taken: true, link: false, returns: None };
        let back = Ending::Branch {
            kind: BranchKind::Indirect,
            taken: true,
            link: false,
            returns: Some(Return::Exception),
        };
        let at = |ending| block(from, from + 4, ending);
        match self.below(14) {
            0..4 => vec![at(call()), block(to, to + 4, taken())],
            4..7 => vec![at(returns()), block(to + 4, to + 8, taken())],
            7 => vec![at(jump), block(to, to + 4, jump)],
            8 => vec![at(jump), block(to + 8, to + 12, taken())],
            9 => vec![at(taken()), block(to, to + 4, returns())],
            10 => vec![at(interrupted()), exception(Exception::M(15), Some(from + 4), page("handler"))],
            11 => vec![at(back), block(to + 4, to + 8, taken())],
            12 => vec![at(returns()), event(EventKind::ExceptionReturn), block(to + 4, to + 8, taken())],
            _ => vec![block(from, from + 4, call()), block(from + 4, from + 8, taken())],
        }
    }
}

/// The number of pieces that were known, of all.
fn check(seed: u64, names: &[&str], by_frames: bool) -> (usize, usize) {
    let mut random = Random(seed);
    let passages = (0..40).map(|_| random.passage(names)).collect::<Vec<_>>();
    let (mut plain, mut calls) = (CallStack::new(pages()), CallStack::new(Arc::clone(&pages())));
    let mut remembered: Remembered<(), Vec<Told>> =
        if by_frames { Remembered::by_frames() } else { Remembered::default() };
    let (mut known_ones, mut all) = (0, 0);
    for _ in 0..3_000 {
        let number = random.below(passages.len());
        let passage = &passages[number];
        let mut expected = Noting::default();
        passage.iter().for_each(|element| drop(plain.element(element, &mut expected)));
        let key = (0, u32::try_from(number).unwrap());
        all += 1;
        let told = if random.below(50) == 0 {
            // What is not a passage comes in between.
            remembered.disturb(&mut calls);
            let mut told = Noting::default();
            passage.iter().for_each(|element| drop(calls.element(element, &mut told)));
            told.0
        } else if let Some(known) = remembered.find(&mut calls, key, |()| 0) {
            known_ones += 1;
            let told = remembered.effect(known).unwrap().clone();
            remembered.go(known, &mut calls);
            told
        } else {
            if remembered.is_full(0) {
                remembered.forget(0, &mut calls);
            }
            let learning = remembered.begin_learning(&mut calls, key);
            let mut told = Noting::default();
            passage.iter().for_each(|element| drop(calls.element(element, &mut told)));
            remembered.end_learning(&mut calls, learning, Some((told.0.clone(), false)), |()| 0);
            told.0
        };
        assert_eq!(told, expected.0, "seed {seed}, {passage:?}");
        let frames = |calls: &CallStack<()>| {
            let frames = calls.stack.frames.iter();
            frames.map(|frame| (frame.kind, frame.function, frame.schedules)).collect::<Vec<_>>()
        };
        assert_eq!(frames(&calls), frames(&plain), "seed {seed}, {passage:?}");
        assert_eq!(calls.stack.jumps, plain.stack.jumps, "seed {seed}");
        assert_eq!(calls.stack.origin, plain.stack.origin, "seed {seed}");
        assert_eq!(calls.task(), plain.task(), "seed {seed}");
    }
    remembered.disturb(&mut calls);
    assert_eq!(calls.next, plain.next, "seed {seed}");
    (known_ones, all)
}

const PLAIN: [&str; 5] = ["main", "sort", "swap", "a", "b"];
const JUMPS: [&str; 6] = ["main", "sort", "setjmp", "longjmp", "a", "b"];
const TASKS: [&str; 7] = ["main", "handler", "vTaskSwitchContext", "port_switch", "task_a", "task_b", "wait"];

#[test]
fn what_is_remembered_is_what_following_does() {
    let (mut known, mut all) = (0, 0);
    for seed in 0..60 {
        for names in [&PLAIN[..], &JUMPS, &TASKS] {
            let found = check(seed, names, true);
            (known, all) = (known + found.0, all + found.1);
            check(seed, names, false);
        }
    }
    assert!(known * 10 > all, "{known} of {all}");
}

#[test]
fn chains_of_calls_that_were_never_seen_are_known_by_their_innermost_frames() {
    let mut calls = CallStack::new(pages());
    let mut remembered: Remembered<(), ()> = Remembered::by_frames();
    let (main, sort) = (page("main"), page("sort"));
    let recursion = [block(sort, sort + 4, call())];
    let elements = [block(main, main + 4, call())];
    elements.iter().for_each(|element| drop(calls.element(element, &mut crate::call_stack::Unobserved)));
    let mut learned = 0;
    for _ in 0..500 {
        if let Some(known) = remembered.find(&mut calls, (0, 1), |()| 0) {
            remembered.go(known, &mut calls);
            continue;
        }
        learned += 1;
        let learning = remembered.begin_learning(&mut calls, (0, 1));
        recursion.iter().for_each(|element| drop(calls.element(element, &mut crate::call_stack::Unobserved)));
        remembered.end_learning(&mut calls, learning, Some(((), true)), |()| 0);
    }
    assert_eq!(calls.depth(), 500);
    assert!(learned <= 3, "{learned}");
}
