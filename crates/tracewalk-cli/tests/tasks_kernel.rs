//! Tasks whose control blocks, stacks and functions are used again, compared with what the emulator's log says of the
//! example program `kernel`: the stores to its current-task pointer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tracewalk_generate::path::{Path as Executed, Step};
use tracewalk_generate::{elf, record::Record};

use crate::support::run;

/// The builds of the program, and the addresses of their current-task pointers.
const KERNELS: [(&str, u64); 2] = [("kernel-f", 0x2100_0000), ("kernel-z", 0x2100_0008)];

/// The trace units.
const UNITS: [&str; 2] = ["etmv3,cpu=cortex-m3", "etmv4,cpu=cortex-m33"];

/// A store to the current-task pointer: the instruction's number, and the value.
type Store = (u64, u64);

#[derive(Debug, Default)]
struct Truth {
    stores: Vec<Store>,
    /// Function and name.
    tasks: BTreeMap<u64, (String, String)>,
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
                ["R", ..] => {}
                _ => panic!("{line}"),
            }
        }
        assert!(truth.stores.len() > 400 && truth.tasks.len() > 40);
        truth
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
    for ((kernel, pointer), unit) in KERNELS.into_iter().flat_map(|kernel| UNITS.map(|unit| (kernel, unit))) {
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
