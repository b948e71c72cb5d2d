//! The checksums of the source files at the time of compilation.

use gimli::{FileEntry, LineProgramHeader, Reader as _, Result, UnitRef};

use super::{Debugging, Reader};

/// The placeholder for a missing checksum, if other files of a unit have one.
const NONE: [u8; 16] = [0; 16];

impl Debugging {
    /// Calls `found` with each source file, named as by `addr2line`, and the MD5 of its text, if a unit has
    /// one. Malformed units are skipped.
    pub(in crate::symbols) fn checksums(&self, found: &mut dyn FnMut(&str, [u8; 16])) {
        let mut units = self.dwarf.units();
        while let Ok(Some(header)) = units.next() {
            let Ok(unit) = self.dwarf.unit(header) else { continue };
            let unit = unit.unit_ref(&self.dwarf);
            let Some(program) = &unit.line_program else { continue };
            let lines = program.header();
            if !lines.file_has_md5() {
                continue;
            }
            for file in lines.file_names().iter().filter(|file| *file.md5() != NONE) {
                if let Ok(name) = name(unit, file, lines) {
                    found(&name, *file.md5());
                }
            }
        }
    }
}

/// A file's name: the compilation directory, the file's directory and the file name.
fn name(
    unit: UnitRef<'_, Reader>,
    file: &FileEntry<Reader>,
    lines: &LineProgramHeader<Reader>,
) -> Result<String> {
    let mut name = match &unit.comp_dir {
        Some(directory) => directory.to_string_lossy()?.into_owned(),
        None => String::new(),
    };
    if file.directory_index() != 0
        && let Some(directory) = file.directory(lines)
    {
        enter(&mut name, &unit.attr_string(directory)?.to_string_lossy()?);
    }
    enter(&mut name, &unit.attr_string(file.path_name())?.to_string_lossy()?);
    Ok(name)
}

/// Appends `part` to a directory's path. Paths may be those of another system.
fn enter(path: &mut String, part: &str) {
    let is_windows = |path: &str| path.starts_with('\\') || path.get(1..3) == Some(":\\");
    if part.starts_with('/') || part.get(1..3) == Some(":/") || is_windows(part) {
        path.clear();
    } else if !path.is_empty() {
        let separator = if is_windows(path) { '\\' } else { '/' };
        if !path.ends_with(separator) {
            path.push(separator);
        }
    }
    path.push_str(part);
}
