//! Memory in hexadecimal records: Intel HEX and Motorola S-records.
//!
//! The text of a file goes in; bytes by address come out, with the damage in the file.
//! [`image`](crate::image) reads programs from them, and [`capture`](crate::capture) memory that a debugger
//! saved. This module's public types name the form and the problems.
//!
//! ```
//! use tracewalk_input::image::{Image, ImageKind};
//! use tracewalk_input::records::RecordForm;
//!
//! let hex = b":0400000000BF704786\n:00000001FF\n"; // NOP; BX LR at address 0
//! assert!(Image::from_bytes("rom.hex".as_ref(), &ImageKind::Addressed, hex.to_vec()).is_ok());
//! assert_eq!(RecordForm::IntelHex.to_string(), "Intel HEX");
//! ```

mod assembly;
mod flaws;
mod intel_hex;
mod problem;
mod s_record;

use std::fmt;

pub(crate) use assembly::{Assembly, Located};
pub(crate) use flaws::Flaws;
pub use problem::MemoryProblem;

/// The form of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordForm {
    /// Intel HEX.
    IntelHex,
    /// Motorola S-records.
    SRecords,
}

impl RecordForm {
    /// The form that the beginning of a text shows; `None` for any other text.
    pub(crate) fn of(text: &[u8]) -> Option<Self> {
        match text.trim_ascii_start() {
            [b':', b'0'..=b'9' | b'A'..=b'F' | b'a'..=b'f', ..] => Some(Self::IntelHex),
            [b'S', b'0'..=b'9', b'0'..=b'9' | b'A'..=b'F' | b'a'..=b'f', ..] => Some(Self::SRecords),
            _ => None,
        }
    }

    /// The memory, and the damage in the file.
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
