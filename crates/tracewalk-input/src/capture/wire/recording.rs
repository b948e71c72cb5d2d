//! A logic analyser's recording in any format.

use std::io::Read;
use std::path::Path;

use super::changes::{Changes, MOST_CHANNELS};
use super::error::RecordingProblem;
use super::place::{Header, Place, RecordingFormat};
use super::{WireOptions, csv, sigrok, vcd};
use crate::bytes::Bytes;
use crate::capture::error::CaptureError;

/// The formats of recordings. The first one that recognises a file reads it.
const FORMATS: &[RecordingFormat] = &[sigrok::FORMAT, vcd::FORMAT, csv::FORMAT];

/// A recording: named channels, and their changes over time.
#[derive(Clone, Debug)]
pub struct Recording {
    place: Place,
    header: Header,
}

/// The length of the beginning by which a file is recognised.
const HEAD: u64 = 4096;

impl Recording {
    /// Whether a file with this name and this beginning is a recording.
    #[must_use]
    pub(in crate::capture) fn is_one(name: &Path, head: &[u8]) -> bool {
        FORMATS.iter().any(|format| (format.sniff)(name, head))
    }

    /// The recording in the file at `path`; `None` if it is something else.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or is a malformed recording.
    pub fn open(path: &Path) -> Result<Option<Self>, CaptureError> {
        Self::read(Place { file: path.to_owned(), bytes: None })
    }

    /// As [`Recording::open`], or the bare samples of a file if `options` describe them.
    ///
    /// # Errors
    ///
    /// As [`Recording::open`], or if `options` do not fit the file.
    pub fn open_with(path: &Path, options: &WireOptions) -> Result<Option<Self>, CaptureError> {
        Self::or_samples(Self::open(path)?, Place { file: path.to_owned(), bytes: None }, options)
    }

    /// As [`Recording::from_bytes`], or the bare samples in bytes if `options` describe them.
    ///
    /// # Errors
    ///
    /// As [`Recording::from_bytes`], or if `options` do not fit the bytes.
    pub fn from_bytes_with(
        name: &Path,
        bytes: Bytes,
        options: &WireOptions,
    ) -> Result<Option<Self>, CaptureError> {
        let place = Place { file: name.to_owned(), bytes: Some(bytes.clone()) };
        Self::or_samples(Self::from_bytes(name, bytes)?, place, options)
    }

    fn or_samples(
        found: Option<Self>,
        place: Place,
        options: &WireOptions,
    ) -> Result<Option<Self>, CaptureError> {
        match (found, options.samples) {
            (Some(found), Some(_)) if found.ticks_per_second().is_some() => {
                Err(place.error(None, RecordingProblem::RateTwice))
            }
            (Some(found), samples) => {
                let rate = found.header.ticks_per_second.or(samples.map(|samples| samples.rate as f64));
                let header = Header { ticks_per_second: rate, ..found.header };
                Ok(Some(Self { header, ..found }))
            }
            (None, Some(samples)) => {
                let header = sigrok::bare(&place, samples)?;
                Ok(Some(Self { place, header }))
            }
            (None, None) => Ok(None),
        }
    }

    /// The recording with these bytes; `None` if they are something else. `name` is used in messages.
    ///
    /// # Errors
    ///
    /// If the recording is malformed.
    pub fn from_bytes(name: &Path, bytes: Bytes) -> Result<Option<Self>, CaptureError> {
        Self::read(Place { file: name.to_owned(), bytes: Some(bytes) })
    }

    fn read(place: Place) -> Result<Option<Self>, CaptureError> {
        let mut head = Vec::new();
        let file = place.open(0)?;
        file.take(HEAD).read_to_end(&mut head).map_err(|error| place.io_error(error))?;
        let format = FORMATS.iter().find(|format| (format.sniff)(&place.file, &head));
        format.map(|format| Ok(Self { header: (format.read)(&place)?, place })).transpose()
    }

    /// The names of the recording's channels.
    #[must_use]
    pub fn channels(&self) -> &[String] {
        &self.header.channels
    }

    /// The number of ticks in a second, if the recording states it.
    #[must_use]
    pub const fn ticks_per_second(&self) -> Option<f64> {
        self.header.ticks_per_second
    }

    /// The changes of the channels with these indices. The n-th index is the n-th level of each change.
    pub(super) fn changes(&self, channels: &[usize]) -> Result<Box<dyn Changes + '_>, CaptureError> {
        if channels.len() > MOST_CHANNELS {
            let limit = MOST_CHANNELS as u64;
            return Err(self.error(RecordingProblem::TooMuch { what: "candidate channels", limit }));
        }
        self.header.layout.changes(&self.place, channels)
    }

    /// An error that concerns the whole recording.
    pub(super) fn error(&self, problem: RecordingProblem) -> CaptureError {
        self.place.error(None, problem)
    }
}
