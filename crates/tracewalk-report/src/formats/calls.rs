//! The formats of calls.

use std::io;
use std::io::Write;

use tracewalk_analysis::analysis::FlowSink;
use tracewalk_analysis::sink::Nothing;

use super::format::{Format, format};
use crate::export::CallChainsOptions;
use crate::export::CallTable;
use crate::export::CallTree;
use crate::export::CallTreeOptions;
use crate::export::ProfileReport;
use crate::export::TableCsv;
use crate::export::TableParquet;
use crate::export::TablesJson;
use crate::export::write_call_chains;
use crate::export::write_chain_rows;

/// Makes a writer of calls.
#[derive(Clone, Copy, Debug)]
pub struct MakeCalls {
    /// One by one, as they ran.
    pub tree: for<'a> fn(&'a mut (dyn Write + 'a), CallTreeOptions) -> Box<dyn FlowSink + 'a>,
    /// Added up by chains.
    pub chains: fn(&mut dyn Write, &ProfileReport, &CallChainsOptions) -> io::Result<()>,
}

/// The formats of calls.
pub const CALLS: &[Format<MakeCalls>] = &[
    format(
        "text",
        "A tree for people",
        MakeCalls { tree: |out, options| Box::new(CallTree::new(out, options)), chains: write_call_chains },
    ),
    format(
        "csv",
        "A line for each call, or each chain, comma-separated",
        MakeCalls {
            tree: |out, CallTreeOptions { window, depth, .. }| {
                Box::new(CallTable::new(TableCsv::new(out), window, depth))
            },
            chains: |out, report, options| write_chain_rows(&mut TableCsv::new(out), report, options.depth),
        },
    ),
    format(
        "parquet",
        "The same rows, for data frames and SQL",
        MakeCalls {
            tree: |out, CallTreeOptions { window, depth, .. }| {
                Box::new(CallTable::new(TableParquet::new(out), window, depth))
            },
            chains: |out, report, options| {
                write_chain_rows(&mut TableParquet::new(out), report, options.depth)
            },
        },
    ),
    format(
        "json",
        "The same as one JSON document",
        MakeCalls {
            tree: |out, CallTreeOptions { window, depth, .. }| {
                Box::new(CallTable::new(TablesJson::new(out), window, depth))
            },
            chains: |out, report, options| write_chain_rows(&mut TablesJson::new(out), report, options.depth),
        },
    ),
    format(
        "none",
        "Follow everything and print nothing",
        MakeCalls {
            tree: |_, CallTreeOptions { window, depth, .. }| Box::new(CallTable::new(Nothing, window, depth)),
            chains: |_, _, _| Ok(()),
        },
    ),
];
