//! The identified sources of a buffer → the sources and ITMs that can be decoded.

use tracewalk::ids::TraceId;
use tracewalk::protocol::mtb::{Source as MtbSource, order::Dump};
use tracewalk::source::SourceConfig;
use tracewalk_analysis::drive::Carrier;
use tracewalk_input::capture::Protocol;

use crate::config::{NoConfig, config};
use crate::error::OpenError;
use crate::frames::Frames;
use crate::model::{Contents, Identified, Itm, Source, stretches};
use crate::mtb;
use crate::notice::NoticeKind;
use crate::observer::{Observer, Say};
use crate::session::Session;

impl Session {
    /// The source for an identified one; `None` if it cannot or need not be decoded.
    pub(crate) fn source(
        &self,
        buffer: usize,
        contents: &Contents,
        identified: &Identified,
        observer: &dyn Observer,
    ) -> Result<Option<Source>, OpenError> {
        let source = &identified.source;
        let config = match config(source) {
            Ok(SourceConfig::Mtb(_)) => {
                SourceConfig::Mtb(MtbSource { halted_at: self.request.stated.mtb.halted_at })
            }
            Ok(config) => config,
            Err(problem) => {
                say_why_not(contents, identified, problem, observer);
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
            (Some(_), None) => return Err(OpenError::NoTraceId(source.protocol.clone())),
            (None, _) if source.protocol == Protocol::Mtb => {
                let dumped = self.dumps.get(buffer).and_then(Option::as_ref);
                let address = dumped.and_then(|dumped| dumped.address);
                let holes = dumped.map_or(&[][..], |dumped| &dumped.holes);
                let dump = Dump { data: &self.capture.buffers[buffer].bytes, address, holes };
                mtb::carrier(dump, source, self.known.program(source), observer)?
            }
            (None, _) => Carrier::Stretches(stretches(&self.capture.buffers[buffer])),
        };
        let id = if contents.frames.is_some() { id } else { source.id };
        Ok(Some(Source {
            buffer,
            id,
            description: source.clone(),
            config,
            carrier,
            findings: identified.findings.clone(),
            correction: identified.correction.clone(),
            fits: identified.fits && !self.arriving,
        }))
    }

    /// The carrier of a source in frames. Frames that are still arriving have no index.
    fn in_frames(&self, frames: &Frames, id: TraceId) -> Carrier {
        match &frames.index {
            Some(index) if !self.arriving => Carrier::Indexed { index: index.clone(), id },
            _ => Carrier::Frames { framing: frames.framing, id },
        }
    }

    /// The ITM that a source is, if it is one and has bytes.
    pub(crate) fn itm(&self, buffer: usize, contents: &Contents, identified: &Identified) -> Option<Itm> {
        let source = &identified.source;
        if source.protocol != Protocol::Itm {
            return None;
        }
        let carrier = match (&contents.frames, source.id) {
            (Some(frames), Some(id)) if self.arriving || frames.sources.contains_key(&id) => {
                self.in_frames(frames, id)
            }
            (Some(_), _) => return None,
            (None, _) => Carrier::Stretches(stretches(self.capture.buffers.get(buffer)?)),
        };
        let (description, findings) = (source.clone(), identified.findings.clone());
        Some(Itm { buffer, id: source.id, description, carrier, findings })
    }
}

/// Reports why a source is not decoded.
fn say_why_not(contents: &Contents, identified: &Identified, problem: NoConfig, observer: &dyn Observer) {
    let source = &identified.source;
    let has_bytes = |frames: &Frames| source.id.is_none_or(|id| frames.sources.contains_key(&id));
    match problem {
        NoConfig::NotDecoded if source.protocol == Protocol::Itm => {}
        NoConfig::NotDecoded => {
            if contents.frames.as_ref().is_none_or(has_bytes) {
                let (source, protocol) = (source.id, source.protocol.clone());
                observer.say(NoticeKind::NotDecoded { source, protocol });
            }
        }
        NoConfig::Registers(problem) => {
            let (source, protocol) = (source.id, source.protocol.clone());
            observer.say(NoticeKind::RegistersMissing { source, protocol, problem });
        }
    }
}
