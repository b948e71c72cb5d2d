//! Value change dumps (`.vcd`; IEEE 1364-2005, clause 18), as sigrok, PulseView, DSView and simulators write them.
//!
//! Text, in words between blanks:
//!
//! ```text
//! $timescale 1 ns $end
//! $scope module top $end
//! $var wire 1 ! SWO $end           one bit, called `!` below
//! $var wire 4 # TRACEDATA [3:0] $end
//! $upscope $end
//! $enddefinitions $end
//! #0 1! b0101 #                    at time 0 both have these values
//! #25 0!
//! ```
//!
//! For a level that is unknown or not driven (`x`, `z`), the last known level is kept. This module has its
//! own reader instead of a library because simulators' files are large and untrusted: words and depths have a
//! limit, only the requested channels are kept, and everything else is skipped.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::sync::Arc;

use super::changes::{Change, Changes, Levels, Tick};
use super::error::RecordingProblem as Problem;
use super::place::{Header, Layout, Place, ReadSeek, RecordingFormat};
use crate::capture::error::CaptureError;
use crate::excerpt::excerpt;

/// A value change dump starts with one of its keywords.
pub(super) const FORMAT: RecordingFormat = RecordingFormat { sniff: |_, head| is_dump(head), read };

/// The start of the values, and the channels that identifier codes stand for.
#[derive(Clone, Debug)]
struct Dump {
    body: Position,
    variables: Vec<Variable>,
}

/// A channel: one bit of a VCD variable.
#[derive(Clone, Debug)]
struct Variable {
    code: Arc<[u8]>,
    bit: usize,
}

/// A place in the file.
#[derive(Clone, Copy, Debug)]
struct Position {
    offset: u64,
    line: u32,
}

/// The longest word. A value has a digit for each bit of its variable.
const LONGEST_WORD: usize = 1 << 16;

/// The most channels, and the most bits of a variable that become channels. Wider variables are not pins.
const MOST_CHANNELS: usize = 1 << 16;
const MOST_BITS: u32 = 64;

fn is_dump(head: &[u8]) -> bool {
    const WORDS: [&[u8]; 6] = [b"$date", b"$version", b"$comment", b"$timescale", b"$scope", b"$var"];
    let start = head.trim_ascii_start();
    WORDS.iter().any(|word| start.starts_with(word))
}

fn read(place: &Place) -> Result<Header, CaptureError> {
    let mut words = Words::open(place, Position { offset: 0, line: 1 })?;
    let mut ticks_per_second = None;
    let mut scopes = Vec::new();
    let mut names = Vec::new();
    let mut variables = Vec::new();
    while let Some(word) = words.next()?.map(str::to_owned) {
        match word.as_str() {
            "$enddefinitions" => {
                words.section()?;
                break;
            }
            "$timescale" => {
                let scale = words.section()?.concat();
                let rate = parse_timescale(&scale);
                ticks_per_second = Some(rate.ok_or_else(|| {
                    let expected = "a time like 1 ns";
                    words.error(Problem::Value { key: "$timescale", expected, found: excerpt(&scale) })
                })?);
            }
            "$scope" => {
                let section = words.section()?;
                scopes.push(Arc::<str>::from(section.get(1).map_or("", String::as_str)));
            }
            "$upscope" => {
                words.section()?;
                scopes.pop();
            }
            "$var" => {
                let section = words.section()?;
                let found = add_variable(&section, scopes.last(), &mut names, &mut variables);
                found.map_err(|problem| words.error(problem))?;
            }
            word if word.starts_with('$') => words.skip_section()?,
            word => {
                let expected = "$timescale, $scope, $var or $enddefinitions";
                let found = excerpt(word);
                return Err(words.error(Problem::Value { key: "the header", expected, found }));
            }
        }
    }
    if variables.is_empty() {
        return Err(place.error(None, Problem::NoChannels));
    }
    let layout = Arc::new(Dump { body: words.position, variables });
    Ok(Header { layout, channels: distinct(names), ticks_per_second })
}

/// Parses `1ns`, `10us` into the number of units in a second.
fn parse_timescale(text: &str) -> Option<f64> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number =
        text.strip_suffix(unit)?.parse::<u16>().ok().filter(|number| matches!(number, 1 | 10 | 100))?;
    let in_second = match unit {
        "s" => 1.0,
        "ms" => 1e3,
        "us" => 1e6,
        "ns" => 1e9,
        "ps" => 1e12,
        "fs" => 1e15,
        _ => return None,
    };
    Some(in_second / f64::from(number))
}

/// A channel's name in its scope.
type Named = (String, Option<Arc<str>>);

