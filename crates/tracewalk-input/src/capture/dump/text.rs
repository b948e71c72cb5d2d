//! The text that debuggers print for memory.
//!
//! ```text
//! GDB, x/8wx       0x20000000 <buffer>:\t0x0000010c\t0x00000116\t0x00000228\t0x00000232
//! OpenOCD, mdw     0x20000000: 0000010c 00000116 00000228 00000232 000001f4 00000210 00000218 0000021e
//! J-Link, mem32    20000000 = 0000010C 00000116 00000228 00000232
//! pyOCD, read32    20000000:  0000010c 00000116 00000228 00000232    |............|
//! probe-rs, b32    20000000: 0000010c 00000116 00000228 00000232 000001f4 00000210 00000218 0000021e
//! ```
//!
//! The number of digits gives the width: numbers of one, two, four or eight bytes, little-endian. Blanks have
//! to match the tool's exactly, because they distinguish similar lines with different meanings: `xxd` prints
//! pairs of bytes where the others print numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use super::byte_table;
use super::decimal::Decimals;
use super::lines::{after_symbol, hexadecimal, readable, split_address, without_prompts};
use super::listing::{self, Listing};
use super::memory::{Damage, Form, MemoryDump, MemoryPiece, OtherLines, finished};
use super::problem::{DumpProblem, Located};
use super::processor::ProcessorRegisters;
use super::tool::Tool;
use crate::capture::error::{CaptureError, CaptureErrorKind};
use crate::capture::ini;
use crate::capture::registers::Registers;
use crate::excerpt::excerpt;
use crate::records::Assembly;

/// Reads a text. `Ok(None)` if nothing in it looks like memory.
///
/// ```text
/// a listing with addresses and decimal numbers are read first: each needs its neighbours
/// for each other line: memory, or damage, or a register, or nothing
/// the damage of tools that printed nothing else is no damage
/// ```
pub(super) fn read(file: &Path, text: &str) -> Result<Option<MemoryDump>, CaptureError> {
    let mut reader = Reader::new(file, text);
    let mut listing = listing::read(text).map_err(|located| reader.error(located))?;
    // A listing with addresses is treated like a tool's output.
    if let Some(listed) = listing.take_if(|listing| !listing.is_file) {
        reader.take(listed);
    }
    let decimals = Decimals::read(text);
    for number in (1..=u32::MAX).take(reader.lines.len()) {
        let is_of_file = listing.as_ref().is_some_and(|listing| listing.lines.contains(&number));
        if !is_of_file && !reader.listed.contains(&number) {
            reader.read_line(number, decimals.rows.get(&number))?;
        }
    }
    reader.add_damage(listing.is_some())?;
    reader.add_decimals(&decimals, listing.is_some())?;
    match listing {
        Some(listing) if reader.tools.is_empty() => reader.finish_listing(listing).map(Some),
        Some(listing) => {
            // If a text has two forms, the one with addresses is used.
            for number in listing.lines {
                let line = reader.line(number);
                reader.other_lines.add(number, line);
            }
            reader.finish().map(Some)
        }
        None if reader.tools.is_empty() => {
            let of = |form| move |bytes| (form, bytes);
            let numbers = || listing::plain(text).or_else(|| numbers_alone(text)).map(of(Form::Numbers));
            let bytes = byte_table::read(text).map(of(Form::ByteTable));
            let found = bytes.or_else(|| byte_table::alone(text).map(of(Form::Bytes))).or_else(numbers);
            let piece = |bytes: Vec<u8>| MemoryPiece { address: None, bytes: bytes.into() };
            Ok(found.map(|(form, bytes)| MemoryDump::of(form, vec![piece(bytes)])))
        }
        None => reader.finish().map(Some),
    }
}

/// What was read of a text up to a line.
struct Reader<'a> {
    file: &'a Path,
    lines: Vec<&'a str>,
    tools: BTreeSet<Tool>,
    memory: Assembly,
    registers: Registers,
    processor: ProcessorRegisters,
    other_lines: OtherLines,
    damage: Option<Damage>,
    /// The lines that may be damaged, until it is known which tools printed the text.
    damaged: Vec<(Tool, u32, &'a str)>,
    /// The end of each tool's last line, and the width of its numbers.
    before: BTreeMap<Tool, (u64, usize)>,
    /// The lines of a listing with addresses, and the possible addresses of its rows.
    listed: BTreeSet<u32>,
    extent: Range<u64>,
}

