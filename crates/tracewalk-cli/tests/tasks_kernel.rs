//! Tasks whose control blocks, stacks and functions are used again, compared with what the emulator's log says of the
//! example program `kernel`: the stores to its current-task pointer, and the runs of its tasks.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tracewalk_generate::path::{Path as Executed, Step};
use tracewalk_generate::{elf, record::Record};

use crate::support::{run, tracewalk};

/// The builds of the program, and the addresses of their current-task pointers.
const KERNELS: [(&str, u64); 2] = [("kernel-f", 0x2100_0000), ("kernel-z", 0x2100_0008)];

/// The trace units, and how many of the record's last instructions they do not report: ETMv4 ends with the last branch.
const UNITS: [(&str, u64); 2] = [("etmv3,cpu=cortex-m3", 0), ("etmv4,cpu=cortex-m33", 2)];

/// A store to the current-task pointer: the instruction's number, and the value.
type Store = (u64, u64);

/// What a task executes in thread mode between two switches. Task 0 is what runs before the first task.
#[derive(Debug)]
struct Run {
    start: u64,
    length: u64,
    task: u64,
    /// The exceptions since the last instruction in thread mode before it.
    exceptions: Vec<u64>,
}

#[derive(Debug, Default)]
struct Truth {
    stores: Vec<Store>,
    /// Function and name.
    tasks: BTreeMap<u64, (String, String)>,
    runs: Vec<Run>,
}

fn firmware(kernel: &str, extension: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/firmware/kernel");
    folder.join(format!("{kernel}.{extension}"))
}

impl Truth {
    fn of(kernel: &str) -> Self {
        let mut truth = Self::default();
        truth.tasks.insert(0, ("Reset_Handler".to_owned(), String::new()));
        for line in std::fs::read_to_string(firmware(kernel, "tasks")).unwrap().lines() {
            let words = line.split(' ').collect::<Vec<_>>();
            let number = |word: &str| word.parse::<u64>().unwrap();
            match words[..] {
                ["S", instruction, block, ref task @ ..] => {
                    truth.stores.push((number(instruction), u64::from_str_radix(block, 16).unwrap()));
                    if let [task, entry, name @ ..] = task {
                        truth.tasks.insert(number(task), ((*entry).to_owned(), name.join(" ")));
                    }
                }
                ["R", start, length, task, ref exceptions @ ..] => truth.runs.push(Run {
                    start: number(start),
                    length: number(length),
                    task: number(task),
                    exceptions: exceptions.iter().map(|word| number(word)).collect(),
                }),
                _ => panic!("{line}"),
            }
        }
        assert!(truth.stores.len() > 400 && truth.tasks.len() > 40 && truth.runs.len() > 400);
        truth
    }

    /// The instructions, runs and longest run of each task, as far as the trace goes.
    fn figures(&self, untraced: u64) -> BTreeMap<u64, [u64; 3]> {
        let mut figures = BTreeMap::<u64, [u64; 3]>::new();
        for (index, run) in self.runs.iter().enumerate() {
            let length = run.length - if index + 1 == self.runs.len() { untraced } else { 0 };
            let [instructions, runs, longest] = figures.entry(run.task).or_default();
            (*instructions, *runs, *longest) = (*instructions + length, *runs + 1, length.max(*longest));
        }
        figures
    }
}

/// Makes a trace of the record; returns its description.
fn capture(folder: &Path, kernel: &str, unit: &str, options: &[&str]) -> PathBuf {
    // The binary is in the same package of the workspace's tests.
    let generator = assert_cmd::cargo::cargo_bin!("tracewalk").with_file_name("tracewalk-generate");
    let mut command = Command::new(generator);
    command.args(["capture", "--protocol", unit]).args(options).arg("--output").arg(folder);
    command.arg("--record").arg(firmware(kernel, "record")).arg("--elf").arg(firmware(kernel, "elf"));
    let output = command.output().expect("`cargo test --workspace` has built the generator");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    folder.join("capture.toml")
}

/// The stores of the record, in the order of its instructions.
fn recorded_stores(kernel: &str) -> Vec<Store> {
    let elf = elf::read(&std::fs::read(firmware(kernel, "elf")).unwrap()).unwrap();
    let record = Record::parse(&std::fs::read_to_string(firmware(kernel, "record")).unwrap()).unwrap();
    let mut stores = Vec::new();
    let mut executed = 0;
    for step in Executed::expand(&record, &elf.program).unwrap().steps {
        match step {
            Step::Instruction(_) => executed += 1,
            Step::Access(access) => stores.push((executed - 1, access.value.unwrap())),
            _ => {}
        }
    }
    stores
}

#[test]
fn the_record_and_the_list_have_the_same_stores() {
    for (kernel, _) in KERNELS {
        assert_eq!(recorded_stores(kernel), Truth::of(kernel).stores, "{kernel}");
    }
}

