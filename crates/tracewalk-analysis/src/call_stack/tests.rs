//! Hand-made traces, and the stack at each of their blocks.

use std::sync::Arc;

use tracewalk::directive::{BeginReason, Transaction};
use tracewalk::flow::{BranchKind, Contradiction, Ending};
use tracewalk::ids::{ContextId, Isa, Location, Privilege};

use super::*;
use crate::samples::{self, block, call, event, gap, interrupted, page, pages, returns, taken};
use tracewalk::ids::Exception;

fn indirect() -> Ending {
    Ending::Branch { kind: BranchKind::Indirect, taken: true, link: false, returns: None }
}

fn exception(preferred_return: u32) -> Element {
    samples::exception(Exception::M(15), Some(preferred_return), page("handler"))
}

/// The arrival at each block and the depth there, in a program without symbols.
fn depths(elements: &[Element]) -> Vec<(Arrival, usize)> {
    let mut calls = CallStack::new(Arc::new(Code::unknown()));
    let story = elements.iter();
    story.filter_map(|element| Some((calls.element(element, &mut Unobserved)?, calls.depth()))).collect()
}

/// The stack at each block, outermost first, in the program of pages. Exceptions are before their handlers'
/// functions.
fn stacks(elements: &[Element]) -> Vec<String> {
    let code = pages();
    let mut calls = CallStack::new(Arc::clone(&code));
    let mut found = Vec::new();
    for element in elements {
        if calls.element(element, &mut Unobserved).is_some() {
            let name = |frame: &Frame<()>| match frame.kind {
                FrameKind::Exception(Interruption { exception: Some(exception), .. }) => {
                    format!("[{exception}] {}", frame.function.name(&code))
                }
                _ => frame.function.name(&code),
            };
            found.push(calls.frames().map(name).collect::<Vec<_>>().join(" > "));
        }
    }
    found
}

/// A block of two instructions in a function of the program of pages.
fn at(name: &str, offset: u32, ending: Ending) -> Element {
    block(page(name) + offset, page(name) + offset + 4, ending)
}

