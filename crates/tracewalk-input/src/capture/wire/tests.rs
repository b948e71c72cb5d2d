use std::path::Path;

use proptest::prelude::*;
use tracewalk::frame::{FSYNC, Formatter, FormatterOptions};
use tracewalk::ids::TraceId;

use super::*;
use crate::capture::error::CaptureError;
use crate::fixtures::corpus;
use signals::{Noise, Timing, Waveform};

mod containers;
mod signals;
mod wires;

fn open(name: &str, bytes: Vec<u8>) -> Result<Option<Recording>, CaptureError> {
    Recording::from_bytes(Path::new(name), bytes.into())
}

fn read_with(name: &str, bytes: Vec<u8>, options: &WireOptions) -> Result<(Vec<u8>, Reading), CaptureError> {
    read(&open(name, bytes)?.expect("a recording"), options)
}

/// Bytes like those of a trace: some of every kind, and runs of zeros.
fn trace_bytes(count: usize, seed: u64) -> Vec<u8> {
    let mut noise = Noise::new(seed);
    (0..count)
        .map(|_| if noise.bits().is_multiple_of(3) { 0 } else { noise.bits().to_le_bytes()[0] })
        .collect()
}

const TIMING: Timing = Timing { bit: 125e-9, jitter: 0.0, rest: 40.0, seed: 1 };
