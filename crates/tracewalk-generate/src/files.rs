//! Files that the program reads and writes, with errors that name them.

use std::fmt::Display;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};

use tracewalk_generate::convert::Expander;
use tracewalk_generate::elf::{self, Elf};
use tracewalk_generate::path::{Path, Step};
use tracewalk_generate::record::{Line, RecordReader};

/// How many steps of a path are in memory at once: as few as read and written files do not notice.
pub(crate) const PIECE: usize = 1 << 16;

pub(crate) fn read_elf(file: &str) -> Result<Elf, String> {
    elf::read(&read(file)?).map_err(|error| format!("{file}: {error}"))
}

pub(crate) fn read(file: &str) -> Result<Vec<u8>, String> {
    std::fs::read(file).map_err(|error| format!("{file}: {error}"))
}

pub(crate) fn write(file: &str, bytes: &[u8]) -> Result<(), String> {
    std::fs::write(file, bytes).map_err(|error| format!("{file}: {error}"))
}

/// Hands on the lines of a text that need not fit into memory and may be a pipe, until `take` says that it has enough.
pub(crate) fn each_line(
    file: &str,
    mut take: impl FnMut(&str) -> Result<bool, String>,
) -> Result<(), String> {
    let fail = |error: &dyn Display| format!("{file}: {error}");
    let opened = File::open(file).map_err(|error| fail(&error))?;
    let mut text = BufReader::with_capacity(1 << 20, opened);
    let mut line = Vec::new();
    while text.read_until(b'\n', &mut line).map_err(|error| fail(&error))? > 0 {
        let more = take(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']));
        if !more.map_err(|error| fail(&error))? {
            break;
        }
        line.clear();
    }
    Ok(())
}

/// Hands on the lines of a record.
pub(crate) fn each_line_of_record(
    file: &str,
    mut take: impl FnMut(Line) -> Result<(), String>,
) -> Result<(), String> {
    let mut reader = RecordReader::default();
    each_line(file, |text| {
        let line = reader.line(text).map_err(|error| error.to_string())?;
        line.map_or(Ok(()), &mut take)?;
        Ok(true)
    })?;
    reader.finish().map(|_| ()).map_err(|error| format!("{file}: {error}"))
}

/// Hands on the path of a record in pieces.
pub(crate) fn each_piece(
    file: &str,
    elf: &Elf,
    mut take: impl FnMut(&[Step]) -> Result<(), String>,
) -> Result<(), String> {
    let mut expander = Expander::new(&elf.program);
    let mut steps = Vec::new();
    each_line_of_record(file, |line| {
        expander.line(line, &mut steps).map_err(|error| error.to_string())?;
        if steps.len() >= PIECE {
            take(&steps)?;
            steps.clear();
        }
        Ok(())
    })?;
    expander.finish(&mut steps).map_err(|error| format!("{file}: {error}"))?;
    take(&steps)
}

/// The path of a record as a whole.
pub(crate) fn read_path(file: &str, elf: &Elf) -> Result<Path, String> {
    let mut path = Path::default();
    each_piece(file, elf, |steps| {
        path.steps.extend_from_slice(steps);
        Ok(())
    })?;
    Ok(path)
}

/// A file that has its name only once it is complete.
pub(crate) struct Output {
    name: String,
    unfinished: String,
    file: BufWriter<File>,
}

impl Output {
    pub(crate) fn create(name: &str) -> Result<Self, String> {
        let unfinished = format!("{name}.part");
        let file = File::create(&unfinished).map_err(|error| format!("{unfinished}: {error}"))?;
        Ok(Self { name: name.to_owned(), unfinished, file: BufWriter::with_capacity(1 << 16, file) })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.file.write_all(bytes).map_err(|error| format!("{}: {error}", self.unfinished))
    }

    pub(crate) fn print(&mut self, text: &impl Display) -> Result<(), String> {
        write!(self.file, "{text}").map_err(|error| format!("{}: {error}", self.unfinished))
    }

    pub(crate) fn finish(mut self) -> Result<(), String> {
        let flushed = self.file.flush();
        let renamed = flushed.and_then(|()| std::fs::rename(&self.unfinished, &self.name));
        renamed.map_err(|error| format!("{}: {error}", self.name))
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // Once it is finished there is none.
        let _ = std::fs::remove_file(&self.unfinished);
    }
}
