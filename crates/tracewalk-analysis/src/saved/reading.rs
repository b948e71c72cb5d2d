//! The lines of a file, one by one.

use std::io::{BufRead, Read as _};

use super::error::SavedErrorKind;

/// A file as it is read, one line at a time.
pub(super) struct Input<R> {
    from: R,
    line: Vec<u8>,
    number: usize,
    /// Of the lines before `line`.
    checksum: crc32fast::Hasher,
}

/// The longest first line.
const LONGEST_HEAD: u64 = 1 << 10;

impl<R: BufRead> Input<R> {
    pub(super) fn new(from: R) -> Self {
        Self { from, line: Vec::new(), number: 1, checksum: crc32fast::Hasher::new() }
    }

    /// The number of the line that was read last, from 1.
    pub(super) const fn number(&self) -> usize {
        self.number
    }

    /// The first line. A file that is not a saved file may have a line of any length.
    pub(super) fn head(&mut self) -> Result<&[u8], SavedErrorKind> {
        self.from.by_ref().take(LONGEST_HEAD).read_until(b'\n', &mut self.line)?;
        Ok(&self.line)
    }

    /// The next line, with its end; `None` after the last one.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, SavedErrorKind> {
        self.is_ended()?;
        self.checksum.update(&self.line);
        self.line.clear();
        if self.from.read_until(b'\n', &mut self.line)? == 0 {
            // The line before was the last one.
            self.line.push(b'\n');
            return Ok(None);
        }
        self.number += 1;
        self.is_ended()?;
        Ok(Some(&self.line))
    }

    fn is_ended(&self) -> Result<(), SavedErrorKind> {
        if self.line.ends_with(b"\n") { Ok(()) } else { Err(SavedErrorKind::CutOff) }
    }

    /// The last line was read; checks the number and the checksum of the lines before it.
    pub(super) fn check(&self, lines: u64, checksum: u32) -> Result<(), SavedErrorKind> {
        let found = u64::try_from(self.number).unwrap_or(u64::MAX).saturating_sub(1);
        if found != lines {
            return Err(SavedErrorKind::Lines { found, expected: lines });
        }
        match self.checksum.clone().finalize() {
            found if found == checksum => Ok(()),
            found => Err(SavedErrorKind::Damaged { found, expected: checksum }),
        }
    }

    /// Refuses further lines.
    pub(super) fn end(&mut self) -> Result<(), SavedErrorKind> {
        if self.from.fill_buf()?.is_empty() {
            return Ok(());
        }
        self.number += 1;
        Err(SavedErrorKind::AfterEnd)
    }
}
