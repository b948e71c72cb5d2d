//! The `.ini` files of DS-5 and OpenCSD snapshots.
//!
//! Keys contain `:` and `(` (`ETMCR(id:0x0)=0x400`), so a line is split at its first `=`. Lines that start
//! with `;` or `#` are comments; so is the rest of a line after a blank and one of these characters. Letter
//! case, order and repeated keys are kept: a core with two trace sources has two lines with the same key.
//! Control characters for terminals are removed.

use std::path::Path;

use tracewalk::plain::plain;

use super::error::{CaptureError, CaptureErrorKind};
use crate::excerpt::excerpt;
use crate::file;

/// A file of sections.
#[derive(Debug, Default)]
pub(crate) struct Ini {
    pub(crate) sections: Vec<Section>,
}

/// A `[name]` and the lines below it.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) name: String,
    pub(crate) line: u32,
    pub(crate) entries: Vec<Entry>,
}

/// A `key=value` line.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) value: String,
    pub(crate) line: u32,
}

impl Entry {
    /// Whether the entry has this key, in any letter case.
    pub(crate) fn is(&self, key: &str) -> bool {
        self.key.eq_ignore_ascii_case(key)
    }
}

impl Ini {
    /// Reads and parses the file at `path`.
    pub(crate) fn read(path: &Path) -> Result<Self, CaptureError> {
        let error = |line, kind| CaptureError { file: path.to_owned(), line, kind };
        let text = file::read_text(path, file::LONGEST_TEXT)
            .map_err(|problem| error(None, CaptureErrorKind::File(problem)))?;
        Self::parse(&text).map_err(|(line, kind)| error(Some(line), kind))
    }

    /// Parses the text of a file. An error comes with its line.
    pub(crate) fn parse(text: &str) -> Result<Self, (u32, CaptureErrorKind)> {
        let mut ini = Self::default();
        for (line, text) in lines(text) {
            if let Some(name) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
                let name = plain(name.0.trim().into()).into_owned();
                ini.sections.push(Section { name, line, entries: Vec::new() });
                continue;
            }
            let Some((key, value)) = assignment(text) else {
                return Err((line, CaptureErrorKind::Line { found: excerpt(text) }));
            };
            let Some(section) = ini.sections.last_mut() else {
                return Err((line, CaptureErrorKind::BeforeSection { key: excerpt(key) }));
            };
            let [key, value] = [key, value].map(|text| plain(text.into()).into_owned());
            section.entries.push(Entry { key, value, line });
        }
        Ok(ini)
    }

    /// The first section with exactly this name, or else in any letter case.
    pub(crate) fn section(&self, name: &str) -> Option<&Section> {
        let exact = self.sections.iter().find(|section| section.name == name);
        exact.or_else(|| self.sections.iter().find(|section| section.is(name)))
    }
}

impl Section {
    /// Whether the section has this name, in any letter case.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    /// Whether the section's name begins with this word, in any letter case: `dump`, `dump1`, `Dump2`.
    pub(crate) fn is_numbered(&self, word: &str) -> bool {
        self.name.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
    }

    /// The first entry with this key, in any letter case.
    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.is(key))
    }
}

/// The lines of a text that are neither empty nor comments, with their numbers from 1.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (u32, &str)> {
    let numbered = (1..=u32::MAX).zip(text.lines().map(str::trim));
    numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with([';', '#']))
}

/// Splits `key=value`, and removes blanks, quotes around the value and a comment after it.
pub(crate) fn assignment(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once('=')?;
    let comment = [" ;", "\t;", " #", "\t#"].iter().filter_map(|start| value.find(start)).min();
    let value = value.get(..comment.unwrap_or(value.len())).unwrap_or(value).trim();
    let unquoted = ['"', '\''].iter().find_map(|&quote| value.strip_prefix(quote)?.strip_suffix(quote));
    let key = key.trim();
    (!key.is_empty()).then_some((key, unquoted.unwrap_or(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_split_at_the_first_equals_sign_and_keep_order_and_duplicates() {
        let ini = Ini::parse(
            "; comment\n# comment\n\n[regs]\r\nETMCR(id:0x0)=0x400\n  a = b=c ; why\ncpu_0=A\ncpu_0=B\n[ dump ]\nfile=\"x #1\"",
        )
        .unwrap();
        let entries = ini.sections[0].entries.iter().map(|entry| (&*entry.key, &*entry.value, entry.line));
        assert!(entries.eq([
            ("ETMCR(id:0x0)", "0x400", 5),
            ("a", "b=c", 6),
            ("cpu_0", "A", 7),
            ("cpu_0", "B", 8)
        ]));
        assert_eq!((&*ini.sections[1].name, ini.sections[1].line), ("dump", 9));
        assert_eq!(ini.section("Regs").map(|regs| regs.line), ini.section("regs").map(|regs| regs.line));
        assert_eq!(ini.section("regs").and_then(|regs| regs.entry("A")).map(|entry| entry.line), Some(6));
    }

    #[test]
    fn a_line_that_is_nothing_is_reported_with_its_number() {
        assert_eq!(
            Ini::parse("[a]\nb=1\nnonsense").unwrap_err(),
            (3, CaptureErrorKind::Line { found: "nonsense".to_owned() })
        );
        assert_eq!(
            Ini::parse("a=1").unwrap_err(),
            (1, CaptureErrorKind::BeforeSection { key: "a".to_owned() })
        );
        assert!(Ini::parse("[a]\n=1").is_err());
    }
}
