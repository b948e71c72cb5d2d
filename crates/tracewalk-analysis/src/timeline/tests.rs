use std::sync::Arc;

use super::*;
use crate::Position;
use crate::call_stack::Task;
use crate::clock::Unit;
use crate::samples::{
    block, call, event, exception, gap, interrupted, irq, nested_interrupts, page, pages, returns,
    tail_chained_interrupts, taken, within as at,
};
use tracewalk::directive::{BeginReason, Instrumentation, Transaction};
use tracewalk::ids::{Address, ContextId, Exception, ExceptionLevel, Isa, Location, Privilege};
use tracewalk::program::Scope;
use tracewalk::protocol::itm::{ExceptionAction, Packet};

const INSTRUCTIONS: Scale = Scale { unit: Unit::Instructions, counts_cycles: false, frequency: None };
const CYCLES: Scale = Scale { unit: Unit::Cycles, counts_cycles: true, frequency: None };

/// A line for each item: when, where, and what.
fn lines_on(scale: &Scale, window: &Window, elements: &[Element]) -> Vec<String> {
    let code = pages();
    let mut timeline = Timeline::new(Arc::clone(&code), scale, window);
    let mut lines = Vec::new();
    let mut sink = |item: Item| {
        let Item { at, change } = item;
        let what = match change {
            Change::Begin(Span { track, what, start, .. }) => {
                let name = match what {
                    What::Function { function, .. } => function.name(&code),
                    What::Exception(it) => format!("exception {}", it.exception.map_or(0, Exception::number)),
                    What::Task(task) => task.to_string(),
                    What::Gap(why) => why.to_string(),
                };
                format!("{track:?} + {name} {start:?}")
            }
            Change::End { track, finish, .. } => format!("{track:?} - {finish:?}"),
            Change::Mark { track, mark } => format!("{track:?} {mark:?}"),
        };
        lines.push(format!("{} {what}", at.ticks));
    };
    for element in elements {
        timeline.element(element, CaptureOffset(0), &mut sink);
    }
    timeline.finish(&mut sink);
    lines
}

fn lines(elements: &[Element]) -> Vec<String> {
    let mut lines = lines_on(&INSTRUCTIONS, &Window::default(), elements);
    lines.retain(|line| !line.contains("Running"));
    lines
}

