//! The formats of timelines.

use std::io::Write;

use tracewalk_analysis::sink::Nothing;

use super::format::{Format, format};
use crate::Look;
use crate::export::ChromeTrace;
use crate::export::CommonTraceFormat;
use crate::export::Files;
use crate::export::PerfettoTrace;
use crate::export::TableCsv;
use crate::export::TableParquet;
use crate::export::TablesJson;
use crate::export::TimelineExport;
use crate::export::TimelineTable;
use crate::export::TimelineText;

/// Makes a writer of timelines.
#[derive(Clone, Copy, Debug)]
pub enum MakeTimeline {
    /// For people: each line is written as soon as it is known.
    Text(for<'a> fn(&'a mut (dyn Write + 'a), Look) -> Box<dyn TimelineExport + 'a>),
    /// In one file.
    File(for<'a> fn(&'a mut (dyn Write + 'a)) -> Box<dyn TimelineExport + 'a>),
    /// In the files of a folder.
    Folder(for<'a> fn(&'a mut (dyn Files + 'a)) -> Box<dyn TimelineExport + 'a>),
}

/// The formats of timelines.
pub const TIMELINE: &[Format<MakeTimeline>] = &[
    format(
        "text",
        "Lines for people",
        MakeTimeline::Text(|out, look| Box::new(TimelineText::new(out, look))),
    ),
    format(
        "perfetto",
        "A protocol buffer for ui.perfetto.dev and its trace processor",
        MakeTimeline::File(|out| Box::new(PerfettoTrace::new(out))),
    ),
    format(
        "chrome",
        "JSON for chrome://tracing and Perfetto",
        MakeTimeline::File(|out| Box::new(ChromeTrace::new(out))),
    ),
    format(
        "csv",
        "A line for each span and mark, comma-separated",
        MakeTimeline::File(|out| Box::new(TimelineTable::new(TableCsv::new(out)))),
    ),
    format(
        "parquet",
        "The same rows, for data frames and SQL",
        MakeTimeline::File(|out| Box::new(TimelineTable::new(TableParquet::new(out)))),
    ),
    format(
        "json",
        "The same as one JSON document",
        MakeTimeline::File(|out| Box::new(TimelineTable::new(TablesJson::new(out)))),
    ),
    format(
        "ctf",
        "A folder in the Common Trace Format 1.8, for babeltrace2 and Trace Compass",
        MakeTimeline::Folder(|files| Box::new(CommonTraceFormat::new(files))),
    ),
    format("none", "Follow everything and print nothing", MakeTimeline::File(|_| Box::new(Nothing))),
];
