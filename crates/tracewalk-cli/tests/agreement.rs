//! `timeline`, `profile`, `calls`, `view` and `gdb` agree on the stack at every instruction.
#![cfg(all(feature = "gdb", feature = "view"))]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::gdb::server::{Server, monitor};
use crate::profile_truth::folded;
use crate::support::recorded::{Recorded, emulated, firmware};
use crate::support::run;
use crate::view::Served;

/// The running functions up to the innermost exception, which is the first name, or to the task.
type Stack = Vec<String>;

/// A span: its beginning, end and row, then kind, track and name.
type Span = ((u64, Reverse<u64>, Reverse<usize>), String, String, String);

/// The rows of a command's table.
fn rows(command: &str, capture: &[&str], table: &str) -> Vec<Value> {
    let arguments = [command, "--quiet", "--format", "json"];
    let document: Value = serde_json::from_str(&run(arguments.iter().chain(capture)).stdout).unwrap();
    let tables = document["tables"].as_array().unwrap();
    let table = tables.iter().find(|found| found["name"] == table).unwrap();
    table["rows"].as_array().unwrap().clone()
}

fn number(row: &Value, column: &str) -> u64 {
    row[column].as_u64().unwrap_or_else(|| panic!("{column} of {row}"))
}

fn text(row: &Value, column: &str) -> String {
    row[column].as_str().unwrap_or_default().to_owned()
}

/// The stacks of a timeline: each with the instructions from which it runs to the next.
fn stacks(capture: &[&str]) -> BTreeMap<u64, Stack> {
    let spans = rows("timeline", &[capture, &["--unit", "instructions"]].concat(), "timeline");
    let spans = spans.iter().filter(|span| ["task", "exception", "function"].contains(&span["kind"].as_str().unwrap()));
    // An inner span ends before an outer one.
    let spans = spans.enumerate().map(|(index, span)| {
        let order = (number(span, "start_time"), Reverse(number(span, "end_time")), Reverse(index));
        (order, text(span, "kind"), text(span, "track"), text(span, "name"))
    });
    let spans = spans.filter(|((start, Reverse(end), _), ..)| start < end).collect::<BTreeSet<Span>>();
    let mut moments = spans.iter().flat_map(|((start, Reverse(end), _), ..)| [*start, *end]).collect::<BTreeSet<_>>();
    let mut begin = spans.iter().peekable();
    let mut open = Vec::<&Span>::new();
    let mut found = BTreeMap::new();
    while let Some(moment) = moments.pop_first() {
        open.retain(|((_, Reverse(end), _), ..): &&_| *end > moment);
        while let Some(span) = begin.next_if(|span| span.0.0 <= moment) {
            open.push(span);
        }
        let is = |wanted: &'static str| move |(_, kind, ..): &&&Span| kind == wanted;
        let Some((since, kind, track, name)) = open.iter().rfind(is("exception")).or(open.iter().rfind(is("task")))
        else {
            found.insert(moment, Stack::new());
            continue;
        };
        let is_of_task = kind == "task";
        let on = if is_of_task { name } else { track };
        let inside = open.iter().filter(is("function")).filter(|(order, _, track, _)| track == on && (is_of_task || order > since));
        let label = (!is_of_task).then(|| format!("[{name}]"));
        found.insert(moment, label.into_iter().chain(inside.map(|(.., name)| name.clone())).collect());
    }
    found
}

/// The part of a chain of calls from the innermost exception on.
fn innermost(chain: &str) -> Stack {
    let parts = chain.split(';').collect::<Vec<_>>();
    let is_label = |part: &&str| part.starts_with('[') && part.ends_with(']');
    let label = parts.iter().rposition(is_label).unwrap_or(0);
    let is_task = |part: &&str| part.starts_with("[context ") || *part == "[unresolved task]";
    let label = label + usize::from(parts.get(label).is_some_and(is_task));
    parts[label..].iter().map(|part| (*part).to_owned()).collect()
}

/// The timeline shows each chain of the profile for as many instructions.
fn assert_timeline(name: &str, stacks: &BTreeMap<u64, Stack>, chains: &BTreeMap<String, u64>) {
    let mut profile = BTreeMap::<Stack, u64>::new();
    for (chain, cost) in chains {
        *profile.entry(innermost(chain)).or_default() += cost;
    }
    let mut timeline = BTreeMap::<Stack, u64>::new();
    for ((from, stack), to) in stacks.iter().zip(stacks.keys().skip(1)) {
        *timeline.entry(stack.clone()).or_default() += to - from;
    }
    let last = stacks.last_key_value().expect("something runs");
    assert_eq!(last.1.len(), 0, "{name}: {last:?}");
    timeline.remove(&Stack::new());
    assert_eq!(timeline, profile, "{name}: timeline and profile");
}

