//! Tasks and switches, compared with emulators' records: a task is a stack.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use serde_json::Value;

use crate::support::{corpus, example, run};

/// A task's entry, instructions, runs and longest run, as far as they are known.
type Row = (Option<String>, u64, u64, u64);

/// A switch: the instruction, and the tasks.
type Switch = (u64, String, String);

/// The command's answer, in the names of `expected`: its tasks are matched in the order in which they first run.
fn found(capture: &Path, expected: &[Switch]) -> (BTreeMap<String, Row>, Vec<Switch>, Vec<String>) {
    let outcome = run(["tasks", "--quiet", "--format", "json", capture.to_str().unwrap()]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let document: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(document["v"], 1);
    let [tasks, switches] = ["tasks", "switches"].map(|name| document[name].as_array().unwrap());
    let mut names = BTreeMap::new();
    for (switch, (_, from, to)) in switches.iter().zip(expected) {
        for (task, name) in [(&switch["from"], from), (&switch["to"], to)] {
            let task = task.as_str().unwrap_or_default().to_owned();
            if !names.values().any(|known| known == name) {
                names.entry(task).or_insert_with(|| name.clone());
            }
        }
    }
    let name = |task: &Value| names.get(task.as_str().unwrap_or_default()).cloned().unwrap_or_default();
    let number = |value: &Value| value.as_u64().unwrap();
    let row = |row: &Value| {
        let entry = row["entry"].as_str().map(str::to_owned);
        (name(&row["task"]), (entry, number(&row["instructions"]), number(&row["runs"]), number(&row["longest"])))
    };
    let switch =
        |switch: &Value| (number(&switch["instruction"]), name(&switch["from"]), name(&switch["to"]));
    let reasons = switches.iter().map(|switch| switch["reason"].as_str().unwrap().to_owned());
    (tasks.iter().map(row).collect(), switches.iter().map(switch).collect(), reasons.collect())
}

fn expected_switches(switches: &Value) -> Vec<Switch> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let switches = switches.as_array().unwrap().iter();
    switches.map(|switch| (switch[0].as_u64().unwrap(), text(&switch[1]), text(&switch[2]))).collect()
}

#[tracewalk_corpus::test]
fn tasks_of_a_preemptive_scheduler_are_those_of_its_record() {
    let folder = corpus("tasks/sched-m3-etmv3");
    let mut truth = String::new();
    let file = std::fs::File::open(folder.join("expected.json.gz")).unwrap();
    flate2::read::GzDecoder::new(file).read_to_string(&mut truth).unwrap();
    let truth: Value = serde_json::from_str(&truth).unwrap();
    let expected = expected_switches(&truth["task_switches"]);
    let (rows, switches, reasons) = found(&folder.join("capture.toml"), &expected);
    assert_eq!(switches, expected);
    assert_eq!(reasons[0], "start");
    let all = truth["instructions"].as_u64().unwrap();
    assert_eq!(rows, thread_mode(&truth, &expected, all), "{rows:?}");
}

/// Each task's figures: what runs outside of exceptions between its switches.
fn thread_mode(truth: &Value, switches: &[Switch], all: u64) -> BTreeMap<String, Row> {
    let mut handlers = Vec::new();
    for exception in truth["interrupts"].as_object().unwrap().values() {
        let list = |name: &str| {
            exception[name].as_array().unwrap().iter().map(|value| value.as_u64().unwrap()).collect::<Vec<_>>()
        };
        handlers.extend(list("starts").into_iter().zip(list("with_preemption")));
    }
    handlers.sort_unstable();
    let mut is_handler = vec![false; usize::try_from(all).unwrap()];
    for (start, length) in handlers {
        let [start, length] = [start, length].map(|value| usize::try_from(value).unwrap());
        is_handler[start..start + length].fill(true);
    }
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    let first = (0, String::new(), switches[0].1.clone());
    let ends = switches.iter().map(|switch| switch.0).chain([all]);
    for ((start, _, task), end) in [first].iter().chain(switches).zip(ends) {
        let range = usize::try_from(*start).unwrap()..usize::try_from(end).unwrap();
        let length = is_handler[range].iter().filter(|is_handler| !**is_handler).count() as u64;
        let (_, instructions, runs, longest) = rows.entry(task.clone()).or_default();
        (*instructions, *runs, *longest) = (*instructions + length, *runs + 1, length.max(*longest));
    }
    let entries = ["task_recursion", "task_machine", "task_sort", "task_numbers"];
    for (task, row) in &mut rows {
        let index = task.strip_prefix("task").and_then(|index| index.parse::<usize>().ok());
        row.0 = Some(index.map_or("Reset_Handler", |index| entries[index]).to_owned());
    }
    rows
}

/// Truth from QEMU's stack pointers, of the same path: a task takes over with the instruction after the return on its stack.
fn assert_recorded(name: &str) {
    let truth: Value = serde_json::from_str(include_str!("tasks/truth.json")).unwrap();
    let expected = expected_switches(&truth[name]["switches"]);
    let capture = corpus("found3/truth").join(name).join("capture.toml");
    let (rows, switches, _) = found(&capture, &expected);
    assert_eq!(switches, expected);
    let number = |value: &Value| value.as_u64().unwrap();
    let row = |(task, row): (&String, &Value)| {
        let entry = row["entry"].as_str().map(str::to_owned);
        (task.clone(), (entry, number(&row["instructions"]), number(&row["runs"]), number(&row["longest"])))
    };
    assert_eq!(rows, truth[name]["tasks"].as_object().unwrap().iter().map(row).collect());
}

#[tracewalk_corpus::test]
fn tasks_that_switch_in_thread_mode_are_those_of_the_record() {
    assert_recorded("04-cooperative-switch");
}

#[tracewalk_corpus::test]
fn two_tasks_of_one_function_that_wait_at_one_place_are_those_of_the_record() {
    assert_recorded("05-unresolved-tasks");
}

#[test]
fn a_program_without_tasks_has_one_and_no_switch() {
    let outcome = run(["tasks", example("m3-etmv3/capture.toml").to_str().unwrap(), "--format", "json"]);
    let document: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(document["switches"].as_array().unwrap().len(), 0);
    assert_eq!(document["tasks"].as_array().unwrap().len(), 1);
}
