//! Follows one source's program flow, and reports what could not be followed.

mod in_file;
mod say;

use std::io;
use std::sync::Arc;

use tracewalk::flow::{Element, GapReason};
use tracewalk::span::{CaptureOffset, StreamOffset};
use tracewalk_analysis::analysis::{Analysis, End, FlowSink};
use tracewalk_analysis::drive::{Follower, Gathered, Input, NoProgress, Spread};
use tracewalk_analysis::itm::ItmCounts;
use tracewalk_analysis::log::{Log, Noting, Reader};
use tracewalk_analysis::record::FlowRecord;
use tracewalk_analysis::sink::{Growth, Join};
use tracewalk_analysis::{
    Code, Contexts, Doubt, DoubtChange, Doubtful, DoubtfulStretch, Doubts, Gaps, InDoubt, Statistics,
    Trusted, Verdict,
};
use tracewalk_input::capture::Buffer;

use self::in_file::InFile;
use crate::beside::{Between, Itms};
use crate::error::RunError;
use crate::misfits;
use crate::model::{Itm, Source};
use crate::notice::NoticeKind;
use crate::observer::{Notices, Observer, Say};
use crate::outcome::{Follow, Losses, Outcome, Trust};
use crate::outcome::{LostPlace, LostPlaces, Why};
use crate::session::Session;
use crate::shared::is_same;

/// How much of a capture is decoded to see whether the image fits.
const PROBE: usize = 1 << 19;

impl Session {
    /// Runs an analysis over a source. If all of the capture is there, several threads decode it in segments. The outcome has the
    /// notices.
    ///
    /// ```
    /// use tracewalk_analysis::Window;
    /// use tracewalk_analysis::profile::Profiling;
    /// use tracewalk_session::{Follow, Request, Session};
    ///
    /// let (mut session, _) = Session::open(Request::new("../../testdata/examples/a7-etmv3/capture.toml"))?;
    /// let source = session.sources()[0].clone();
    /// let outcome = session.run(&source, &Follow::default(), Profiling::new(Window::default()))?;
    /// assert!(outcome.complete);
    /// assert_eq!(outcome.found.total().instructions, outcome.statistics.instructions);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If an image cannot be used, or with the first error of the analysis.
    pub fn run<A: Analysis>(
        &mut self,
        source: &Source,
        how: &Follow,
        analysis: A,
    ) -> Result<Outcome<A::Found>, RunError> {
        let notices = Notices::default();
        let outcome = self.run_observed(source, how, analysis, &notices)?;
        Ok(Outcome { notices: notices.into_vec(), ..outcome })
    }

    /// As [`Session::run`], but hands notices to an observer as they arise. The observer may end the work.
    ///
    /// # Errors
    ///
    /// As [`Session::run`].
    pub fn run_observed<A: Analysis>(
        &mut self,
        source: &Source,
        how: &Follow,
        analysis: A,
        observer: &dyn Observer,
    ) -> Result<Outcome<A::Found>, RunError> {
        let code = self.code(source, how.names.as_deref(), observer)?;
        self.run_in(source, how, &code, analysis, observer)
    }

    /// As [`Session::run_observed`], for a sink that can join parts: threads make them if the source is complete, instructions in
    /// doubt are kept, and no places of losses are listed.
    ///
    /// # Errors
    ///
    /// As [`Session::run`].
    pub fn run_in_parts<J: Join>(
        &mut self,
        source: &Source,
        how: &Follow,
        sink: &mut J,
        observer: &dyn Observer,
    ) -> Result<Outcome<()>, RunError> {
        if self.is_live() || how.places || how.trust.doubtful == Doubtful::Drop {
            return self.run_observed(source, how, sink, observer);
        }
        let code = self.code(source, how.names.as_deref(), observer)?;
        let following = Following::of(self, source, how, observer);
        let outcome = following.run_by(&code, sink, |follower, input, code, sink, seen| {
            following.in_parts(follower, input, code, *sink, seen).map(|()| Vec::new())
        })?;
        observer.followed(self, source, &outcome.followed());
        Ok(outcome)
    }

    /// As [`Session::run_observed`], with a program from [`Session::code`] for this source, so that several threads may
    /// run analyses at once.
    ///
    /// # Errors
    ///
    /// With the first error of the analysis.
    pub fn run_in<A: Analysis>(
        &self,
        source: &Source,
        how: &Follow,
        code: &Arc<Code>,
        analysis: A,
        observer: &dyn Observer,
    ) -> Result<Outcome<A::Found>, RunError> {
        let outcome = Following::of(self, source, how, observer).run(code, analysis)?;
        observer.followed(self, source, &outcome.followed());
        Ok(outcome)
    }

