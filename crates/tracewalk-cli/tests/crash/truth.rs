//! Checks a proof's entries against the program's file, the emulator's record and GDB's output. Uses none of
//! the code that makes proofs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The independent evidence of a crash.
pub(crate) struct Truth {
    elf: Vec<u8>,
    /// The execution, as lines of the emulator's record.
    record: Vec<Line>,
    /// Bytes that GDB printed.
    memory: BTreeMap<u32, u8>,
    registers: BTreeMap<String, u32>,
}

enum Line {
    Ran { start: u32, end: u32 },
    Taken { exception: u32, returns_to: Option<u32>, handler: u32 },
    Returned,
}

/// The folder of the recorded crashes.
pub(crate) fn crashes() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/crashes")
}

/// The program of a crash, by the crash's name.
pub(crate) fn program(name: &str) -> PathBuf {
    let (core, kind) = name.split_once('-').unwrap();
    let program = match kind {
        "overwritten" | "unsaved" | "cleared" | "escalated" => "unproven",
        "wait" | "wait-with-ticks" | "wait-for-device" | "timeout" | "ticks" | "idle" | "assertion"
        | "breakpoint" => "hang",
        "thread-divide" | "handler-return" | "thread-bus-fault" | "thread-undefined" => "float",
        _ => "crash",
    };
    crashes().join(format!("../firmware/crash/{program}-{core}.elf"))
}

fn number(word: &str) -> u32 {
    u32::from_str_radix(word.trim_start_matches("0x"), 16).unwrap_or_else(|_| panic!("{word}"))
}

fn of(value: &Value, key: &str) -> u32 {
    number(value[key].as_str().unwrap_or_else(|| panic!("{key} of {value}")))
}

impl Truth {
    pub(crate) fn read(name: &str) -> Self {
        Self::of(name, &crashes().join(name).join("crash.log"))
    }

    /// The evidence of a recorded program with this log.
    pub(crate) fn of(name: &str, log: &Path) -> Self {
        let record = crashes().join(format!("../firmware/crash/{name}.record"));
        let record = std::fs::read_to_string(record).unwrap();
        let record = record.lines().skip(2).filter_map(|line| {
            let words = line.split(' ').collect::<Vec<_>>();
            Some(match words[0] {
                "R" => Line::Ran { start: number(words[1]), end: number(words[2]) },
                "X" => Line::Taken {
                    exception: words[1].parse().unwrap(),
                    returns_to: (words[2] != "-").then(|| number(words[2])),
                    handler: number(words[3]),
                },
                "T" => Line::Returned,
                _ => return None,
            })
        });
        let mut truth = Self {
            elf: std::fs::read(program(name)).unwrap(),
            record: record.collect(),
            memory: BTreeMap::new(),
            registers: BTreeMap::new(),
        };
        truth.read_log(&std::fs::read_to_string(log).unwrap());
        truth
    }

    fn read_log(&mut self, log: &str) {
        for line in log.lines() {
            if let Some((address, values)) = line.split_once(":\t") {
                let address = number(address.split(' ').next().unwrap());
                let bytes = values.split('\t').flat_map(|word| number(word).to_le_bytes());
                self.memory.extend((address..).zip(bytes));
            } else if let [name, value, ..] = line.split_whitespace().collect::<Vec<_>>()[..] {
                self.registers.insert(name.to_owned(), number(value));
            }
        }
    }

    /// The number of the last exception, and the address where it was taken.
    pub(crate) fn last_taken(&self) -> (u32, u32) {
        let taken = |line: &Line| match line {
            Line::Taken { exception, returns_to, .. } => Some((*exception, (*returns_to)?)),
            _ => None,
        };
        self.record.iter().rev().find_map(taken).unwrap()
    }

