//! The formats of `tracewalk info`: the content of a capture.

use std::io;
use std::io::Write;

use tracewalk_analysis::table::Table;

use super::format::{Format, format, one_parquet, one_table};
use crate::export::write_tables_json;

/// Writes tables: all of them, or the one of this name. The flag is whether the capture was decoded to its end.
pub type WriteTables = fn(&mut dyn Write, &[Table], &'static str, bool) -> io::Result<()>;

/// Writes the content of a capture.
#[derive(Clone, Copy, Debug)]
pub enum WriteInfo {
    /// For people. The command writes it, because it knows the options that state inferred settings.
    Text,
    /// As tables.
    Tables(WriteTables),
}

/// The formats of a capture's content.
pub const INFO: &[Format<WriteInfo>] = &[
    format("text", "For people", WriteInfo::Text),
    format("csv", "One table, comma-separated", WriteInfo::Tables(one_table)),
    format("parquet", "One table, for data frames and SQL", WriteInfo::Tables(one_parquet)),
    format("json", "The tables as one JSON document", WriteInfo::Tables(all_tables)),
    format("none", "Count everything and print nothing", WriteInfo::Tables(|_, _, _, _| Ok(()))),
];

fn all_tables(out: &mut dyn Write, tables: &[Table], _: &'static str, complete: bool) -> io::Result<()> {
    write_tables_json(out, tables, complete)
}
