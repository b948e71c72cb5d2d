//! Memory that data trace reported, compared with the emulator's record of each load and store.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpStream;

use tracewalk_generate::etmcr::{DATA_ADDRESSES, DATA_VALUES};
use tracewalk_generate::path::{Access, Path, Step};

use super::server::{Server, ask};
use super::{STEP, marked, stock_gdb};
use crate::support::firmware::{Firmware, Setup};

const SETUP: Setup = Setup {
    protocol: "etmv3",
    cpu: "cortex-a7",
    etmcr: DATA_ADDRESSES | DATA_VALUES,
    etmidr: None,
    etmccer: None,
    timestamps: None,
};

/// A capture with data trace, in a file.
struct Traced {
    firmware: Firmware,
    directory: tempfile::TempDir,
}

impl Traced {
    fn new() -> Self {
        let firmware = Firmware::load("a9");
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("trace.bin"), firmware.trace(&SETUP).bytes).unwrap();
        Self { firmware, directory }
    }

    fn arguments(&self) -> [String; 9] {
        let capture = self.directory.path().join("trace.bin").display().to_string();
        let image = self.firmware.file.display().to_string();
        let [container, source] = ["raw".to_owned(), SETUP.option()];
        let [container_option, source_option, image_option] =
            ["--container", "--source", "--image"].map(str::to_owned);
        let at = "--at=first".to_owned();
        [capture, container_option, container, source_option, source, image_option, image, at, "--trust-image".to_owned()]
    }
}

/// What each byte holds, as the emulator recorded it.
#[derive(Default)]
struct Model(BTreeMap<u64, u8>);

impl Model {
    fn access(&mut self, access: &Access) {
        let Some(value) = access.value else { return };
        for (offset, byte) in (0..).zip(value.to_le_bytes()).take(access.bytes.into()) {
            self.0.insert(access.address.get() + offset, byte);
        }
    }

    /// A word, if all of it was accessed.
    fn word(&self, at: u64) -> Option<String> {
        (at..at + 4).map(|at| self.0.get(&at).map(|byte| format!("{byte:02x}"))).collect()
    }
}

/// The words whose values changed most often.
fn busiest(path: &Path) -> Vec<u64> {
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

/// What the words hold before each instruction, with its address.
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
            // Of a word that was accessed in part, so many bytes are known.
            None => assert!(answer == "E01" || answer.len() < 8, "{word:x}: {answer}"),
        }
        known += usize::from(expected.is_some());
    }
    known
}

#[test]
fn memory_is_what_was_loaded_or_stored_last_in_both_directions() {
    let traced = Traced::new();
    let path = &traced.firmware.path;
    let words = busiest(path);
    let places = expected(path, &words);
    let server = Server::of(traced.arguments());
    let mut stream = server.connect();
    let mut known = 0;
    let mut last = Vec::new();
    for (index, (address, held)) in places.iter().enumerate() {
        if index > 0 && ask(&mut stream, "s").contains("replaylog") {
            // The trace may end before the last instructions are proven.
            assert!(index + 10 > places.len(), "{index} of {}", places.len());
            break;
        }
        last.push(index);
        // Where something changed, and now and then.
        if index % 97 == 0 || places.get(index.wrapping_sub(1)).is_some_and(|(_, before)| before != held) {
            assert_eq!(counter(&mut stream), *address, "{index}");
            known += check(&mut stream, &words, held);
        }
    }
    assert!(known > 1000, "{known}");
    for index in last.into_iter().rev().skip(1).take(3000) {
        assert!(ask(&mut stream, "bs").starts_with("T05"));
        let (address, held) = &places[index];
        if places[index + 1].1 != *held {
            assert_eq!(counter(&mut stream), *address, "{index}");
            check(&mut stream, &words, held);
        }
    }
}
