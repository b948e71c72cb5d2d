//! Listings of a file's bytes: `xxd`, `hexdump` and `od`.
//!
//! ```text
//! xxd             00000000: 4a01 0000 4201 0000 4c01 0000 a801 0000  J...B...L.......
//! xxd -e          00000000: 0000014a 00000142 0000014c 000001a8  J...B...L.......
//! hexdump -C      00000000  4a 01 00 00 42 01 00 00  4c 01 00 00 a8 01 00 00  |J...B...L.......|
//! hexdump         0000000 014a 0000 0142 0000 014c 0000 01a8 0000
//! od -A x -t x4   000000 0000014a 00000142 0000014c 000001a8
//! xxd -p          4a010000420100004c010000a8010000
//! ```
//!
//! A listing is recognised as a whole: the characters have to match the bytes, or, if there are none, lines
//! have to be consecutive. The characters also show whether `xxd` printed numbers or bytes. A line `*` stands
//! for repetitions of the preceding line.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::problem::{DumpProblem, Located};
use super::tool::Tool;
use crate::excerpt::excerpt;
use crate::records::Assembly;

/// A listing in a text.
pub(super) struct Listing {
    pub(super) tool: Tool,
    pub(super) memory: Assembly,
    /// The possible addresses of rows: from one row before the first to the end of the last.
    pub(super) extent: Range<u64>,
    /// Whether addresses count the bytes of a file.
    pub(super) is_file: bool,
    /// The lines that belong to the listing.
    pub(super) lines: BTreeSet<u32>,
    pub(super) damage: Vec<(u32, DumpProblem)>,
}

impl Listing {
    /// Records a line that is not used.
    fn damage(&mut self, number: u32, text: &str) {
        self.lines.insert(number);
        let problem = DumpProblem::Values { tool: self.tool, found: excerpt(text.trim()) };
        self.damage.push((number, problem));
    }
}

/// The usual form of a row.
struct Usual {
    /// The number of bytes.
    length: usize,
    /// The number of bytes in the first group.
    width: usize,
}

