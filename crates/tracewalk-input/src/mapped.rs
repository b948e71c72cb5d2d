//! A memory-mapped file. No other file of this crate contains `unsafe`.
//!
//! A capture may have more bytes than there is memory, and piecewise reading would complicate every reader. A
//! mapped file is a slice; the system keeps the pages in use and drops the others.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ops::Deref;

use memmap2::Mmap;

/// A file that is mapped for reading.
pub(crate) struct Mapped(Mmap);

impl Mapped {
    /// Maps all of `file`.
    pub(crate) fn new(file: &File) -> io::Result<Self> {
        // SAFETY: `Mmap` cannot guarantee that no other process changes the file meanwhile. Two kinds of file
        // are mapped: temporary files without a name (`Spool`), which no other process can open, and
        // captures. All bytes of a capture are untrusted: readers compare and copy single bytes, and never
        // rely on an earlier check of a byte. Text is made from a copy of the bytes. If a file is shortened,
        // a signal ends the process (documented in docs/speed-and-memory.md), which is not undefined
        // behaviour.
        let map = unsafe { Mmap::map(file)? };
        // A hint: decoding reads the file once, from its start.
        #[cfg(unix)]
        let _ = map.advise(memmap2::Advice::Sequential);
        Ok(Self(map))
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}
