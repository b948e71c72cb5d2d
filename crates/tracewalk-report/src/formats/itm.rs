//! The formats of ITMs' reports.

use std::io::Write;
use std::sync::Arc;

use tracewalk_analysis::Code;
use tracewalk_analysis::itm::VALUES_TABLE;
use tracewalk_analysis::sink::Nothing;
use tracewalk_analysis::table::TakeRows;

use super::format::{Format, format};
use crate::Look;
use crate::export::ExportItm;
use crate::export::ItmJsonl;
use crate::export::ItmTables;
use crate::export::ItmText;
use crate::export::ItmValues;
use crate::export::StimulusBytes;
use crate::export::TableCsv;
use crate::export::TableParquet;
use crate::export::TablesJson;
use crate::export::WatchedBy;

/// Makes a writer of ITMs' records.
#[derive(Clone, Copy, Debug)]
pub struct MakeItm {
    /// Takes records in the order of the capture.
    pub export: for<'a> fn(&'a mut (dyn Write + 'a), &ItmOptions) -> Box<dyn ExportItm + 'a>,
    /// Whether the format writes only the bytes of some ports.
    pub of_ports: bool,
}

/// Options for writing ITMs' reports.
#[derive(Clone, Debug)]
pub struct ItmOptions {
    /// The colours and the width.
    pub look: Look,
    /// The stimulus ports whose bytes are written.
    pub ports: Vec<u8>,
    /// The names of the kernel that wrote through an STM, or of the program that wrote through an ITM.
    pub code: Arc<Code>,
    /// What the comparators beside ITMs watch.
    pub watched: WatchedBy,
    /// The table that CSV writes.
    pub table: &'static str,
}

/// Writes the table that is asked for, or all.
fn tables<'a>(rows: impl TakeRows + 'a, options: &ItmOptions) -> Box<dyn ExportItm + 'a> {
    let watched = options.watched.clone();
    match options.table {
        VALUES_TABLE => Box::new(ItmValues::new(rows, watched, Arc::clone(&options.code))),
        _ => Box::new(ItmTables::new(rows, watched)),
    }
}

/// The formats of ITMs' reports.
pub const ITM: &[Format<MakeItm>] = &[
    format(
        "text",
        "The bytes that software wrote to a stimulus port of an ITM; a line for each message, value and event of an STM",
        MakeItm {
            export: |out, options| {
                Box::new(StimulusBytes::new(out, options.ports.clone(), Arc::clone(&options.code)))
            },
            of_ports: true,
        },
    ),
    format(
        "events",
        "A line for each report, with its offset in the capture",
        MakeItm {
            export: |out, options| Box::new(ItmText::new(out, options.look, options.watched.clone())),
            of_ports: false,
        },
    ),
    format(
        "jsonl",
        "One JSON object per line",
        MakeItm {
            export: |out, options| {
                Box::new(ItmJsonl::new(out, Arc::clone(&options.code), options.watched.clone()))
            },
            of_ports: false,
        },
    ),
    format(
        "csv",
        "One table, comma-separated",
        MakeItm { export: |out, options| tables(TableCsv::of(out, options.table), options), of_ports: false },
    ),
    format(
        "parquet",
        "One table, for data frames and SQL",
        MakeItm {
            export: |out, options| tables(TableParquet::of(out, options.table), options),
            of_ports: false,
        },
    ),
    format(
        "json",
        "The tables as one JSON document",
        MakeItm {
            export: |out, options| Box::new(ItmTables::new(TablesJson::new(out), options.watched.clone())),
            of_ports: false,
        },
    ),
    format(
        "none",
        "Decode everything and print nothing",
        MakeItm { export: |_, _| Box::new(Nothing), of_ports: false },
    ),
];
