//! Programs with the record of an emulator: the path goes in, the values are compared.

use std::fmt;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tracewalk::ids::{Address, Isa, Location};
use tracewalk_values::{End, Image, Instruction, Profile, Proven, Register, Registers, Step, Values};

/// A program with its record.
#[derive(Debug)]
pub(crate) struct Case {
    folder: PathBuf,
    segments: Vec<Segment>,
    record: Vec<Value>,
}

#[derive(Debug)]
struct Segment {
    virtual_address: u64,
    physical_address: u64,
    memory_size: u64,
    is_writable: bool,
    is_executable: bool,
    bytes: Vec<u8>,
}

/// How much was known, and what was wrong.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) wrong: Vec<String>,
    /// The state at the end contradicts the path.
    pub(crate) end_contradicts: bool,
    pub(crate) all: Yield,
    /// Of the last 2,000 instructions.
    pub(crate) last: Yield,
}

/// Register writes, and those that are known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Yield {
    pub(crate) writes: usize,
    pub(crate) known: usize,
}

impl Yield {
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    pub(crate) fn percent(self) -> f64 {
        100. * self.known as f64 / self.writes.max(1) as f64
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} % of all, {:.1} % of the last", self.all.percent(), self.last.percent())?;
        write!(f, ", {} wrong", self.wrong.len())
    }
}

fn hex(value: &Value) -> Option<u64> {
    u64::from_str_radix(value.as_str()?.trim_start_matches("0x"), 16).ok()
}

impl Case {
    /// The program of this name.
    pub(crate) fn read(name: &str) -> Self {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/values");
        let folder = corpus.join(name);
        let elf = fs::read(folder.join("program.elf")).expect("a program");
        let packed = fs::read(folder.join("values.jsonl.gz")).expect("a record");
        let mut text = String::new();
        flate2::read::GzDecoder::new(&packed[..]).read_to_string(&mut text).expect("text");
        let record = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        Self { folder, segments: segments(&elf), record }
    }

    /// Registers and memory at the end, in GDB's form.
    pub(crate) fn end(&self) -> End {
        let text = fs::read_to_string(self.folder.join("end.log")).expect("a dump");
        let mut end = End::default();
        for line in text.lines() {
            if let Some((address, words)) = line.split_once(":\t") {
                let address = u64::from_str_radix(&address[2..], 16).expect("an address");
                let word = |word: &str| u32::from_str_radix(&word[2..], 16).expect("a word").to_le_bytes();
                end.memory.push((address, words.split('\t').flat_map(word).collect()));
            } else {
                let mut words = line.split_whitespace();
                let (Some(name), Some(value)) = (words.next(), words.next()) else { continue };
                let value = u64::from_str_radix(&value[2..], 16).expect("a value");
                if let Some(register) = number(name) {
                    end.registers[register] = Some(value);
                }
            }
        }
        end
    }

    /// The program counter at the end.
    fn halted_at(&self) -> u64 {
        let text = fs::read_to_string(self.folder.join("end.log")).expect("a dump");
        let line = text.lines().find_map(|line| line.strip_prefix("pc")).expect("a program counter");
        u64::from_str_radix(&line.split_whitespace().next().expect("a value")[2..], 16).expect("a value")
    }

    fn profile(&self) -> Profile {
        match self.record[0]["isa"].as_str() {
            Some("A64") => Profile::A64,
            Some("A32") => Profile::A32,
            _ => Profile::M,
        }
    }

    fn image(&self, from_start: bool) -> Image {
        let mut image = Image::new();
        for segment in &self.segments {
            let Segment { virtual_address, physical_address, memory_size, is_writable, is_executable, bytes } =
                segment;
            if *is_writable {
                image.add_memory(*virtual_address..virtual_address + memory_size);
                if *is_executable {
                    image.add_code(*virtual_address, bytes);
                }
                if physical_address != virtual_address {
                    image.add_constants(*physical_address, bytes);
                } else if from_start {
                    image.add_initial(*virtual_address, bytes);
                }
            } else {
                image.add_constants(*virtual_address, bytes);
            }
        }
        if self.profile() == Profile::M {
            image.add_memory(0x2000_0000..0x4000_0000);
        }
        image
    }

    fn code(&self, address: u64) -> [u8; 4] {
        let find = |segment: &Segment| {
            let offset = usize::try_from(address.checked_sub(segment.virtual_address)?).ok()?;
            let bytes = segment.bytes.get(offset..)?;
            Some([0, 1, 2, 3].map(|index| bytes.get(index).copied().unwrap_or(0)))
        };
        self.segments.iter().find_map(find).expect("code")
    }

