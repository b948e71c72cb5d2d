//! Profiles of hand-made traces.

use std::collections::BTreeMap;

use tracewalk::directive::BeginReason;
use tracewalk::flow::{Element, Event, EventKind, GapReason};
use tracewalk::ids::{ContextId, Privilege, Vmid};
use tracewalk::span::{CaptureOffset, Span, StreamOffset};

use super::*;
use crate::samples::{block, call, event, exception, gap, interrupted, page, pages, returns, taken};
use crate::{Position, Window};

/// A block of a number of instructions in a function of the program of pages.
fn at(name: &str, offset: u32, instructions: u32, ending: tracewalk::flow::Ending) -> Element {
    let start = page(name) + offset;
    block(start, start + 2 * instructions, ending)
}

fn cycles(count: u64) -> Element {
    Element::Event(Event { kind: EventKind::Cycles(count), span: Span::new(StreamOffset(1000 + count), 1) })
}

fn time(ticks: u64) -> Element {
    event(EventKind::Timestamp(ticks))
}

fn record(window: &Window, story: &[Element]) -> Profile {
    let mut profiler = Profiler::new(pages(), window);
    for (index, element) in (0..).zip(story) {
        profiler.element(element, CaptureOffset(index));
    }
    profiler.finish()
}

fn profile(story: &[Element]) -> Profile {
    record(&Window::default(), story)
}

/// Traces that make sense or not, for [`recorded`].
pub(super) fn stories() -> impl proptest::strategy::Strategy<Value = Vec<u8>> {
    proptest::collection::vec(proptest::prelude::any::<u8>(), 0..60)
}

/// The profile of a trace made from these bytes: calls, returns, exceptions, cycles, timestamps, tasks and gaps.
pub(super) fn recorded(story: &[u8]) -> Profile {
    let names = ["main", "sort", "swap", "handler", "setjmp", "yield", "task_a", "port_switch"];
    let mut ticks = 0;
    let elements = story.iter().map(|byte| {
        let name = names[usize::from(byte & 7)];
        match byte >> 3 {
            0..8 => at(name, 2 * u32::from(byte >> 3), 3, call()),
            8..14 => at(name, 0x10, 2, returns()),
            14..18 => at(name, 0, 5, taken()),
            18..21 => exception(Exception::M(u16::from(byte >> 3)), Some(page(name) + 6), page("handler")),
            21..23 => event(EventKind::ExceptionReturn),
            23..26 => cycles(u64::from(*byte)),
            26..28 => {
                ticks += u64::from(*byte);
                time(ticks)
            }
            28..30 => event(EventKind::Context {
                context_id: Some(ContextId(u32::from(byte & 7))),
                vmid: None,
                privilege: Privilege::default(),
            }),
            30 => gap(GapReason::TraceLost),
            _ => event(EventKind::TraceOn(BeginReason::Enabled)),
        }
    });
    profile(&elements.collect::<Vec<_>>())
}

fn tree(profile: &Profile) -> Tree {
    Tree::of(profile, &pages(), TreeOptions { inlined: true, sites: false })
}

/// Each chain of calls and its own cost.
fn chains(profile: &Profile, unit: Unit) -> BTreeMap<String, u64> {
    let tree = tree(profile);
    let mut chains = BTreeMap::new();
    tree.stacks(|path, node| {
        let names = path.iter().map(|index| tree.label_of(&tree.nodes[*index]).text());
        let cost = node.own.in_unit(unit);
        if cost > 0 {
            *chains.entry(names.collect::<Vec<_>>().join(" > ")).or_default() += cost;
        }
    });
    chains
}

fn expected(chains: &[(&str, u64)]) -> BTreeMap<String, u64> {
    chains.iter().map(|(chain, cost)| ((*chain).to_owned(), *cost)).collect()
}

/// Calls, own and total instructions of each function.
fn functions(profile: &Profile) -> BTreeMap<String, [u64; 3]> {
    let tree = tree(profile);
    let functions = tree.functions(|cost| cost.instructions).into_iter().map(|function| {
        let costs = [function.calls, function.own.instructions, function.total.instructions];
        (tree.labels[function.function.index()].text(), costs)
    });
    functions.collect()
}

/// main calls sort, which calls itself twice, and swap in the innermost call.
fn recursion() -> Vec<Element> {
    vec![
        at("main", 0, 3, call()),
        at("sort", 0, 2, call()),
        at("sort", 0, 2, call()),
        at("sort", 0, 2, call()),
        at("swap", 0, 5, returns()),
        at("sort", 4, 1, returns()),
        at("sort", 4, 1, returns()),
        at("sort", 4, 1, returns()),
        at("main", 6, 4, taken()),
    ]
}

