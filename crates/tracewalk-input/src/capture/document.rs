//! A TOML file whose keys, types and places are checked as it is read.

use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use tracewalk::plain::plain;

use super::error::{CaptureError, CaptureErrorKind as Kind};
use crate::excerpt::excerpt;
use crate::file::{self, FileProblem};
use crate::nearest::nearest_within;
use crate::origin::{Naming, Origin, Stated};
use crate::paths::Confinement;

/// The text of a TOML file.
pub(super) struct Document {
    path: PathBuf,
    text: String,
    /// The offsets of the lines' ends: each value's line is looked up.
    newlines: Vec<usize>,
    confinement: Confinement,
}

/// A table in a document; the document's root is a table as well.
pub(super) struct Table<'doc, 'text> {
    document: &'doc Document,
    table: DeTable<'text>,
    line: u32,
}

impl Document {
    pub(super) fn read(path: &Path, roots: &[PathBuf]) -> Result<Self, CaptureError> {
        let text = file::read_text(path, file::LONGEST_TEXT).map_err(|problem| CaptureError {
            file: path.to_owned(),
            line: None,
            kind: Kind::File(problem),
        })?;
        let confinement = Confinement::new(path.parent().unwrap_or(Path::new("")), roots);
        let newlines = text.match_indices('\n').map(|(offset, _)| offset).collect();
        Ok(Self { path: path.to_owned(), text, newlines, confinement })
    }

    pub(super) fn parse(&self) -> Result<Table<'_, '_>, CaptureError> {
        let root = DeTable::parse(&self.text).map_err(|error| {
            let line = error.span().map(|span| self.line_of(span.start));
            self.error(line, Kind::Toml(excerpt(error.message())))
        })?;
        Ok(Table { document: self, table: root.into_inner(), line: 1 })
    }

    pub(super) fn error(&self, line: Option<u32>, kind: Kind) -> CaptureError {
        CaptureError { file: self.path.clone(), line, kind }
    }

    pub(super) fn origin(&self, line: u32) -> Origin {
        Origin::line(&self.path, line)
    }

    fn line_of(&self, offset: usize) -> u32 {
        let newlines = self.newlines.partition_point(|&newline| newline < offset);
        u32::try_from(newlines).map_or(u32::MAX, |newlines| newlines.saturating_add(1))
    }
}

