use std::sync::Arc;

use tracewalk::flow::{Element, EventKind};
use tracewalk::span::CaptureOffset;

use super::*;
use crate::Section;
use crate::record::FlowRecord;
use crate::samples::{call, event, interrupted, irq, page, pages, returns, taken, within as at};
use crate::sink::Sink;

/// The tasks of these elements, after the first instructions of the function `main`.
fn found(elements: &[Element]) -> Tasks {
    let mut tasking = Tasking::default();
    tasking.section(&Section { id: None, protocol: "etmv3", number: 1, code: Arc::clone(&pages()) }).unwrap();
    for element in elements {
        tasking.record(FlowRecord { element: *element, at: CaptureOffset(0) }).unwrap();
    }
    tasking.finish()
}

/// Two instructions of a function.
fn two(name: &str, offset: u32) -> Element {
    at(name, offset, offset + 4, interrupted())
}

/// PendSV, taken at this place.
fn pend_sv(name: &str, offset: u32) -> [Element; 3] {
    [
        irq(14, Some(page(name) + offset), "inner"),
        at("inner", 0, 4, returns()),
        event(EventKind::ExceptionReturn),
    ]
}

/// Each switch's place, numbers of tasks, and reason.
fn switches(tasks: &Tasks) -> Vec<(u64, u32, u32, Reason)> {
    let number = |task: Option<Task>| match task {
        Some(Task::Number(number)) => number,
        _ => 0,
    };
    let switches = tasks.switches.iter();
    switches.map(|switch| (switch.at, number(switch.from), number(switch.to), switch.reason)).collect()
}

/// Each task's entry, instructions, runs and longest run.
fn rows(tasks: &Tasks) -> Vec<(String, u64, u64, u64)> {
    let of = |row: &TaskRow| {
        let entry = row.entry.map(|entry| entry.name(&pages())).unwrap_or_default();
        (entry, row.cost.instructions, row.runs, row.longest.cost.instructions)
    };
    tasks.rows.iter().map(of).collect()
}

#[test]
fn a_task_that_an_interrupt_wakes_preempts_and_one_that_gives_way_yields() {
    let tick = Some(Exception::M(15));
    let tasks = found(
        &[
            vec![two("main", 0)],
            pend_sv("main", 4).to_vec(),
            vec![
                two("task_a", 0),
                irq(15, Some(page("task_a") + 4), "handler"),
                at("handler", 0, 6, returns()),
            ],
            pend_sv("task_a", 4).to_vec(),
            vec![two("task_b", 0), two("task_b", 4)],
            pend_sv("task_b", 8).to_vec(),
            vec![two("task_a", 4)],
        ]
        .concat(),
    );
    let expected = [(4, 1, 2, Reason::Start), (11, 2, 3, Reason::Exception(tick)), (17, 3, 2, Reason::Yield)];
    assert_eq!(switches(&tasks), expected);
    let expected = [("main", 2, 1, 2), ("task_a", 4, 2, 2), ("task_b", 4, 1, 4)];
    assert_eq!(
        rows(&tasks),
        expected.map(|(name, all, runs, longest)| (name.to_owned(), all, runs, longest))
    );
    let [_, a, b] = &*tasks.rows else { panic!("{tasks:?}") };
    assert_eq!(a.preempted_by, Some((b.task, 1)));
    let run = Run { at: 6, cost: Cost { instructions: 5, ..Cost::default() } };
    assert_eq!(b.response, Some(Response { exception: tick, run }));
    assert_eq!(tasks.handlers.instructions, 9);
}

#[test]
fn a_pend_sv_that_picks_the_same_task_is_no_switch() {
    let tasks = found(&[&[two("task_a", 8)], &pend_sv("task_a", 12)[..], &[two("task_a", 12)]].concat());
    assert_eq!(switches(&tasks), []);
    assert_eq!(rows(&tasks), [("task_a".to_owned(), 4, 1, 4)]);
}

#[test]
fn two_tasks_of_one_function_are_two() {
    let tasks = found(
        &[
            vec![two("main", 0)],
            pend_sv("main", 4).to_vec(),
            vec![two("task_a", 0)],
            pend_sv("task_a", 4).to_vec(),
            vec![two("task_a", 0)],
        ]
        .concat(),
    );
    assert_eq!(switches(&tasks).len(), 2);
    assert_eq!(tasks.rows.iter().map(|row| row.number).collect::<Vec<_>>(), [1, 1, 2]);
}