#[test]
fn each_chain_of_calls_has_its_own_cost() {
    let found = chains(&profile(&recursion()), Unit::Instructions);
    let chains = expected(&[
        ("main", 7),
        ("main > sort", 3),
        ("main > sort > sort", 3),
        ("main > sort > sort > sort", 3),
        ("main > sort > sort > sort > swap", 5),
    ]);
    assert_eq!(found, chains);
}

#[test]
fn what_a_recursion_costs_is_in_a_functions_total_once() {
    let profile = profile(&recursion());
    let found = functions(&profile);
    assert_eq!(found["sort"], [3, 9, 14]);
    assert_eq!(found["swap"], [1, 5, 5]);
    assert_eq!(found["main"], [0, 7, 21]);
    let tree = tree(&profile);
    let edges = tree.edges(|cost| cost.instructions).into_iter().map(|edge| {
        let name = |label: LabelId| tree.labels[label.index()].text();
        (format!("{} > {}", name(edge.caller), name(edge.callee)), (edge.calls, edge.total.instructions))
    });
    let edges = edges.collect::<BTreeMap<_, _>>();
    // The inner of the two calls of sort by sort is a part of the outer one.
    assert_eq!(edges["sort > sort"], (2, 11));
    assert_eq!((edges["main > sort"], edges["sort > swap"]), ((1, 14), (1, 5)));
}

#[test]
fn recursion_through_another_function_is_in_each_ones_total_once() {
    let found = functions(&profile(&[
        at("main", 0, 1, call()),
        at("a", 0, 1, call()),
        at("b", 0, 1, call()),
        at("a", 0, 1, call()),
        at("b", 0, 1, returns()),
        at("a", 2, 1, returns()),
        at("b", 2, 1, returns()),
        at("a", 2, 1, returns()),
        at("main", 2, 1, taken()),
    ]));
    assert_eq!((found["a"], found["b"], found["main"]), ([2, 4, 7], [2, 3, 5], [0, 2, 9]));
}

#[test]
fn an_interrupt_is_nobodys_doing_and_a_supervisor_call_its_callers() {
    let story = |number| {
        profile(&[
            at("main", 0, 2, interrupted()),
            exception(Exception::M(number), Some(page("main") + 4), page("handler")),
            at("handler", 0, 3, returns()),
            event(EventKind::ExceptionReturn),
            at("main", 4, 2, taken()),
        ])
    };
    let interrupt = chains(&story(15), Unit::Instructions);
    assert_eq!(interrupt, expected(&[("main", 4), ("[SysTick] > handler", 3)]));
    let supervisor = chains(&story(11), Unit::Instructions);
    assert_eq!(supervisor, expected(&[("main", 4), ("main > [SVCall] > handler", 3)]));
    assert_eq!(functions(&story(15))["main"], [0, 4, 4]);
    assert_eq!(functions(&story(11))["main"], [0, 4, 7]);
}

#[test]
fn cycles_are_spent_on_the_block_after_them_and_on_cancelled_instructions() {
    let found = profile(&[
        cycles(7),
        event(EventKind::TraceOn(BeginReason::Enabled)),
        cycles(5),
        at("main", 0, 2, call()),
        cycles(9),
        at("sort", 0, 2, interrupted()),
        cycles(4),
        exception(Exception::M(15), Some(page("sort") + 4), page("handler")),
        cycles(3),
        at("handler", 0, 3, returns()),
    ]);
    let chains = chains(&found, Unit::Cycles);
    assert_eq!(chains, expected(&[("main", 5), ("main > sort", 13), ("[SysTick] > handler", 3)]));
    assert_eq!((found.untraced.cycles, found.measures.best()), (7, Unit::Cycles));
}

#[test]
fn ticks_are_shared_by_what_ran_between_two_timestamps() {
    let found = profile(&[
        at("main", 0, 50, taken()),
        time(100),
        at("main", 0, 1, call()),
        at("sort", 0, 3, returns()),
        time(140),
        at("main", 2, 4, taken()),
    ]);
    // Instructions before the first timestamp and after the last one have no time.
    assert_eq!(chains(&found, Unit::Time), expected(&[("main", 10), ("main > sort", 30)]));
    assert_eq!((found.measures.timed_instructions, found.measures.best()), (4, Unit::Time));
}

#[test]
fn time_that_a_gap_took_is_nobodys() {
    let found = profile(&[
        time(100),
        at("main", 0, 1, taken()),
        gap(GapReason::TraceLost),
        at("main", 0, 1, taken()),
        time(200),
    ]);
    assert_eq!(chains(&found, Unit::Time), BTreeMap::new());
    assert_eq!((found.untraced.time, found.measures.best()), (100, Unit::Instructions));
}

