//! Simulates the signals of a trace unit's pins, and a logic analyser's recording of them.

use std::fmt::Write as _;
use std::io::{Cursor, Write as _};

use zip::write::{SimpleFileOptions, ZipWriter};

/// The levels of some pins over time: each entry has a moment in seconds, and the levels from then on.
#[derive(Clone, Debug)]
pub(super) struct Waveform {
    pub(super) changes: Vec<(f64, u64)>,
    pub(super) end: f64,
}

/// Deterministic pseudo-random numbers.
#[derive(Clone, Debug)]
pub(super) struct Noise(u64);

impl Noise {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    pub(super) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// The next number, from -1 to 1.
    pub(super) fn next(&mut self) -> f64 {
        self.bits() as f64 / f64::from(1_u32 << 30) - 1.0
    }
}

/// Draws a line level by level.
struct Pen {
    waveform: Waveform,
    noise: Noise,
    jitter: f64,
    level: u64,
    at: f64,
}

impl Pen {
    fn new(level: u64, jitter: f64, seed: u64) -> Self {
        let waveform = Waveform { changes: vec![(0.0, level)], end: 0.0 };
        Self { waveform, noise: Noise::new(seed), jitter, level, at: 0.0 }
    }

    /// Draws the level `level` for the time `time`.
    fn keep(&mut self, level: u64, time: f64) {
        if level != self.level {
            self.waveform.changes.push((self.at + self.noise.next() * self.jitter, level));
            self.level = level;
        }
        self.at += time;
    }

    fn finish(mut self) -> Waveform {
        self.waveform.end = self.at;
        self.waveform
    }
}

/// The timing of a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    /// The length of a bit, in seconds.
    pub(super) bit: f64,
    /// The greatest deviation of an edge from its nominal position, in bits.
    pub(super) jitter: f64,
    /// The idle time before the first byte and after the last one, in bits.
    pub(super) rest: f64,
    pub(super) seed: u64,
}

/// SWO as a UART. The line idles between bytes at random, for a random time.
pub(super) fn uart(bytes: &[u8], timing: Timing) -> Waveform {
    let Timing { bit, jitter, rest, seed } = timing;
    let mut pen = Pen::new(1, jitter * bit, seed);
    pen.keep(1, rest * bit);
    for &byte in bytes {
        pen.keep(0, bit);
        for index in 0..8 {
            pen.keep(u64::from(byte >> index & 1), bit);
        }
        let pause = if pen.noise.bits().is_multiple_of(8) { pen.noise.next().abs() * 30.0 } else { 0.0 };
        pen.keep(1, (1.0 + pause) * bit);
    }
    pen.keep(1, rest * bit);
    pen.finish()
}

/// SWO in Manchester code, in packets of one to eight bytes.
pub(super) fn manchester(bytes: &[u8], timing: Timing) -> Waveform {
    let Timing { bit, jitter, rest, seed } = timing;
    let mut pen = Pen::new(0, jitter * bit, seed);
    pen.keep(0, rest * bit);
    let mut bytes = bytes;
    while !bytes.is_empty() {
        let (packet, others) = bytes.split_at(bytes.len().min(1 + (pen.noise.bits() % 8) as usize));
        bytes = others;
        let bits = packet.iter().flat_map(|byte| (0..8).map(move |index| u64::from(byte >> index & 1)));
        for one in std::iter::once(1).chain(bits) {
            pen.keep(one, bit / 2.0);
            pen.keep(1 - one, bit / 2.0);
        }
        let pause = if pen.noise.bits().is_multiple_of(4) { pen.noise.next().abs() * 30.0 } else { 0.0 };
        pen.keep(0, (1.0 + pause) * bit);
    }
    pen.keep(0, rest * bit);
    pen.finish()
}

/// A trace port: level 0 is the clock, the others are the data. `shift` is the delay of a clock edge after
/// the change of the data, in clock edge intervals.
pub(super) fn port(bytes: &[u8], pins: u32, shift: f64, timing: Timing) -> Waveform {
    let Timing { bit, jitter, rest, seed } = timing;
    let mut pen = Pen::new(0, jitter * bit, seed);
    pen.keep(0, rest * bit);
    let mut clock = 0;
    let parts = bytes.iter().flat_map(|&byte| {
        (0..8 / pins).map(move |part| u64::from(byte >> (part * pins)) & ((1 << pins) - 1))
    });
    for part in parts {
        if shift > 0.0 {
            pen.keep(part << 1 | clock, shift * bit);
        }
        clock ^= 1;
        pen.keep(part << 1 | clock, (1.0 - shift) * bit);
    }
    pen.keep(pen.level, rest * bit);
    pen.finish()
}

impl Waveform {
    /// The waveform from this moment on.
    pub(super) fn from(&self, start: f64) -> Self {
        let level =
            self.changes.iter().take_while(|(at, _)| *at <= start).last().map_or(0, |(_, level)| *level);
        let later = self.changes.iter().filter(|(at, _)| *at > start).map(|(at, level)| (at - start, *level));
        Self { changes: std::iter::once((0.0, level)).chain(later).collect(), end: self.end - start }
    }