    /// The program as [`Session::run_in`] follows it: an empty one if the trace keeps contradicting it and it is not
    /// trusted. Gives no notices.
    ///
    /// # Errors
    ///
    /// If the beginning of the capture cannot be decoded.
    pub fn code_that_fits(
        &self,
        source: &Source,
        code: &Arc<Code>,
        trust: Trust,
    ) -> Result<Arc<Code>, RunError> {
        let observer = &Notices::default();
        let following = Following { session: self, source, trust, threads: 1, places: false, observer };
        let fits = trust.image || following.image_fits(&mut Follower::new(&source.config, &code.program))?;
        Ok(if fits { Arc::clone(code) } else { without_program(code) })
    }
}

/// A source that is being followed.
#[derive(Clone, Copy)]
struct Following<'a> {
    session: &'a Session,
    source: &'a Source,
    trust: Trust,
    threads: u16,
    /// Whether places of losses are listed.
    places: bool,
    observer: &'a dyn Observer,
}

/// The length of the shortest capture whose elements are noted, in bytes. Below it, working out what passages do costs more
/// than is saved: on captures of 15 to 290 KB, once through, profiles took up to 1.6 times as long.
const FEWEST_NOTED: usize = 320 << 10;

/// The results of following a source.
struct Seen<'a> {
    buffer: &'a Buffer,
    statistics: Statistics,
    gaps: Gaps,
    contexts: Contexts,
    doubts: Doubts,
    doubt: Doubt,
    /// How many instructions were left out because they are in doubt; `None` if none are.
    left_out: Option<u64>,
    /// The places of losses, if they are listed.
    places: Option<LostPlaces>,
}

impl<'a> Following<'a> {
    fn of(session: &'a Session, source: &'a Source, how: &Follow, observer: &'a dyn Observer) -> Self {
        Self { session, source, trust: how.trust, threads: how.threads, places: how.places, observer }
    }

    /// Follows the source, through the program if it is the traced one: by passages if this is faster, or else element by element.
    fn run<A: Analysis>(self, code: &Arc<Code>, analysis: A) -> Result<Outcome<A::Found>, RunError> {
        self.run_by(code, analysis, |follower, input, code, analysis, seen| {
            let mut itms = Vec::new();
            if analysis.shows_itm() {
                itms = self.session.itms_beside(self.source);
            }
            let mut beside = Itms::new(self.session, itms);
            if !self.may_be_noted(analysis, &beside) {
                self.in_order(follower, input, &mut beside, analysis, seen)?;
            } else if beside.is_empty() {
                self.noted(follower, input, code, analysis, seen)?;
            } else {
                let mut between = Between::new(analysis, &mut beside, input.places(), seen.buffer);
                self.noted(follower, input, code, &mut between, seen)?;
            }
            beside.each(|record| analysis.itm(record))?;
            Ok(beside.finish(self.observer))
        })
    }

    /// Follows the source as `road` does.
    fn run_by<A: Analysis>(
        self,
        code: &Arc<Code>,
        mut analysis: A,
        road: impl FnOnce(
            &mut Follower<'_>,
            &Input<'_>,
            &Code,
            &mut A,
            &mut Seen<'_>,
        ) -> io::Result<Vec<(Itm, ItmCounts)>>,
    ) -> Result<Outcome<A::Found>, RunError> {
        let Self { session, source, observer, .. } = self;
        let mut follower = session.shared.follower(&source.config, &code.program);
        let fits = self.trust.image || self.image_fits(&mut follower)?;
        let code = if fits { Arc::clone(code) } else { without_program(code) };
        if !fits {
            follower = Follower::new(&source.config, &code.program);
        }
        let watch = session.watch(source, observer);
        let input = session.input(source, &watch);
        let mut seen = Seen::of(session.buffer(source));
        analysis.section(&session.section(source, Arc::clone(&code)))?;
        let itms = road(&mut follower, &input, &code, &mut analysis, &mut seen)?;
        let ended_at = watch.ended_at();
        let early = session.ended_early(&watch);
        if let Some(at) = early {
            analysis.cut(CaptureOffset(seen.buffer.file_offset(CaptureOffset(at))))?;
        }
        analysis.end_section()?;
        let learned = follower.into_learned();
        drop(watch);
        // Without another session nobody needs it.
        if session.request.shared.is_some() && fits {
            session.shared.keep_learned(&source.config, &code.program, learned);
        }
        let statistics = seen.statistics;
        let found = analysis.answer(&End { statistics, complete: early.is_none() });
        let losses = seen.losses();
        let losses = Losses { in_doubt: A::in_doubt(&found).or(losses.in_doubt), ..losses };
        self.say(&statistics, &losses, &code.program, fits);
        session.say_doubts(source, &losses, observer);
        Ok(Outcome {
            found,
            statistics,
            losses,
            code,
            itms,
            notices: Vec::new(),
            ended_at,
            complete: early.is_none(),
        })
    }