#[test]
fn calls_go_deeper_and_returns_come_back() {
    let found = depths(&[
        block(0x100, 0x104, call()),
        block(0x200, 0x204, call()),
        block(0x300, 0x302, returns()),
        block(0x204, 0x206, returns()),
        block(0x104, 0x106, taken()),
    ]);
    let expected = [
        (Arrival::Unknown, 0),
        (Arrival::Call, 1),
        (Arrival::Call, 2),
        (Arrival::Return, 1),
        (Arrival::Return, 0),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_tail_call_returns_to_the_caller_of_its_caller() {
    let found = depths(&[
        block(0x100, 0x104, call()),
        block(0x200, 0x204, taken()),
        block(0x300, 0x302, returns()),
        block(0x104, 0x106, taken()),
    ]);
    assert_eq!(found[2..], [(Arrival::Jump, 1), (Arrival::Return, 0)]);
}

#[test]
fn a_return_through_several_calls_leaves_them_all() {
    let found = depths(&[
        block(0x100, 0x104, call()),
        block(0x200, 0x204, call()),
        block(0x300, 0x302, indirect()),
        block(0x104, 0x106, taken()),
    ]);
    assert_eq!(found[3], (Arrival::Return, 0));
}

#[test]
fn exceptions_nest_and_a_tail_chained_one_does_not() {
    let found = depths(&[
        block(0x100, 0x104, call()),
        block(0x200, 0x204, interrupted()),
        exception(0x204),
        block(0x800, 0x802, call()),
        block(0x900, 0x902, returns()),
        block(0x802, 0x804, returns()),
        event(EventKind::ExceptionReturn),
        exception(0x204),
        block(0xa00, 0xa02, returns()),
        event(EventKind::ExceptionReturn),
        block(0x204, 0x206, returns()),
        block(0x104, 0x106, taken()),
    ]);
    let expected = [
        (Arrival::Unknown, 0),
        (Arrival::Call, 1),
        (Arrival::Exception, 2),
        (Arrival::Call, 3),
        (Arrival::Return, 2),
        (Arrival::Exception, 2),
        (Arrival::ExceptionReturn, 1),
        (Arrival::Return, 0),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_tail_chained_exception_of_which_no_return_was_traced_ends_the_handler_before_it() {
    let tail_chained =
        EventKind::Exception { exception: Some(Exception::M(14)), preferred_return: None, handler: None };
    let found = depths(&[
        block(0x100, 0x104, interrupted()),
        exception(0x104),
        block(0x800, 0x802, interrupted()),
        event(tail_chained),
        block(0x900, 0x902, returns()),
        event(EventKind::ExceptionReturn),
        block(0x104, 0x106, taken()),
    ]);
    assert_eq!(found[3], (Arrival::ExceptionReturn, 0));
}

#[test]
fn an_exception_directly_after_a_call_is_inside_it() {
    let found = depths(&[
        block(0x100, 0x104, call()),
        exception(0x200),
        block(0x800, 0x802, returns()),
        event(EventKind::ExceptionReturn),
        block(0x200, 0x202, returns()),
        block(0x104, 0x106, taken()),
    ]);
    assert_eq!(found[1..], [(Arrival::Exception, 2), (Arrival::ExceptionReturn, 1), (Arrival::Return, 0),]);
}

#[test]
fn code_that_no_image_holds_may_return_to_its_caller() {
    let missing = gap(GapReason::NoCode(Location::new(Address::new(0x700), Isa::T32)));
    let found = depths(&[block(0x100, 0x104, call()), missing, block(0x104, 0x106, taken())]);
    assert_eq!(found[1], (Arrival::Return, 0));
    let found = depths(&[block(0x100, 0x104, call()), missing, block(0x400, 0x406, taken())]);
    assert_eq!(found[1], (Arrival::Unknown, 0));
}

#[test]
fn nothing_is_known_after_a_gap() {
    let found = depths(&[
        block(0x100, 0x104, call()),
        block(0x200, 0x204, taken()),
        event(EventKind::TraceOn(BeginReason::Overflow)),
        block(0x200, 0x204, returns()),
        block(0x104, 0x106, taken()),
    ]);
    assert_eq!(found[2..], [(Arrival::Unknown, 0), (Arrival::Return, 0)]);
}

#[test]
fn a_trace_that_starts_in_the_middle_of_a_function_knows_that_function_alone() {
    let found = stacks(&[at("sort", 0x20, call()), at("swap", 0, returns()), at("sort", 0x24, returns())]);
    assert_eq!(found, ["sort", "sort > swap", "sort"]);
}

#[test]
fn a_return_to_a_frame_that_was_never_called_leaves_only_what_it_returned_to() {
    let found = stacks(&[
        at("sort", 0x20, returns()),
        at("main", 0x40, call()),
        at("swap", 0, returns()),
        at("main", 0x44, returns()),
        at("outer", 0x10, taken()),
    ]);
    assert_eq!(found, ["sort", "main", "main > swap", "main", "outer"]);
}

#[test]
fn a_return_that_contradicts_the_calls_before_it_leaves_only_what_it_returned_to() {
    let found = stacks(&[
        at("main", 0, call()),
        at("sort", 0, call()),
        at("swap", 0, returns()),
        at("d", 8, taken()),
    ]);
    assert_eq!(found[3], "d");
}

#[test]
fn a_return_to_an_unseen_call_of_the_same_function_is_that_functions_other_call() {
    let found = stacks(&[
        at("sort", 0x20, returns()),
        at("sort", 0x40, call()),
        at("swap", 0, returns()),
        at("sort", 0x44, taken()),
    ]);
    assert_eq!(found, ["sort", "sort", "sort > swap", "sort"]);
}

#[test]
fn a_return_past_a_function_that_never_returned_leaves_it() {
    let found = stacks(&[
        at("main", 0, call()),
        at("sort", 0, call()),
        at("swap", 0, returns()),
        // Not where sort was called, but in main.
        at("main", 0x20, taken()),
    ]);
    assert_eq!(found[3], "main");
}

#[test]
fn longjmp_over_five_frames_leaves_them_all() {
    let mut story = vec![
        at("main", 0, call()),
        at("outer", 0, call()),
        at("setjmp", 0, returns()),
        at("outer", 4, call()),
        at("a", 0, call()),
        at("b", 0, call()),
        at("c", 0, call()),
        at("d", 0, call()),
        at("e", 0, call()),
        at("longjmp", 0, returns()),
        at("outer", 4, returns()),
        at("main", 4, taken()),
    ];
    let found = stacks(&story);
    assert_eq!(found[9], "main > outer > a > b > c > d > e > longjmp");
    assert_eq!(found[10..], ["main > outer", "main"]);
    // The same, by an indirect branch that does not look like a return.
    story[9] = at("longjmp", 0, indirect());
    assert_eq!(stacks(&story)[10..], ["main > outer", "main"]);
}

#[test]
fn longjmp_finds_the_call_that_set_it_among_calls_of_the_same_function() {
    let found = stacks(&[
        at("main", 0, call()),
        at("outer", 0, call()),
        at("setjmp", 0, returns()),
        at("outer", 4, call()),
        at("outer", 0x20, call()),
        at("outer", 0x30, call()),
        at("longjmp", 0, returns()),
        at("outer", 4, taken()),
    ]);
    assert_eq!(found[6..], ["main > outer > outer > outer > longjmp", "main > outer"]);
}

#[test]
fn a_landing_pad_in_a_function_further_out_leaves_what_it_had_called() {
    let found = stacks(&[
        at("main", 0, call()),
        at("outer", 0, call()),
        at("inner", 0, call()),
        at("a", 0, indirect()),
        at("outer", 0x40, returns()),
        at("main", 4, taken()),
    ]);
    assert_eq!(found[3..], ["main > outer > inner > a", "main > outer", "main"]);
}

#[test]
fn an_exception_inside_a_prologue_is_inside_the_function() {
    let found = stacks(&[
        at("main", 0, call()),
        block(page("sort"), page("sort") + 2, interrupted()),
        exception(page("sort") + 2),
        at("handler", 0, call()),
        at("swap", 0, returns()),
        at("handler", 4, returns()),
        event(EventKind::ExceptionReturn),
        at("sort", 2, returns()),
        at("main", 4, taken()),
    ]);
    let expected = [
        "main",
        "main > sort",
        "main > sort > [SysTick] handler",
        "main > sort > [SysTick] handler > swap",
        "main > sort > [SysTick] handler",
        "main > sort",
        "main",
    ];
    assert_eq!(found, expected);
}

/// The observer's calls.
#[derive(Default)]
struct Reports(Vec<String>);

impl Observer for Reports {
    type Mark = ();

    fn enter(&mut self, _: Option<&mut Frame<()>>, kind: FrameKind, function: FunctionId, entry: Entry) {
        let what = if kind.is_exception() { "exception" } else { "call" };
        self.0.push(format!("{what} {} {entry:?}", function.name(&pages())));
    }

    fn leave(&mut self, frame: &mut Frame<()>, _: Option<&mut Frame<()>>, how: Left) {
        self.0.push(format!("{} {how:?}", frame.function.name(&pages())));
    }
}

/// ETMv4 traces the vector address after the exception, and flow hands it on with the handler's first block.
#[test]
fn a_handler_whose_address_follows_the_exception_is_entered_once_under_its_name() {
    let taken = |preferred_return| {
        let preferred_return = Some(Address::from(preferred_return));
        event(EventKind::Exception { exception: Some(Exception::M(15)), preferred_return, handler: None })
    };
    let reports = |story: &[Element]| {
        let (mut calls, mut reports) = (CallStack::new(pages()), Reports::default());
        for element in story {
            calls.element(element, &mut reports);
        }
        calls.finish(&mut reports);
        reports.0
    };
    let handled = [
        at("main", 0, interrupted()),
        taken(page("main") + 4),
        at("handler", 0, returns()),
        event(EventKind::ExceptionReturn),
        at("main", 4, samples::taken()),
    ];
    let expected = ["call main Found", "exception handler Interrupting", "handler Returned", "main Lost"];
    assert_eq!(reports(&handled), expected);
    // Another exception comes before the handler's first instruction.
    let nested = [
        at("main", 0, interrupted()),
        taken(page("main") + 4),
        taken(page("handler")),
        at("inner", 0, returns()),
        event(EventKind::ExceptionReturn),
        at("handler", 0, returns()),
    ];
    let expected = [
        "call main Found",
        "exception handler Interrupting",
        "exception inner Interrupting",
        "inner Returned",
        "handler Lost",
        "main Lost",
    ];
    let found = reports(&nested);
    assert_eq!(found[..5], expected[..5], "{found:?}");
    // The trace ends, or is lost, before the handler's first instruction.
    for end in [Vec::new(), vec![gap(GapReason::TraceLost)]] {
        let found = reports(&[&handled[..2], &end[..]].concat());
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(found[1].starts_with("exception ") && found[2].ends_with(" Lost"), "{found:?}");
    }
}

#[test]
fn a_tail_chained_exception_takes_the_place_of_the_one_before_whether_its_return_is_traced_or_not() {
    let chained = samples::exception(Exception::M(14), None, page("inner"));
    for noted in [true, false] {
        let mut story =
            vec![at("main", 0, interrupted()), exception(page("main") + 4), at("handler", 0, returns())];
        story.extend(noted.then(|| event(EventKind::ExceptionReturn)));
        story.extend([
            chained,
            at("inner", 0, returns()),
            event(EventKind::ExceptionReturn),
            at("main", 4, taken()),
        ]);
        let found = stacks(&story);
        assert_eq!(found, ["main", "main > [SysTick] handler", "main > [PendSV] inner", "main"]);
    }
}

#[test]
fn a_gap_in_the_middle_loses_the_frames_until_a_return_finds_them_again() {
    for lost in [
        event(EventKind::TraceOn(BeginReason::Overflow)),
        gap(GapReason::TraceLost),
        gap(GapReason::AddressUnknown),
        gap(GapReason::Contradiction(Contradiction::NoBranchInReach(Location::new(
            Address::new(0),
            Isa::T32,
        )))),
    ] {
        let found = stacks(&[
            at("main", 0, call()),
            at("outer", 0, call()),
            at("inner", 0, call()),
            lost,
            at("swap", 0x20, returns()),
            at("inner", 4, returns()),
            at("outer", 4, returns()),
            at("main", 4, taken()),
        ]);
        let expected = [
            "main",
            "main > outer",
            "main > outer > inner",
            "swap",
            "main > outer > inner",
            "main > outer",
            "main",
        ];
        assert_eq!(found, expected);
    }
}

#[test]
fn a_gap_in_a_recursion_finds_again_only_the_frames_that_are_certain() {
    let found = stacks(&[
        at("main", 0, call()),
        at("sort", 0, call()),
        at("sort", 0, call()),
        at("sort", 0, call()),
        event(EventKind::TraceOn(BeginReason::Overflow)),
        at("sort", 8, returns()),
        at("sort", 4, returns()),
        at("main", 4, taken()),
    ]);
    // The trace does not show which of the three calls returned, but does show that `main` had called one of them.
    assert_eq!(found[4..], ["sort", "main > sort", "main"]);
}

#[test]
fn what_a_gap_lost_is_not_found_again_by_another_return() {
    let found = stacks(&[
        at("main", 0, call()),
        at("outer", 0, taken()),
        event(EventKind::TraceOn(BeginReason::Enabled)),
        at("inner", 0, returns()),
        at("d", 4, taken()),
    ]);
    assert_eq!(found[2..], ["inner", "d"]);
}

#[test]
fn an_exception_that_a_gap_began_in_returns_to_what_it_had_interrupted() {
    let found = stacks(&[
        at("main", 0, call()),
        at("sort", 0, interrupted()),
        exception(page("sort") + 4),
        at("handler", 0, taken()),
        gap(GapReason::TraceLost),
        at("handler", 0x20, returns()),
        event(EventKind::ExceptionReturn),
        at("sort", 4, returns()),
        at("main", 4, taken()),
    ]);
    assert_eq!(found[3..], ["handler", "main > sort", "main"]);
}

#[test]
fn code_that_no_image_holds_may_call_back() {
    let missing = |address| gap(GapReason::NoCode(Location::new(Address::from(address), Isa::T32)));
    let found = stacks(&[
        at("main", 0, call()),
        missing(0x8000),
        at("a", 0, call()),
        at("b", 0, returns()),
        at("a", 4, returns()),
        missing(0x8010),
        at("main", 4, taken()),
    ]);
    let expected = [
        "main",
        "main > 0x00008000 (in no image) > a",
        "main > 0x00008000 (in no image) > a > b",
        "main > 0x00008000 (in no image) > a",
        "main",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_call_of_the_next_instruction_is_no_call() {
    let found = stacks(&[at("main", 0, call()), at("main", 4, returns())]);
    assert_eq!(found, ["main", "main"]);
}

#[test]
fn a_function_that_code_falls_into_takes_over_the_frame() {
    let end = page("sort");
    let found =
        stacks(&[at("outer", 0, call()), block(end - 4, end + 4, returns()), at("outer", 4, taken())]);
    assert_eq!(found, ["outer", "outer > sort", "outer"]);
}

/// PendSV, taken after a request for another task at `yield`+4.
fn pend_sv() -> [Element; 3] {
    [
        samples::exception(Exception::M(14), Some(page("yield") + 4), page("handler")),
        at("handler", 0, returns()),
        event(EventKind::ExceptionReturn),
    ]
}

#[test]
fn tasks_that_wait_at_the_same_place_are_distinguished_by_where_they_return_to() {
    let story = [
        vec![at("main", 0, call()), at("task_a", 0, call()), at("yield", 0, interrupted())],
        pend_sv().to_vec(),
        vec![at("task_b", 0, call()), at("yield", 0, interrupted())],
        pend_sv().to_vec(),
        // Task a or b?
        vec![at("yield", 4, returns()), at("task_a", 4, call()), at("yield", 0, interrupted())],
        pend_sv().to_vec(),
        vec![
            at("yield", 4, returns()),
            at("task_b", 4, call()),
            at("c", 0, returns()),
            at("task_b", 8, taken()),
        ],
    ];
    let found = stacks(&story.concat());
    let expected = [
        "main",
        "main > task_a",
        "main > task_a > yield",
        "main > task_a > yield > [PendSV] handler",
        "task_b",
        "task_b > yield",
        "task_b > yield > [PendSV] handler",
        "yield",
        "main > task_a",
        "main > task_a > yield",
        "main > task_a > yield > [PendSV] handler",
        "yield",
        "task_b",
        "task_b > c",
        "task_b",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_task_that_was_taken_for_another_one_is_put_right_where_it_returns_elsewhere() {
    let story = [
        vec![at("task_a", 0, call()), at("yield", 0, interrupted())],
        pend_sv().to_vec(),
        // Task b, which was not seen before, although task a waits there.
        vec![at("yield", 4, returns()), at("task_b", 0x20, call()), at("yield", 0, interrupted())],
        pend_sv().to_vec(),
        vec![at("yield", 4, returns()), at("task_a", 4, taken())],
    ];
    let found = stacks(&story.concat());
    let expected = [
        "task_a",
        "task_a > yield",
        "task_a > yield > [PendSV] handler",
        "task_a > yield",
        "task_b",
        "task_b > yield",
        "task_b > yield > [PendSV] handler",
        "yield",
        "task_a",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_scheduler_in_any_exception_shows_a_change_of_task() {
    let found = stacks(&[
        at("task_a", 0, interrupted()),
        exception(page("task_a") + 4),
        at("handler", 0, call()),
        at("vTaskSwitchContext", 0, returns()),
        at("handler", 4, returns()),
        event(EventKind::ExceptionReturn),
        // In the same function: only the scheduler shows that this is another task.
        at("task_a", 0x20, interrupted()),
        exception(page("task_a") + 0x24),
        at("handler", 8, returns()),
        event(EventKind::ExceptionReturn),
        at("task_a", 4, taken()),
    ]);
    assert_eq!(found[4..], ["task_a", "task_a > [SysTick] handler", "task_a"]);
    let mut tasks = Vec::new();
    struct Tasks<'a>(&'a mut Vec<(Task, Evidence)>);
    impl Observer for Tasks<'_> {
        type Mark = ();
        fn enter(&mut self, _: Option<&mut Frame<()>>, _: FrameKind, _: FunctionId, _: Entry) {}
        fn switch(&mut self, _: Task, to: Task, evidence: Evidence) {
            self.0.push((to, evidence));
        }
    }
    let mut calls = CallStack::new(pages());
    for element in [
        at("task_a", 0, interrupted()),
        exception(page("task_a") + 4),
        at("handler", 0, call()),
        at("vTaskSwitchContext", 0, returns()),
        at("handler", 4, returns()),
        event(EventKind::ExceptionReturn),
        at("task_b", 0x20, interrupted()),
        exception(page("task_b") + 0x24),
        at("handler", 8, returns()),
        event(EventKind::ExceptionReturn),
        at("task_a", 4, taken()),
    ] {
        calls.element(&element, &mut Tasks(&mut tasks));
    }
    assert_eq!(tasks, [(Task::Number(2), Evidence::Scheduler), (Task::Number(1), Evidence::Resumed)]);
}

#[test]
fn a_function_that_switches_tasks_returns_in_another_one() {
    let found = stacks(&[
        at("task_a", 0, call()),
        at("wait", 0, call()),
        at("port_switch", 0, returns()),
        // Task b starts at an address of its own.
        at("task_b", 0x10, call()),
        at("wait", 0, call()),
        at("port_switch", 0, returns()),
        // Both tasks wait here.
        at("wait", 4, returns()),
        at("task_a", 4, taken()),
    ]);
    assert_eq!(found[3..], ["task_b", "task_b > wait", "task_b > wait > port_switch", "wait", "task_a"]);
}

fn context(id: u32) -> Element {
    let privilege = Privilege::default();
    event(EventKind::Context { context_id: Some(ContextId(id)), vmid: None, privilege })
}

#[test]
fn a_jump_into_another_task_leaves_the_frames_of_the_one_before() {
    let found = stacks(&[
        context(1),
        at("task_a", 0, call()),
        at("wait", 0, taken()),
        context(2),
        at("task_b", 0, taken()),
        context(1),
        at("wait", 4, returns()),
        at("task_a", 4, taken()),
    ]);
    assert_eq!(found, ["task_a", "task_a > wait", "task_b", "task_a > wait", "task_a"]);
}

#[test]
fn context_ids_distinguish_tasks() {
    let found = stacks(&[
        context(1),
        at("task_a", 0, call()),
        at("wait", 0, interrupted()),
        context(2),
        at("wait", 4, returns()),
        at("task_b", 4, call()),
        at("wait", 0, interrupted()),
        context(1),
        at("wait", 4, returns()),
        at("task_a", 4, taken()),
    ]);
    assert_eq!(
        found,
        ["task_a", "task_a > wait", "wait", "task_b", "task_b > wait", "task_a > wait", "task_a"]
    );
}

#[test]
fn a_handler_that_moves_the_return_address_stays_in_its_task() {
    let fault = samples::exception(Exception::Ar(9), Some(page("a")), page("handler"));
    let found = stacks(&[
        at("main", 0, call()),
        at("a", 0, interrupted()),
        fault,
        at("handler", 0, returns()),
        event(EventKind::ExceptionReturn),
        at("a", 4, returns()),
        at("main", 4, taken()),
    ]);
    assert_eq!(found[3..], ["main > a", "main"]);
}

#[test]
fn recursion_without_end_keeps_the_innermost_frames() {
    let mut calls = CallStack::new(pages());
    for _ in 0..2 * DEEPEST {
        calls.element(&at("sort", 0, call()), &mut Unobserved);
    }
    assert_eq!(calls.frames().count(), DEEPEST);
    calls.element(&at("sort", 0x20, returns()), &mut Unobserved);
    calls.element(&at("sort", 4, taken()), &mut Unobserved);
    assert_eq!(calls.frames().count(), DEEPEST - 1);
}

fn transaction(transaction: Transaction) -> Element {
    event(EventKind::Transaction(transaction))
}

#[test]
fn a_transaction_that_fails_goes_back_to_the_frames_at_its_start() {
    let failed = |inside: &[Element]| {
        let before = [at("main", 0, call()), at("sort", 0, call()), at("swap", 0, interrupted())];
        let after = [at("swap", 4, returns()), at("sort", 4, returns()), at("main", 4, taken())];
        let (starts, fails) = (transaction(Transaction::Started), transaction(Transaction::Failed));
        let all = [&before[..], &[starts], inside, &[fails], &after].concat();
        stacks(&all).split_off(before.len() + inside.len())
    };
    let expected = ["main > sort > swap", "main > sort", "main"];
    assert_eq!(failed(&[]), expected);
    // Functions that were entered are left.
    assert_eq!(failed(&[at("swap", 4, call()), at("a", 0, call()), at("b", 0, taken())]), expected);
    // Functions that were left run again, even if another one was called since.
    let out = [at("swap", 4, returns()), at("sort", 4, returns()), at("main", 4, call())];
    assert_eq!(failed(&out), expected);
    assert_eq!(failed(&[&out[..], &[at("a", 0, taken())]].concat()), expected);
}

#[test]
fn a_transaction_that_fails_loses_the_frames_if_those_at_its_start_are_not_known() {
    let begun = |begin: &[Element]| {
        let before = [at("main", 0, call()), at("sort", 0, interrupted())];
        let after = [at("sort", 4, call()), at("swap", 0, taken())];
        let failed = transaction(Transaction::Failed);
        let all = [&before[..], begin, &after, &[failed, at("sort", 8, taken())]].concat();
        stacks(&all).pop().unwrap_or_default()
    };
    let (started, committed) = (transaction(Transaction::Started), transaction(Transaction::Committed));
    assert_eq!(begun(&[started]), "main > sort");
    assert_eq!(begun(&[]), "sort");
    assert_eq!(begun(&[started, committed]), "sort");
    assert_eq!(begun(&[started, gap(GapReason::TraceLost)]), "sort");
    assert_eq!(begun(&[event(EventKind::TraceOn(BeginReason::Enabled)), started]), "sort");
    // What a filter leaves out does not end the transaction.
    assert_eq!(begun(&[started, event(EventKind::TraceOn(BeginReason::Enabled))]), "main > sort");
}

#[test]
fn a_checkpoint_in_a_transaction_holds_the_frames_at_its_start() {
    let before = [at("main", 0, call()), at("sort", 0, interrupted()), transaction(Transaction::Started)];
    let after = [at("sort", 4, returns()), transaction(Transaction::Failed), at("sort", 4, taken())];
    let mut calls = CallStack::new(pages());
    for element in &before {
        let _ = calls.element(element, &mut Unobserved);
    }
    let checkpoint = calls.checkpoint();
    let mut again = CallStack::<()>::new(pages());
    again.go_on_from(&checkpoint);
    for element in &after {
        let _ = again.element(element, &mut Unobserved);
    }
    assert_eq!((again.depth(), checkpoint.size()), (1, 4));
}
