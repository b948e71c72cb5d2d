//! The contents of a capture: buffers, sources, ITMs, images, and the inferred values.

use std::cell::RefCell;
use std::io;

use tracewalk::plain::plain;
use tracewalk::program::Program;
use tracewalk::source::PacketItem;
use tracewalk::span::CaptureOffset;
use tracewalk_analysis::drive::Follower;
use tracewalk_analysis::itm::{ItmCounts, ItmEvent};
use tracewalk_analysis::programs::SourceId;
use tracewalk_analysis::table::{Cell, Column, Kind, Table, Tabular};
use tracewalk_analysis::{Gaps, Statistics, Survey};
use tracewalk_input::image::{ImageRequest, build_id_of, build_id_of_file};

use crate::beside::say_itm;
use crate::infer::{Certainty, Finding};
use crate::model::{Itm, Source};
use crate::notice::NoticeKind;
use crate::observer::{Observer, Say as _};
use crate::session::Session;

/// The content of a capture: sources and ITMs, with their packets counted.
#[derive(Debug)]
pub struct Info<'a> {
    session: &'a Session,
    /// The sources, each with a survey of all its packets.
    pub sources: Vec<(Source, Survey)>,
    /// The ITMs.
    pub itms: Vec<ItmInfo>,
    /// Whether every source was decoded to its end.
    pub complete: bool,
}

/// The packets and text of an ITM.
#[derive(Debug)]
pub struct ItmInfo {
    /// The ITM.
    pub itm: Itm,
    /// The counts.
    pub counts: ItmCounts,
    /// The first texts that software wrote.
    pub texts: Vec<String>,
}

/// The tables of [`Info`], in the order in which they are given.
pub const INFO_TABLES: [&str; 7] =
    ["sources", "packets", "buffers", "findings", "images", "itms", "itm_packets"];

/// How many texts of an ITM are kept.
const TEXTS: usize = 3;

impl Session {
    /// Decodes every packet of every source, and reports malformed and missing trace.
    ///
    /// # Errors
    ///
    /// None at present; later versions may return some.
    pub fn info(&self, observer: &dyn Observer) -> io::Result<Info<'_>> {
        let mut info = Info { session: self, sources: Vec::new(), itms: Vec::new(), complete: true };
        for source in self.sources() {
            let (survey, complete) = self.survey(source, observer)?;
            info.complete &= complete;
            info.sources.push((source.clone(), survey));
        }
        info.itms = self.itms().iter().map(|itm| self.survey_itm(itm, observer)).collect();
        Ok(info)
    }

    /// The build ID of an image, in hexadecimal; `None` if its file has none.
    #[must_use]
    pub fn build_id(&self, image: &ImageRequest) -> Option<String> {
        let content = self.image_content(&image.file);
        let id = content.map_or_else(|| build_id_of_file(&image.file), build_id_of)?;
        Some(id.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    fn survey(&self, source: &Source, observer: &dyn Observer) -> io::Result<(Survey, bool)> {
        let buffer = self.buffer(source);
        let in_file = |at| CaptureOffset(buffer.file_offset(at));
        let survey = RefCell::new(Survey::default());
        let (mut gaps, mut first_malformed) = (Gaps::default(), None);
        let watch = self.watch(source, observer);
        // Without a program, flow has only the trace's own statements.
        let program = Program::new();
        let followed = Follower::new(&source.config, &program).flow_and_packets(
            &self.input(source, &watch),
            |record| {
                let at = in_file(record.at);
                gaps.element(&record.element, at);
                survey.borrow_mut().element(&record.element, at);
                Ok(())
            },
            |mut record| {
                record.at = in_file(record.at);
                if let PacketItem::Malformed(reason) = record.content {
                    first_malformed.get_or_insert((record.at, reason));
                }
                survey.borrow_mut().packet(&record);
                Ok(())
            },
        )?;
        let complete = self.ended_early(&watch).is_none();
        let Statistics { bytes, packets, malformed, .. } = followed;
        let statistics = Statistics { bytes, packets, malformed, ..Statistics::default() };
        drop(watch);
        self.say_if_nothing_decoded(source, &statistics, observer);
        let lost = self.lost(source, &gaps);
        match (first_malformed, gaps.trace_lost.first) {
            (Some((at, first)), _) => {
                self.reconsider(source, malformed, at, observer);
                let (source, first) = (source.id, Some(first));
                observer.say_at(at, NoticeKind::Malformed { source, count: malformed, first });
            }
            // Frames or the recording lack bytes of the source.
            (None, Some((at, ()))) if lost > 0 => {
                observer.say_at(at, NoticeKind::TraceLost { source: source.id, count: lost });
            }
            (None, _) => {}
        }
        Ok((survey.into_inner().finish(statistics, CaptureOffset(buffer.bytes.len() as u64)), complete))
    }

    fn survey_itm(&self, itm: &Itm, observer: &dyn Observer) -> ItmInfo {
        let mut records = self.itm_records(itm);
        let mut texts = Vec::new();
        for record in records.by_ref() {
            let is_text = match &record.event {
                ItmEvent::Text { .. } => true,
                ItmEvent::Stm(event) => event.message.is_some(),
                _ => false,
            };
            if is_text && texts.len() < TEXTS {
                texts.push(record.event.to_string());
            }
        }
        let counts = records.counts().clone();
        say_itm(itm, &counts, observer);
        ItmInfo { itm: itm.clone(), counts, texts }
    }
}

impl Tabular for Info<'_> {
    fn tables(&self) -> Vec<Table> {
        let counts = self.itms.iter().map(|info| (info.itm.id, info.counts.clone()));
        let mut tables =
            vec![self.source_table(), self.packet_table(), self.buffer_table(), self.finding_table()];
        tables.push(self.image_table());
        tables.extend(counts.collect::<Vec<_>>().as_slice().tables());
        tables
    }
}

