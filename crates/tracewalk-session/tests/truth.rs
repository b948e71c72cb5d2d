//! Answers about programs that an emulator ran, against its record of the stack pointer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tracewalk_analysis::analysis::Analysis;
use tracewalk_analysis::clock::Cost;
use tracewalk_analysis::profile::{Profiling, Tree, TreeOptions};
use tracewalk_analysis::Window;
use tracewalk_report::Look;
use tracewalk_report::export::CallTreeOptions;
use tracewalk_report::formats::CALLS;
use tracewalk_session::{Follow, Notices, Outcome, Request, Session};

fn capture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/corpus/found3/truth")
        .join(name)
        .join("capture.toml")
}

fn run<A: Analysis>(name: &str, analysis: A) -> Outcome<A::Found> {
    let (mut session, _) = Session::open(Request::new(capture(name))).expect("the capture is readable");
    let source = session.sources()[0].clone();
    session.run(&source, &Follow::default(), analysis).expect("the source can be followed")
}

/// Each function's instructions, with those of the functions that it called.
fn totals(name: &str) -> (BTreeMap<String, u64>, u64) {
    let outcome = run(name, Profiling::new(Window::default()));
    let tree = Tree::of(&outcome.found, &outcome.code, TreeOptions { inlined: false, sites: false });
    let by = |cost: &Cost| cost.instructions;
    let functions = tree.functions(by);
    let named = |label: usize| tree.labels[label].text().to_owned();
    let totals = functions.iter().map(|of| (named(of.function.index()), of.total.instructions)).collect();
    (totals, outcome.found.unresolved().instructions)
}

/// The function, the instructions and the end of each call.
fn calls(name: &str) -> Vec<(String, u64, String)> {
    let csv = CALLS.iter().find(|format| format.name == "csv").expect("a format");
    let options = CallTreeOptions { look: Look::PLAIN, depth: None, fold: false, window: Window::default() };
    let mut out = Vec::new();
    let (mut session, _) = Session::open(Request::new(capture(name))).expect("the capture is readable");
    let source = session.sources()[0].clone();
    let mut sink = (csv.make.tree)(&mut out, options);
    sink.begin().expect("a vector takes everything");
    session.run_observed(&source, &Follow::default(), &mut *sink, &Notices::default()).expect("it is followed");
    sink.finish(true).expect("a vector takes everything");
    drop(sink);
    let text = String::from_utf8(out).expect("UTF-8");
    let mut lines = text.lines();
    let titles = lines.next().expect("titles").split(',').rev().collect::<Vec<_>>();
    let from_end = |title: &str| titles.iter().position(|known| *known == title).expect("a column");
    let (instructions, end) = (from_end("instructions"), from_end("ended"));
    let (address, entered) = (from_end("address"), from_end("entry"));
    let row = |line: &str| {
        let cells = line.rsplit(',').collect::<Vec<_>>();
        let name = line.split("function,").nth(1).unwrap_or_default().trim_matches('"');
        let name = name.split(['(', ',']).next().unwrap_or_default();
        (name.to_owned(), cells[instructions].parse().unwrap_or(0), cells[end].to_owned())
    };
    // A function that was found running is no call.
    let is_call = |line: &&str| {
        let cells = line.rsplit(',').collect::<Vec<_>>();
        cells[address] == cells[entered]
    };
    lines.filter(is_call).map(row).collect()
}

/// Coroutines whose scheduler has a name of its own.
#[tracewalk_corpus::test]
fn a_function_that_changes_the_stack_calls_nothing() {
    let (totals, _) = totals("04-cooperative-switch");
    for (function, instructions) in [("Reset_Handler", 3871), ("main", 1613), ("part", 936)] {
        assert_eq!(totals[function], instructions, "{function}");
    }
    // `longjmp` leaves the others.
    let unwound = calls("04-cooperative-switch").into_iter().filter(|(_, _, end)| end == "unwound");
    let unwound = unwound.map(|(function, ..)| function).filter(|function| function.starts_with("co_"));
    assert_eq!(unwound.count(), 0);
}

/// Three tasks wait in the same function.
#[tracewalk_corpus::test]
fn a_task_that_is_not_resolved_unwinds_nothing_and_is_told() {
    let (_, unresolved) = totals("05-unresolved-tasks");
    assert_eq!(unresolved, 2085);
    let calls = calls("05-unresolved-tasks");
    assert_eq!(calls.iter().filter(|(.., end)| end == "unwound").count(), 0);
    // Each whole call of the function in which they wait has the same length.
    let yields = calls.iter().filter(|(function, _, end)| function == "yield" && end == "returned");
    let lengths = yields.map(|(_, instructions, _)| *instructions).filter(|length| *length < 6);
    assert_eq!(lengths.count(), 0);
}

/// Each level of a recursion has a destructor.
#[tracewalk_corpus::test]
fn a_cleanup_that_goes_on_with_the_unwinding_is_over() {
    let mut throwers = calls("06-cpp-exceptions-recursive");
    throwers.retain(|(function, ..)| function == "thrower");
    let lengths = throwers.iter().map(|(_, instructions, _)| *instructions).collect::<Vec<_>>();
    assert!(lengths.contains(&7350) && !lengths.contains(&8812), "{lengths:?}");
}