impl<'a> Reader<'a> {
    fn new(file: &'a Path, text: &'a str) -> Self {
        Self {
            file,
            lines: text.lines().collect(),
            tools: BTreeSet::new(),
            memory: Assembly::default(),
            registers: Registers::new(),
            processor: ProcessorRegisters::default(),
            other_lines: OtherLines::default(),
            damage: None,
            damaged: Vec::new(),
            before: BTreeMap::new(),
            listed: BTreeSet::new(),
            extent: 0..0,
        }
    }

    fn error(&self, (line, problem): Located) -> CaptureError {
        CaptureError { file: self.file.to_owned(), line, kind: CaptureErrorKind::Dump(problem) }
    }

    /// The line with this number, from 1.
    fn line(&self, number: u32) -> &'a str {
        let index = usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX);
        self.lines.get(index).copied().unwrap_or_default()
    }

    /// Takes a listing with addresses.
    fn take(&mut self, listing: Listing) {
        self.tools.insert(listing.tool);
        self.memory = listing.memory;
        (self.listed, self.extent) = (listing.lines, listing.extent);
        self.add_all(listing.damage);
    }

    fn add_all(&mut self, damage: Vec<(u32, DumpProblem)>) {
        damage.into_iter().for_each(|(line, problem)| Damage::add(&mut self.damage, Some(line), problem));
    }

    fn add(&mut self, number: u32, address: u64, bytes: &[u8]) -> Result<(), CaptureError> {
        let added = self.memory.add(address, bytes, Some(number));
        added.map_err(|(line, problem)| self.error((line, DumpProblem::Memory(problem))))
    }

    /// Reads a line; `decimal` is what it holds if it is one of decimal or binary numbers.
    fn read_line(&mut self, number: u32, decimal: Option<&(u64, Vec<u8>)>) -> Result<(), CaptureError> {
        if let Some((address, bytes)) = decimal {
            self.tools.insert(Tool::Gdb);
            return self.add(number, *address, bytes);
        }
        let (line, mut numbers) = (self.line(number), Numbers::default());
        match read_line(line, &mut numbers) {
            Line::Memory { tool, address } => {
                self.tools.insert(tool);
                if self.is_damaged(number, (tool, address), &numbers) {
                    self.damaged.push((tool, number, line));
                    return Ok(());
                }
                self.add(number, address, &numbers.bytes)?;
                let end = address.saturating_add(numbers.bytes.len() as u64);
                self.before.insert(tool, (end, numbers.width));
            }
            Line::Damaged { tool, address, found } => {
                self.damaged.push((tool, number, found));
                // The values before the damage are valid, unless the damage is in the last one.
                if self.before.get(&tool).is_some_and(|(_, usual)| *usual == numbers.width) {
                    self.add(number, address, &numbers.bytes)?;
                }
            }
            Line::Register { name, value } => {
                let error = |kind| CaptureError { file: self.file.to_owned(), line: Some(number), kind };
                self.registers.add_mtb(self.file, number, name, value).map_err(error)?;
            }
            Line::Other if self.processor.read_line(without_prompts(line).trim()) => {}
            Line::Other => self.other_lines.add(number, line),
        }
        Ok(())
    }

    /// Whether a line that looks sound is a part of another one.
    fn is_damaged(&self, number: u32, (tool, address): (Tool, u64), numbers: &Numbers) -> bool {
        // A row of xxd without its characters looks like a line of probe-rs, but has bytes instead of numbers.
        if tool == Tool::ProbeRs && self.extent.contains(&address) {
            return true;
        }
        // A line that is truncated in its first number looks like a shorter number.
        let before = self.before.get(&tool).filter(|(end, _)| *end == address);
        numbers.bytes.len() == numbers.width
            && (before.is_some_and(|(_, usual)| numbers.width < *usual)
                || is_cut_from(numbers.width, (tool, address), self.line(number.saturating_add(1))))
    }

    /// Reports the lines that may be damaged. Similar lines of another tool are not memory: a disassembly, for example.
    fn add_damage(&mut self, is_file: bool) -> Result<(), CaptureError> {
        for (tool, number, found) in std::mem::take(&mut self.damaged) {
            let problem = DumpProblem::Values { tool, found: quoted(found) };
            if self.tools.is_empty() {
                return if is_file { Ok(()) } else { Err(self.error((Some(number), problem))) };
            }
            if self.tools.contains(&tool) || !self.listed.is_empty() {
                Damage::add(&mut self.damage, Some(number), problem);
            }
        }
        Ok(())
    }

    /// Reports decimal numbers that were cut short, or whose width is unknown.
    fn add_decimals(&mut self, decimals: &Decimals, is_file: bool) -> Result<(), CaptureError> {
        for &line in &decimals.cut {
            let problem = DumpProblem::Values { tool: Tool::Gdb, found: quoted(self.line(line)) };
            Damage::add(&mut self.damage, Some(line), problem);
        }
        // If other numbers are hexadecimal, the decimal ones were probably not meant as memory.
        let is_meant = !decimals.rows.is_empty() || self.tools.is_empty() && !is_file;
        let Some(&line) = decimals.unknown.first().filter(|_| is_meant) else { return Ok(()) };
        let problem = DumpProblem::NoWidth { found: quoted(self.line(line)) };
        if !self.tools.is_empty() {
            Damage::add(&mut self.damage, Some(line), problem);
        } else if self.processor.is_empty() && self.registers.is_empty() {
            return Err(self.error((Some(line), problem)));
        }
        Ok(())
    }

    /// The memory of a listing of a file.
    fn finish_listing(mut self, listing: Listing) -> Result<MemoryDump, CaptureError> {
        self.add_all(listing.damage);
        (self.tools, self.memory) = (BTreeSet::from([listing.tool]), listing.memory);
        Ok(MemoryDump { is_file: true, ..self.finish()? })
    }

    fn finish(self) -> Result<MemoryDump, CaptureError> {
        let file = self.file;
        let pieces = finished(self.memory).map_err(|(line, problem)| CaptureError {
            file: file.to_owned(),
            line,
            kind: CaptureErrorKind::Dump(problem),
        })?;
        let Self { registers, processor, other_lines, damage, .. } = self;
        Ok(MemoryDump {
            registers,
            processor,
            other_lines,
            damage,
            ..MemoryDump::of(Form::Text(self.tools), pieces)
        })
    }
}

