//! How trace bytes are packed in a file.

use std::fmt;
use std::str::FromStr;

use tracewalk::span::CaptureOffset;

use super::dstream;
use super::error::CaptureErrorKind;
use super::wire::{Reading, Wire};
use crate::bytes::Bytes;
use crate::excerpt::excerpt;
use crate::file::FileProblem;
use crate::meant;
use crate::origin::{Origin, Stated};

/// How the bytes of a buffer are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Container {
    /// CoreSight frames of 16 bytes from a trace buffer: aligned, without synchronisation patterns.
    Frames,
    /// CoreSight frames from a trace port: at any place in the file, with FSYNC and HSYNC patterns or not.
    TracePort,
    /// The bytes of one source.
    Raw,
    /// The memory of a Micro Trace Buffer, as it was read out.
    Mtb,
}

impl Container {
    /// Every container, in the order of the options' help.
    pub const ALL: [Self; 4] = [Self::Frames, Self::TracePort, Self::Raw, Self::Mtb];

    /// The container's name in options and descriptions.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Frames => "frames",
            Self::TracePort => "tpiu",
            Self::Raw => "raw",
            Self::Mtb => "mtb",
        }
    }
}

impl fmt::Display for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An unknown word for a container, and the container that was probably meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownContainer(CaptureErrorKind);

impl fmt::Display for UnknownContainer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for UnknownContainer {}

impl From<UnknownContainer> for CaptureErrorKind {
    fn from(unknown: UnknownContainer) -> Self {
        unknown.0
    }
}

/// Reads the word for a container. `auto` is refused, because it stands for an unknown container.
impl FromStr for Container {
    type Err = UnknownContainer;

    fn from_str(word: &str) -> Result<Self, UnknownContainer> {
        Self::ALL.into_iter().find(|container| container.name().eq_ignore_ascii_case(word)).ok_or_else(|| {
            let names = ["auto"].into_iter().chain(Self::ALL.map(Self::name));
            UnknownContainer(CaptureErrorKind::UnknownValue {
                key: "container".to_owned(),
                found: excerpt(word),
                nearest: meant::container(word, names),
            })
        })
    }
}

/// The bytes in a file that are between those of trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Blocks {
    /// Every byte of the file is trace.
    #[default]
    None,
    /// The file is blocks of 512 bytes from a DSTREAM unit, each with 504 bytes of trace.
    Dstream,
}

impl Blocks {
    /// The bytes of trace in a file's bytes.
    pub(crate) fn payload(self, file: Bytes) -> Result<Bytes, FileProblem> {
        match self {
            Self::None => Ok(file),
            Self::Dstream => dstream::payload(&file),
        }
    }

    /// The byte of trace at a place in the file, or the next one.
    pub(crate) const fn trace_offset(self, file: CaptureOffset) -> CaptureOffset {
        match self {
            Self::None => file,
            Self::Dstream => dstream::trace_offset(file),
        }
    }

    /// The offset in the file of a byte of trace.
    #[must_use]
    pub const fn file_offset(self, offset: CaptureOffset) -> u64 {
        match self {
            Self::None => offset.0,
            Self::Dstream => dstream::file_offset(offset),
        }
    }
}

/// The container of a trace port's bytes: a port always sends frames. SWO may also send a source's bytes
/// without frames.
pub(super) fn of_wires(reading: &Reading) -> Option<Stated<Container>> {
    (reading.wire == Wire::Port).then(|| Stated::new(Container::TracePort, Origin::Detected))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn container_words_are_read_back() {
        for container in Container::ALL {
            assert_eq!(container.name().parse(), Ok(container));
        }
        assert_eq!(
            "tpui".parse::<Container>().unwrap_err().to_string(),
            "unknown container `tpui`, the nearest known one is `tpiu`"
        );
    }
}
