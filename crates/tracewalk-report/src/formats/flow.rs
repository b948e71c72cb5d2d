//! The formats of program flow.

use std::io::Write;

use tracewalk_analysis::analysis::FlowSink;
use tracewalk_analysis::sink::Join;
use tracewalk_analysis::sink::Nothing;
use tracewalk_analysis::values::ValueSink;

use super::format::{Format, format};
use crate::Look;
use crate::export::FlowJsonl;
use crate::export::FlowTable;
use crate::export::Listing;
use crate::export::ListingOptions;
use crate::export::Runs;
use crate::export::TableCsv;
use crate::export::TableParquet;
use crate::export::TablesJson;
use crate::export::ValuesJsonl;
use crate::export::ValuesText;

/// Options for writing program flow.
#[derive(Clone, Debug)]
pub struct FlowOptions {
    /// The colours and the width.
    pub look: Look,
    /// Lines of the source between the instructions, in text.
    pub source_lines: bool,
    /// Each line is written as soon as it is known.
    pub at_once: bool,
}

/// Makes a writer of program flow.
#[derive(Clone, Copy, Debug)]
pub struct MakeFlow {
    /// Takes records in the order of the trace.
    pub sink: for<'a> fn(&'a mut (dyn Write + 'a), &FlowOptions) -> Box<dyn FlowSink + 'a>,
    /// The same in parts that threads make, if the format allows it.
    pub parts: Option<FlowParts>,
    /// Whether the format shows the names of functions and lines of the source.
    pub names: bool,
}

/// Makes a writer of flow with values to `out`; `None` if the format has no values.
pub fn make_values<'a>(
    format: &str,
    out: &'a mut (dyn Write + 'a),
    options: &FlowOptions,
) -> Option<Box<dyn ValueSink + 'a>> {
    match format {
        "text" => Some(Box::new(ValuesText::new(out, options.look))),
        "jsonl" => Some(Box::new(ValuesJsonl::new(out))),
        "csv" => Some(Box::new(FlowTable::new(TableCsv::new(out)))),
        "parquet" => Some(Box::new(FlowTable::new(TableParquet::new(out)))),
        "json" => Some(Box::new(FlowTable::new(TablesJson::new(out)))),
        _ => None,
    }
}

/// A writer of flow in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowParts {
    /// [`Nothing`].
    Nothing,
    /// [`Runs`].
    Runs,
    /// [`FlowJsonl`].
    Jsonl,
}

/// Uses a writer of flow in parts.
pub trait WithJoin {
    /// The result.
    type Answer;

    /// Uses the writer.
    fn with(self, sink: &mut impl Join) -> Self::Answer;
}

impl FlowParts {
    /// Makes the writer to `out`, and passes it to `visitor`.
    pub fn with<V: WithJoin>(self, out: &mut impl Write, visitor: V) -> V::Answer {
        match self {
            Self::Nothing => visitor.with(&mut Nothing),
            Self::Runs => visitor.with(&mut Runs::new(out)),
            Self::Jsonl => visitor.with(&mut FlowJsonl::new(out)),
        }
    }
}

/// The formats of program flow.
pub const FLOW: &[Format<MakeFlow>] = &[
    format("text", "A listing for people", MakeFlow { sink: flow_text, parts: None, names: true }),
    format(
        "runs",
        "The executed addresses, one run per line",
        MakeFlow { sink: flow_runs, parts: Some(FlowParts::Runs), names: false },
    ),
    format(
        "jsonl",
        "One JSON object per line",
        MakeFlow {
            sink: |out, _| Box::new(FlowJsonl::new(out)),
            parts: Some(FlowParts::Jsonl),
            names: false,
        },
    ),
    format(
        "csv",
        "A line for each element, comma-separated",
        MakeFlow { sink: |out, _| Box::new(FlowTable::new(TableCsv::new(out))), parts: None, names: true },
    ),
    format(
        "parquet",
        "The same rows, for data frames and SQL",
        MakeFlow {
            sink: |out, _| Box::new(FlowTable::new(TableParquet::new(out))),
            parts: None,
            names: true,
        },
    ),
    format(
        "json",
        "The same as one JSON document",
        MakeFlow { sink: |out, _| Box::new(FlowTable::new(TablesJson::new(out))), parts: None, names: true },
    ),
    format(
        "none",
        "Decode everything and print nothing",
        MakeFlow { sink: |_, _| Box::new(Nothing), parts: Some(FlowParts::Nothing), names: false },
    ),
];

fn flow_text<'a>(out: &'a mut (dyn Write + 'a), options: &FlowOptions) -> Box<dyn FlowSink + 'a> {
    let FlowOptions { look, source_lines, .. } = *options;
    Box::new(Listing::new(out, ListingOptions { look, source_lines }))
}

fn flow_runs<'a>(out: &'a mut (dyn Write + 'a), options: &FlowOptions) -> Box<dyn FlowSink + 'a> {
    let runs = Runs::new(out);
    Box::new(if options.at_once { runs.at_once() } else { runs })
}