    fn instruction(&self, record: &Value) -> (Location, u32, u8) {
        let address = hex(&record["addr"]).expect("an address");
        let [a, b, c, d] = self.code(address);
        let (first, second) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
        let isa = match record["isa"].as_str() {
            Some("T32") => Isa::T32,
            Some("A32") => Isa::A32,
            _ => Isa::A64,
        };
        let (code, bytes) = match isa {
            Isa::T32 if first >> 11 < 29 => (u32::from(first), 2),
            Isa::T32 => (u32::from(first) << 16 | u32::from(second), 4),
            _ => (u32::from_le_bytes([a, b, c, d]), 4),
        };
        (Location::new(Address::new(address), isa), code, bytes)
    }

    /// The path of the last instructions, with the record of each step.
    fn steps(&self, first: usize) -> Vec<Step> {
        let is =
            |index: usize, kind: &str| self.record.get(index).is_some_and(|item| item["element"] == kind);
        // The program halted before the instruction after the last one.
        let after = |index: usize| match self.record.get(index) {
            Some(record) if record["element"] == "instruction" => Some(self.instruction(record).0),
            Some(_) => None,
            None => Some(Location::new(
                Address::new(self.halted_at()),
                self.instruction(&self.record[index - 1]).0.isa,
            )),
        };
        (first..self.record.len())
            .map(|index| {
                let record = &self.record[index];
                match record["element"].as_str() {
                    Some("instruction") => {
                        let (at, code, bytes) = self.instruction(record);
                        // An exception returns to the next instruction.
                        let next = after(index + 1).or_else(|| {
                            let returns_to = hex(&self.record.get(index + 1)?["return"])?;
                            Some(Location::new(Address::new(returns_to), at.isa))
                        });
                        let class =
                            tracewalk::isa::classify(&self.code(at.address.get()), at.address, at.isa);
                        let is_branch = class.is_ok_and(|class| class.is_branch());
                        let goes_on = next.is_none_or(|next| next == at.after(bytes.into()));
                        let executed = if is_branch { Some(!goes_on) } else { record["executed"].as_bool() };
                        Step::Instruction(Instruction { at, code, bytes, executed, next })
                    }
                    Some("exception") => Step::Exception {
                        returns_to: hex(&record["return"]).map(Address::new),
                        is_tail_chained: index > 0 && is(index - 1, "exception_return"),
                    },
                    _ => Step::ExceptionReturn { next: after(index + 1).map(|next| next.address) },
                }
            })
            .collect()
    }

    /// Proves what can be proven of the path, or of its last steps, and compares it with the record.
    pub(crate) fn prove(&self, last: Option<usize>, end: Option<&End>) -> Outcome {
        let mut outcome = self.prove_part(last, 0, end);
        if std::mem::take(&mut outcome.end_contradicts) {
            outcome.wrong.push("the end contradicts the path".to_owned());
        }
        outcome
    }

    /// The same without the last steps, though the state is that after them.
    pub(crate) fn prove_without_the_last(&self, steps: usize, end: &End) -> Outcome {
        self.prove_part(None, steps, Some(end))
    }

    /// The same in windows of so many steps.
    pub(crate) fn prove_in_windows(&self, window: usize, overlap: usize, end: Option<&End>) -> Outcome {
        self.prove_path(None, 0, end, Some((window, overlap)))
    }

    fn prove_part(&self, last: Option<usize>, without: usize, end: Option<&End>) -> Outcome {
        self.prove_path(last, without, end, None)
    }

    fn prove_path(
        &self,
        last: Option<usize>,
        without: usize,
        end: Option<&End>,
        windows: Option<(usize, usize)>,
    ) -> Outcome {
        let first = last.map_or(0, |last| self.record.len().saturating_sub(last));
        let mut registers: Registers = [None; 32];
        if first == 0 && self.profile() == Profile::M {
            registers[13] = Some(u32::from_le_bytes(self.code(0)).into());
        }
        let mut values = Values::new(self.image(first == 0), self.profile(), &registers);
        if let Some((window, overlap)) = windows {
            values = values.in_windows(window, overlap);
        }
        let mut outcome = Outcome::default();
        let instructions = self.record.iter().filter(|record| record["element"] == "instruction").count();
        let before = self.record[..first].iter().filter(|record| record["element"] == "instruction").count();
        let mut number = before;
        let mut index = first;
        let mut sink = |step: &Step, proven: &Proven| {
            let record = &self.record[index];
            index += 1;
            if let Step::Instruction(_) = step {
                compare(record, proven, &mut outcome, number + 2000 >= instructions);
                number += 1;
            }
        };
        let mut steps = self.steps(first);
        steps.truncate(steps.len() - without);
        for step in steps {
            values.push(step, &mut sink);
        }
        let summary = values.finish(end, &mut sink);
        outcome.end_contradicts = summary.end_contradicts;
        if summary.contradictions > 0 {
            outcome.wrong.push(format!("{summary:?}"));
        }
        outcome
    }
}

