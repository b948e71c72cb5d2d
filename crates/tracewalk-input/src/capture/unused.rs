//! Statements of a description that are not used.

use std::fmt;
use std::path::{Path, PathBuf};

use tracewalk::plain::Plain;

use super::ini::{Entry, Ini, Section};
use crate::excerpt::excerpt;

/// An entry of a snapshot's files that does not affect decoding. Tools add their own entries; users may want
/// to see them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unused {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: u32,
    /// The section.
    pub section: String,
    /// The key.
    pub key: String,
    /// The value.
    pub value: String,
}

/// The most entries kept. Arm's own files have a few dozens.
const MOST: usize = 1000;

impl fmt::Display for Unused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, section, key, value } = self;
        let [section, key] = [section, key].map(|name| excerpt(name));
        let value = if value.is_empty() { String::new() } else { excerpt(value) };
        write!(f, "{}:{line}: [{section}] {key}={value}", Plain(file.display()))
    }
}

impl Ini {
    /// Adds the entries that are not `used`.
    pub(super) fn add_unused(
        &self,
        file: &Path,
        unused: &mut Vec<Unused>,
        used: impl Fn(&Section, &Entry) -> bool,
    ) {
        let entries = self.sections.iter().flat_map(|section| {
            let entries = section.entries.iter();
            entries.map(move |entry| (section, entry))
        });
        let found = entries.filter(|(section, entry)| !used(section, entry)).map(|(section, entry)| Unused {
            file: file.to_owned(),
            line: entry.line,
            section: section.name.clone(),
            key: entry.key.clone(),
            value: entry.value.clone(),
        });
        unused.extend(found.take(MOST.saturating_sub(unused.len())));
    }
}
