//! The formats of packets.

use std::io::Write;

use tracewalk_analysis::record::PacketRecord;
use tracewalk_analysis::sink::Sink;

use super::format::{Format, format};
use crate::Look;
use crate::export::PacketTable;
use crate::export::PacketsJsonl;
use crate::export::PacketsText;
use crate::export::TableCsv;
use crate::export::TableParquet;
use crate::export::TablesJson;

/// Takes packets.
pub type PacketSink<'a> = Box<dyn for<'b> Sink<PacketRecord<'b>> + 'a>;

/// Makes a consumer of packets; `None` for a format without one.
pub type MakePackets = for<'a> fn(&'a mut (dyn Write + 'a), Look) -> Option<PacketSink<'a>>;

/// The formats of packets.
pub const PACKETS: &[Format<MakePackets>] = &[
    format("text", "A table for people", |out, look| Some(Box::new(PacketsText::new(out, look)))),
    format("jsonl", "One JSON object per line", |out, _| Some(Box::new(PacketsJsonl::new(out)))),
    format("csv", "The number of packets of each kind, comma-separated", |out, _| {
        Some(Box::new(PacketTable::new(TableCsv::new(out))))
    }),
    format("parquet", "The same rows, for data frames and SQL", |out, _| {
        Some(Box::new(PacketTable::new(TableParquet::new(out))))
    }),
    format("json", "The same as one JSON document", |out, _| {
        Some(Box::new(PacketTable::new(TablesJson::new(out))))
    }),
    format("none", "Decode everything and print nothing", |_, _| None),
];