/// Adds the channels of `$var TYPE WIDTH CODE NAME [RANGE] $end`.
fn add_variable(
    section: &[String],
    scope: Option<&Arc<str>>,
    names: &mut Vec<Named>,
    variables: &mut Vec<Variable>,
) -> Result<(), Problem> {
    let [_kind, width, code, name, range @ ..] = section else {
        let found = excerpt(&section.join(" "));
        return Err(Problem::Value { key: "$var", expected: "type, width, code and name", found });
    };
    let width = width.parse::<u32>().ok().filter(|width| *width > 0).ok_or_else(|| Problem::Value {
        key: "$var",
        expected: "a width in bits",
        found: excerpt(width),
    })?;
    if width > MOST_BITS {
        return Ok(());
    }
    let code = Arc::<[u8]>::from(code.as_bytes());
    // `name[3:0]` and `name [3:0]` are both in use; the range of a single bit is part of its name.
    let range = range.concat();
    let base = if range.is_empty() && width > 1 { name.split('[').next().unwrap_or(name) } else { name };
    for bit in 0..width {
        let name = match width {
            1 => format!("{name}{range}"),
            _ => format!("{base}[{bit}]"),
        };
        names.push((name, scope.cloned()));
        variables.push(Variable { code: Arc::clone(&code), bit: bit as usize });
    }
    if variables.len() > MOST_CHANNELS {
        return Err(Problem::TooMuch { what: "channels", limit: MOST_CHANNELS as u64 });
    }
    Ok(())
}

/// Prepends the scope to names that several channels share.
fn distinct(names: Vec<Named>) -> Vec<String> {
    let mut counts = HashMap::<String, usize>::new();
    for (name, _) in &names {
        *counts.entry(name.clone()).or_default() += 1;
    }
    let is_single = |name: &str| counts.get(name).is_none_or(|count| *count == 1);
    let full = names.into_iter().map(|(name, scope)| match scope {
        Some(scope) if !is_single(&name) => format!("{scope}.{name}"),
        _ => name,
    });
    full.collect()
}

/// The words of a file.
struct Words<'a> {
    place: &'a Place,
    reader: BufReader<Box<dyn ReadSeek>>,
    position: Position,
    word: Vec<u8>,
}

impl<'a> Words<'a> {
    fn open(place: &'a Place, position: Position) -> Result<Self, CaptureError> {
        let reader = BufReader::with_capacity(1 << 16, place.open(position.offset)?);
        Ok(Self { place, reader, position, word: Vec::new() })
    }

    fn error(&self, problem: Problem) -> CaptureError {
        self.place.error(Some(self.position.line), problem)
    }

    /// Reads the next word into `self.word`, which is empty at the end.
    fn advance(&mut self) -> Result<(), CaptureError> {
        self.word.clear();
        loop {
            let buffer = self.reader.fill_buf().map_err(|error| self.place.io_error(error))?;
            if buffer.is_empty() {
                return Ok(());
            }
            let mut used = 0;
            let mut is_complete = false;
            for &byte in buffer {
                if byte.is_ascii_whitespace() {
                    // The blank after a word is not consumed, so that the position's line is still the
                    // word's.
                    is_complete = !self.word.is_empty();
                    if is_complete {
                        break;
                    }
                    self.position.line = self.position.line.saturating_add(u32::from(byte == b'\n'));
                } else {
                    self.word.push(byte);
                }
                used += 1;
            }
            self.reader.consume(used);
            self.position.offset += used as u64;
            if self.word.len() > LONGEST_WORD {
                let limit = LONGEST_WORD as u64;
                return Err(self.error(Problem::TooMuch { what: "letters in a word", limit }));
            }
            if is_complete {
                return Ok(());
            }
        }
    }

    /// The next word; `None` at the end.
    fn next(&mut self) -> Result<Option<&str>, CaptureError> {
        self.advance()?;
        let Self { word, place, position, .. } = self;
        let text = std::str::from_utf8(word).map_err(|_| {
            let found = excerpt(&String::from_utf8_lossy(word));
            place.error(Some(position.line), Problem::Value { key: "a word", expected: "text", found })
        })?;
        Ok((!text.is_empty()).then_some(text))
    }

    /// The words up to `$end`.
    fn section(&mut self) -> Result<Vec<String>, CaptureError> {
        /// No declaration has more words.
        const MOST_WORDS: usize = 16;
        let mut section = Vec::new();
        loop {
            match self.next()? {
                None => return Err(self.error(Problem::MissingKey { key: "$end" })),
                Some("$end") => return Ok(section),
                Some(word) => section.push(excerpt(word)),
            }
            if section.len() > MOST_WORDS {
                let limit = MOST_WORDS as u64;
                return Err(self.error(Problem::TooMuch { what: "words in a declaration", limit }));
            }
        }
    }

    /// Skips up to `$end`; the words before it need not be text.
    fn skip_section(&mut self) -> Result<(), CaptureError> {
        loop {
            self.advance()?;
            match self.word.as_slice() {
                b"" => return Err(self.error(Problem::MissingKey { key: "$end" })),
                b"$end" => return Ok(()),
                _ => {}
            }
        }
    }
}

