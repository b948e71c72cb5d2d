//! Sessions of sigrok (`.sr`): a zip file with the samples in chunks.
//!
//! `metadata` is an INI file that states how a sample is packed:
//!
//! ```text
//! [device 1]
//! capturefile=logic-1      samples are in `logic-1`, or in `logic-1-1`, `logic-1-2` …
//! total probes=8
//! samplerate=24 MHz
//! unitsize=1               bytes of one sample; channel n is bit n-1, the first byte holds the lowest bits
//! probe5=SWO               the name of channel 5
//! ```
//!
//! Samples are unpacked piece by piece and never kept. Their number is bounded by the size that a chunk
//! states, by its actual data, and by a limit.

use std::io::{self, BufReader, Read};
use std::sync::Arc;

use flate2::Crc;
use flate2::bufread::DeflateDecoder;
use zip::{CompressionMethod, ZipArchive};

use super::Samples;
use super::changes::{Change, Changes, Levels, Tick};
use super::error::RecordingProblem as Problem;
use super::place::{Header, Layout, Place, ReadSeek, RecordingFormat};
use crate::capture::error::{CaptureError, CaptureErrorKind};
use crate::capture::ini::{Ini, Section};
use crate::excerpt::excerpt;
use crate::file::{LONGEST_CAPTURE, LONGEST_TEXT};
use crate::number;

/// A session is a zip file.
pub(super) const FORMAT: RecordingFormat =
    RecordingFormat { sniff: |_, head| head.starts_with(b"PK\x03\x04"), read };

/// The layout of the samples in the archive.
#[derive(Clone, Debug)]
struct Session {
    chunks: Vec<Entry>,
    /// The number of bytes in a sample, 1 to 8.
    unit: usize,
    /// The bit of each channel in a sample.
    bits: Vec<u32>,
}

/// A file in the archive.
#[derive(Clone, Debug)]
struct Entry {
    name: String,
    method: CompressionMethod,
    start: u64,
    packed: u64,
    unpacked: u64,
    /// The expected checksum, if the file has one.
    crc: Option<u32>,
}

fn read(place: &Place) -> Result<Header, CaptureError> {
    let zip_error =
        |error: zip::result::ZipError| place.error(None, Problem::Zip(excerpt(&error.to_string())));
    let mut archive = ZipArchive::new(BufReader::new(place.open(0)?)).map_err(zip_error)?;
    let metadata = entry(&mut archive, "metadata");
    let metadata = metadata.ok_or_else(|| no_entry(place, "metadata"))?;
    let ini = read_metadata(place, &metadata)?;
    let device = ini.sections.iter().find(|section| section.entry("capturefile").is_some());
    let device = device.ok_or_else(|| place.error(None, Problem::MissingKey { key: "capturefile" }))?;
    let description = Device::read(device).map_err(|problem| place.error(None, problem))?;
    let chunks = chunks(place, &mut archive, &description.file)?;
    let (bits, channels) = description.probes.into_iter().unzip();
    Ok(Header {
        layout: Arc::new(Session { chunks, unit: description.unit, bits }),
        channels,
        ticks_per_second: description.rate,
    })
}

/// The samples of sigrok's format `binary`, which has no header. Channels are named by their bit numbers.
pub(super) fn bare(place: &Place, samples: Samples) -> Result<Header, CaptureError> {
    let length = place.length()?;
    let unit = usize::from(samples.bytes).clamp(1, size_of::<u64>());
    let (bits, channels) =
        (0..8 * u32::from(samples.bytes).clamp(1, 8)).map(|bit| (bit, bit.to_string())).unzip();
    let all = Entry {
        name: "samples".to_owned(),
        method: CompressionMethod::Stored,
        start: 0,
        packed: length,
        unpacked: length,
        crc: None,
    };
    let layout = Session { chunks: vec![all], unit, bits };
    Ok(Header { layout: Arc::new(layout), channels, ticks_per_second: Some(samples.rate as f64) })
}

/// The device, from `metadata`.
struct Device {
    file: String,
    unit: usize,
    rate: Option<f64>,
    /// Each channel's bit in a sample, and its name.
    probes: Vec<(u32, String)>,
}

impl Device {
    fn read(section: &Section) -> Result<Self, Problem> {
        let text = |key: &str| section.entry(key).map(|entry| entry.value.as_str());
        let file = text("capturefile").unwrap_or_default().to_owned();
        let unit = match text("unitsize") {
            None => 1,
            Some(unit) => number::parse(unit).and_then(|unit| usize::try_from(unit).ok()).unwrap_or(0),
        };
        if !(1..=size_of::<u64>()).contains(&unit) {
            let found = excerpt(text("unitsize").unwrap_or_default());
            return Err(Problem::Value { key: "unitsize", expected: "a number from 1 to 8", found });
        }
        let rate = match text("samplerate") {
            None => None,
            Some(rate) => Some(parse_rate(rate).ok_or_else(|| {
                let expected = "a rate like 24 MHz";
                Problem::Value { key: "samplerate", expected, found: excerpt(rate) }
            })?),
        };
        let mut probes = Vec::new();
        for number in (1_u32..).take(unit * 8) {
            if let Some(name) = text(&format!("probe{number}")) {
                probes.push((number - 1, name.to_owned()));
            }
        }
        if probes.is_empty() {
            return Err(Problem::NoChannels);
        }
        // Some programs write an unknown rate as 0.
        Ok(Self { file, unit, rate: rate.filter(|rate| *rate > 0.0), probes })
    }
}

