//! Reads and writes the program's files; errors name the file.

use tracewalk_generate::elf::{self, Elf};
use tracewalk_generate::record::Record;

pub(crate) fn read_elf(file: &str) -> Result<Elf, String> {
    elf::read(&read(file)?).map_err(|error| format!("{file}: {error}"))
}

pub(crate) fn read_record(file: &str) -> Result<Record, String> {
    Record::parse(&read_text(file)?).map_err(|error| format!("{file}: {error}"))
}

pub(crate) fn read(file: &str) -> Result<Vec<u8>, String> {
    std::fs::read(file).map_err(|error| format!("{file}: {error}"))
}

pub(crate) fn read_text(file: &str) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))
}

pub(crate) fn write(file: &str, bytes: &[u8]) -> Result<(), String> {
    std::fs::write(file, bytes).map_err(|error| format!("{file}: {error}"))
}