impl Info<'_> {
    fn file(&self, buffer: usize) -> Cell {
        let buffer = self.session.capture().buffers.get(buffer);
        buffer.map(|buffer| buffer.file.display().to_string()).into()
    }

    fn source_table(&self) -> Table {
        let columns = [
            text("trace_file"),
            text("cpu"),
            integer("bytes"),
            integer("packets"),
            integer("malformed"),
            integer("losses"),
            integer("first_sync"),
            integer("unsynchronised"),
            integer("passed_over"),
            integer("doubtful_stretches"),
            integer("doubtful_bytes"),
            integer("trace_begins"),
            Column::new("first_timestamp", Kind::Time).of("ticks"),
            Column::new("last_timestamp", Kind::Time).of("ticks"),
            Column::new("cycles", Kind::Time).of("cycles"),
            integer("context_ids"),
        ];
        let mut table = Table::of_sources(INFO_TABLES[0], 1, columns);
        for (source, survey) in &self.sources {
            let contexts = survey.contexts.iter().filter(|((context, _), _)| context.is_some()).count();
            let cells = [
                self.file(source.buffer),
                source.description.cpu.as_ref().map(|cpu| cpu.value.as_str()).into(),
                survey.statistics.bytes.into(),
                survey.statistics.packets.into(),
                survey.statistics.malformed.into(),
                survey.losses.into(),
                survey.first_sync.map(|at| at.0).into(),
                survey.unsynchronised.into(),
                survey.passed_over.into(),
                survey.doubts.count.into(),
                survey.doubts.bytes.into(),
                survey.begins.values().sum::<u64>().into(),
                survey.timestamps.map(|(first, _)| first).into(),
                survey.timestamps.map(|(_, last)| last).into(),
                survey.cycles.into(),
                (contexts as u64).into(),
            ];
            table.push(self.session.source_id(source).cells().into_iter().chain(cells));
        }
        table
    }

    fn packet_table(&self) -> Table {
        let mut table =
            Table::of_sources(INFO_TABLES[1], 1, [text("trace_file"), text("packet"), integer("count")]);
        for (source, survey) in &self.sources {
            for (name, count) in &survey.packets {
                let cells = [self.file(source.buffer), (*name).into(), (*count).into()];
                table.push(self.session.source_id(source).cells().into_iter().chain(cells));
            }
        }
        table
    }

    fn buffer_table(&self) -> Table {
        let columns = [
            text("trace_file"),
            integer("bytes"),
            text("container"),
            integer("padding"),
            integer("overhead"),
            integer("lost"),
            integer("discontinuities"),
        ];
        let mut table = Table::new(INFO_TABLES[2], 1, columns);
        for (index, contents) in self.session.contents().iter().enumerate() {
            let bytes =
                self.session.capture().buffers.get(index).map(tracewalk_input::capture::Buffer::trace_bytes);
            let frames = contents.frames.as_ref();
            table.push([
                self.file(index),
                bytes.into(),
                contents.container.value.to_string().into(),
                frames.map(|frames| frames.account.padding).into(),
                frames.map(|frames| frames.account.overhead).into(),
                frames.map(|frames| frames.account.lost).into(),
                frames.map(|frames| frames.discontinuities).into(),
            ]);
        }
        table
    }

    fn finding_table(&self) -> Table {
        let columns =
            ["of", "about", "answer", "evidence", "runner_up", "runner_up_evidence", "certainty"].map(text);
        let mut table = Table::of_sources(INFO_TABLES[3], 1, columns);
        let mut add = |of: &str, source: Option<SourceId>, findings: &[Finding]| {
            for finding in findings {
                let runner_up = finding.runner_up.as_ref();
                let source = source.map_or([const { Cell::Unknown }; 3], |source| source.cells());
                let cells = [
                    of.into(),
                    finding.about.into(),
                    finding.best.text.as_str().into(),
                    finding.best.evidence.as_str().into(),
                    runner_up.map(|answer| answer.text.as_str()).into(),
                    runner_up.map(|answer| answer.evidence.as_str()).into(),
                    certainty(finding.certainty).into(),
                ];
                table.push(source.into_iter().chain(cells));
            }
        };
        let session = self.session;
        session.contents().iter().for_each(|contents| add("buffer", None, &contents.findings));
        for (source, _) in &self.sources {
            add("source", Some(session.source_id(source)), &source.findings);
        }
        for ItmInfo { itm, .. } in &self.itms {
            add("source", Some(session.itm_id(itm)), &itm.findings);
        }
        for (_, finding) in session.image_findings() {
            add("image", None, std::slice::from_ref(finding));
        }
        table
    }

    fn image_table(&self) -> Table {
        let columns = ["build_id", "binary", "path", "origin", "visible_in"].map(text);
        let mut table = Table::new(INFO_TABLES[4], 1, columns);
        for image in &self.session.capture().images {
            let scope =
                (image.scope != tracewalk::program::Scope::EVERYWHERE).then(|| image.scope.to_string());
            let name = image.file.file_name().map(|name| plain(name.to_string_lossy()).into_owned());
            table.push([
                self.session.build_id(image).into(),
                name.into(),
                plain(image.file.to_string_lossy()).into_owned().into(),
                image.origin.to_string().into(),
                scope.into(),
            ]);
        }
        table
    }
}

const fn certainty(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Certain => "certain",
        Certainty::Indifferent => "indifferent",
        Certainty::DoubtfulDetails => "doubtful_details",
        Certainty::Doubtful => "doubtful",
    }
}

fn text(name: &'static str) -> Column {
    Column::new(name, Kind::Text)
}

fn integer(name: &'static str) -> Column {
    Column::new(name, Kind::Integer)
}
