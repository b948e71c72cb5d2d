//! `itm`: what ITMs told.

use std::io::Write;

use tracewalk_report::export::{ExportItm, ItmJsonl, ItmText, StimulusBytes};

use super::beside::Itms;
use crate::args::{Itm, ItmFormat};
use crate::failure::Failure;
use crate::messages::{Messages, counted};
use crate::output::{palette, standard_output};
use crate::work::{ItmJob, Work};

/// Prints what ITMs told.
pub(crate) fn run(args: &Itm, messages: &Messages) -> Result<(), Failure> {
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
        ItmFormat::Text => Box::new(StimulusBytes::new(&mut out, ports)),
        ItmFormat::Events => Box::new(ItmText::new(&mut out, palette())),
        ItmFormat::Jsonl => Box::new(ItmJsonl::new(&mut out)),
    };
    let mut itms = Itms::new(&work, work.itms.clone());
    work.wait_for_itms(|| itms.each(|record| exporter.record(record)))?;
    itms.tell(messages);
    drop(exporter);
    out.flush()?;
    work.end_job(messages)
}

/// Says what of an ITM could not be read.
pub(super) fn tell(itm: &ItmJob, counts: &tracewalk_report::itm::ItmCounts, messages: &Messages) {
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