    /// The levels, sampled at this rate.
    pub(super) fn samples(&self, rate: f64) -> Vec<u64> {
        let mut samples = Vec::new();
        let mut changes = self.changes.iter().peekable();
        let mut level = 0;
        // A logic analyser does not start in phase with the target.
        let mut at = 0.37 / rate;
        while at < self.end {
            while let Some((_, next)) = changes.next_if(|(change, _)| *change <= at) {
                level = *next;
            }
            samples.push(level);
            at = (samples.len() as f64 + 0.37) / rate;
        }
        samples
    }
}

/// Samples as a sigrok session, in chunks.
pub(super) fn sigrok(samples: &[u64], rate: &str, names: &[&str], unit: usize) -> Vec<u8> {
    let mut probes = String::new();
    for (index, name) in names.iter().enumerate() {
        writeln!(probes, "probe{}={name}", index + 1).unwrap();
    }
    let metadata = format!(
        "[global]\nsigrok version=0.5.2\n\n[device 1]\ncapturefile=logic-1\ntotal probes={}\nsamplerate={rate}\n\
         total analog=0\n{probes}unitsize={unit}\n",
        names.len(),
    );
    let bytes = samples.iter().flat_map(|sample| sample.to_le_bytes()[..unit].to_vec()).collect::<Vec<_>>();
    let chunks = bytes.chunks(10_007).enumerate();
    let chunks = chunks.map(|(index, chunk)| (format!("logic-1-{}", index + 1), chunk.to_vec()));
    archive(
        [("version".to_owned(), b"2".to_vec()), ("metadata".to_owned(), metadata.into_bytes())]
            .into_iter()
            .chain(chunks),
    )
}

/// A zip file with these files.
pub(super) fn archive(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        zip.start_file(name, SimpleFileOptions::default()).unwrap();
        zip.write_all(&bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// The changes between samples: the sample's number, and the levels. The last entry marks the end of the
/// samples.
fn differences(samples: &[u64]) -> Vec<(usize, u64)> {
    let mut last = None;
    let changes = samples.iter().enumerate();
    let changes = changes.filter(|(_, level)| last.replace(**level) != Some(**level));
    let mut changes = changes.map(|(number, level)| (number, *level)).collect::<Vec<_>>();
    changes.push((samples.len(), *samples.last().unwrap()));
    changes
}

/// Samples as a value change dump in nanoseconds, as sigrok writes it.
pub(super) fn vcd(samples: &[u64], rate: f64, names: &[&str]) -> Vec<u8> {
    let mut text = String::from(
        "$date Thu Jan 1 1970 $end\n$version test $end\n$comment\n  of a test\n$end\n$timescale 1 ns $end\n\
         $scope module test $end\n",
    );
    let code = |index: usize| char::from(b'!' + u8::try_from(index).unwrap());
    for (index, name) in names.iter().enumerate() {
        writeln!(text, "$var wire 1 {} {name} $end", code(index)).unwrap();
    }
    text.push_str("$upscope $end\n$enddefinitions $end\n");
    let mut before = None::<u64>;
    for (number, level) in differences(samples) {
        write!(text, "#{}", (number as f64 / rate * 1e9).round()).unwrap();
        for index in 0..names.len() {
            if before.is_none_or(|before| (before ^ level) >> index & 1 == 1) {
                write!(text, " {}{}", level >> index & 1, code(index)).unwrap();
            }
        }
        text.push('\n');
        before = Some(level);
    }
    text.into_bytes()
}

fn row(level: u64, columns: usize) -> String {
    (0..columns).map(|index| (level >> index & 1).to_string()).collect::<Vec<_>>().join(",")
}

/// Samples as a table of Saleae Logic: a row for each change, with its time in seconds.
pub(super) fn csv_of_changes(samples: &[u64], rate: f64, names: &[&str]) -> Vec<u8> {
    let mut text = format!("Time [s],{}\n", names.join(","));
    for (number, level) in differences(samples) {
        writeln!(text, "{:.9},{}", number as f64 / rate, row(level, names.len())).unwrap();
    }
    text.into_bytes()
}

/// Samples as a table of sigrok: a row for each sample.
pub(super) fn csv_of_samples(samples: &[u64], rate: &str, names: &[&str]) -> Vec<u8> {
    let mut text = format!(
        "; CSV generated by libsigrok 0.5.2\n; from a test on Thu Jan 1 1970\n; Channels ({0}/{0}): {1}\n\
         ; Samplerate: {rate}\n{2}\n",
        names.len(),
        names.join(", "),
        vec!["logic"; names.len()].join(","),
    );
    for level in samples {
        writeln!(text, "{}", row(*level, names.len())).unwrap();
    }
    text.into_bytes()
}
