//! A recording of a logic analyser, whatever wrote it.

use std::io::Read;
use std::path::Path;

use super::changes::{Changes, MOST_CHANNELS};
use super::error::RecordingProblem;
use super::place::{Header, Place};
use super::{csv, sigrok, vcd};
use crate::bytes::Bytes;
use crate::capture::error::CaptureError;

/// A recording: named channels, and what they did over time.
#[derive(Clone, Debug)]
pub struct Recording {
    place: Place,
    layout: Layout,
    channels: Vec<String>,
    ticks_per_second: Option<f64>,
}

#[derive(Clone, Debug)]
enum Layout {
    Sigrok(sigrok::Session),
    Vcd(vcd::Dump),
    Csv(csv::Table),
}

/// How much is looked at to tell what a file is.
const HEAD: u64 = 4096;

impl Recording {
    /// The recording in the file at `path`; `None` if it is something else.
    pub fn open(path: &Path) -> Result<Option<Self>, CaptureError> {
        Self::read(Place { file: path.to_owned(), bytes: None })
    }

    /// The recording with these bytes; `None` if they are something else. `name` is used in messages.
    pub fn from_bytes(name: &Path, bytes: Bytes) -> Result<Option<Self>, CaptureError> {
        Self::read(Place { file: name.to_owned(), bytes: Some(bytes) })
    }

    fn read(place: Place) -> Result<Option<Self>, CaptureError> {
        let mut head = Vec::new();
        let file = place.open(0)?;
        file.take(HEAD).read_to_end(&mut head).map_err(|error| place.io_error(error))?;
        let has_extension =
            |wanted| place.file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(wanted));
        if sigrok::is_session(&head) {
            let header = sigrok::read(&place)?;
            Ok(Some(Self::new(place, header, Layout::Sigrok)))
        } else if vcd::is_dump(&head) {
            let header = vcd::read(&place)?;
            Ok(Some(Self::new(place, header, Layout::Vcd)))
        } else if csv::is_table(&head) || has_extension("csv") {
            let header = csv::read(&place)?;
            Ok(Some(Self::new(place, header, Layout::Csv)))
        } else {
            Ok(None)
        }
    }

    fn new<L>(place: Place, header: Header<L>, layout: fn(L) -> Layout) -> Self {
        let Header { layout: inner, channels, ticks_per_second } = header;
        Self { place, layout: layout(inner), channels, ticks_per_second }
    }

    /// The names of its channels.
    #[must_use]
    pub fn channels(&self) -> &[String] {
        &self.channels
    }

    /// How many ticks a second has, where the recording says it.
    #[must_use]
    pub const fn ticks_per_second(&self) -> Option<f64> {
        self.ticks_per_second
    }

    /// What the channels with these indices did. The n-th of them is the n-th level of each change.
    pub(super) fn changes(&self, channels: &[usize]) -> Result<Box<dyn Changes + '_>, CaptureError> {
        if channels.len() > MOST_CHANNELS {
            let limit = MOST_CHANNELS as u64;
            return Err(self.error(RecordingProblem::TooMuch { what: "channels that may be meant", limit }));
        }
        Ok(match &self.layout {
            Layout::Sigrok(session) => Box::new(session.changes(&self.place, channels)),
            Layout::Vcd(dump) => Box::new(dump.changes(&self.place, channels)?),
            Layout::Csv(table) => Box::new(table.changes(&self.place, channels)?),
        })
    }

    /// An error that concerns all of it.
    pub(super) fn error(&self, problem: RecordingProblem) -> CaptureError {
        self.place.error(None, problem)
    }
}