impl Usual {
    fn of(rows: &[&Row<'_>]) -> Self {
        Self {
            length: most_frequent(rows.iter().map(|row| row.len())),
            width: most_frequent(rows.iter().map(|row| row.width())),
        }
    }
}

fn most_frequent(values: impl Iterator<Item = usize>) -> usize {
    let mut counts = BTreeMap::<usize, usize>::new();
    values.for_each(|value| *counts.entry(value).or_default() += 1);
    counts.into_iter().max_by_key(|(_, count)| *count).map_or(0, |(value, _)| value)
}

/// A listing of a file starts at 0; no chip has memory for an MTB below this address.
const LOWEST_MEMORY: u64 = 0x1000_0000;
/// The most bytes that lines `*` may stand for in total.
const MOST_REPEATED: u64 = 16 << 20;

/// Finds a listing; `None` if there is none.
pub(super) fn read(text: &str) -> Result<Option<Listing>, Located> {
    let lines = (1..=u32::MAX).zip(text.lines());
    let lines = lines.filter_map(|(number, text)| Some((number, text, line(text)?))).collect::<Vec<_>>();
    let tool = lines.iter().find_map(|(.., line)| match line {
        Line::Row(row) => Some(row.tool),
        _ => None,
    });
    let Some(tool) = tool else { return Ok(None) };
    let rows = lines.iter().filter_map(|(.., line)| match line {
        Line::Row(row) if row.tool == tool => Some(row),
        _ => None,
    });
    let rows = rows.collect::<Vec<_>>();
    let Some(swapped) = order_of(&rows) else { return Ok(None) };
    let usual = Usual::of(&rows);
    let Some(radix) = radix_of(tool, &lines) else { return Ok(None) };
    let address = |digits: &str| u64::from_str_radix(digits, radix).ok();
    let mut listing = Listing {
        tool,
        memory: Assembly::default(),
        extent: 0..0,
        is_file: rows.first().and_then(|row| address(row.digits)).is_some_and(|first| first < LOWEST_MEMORY),
        lines: BTreeSet::new(),
        damage: Vec::new(),
    };
    let mut rows = Vec::<(u64, Vec<u8>, u32)>::new();
    // The line that stands for repetitions of the last row, up to the next one.
    let (mut repeat, mut repeated) = (None, 0);
    for (number, text, line) in &lines {
        let at = match line {
            // xxd and hexdump print a partial last group, and characters that verify it; od prints no
            // characters.
            Line::Row(row) if row.tool == tool && tool == Tool::Od && row.width() != usual.width => {
                listing.damage(*number, text);
                continue;
            }
            Line::Row(row) if row.tool == tool => address(row.digits),
            Line::End(digits) => address(digits),
            Line::Repeat => {
                listing.lines.insert(*number);
                let is_of = |(_, bytes, line): &(u64, Vec<u8>, u32)| {
                    line + 1 == *number && bytes.len() == usual.length
                };
                let is_known = repeat == Some(*number - 1) || rows.last().is_some_and(is_of);
                repeat = is_known.then_some(*number);
                // The row to be repeated was cut short, or is missing.
                if !is_known {
                    listing.damage(*number, text);
                }
                continue;
            }
            Line::Row(_) => continue,
            Line::Damaged(of) if *of == tool => {
                listing.damage(*number, text);
                continue;
            }
            Line::Damaged(_) => continue,
        };
        let (Some(at), end) = (at, rows.last().map(|(start, bytes, _)| start + bytes.len() as u64)) else {
            continue;
        };
        listing.lines.insert(*number);
        if repeat.take() == Some(*number - 1)
            && let (Some(end), Some((_, pattern, _))) = (end, rows.last().cloned())
        {
            let missing = at.saturating_sub(end);
            repeated += missing;
            if repeated > MOST_REPEATED {
                return Err((Some(*number), DumpProblem::Repeats { bytes: repeated, most: MOST_REPEATED }));
            }
            let bytes = pattern.iter().copied().cycle().take(usize::try_from(missing).unwrap_or(0));
            rows.push((end, bytes.collect(), *number));
        }
        match line {
            Line::Row(row) => rows.push((at, row.bytes(swapped), *number)),
            // hexdump and od pad the last number.
            _ => {
                if let Some((start, bytes, _)) = rows.last_mut() {
                    bytes.truncate(usize::try_from(at.saturating_sub(*start)).unwrap_or(usize::MAX));
                }
            }
        }
    }
    let first = rows.iter().map(|(at, ..)| at.saturating_sub(usual.length as u64)).min();
    let end = rows.iter().map(|(at, bytes, _)| at.saturating_add(bytes.len() as u64 + 1)).max();
    listing.extent = first.unwrap_or(0)..end.unwrap_or(0);
    for (at, bytes, number) in rows {
        listing.memory.add(at, &bytes, Some(number)).map_err(|(line, problem)| (line, problem.into()))?;
    }
    Ok(Some(listing))
}

/// The bytes of a listing without addresses, as `xxd -p` prints it: lines of digits, all of equal length
/// except the last.
pub(super) fn plain(text: &str) -> Option<Vec<u8>> {
    /// Shorter lines may be numbers, whose byte order differs.
    const FEWEST_DIGITS: usize = 18;
    let lines = text.lines().map(str::trim_end).collect::<Vec<_>>();
    let (last, others) = lines.split_last()?;
    let length = lines.first()?.len();
    let is_plain = |line: &&str| line.len() == length && line.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_whole =
        length >= FEWEST_DIGITS && others.iter().all(is_plain) && last.len() <= length && !last.is_empty();
    if !is_whole || lines.len() < 2 {
        return None;
    }
    let bytes = lines.iter().map(|line| hex(line)).collect::<Option<Vec<_>>>()?;
    Some(bytes.concat())
}

/// The kind of a line.
enum Line<'a> {
    Row(Row<'a>),
    /// A line that begins like a row of this tool.
    Damaged(Tool),
    /// Repetitions of the preceding line.
    Repeat,
    /// The end of the listing.
    End(&'a str),
}

struct Row<'a> {
    tool: Tool,
    /// The digits of the address.
    digits: &'a str,
    groups: Vec<Vec<u8>>,
    /// Whether the characters show that groups are bytes, and whether they show little-endian numbers.
    as_bytes: bool,
    as_numbers: bool,
}

impl Row<'_> {
    fn width(&self) -> usize {
        self.groups.first().map_or(0, Vec::len)
    }

    fn len(&self) -> usize {
        self.groups.iter().map(Vec::len).sum()
    }

    fn bytes(&self, swapped: bool) -> Vec<u8> {
        let group = |group: &Vec<u8>| -> Vec<u8> {
            if swapped { group.iter().rev().copied().collect() } else { group.clone() }
        };
        self.groups.iter().flat_map(group).collect()
    }
}

fn line(text: &str) -> Option<Line<'_>> {
    let text = text.trim_end_matches(['\r', '\n']);
    if text.trim_end() == "*" {
        return Some(Line::Repeat);
    }
    let end = text.find(|character: char| !character.is_ascii_hexdigit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    if !(6..=16).contains(&digits.len()) {
        return None;
    }
    if rest.trim_end().is_empty() {
        return Some(Line::End(digits));
    }
    if let Some(rest) = rest.strip_prefix(": ").filter(|_| digits.len() >= 8) {
        return xxd(digits, rest);
    }
    let rest = rest.strip_prefix(' ')?;
    if let Some((numbers, characters)) = rest.split_once("  |") {
        return Some(with_characters(
            Tool::Hexdump,
            digits,
            numbers,
            characters.trim_end().strip_suffix('|'),
        ));
    }
    if let Some((numbers, characters)) = rest.split_once("  >") {
        return Some(with_characters(Tool::Od, digits, numbers, characters.trim_end().strip_suffix('<')));
    }
    columns(digits, rest)
}

