//! `packets`: the packets of each source.

use tracewalk::protocol::Malformation;
use tracewalk::source::{Instrumentation, PacketItem};
use tracewalk::span::CaptureOffset;
use tracewalk_analysis::record::PacketRecord;
use tracewalk_analysis::sink::Sink;
use tracewalk_analysis::stm::STM_LOSSES;
use tracewalk_analysis::{Code, Section};

use tracewalk_session::{Itm, LostPlaces, NoticeKind, Observer as _, Session, Source};

use crate::args::Packets;
use crate::failure::Failure;
use crate::messages::Messages;
use crate::open;
use crate::output::{Destination, Stream, look_for};
use crate::task::{Reads, Task};

impl Task for Packets {
    fn reads(&self) -> Reads<'_> {
        Reads::one(&self.capture)
    }

    fn writes(&self) -> Vec<Destination<'_>> {
        vec![Destination::output(self.output.as_deref())]
    }

    fn is_for_people(&self) -> bool {
        self.format.name == "text"
    }

    /// Prints the packets.
    fn run(&self, messages: &Messages) -> Result<(), Failure> {
        messages.measure(self.work);
        let mut session = open::live_or_itm(&self.capture, messages)?;
        let stms = stms(&session);
        if stms.is_empty() {
            session = open::trace(&self.capture, session)?;
        }
        let output = self.output.as_deref();
        Stream::to(output, &session).write(|out| {
            let mut exporter = (self.format.make)(out, look_for(output));
            if let Some(exporter) = &mut exporter {
                exporter.begin()?;
            }
            session.each_source(messages, |session, source| {
                packets(session, source, exporter.as_deref_mut(), messages)
            })?;
            for stm in &stms {
                stm_packets(&session, stm, exporter.as_deref_mut(), messages)?;
            }
            session.end_source(messages)?;
            Ok(exporter.map_or(Ok(()), |mut exporter| exporter.finish(messages.complete()))?)
        })
    }
}

/// The STMs whose packets are wanted.
fn stms(session: &Session) -> Vec<Itm> {
    let wanted = &session.request().ids;
    let is_wanted = |id| wanted.is_empty() || wanted.contains(&id);
    let stms = session.itms().iter().filter(|itm| itm.protocol() == Instrumentation::Stm);
    stms.filter(|itm| itm.id.is_none_or(is_wanted)).cloned().collect()
}

/// The packets of an STM, which traces no instructions.
fn stm_packets(
    session: &Session,
    stm: &Itm,
    mut exporter: Option<&mut (dyn for<'a> Sink<PacketRecord<'a>> + '_)>,
    messages: &Messages,
) -> Result<(), Failure> {
    let mut first_malformed = None::<(CaptureOffset, Malformation)>;
    if let Some(exporter) = &mut exporter {
        let (id, protocol) = (stm.id, stm.protocol().protocol());
        exporter.section(&Section { id, protocol, number: 1, code: Code::unknown().into() })?;
    }
    let mut lost = 0;
    let statistics = session.itm_packets(stm, &mut |record| {
        lost += u64::from(
            matches!(record.content, PacketItem::Packet(packet) if STM_LOSSES.contains(&packet.name())),
        );
        if let PacketItem::Malformed(reason) = record.content
            && reason.is_damage()
        {
            first_malformed.get_or_insert((record.at, reason));
        }
        exporter.as_mut().map_or(Ok(()), |exporter| exporter.record(record))
    })?;
    if let Some(exporter) = &mut exporter {
        exporter.end_section()?;
    }
    if let Some((at, reason)) = first_malformed {
        let (source, count) = (stm.id, statistics.malformed);
        messages.notice(NoticeKind::Malformed { source, count, first: Some(reason) }.at(at));
    }
    if lost > 0 {
        messages.notice(NoticeKind::StmLost { source: stm.id, count: lost }.into());
    }
    messages.add(&statistics);
    Ok(())
}

fn packets(
    session: &Session,
    source: &Source,
    mut exporter: Option<&mut (dyn for<'a> Sink<PacketRecord<'a>> + '_)>,
    messages: &Messages,
) -> Result<(), Failure> {
    let watch = session.watch(source, messages);
    let buffer = session.buffer(source);
    let mut places = LostPlaces::default();
    let mut first_malformed = None::<(CaptureOffset, Malformation)>;
    let input = session.input(source, &watch);
    let in_file = |at| CaptureOffset(buffer.file_offset(at));
    if let Some(exporter) = &mut exporter {
        exporter.section(&session.section(source, Code::unknown().into()))?;
    }
    let statistics = input.packets(&source.config, |mut record| {
        record.at = in_file(record.at);
        places.packet(&record, record.at);
        if let PacketItem::Malformed(reason) = record.content {
            first_malformed.get_or_insert((record.at, reason));
        }
        exporter.as_mut().map_or(Ok(()), |exporter| exporter.record(record))
    })?;
    if let Some(exporter) = &mut exporter {
        if let Some(at) = session.ended_early(&watch) {
            exporter.cut(in_file(CaptureOffset(at)))?;
        }
        exporter.end_section()?;
    }
    let ended_at = watch.ended_at();
    drop(watch);
    messages.record(|record| {
        record.packets(session, source, (&statistics, ended_at), &places);
    });
    session.say_if_nothing_decoded(source, &statistics, messages);
    if let Some((at, reason)) = first_malformed {
        session.reconsider(source, statistics.malformed, at, messages);
        let (source, count) = (source.id, statistics.malformed);
        messages.notice(NoticeKind::Malformed { source, count, first: Some(reason) }.at(at));
    }
    messages.add(&statistics);
    Ok(())
}
