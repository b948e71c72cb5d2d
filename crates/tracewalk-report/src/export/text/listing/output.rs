//! The output of a listing: its file, or a buffer first.

use std::io::{self, Write};

use crate::layout::Fitted;

/// Writes lines, or notes them.
#[derive(Debug)]
pub(super) struct Output<W> {
    out: Fitted<W>,
    noted: Option<Vec<u8>>,
}

impl<W: Write> Output<W> {
    pub(super) const fn new(out: Fitted<W>) -> Self {
        Self { out, noted: None }
    }

    /// Further lines go to the buffer.
    pub(super) fn note(&mut self) {
        self.noted = Some(Vec::new());
    }

    /// Writes the buffer.
    pub(super) fn write_noted(&mut self) -> io::Result<Vec<u8>> {
        let noted = self.noted.take().unwrap_or_default();
        self.out.write_all(&noted)?;
        Ok(noted)
    }
}

impl<W: Write> Write for Output<W> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.noted {
            Some(noted) => {
                noted.extend_from_slice(bytes);
                Ok(())
            }
            None => self.out.write_all(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
