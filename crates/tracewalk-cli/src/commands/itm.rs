//! `itm`: what ITMs told.

use std::collections::BTreeMap;
use std::io::Write;

use tracewalk_analysis::itm::ItmEvent;
use tracewalk_report::export::{ExportItm, ItmJsonl, ItmText, StimulusBytes};

use super::beside::Itms;
use crate::args::{Itm, ItmFormat};
use crate::failure::Failure;
use crate::messages::{Messages, counted};
use crate::output::{palette, standard_output};
use crate::work::{ItmJob, Work};

/// Prints what ITMs told.
pub(crate) fn run(args: &Itm, messages: &Messages) -> Result<(), Failure> {
    if !args.ports.is_empty() && args.format != ItmFormat::Text {
        let problem = "--port is for --format text, and other formats tell of every port";
        return Err(Failure::input(problem, "leave out --port"));
    }
    let mut work = Work::open_for_itms(&args.capture, messages)?;
    if work.itms.is_empty() {
        return Err(Failure::input(
            format!("{}: no ITM was recognised in it", args.capture.capture.display()),
            "say which trace ID is an ITM with --source ID=itm, or that all bytes are one's with --container raw \
             --source itm",
        ));
    }
    let mut out = standard_output();
    work.show_at_once(&out);
    let ports = if args.ports.is_empty() { vec![0] } else { args.ports.clone() };
    let mut exporter: Box<dyn ExportItm + '_> = match args.format {
        ItmFormat::Text => Box::new(StimulusBytes::new(&mut out, ports.clone())),
        ItmFormat::Events => Box::new(ItmText::new(&mut out, palette())),
        ItmFormat::Jsonl => Box::new(ItmJsonl::new(&mut out)),
    };
    let mut itms = Itms::new(&work, work.itms.clone());
    let mut written = Written::default();
    work.wait_for_itms(|| {
        itms.each(|record| {
            written.add(&record.event);
            exporter.record(record)
        })
    })?;
    itms.tell(messages);
    drop(exporter);
    out.flush()?;
    if args.format == ItmFormat::Text {
        written.tell_missing(&ports, !args.ports.is_empty(), messages);
    }
    work.end_job(messages)
}

/// How many bytes software wrote to each stimulus port.
#[derive(Debug, Default)]
struct Written(BTreeMap<u8, u64>);

impl Written {
    fn add(&mut self, event: &ItmEvent) {
        let (port, bytes) = match event {
            ItmEvent::Text { port, bytes } => (port, bytes.len() as u64),
            ItmEvent::Value { port, size, .. } => (port, u64::from(size.bytes())),
            _ => return,
        };
        *self.0.entry(*port).or_default() += bytes;
    }

    /// Says which of these ports nothing was written to, and which ones something was.
    fn tell_missing(&self, ports: &[u8], asked: bool, messages: &Messages) {
        /// As many as fit into a sentence.
        const NAMED: usize = 8;
        let missing = ports.iter().filter(|port| !self.0.contains_key(port)).map(u8::to_string);
        let missing = missing.collect::<Vec<_>>().join(", ");
        if missing.is_empty() {
            return;
        }
        let found =
            self.0.iter().take(NAMED).map(|(port, bytes)| format!("{port} ({})", counted(*bytes, "byte")));
        let mut found = found.collect::<Vec<_>>().join(", ");
        if self.0.len() > NAMED {
            found += &format!(" and {} more", self.0.len() - NAMED);
        }
        let told = if found.is_empty() {
            format!(
                "nothing was written to stimulus port {missing}, nor to any other; --format events shows what else was told"
            )
        } else {
            format!("nothing was written to stimulus port {missing}, but to {found}; choose with --port")
        };
        if asked { messages.incomplete(told) } else { messages.note(told) }
    }
}

/// Says what of an ITM could not be read.
pub(super) fn tell(itm: &ItmJob, counts: &tracewalk_analysis::itm::ItmCounts, messages: &Messages) {
    messages.note_itm(itm, counts);
    if counts.malformed > 0 {
        messages.incomplete(format_args!(
            "{}: {} of malformed trace of an ITM; `tracewalk itm --format events` shows them",
            itm.name(),
            counted(counts.malformed, "part"),
        ));
    }
    let overflows = counts.packets.get("overflow").copied().unwrap_or_default();
    if overflows > 0 {
        messages.warning(format_args!(
            "{}: the ITM could not send fast enough {}, and what it dropped is not known; enable less of it, or raise \
             the rate of the trace port",
            itm.name(),
            counted(overflows, "time"),
        ));
    }
}
