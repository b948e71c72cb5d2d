//! The source of a recording's bytes, and the properties that all containers share.

use std::fmt::Debug;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::changes::Changes;
use super::error::RecordingProblem;
use crate::bytes::Bytes;
use crate::capture::error::{CaptureError, CaptureErrorKind};

/// The source of a recording, and its name in messages.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) file: PathBuf,
    /// The recording's bytes, if they do not come from the file.
    pub(super) bytes: Option<Bytes>,
}

/// A format of recordings.
pub(super) struct RecordingFormat {
    /// Whether a file with this name and this beginning is in the format.
    pub(super) sniff: fn(&Path, &[u8]) -> bool,
    /// Reads the header, which precedes the samples.
    pub(super) read: fn(&Place) -> Result<Header, CaptureError>,
}

/// The location of a recording's samples, and their layout.
pub(super) trait Layout: Debug + Send + Sync {
    /// The changes of the channels with these indices. The n-th index is the n-th level of each change.
    fn changes<'a>(
        &'a self,
        place: &'a Place,
        channels: &[usize],
    ) -> Result<Box<dyn Changes + 'a>, CaptureError>;
}

/// A container's information about a recording.
#[derive(Clone, Debug)]
pub(super) struct Header {
    pub(super) layout: Arc<dyn Layout>,
    pub(super) channels: Vec<String>,
    pub(super) ticks_per_second: Option<f64>,
}

/// A reader of a recording's bytes, from a file or from memory.
pub(super) trait ReadSeek: Read + Seek {}

impl<T: Read + Seek> ReadSeek for T {}

impl Place {
    /// Opens the recording's bytes from this offset on.
    pub(super) fn open(&self, offset: u64) -> Result<Box<dyn ReadSeek>, CaptureError> {
        let mut reader: Box<dyn ReadSeek> = match &self.bytes {
            Some(bytes) => Box::new(Cursor::new(bytes.clone())),
            None => Box::new(File::open(&self.file).map_err(|error| self.io_error(error))?),
        };
        if offset > 0 {
            reader.seek(SeekFrom::Start(offset)).map_err(|error| self.io_error(error))?;
        }
        Ok(reader)
    }

    /// The length of the recording in bytes.
    pub(super) fn length(&self) -> Result<u64, CaptureError> {
        self.open(0)?.seek(SeekFrom::End(0)).map_err(|error| self.io_error(error))
    }

    pub(super) fn error(&self, line: Option<u32>, problem: RecordingProblem) -> CaptureError {
        CaptureError { file: self.file.clone(), line, kind: CaptureErrorKind::Recording(problem) }
    }

    pub(super) fn io_error(&self, error: io::Error) -> CaptureError {
        CaptureError { file: self.file.clone(), line: None, kind: CaptureErrorKind::File(error.into()) }
    }
}