#[test]
fn several_tasks_are_distinguished() {
    let context = |id| {
        event(EventKind::Context {
            context_id: Some(ContextId(id)),
            vmid: None,
            privilege: Privilege::default(),
        })
    };
    let story = [
        context(1),
        at("main", 0, 1, taken()),
        context(2),
        at("task_b", 0, 2, taken()),
        context(1),
        at("main", 0, 4, taken()),
    ];
    let found = profile(&story);
    let several = expected(&[("[context 0x1] > main", 5), ("[context 0x2] > task_b", 2)]);
    assert_eq!(chains(&found, Unit::Instructions), several);
    assert_eq!(found.switches[&Evidence::ContextId], 3);
}

#[test]
fn profiles_of_two_parts_are_together_what_both_have() {
    let other = [at("main", 0, 3, call()), at("swap", 0, 5, returns()), at("main", 6, 1, taken())];
    let mut together = profile(&recursion());
    together.merge(&profile(&other));
    let mut sum = chains(&profile(&recursion()), Unit::Instructions);
    for (chain, cost) in chains(&profile(&other), Unit::Instructions) {
        *sum.entry(chain).or_default() += cost;
    }
    assert_eq!(chains(&together, Unit::Instructions), sum);
    assert_eq!(functions(&together)["swap"], [2, 10, 10]);
    assert_eq!(together.total().instructions, 30);
    // Merging with nothing changes nothing.
    together.merge(&Profile::default());
    assert_eq!(chains(&together, Unit::Instructions), sum);
}

#[test]
fn a_longer_trace_of_the_same_calls_takes_no_more_memory() {
    let mut profiler = Profiler::new(pages(), &Window::default());
    let mut sizes = Vec::new();
    for _ in 0..1000 {
        for element in recursion() {
            profiler.element(&element, CaptureOffset(0));
        }
        sizes.push(profiler.size());
    }
    assert!(sizes[3..].iter().all(|size| *size == sizes[3]), "{:?} … {:?}", &sizes[..5], sizes.last());
    assert_eq!(profiler.finish().total().instructions, 21 * 1000);
}

#[test]
fn a_window_counts_what_is_in_it_with_the_calls_around_it() {
    let window = |from, to| Window {
        from: Some(Position::Instructions(from).into()),
        to: Some(Position::Instructions(to).into()),
    };
    let found = record(&window(6, 14), &recursion());
    // The second call of sort began before it.
    assert_eq!(found.total().instructions, 7);
    let chains = chains(&found, Unit::Instructions);
    let inside = [("main > sort > sort > sort", 2), ("main > sort > sort > sort > swap", 5)];
    assert_eq!(chains, expected(&inside));
    // Calls from outside the window are no calls in it.
    assert_eq!(functions(&found)["sort"], [1, 2, 7]);
    // All windows together are the whole.
    let mut whole = Profile::default();
    for (from, to) in [(0, 6), (6, 14), (14, u64::MAX)] {
        whole.merge(&record(&window(from, to), &recursion()));
    }
    assert_eq!(functions(&whole), functions(&profile(&recursion())));
}

#[test]
fn virtual_machines_are_tasks_and_a_machines_processes_are_tasks_of_its() {
    let context = |context_id: Option<u32>, vmid| {
        event(EventKind::Context {
            context_id: context_id.map(ContextId),
            vmid: Some(Vmid(vmid)),
            privilege: Privilege::default(),
        })
    };
    let give_way = || at("yield", 0, 3, interrupted());
    let go_on = || at("yield", 6, 2, returns());
    let profile = profile(&[
        context(None, 1),
        at("main", 0, 4, call()),
        give_way(),
        context(None, 2),
        go_on(),
        at("task_a", 0, 5, call()),
        give_way(),
        context(Some(7), 2),
        go_on(),
        at("task_b", 0, 6, call()),
        give_way(),
        context(None, 1),
        go_on(),
        at("main", 8, 1, taken()),
    ]);
    let found = chains(&profile, Unit::Instructions);
    let chains = [
        ("[VMID 0x1] > main", 5),
        ("[VMID 0x1] > main > yield", 5),
        ("[VMID 0x2] > yield", 2),
        ("[VMID 0x2] > task_a", 5),
        ("[VMID 0x2] > task_a > yield", 3),
        ("[context 0x7 of VMID 0x2] > yield", 2),
        ("[context 0x7 of VMID 0x2] > task_b", 6),
        ("[context 0x7 of VMID 0x2] > task_b > yield", 3),
    ];
    assert_eq!(found, expected(&chains));
    // The first report names the task that ran from the beginning.
    assert_eq!(profile.switches[&Evidence::ContextId], 4);
}
