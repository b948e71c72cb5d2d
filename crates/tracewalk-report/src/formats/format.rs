//! The type of a format, and formats that write one of several tables.

use std::io::{self, Write};
use std::path::Path;

use tracewalk_analysis::table::Table;

use crate::export::{TableCsv, TableParquet, write_tables};

/// An output format.
#[derive(Clone, Copy, Debug)]
pub struct Format<Make: 'static> {
    /// The name in `--format`.
    pub name: &'static str,
    /// The help: a phrase without a full stop.
    pub help: &'static str,
    /// The function that writes it.
    pub make: Make,
}

/// The format of this name.
#[must_use]
pub fn find<Make>(formats: &'static [Format<Make>], name: &str) -> Option<&'static Format<Make>> {
    formats.iter().find(|format| format.name == name)
}

/// The endings of files' names, and the formats that such a file may have.
const ENDINGS: [(&str, &[&str]); 16] = [
    (".csv", &["csv"]),
    (".json.gz", &["firefox"]),
    (".jsonl", &["jsonl"]),
    (".json", &["json", "jsonl", "chrome", "speedscope", "firefox"]),
    (".parquet", &["parquet"]),
    (".html", &["html"]),
    (".info", &["lcov"]),
    (".lcov", &["lcov"]),
    (".xml", &["cobertura"]),
    (".svg", &["flamegraph"]),
    (".folded", &["folded"]),
    (".pb.gz", &["pprof"]),
    (".pprof", &["pprof"]),
    (".pftrace", &["perfetto"]),
    (".md", &["markdown"]),
    (".runs", &["runs"]),
];

/// The formats that a file of this name may have: none if the name states no format.
#[must_use]
pub fn formats_of_file(file: &Path) -> &'static [&'static str] {
    let name = file.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    ENDINGS.iter().find(|(ending, _)| name.ends_with(ending)).map_or(&[], |(_, formats)| formats)
}

/// The first format of a registry that a file of this name may have.
#[must_use]
pub fn of_file<Make>(formats: &'static [Format<Make>], file: &Path) -> Option<&'static Format<Make>> {
    formats_of_file(file).iter().find_map(|name| find(formats, name))
}

/// A short constructor for the registries.
pub(super) const fn format<Make>(name: &'static str, help: &'static str, make: Make) -> Format<Make> {
    Format { name, help, make }
}
pub(super) fn one_table(
    out: &mut dyn Write,
    tables: &[Table],
    name: &'static str,
    complete: bool,
) -> io::Result<()> {
    write_tables(&mut TableCsv::of(out, name), tables, complete)
}

pub(super) fn one_parquet(
    out: &mut dyn Write,
    tables: &[Table],
    name: &'static str,
    complete: bool,
) -> io::Result<()> {
    write_tables(&mut TableParquet::of(out, name), tables, complete)
}