/// Reads `24 MHz`, `1.5 kHz` or `1000000` (in Hz).
pub fn parse_rate(text: &str) -> Option<f64> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).trim_end();
    let factor = match text.get(digits.len()..)?.trim().to_ascii_lowercase().as_str() {
        "" | "hz" => 1.0,
        "k" | "khz" => 1e3,
        "m" | "mhz" => 1e6,
        "g" | "ghz" => 1e9,
        _ => return None,
    };
    let is_plain = digits.starts_with(|c: char| c.is_ascii_digit());
    let number = digits.parse::<f64>().ok().filter(|number| is_plain && number.is_finite())?;
    Some(number * factor)
}

fn read_metadata(place: &Place, entry: &Entry) -> Result<Ini, CaptureError> {
    if entry.unpacked > LONGEST_TEXT {
        let what = "bytes of `metadata`";
        return Err(place.error(None, Problem::TooMuch { what, limit: LONGEST_TEXT }));
    }
    let mut bytes = Vec::new();
    let read = Unpacked::open(place, entry)?.read_to_end(&mut bytes);
    read.map_err(|error| entry_error(place, &entry.name, &error))?;
    let text = String::from_utf8_lossy(&bytes);
    Ini::parse(&text).map_err(|(line, kind)| match kind {
        CaptureErrorKind::Line { found } => {
            let problem = format!("has `{found}` in line {line}, expected key=value");
            place.error(None, Problem::Entry { name: "metadata".to_owned(), problem })
        }
        other => place.error(
            None,
            Problem::Entry {
                name: "metadata".to_owned(),
                problem: format!("is not an INI file at line {line}: {other}"),
            },
        ),
    })
}

/// The archive's files with samples, in order.
fn chunks(
    place: &Place,
    archive: &mut ZipArchive<BufReader<Box<dyn ReadSeek>>>,
    file: &str,
) -> Result<Vec<Entry>, CaptureError> {
    let mut chunks = Vec::new();
    if let Some(only) = entry(archive, file) {
        chunks.push(only);
    } else {
        let numbered = (1..u32::MAX).map_while(|number| entry(archive, &format!("{file}-{number}")));
        chunks.extend(numbered);
    }
    if chunks.is_empty() {
        return Err(no_entry(place, &format!("{file}-1")));
    }
    let total = chunks.iter().fold(0_u64, |total, chunk| total.saturating_add(chunk.unpacked));
    if total > LONGEST_CAPTURE {
        let what = "bytes of samples";
        return Err(place.error(None, Problem::TooMuch { what, limit: LONGEST_CAPTURE }));
    }
    Ok(chunks)
}

fn entry<R: Read + io::Seek>(archive: &mut ZipArchive<R>, name: &str) -> Option<Entry> {
    let index = archive.index_for_name(name)?;
    let file = archive.by_index_raw(index).ok()?;
    Some(Entry {
        name: name.to_owned(),
        method: file.compression(),
        start: file.data_start()?,
        packed: file.compressed_size(),
        unpacked: file.size(),
        crc: Some(file.crc32()),
    })
}

fn no_entry(place: &Place, name: &str) -> CaptureError {
    place.error(None, Problem::NoEntry { name: excerpt(name) })
}

fn entry_error(place: &Place, name: &str, error: &io::Error) -> CaptureError {
    let problem = format!("is damaged: {}", excerpt(&error.to_string()));
    place.error(None, Problem::Entry { name: excerpt(name), problem })
}

/// The bytes of a file in the archive, at most the stated number.
struct Unpacked {
    reader: Box<dyn Read>,
    rest: u64,
    crc: Crc,
    expected: Option<u32>,
}

impl Unpacked {
    fn open(place: &Place, entry: &Entry) -> Result<Self, CaptureError> {
        let packed = BufReader::new(place.open(entry.start)?.take(entry.packed));
        let reader: Box<dyn Read> = match entry.method {
            CompressionMethod::Stored => Box::new(packed),
            CompressionMethod::Deflated => Box::new(DeflateDecoder::new(packed)),
            other => {
                let problem = format!("is compressed with {other}, expected deflate");
                return Err(place.error(None, Problem::Entry { name: excerpt(&entry.name), problem }));
            }
        };
        Ok(Self { reader, rest: entry.unpacked, crc: Crc::new(), expected: entry.crc })
    }
}

