//! Timelines, each format in a file of its own.
//!
//! A timeline is written while the trace is followed: only open spans are kept.

mod chrome;
mod ctf;
mod names;
#[cfg(feature = "full")]
mod perfetto;
mod table;
mod text;
use std::sync::Arc;

use std::io;

use tracewalk_analysis::analysis::{FlowSink, Repeated};
use tracewalk_analysis::itm::{ItmEvent, Watched};
use tracewalk_analysis::record::ItmRecord;
use tracewalk_analysis::timeline::{Item, ReportedTimeline, Scale, Timeline};
use tracewalk_analysis::{Section, Window};

use tracewalk_analysis::record::FlowRecord;
use tracewalk_analysis::sink::{Nothing, Sink};

pub(super) use names::Names;

pub use chrome::ChromeTrace;
pub use ctf::{CommonTraceFormat, Files};
#[cfg(feature = "full")]
pub use perfetto::PerfettoTrace;
pub use table::TimelineTable;
pub use text::TimelineText;

/// Writes timelines, source by source.
///
/// The order of calls is `(section item* end_section)* finish`.
pub trait TimelineExport {
    /// A source's items follow.
    fn section(&mut self, section: &Section, scale: &Scale) -> io::Result<()>;

    /// The source's next item; its time is not before that of the last one.
    fn item(&mut self, item: &Item) -> io::Result<()>;

    /// The source has no more items.
    fn end_section(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// There are no more sources. `complete` is whether the capture was decoded to its end.
    fn finish(&mut self, _complete: bool) -> io::Result<()> {
        Ok(())
    }
}

/// Writes nothing.
impl TimelineExport for Nothing {
    fn section(&mut self, _: &Section, _: &Scale) -> io::Result<()> {
        Ok(())
    }

    fn item(&mut self, _: &Item) -> io::Result<()> {
        Ok(())
    }
}

/// Makes timelines of program flow and hands a part of each on.
pub struct Timelines<'a> {
    exporter: &'a mut dyn TimelineExport,
    scale: Scale,
    window: Window,
    running: Option<Timeline>,
    /// The timeline of an ITM without program flow.
    reported: Option<ReportedTimeline>,
}

impl<'a> Timelines<'a> {
    /// Timelines on this axis, the part of them in the window.
    #[must_use]
    pub fn new(exporter: &'a mut dyn TimelineExport, scale: Scale, window: Window) -> Self {
        Self { exporter, scale, window, running: None, reported: None }
    }
}

impl std::fmt::Debug for Timelines<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Timelines").field("scale", &self.scale).finish_non_exhaustive()
    }
}

impl Timelines<'_> {
    /// The records of an ITM without program flow follow.
    pub fn itm_section(&mut self, section: &Section, watched: Watched) -> io::Result<()> {
        self.reported = Some(ReportedTimeline::new(watched));
        self.exporter.section(section, &self.scale)
    }

    /// Hands the items that `take` gives on, up to the first error.
    fn hand_on(&mut self, take: impl FnOnce(&mut Timeline, &mut dyn FnMut(Item))) -> io::Result<()> {
        let Self { exporter, running: Some(timeline), .. } = self else { return Ok(()) };
        give(*exporter, |sink| take(timeline, sink))
    }
}

/// Hands items on, up to the first error.
fn give(exporter: &mut dyn TimelineExport, take: impl FnOnce(&mut dyn FnMut(Item))) -> io::Result<()> {
    let mut result = Ok(());
    take(&mut |item| {
        if result.is_ok() {
            result = exporter.item(&item);
        }
    });
    result
}

impl Sink<FlowRecord> for Timelines<'_> {
    fn section(&mut self, section: &Section) -> io::Result<()> {
        self.running = Some(Timeline::new(Arc::clone(&section.code), &self.scale, &self.window));
        self.exporter.section(section, &self.scale)
    }

    fn record(&mut self, record: FlowRecord) -> io::Result<()> {
        self.hand_on(|timeline, mut sink| timeline.element(&record.element, record.at, &mut sink))
    }

    fn shows_itm(&self) -> bool {
        true
    }

    fn itm(&mut self, record: &ItmRecord) -> io::Result<()> {
        // Programs write words of text to port 0.
        if matches!(record.event, ItmEvent::Value { port: 0, .. }) {
            return Ok(());
        }
        if let Some(reported) = &mut self.reported {
            return give(self.exporter, |mut sink| reported.event(&record.event, &mut sink));
        }
        self.hand_on(|timeline, mut sink| timeline.itm(&record.event, &mut sink))
    }

    fn end_section(&mut self) -> io::Result<()> {
        self.hand_on(|timeline, mut sink| timeline.finish(&mut sink))?;
        self.running = None;
        if let Some(mut reported) = self.reported.take() {
            give(self.exporter, |mut sink| reported.finish(&mut sink))?;
        }
        self.exporter.end_section()
    }
}

impl FlowSink for Timelines<'_> {
    fn passage(&mut self, repeated: &Repeated<'_>) -> io::Result<()> {
        self.hand_on(|timeline, mut sink| timeline.passage(repeated, &mut sink))
    }

    fn needs_places(&self) -> bool {
        self.window.needs_places()
    }
}

#[cfg(test)]
mod tests;
