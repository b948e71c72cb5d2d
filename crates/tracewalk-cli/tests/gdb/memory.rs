//! Memory as reported by data trace, compared with the emulator's record of each load and store.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpStream;

use tracewalk_generate::etmcr::{DATA_ADDRESSES, DATA_VALUES};
use tracewalk_generate::path::{Access, Path, Step};

use super::server::{Server, ask};
use super::{marked, stock_gdb};
use crate::support::{corpus, example};
use crate::support::firmware::{Firmware, Setup};

const SETUP: Setup = Setup {
    protocol: "etmv3",
    cpu: "cortex-a7",
    etmcr: DATA_ADDRESSES | DATA_VALUES,
    etmidr: None,
    etmccer: None,
    timestamps: None,
};

/// A jump target for which no image has code.
const NOTHING: u64 = 0xe000_0000;

/// A capture with data trace, in a file.
pub(super) struct Traced {
    pub(super) firmware: Firmware,
    /// The part of the path that the trace reports.
    pub(super) path: Path,
    directory: tempfile::TempDir,
}

impl Traced {
    pub(super) fn new() -> Self {
        let firmware = Firmware::load("a9");
        let directory = tempfile::tempdir().unwrap();
        let trace = firmware.trace(&SETUP);
        std::fs::write(directory.path().join("trace.bin"), trace.bytes).unwrap();
        Self { firmware, path: trace.path, directory }
    }

    pub(super) fn arguments(&self) -> [String; 9] {
        let capture = self.directory.path().join("trace.bin").display().to_string();
        let image = self.firmware.file.display().to_string();
        let [container, source] = ["raw".to_owned(), SETUP.option()];
        let [container_option, source_option, image_option] =
            ["--container", "--source", "--image"].map(str::to_owned);
        let at = "--at=first".to_owned();
        [
            capture,
            container_option,
            container,
            source_option,
            source,
            image_option,
            image,
            at,
            "--trust-image".to_owned(),
        ]
    }
}

/// The contents of each byte, as the emulator recorded them.
#[derive(Default)]
pub(super) struct Model(BTreeMap<u64, u8>);

impl Model {
    pub(super) fn access(&mut self, access: &Access) {
        let Some(value) = access.value else { return };
        for (offset, byte) in (0..).zip(value.to_le_bytes()).take(access.bytes.into()) {
            self.0.insert(access.address.get() + offset, byte);
        }
    }

    /// A word, if all its bytes were accessed.
    pub(super) fn word(&self, at: u64) -> Option<String> {
        (at..at + 4).map(|at| self.0.get(&at).map(|byte| format!("{byte:02x}"))).collect()
    }
}

/// The words whose values changed most often.
pub(super) fn busiest(path: &Path) -> Vec<u64> {
    let (mut model, mut changes) = (Model::default(), BTreeMap::<u64, usize>::new());
    let mut unknown = BTreeSet::new();
    for step in &path.steps {
        let Step::Access(access) = step else { continue };
        let word = access.address.get() & !3;
        let before = model.word(word);
        model.access(access);
        *changes.entry(word).or_default() += usize::from(before != model.word(word));
        if access.value.is_none() {
            unknown.insert(word);
        }
    }
    let mut words = changes.into_iter().filter(|(word, _)| !unknown.contains(word)).collect::<Vec<_>>();
    words.sort_by_key(|(_, changes)| std::cmp::Reverse(*changes));
    words.into_iter().take(8).map(|(word, _)| word).collect()
}

/// The words' contents before each instruction, with its address.
fn expected(path: &Path, words: &[u64]) -> Vec<(u64, Vec<Option<String>>)> {
    let mut model = Model::default();
    let mut all = Vec::new();
    for step in &path.steps {
        match step {
            Step::Instruction(executed) => {
                all.push((executed.address.get(), words.iter().map(|word| model.word(*word)).collect()));
            }
            Step::Access(access) => model.access(access),
            _ => {}
        }
    }
    all
}

fn counter(stream: &mut TcpStream) -> u64 {
    let answer = ask(stream, "pf");
    u64::from(u32::from_str_radix(&answer, 16).unwrap().swap_bytes())
}

fn check(stream: &mut TcpStream, words: &[u64], expected: &[Option<String>]) -> usize {
    let mut known = 0;
    for (word, expected) in words.iter().zip(expected) {
        let answer = ask(stream, &format!("m{word:x},4"));
        match expected {
            Some(expected) => assert_eq!(answer, *expected, "{word:x}"),
            // Of a partly accessed word, the answer has only the known bytes.
            None => assert!(answer == "E01" || answer.len() < 8, "{word:x}: {answer}"),
        }
        known += usize::from(expected.is_some());
    }
    known
}