impl Read for Unpacked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let invalid = |what: &'static str| io::Error::new(io::ErrorKind::InvalidData, what);
        let most = usize::try_from(self.rest).unwrap_or(usize::MAX).min(buffer.len());
        let room = buffer.get_mut(..most).unwrap_or_default();
        let bytes = self.reader.read(room)?;
        let read = room.get(..bytes).unwrap_or_default();
        self.crc.update(read);
        self.rest = self.rest.saturating_sub(bytes as u64);
        if bytes == 0 && most > 0 {
            return Err(invalid("it is shorter than the archive states"));
        }
        if self.rest == 0 && bytes > 0 && self.expected.is_some_and(|expected| expected != self.crc.sum()) {
            return Err(invalid("its checksum is wrong"));
        }
        Ok(bytes)
    }
}

impl Layout for Session {
    fn changes<'a>(
        &'a self,
        place: &'a Place,
        channels: &[usize],
    ) -> Result<Box<dyn Changes + 'a>, CaptureError> {
        let bits = channels.iter().map(|&channel| self.bits.get(channel).copied()).collect::<Vec<_>>();
        let mask = bits.iter().flatten().fold(0, |mask, &bit| mask | 1_u64.unbounded_shl(bit));
        Ok(Box::new(SessionChanges {
            session: self,
            place,
            bits,
            mask,
            next_chunk: 0,
            reader: None,
            buffer: Vec::new(),
            taken: 0,
            sample: 0,
            last: None,
            is_done: false,
        }))
    }
}

/// The number of bytes of samples that are unpacked at once.
const PIECE: usize = 1 << 16;

/// The changes in a session.
struct SessionChanges<'a> {
    session: &'a Session,
    place: &'a Place,
    /// The bit of each channel.
    bits: Vec<Option<u32>>,
    /// The mask of these bits.
    mask: u64,
    next_chunk: usize,
    reader: Option<(Unpacked, &'a str)>,
    buffer: Vec<u8>,
    /// The number of bytes of the buffer that were read.
    taken: usize,
    /// The number of the next sample.
    sample: u64,
    /// The last sample, masked.
    last: Option<u64>,
    is_done: bool,
}

impl SessionChanges<'_> {
    fn levels(&self, sample: u64) -> Levels {
        let bits = self.bits.iter().enumerate();
        bits.fold(Levels::default(), |levels, (index, bit)| {
            levels.with(index, bit.is_some_and(|bit| sample.unbounded_shr(bit) & 1 == 1))
        })
    }

    /// Looks for the next sample in the buffer that differs from the last one.
    fn next_in_buffer(&mut self) -> Option<Change> {
        let unit = self.session.unit;
        let rest = self.buffer.get(self.taken..).unwrap_or_default();
        let mask = self.mask;
        let last = self.last;
        let differs = |sample: &[u8]| {
            let sample = little_endian(sample) & mask;
            (last != Some(sample)).then_some(sample)
        };
        let found =
            rest.chunks_exact(unit).enumerate().find_map(|(index, bytes)| Some((index, differs(bytes)?)));
        let passed = found.map_or(rest.len() / unit, |(index, _)| index);
        self.taken += passed * unit;
        self.sample += passed as u64;
        let (_, sample) = found?;
        self.last = Some(sample);
        let change = Change { at: Tick(self.sample), levels: self.levels(sample) };
        self.taken += unit;
        self.sample += 1;
        Some(change)
    }

    /// Unpacks more samples; returns whether there were any.
    fn fill(&mut self) -> Result<bool, CaptureError> {
        // A sample may span two chunks.
        self.buffer.drain(..self.taken.min(self.buffer.len()));
        self.taken = 0;
        loop {
            let (reader, name) = match &mut self.reader {
                Some(reader) => reader,
                None => {
                    let Some(chunk) = self.session.chunks.get(self.next_chunk) else { return Ok(false) };
                    self.next_chunk += 1;
                    self.reader.insert((Unpacked::open(self.place, chunk)?, &chunk.name))
                }
            };
            let kept = self.buffer.len();
            self.buffer.resize(kept + PIECE, 0);
            let room = self.buffer.get_mut(kept..).unwrap_or_default();
            let bytes = reader.read(room).map_err(|error| entry_error(self.place, name, &error));
            self.buffer.truncate(kept + bytes.as_ref().copied().unwrap_or(0));
            match bytes? {
                0 => self.reader = None,
                _ => return Ok(true),
            }
        }
    }
}

impl Iterator for SessionChanges<'_> {
    type Item = Result<Change, CaptureError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.is_done {
            if let Some(change) = self.next_in_buffer() {
                return Some(Ok(change));
            }
            match self.fill() {
                Ok(true) => {}
                Ok(false) => {
                    self.is_done = true;
                    let levels = self.levels(self.last?);
                    return Some(Ok(Change { at: Tick(self.sample), levels }));
                }
                Err(error) => {
                    self.is_done = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }
}

/// A sample of at most eight bytes as a number.
fn little_endian(sample: &[u8]) -> u64 {
    sample.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}