/// The program uses control blocks and functions again, and a name only once for each of two tasks that exist together.
#[test]
fn control_blocks_have_several_tasks() {
    for (kernel, _) in KERNELS {
        let truth = Truth::of(kernel);
        let blocks = truth.stores.iter().map(|(_, block)| block).collect::<std::collections::BTreeSet<_>>();
        assert!(blocks.len() < 10 && truth.tasks.len() > 40, "{kernel}");
        let workers = truth.tasks.values().filter(|(entry, _)| entry == "worker").map(|(_, name)| name.as_str());
        assert_eq!(workers.collect::<Vec<_>>(), ["worker A", "worker B"]);
    }
}

#[test]
fn the_packets_of_watched_stores_come_between_the_store_and_the_next_return() {
    for ((kernel, pointer), (unit, _)) in KERNELS.into_iter().flat_map(|kernel| UNITS.map(|unit| (kernel, unit))) {
        let folder = tempfile::tempdir().unwrap();
        let watched = format!("0x01:{pointer:#x}");
        let capture = capture(folder.path(), kernel, unit, &["--dwt", &watched]);
        let outcome = run(["flow", "--quiet", "--format", "jsonl", capture.to_str().unwrap()]);
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        let mut stores = recorded_stores(kernel).into_iter().peekable();
        let mut executed = 0;
        for line in outcome.stdout.lines() {
            let element: Value = serde_json::from_str(line).unwrap();
            match element["element"].as_str().unwrap() {
                "range" => executed += element["instructions"].as_u64().unwrap(),
                "exception_return" => {
                    assert!(stores.peek().is_none_or(|(store, _)| *store >= executed), "{kernel} {unit} {executed}");
                }
                "itm" if element["event"] == "data_value" => {
                    let (store, value) = stores.next().unwrap();
                    assert!(store < executed, "{kernel} {unit}: {store}");
                    assert_eq!(element["value"], value, "{kernel} {unit}: {store}");
                }
                _ => {}
            }
        }
        assert_eq!(stores.next(), None, "{kernel} {unit}");
    }
}

/// What the command says about a capture, with its tasks matched to the emulator's.
struct Answer {
    document: Value,
    /// The emulator's task of each row. Invariant: no task twice.
    tasks: BTreeMap<String, u64>,
}

fn rows<'a>(document: &'a Value, table: &str) -> &'a [Value] {
    document[table].as_array().map(Vec::as_slice).unwrap_or_default()
}

impl Answer {
    /// Tasks are matched where the command and the emulator have a switch at the same instruction.
    fn about(capture: &Path, truth: &Truth) -> Self {
        let outcome = run(["tasks", "--quiet", "--format", "json", capture.to_str().unwrap()]);
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        let document: Value = serde_json::from_str(&outcome.stdout).unwrap();
        let mut tasks = BTreeMap::new();
        let begun = truth.runs.iter().map(|run| (run.start, run.task)).collect::<BTreeMap<_, _>>();
        for switch in rows(&document, "switches") {
            let (at, to) = (switch["instruction"].as_u64().unwrap(), switch["to"].as_str());
            if let (Some(task), Some(to)) = (begun.get(&at), to)
                && !tasks.values().any(|known| known == task)
            {
                tasks.entry(to.to_owned()).or_insert(*task);
            }
        }
        // What ran before the first task may have a row.
        let first = rows(&document, "switches").first().and_then(|switch| switch["from"].as_str());
        tasks.extend(first.map(|first| (first.to_owned(), 0)));
        Self { document, tasks }
    }

    fn task(&self, value: &Value) -> Option<u64> {
        self.tasks.get(value.as_str()?).copied()
    }