/// Goes to the next instruction in one direction, at this address. Returns whether there is one.
fn go(stream: &mut TcpStream, packet: &str, address: u64) -> bool {
    loop {
        if ask(stream, packet).contains("replaylog") {
            return false;
        }
        let at = counter(stream);
        if at == address {
            return true;
        }
        // The target of a jump into nothing is a place without an instruction.
        assert_eq!(at, NOTHING);
    }
}

#[test]
fn memory_is_what_was_loaded_or_stored_last_in_both_directions() {
    let traced = Traced::new();
    let words = busiest(&traced.path);
    let places = expected(&traced.path, &words);
    let server = Server::of(traced.arguments());
    let mut stream = server.connect();
    let changes = |index: usize| index > 0 && places[index - 1].1 != places[index].1;
    let (mut known, mut last) = (0, 0);
    for (index, (address, held)) in places.iter().enumerate() {
        if index > 0 && !go(&mut stream, "s", *address) {
            // The trace may end before the last instructions are proven.
            assert!(index + 10 > places.len(), "{index} of {}", places.len());
            break;
        }
        last = index;
        // Checks the words after each change, and at intervals.
        if changes(index) || index % 97 == 0 {
            known += check(&mut stream, &words, held);
        }
    }
    assert!(known > 1000, "{known}");
    for (index, (address, held)) in places[..last].iter().enumerate().rev() {
        assert!(go(&mut stream, "bs", *address));
        if changes(index) || changes(index + 1) {
            check(&mut stream, &words, held);
        }
    }
}

#[test]
#[ignore = "needs gdb-multiarch"]
fn gdb_reads_what_data_trace_reported_and_nothing_else() {
    let traced = Traced::new();
    let word = busiest(&traced.path)[0];
    let places = expected(&traced.path, &[word]);
    let Some(place) = (1..4000).rev().find(|index| places[*index].1 != places[*index - 1].1) else {
        panic!("the word does not change")
    };
    let held = |index: usize| {
        let digits = places[index].1[0].as_deref()?;
        Some(u64::from(u32::from_str_radix(digits, 16).unwrap().swap_bytes()))
    };
    let connect = format!(
        "target remote | {} --quiet gdb {} --listen - --cache none",
        assert_cmd::cargo::cargo_bin!("tracewalk").display(),
        traced.arguments().join(" ")
    );
    let read = format!("printf \"\\n@%x\\n\", *(unsigned int *) {word:#x}");
    let nothing = format!("x/1wx {:#x}", word + 0x0100_0000);
    let steps = format!("stepi {place}");
    let commands = [&*connect, &nothing, &steps, &read, "reverse-stepi", &read, "stepi", &read];
    let text = stock_gdb(traced.firmware.file.to_str(), commands);
    let expected = [held(place), held(place - 1), held(place)];
    assert_eq!(marked(&text).into_iter().map(Some).collect::<Vec<_>>(), expected, "{text}");
    assert!(!text.contains(&format!("{:#x}:\t0x", word + 0x0100_0000)), "{text}");
}

#[test]
#[ignore = "needs gdb-multiarch"]
fn memory_that_a_debugger_saved_holds_at_the_last_place() {
    let testdata = example("..");
    let elf = testdata.join("firmware/crash/crash-m0.elf");
    let connect = format!(
        "target remote | {} --quiet gdb {} --image {} --listen - --cache none",
        assert_cmd::cargo::cargo_bin!("tracewalk").display(),
        testdata.join("crashes/m0-null-pointer/crash.log").display(),
        elf.display(),
    );
    let read = ["printf \"\\n@%x\\n\", *(unsigned int *) 0x20000030", "printf \"\\n@%x\\n\", $r4"];
    let back = ["reverse-stepi", "x/1wx 0x20000030", read[1], "stepi"];
    let text = stock_gdb(elf.to_str(), [&[&*connect][..], &read, &back, &read].concat());
    // At the end the values are those of the log. One step back, the register is proven; after the branch, unknown code may have
    // changed memory.
    assert_eq!(marked(&text), [0x105, 0x2000_0030, 0x2000_0030, 0x105, 0x2000_0030], "{text}");
    assert!(!text.contains(">:\t0x"), "{text}");
}

/// A proven stack pointer of one task says nothing of another's.
#[tracewalk_corpus::test]
fn a_place_has_the_same_stack_pointer_whatever_was_visited_before() {
    let server = Server::of([corpus("tasks").join("sched-m3-etmv3/capture.toml")]);
    let mut stream = server.connect();
    let mut stack_pointer = |step: u64| {
        let digits = step.to_le_bytes().map(|byte| format!("{byte:02x}")).concat();
        assert_eq!(ask(&mut stream, &format!("P1a={digits}")), "OK");
        ask(&mut stream, "pd")
    };
    let steps = [140_303, 124_159, 143_935, 4_000, 60_000, 99_999];
    let there = steps.map(&mut stack_pointer);
    let mut back = steps;
    back.reverse();
    let mut back = back.map(&mut stack_pointer);
    back.reverse();
    assert_eq!(there, back);
}