#[test]
fn nested_interrupts_have_tracks_of_their_own_and_do_not_end_what_they_interrupt() {
    let found = lines(&nested_interrupts());
    let expected = [
        "0 Task(Number(1)) + main Earlier",
        "2 Exception(Some(M(15))) + exception 15 Here",
        "2 Exception(Some(M(15))) + handler Here",
        "3 Exception(Some(M(16))) + exception 16 Here",
        "3 Exception(Some(M(16))) + a Here",
        "5 Exception(Some(M(16))) - Returned",
        "5 Exception(Some(M(16))) - Returned",
        "6 Exception(Some(M(15))) - Returned",
        "6 Exception(Some(M(15))) - Returned",
        "7 Task(Number(1)) - Lost",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_tail_chained_interrupt_begins_where_the_one_before_ends() {
    let found = lines(&tail_chained_interrupts());
    assert_eq!(
        found[3..7],
        [
            "4 Exception(Some(M(15))) - Returned",
            "4 Exception(Some(M(15))) - Returned",
            "4 Exception(Some(M(14))) + exception 14 Here",
            "4 Exception(Some(M(14))) + a Here",
        ]
    );
}

#[test]
fn a_tail_call_in_a_handler_does_not_end_the_exception() {
    let found = lines(&[
        at("main", 0x10, 0x14, interrupted()),
        irq(15, Some(page("main") + 0x14), "handler"),
        at("handler", 0, 2, taken()),
        at("a", 0, 2, returns()),
        event(EventKind::ExceptionReturn),
    ]);
    assert_eq!(
        found[2..],
        [
            "2 Exception(Some(M(15))) + handler Here",
            "3 Exception(Some(M(15))) - Replaced",
            "3 Exception(Some(M(15))) + a Here",
            "4 Exception(Some(M(15))) - Returned",
            "4 Exception(Some(M(15))) - Returned",
            "4 Task(Number(1)) - Lost",
        ]
    );
}

#[test]
fn a_gap_is_a_span_up_to_where_execution_is_known_again() {
    let found = lines(&[
        event(EventKind::TraceOn(BeginReason::Synchronised)),
        at("main", 0x10, 0x14, call()),
        at("sort", 0, 4, taken()),
        gap(GapReason::TraceLost),
        event(EventKind::TraceOn(BeginReason::Overflow)),
        at("swap", 4, 8, taken()),
    ]);
    let expected = [
        "0 Task(Number(1)) + main Earlier",
        "2 Task(Number(1)) + sort Here",
        "4 Task(Number(1)) - Lost",
        "4 Task(Number(1)) - Lost",
        "4 Gaps + trace was malformed or lost Here",
        "4 Task(Number(1)) + swap Earlier",
        "4 Gaps - Returned",
        "6 Task(Number(1)) - Lost",
    ];
    assert_eq!(found, expected);
}

#[test]
fn cycles_pass_in_blocks_in_cancelled_instructions_and_where_tracing_was_off() {
    let found = lines_on(
        &CYCLES,
        &Window::default(),
        &[
            event(EventKind::Cycles(10)),
            at("main", 0x10, 0x14, interrupted()),
            event(EventKind::Cycles(5)),
            irq(15, Some(page("main") + 0x14), "handler"),
            event(EventKind::Cycles(3)),
            at("handler", 0, 4, returns()),
            event(EventKind::ExceptionReturn),
            event(EventKind::Cycles(1)),
            at("main", 0x14, 0x18, taken()),
            event(EventKind::Cycles(100)),
            event(EventKind::TraceOn(BeginReason::Enabled)),
            event(EventKind::Cycles(1)),
            at("main", 0x14, 0x18, taken()),
        ],
    );
    let exceptions = found.iter().filter(|line| line.contains("exception 15") || line.contains("Gaps"));
    let expected = [
        "15 Exception(Some(M(15))) + exception 15 Here",
        "19 Gaps + not traced: tracing was off Here",
        "119 Gaps - Returned",
    ];
    assert!(exceptions.eq(expected.iter()), "{found:#?}");
}

fn context(id: u32) -> Element {
    let privilege = Privilege::default();
    event(EventKind::Context { context_id: Some(ContextId(id)), vmid: None, privilege })
}

#[test]
fn exceptions_of_a_task_that_does_not_run_are_cut_and_go_on_with_it() {
    let found = lines(&[
        context(1),
        at("task_a", 0, 2, interrupted()),
        irq(11, Some(page("task_a") + 2), "handler"),
        at("handler", 0, 2, taken()),
        context(2),
        at("handler", 2, 4, returns()),
        event(EventKind::ExceptionReturn),
        at("task_b", 0x10, 0x12, interrupted()),
        irq(11, Some(page("task_b") + 0x12), "handler"),
        at("handler", 0, 2, taken()),
        context(1),
        at("handler", 2, 4, returns()),
        event(EventKind::ExceptionReturn),
        at("task_a", 2, 4, taken()),
    ]);
    let svc = found.iter().filter(|line| line.contains("M(11)")).collect::<Vec<_>>();
    let expected = [
        "1 Exception(Some(M(11))) + exception 11 Here",
        "1 Exception(Some(M(11))) + handler Here",
        "2 Exception(Some(M(11))) - Suspended",
        "2 Exception(Some(M(11))) - Suspended",
        "4 Exception(Some(M(11))) + exception 11 Here",
        "4 Exception(Some(M(11))) + handler Here",
        "5 Exception(Some(M(11))) - Suspended",
        "5 Exception(Some(M(11))) - Suspended",
        "5 Exception(Some(M(11))) + exception 11 Resumed",
        "5 Exception(Some(M(11))) + handler Resumed",
        "6 Exception(Some(M(11))) - Returned",
        "6 Exception(Some(M(11))) - Returned",
    ];
    assert_eq!(svc, expected);
    let task = Track::Task(Task::Context(Scope::context(ContextId(2))));
    assert!(found.contains(&format!("3 {task:?} + task_b Earlier")), "{found:#?}");
}

#[test]
fn a_window_cuts_the_spans_that_reach_over_its_ends() {
    let elements = [
        at("main", 0x10, 0x14, call()),
        at("sort", 0, 4, call()),
        at("swap", 0, 4, returns()),
        at("sort", 4, 8, returns()),
        at("main", 0x14, 0x18, taken()),
    ];
    let window =
        Window { from: Some(Position::Instructions(4).into()), to: Some(Position::Instructions(6).into()) };
    let found = lines_on(&INSTRUCTIONS, &window, &elements);
    let expected = [
        "4 Task(Number(1)) + main Clipped",
        "4 Running + task 1 Clipped",
        "4 Task(Number(1)) + sort Clipped",
        "4 Task(Number(1)) + swap Here",
        "6 Task(Number(1)) - Clipped",
        "6 Task(Number(1)) - Clipped",
        "6 Running - Clipped",
        "6 Task(Number(1)) - Clipped",
    ];
    assert_eq!(found, expected);
}

#[test]
fn triggers_and_texts_are_marks() {
    let mut timeline = Timeline::new(pages(), &INSTRUCTIONS, &Window::default());
    let mut marks = Vec::new();
    let mut sink = |item: Item| {
        if let Change::Mark { mark, .. } = item.change {
            marks.push((item.at.ticks, mark));
        }
    };
    // The trace unit was still off.
    let entered = |number| ItmEvent::Packet(Packet::Exception { number, action: ExceptionAction::Entered });
    timeline.itm(&entered(15), &mut sink);
    timeline.element(&at("main", 0x10, 0x14, taken()), CaptureOffset(0), &mut sink);
    timeline.element(&event(EventKind::Trigger), CaptureOffset(0), &mut sink);
    timeline.itm(&ItmEvent::Text { port: 0, bytes: b"hello".to_vec() }, &mut sink);
    timeline.itm(&entered(0), &mut sink);
    // The trace unit's events do not show which functions run.
    let written = Instrumentation { level: ExceptionLevel::El0, value: u64::MAX };
    timeline.element(&event(EventKind::Events(0b101)), CaptureOffset(0), &mut sink);
    timeline.element(&event(EventKind::Instrumentation(written)), CaptureOffset(0), &mut sink);
    timeline.element(&event(EventKind::Transaction(Transaction::Started)), CaptureOffset(0), &mut sink);
    let reported = |exception| Mark::Exception(exception, ExceptionAction::Entered);
    assert_eq!(
        marks,
        [
            (0, reported(Some(Exception::M(15)))),
            (2, Mark::Trigger),
            (2, Mark::Text("hello".to_owned())),
            (2, reported(None)),
            (2, Mark::Events(0b101)),
            (2, Mark::Instrumentation(written)),
            (2, Mark::Transaction(Transaction::Started)),
        ]
    );
}

/// For any trace, only the innermost span of a track ends, and time does not go back.
#[test]
fn spans_enclose_each_other_whatever_happens() {
    let mut seed = 1_u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut elements = Vec::new();
    for _ in 0..20_000 {
        let start = u32::try_from(0x100 * (1 + random(19)) + 2 * random(8)).unwrap();
        let place = u32::try_from(0x100 * (1 + random(19)) + 2 * random(8)).unwrap();
        let ending = [call(), returns(), taken(), interrupted()][usize::try_from(random(4)).unwrap()];
        elements.push(match random(12) {
            0 => exception(Exception::M(11 + u16::try_from(random(6)).unwrap()), Some(place), start),
            1 => event(EventKind::ExceptionReturn),
            2 => event(EventKind::Context {
                context_id: Some(ContextId(u32::try_from(random(3)).unwrap())),
                vmid: None,
                privilege: Privilege::default(),
            }),
            3 if random(4) == 0 => gap(GapReason::TraceLost),
            4 if random(4) == 0 => gap(GapReason::NoCode(Location::new(Address::new(0x9000), Isa::T32))),
            5 => event(EventKind::Timestamp(random(1 << 20))),
            6 => event(EventKind::Cycles(random(100))),
            _ => block(start, start + 4, ending),
        });
    }
    let by_time = Scale { unit: Unit::Time, counts_cycles: true, frequency: None };
    for scale in [INSTRUCTIONS, CYCLES, by_time] {
        let mut timeline = Timeline::new(pages(), &scale, &Window::default());
        let (mut open, mut last, mut items) = (std::collections::HashMap::<Track, Vec<SpanId>>::new(), 0, 0);
        let mut sink = |item: Item| {
            assert!(item.at.ticks >= last);
            (last, items) = (item.at.ticks, items + 1);
            match item.change {
                Change::Begin(span) => open.entry(span.track).or_default().push(span.id),
                Change::End { id, track, .. } => assert_eq!(open.get_mut(&track).unwrap().pop(), Some(id)),
                Change::Mark { .. } => {}
            }
        };
        for element in &elements {
            timeline.element(element, CaptureOffset(0), &mut sink);
        }
        timeline.finish(&mut sink);
        assert!(items > 10_000 && open.values().all(Vec::is_empty), "{items} items");
    }
}

#[test]
fn a_task_that_sleeps_when_a_window_begins_has_spans_from_where_it_runs() {
    let elements = [
        context(1),
        at("task_a", 0, 2, taken()),
        context(2),
        at("task_b", 0, 2, taken()),
        at("task_b", 2, 4, taken()),
        context(1),
        at("task_a", 2, 4, taken()),
    ];
    let window = Window { from: Some(Position::Instructions(2).into()), to: None };
    let begun =
        lines_on(&INSTRUCTIONS, &window, &elements).into_iter().filter(|line| line.contains(" + task_"));
    let [a, b] = [1, 2].map(|id| Track::Task(Task::Context(Scope::context(ContextId(id)))));
    assert_eq!(
        begun.collect::<Vec<_>>(),
        [format!("2 {b:?} + task_b Clipped"), format!("3 {a:?} + task_a Clipped")]
    );
}
