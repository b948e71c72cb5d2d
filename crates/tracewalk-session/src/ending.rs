//! The end of a capture that arrived over time: the remaining sources are found and reported.

use tracewalk::ids::TraceId;
use tracewalk_input::capture::{Capture, SourceDescription};

use crate::error::OpenError;
use crate::live::{Live, MOST_KEPT, State, Taken, say_end};
use crate::model::Source;
use crate::notice::NoticeKind;
use crate::observer::{Notices, Observer, Say};
use crate::report;
use crate::session::Session;

impl Session {
    /// Calls `each` with every source, in their order. The end of a capture that arrives over time may add sources.
    ///
    /// # Errors
    ///
    /// The first error of `each`, or the reason why the rest of the capture cannot be opened.
    pub fn each_source<E: From<OpenError>>(
        &mut self,
        observer: &dyn Observer,
        mut each: impl FnMut(&mut Self, &Source) -> Result<(), E>,
    ) -> Result<(), E> {
        for index in 0.. {
            let Some(source) = self.sources.get(index).cloned() else { break };
            each(self, &source)?;
            self.end_source(observer)?;
        }
        Ok(())
    }

    /// Ends the work on a source. If the source was decoded while the capture arrived, all of the capture has arrived
    /// now: reports how it ended and what else it holds, and makes it available to the other sources.
    ///
    /// # Errors
    ///
    /// If an image cannot be used for the rest of the capture.
    pub fn end_source(&mut self, observer: &dyn Observer) -> Result<(), OpenError> {
        let Some(live) = self.live.take() else { return Ok(()) };
        self.stopped_at = live.stopped_at();
        let Live { place, state, .. } = live;
        let State { stream, taken: Taken { scan, kept, kept_is_cut, .. }, end, .. } = state.into_inner();
        let frames = scan.map(crate::frames::Scan::finish);
        let cut = frames.as_ref().map_or(0, |frames| frames.account.tail);
        if let Some(end) = end {
            say_end(&place, &end, stream.received(), cut, observer);
        }
        let is_new = |id: &TraceId| !self.sources.iter().any(|source| source.id == Some(*id));
        let has_new = frames.as_ref().is_some_and(|frames| frames.sources.keys().any(is_new));
        if let (Some(contents), Some(buffer)) = (self.contents.first_mut(), self.capture.buffers.first_mut())
        {
            contents.frames = frames;
            if let Some(kept) = kept {
                buffer.bytes = kept.into();
            }
        }
        let has_more = has_new && self.request.searches() && self.find_more(observer)?;
        if kept_is_cut && self.sources.len() > 1 {
            observer.say(NoticeKind::KeptPartly { place, kept: MOST_KEPT as u64 });
        }
        if !has_more {
            self.say_what_else(observer);
        }
        Ok(())
    }

    /// Reports contents of the capture that were not decoded.
    fn say_what_else(&self, observer: &dyn Observer) {
        let (Some(contents), Some(buffer)) = (self.contents.first(), self.capture.buffers.first()) else {
            return;
        };
        if self.request.ids.is_empty() {
            let decoded = self.sources.iter().map(|source| (source.id, &source.description));
            let itms = self.itms.iter().map(|itm| (itm.id, &itm.description));
            let with_id =
                |(id, description): (_, &SourceDescription)| SourceDescription { id, ..description.clone() };
            let decoded = decoded.chain(itms).map(with_id);
            let sources = decoded.chain(buffer.sources.iter().cloned()).collect::<Vec<_>>();
            let sources = sources.iter().collect::<Vec<_>>();
            report::other_sources(contents, (buffer, false), &sources, &self.known, observer);
        }
        report::damage(contents, buffer, observer);
    }

    /// Finds the sources that were not in the first bytes, now that all of the capture has arrived. The first source is
    /// done. Returns whether there are further sources; everything about the capture has then been reported.
    fn find_more(&mut self, observer: &dyn Observer) -> Result<bool, OpenError> {
        let [buffer] = self.capture.buffers.as_slice() else { return Ok(false) };
        let notices = Notices::default();
        let capture = Capture::from_bytes(&buffer.file, buffer.bytes.clone());
        let whole = capture
            .map_err(OpenError::from)
            .and_then(|capture| Self::of(capture, self.request.clone(), false, None, &notices));
        // If the whole cannot be read, the reading of the first bytes stands.
        let (Ok(mut whole), Some(done)) = (whole, self.sources.first().cloned()) else { return Ok(false) };
        let is_new = |source: &Source| !self.sources.iter().any(|known| known.id == source.id);
        if !whole.sources.iter().any(is_new) {
            return Ok(false);
        }
        notices.pass_on(observer);
        match whole.sources.iter().position(|source| source.id == done.id) {
            Some(place) => {
                let again = whole.sources.remove(place);
                if again.config != done.config {
                    observer.say(NoticeKind::ReadsOtherwise {
                        source: done.id,
                        decoded: Box::new(done.description.clone()),
                        better: Box::new(again.description),
                    });
                }
            }
            None => observer.say(NoticeKind::DecodedByHead { source: done.id }),
        }
        whole.sources.insert(0, done);
        whole.stopped_at = self.stopped_at;
        *self = whole;
        Ok(true)
    }
}