/// Whether the next line has wider numbers and is consecutive to a whole line at this address.
fn is_cut_from(width: usize, (tool, address): (Tool, u64), next: &str) -> bool {
    let mut numbers = Numbers::default();
    match read_line(next, &mut numbers) {
        Line::Memory { tool: of, address: at } if of == tool => {
            numbers.width > width && at.checked_sub(address) == Some(numbers.bytes.len() as u64)
        }
        _ => false,
    }
}

impl OtherLines {
    fn add(&mut self, number: u32, line: &str) {
        let line = line.trim();
        if !line.is_empty() {
            self.count = self.count.saturating_add(1);
            self.first.get_or_insert_with(|| (number, quoted(line)));
        }
    }
}

/// Text for a message: tools print tabs between columns.
fn quoted(text: &str) -> String {
    excerpt(&text.replace('\t', " "))
}

/// The kind of a line.
#[derive(Debug, PartialEq, Eq)]
enum Line<'a> {
    /// Memory at an address.
    Memory { tool: Tool, address: u64 },
    /// A line that begins like memory but continues differently.
    Damaged { tool: Tool, address: u64, found: &'a str },
    /// A register of the Micro Trace Buffer.
    Register { name: &'a str, value: &'a str },
    /// Anything else.
    Other,
}

/// The numbers of a line.
#[derive(Debug, Default)]
struct Numbers {
    /// The bytes of the numbers.
    bytes: Vec<u8>,
    /// The width of a number in bytes; 0 before the first number.
    width: usize,
}

impl Numbers {
    fn clear(&mut self) {
        self.bytes.clear();
        self.width = 0;
    }