fn compare(record: &Value, proven: &Proven, outcome: &mut Outcome, is_last: bool) {
    let mut wrong = |what: &str| {
        if outcome.wrong.len() < 20 {
            outcome.wrong.push(format!("{what}: {proven:x?} {record}"));
        }
    };
    if proven.executed.is_some_and(|executed| record["executed"] != executed) {
        wrong("executed");
    }
    let writes = record["writes"].as_object().expect("writes");
    let mut known = 0;
    for (register, value) in &proven.writes {
        let recorded = writes.iter().find(|(name, _)| number(name) == Some(usize::from(register.0)));
        match (recorded, value) {
            (None, Some(_)) => wrong("not written"),
            (Some((_, recorded)), Some(value))
                if hex(recorded).is_some_and(|recorded| recorded != *value) =>
            {
                wrong("register");
            }
            (Some(_), Some(_)) => known += 1,
            // A write that may not have been made.
            (None, None) if proven.executed == Some(true) => wrong("not written"),
            _ => {}
        }
    }
    if proven.executed == Some(true)
        && writes.keys().any(|name| {
            !proven.writes.iter().any(|(Register(register), _)| number(name) == Some((*register).into()))
        })
    {
        wrong("a write is missing");
    }
    for (name, is_store) in [("loads", false), ("stores", true)] {
        let recorded = record[name].as_array().expect("accesses");
        let recorded = recorded.iter().flat_map(|access| {
            let (address, value) = (hex(&access["addr"]).expect("an address"), hex(&access["value"]));
            (0..access["bytes"].as_u64().expect("a size"))
                .map(move |byte| (address + byte, value.map(|value| value >> (8 * byte) & 0xff)))
        });
        let stated = proven.accesses.iter().filter(|access| access.is_store == is_store).flat_map(|access| {
            (0..u64::from(access.bytes)).map(move |byte| {
                (
                    access.address.map(|address| address + byte),
                    access.value.map(|value| value >> (8 * byte) & 0xff),
                )
            })
        });
        let (recorded, stated) = (recorded.collect::<Vec<_>>(), stated.collect::<Vec<_>>());
        if proven.executed == Some(true) && recorded.len() != stated.len() {
            wrong("bytes");
            continue;
        }
        for ((address, value), (stated_address, stated_value)) in recorded.into_iter().zip(stated) {
            if stated_address.is_some_and(|stated| stated != address) {
                wrong("address");
            }
            if let (Some(value), Some(stated)) = (value, stated_value)
                && value != stated
            {
                wrong("value");
            }
        }
    }
    for count in [Some(&mut outcome.all), is_last.then_some(&mut outcome.last)].into_iter().flatten() {
        count.writes += writes.len();
        count.known += known;
    }
}

fn number(name: &str) -> Option<usize> {
    match name {
        "sp" => Some(13),
        "lr" => Some(14),
        _ => name.strip_prefix(['r', 'x'])?.parse().ok().filter(|number| *number < 31),
    }
}

/// The loaded segments of an ELF file of either width.
fn segments(elf: &[u8]) -> Vec<Segment> {
    let wide = elf[4] == 2;
    let number = |at: usize, bytes: usize| {
        elf[at..at + bytes].iter().rev().fold(0_u64, |value, byte| value << 8 | u64::from(*byte))
    };
    let place = |at: usize, bytes: usize| usize::try_from(number(at, bytes)).expect("a place in the file");
    let (table, size, count) = if wide {
        (place(32, 8), place(54, 2), place(56, 2))
    } else {
        (place(28, 4), place(42, 2), place(44, 2))
    };
    let headers = (0..count).map(|index| table + index * size);
    let loaded = headers.filter(|&header| number(header, 4) == 1);
    loaded
        .map(|header| {
            let field = |narrow: usize, broad: usize| {
                if wide { number(header + broad, 8) } else { number(header + narrow, 4) }
            };
            let flags = number(header + if wide { 4 } else { 24 }, 4);
            let start = usize::try_from(field(4, 8)).expect("a place in the file");
            let length = usize::try_from(field(16, 32)).expect("a length");
            Segment {
                virtual_address: field(8, 16),
                physical_address: field(12, 24),
                memory_size: field(20, 40),
                is_writable: flags & 2 != 0,
                is_executable: flags & 1 != 0,
                bytes: elf[start..start + length].to_vec(),
            }
        })
        .collect()
}