#[test]
fn a_task_that_is_preempted_while_it_is_unresolved_is_named_once_it_returns() {
    let yielded = pend_sv("yield", 4);
    let tasks = found(
        &[
            vec![two("main", 0)],
            pend_sv("main", 4).to_vec(),
            vec![at("task_a", 0, 4, call()), two("yield", 0)],
            yielded.to_vec(),
            vec![at("task_b", 0, 4, call()), two("yield", 0)],
            yielded.to_vec(),
            // Task a or b? It does not return before main preempts it.
            vec![two("yield", 4)],
            pend_sv("yield", 8).to_vec(),
            vec![two("main", 4)],
            pend_sv("main", 8).to_vec(),
            vec![at("yield", 8, 12, returns()), at("task_a", 4, 8, taken())],
        ]
        .concat(),
    );
    let tasks_of = |(_, from, to, _)| (from, to);
    let found = switches(&tasks).into_iter().map(tasks_of).collect::<Vec<_>>();
    assert_eq!(found, [(1, 2), (2, 3), (3, 2), (2, 1), (1, 2)]);
    assert_eq!(tasks.unresolved, Cost::default());
}

#[test]
fn a_task_that_stays_unresolved_has_no_row() {
    let yielded = pend_sv("yield", 4);
    let tasks = found(
        &[
            vec![two("main", 0)],
            pend_sv("main", 4).to_vec(),
            vec![at("task_a", 0, 4, call()), two("yield", 0)],
            yielded.to_vec(),
            vec![at("task_a", 0, 4, call()), two("yield", 0)],
            yielded.to_vec(),
            vec![two("yield", 4)],
        ]
        .concat(),
    );
    assert_eq!(switches(&tasks).last().map(|(_, from, to, _)| (*from, *to)), Some((3, 0)));
    assert_eq!((tasks.rows.len(), tasks.unresolved.instructions), (3, 2));
}

#[test]
fn the_first_task_of_a_later_part_is_unknown_until_it_goes_on() {
    let start = [&[two("task_a", 8)], &pend_sv("task_a", 12)[..], &[two("task_b", 8)]].concat();
    let from_to = |tasks: &Tasks| {
        let found = switches(tasks).into_iter();
        found.map(|(_, from, to, reason)| (from, to, reason)).collect::<Vec<_>>()
    };
    assert_eq!(from_to(&found(&start)), [(0, 2, Reason::Yield)]);
    let whole = [&start, &pend_sv("task_b", 12)[..], &[two("task_a", 12)]].concat();
    assert_eq!(from_to(&found(&whole)), [(1, 2, Reason::Yield), (2, 1, Reason::Yield)]);
}

#[test]
fn a_task_from_before_the_trace_is_the_same_after_it_returns_from_what_it_was_found_in() {
    let tasks = found(
        &[
            vec![two("sort", 8)],
            pend_sv("sort", 12).to_vec(),
            vec![two("task_b", 8)],
            pend_sv("task_b", 12).to_vec(),
            vec![at("sort", 12, 16, returns()), two("task_a", 8)],
        ]
        .concat(),
    );
    assert_eq!(rows(&tasks), [("task_a".to_owned(), 6, 2, 4), ("task_b".to_owned(), 2, 1, 2)]);
}

/// A stretch of a task by its call stack, between two stack pointers.
fn stretch(task: Task, resumed: Option<u64>, left: Option<u64>) -> Stretch {
    let (run, since) = (Run::default(), Cost::default());
    Stretch { task, run, cause: None, since, ends: Ends { resumed, left }, block: None, begins: false }
}

#[test]
fn a_task_goes_on_where_its_stack_was_when_it_stopped() {
    let [a, b, unresolved] = [Task::Number(1), Task::Number(2), Task::Unresolved];
    let stretches = [
        stretch(a, None, Some(0x100)),
        stretch(b, Some(0x200), Some(0x210)),
        stretch(unresolved, Some(0x100), Some(0x110)),
        stretch(unresolved, Some(0x210), Some(0x220)),
        // The call stack takes a new task for one that waits.
        stretch(a, Some(0x300), Some(0x310)),
        stretch(unresolved, Some(0x110), None),
        // Its stack is not known from here on.
        stretch(unresolved, None, None),
        stretch(b, None, None),
    ];
    let mut names = stacks::Names::of(&stretches);
    let named = stretches.iter().map(|stretch| names.next(stretch)).collect::<Vec<_>>();
    assert_eq!(named, [a, b, a, b, Task::Number(3), a, unresolved, b]);
}
