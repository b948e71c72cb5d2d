//! Memory in hexadecimal records: Intel HEX and Motorola S-records.
//!
//! Comes in: the text of a file. Goes out: bytes by address, and what keeps the file from being complete. Whether that is
//! a program or what a debugger saved of memory is for [`image`](crate::image) and [`capture`](crate::capture) to say.

mod assembly;
mod flaws;
mod intel_hex;
mod problem;
mod s_record;

use std::fmt;

pub(crate) use assembly::{Assembly, Located};
pub(crate) use flaws::Flaws;
pub use problem::MemoryProblem;

/// How records are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordForm {
    /// Intel HEX.
    IntelHex,
    /// Motorola S-records.
    SRecords,
}

impl RecordForm {
    /// What the text of a file starts like; `None` for anything else.
    pub(crate) fn of(text: &[u8]) -> Option<Self> {
        match text.trim_ascii_start() {
            [b':', b'0'..=b'9' | b'A'..=b'F' | b'a'..=b'f', ..] => Some(Self::IntelHex),
            [b'S', b'0'..=b'9', b'0'..=b'9' | b'A'..=b'F' | b'a'..=b'f', ..] => Some(Self::SRecords),
            _ => None,
        }
    }

    /// The memory, and what the file lacks of being complete.
    pub(crate) fn read(self, text: &str) -> Result<(Assembly, Flaws), Located> {
        match self {
            Self::IntelHex => intel_hex::read(text),
            Self::SRecords => s_record::read(text),
        }
    }
}

impl fmt::Display for RecordForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::IntelHex => "Intel HEX",
            Self::SRecords => "Motorola S-records",
        })
    }
}