    /// The places at which the switches, and the rows in which the figures, are not the emulator's.
    fn differences(&self, truth: &Truth, untraced: u64) -> Vec<String> {
        let mut differences = Vec::new();
        let mut compare = |what: String, found: &dyn Debug, expected: &dyn Debug| {
            let [found, expected] = [found, expected].map(|value| format!("{value:?}"));
            if found != expected {
                differences.push(format!("{what}: found {found}, expected {expected}"));
            }
        };
        let of = |switch: &Value| {
            let from = self.task(&switch["from"]).unwrap_or_default();
            (switch["instruction"].as_u64().unwrap(), (from, self.task(&switch["to"]), switch["reason"].as_str().map(str::to_owned)))
        };
        let found = rows(&self.document, "switches").iter().map(of).collect::<BTreeMap<_, _>>();
        let mut expected = BTreeMap::new();
        for (before, run) in truth.runs.iter().zip(truth.runs.iter().skip(1)) {
            let reason = match run.exceptions[..] {
                _ if before.task == 0 => Some("start".to_owned()),
                [14] => Some("yield".to_owned()),
                [number, 14] => Some(format!("exception {number}")),
                _ => None,
            };
            expected.insert(run.start, (before.task, run.task, reason));
        }
        compare("switches".to_owned(), &rows(&self.document, "switches").len(), &expected.len());
        for at in expected.keys().chain(found.keys().filter(|at| !expected.contains_key(at))) {
            let expected = expected.get(at).map(|(from, to, reason)| (*from, Some(*to), reason.clone()));
            // Of several exceptions, none is expected to be the reason.
            let several = expected.as_ref().is_some_and(|(_, _, reason)| reason.is_none());
            let found = found.get(at).cloned().map(|(from, to, reason)| (from, to, reason.filter(|_| !several)));
            compare(format!("switch at {at}"), &found, &expected);
        }

        let figures = truth.figures(untraced);
        let row = |row: &Value| {
            let figures = ["instructions", "runs", "longest"].map(|figure| row[figure].as_u64().unwrap_or_default());
            let name = row["name"].as_str().map(str::to_owned);
            (self.task(&row["task"]), (row["entry"].as_str().unwrap_or_default().to_owned(), figures, name))
        };
        let mut found = BTreeMap::new();
        for (task, row) in rows(&self.document, "tasks").iter().map(row) {
            match task {
                Some(task) => _ = found.insert(task, row),
                None => compare("a row".to_owned(), &Some(row), &None::<()>),
            }
        }
        for (task, figures) in &figures {
            let (entry, name) = &truth.tasks[task];
            let found = found.get(task);
            if *task == 0 && found.is_none() {
                continue;
            }
            let name = Some(name.clone()).filter(|name| !name.is_empty());
            compare(format!("task {task}"), &found, &Some((entry.clone(), *figures, name)));
        }
        differences
    }
}

/// Compares everything that the command says about both builds and both trace units.
fn assert_tasks(options: impl Fn(u64) -> Vec<String>) {
    let mut differences = Vec::new();
    for ((kernel, pointer), (unit, untraced)) in KERNELS.into_iter().flat_map(|kernel| UNITS.map(|unit| (kernel, unit))) {
        let folder = tempfile::tempdir().unwrap();
        let options = options(pointer);
        let options = options.iter().map(String::as_str).collect::<Vec<_>>();
        let capture = capture(folder.path(), kernel, unit, &options);
        let truth = Truth::of(kernel);
        let found = Answer::about(&capture, &truth).differences(&truth, untraced);
        println!("{kernel} {unit}: {} tasks, {} runs, {} differences", truth.tasks.len(), truth.runs.len(), found.len());
        differences.extend(found.into_iter().map(|difference| format!("{kernel} {unit}: {difference}")));
    }
    assert!(differences.is_empty(), "{} differences\n{}", differences.len(), differences.join("\n"));
}

#[test]
fn tasks_of_a_kernel_are_the_emulators() {
    assert_tasks(|_| Vec::new());
}

#[test]
fn tasks_of_a_kernel_whose_pointer_is_watched_are_the_emulators() {
    assert_tasks(|pointer| vec!["--dwt".to_owned(), format!("0x01:{pointer:#x}")]);
}

/// Without its beginning no value is proven, and two tasks of one function have the same call stack.
#[test]
fn a_watched_pointer_distinguishes_tasks_of_a_trace_without_its_beginning() {
    for ((kernel, pointer), (unit, _)) in
        KERNELS.into_iter().flat_map(|kernel| UNITS.map(|unit| (kernel, unit)))
    {
        let folder = tempfile::tempdir().unwrap();
        let capture = capture(folder.path(), kernel, unit, &["--dwt", &format!("0x01:{pointer:#x}")]);
        let trace = folder.path().join("trace.bin");
        let bytes = std::fs::read(&trace).unwrap();
        // Whole frames of 16 bytes.
        std::fs::write(&trace, &bytes[bytes.len() * 2 / 5 / 16 * 16..]).unwrap();
        let outcome = run(["tasks", "--quiet", "--format", "json", capture.to_str().unwrap()]);
        let document: Value = serde_json::from_str(&outcome.stdout).unwrap();
        let found = rows(&document, "switches");
        assert!(found.len() > 200, "{kernel} {unit}: {}", outcome.stderr);
        let at = |switch: &Value| switch["instruction"].as_u64().unwrap();
        let truth = Truth::of(kernel);
        let expected = truth.runs.windows(2).map(|runs| (runs[1].start, [runs[0].task, runs[1].task]));
        let expected = expected.collect::<Vec<_>>();
        let expected = &expected[expected.len() - found.len()..];
        let (mut tasks, mut rows) = (BTreeMap::new(), BTreeMap::new());
        for (switch, (start, ends)) in found.iter().zip(expected) {
            assert_eq!(at(switch) - at(&found[0]), start - expected[0].0, "{kernel} {unit}");
            for (row, task) in [&switch["from"], &switch["to"]].into_iter().zip(ends) {
                let row = row.as_str().unwrap_or_default();
                assert_eq!(*tasks.entry(row).or_insert(task), task, "{kernel} {unit}: {row} at {start}");
                assert_eq!(*rows.entry(task).or_insert(row), row, "{kernel} {unit}: {task} at {start}");
            }
        }
    }
}