    /// Whether the decoding threads can write elements to a log, to be read in order: the capture is long enough, no places of
    /// losses are listed, and either the elements are noted as passages or several threads decode.
    fn may_be_noted(self, sink: &(impl FlowSink + ?Sized), beside: &Itms<'_>) -> bool {
        let (bytes, is_live) = (self.session.buffer(self.source).bytes.len(), self.session.is_live());
        (bytes >= FEWEST_NOTED || is_live || self.session.request.segment.is_some())
            && !self.places
            && (!sink.needs_places() || self.threads > 1 && !is_live)
            && (beside.is_empty() || !is_live && self.source.carrier.is_in_order())
    }

    /// Lets threads write logs, and reads these in order.
    fn noted(
        self,
        follower: &mut Follower<'_>,
        input: &Input<'_>,
        code: &Code,
        sink: &mut impl FlowSink,
        seen: &mut Seen<'_>,
    ) -> io::Result<()> {
        let mut reader = Reader::new(self.trust.doubtful, sink.weighs_doubt());
        let needs_places = sink.needs_places();
        self.logs(follower, input, code, needs_places, seen, &mut |log| reader.part(log, sink))?;
        reader.finish(sink)?;
        seen.left_out(reader.left_out(), self.trust.doubtful, sink);
        Ok(())
    }

    /// Lets threads write logs. It is compiled once for all sinks.
    fn logs(
        self,
        follower: &mut Follower<'_>,
        input: &Input<'_>,
        code: &Code,
        needs_places: bool,
        seen: &mut Seen<'_>,
        read: &mut dyn FnMut(Log) -> io::Result<()>,
    ) -> io::Result<()> {
        // Memory is checked at the end of each segment.
        let is_limited = self.session.request.limit.share().is_some();
        let growth = if needs_places || is_limited { Growth::LongLines } else { Growth::Lines };
        let spread = self.session.spread(self.threads, code).growing(growth);
        let noting = if needs_places { Noting::Places } else { Noting::Passages };
        let empty = InFile { part: Log::new(noting), buffer: seen.buffer };
        follower.flow_parts(input, spread, &empty, |part| {
            seen.part(&part);
            read(part.part.part)
        })?;
        seen.place_doubt();
        Ok(())
    }

    /// Lets threads compute parts, and joins the parts.
    fn in_parts<J: Join>(
        self,
        follower: &mut Follower<'_>,
        input: &Input<'_>,
        code: &Code,
        sink: &mut J,
        seen: &mut Seen<'_>,
    ) -> io::Result<()> {
        let spread = self.session.spread(self.threads, code).growing(sink.growth());
        let empty = InFile { part: sink.part(), buffer: seen.buffer };
        follower.flow_parts(input, spread, &empty, |part| {
            seen.part(&part);
            sink.join(part.part.part)
        })?;
        seen.place_doubt();
        Ok(())
    }

    /// Hands each record to the sink in the order of the trace, with the records of ITMs between them.
    fn in_order(
        self,
        follower: &mut Follower<'_>,
        input: &Input<'_>,
        beside: &mut Itms<'_>,
        sink: &mut (impl FlowSink + ?Sized),
        seen: &mut Seen<'_>,
    ) -> io::Result<()> {
        let (doubtful, mut trusted) = (self.trust.doubtful, Trusted::default());
        let weighs = sink.weighs_doubt();
        let mut hand_on = |record: FlowRecord, is_doubtful| {
            beside.before(record.at, |record| sink.itm(record))?;
            if is_doubtful { sink.doubtful(record) } else { sink.record(record) }
        };
        seen.places = self.places.then(LostPlaces::default);
        let buffer = seen.buffer;
        let look = |mut record: FlowRecord| {
            record.at = CaptureOffset(buffer.file_offset(record.at));
            seen.record(&record);
            match doubtful {
                _ if weighs => trusted.weigh(record, &mut hand_on),
                Doubtful::Keep => hand_on(record, false),
                Doubtful::Drop => trusted.record(record, &mut |record| hand_on(record, false)),
            }
        };
        seen.statistics = if self.places {
            let mut unread = LostPlaces::default();
            let statistics = follower.flow_and_packets(input, look, |packet| {
                unread.packet(&packet, CaptureOffset(buffer.file_offset(packet.at)));
                Ok(())
            })?;
            seen.places.get_or_insert_default().unread = unread.unread;
            statistics
        } else {
            follower.flow(input, look)?
        };
        trusted.finish(&mut |record| hand_on(record, false))?;
        seen.left_out(trusted.left_out(), doubtful, sink);
        Ok(())
    }