    fn add(&mut self, number: &Number) {
        self.bytes.extend_from_slice(number.bytes());
        self.width = number.length;
    }
}

/// Reads a line, and its numbers into `numbers`, which is empty.
fn read_line<'a>(line: &'a str, numbers: &mut Numbers) -> Line<'a> {
    let line = without_prompts(line).trim();
    if line.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("MTB_"))
        && let Some((name, value)) = ini::assignment(line)
    {
        return Line::Register { name, value };
    }
    let Some((address, prefixed, rest)) = split_address(line) else { return Line::Other };
    let (tool, found) = if prefixed { prefixed_line(rest, numbers) } else { bare_line(rest, numbers) };
    match found {
        Found::Values => Line::Memory { tool, address },
        Found::Damage(found) => Line::Damaged { tool, address, found },
        Found::Nothing => Line::Other,
    }
}

/// The text after an address.
enum Found<'a> {
    /// Values, as the tool prints them.
    Values,
    /// Values, and then this text.
    Damage(&'a str),
    /// No values.
    Nothing,
}

/// Memory after `0x20000000`, as GDB and OpenOCD print it.
fn prefixed_line<'a>(rest: &'a str, numbers: &mut Numbers) -> (Tool, Found<'a>) {
    let (rest, named) = after_symbol(rest);
    let first = rest.trim_start();
    if named || rest.starts_with('\t') || first.starts_with("0x") {
        return (Tool::Gdb, values(readable(first), Blanks::Any, "0x", numbers));
    }
    let found = rest.strip_prefix(' ').map_or(Found::Nothing, |rest| values(rest, Blanks::One, "", numbers));
    (Tool::OpenOcd, found)
}

/// Memory after `20000000`, as J-Link, pyOCD and probe-rs print it.
fn bare_line<'a>(rest: &'a str, numbers: &mut Numbers) -> (Tool, Found<'a>) {
    if let Some(rest) = rest.strip_prefix(" = ") {
        // Bytes are followed by their characters, after at least two blanks.
        let is_bytes = rest.as_bytes().get(2).is_none_or(|byte| *byte == b' ');
        let end = if is_bytes { rest.find("  ").unwrap_or(rest.len()).min(J_LINK_BYTES) } else { rest.len() };
        return (Tool::JLink, values(rest.get(..end).unwrap_or(rest), Blanks::One, "", numbers));
    }
    if let Some(rest) = rest.strip_prefix(":  ") {
        let (columns, characters) = rest.split_once('|').unwrap_or((rest, ""));
        let found = match values(columns, Blanks::Any, "", numbers) {
            Found::Values if !characters.ends_with('|') => Found::Damage(rest),
            found => found,
        };
        return (Tool::PyOcd, found);
    }
    let found = rest.strip_prefix(": ").map_or(Found::Nothing, |rest| values(rest, Blanks::One, "", numbers));
    (Tool::ProbeRs, found)
}

/// J-Link Commander prints 16 bytes in a line, each with a blank after it.
const J_LINK_BYTES: usize = 16 * 3 - 1;

/// The separator of two values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Blanks {
    /// One blank, and nothing else.
    One,
    /// Blanks and tabs.
    Any,
}

/// Adds values, all of the same width, to `numbers`.
fn values<'a>(text: &'a str, blanks: Blanks, prefix: &str, numbers: &mut Numbers) -> Found<'a> {
    let mut digits = None;
    let mut rest = text.trim_end();
    while !rest.is_empty() {
        if blanks == Blanks::Any {
            rest = rest.trim_start();
        }
        let (word, after) = rest.split_once([' ', '\t']).unwrap_or((rest, ""));
        let number = word.strip_prefix(prefix).filter(|it| *digits.get_or_insert(it.len()) == it.len());
        let Some(number) = number.and_then(little_endian) else {
            // In a format for addresses, GDB prints their names; the digits then do not show a width.
            if word.starts_with('<') {
                numbers.clear();
                return Found::Nothing;
            }
            // The first value may be the damaged one.
            let is_value = |it: &str| it.strip_prefix(prefix).is_some_and(|it| little_endian(it).is_some());
            let is_like = |other: &str| (!prefix.is_empty() || other.len() == word.len()) && is_value(other);
            let first_of_several = word.starts_with(prefix) && after.split_whitespace().any(is_like);
            let has_values = !numbers.bytes.is_empty() || first_of_several;
            return if has_values { Found::Damage(rest.trim_start()) } else { Found::Nothing };
        };
        numbers.add(&number);
        rest = after;
    }
    if numbers.bytes.is_empty() { Found::Nothing } else { Found::Values }
}

