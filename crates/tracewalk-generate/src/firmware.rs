//! The example programs, and the paths that an emulator recorded of them.
//!
//! ```
//! use std::path::Path;
//! use tracewalk_generate::firmware::Firmware;
//!
//! let firmware = Firmware::read(Path::new("../../testdata/firmware"), "m3", |file| std::fs::read(file))?;
//! assert!(firmware.path.instructions().count() > 10_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::error::Error;
use std::fmt::{self, Debug, Formatter};
use std::io;
use std::path::Path as FilePath;

use tracewalk::ids::Address;

use crate::elf::{self, Elf};
use crate::path::Path;
use crate::record::{Profile, Record};

/// Reads a whole file. The caller supplies it, because this crate does not access the file system.
pub type ReadFile = fn(&FilePath) -> io::Result<Vec<u8>>;

/// A program and its executed path.
pub struct Firmware {
    /// The program.
    pub elf: Elf,
    /// The path that the program executed.
    pub path: Path,
}

impl Firmware {
    /// Reads `NAME/NAME.elf` and `NAME/NAME.record` of `folder`.
    pub fn read(folder: &FilePath, name: &str, read_file: ReadFile) -> Result<Self, Box<dyn Error>> {
        let read = |extension: &str| read_file(&folder.join(name).join(format!("{name}.{extension}")));
        let mut elf = elf::read(&read("elf")?)?;
        if elf.profile == Profile::M {
            elf.program.set_vector_table(Address::new(0));
        }
        let record = Record::parse(&String::from_utf8(read("record")?)?)?;
        let path = Path::expand(&record, &elf.program)?;
        Ok(Self { elf, path })
    }
}

impl Debug for Firmware {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} steps", self.path.steps.len())
    }
}