/// Parses groups, two blanks, and the characters.
fn xxd<'a>(digits: &'a str, rest: &'a str) -> Option<Line<'a>> {
    let (numbers, characters) = rest.split_once("  ")?;
    let groups = numbers.split(' ').map(hex).collect::<Option<Vec<_>>>()?;
    let mut row = Row { tool: Tool::Xxd, digits, groups, as_bytes: false, as_numbers: false };
    let count = row.len();
    // Short lines have blanks before the characters; some editors strip trailing blanks.
    let length = characters.chars().count();
    let padding = characters.chars().take(length.saturating_sub(count));
    let is_padded = padding.clone().all(|character| character == ' ');
    let shown =
        characters.chars().skip(length.saturating_sub(count)).chain(std::iter::repeat(' ')).take(count);
    let shown = shown.collect::<String>();
    row.as_bytes = is_padded && shown == characters_of(&row.bytes(false));
    row.as_numbers = is_padded && shown == characters_of(&row.bytes(true));
    Some(if row.as_bytes || row.as_numbers { Line::Row(row) } else { Line::Damaged(Tool::Xxd) })
}

fn with_characters<'a>(tool: Tool, digits: &'a str, numbers: &'a str, characters: Option<&str>) -> Line<'a> {
    let is_swapped = tool == Tool::Od;
    match groups(numbers) {
        Some(groups) if !groups.is_empty() => {
            let row = Row { tool, digits, groups, as_bytes: !is_swapped, as_numbers: is_swapped };
            // od pads a short line before its characters.
            let fits = characters.is_some_and(|found| found == characters_of(&row.bytes(is_swapped)));
            if fits { Line::Row(row) } else { Line::Damaged(tool) }
        }
        _ => Line::Damaged(tool),
    }
}

/// Parses numbers without characters.
fn columns<'a>(digits: &'a str, rest: &'a str) -> Option<Line<'a>> {
    let groups = groups(rest)?;
    let row = Row { tool: Tool::Od, digits, groups, as_bytes: false, as_numbers: true };
    (!row.groups.is_empty()).then_some(Line::Row(row))
}

/// Numbers of equal width: one, two, four or eight bytes.
fn groups(text: &str) -> Option<Vec<Vec<u8>>> {
    let groups = text.split_whitespace().map(hex).collect::<Option<Vec<_>>>()?;
    let width = groups.first().map_or(0, Vec::len);
    let are_alike = matches!(width, 0 | 1 | 2 | 4 | 8) && groups.iter().all(|group| group.len() == width);
    // Numbers are written with the highest byte first.
    are_alike.then_some(groups)
}

/// Whether the columns are numbers, whose bytes are printed in reverse order; `None` if the characters do not
/// show it.
fn order_of(rows: &[&Row<'_>]) -> Option<bool> {
    let as_bytes = rows.iter().all(|row| row.as_bytes);
    let as_numbers = rows.iter().all(|row| row.as_numbers);
    let is_same = || rows.iter().all(|row| row.bytes(false) == row.bytes(true));
    match (as_bytes, as_numbers) {
        (true, false) => Some(false),
        (false, true) => Some(true),
        (true, true) if is_same() => Some(false),
        _ => None,
    }
}

/// The radix of addresses: the one that makes most lines consecutive.
fn radix_of(tool: Tool, lines: &[(u32, &str, Line<'_>)]) -> Option<u32> {
    let steps = |radix: u32| {
        let mut before = None::<u64>;
        let (mut good, mut all) = (0_usize, 0_usize);
        for (.., line) in lines {
            let (digits, length) = match line {
                Line::Row(row) if row.tool == tool => (row.digits, row.len() as u64),
                Line::End(digits) => (*digits, 0),
                Line::Repeat => {
                    before = None;
                    continue;
                }
                _ => continue,
            };
            let at = u64::from_str_radix(digits, radix).ok()?;
            // The last number may be padded.
            let goes_on = before.is_some_and(|end| end == at || length == 0 && at < end && end - at < 8);
            good += usize::from(goes_on);
            all += usize::from(before.is_some());
            before = at.checked_add(length);
        }
        Some((good, all))
    };
    // Characters suffice as proof, and the tools that print them use hexadecimal addresses.
    if tool != Tool::Od {
        return Some(16);
    }
    let known = [16, 10, 8].into_iter().filter_map(|radix| Some((steps(radix)?, radix)));
    // `max_by_key` returns the last of equal candidates; the reversed order makes that the first radix.
    let ((good, all), radix) = known.rev().max_by_key(|((good, _), _)| *good)?;
    // Two lines do not show whether a line between them is missing or offsets are octal.
    let is_listing = if radix == 16 { good * 2 > all } else { good >= 4 && good * 8 >= all * 7 };
    is_listing.then_some(radix)
}

fn characters_of(bytes: &[u8]) -> String {
    let shown = |byte: &u8| if matches!(byte, 0x20..=0x7e) { char::from(*byte) } else { '.' };
    bytes.iter().map(shown).collect()
}

/// The bytes of pairs of hexadecimal digits.
fn hex(digits: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let byte = |&[high, low]: &[u8; 2]| Some(digit(high)? << 4 | digit(low)?);
    (rest.is_empty() && !pairs.is_empty()).then(|| pairs.iter().map(byte).collect())?
}
