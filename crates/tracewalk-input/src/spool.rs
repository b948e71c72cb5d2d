//! Collects bytes that may exceed the available memory.

use std::fs::File;
use std::io::{self, Read, Write};

use crate::bytes::Bytes;

/// Collects bytes in memory first, and in a temporary file when there are many. The file has no name and
/// vanishes with the process.
#[derive(Debug, Default)]
pub(crate) struct Spool {
    /// The bytes that are not in the file.
    memory: Vec<u8>,
    file: Option<File>,
    /// The total number of bytes.
    len: u64,
}

/// The most bytes kept in memory.
const MOST_IN_MEMORY: usize = 8 << 20;

impl Spool {
    /// A spool for about this number of bytes.
    pub(crate) fn with_room(bytes: u64) -> Self {
        // With one byte more, reading detects the end without growing the buffer.
        let room = usize::try_from(bytes).map_or(MOST_IN_MEMORY, |bytes| bytes.min(MOST_IN_MEMORY)) + 1;
        Self { memory: Vec::with_capacity(room), ..Self::default() }
    }

    /// The number of bytes collected.
    pub(crate) const fn len(&self) -> u64 {
        self.len
    }

    /// Reads at most `most` bytes, without a copy. Returns the number read; 0 at the reader's end.
    pub(crate) fn fill(&mut self, reader: &mut impl Read, most: u64) -> io::Result<usize> {
        let read = reader.take(most).read_to_end(&mut self.memory)?;
        self.len += read as u64;
        if self.memory.len() > MOST_IN_MEMORY {
            self.flush()?;
        }
        Ok(read)
    }

    /// All collected bytes.
    pub(crate) fn finish(mut self) -> io::Result<Bytes> {
        if self.file.is_none() {
            return Ok(Bytes::from(self.memory));
        }
        self.flush()?;
        self.file.as_ref().map_or_else(|| Ok(Bytes::default()), Bytes::map)
    }
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.memory.extend_from_slice(bytes);
        self.len += bytes.len() as u64;
        if self.memory.len() > MOST_IN_MEMORY {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    /// Moves the bytes in memory to the file.
    fn flush(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(tempfile::tempfile()?),
        };
        file.write_all(&self.memory)?;
        self.memory.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_through_a_file_comes_back_as_it_was() {
        for len in [0, 5, MOST_IN_MEMORY, MOST_IN_MEMORY + 1, 2 * MOST_IN_MEMORY + 77] {
            let mut spool = Spool::default();
            let bytes = (0_u8..251).cycle().take(len).collect::<Vec<_>>();
            bytes.chunks(100_003).for_each(|piece| spool.write_all(piece).unwrap());
            assert_eq!(spool.len(), len as u64);
            assert!(*spool.finish().unwrap() == *bytes, "{len} bytes");
        }
    }
}
