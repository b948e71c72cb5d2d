//! `packets`: the packets of each source.

use std::io::Write;
use std::time::Instant;

use tracewalk::protocol::{Fault, Malformation};
use tracewalk::source::PacketItem;
use tracewalk::span::CaptureOffset;
use tracewalk_analysis::record::PacketRecord;
use tracewalk_analysis::sink::Sink;
use tracewalk_analysis::{Code, Statistics};
use tracewalk_report::export::{PacketsJsonl, PacketsText};

use super::{print_statistics, tell_if_nothing_decoded};
use crate::args::{Packets, PacketsFormat};
use crate::failure::Failure;
use crate::messages::{Messages, counted};
use crate::output::{palette, standard_output};
use crate::work::{Job, Work};

/// Prints the packets.
pub(crate) fn run(args: &Packets, messages: &Messages) -> Result<(), Failure> {
    let start = Instant::now();
    let mut work = Work::open_live(&args.capture, messages)?;
    let mut out = standard_output();
    work.show_at_once(&out);
    let mut exporter: Option<Box<dyn for<'a> Sink<PacketRecord<'a>> + '_>> = match args.format {
        PacketsFormat::Text => Some(Box::new(PacketsText::new(&mut out, palette()))),
        PacketsFormat::Jsonl => Some(Box::new(PacketsJsonl::new(&mut out))),
        PacketsFormat::None => None,
    };
    if let Some(exporter) = &mut exporter {
        exporter.begin()?;
    }
    let mut total = Statistics::default();
    // More of them may be found when a capture that comes has come.
    for index in 0.. {
        let Some(job) = work.jobs.get(index).cloned() else { break };
        total.add(&packets(&work, &job, exporter.as_deref_mut(), messages)?);
        work.end_job(messages)?;
    }
    drop(exporter);
    out.flush()?;
    if args.work.stats {
        print_statistics(&total, start.elapsed(), args.work.threads, messages);
    }
    Ok(())
}

fn packets(
    work: &Work,
    job: &Job,
    mut exporter: Option<&mut (dyn for<'a> Sink<PacketRecord<'a>> + '_)>,
    messages: &Messages,
) -> Result<Statistics, Failure> {
    let watch = work.watch(job, messages);
    let buffer = work.buffer(job);
    let mut first_malformed = None::<(CaptureOffset, Malformation)>;
    let input = work.input(job, &watch);
    let in_file = |at| CaptureOffset(buffer.file_offset(at));
    if let Some(exporter) = &mut exporter {
        exporter.section(&work.section(job, Code::unknown().into()))?;
    }
    let statistics = input.packets(&job.config, |mut record| {
        record.at = in_file(record.at);
        if let PacketItem::Malformed(reason) = record.content {
            first_malformed.get_or_insert((record.at, reason));
        }
        exporter.as_mut().map_or(Ok(()), |exporter| exporter.record(record))
    })?;
    if let Some(exporter) = &mut exporter {
        exporter.end_section()?;
    }
    let ended_at = watch.ended_at();
    drop(watch);
    messages.record(|record| record.source(work, job, &statistics, (None, ended_at)))?;
    tell_if_nothing_decoded(job, &statistics, messages);
    if let Some((at, reason)) = first_malformed {
        work.reconsider(job, statistics.malformed, at, messages);
        let hint = match reason.at_fault() {
            Fault::Trace => "the trace is damaged, or not this protocol: check --source",
            Fault::Configuration => "the registers in --source say otherwise",
        };
        messages.incomplete(format_args!(
            "{}: {}, the first at {at}: {reason}; {hint}",
            job.name(),
            counted(statistics.malformed, "malformed stretch").replace("stretchs", "stretches"),
        ));
    }
    Ok(statistics)
}