impl Layout for Dump {
    fn changes<'a>(
        &'a self,
        place: &'a Place,
        channels: &[usize],
    ) -> Result<Box<dyn Changes + 'a>, CaptureError> {
        let mut wanted = HashMap::<Arc<[u8]>, Vec<(usize, usize)>>::new();
        for (index, variable) in channels
            .iter()
            .enumerate()
            .filter_map(|(index, &channel)| Some((index, self.variables.get(channel)?)))
        {
            wanted.entry(Arc::clone(&variable.code)).or_default().push((variable.bit, index));
        }
        Ok(Box::new(DumpChanges {
            words: Words::open(place, self.body)?,
            wanted,
            now: None,
            levels: Levels::default(),
            reported: None,
            is_done: false,
        }))
    }
}

/// The changes in a dump.
struct DumpChanges<'a> {
    words: Words<'a>,
    /// The requested bits of each variable, and the indices of their channels.
    wanted: HashMap<Arc<[u8]>, Vec<(usize, usize)>>,
    now: Option<Tick>,
    levels: Levels,
    /// The levels of the last change that was reported.
    reported: Option<Levels>,
    is_done: bool,
}

/// The digits of a known level.
const LOW: u8 = b'0';
const HIGH: u8 = b'1';

impl DumpChanges<'_> {
    /// Reads up to the next change, or to the end.
    fn advance(&mut self) -> Result<Option<Change>, CaptureError> {
        loop {
            self.words.advance()?;
            // `b0101 !`: the value and the code are separate words.
            let has_code = matches!(self.words.word.first(), Some(b'b' | b'B' | b'r' | b'R' | b's' | b'S'));
            match self.words.word.as_slice() {
                [] => {
                    self.is_done = true;
                    return Ok(self.now.map(|at| Change { at, levels: self.levels }));
                }
                [b'#', digits @ ..] => {
                    let time = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
                    let time = Tick(time.ok_or_else(|| self.unexpected("a time"))?);
                    if let Some(change) = self.go_to(time)? {
                        return Ok(Some(change));
                    }
                }
                // `$dumpvars` and `$end` enclose values like any others.
                [b'$', word @ ..] => {
                    if word == b"comment" {
                        self.words.skip_section()?;
                    }
                }
                value if has_code => {
                    let value = value.to_vec();
                    self.words.advance()?;
                    if matches!(value.first(), Some(b'b' | b'B')) {
                        self.take(value.get(1..).unwrap_or_default());
                    }
                }
                [value @ (LOW | HIGH | b'x' | b'X' | b'z' | b'Z'), code @ ..] => {
                    let value = [*value];
                    if let Some(bits) = self.wanted.get(code) {
                        take(&value, bits, &mut self.levels);
                    }
                }
                _ => return Err(self.unexpected("a time or a value")),
            }
        }
    }

    /// Takes the value of the variable that `words.word` names.
    fn take(&mut self, value: &[u8]) {
        if let Some(bits) = self.wanted.get(self.words.word.as_slice()) {
            take(value, bits, &mut self.levels);
        }
    }

    /// Advances the time, and returns the change that this completes.
    fn go_to(&mut self, time: Tick) -> Result<Option<Change>, CaptureError> {
        let before = self.now.replace(time);
        let Some(before) = before.filter(|before| *before != time) else { return Ok(None) };
        if before > time {
            return Err(self.words.error(Problem::TimeGoesBack));
        }
        if self.reported == Some(self.levels) {
            return Ok(None);
        }
        self.reported = Some(self.levels);
        Ok(Some(Change { at: before, levels: self.levels }))
    }

    fn unexpected(&self, expected: &'static str) -> CaptureError {
        let found = excerpt(&String::from_utf8_lossy(&self.words.word));
        self.words.error(Problem::Value { key: "a change", expected, found })
    }
}

/// Sets the levels of the channels that are bits of this value, whose first digit is its highest bit.
fn take(value: &[u8], bits: &[(usize, usize)], levels: &mut Levels) {
    for &(bit, index) in bits {
        // Omitted leading digits of a value are 0, unless the value starts with x or z.
        let letter = value.len().checked_sub(bit + 1).and_then(|place| value.get(place));
        match *letter.or(value.first().filter(|first| !matches!(first, b'0' | b'1'))).unwrap_or(&LOW) {
            LOW => *levels = levels.with(index, false),
            HIGH => *levels = levels.with(index, true),
            _ => {}
        }
    }
}

impl Iterator for DumpChanges<'_> {
    type Item = Result<Change, CaptureError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let next = self.advance();
        self.is_done |= next.is_err();
        next.transpose()
    }
}