/// What a command prints about a capture whose tasks are proven.
fn with_proven_tasks(command: &str, format: &str, capture: &Path) -> String {
    let outcome = run([command, "--quiet", "--tasks", "proven", "--format", format, capture.to_str().unwrap()]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    outcome.stdout
}

/// Call stacks alone would not distinguish tasks of one function, nor name them.
#[test]
fn profiles_and_timelines_have_the_proven_tasks() {
    for (kernel, _) in KERNELS {
        let folder = tempfile::tempdir().unwrap();
        let capture = capture(folder.path(), kernel, UNITS[0].0, &[]);
        let truth = Truth::of(kernel);

        let profile: Value = serde_json::from_str(&with_proven_tasks("profile", "json", &capture)).unwrap();
        let binaries = rows(&profile, "tables").iter().find(|table| table["name"] == "binaries").unwrap();
        let found = rows(binaries, "rows").iter();
        let mut found = found.filter_map(|row| Some((row["task"].as_str()?, row["self"].as_u64()?))).collect::<Vec<_>>();
        // The handler that starts the first task runs before it.
        found.retain(|(task, _)| *task != "task 1");
        let figures = truth.figures(0).into_iter().filter(|(task, _)| *task != 0);
        let mut expected = figures.map(|(task, [instructions, ..])| (truth.tasks[&task].1.as_str(), instructions)).collect::<Vec<_>>();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{kernel}");

        let timeline = with_proven_tasks("timeline", "csv", &capture);
        let spans = timeline.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let mut found = spans.filter(|span| span[4] == "task").map(|span| (span[7].parse().unwrap(), span[5])).collect::<Vec<_>>();
        let name = |task| Some(truth.tasks[&task].1.as_str()).filter(|name| !name.is_empty()).unwrap_or("task 1");
        let mut expected = truth.runs.iter().map(|run| (run.start, name(run.task))).collect::<Vec<_>>();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{kernel}");
    }
}

/// A name for a number holds for the task with this number, in each command.
#[test]
fn stated_names_are_the_tasks() {
    let folder = tempfile::tempdir().unwrap();
    let capture = capture(folder.path(), KERNELS[0].0, UNITS[0].0, &[]);
    let names = |stated: &[&str]| {
        let arguments = ["tasks", "--quiet", "--format", "json", capture.to_str().unwrap()];
        let outcome = run(arguments.iter().chain(stated));
        let document: Value = serde_json::from_str(&outcome.stdout).unwrap();
        rows(&document, "tasks").iter().map(|row| row["name"].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    let mut expected = names(&[]);
    let renamed = names(&["--tasks", "3=Boss,1=before"]);
    let place = expected.iter().position(|name| name.as_deref() == Some("supervisor")).unwrap();
    (expected[place], expected[0]) = (Some("Boss".to_owned()), Some("before".to_owned()));
    assert_eq!(renamed, expected);
    let refused = run(["tasks", "--tasks", "three=Boss", capture.to_str().unwrap()]);
    assert_eq!((refused.status, refused.stdout.as_str()), (2, ""), "{}", refused.stderr);
    let nowhere = run(["flow", "--tasks", "proven", capture.to_str().unwrap()]);
    assert_eq!((nowhere.status, nowhere.stdout.as_str()), (2, ""), "{}", nowhere.stderr);
}

/// Proofs follow a trace several times, but bytes from a pipe come once.
#[test]
fn a_piped_trace_has_the_tasks_of_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let capture = capture(folder.path(), KERNELS[0].0, UNITS[0].0, &[]);
    let trace = std::fs::read(folder.path().join("trace.bin")).unwrap();
    let elf = firmware(KERNELS[0].0, "elf");
    for command in ["tasks", "interrupts"] {
        let stated = [command, "--quiet", "--tasks", "proven", "--format", "json"];
        let file = run(stated.into_iter().chain([capture.to_str().unwrap()]));
        let source = ["-", "--container", "frames", "--source", "0x10=etmv3,cpu=cortex-m3", "--image", elf.to_str().unwrap()];
        let piped = tracewalk().args(stated).args(source).write_stdin(trace.clone()).output().unwrap();
        let problem = String::from_utf8_lossy(&piped.stderr);
        assert_eq!((piped.status.code(), String::from_utf8_lossy(&piped.stdout)), (Some(0), file.stdout.into()), "{problem}");
    }
}
