//! A file as memory. The only file of the project with `unsafe` in it.
//!
//! A capture may have more bytes than there is memory, and reading it piece by piece would make every reader ask for
//! pieces. A mapped file is a slice, of which the system holds what is in use and drops what is not.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ops::Deref;

use memmap2::{Advice, Mmap};

/// A file that is mapped for reading.
pub(crate) struct Mapped(Mmap);

impl Mapped {
    /// Maps all of `file`.
    pub(crate) fn new(file: &File) -> io::Result<Self> {
        // SAFETY: what `Mmap` cannot promise is that no other process changes the file meanwhile. Two kinds of file are
        // mapped: temporary files without a name (`Spool`), which no other process can open, and captures. A capture's
        // bytes are untrusted from the first to the last; whoever reads them compares and copies single bytes, and takes
        // no byte for checked because it was checked before. Text is made of a copy of them. A file that is shortened
        // ends the process by a signal (docs/speed-and-memory.md says so), which is no undefined behaviour.
        let map = unsafe { Mmap::map(file)? };
        // A hint: decoding goes through it once from its start.
        #[cfg(unix)]
        let _ = map.advise(Advice::Sequential);
        Ok(Self(map))
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}