/// A chain of calls without its task; exceptions have no names.
fn listed(chain: &str) -> Stack {
    let is_label = |part: &str| part.starts_with('[') && part.ends_with(']');
    let is_task = |part: &str| part.starts_with("[context ") || part == "[unresolved task]";
    let parts = chain.split(';').skip_while(|part| is_task(part));
    parts.map(|part| if is_label(part) { "[]" } else { part }.to_owned()).collect()
}

/// The calls of each chain take as many instructions as the profile says.
fn assert_calls(of: &Recorded, chains: &BTreeMap<String, u64>) {
    let synchronous: &[u64] = match of.profile {
        "m" => &[3, 4, 5, 6, 7, 11, 12],
        "ar" => &[2, 3, 5, 9, 10, 11, 12, 13],
        _ => &[2, 3, 6, 7, 10, 11, 12],
    };
    let calls = rows("calls", &of.arguments(), "calls");
    let by_number = calls.iter().map(|row| (number(row, "call"), row)).collect::<BTreeMap<_, _>>();
    let mut found = BTreeMap::<Stack, u64>::new();
    for row in &calls {
        let mut chain = Stack::new();
        let mut next = Some(row);
        while let Some(at) = next {
            chain.push(text(at, "function"));
            let exception = at["exception"].as_u64();
            chain.extend(exception.map(|_| "[]".to_owned()));
            let is_inside = exception.is_none_or(|exception| synchronous.contains(&exception));
            next = at["called_by"].as_u64().filter(|_| is_inside).and_then(|by| by_number.get(&by).copied());
        }
        chain.reverse();
        *found.entry(chain).or_default() += number(row, "instructions");
    }
    let mut expected = BTreeMap::<Stack, u64>::new();
    for (chain, cost) in chains {
        let chain = listed(chain);
        for end in (1..=chain.len()).filter(|end| chain[end - 1] != "[]") {
            *expected.entry(chain[..end].to_vec()).or_default() += cost;
        }
    }
    let differs = |chain: &&Stack| found.get(*chain) != expected.get(*chain);
    let differing = found.keys().chain(expected.keys()).filter(differs);
    let differing = differing.map(|chain| (chain, found.get(chain), expected.get(chain))).collect::<BTreeSet<_>>();
    assert_eq!(differing, BTreeSet::new(), "{}: calls and profile", of.name);
}

/// The page and the debugger show the timeline's stacks.
fn assert_places(of: &Recorded, stacks: &BTreeMap<u64, Stack>) {
    let arguments = of.arguments();
    let served = Served::start(&arguments);
    let server = Server::of(&arguments);
    let mut debugger = server.connect();
    let steps = number(&served.ask("capture")["sources"][0], "steps");
    for step in (0..40).map(|part| part * steps / 40) {
        let here = served.ask(&format!("here?step={step}"));
        if here["row"]["kind"] != "instruction" {
            continue;
        }
        let at = number(&here["row"], "number");
        let (_, expected) = stacks.range(..=at).next_back().expect("something runs");
        let mut shown = Stack::new();
        for frame in here["frames"].as_array().unwrap() {
            shown.insert(0, text(frame, "function"));
            if let Some(exception) = frame["exception"].as_str() {
                shown.insert(0, format!("[{exception}]"));
                break;
            }
        }
        assert_eq!(&shown, expected, "{}: the page at instruction {at}", of.name);
        monitor(&mut debugger, &format!("goto {step}"));
        let mut printed = Stack::new();
        for line in monitor(&mut debugger, "bt").lines().filter(|line| line.starts_with('#')) {
            let (_, after_address) = line.split_once("0x").unwrap().1.split_once(' ').unwrap();
            let name = after_address.trim_start().split("  ").next().unwrap();
            printed.insert(0, name.split("+0x").next().unwrap().to_owned());
            let reached_by = line.rsplit("  ").next().unwrap();
            if let Some((exception, _)) = reached_by.split_once(", taken at step ") {
                printed.insert(0, format!("[{exception}]"));
                break;
            }
        }
        assert_eq!(&printed, expected, "{}: the debugger at instruction {at}", of.name);
    }
}

fn assert_agreement(programs: &[Recorded]) {
    for of in programs {
        let arguments = of.arguments();
        let stacks = stacks(&arguments);
        let chains = folded(&arguments, &["--unit", "instructions", "--no-inlined"]);
        assert_timeline(&of.name, &stacks, &chains);
        assert_calls(of, &chains);
        assert_places(of, &stacks);
    }
}

#[test]
fn every_answer_has_the_same_stacks() {
    let folder = tempfile::tempdir().unwrap();
    assert_agreement(&firmware(folder.path()));
}

#[tracewalk_corpus::test]
fn every_answer_about_emulated_programs_has_the_same_stacks() {
    assert_agreement(&emulated());
}