    /// Whether the program is the traced one. Decodes the beginning, and reports if the image keeps contradicting the
    /// trace.
    fn image_fits(self, follower: &mut Follower<'_>) -> io::Result<bool> {
        let Self { session, source, observer, .. } = self;
        if follower.has_no_program() {
            return Ok(true);
        }
        // A short source was followed to its end at opening.
        if source.fits && is_same(session.known.program(&source.description), follower.program()) {
            return Ok(true);
        }
        let buffer = session.buffer(source);
        let (mut ranges, mut gaps, mut ran) = (0, Gaps::default(), Contexts::default());
        let alone = Spread::over(1).for_counts();
        follower.flow_parts(&session.input(source, &NoProgress).head(PROBE), alone, &(), |part| {
            ranges += part.statistics.ranges;
            gaps.add_part(&part.gaps, |at| CaptureOffset(buffer.file_offset(at)));
            ran.add_part(&part.contexts);
            Ok(())
        })?;
        let count = gaps.contradictions.count;
        let (Verdict::DoesNotFit, Some((at, GapReason::Contradiction(first)))) =
            (Verdict::of(count, ranges), gaps.contradictions.first)
        else {
            return Ok(true);
        };
        // A statement that contradicts the trace was already reported, and may be the cause.
        if source.correction.is_none() {
            let wrong = misfits::where_contradicted(session, source, &ran, first);
            let kind = NoticeKind::ImageRefused { source: source.id, count, ranges, first, wrong };
            observer.say_at(at, kind);
        }
        Ok(false)
    }
}

impl<'a> Seen<'a> {
    /// The results before the first record.
    fn of(buffer: &'a Buffer) -> Self {
        Self {
            buffer,
            statistics: Statistics::default(),
            gaps: Gaps::default(),
            contexts: Contexts::default(),
            doubts: Doubts::default(),
            doubt: Doubt::default(),
            left_out: None,
            places: None,
        }
    }

    /// Adds the next record, placed in the file.
    fn record(&mut self, record: &FlowRecord) {
        self.gaps.element(&record.element, record.at);
        if let Some(DoubtChange::Ends(stretch)) = self.doubt.element(&record.element, || record.at) {
            self.doubt(stretch);
        }
        self.contexts.element(&record.element);
        if let (Element::Gap(gap), Some(places)) = (&record.element, &mut self.places) {
            let (at, bytes, why) = (record.at, gap.span.bytes(), Some(Why::Gap(gap.reason)));
            places.unobserved.entry(gap.reason.name()).or_default().add(LostPlace { at, bytes, why });
        }
    }

    /// Notes the number of instructions that were left out.
    fn left_out(&mut self, instructions: u64, doubtful: Doubtful, sink: &mut (impl FlowSink + ?Sized)) {
        sink.left_out(instructions);
        self.left_out = (doubtful == Doubtful::Drop && !sink.weighs_doubt()).then_some(instructions);
    }

    /// Adds the counts of the next part.
    fn part<P>(&mut self, part: &Gathered<P>) {
        let buffer = self.buffer;
        let in_file = |at| CaptureOffset(buffer.file_offset(at));
        self.statistics.add(&part.statistics);
        self.gaps.add_part(&part.gaps, in_file);
        self.doubts.add_part(&part.doubts, in_file);
        self.doubt = part.doubt;
        self.contexts.add_part(&part.contexts);
    }

    /// Places the stretch in doubt in the file. Called after all parts, which only know places in the buffer.
    fn place_doubt(&mut self) {
        let buffer = self.buffer;
        self.doubt = self.doubt.placed(|at| CaptureOffset(buffer.file_offset(at)));
    }

    fn doubt(&mut self, stretch: DoubtfulStretch) {
        self.doubts.add(stretch);
        if let Some(places) = &mut self.places {
            let place = LostPlace { at: stretch.from, bytes: stretch.bytes, why: None };
            places.unobserved.entry("in_doubt").or_default().add(place);
        }
    }

    /// The losses, at the end of the trace.
    fn losses(mut self) -> Losses {
        let end = CaptureOffset(self.buffer.bytes.len() as u64);
        if let Some(open) = self.doubt.at_end(StreamOffset(self.statistics.bytes), end) {
            self.doubt(open);
        }
        let Self { gaps, contexts, doubts, left_out, places, .. } = self;
        let in_doubt = left_out.map(|left_out| InDoubt::of(left_out, Doubtful::Drop));
        Losses { gaps, contexts, doubts, in_doubt, places }
    }
}

/// The code for an unknown program.
fn without_program(code: &Code) -> Arc<Code> {
    Arc::new(Code { interrupts: code.interrupts.clone(), ..Code::unknown() })
}
