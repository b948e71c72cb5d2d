//! The files that a description names.

use std::path::{Path, PathBuf};

use super::document::Document;
use super::error::CaptureError;
use super::has_extension;
use super::ini::Ini;
use crate::paths::Confinement;

/// The files that opening the capture at `path` reads: itself, and what it names if it is a description. Of a description
/// that is not as it should be those are left out that cannot be found in it.
#[must_use]
pub fn files(path: &Path) -> Vec<PathBuf> {
    let mut files = vec![path.to_owned()];
    if path.is_dir() {
        let inside = Confinement::new(path);
        let found = ["snapshot.ini", "capture.toml"].map(|name| inside.resolve(name).ok());
        for description in found.into_iter().flatten().filter(|path| path.is_file()) {
            files.extend(self::files(&description));
        }
    } else if has_extension(path, "toml") {
        files.extend(of_toml(path).unwrap_or_default());
    } else if has_extension(path, "ini") {
        files.extend(of_snapshot(path));
    }
    files
}

fn of_toml(path: &Path) -> Result<Vec<PathBuf>, CaptureError> {
    let document = Document::read(path)?;
    let root = document.parse()?;
    let mut files = Vec::new();
    for (name, key) in [("capture", "file"), ("image", "file"), ("source", "registers")] {
        let tables = match root.is_list(name) {
            true => root.tables(name)?,
            false => root.table(name)?.into_iter().collect(),
        };
        let named = tables.iter().filter(|table| table.is_text(key)).filter_map(|table| {
            // A wrong name is refused when the capture is opened.
            table.file(name, key).ok().flatten()
        });
        files.extend(named.map(|file| file.value));
    }
    Ok(files)
}

/// The list of devices, the files of devices and of the trace, and what they name: each as `file`.
fn of_snapshot(path: &Path) -> Vec<PathBuf> {
    let inside = Confinement::new(path.parent().unwrap_or(Path::new("")));
    let Ok(list) = Ini::read(path) else { return Vec::new() };
    let sections = list.sections.iter().filter(|section| section.is("device_list") || section.is("trace"));
    let values = sections.flat_map(|section| &section.entries).map(|entry| &entry.value);
    let mut files = values.filter_map(|name| inside.resolve(name).ok()).collect::<Vec<_>>();
    for description in files.clone() {
        let Ok(ini) = Ini::read(&description) else { continue };
        let entries = ini.sections.iter().flat_map(|section| &section.entries);
        let named = entries.filter(|entry| entry.is("file"));
        files.extend(named.filter_map(|entry| inside.resolve(&entry.value).ok()));
    }
    files
}