    /// Fails if the entry is not true.
    pub(crate) fn check(&self, entry: &Value) {
        match entry["kind"].as_str().unwrap() {
            "instruction" => {
                let at = of(entry, "address");
                let bytes = entry["bytes"]
                    .as_str()
                    .unwrap()
                    .split(' ')
                    .map(|byte| u8::from_str_radix(byte, 16).unwrap());
                let bytes = bytes.collect::<Vec<_>>();
                assert_eq!(self.image(at, bytes.len()).as_deref(), Some(&*bytes), "{entry}");
                let ran = self
                    .record
                    .iter()
                    .any(|line| matches!(line, Line::Ran { start, end } if (*start..*end).contains(&at)));
                assert!(ran || entry["executed"] == false, "{entry}");
                assert_eq!(entry["offset"].is_u64(), entry["executed"] == true, "{entry}");
            }
            "went" => {
                let (from, to) = (of(entry, "address"), of(entry, "to"));
                let lines = self.record.windows(2);
                assert!(lines.into_iter().any(|pair| went(pair, from, to)), "{entry}");
            }
            "taken" => {
                let (at, handler) = (of(entry, "address"), of(entry, "handler"));
                let number = entry["exception"].as_u64();
                let is = |line: &Line| match line {
                    Line::Taken { exception, returns_to, handler: entered } => {
                        *returns_to == Some(at)
                            && *entered == handler
                            && number.is_none_or(|number| number == u64::from(*exception))
                    }
                    _ => false,
                };
                assert!(self.record.iter().any(is), "{entry}");
            }
            "word" => {
                let (at, value) = (of(entry, "address"), of(entry, "value"));
                let found = if entry["holder"] == "image" {
                    self.image(at, 4).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap()))
                } else {
                    let byte = |offset| self.memory.get(&(at + offset)).copied();
                    Some(u32::from_le_bytes([0, 1, 2, 3].map(|offset| byte(offset).unwrap())))
                };
                assert_eq!(found, Some(value), "{entry}");
            }
            "register" => {
                let name = entry["name"].as_str().unwrap();
                assert_eq!(self.registers.get(name), Some(&of(entry, "value")), "{entry}");
            }
            "symbol" => {
                let found = (of(entry, "start"), of(entry, "end"));
                let name = entry["name"].as_str().unwrap();
                assert!(self.symbols().contains(&(name.to_owned(), found.0, found.1)), "{entry}");
            }
            "repeated" => {
                let last = of(entry, "last");
                let ran =
                    |line: &&Line| matches!(line, Line::Ran { start, end } if (*start..*end).contains(&last));
                let times = self.record.iter().filter(ran).count() as u64;
                assert!(entry["times"].as_u64().unwrap() <= times, "{entry}: {times}");
            }
            other => panic!("{other}"),
        }
    }

    /// Bytes of a loadable segment (ELF-32, program headers).
    fn image(&self, at: u32, length: usize) -> Option<Vec<u8>> {
        let (offset, size, count) = (self.word(28), self.half(42), self.half(44));
        (0..count).find_map(|index| {
            let header = offset + index * size;
            let (start, bytes) = (self.address(header + 8), self.word(header + 16));
            let inside = usize::try_from(at.checked_sub(start)?).unwrap();
            let loadable = self.word(header) == 1 && inside + length <= bytes;
            let from = self.word(header + 4) + inside;
            loadable.then(|| self.elf[from..from + length].to_vec())
        })
    }

    /// Name, start and end of each symbol with a size (ELF-32, section headers).
    fn symbols(&self) -> Vec<(String, u32, u32)> {
        let (offset, size, count) = (self.word(32), self.half(46), self.half(48));
        let header = |index: usize| offset + index * size;
        let table = (0..count).map(header).find(|at| self.word(at + 4) == 2).unwrap();
        let names = self.word(header(self.word(table + 24)) + 16);
        let (start, bytes) = (self.word(table + 16), self.word(table + 20));
        let symbol = |at: usize| {
            let name = names + self.word(at);
            let name = self.elf[name..].iter().take_while(|byte| **byte != 0).copied().collect();
            let (value, size) = (self.address(at + 4), self.address(at + 8));
            // Bit 0 of a function's value marks Thumb.
            let value = if self.elf[at + 12] & 0xf == 2 { value & !1 } else { value };
            (String::from_utf8(name).unwrap(), value, value + size)
        };
        (start..start + bytes).step_by(16).map(symbol).collect()
    }

    fn address(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.elf[at..at + 4].try_into().unwrap())
    }

    fn word(&self, at: usize) -> usize {
        self.address(at) as usize
    }

    fn half(&self, at: usize) -> usize {
        u16::from_le_bytes(self.elf[at..at + 2].try_into().unwrap()).into()
    }
}

/// Whether the first of two lines ends with the branch, and the second starts at its target.
fn went(pair: &[Line], from: u32, to: u32) -> bool {
    let ends = matches!(pair[0], Line::Ran { end, .. } if end == from + 2 || end == from + 4);
    ends && match pair[1] {
        Line::Ran { start, .. } => start == to,
        Line::Taken { returns_to, .. } => returns_to == Some(to),
        Line::Returned => false,
    }
}