impl<'text> Table<'_, 'text> {
    /// The line at which the table starts.
    pub(super) const fn line(&self) -> u32 {
        self.line
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.table.keys().map(|key| key.get_ref().as_ref())
    }

    /// Checks that all keys of the table are among `known`.
    pub(super) fn check_keys(&self, place: &str, known: &[&'static str]) -> Result<(), CaptureError> {
        for key in self.table.keys() {
            let name = key.get_ref().as_ref();
            if !known.contains(&name) {
                let nearest = nearest_within(name, known.iter().copied()).unwrap_or("");
                let kind = Kind::UnknownKey { place: place.to_owned(), key: excerpt(name), nearest };
                return Err(self.document.error(Some(self.document.line_of(key.span().start)), kind));
            }
        }
        Ok(())
    }

    /// An error at the value of this key.
    pub(super) fn error_at(&self, key: &str, kind: Kind) -> CaptureError {
        let line = self.get(key).map_or(self.line, |value| self.line_of(value));
        self.document.error(Some(line), kind)
    }

    /// The value, or an error if it is missing.
    pub(super) fn required<T>(
        &self,
        place: &str,
        key: &'static str,
        value: Option<T>,
    ) -> Result<T, CaptureError> {
        let missing = || Kind::MissingKey { place: place.to_owned(), key };
        value.ok_or_else(|| self.document.error(Some(self.line), missing()))
    }

    pub(super) fn is_text(&self, key: &str) -> bool {
        matches!(self.get(key).map(Spanned::get_ref), Some(DeValue::String(_)))
    }

    pub(super) fn is_list(&self, key: &str) -> bool {
        matches!(self.get(key).map(Spanned::get_ref), Some(DeValue::Array(_)))
    }

    /// The text of this key without control characters, for messages and comparisons.
    pub(super) fn text(&self, key: &str) -> Result<Option<Stated<String>>, CaptureError> {
        let text = self.exact_text(key)?;
        Ok(text.map(|Stated { value, origin }| Stated::new(plain(value.into()).into_owned(), origin)))
    }

    fn exact_text(&self, key: &str) -> Result<Option<Stated<String>>, CaptureError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match value.get_ref() {
            DeValue::String(text) => Ok(Some(self.stated(text.clone().into_owned(), value))),
            other => Err(self.type_error(key, "a string", other)),
        }
    }

    /// The texts in this key's list; empty if the key is absent.
    pub(super) fn texts(&self, key: &str) -> Result<Vec<String>, CaptureError> {
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        let DeValue::Array(values) = value.get_ref() else {
            return Err(self.type_error(key, "a list of strings", value.get_ref()));
        };
        let texts = values.iter().map(|value| match value.get_ref() {
            DeValue::String(text) => Ok(plain(text.as_ref().into()).into_owned()),
            other => Err(self.type_error(key, "a list of strings", other)),
        });
        texts.collect()
    }

    /// The truth value of this key.
    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, CaptureError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match value.get_ref() {
            DeValue::Boolean(flag) => Ok(Some(*flag)),
            other => Err(self.type_error(key, "true or false", other)),
        }
    }

    /// The number of this key, at most `limit`.
    pub(super) fn number(&self, key: &str, limit: u64) -> Result<Option<Stated<u64>>, CaptureError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let DeValue::Integer(integer) = value.get_ref() else {
            return Err(self.type_error(key, "a number", value.get_ref()));
        };
        let Ok(number) = u64::from_str_radix(integer.as_str(), integer.radix()) else {
            let kind = Kind::Type {
                key: excerpt(key),
                expected: "a positive 64-bit number",
                found: format!("`{}`", excerpt(integer.as_str())),
            };
            return Err(self.error_at(key, kind));
        };
        if number > limit {
            return Err(self.error_at(key, Kind::TooLarge { key: excerpt(key), found: number, limit }));
        }
        Ok(Some(self.stated(number, value)))
    }

    /// The path of the file that this key names.
    pub(super) fn file(&self, section: &str, key: &str) -> Result<Option<Stated<PathBuf>>, CaptureError> {
        let Some(name) = self.exact_text(key)? else { return Ok(None) };
        let path = self.document.confinement.resolve(&name.value);
        let path = path.map_err(|problem| {
            self.error_at(
                key,
                Kind::Path {
                    name: excerpt(&name.value),
                    problem,
                    by: Some(Box::new(self.naming(section, key))),
                },
            )
        })?;
        Ok(Some(Stated::new(path, name.origin)))
    }

    /// The place where a file is named.
    pub(super) fn naming(&self, section: &str, key: &str) -> Naming {
        let line = self.get(key).map_or(self.line, |value| self.line_of(value));
        Naming { key: key.to_owned(), section: section.to_owned(), file: self.document.path.clone(), line }
    }

    /// The error for an unreadable file that this key names.
    pub(super) fn unreadable(
        &self,
        section: &str,
        key: &str,
        file: &Path,
        problem: FileProblem,
    ) -> CaptureError {
        let by = Box::new(self.naming(section, key));
        self.error_at(key, Kind::NamedFile { file: file.to_owned(), problem, by })
    }

    pub(super) fn required_file(
        &self,
        place: &str,
        key: &'static str,
    ) -> Result<Stated<PathBuf>, CaptureError> {
        self.required(place, key, self.file(place, key)?)
    }

    /// The table of this key.
    pub(super) fn table(&self, key: &str) -> Result<Option<Table<'_, 'text>>, CaptureError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match value.get_ref() {
            DeValue::Table(table) => Ok(Some(self.inner(table, value))),
            other => Err(self.type_error(key, "a table", other)),
        }
    }

    /// The tables of this key, one for each `[[key]]`, in order.
    pub(super) fn tables(&self, key: &str) -> Result<Vec<Table<'_, 'text>>, CaptureError> {
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        let DeValue::Array(values) = value.get_ref() else {
            return Err(self.type_error(key, "tables, each under its own [[…]]", value.get_ref()));
        };
        let tables = values.iter().map(|value| match value.get_ref() {
            DeValue::Table(table) => Ok(self.inner(table, value)),
            other => Err(self.type_error(key, "tables", other)),
        });
        tables.collect()
    }

    fn inner(&self, table: &DeTable<'text>, value: &Spanned<DeValue<'text>>) -> Table<'_, 'text> {
        Table { document: self.document, table: table.clone(), line: self.line_of(value) }
    }

    fn get(&self, key: &str) -> Option<&Spanned<DeValue<'text>>> {
        self.table.iter().find(|(name, _)| name.get_ref() == key).map(|(_, value)| value)
    }

    fn line_of(&self, value: &Spanned<DeValue<'_>>) -> u32 {
        self.document.line_of(value.span().start)
    }

    fn stated<T>(&self, value: T, place: &Spanned<DeValue<'_>>) -> Stated<T> {
        Stated::new(value, self.document.origin(self.line_of(place)))
    }

    fn type_error(&self, key: &str, expected: &'static str, found: &DeValue<'_>) -> CaptureError {
        let found = match found {
            DeValue::String(text) => format!("the string `{}`", excerpt(text)),
            DeValue::Integer(_) => "a number".to_owned(),
            DeValue::Float(_) => "a floating-point number".to_owned(),
            DeValue::Boolean(_) => "true or false".to_owned(),
            DeValue::Datetime(_) => "a date".to_owned(),
            DeValue::Array(_) => "a list".to_owned(),
            DeValue::Table(_) => "a table".to_owned(),
        };
        self.error_at(key, Kind::Type { key: excerpt(key), expected, found })
    }
}