/// A number of one, two, four or eight bytes.
struct Number {
    bytes: [u8; 8],
    length: usize,
}

impl Number {
    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or(&self.bytes)
    }
}

/// The bytes of a number whose digits show its width.
fn little_endian(digits: &str) -> Option<Number> {
    let length = match digits.len() {
        2 => 1,
        4 => 2,
        8 => 4,
        16 => 8,
        _ => return None,
    };
    Some(Number { bytes: hexadecimal(digits)?.to_le_bytes(), length })
}

/// The bytes of numbers without addresses. They have to be on one line: in several lines, each first number
/// might be an address.
fn numbers_alone(text: &str) -> Option<Vec<u8>> {
    const FEWEST: usize = 4;
    let line = text.trim();
    if line.contains('\n') || line.split(' ').count() < FEWEST {
        return None;
    }
    let mut numbers = Numbers::default();
    matches!(values(line, Blanks::One, "", &mut numbers), Found::Values).then_some(numbers.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> (Line<'_>, Vec<u8>) {
        let mut numbers = Numbers::default();
        let line = read_line(text, &mut numbers);
        (line, numbers.bytes)
    }

    #[track_caller]
    fn is_memory(text: &str, tool: Tool, address: u64, bytes: &[u8]) {
        assert_eq!(line(text), (Line::Memory { tool, address }, bytes.to_vec()), "{text}");
    }

    #[track_caller]
    fn is_damaged(text: &str, tool: Tool, found: &str) {
        let line = line(text).0;
        assert!(
            matches!(line, Line::Damaged { tool: of, found: at, .. } if (of, at) == (tool, found)),
            "{text}: {line:?}"
        );
    }

    #[track_caller]
    fn is_other(text: &str) {
        assert_eq!(line(text).0, Line::Other, "{text}");
    }

    /// Printed by GDB 13.1 connected to QEMU.
    #[test]
    fn gdb_prints_addresses_without_leading_zeros_and_names() {
        let words = [0x4a, 1, 0, 0, 0x42, 1, 0, 0];
        is_memory("0x20001000:\t0x0000014a\t0x00000142", Tool::Gdb, 0x2000_1000, &words);
        is_memory("0x0 <vectors>:\t0x20004000\t0x000000c1", Tool::Gdb, 0, &[0, 0x40, 0, 0x20, 0xc1, 0, 0, 0]);
        is_memory(
            "0x20001000:\t0x4a\t0x01\t0x00\t0x00\t0x42\t0x01\t0x00\t0x00",
            Tool::Gdb,
            0x2000_1000,
            &words,
        );
        is_memory("0x20001000:\t0x014a\t0x0000\t0x0142\t0x0000", Tool::Gdb, 0x2000_1000, &words);
        is_memory("0x20001000:\t0x000001420000014a", Tool::Gdb, 0x2000_1000, &words);
        is_memory("(gdb) (gdb) 0x20001000:\t0x0000014a\t0x00000142", Tool::Gdb, 0x2000_1000, &words);
    }

    /// C++ names in `<>`, as demangled by GDB.
    #[test]
    fn a_name_may_have_blanks_and_brackets_in_it() {
        let text = "0x20000010 <std::array<int, 4>::operator[](unsigned int)::x+4>:\t0x00000001";
        is_memory(text, Tool::Gdb, 0x2000_0010, &[1, 0, 0, 0]);
    }

    /// The last two were printed by GDB 13.1. Its message is on a separate line unless errors and output
    /// share a stream.
    #[test]
    fn gdb_says_where_memory_ends() {
        let text = "0x20003ff8:\t0x00000001\tCannot access memory at address 0x20003ffc";
        is_memory(text, Tool::Gdb, 0x2000_3ff8, &[1, 0, 0, 0]);
        is_other("0x20004000:\tCannot access memory at address 0x20004000");
        is_other("Cannot access memory at address 0x20004000");
        is_other("0x20004000:\tcmds:15: Error in sourced command file:");
    }

    /// As GDB 13.1 prints `x/2wd`, `x/3i`, `x/2wa` and `x/s`.
    #[test]
    fn what_gdb_prints_in_other_formats_is_no_memory() {
        is_other("0x20001000:\t330\t322");
        is_other("0x20001000:\t1000\t2000");
        is_other("   0x154 <SysTick_Handler>:\tpush\t{r4, lr}");
        is_other("=> 0x154 <SysTick_Handler>:\tadd\tr3, pc");
        is_other("0x38 <vectors+56>:\t0xeb <PendSV_Handler>\t0x155 <SysTick_Handler>");
        is_other("0x20001000:\t\"text\"");
        is_other("$1 = (void (*)()) 0xc0 <Reset_Handler>");
        is_other("pc             0xc0                0xc0 <Reset_Handler>");
    }

    /// OpenOCD src/target/target.c, target_handle_md_output: `"0x%8.8" PRIx64 ": "`, then each value and a blank.
    #[test]
    fn openocd_prints_32_bytes_a_line() {
        let words = [0x4a, 1, 0, 0, 0x42, 1, 0, 0];
        is_memory("0x20001000: 0000014a 00000142 ", Tool::OpenOcd, 0x2000_1000, &words);
        is_memory("> 0x20001000: 014a 0000 0142 0000 ", Tool::OpenOcd, 0x2000_1000, &words);
        is_memory("0x20001000: 4a 01 00 00 42 01 00 00 ", Tool::OpenOcd, 0x2000_1000, &words);
        is_other("> mdw 0x20001000 2");
        is_other("target halted due to debug-request, current mode: Thread ");
        is_other("xPSR: 0x41000003 pc: 0x00000154 msp: 0x20003fd0");
    }

    /// From published sessions: NuttX, boards/arm/samd5e5/metro-m4/README.txt (`mem32` and `mem8`); a walk
    /// through an STM32F1's ports (`mem32` with several words); notes on the nRF Sniffer (`Mem`, with the
    /// characters). None shows the layout of the characters after a full line, so that the parser ignores
    /// them.
    #[test]
    fn j_link_commander_prints_an_equals_sign() {
        is_memory(
            "40010800 = BBB3B3B3 88844383 ",
            Tool::JLink,
            0x4001_0800,
            &[0xb3, 0xb3, 0xb3, 0xbb, 0x83, 0x43, 0x84, 0x88],
        );
        is_memory("J-Link>00804000 = F69A9239", Tool::JLink, 0x0080_4000, &[0x39, 0x92, 0x9a, 0xf6]);
        is_memory(
            "00804000 = 39 92 9A F6 80 FF EC AE FF FF FF FF FF FF FF FF",
            Tool::JLink,
            0x0080_4000,
            &[0x39, 0x92, 0x9a, 0xf6, 0x80, 0xff, 0xec, 0xae, 255, 255, 255, 255, 255, 255, 255, 255],
        );
        is_memory(
            "10001208 = FF FF FF FF                                       .…",
            Tool::JLink,
            0x1000_1208,
            &[0xff, 0xff, 0xff, 0xff],
        );
        is_memory(
            "20000000 = 41 42 43 44 45 46 47 48 49 4A 4B 4C 4D 4E 4F 50 ABCDEFGHIJKLMNOP",
            Tool::JLink,
            0x2000_0000,
            b"ABCDEFGHIJKLMNOP",
        );
        is_other("J-Link>mem32 0x1FFF7590,3");
        is_other("Writing 00000001 -> 4902F03C");
        is_other("Could not read memory.");
        is_other("PC = 00000154, CycleCnt = 00000000");
        is_other("SP(R13)= 20003FD0, MSP= 20003FD0, PSP= 00000000, R14(LR) = FFFFFFF9");
    }

    /// Printed by pyOCD 0.46 (pyocd/utility/hex.py, dump_hex_data).
    #[test]
    fn pyocd_prints_the_characters_between_bars() {
        let words = [0xac, 1, 0, 0, 0x54, 2, 0, 0, 0x69, 2, 0, 0, 0x54, 1, 0, 0];
        let at = 0x2000_1010;
        is_memory(
            "20001010:  000001ac 00000254 00000269 00000154    |.......T...i...T|",
            Tool::PyOcd,
            at,
            &words,
        );
        let text = "20001010:  ac 01 00 00  54 02 00 00  69 02 00 00  54 01 00 00    |....T...i...T...|";
        is_memory(text, Tool::PyOcd, at, &words);
        let text = "20001010:  01ac 0000                                  |....|";
        is_memory(text, Tool::PyOcd, at, &words[..4]);
        let text = "20001010:  00000254000001ac                     |...T....|";
        is_memory(text, Tool::PyOcd, at, &words[..8]);
        is_memory("20001000:  7c7c7c7c    ||||||", Tool::PyOcd, 0x2000_1000, b"||||");
    }

    /// probe-rs 0.32, probe-rs-tools/src/bin/probe-rs/cmd/read.rs, write_hex_table.
    #[test]
    fn probe_rs_prints_a_table() {
        let words = [0x4a, 1, 0, 0, 0x42, 1, 0, 0];
        is_memory("20001000: 0000014a 00000142", Tool::ProbeRs, 0x2000_1000, &words);
        is_memory("20001000: 4a 01 00 00 42 01 00 00", Tool::ProbeRs, 0x2000_1000, &words);
        is_memory("20001000: 014a 0000 0142 0000", Tool::ProbeRs, 0x2000_1000, &words);
    }

    #[test]
    fn a_damaged_line_is_no_memory() {
        is_damaged("0x20001000:\t0x0000014a\t0x0000142", Tool::Gdb, "0x0000142");
        is_damaged("0x20001000:\t0xOOOO014a\t0x00000142", Tool::Gdb, "0xOOOO014a\t0x00000142");
        is_damaged("0x20001000:\t0x0000014a\t0x014a", Tool::Gdb, "0x014a");
        is_damaged("0x20001000:\t0x0000014a\t322", Tool::Gdb, "322");
        is_damaged("0x20001000: 0000014a 0000142", Tool::OpenOcd, "0000142");
        is_damaged("0x20001000: 0000014a  00000142", Tool::OpenOcd, "00000142");
        is_damaged("20001000 = 0000014A 0000O142", Tool::JLink, "0000O142");
        let cut_off = "20001010:  000001ac 00000254 00000269 00000154    |.......T...";
        is_damaged(cut_off, Tool::PyOcd, cut_off.strip_prefix("20001010:  ").unwrap());
        is_damaged("20001000: 0000014a +0000142", Tool::ProbeRs, "+0000142");
    }

    /// xxd prints pairs of bytes in memory order, which differs from a two-byte number.
    #[test]
    fn what_xxd_prints_is_not_taken_for_numbers() {
        let characters = "J...B...L.......";
        is_damaged(
            "00000000: 4a01 0000 4201 0000 4c01 0000 a801 0000  J...B...L.......",
            Tool::ProbeRs,
            characters,
        );
        is_damaged(
            "00000000: 4a010000 42010000 4c010000 a8010000  J...B...L.......",
            Tool::ProbeRs,
            characters,
        );
        is_other("00000000  4a 01 00 00 42 01 00 00  4c 01 00 00 a8 01 00 00  |J...B...L.......|");
    }

    #[test]
    fn numbers_without_addresses_are_one_line() {
        assert_eq!(numbers_alone("0000014a 00000142 0000014c 000001a8\n").unwrap().len(), 16);
        assert_eq!(numbers_alone("4a 01 00 00"), Some(vec![0x4a, 1, 0, 0]));
        assert_eq!(
            numbers_alone("20000000 051780C1 65C9A012 2000040A\n20000010 00080001 FFFFFFFF FFFFFFFF"),
            None
        );
        assert_eq!(numbers_alone("0000014a 00000142 0000014c 01a8"), None);
        assert_eq!(numbers_alone("be ad"), None);
    }
}
