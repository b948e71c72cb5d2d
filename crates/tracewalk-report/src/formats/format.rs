//! The type of a format, and formats that write one of several tables.

use std::io::{self, Write};

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
