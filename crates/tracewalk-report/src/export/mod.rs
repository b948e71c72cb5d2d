//! Output formats: records in, one format's bytes out. One file for each format.
//!
//! To add a format: a file with a type that implements [`Export`], and a line here.

mod callgrind;
mod cobertura;
mod coverage_html;
mod coverage_json;
mod coverage_text;
mod diff;
mod firefox;
mod flamegraph;
mod flow_jsonl;
mod folded;
mod interrupts;
mod itm;
mod json;
mod last;
mod lcov;
mod packets_jsonl;
mod pprof;
mod profile;
mod runs;
mod speedscope;
mod text;
mod timeline;

use std::io;

use tracewalk::flow::Element;
use tracewalk::source::PacketItem;
use tracewalk::span::CaptureOffset;

use crate::Section;
use crate::analysis::Doubting;
use crate::drive::{ItmRecord, Part};

pub use callgrind::write_callgrind;
pub use cobertura::write_cobertura;
pub use coverage_html::write_coverage_html;
pub use coverage_json::write_coverage_json;
pub use coverage_text::{CoverageTextOptions, write_coverage_text};
pub use diff::{DiffReport, FunctionDiff, SourceDiff, write_diff_json, write_diff_text};
pub use firefox::write_firefox;
pub use flamegraph::write_flamegraph;
pub use flow_jsonl::FlowJsonl;
pub use folded::write_folded;
pub use interrupts::{
    InterruptRecording, InterruptReport, write_interrupts_csv, write_interrupts_json, write_interrupts_text,
};
pub use itm::{ExportItm, ItmJsonl, ItmText, StimulusBytes};
pub use last::LastInstructions;
pub use lcov::write_lcov;
pub use packets_jsonl::PacketsJsonl;
pub use pprof::write_pprof;
pub use profile::{ProfileReport, best_unit};
pub use runs::{Runs, RunsPart};
pub use speedscope::write_speedscope;
pub use text::{
    CallChainsOptions, CallTree, CallTreeOptions, Listing, ListingOptions, PacketsText, ProfileTable,
    ProfileTextOptions, write_call_chains, write_profile_text,
};
pub use timeline::{
    ChromeTrace, CommonTraceFormat, Files, PerfettoTrace, TimelineExport, TimelineText, Timelines,
};

/// Something that writes records down.
///
/// The calls come as `begin (section record* end_section)*`. What an error leaves behind is a part of the output.
pub trait Export<Record> {
    /// The output begins.
    fn begin(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// A source's records follow.
    fn section(&mut self, section: &Section) -> io::Result<()>;

    /// The source's next record.
    fn record(&mut self, record: Record) -> io::Result<()>;

    /// Whether it wants to know what an ITM told beside the source.
    fn shows_itm(&self) -> bool {
        false
    }

    /// What an ITM in the same frames told, before the source's next record.
    fn itm(&mut self, _record: &ItmRecord) -> io::Result<()> {
        Ok(())
    }

    /// The source's records before the next one are not given. Behind them this is in doubt.
    fn go_on(&mut self, _doubting: Doubting) {}

    /// So many of the source's instructions were left out because they are in doubt.
    fn left_out(&mut self, _instructions: u64) {}

    /// The source has no more records.
    fn end_section(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<Record, E: Export<Record> + ?Sized> Export<Record> for Box<E> {
    fn begin(&mut self) -> io::Result<()> {
        (**self).begin()
    }

    fn section(&mut self, section: &Section) -> io::Result<()> {
        (**self).section(section)
    }

    fn record(&mut self, record: Record) -> io::Result<()> {
        (**self).record(record)
    }

    fn shows_itm(&self) -> bool {
        (**self).shows_itm()
    }

    fn itm(&mut self, record: &ItmRecord) -> io::Result<()> {
        (**self).itm(record)
    }

    fn go_on(&mut self, doubting: Doubting) {
        (**self).go_on(doubting);
    }

    fn left_out(&mut self, instructions: u64) {
        (**self).left_out(instructions);
    }

    fn end_section(&mut self) -> io::Result<()> {
        (**self).end_section()
    }
}

/// Something that writes program flow down and can put parts together that were made elsewhere.
///
/// The calls come as `begin (section join* end_section)*`.
pub trait Join: Export<FlowRecord> {
    /// What is made of a part of the records.
    type Part: Part;

    /// What a part of the section that has begun is made from.
    fn part(&self) -> Self::Part;

    /// Writes down the next part of a section.
    fn join(&mut self, part: Self::Part) -> io::Result<()>;
}

/// Writes nothing down.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

impl<Record> Export<Record> for Nothing {
    fn section(&mut self, _: &Section) -> io::Result<()> {
        Ok(())
    }

    fn record(&mut self, _: Record) -> io::Result<()> {
        Ok(())
    }
}

impl Join for Nothing {
    type Part = ();

    fn part(&self) {}

    fn join(&mut self, (): ()) -> io::Result<()> {
        Ok(())
    }
}

/// A piece of program flow and where the trace says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRecord {
    /// The piece.
    pub element: Element,
    /// The capture's byte with which the trace that proves it begins.
    pub at: CaptureOffset,
}

/// A piece of a source's bytes.
#[derive(Clone, Copy)]
pub struct PacketRecord<'a> {
    /// What the bytes are.
    pub content: PacketItem<'a>,
    /// Where their first one stands in the capture.
    pub at: CaptureOffset,
    /// The bytes, never none.
    pub bytes: &'a [u8],
}

#[cfg(test)]
pub(crate) mod samples;
