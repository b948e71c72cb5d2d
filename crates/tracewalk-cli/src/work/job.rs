//! One source to be decoded.

use tracewalk::ids::TraceId;
use tracewalk::protocol::mtb::{Source as MtbSource, order::Dump};
use tracewalk::source::SourceConfig;
use tracewalk_analysis::drive::{Carrier, Input, ItmRecords, NoProgress, Stretch};
use tracewalk_input::capture::{Protocol, SourceDescription};
use tracewalk_input::cpu::Profile;

use super::contents::Identified;
use super::{Contents, Work};
use crate::failure::Failure;
use crate::frames::Frames;
use crate::guess::{Correction, Finding};
use crate::messages::Messages;
use crate::mtb;
use crate::sources::{NoConfig, config};

/// One source to be decoded.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// The index of its buffer.
    pub(crate) buffer: usize,
    pub(crate) id: Option<TraceId>,
    pub(crate) description: SourceDescription,
    pub(crate) config: SourceConfig,
    pub(crate) carrier: Carrier,
    /// What was found out of it.
    pub(crate) findings: Vec<Finding>,
    /// What fits better than what was said of it, where that does not fit.
    pub(crate) correction: Option<Correction>,
}

/// An ITM to be decoded.
#[derive(Clone, Debug)]
pub(crate) struct ItmJob {
    /// The index of its buffer.
    pub(crate) buffer: usize,
    pub(crate) id: Option<TraceId>,
    pub(crate) description: SourceDescription,
    pub(super) carrier: Carrier,
    /// What was found out of it.
    pub(crate) findings: Vec<Finding>,
}

impl ItmJob {
    /// What it is called in messages.
    pub(crate) fn name(&self) -> String {
        self.id.map_or_else(|| "the ITM".to_owned(), |id| format!("trace ID {id}"))
    }
}

impl Job {
    /// What it is called in messages.
    pub(crate) fn name(&self) -> String {
        self.id.map_or_else(|| "the source".to_owned(), |id| format!("trace ID {id}"))
    }

    /// The processor's profile, as far as it is known.
    pub(super) fn profile(&self) -> Option<Profile> {
        // No other profile has an MTB.
        let m_profile = matches!(self.config, SourceConfig::Mtb(_)).then_some(Profile::M);
        self.description.profile().or(m_profile)
    }
}

impl Work {
    /// The work for one source; `None` where it cannot or need not be decoded.
    pub(super) fn job(
        &self,
        buffer: usize,
        contents: &Contents,
        identified: &Identified,
        messages: &Messages,
    ) -> Result<Option<Job>, Failure> {
        let source = &identified.source;
        let name = source.id.map_or_else(|| "the source".to_owned(), |id| format!("trace ID {id}"));
        let config = match config(source) {
            Ok(SourceConfig::Mtb(_)) => SourceConfig::Mtb(MtbSource { halted_at: self.halted_at }),
            Ok(config) => config,
            Err(NoConfig::NotDecoded) if source.protocol == Protocol::Itm => {
                return Ok(None);
            }
            Err(NoConfig::NotDecoded) => {
                if contents
                    .frames
                    .as_ref()
                    .is_none_or(|frames| source.id.is_none_or(|id| frames.sources.contains_key(&id)))
                {
                    messages.note(format_args!("{name}: {} is not decoded", source.protocol));
                }
                return Ok(None);
            }
            Err(NoConfig::Registers(problem)) => {
                messages.incomplete(format_args!(
                    "{name}: {problem}; say it with --source {}{},cpu=… or the register's name",
                    source.id.map_or_else(String::new, |id| format!("{id}=")),
                    source.protocol
                ));
                return Ok(None);
            }
        };
        let id = source.id.or(config.trace_id());
        let is_absent = |frames: &Frames| id.is_some_and(|id| !frames.sources.contains_key(&id));
        if !self.arriving && contents.frames.as_ref().is_some_and(is_absent) {
            return Ok(None);
        }
        let carrier = match (&contents.frames, id) {
            (Some(frames), Some(id)) => self.in_frames(frames, id),
            (Some(_), None) => {
                return Err(Failure::input(
                    format!("frames hold several sources, and {} has no trace ID", source.protocol),
                    format!("say it with --source ID={}", source.protocol),
                ));
            }
            (None, _) if source.protocol == Protocol::Mtb => {
                let address = self.dumps.get(buffer).and_then(|dump| dump.as_ref()?.address);
                let dump = Dump { data: &self.capture.buffers[buffer].bytes, address };
                mtb::carrier(dump, source, self.known.program(source), messages)?
            }
            (None, _) => Carrier::Stretches(vec![Stretch::all(self.capture.buffers[buffer].bytes.len())]),
        };
        let id = if contents.frames.is_some() { id } else { source.id };
        Ok(Some(Job {
            buffer,
            id,
            description: source.clone(),
            config,
            carrier,
            findings: identified.findings.clone(),
            correction: identified.correction.clone(),
        }))
    }

    /// How a source lies in frames. Those that are still coming have no index.
    fn in_frames(&self, frames: &Frames, id: TraceId) -> Carrier {
        match &frames.index {
            Some(index) if !self.arriving => Carrier::Indexed { index: index.clone(), id },
            _ => Carrier::Frames { framing: frames.framing, id },
        }
    }

    /// The ITM that a source is, if it is one and has bytes.
    pub(super) fn itm_job(
        &self,
        buffer: usize,
        contents: &Contents,
        identified: &Identified,
    ) -> Option<ItmJob> {
        let source = &identified.source;
        if source.protocol != Protocol::Itm {
            return None;
        }
        let carrier = match (&contents.frames, source.id) {
            (Some(frames), Some(id)) if self.arriving || frames.sources.contains_key(&id) => {
                self.in_frames(frames, id)
            }
            (Some(_), _) => return None,
            (None, _) => {
                Carrier::Stretches(vec![Stretch::all(self.capture.buffers.get(buffer)?.bytes.len())])
            }
        };
        let (description, findings) = (source.clone(), identified.findings.clone());
        Some(ItmJob { buffer, id: source.id, description, carrier, findings })
    }

    /// The records of an ITM, and where they stand in the file.
    pub(crate) fn itm_records<'a>(&'a self, itm: &ItmJob) -> ItmRecords<'a> {
        let capture = self.capture.buffers.get(itm.buffer).map(|buffer| &*buffer.bytes).unwrap_or_default();
        Input { capture, carrier: itm.carrier.clone(), rest: None, progress: &NoProgress }.itm()
    }

    /// The ITMs that are told with a job: with the first one of each buffer, all that are in it.
    pub(crate) fn itms_beside(&self, job: &Job) -> Vec<ItmJob> {
        let is_first =
            self.jobs.iter().find(|other| other.buffer == job.buffer).is_some_and(|first| first.id == job.id);
        self.itms.iter().filter(|itm| is_first && itm.buffer == job.buffer).cloned().collect()
    }
}
