//! Following one source's program flow, and saying what could not be followed.
use std::sync::Arc;

use std::io;

use tracewalk::flow::{Element, GapReason, Passage};
use tracewalk::program::Program;
use tracewalk::span::{CaptureOffset, StreamOffset};
use tracewalk_analysis::drive::{Follower, Input, NoProgress, Spread};
use tracewalk_analysis::record::FlowRecord;
use tracewalk_analysis::sink::{Join, Part, Sink};
use tracewalk_analysis::{
    Code, Contexts, Doubtful, DoubtfulChange, Doubting, Doubts, Gaps, InDoubt, Statistics, Trusted, Verdict,
};
use tracewalk_input::capture::Buffer;

use crate::beside::Itms;
use crate::contexts;
use crate::error::RunError;
use crate::model::Source;
use crate::notice::NoticeKind;
use crate::observer::{Observer, Say};
use crate::outcome::{Losses, Outcome, Trust};
use crate::session::Session;

/// How much of a capture is decoded to see whether the image fits.
const PROBE: usize = 1 << 19;

impl Session {
    /// Follows a source and hands what is found to `sink`, as a section of its own and in the order of the trace; without what
    /// is in doubt, if that is dropped.
    ///
    /// # Errors
    ///
    /// The first error of `sink`.
    pub fn follow(
        &self,
        source: &Source,
        code: &Arc<Code>,
        trust: Trust,
        sink: &mut dyn Sink<FlowRecord>,
        observer: &dyn Observer,
    ) -> Result<Outcome<()>, RunError> {
        let following = Following { session: self, source, trust, observer };
        let mut itms = Vec::new();
        let outcome = following.run(code, |follower, input, section, seen| {
            sink.section(section)?;
            itms = following.in_order(follower, input, sink, seen)?;
            sink.end_section()
        })?;
        Ok(Outcome { itms, ..outcome })
    }

    /// As [`Session::follow`], on several threads and with all that is in doubt.
    ///
    /// # Errors
    ///
    /// The first error of `sink`.
    pub fn follow_in_parts(
        &self,
        source: &Source,
        code: &Arc<Code>,
        (trust, spread): (Trust, Spread),
        sink: &mut impl Join,
        observer: &dyn Observer,
    ) -> Result<Outcome<()>, RunError> {
        let trust = Trust { doubtful: Doubtful::Keep, ..trust };
        let following = Following { session: self, source, trust, observer };
        following.run(code, |follower, input, section, seen| {
            sink.section(section)?;
            let in_file = |at| CaptureOffset(seen.buffer.file_offset(at));
            let empty = InFile { part: sink.part(), buffer: seen.buffer };
            follower.flow_parts(input, spread, &empty, |part| {
                seen.statistics.add(&part.statistics);
                seen.gaps.add_part(&part.gaps, in_file);
                seen.doubts.add_part(&part.doubts, in_file);
                seen.doubting = part.doubting;
                seen.contexts.add_part(&part.contexts);
                sink.join(part.part.part)
            })?;
            seen.doubting = seen.doubting.placed(in_file);
            sink.end_section()
        })
    }

    /// Says which stretches of a source are in doubt, and what became of their instructions.
    pub fn say_doubts(&self, source: &Source, losses: &Losses, observer: &dyn Observer) {
        let Doubts { count, bytes, first } = &losses.doubts;
        let Some(&first) = first.first() else { return };
        let kind = NoticeKind::InDoubt {
            source: source.id,
            count: *count,
            bytes: *bytes,
            first,
            instructions: losses.in_doubt,
        };
        observer.say_at(first.from, kind);
    }

    /// Says so if not one packet was found in a source.
    pub fn say_if_nothing_decoded(&self, source: &Source, statistics: &Statistics, observer: &dyn Observer) {
        if statistics.packets == 0 && statistics.bytes > 0 {
            observer.say(NoticeKind::NoSynchronisation {
                source: source.id,
                bytes: statistics.bytes,
                protocol: source.config.protocol(),
            });
        }
    }
}

/// A source that is being followed.
#[derive(Clone, Copy)]
struct Following<'a> {
    session: &'a Session,
    source: &'a Source,
    trust: Trust,
    observer: &'a dyn Observer,
}

/// What was seen of a source while it was followed.
struct Seen<'a> {
    buffer: &'a Buffer,
    statistics: Statistics,
    gaps: Gaps,
    contexts: Contexts,
    doubts: Doubts,
    doubting: Doubting,
    /// How many instructions were left out because they are in doubt; `None` if none are.
    left_out: Option<u64>,
}

impl<'a> Following<'a> {
    /// Follows the source by `work`, through the program if that is what was traced.
    fn run(
        self,
        code: &Arc<Code>,
        work: impl FnOnce(
            &mut Follower<'_>,
            &Input<'_>,
            &tracewalk_analysis::Section,
            &mut Seen<'a>,
        ) -> io::Result<()>,
    ) -> Result<Outcome<()>, RunError> {
        let Self { session, source, observer, .. } = self;
        let mut follower = Follower::new(&source.config, &code.program);
        let fits = self.trust.image || self.image_fits(&mut follower)?;
        let code = if fits { Arc::clone(code) } else { without_program(code) };
        if !fits {
            follower = Follower::new(&source.config, &code.program);
        }
        let watch = session.watch(source, observer);
        let mut seen = Seen {
            buffer: session.buffer(source),
            statistics: Statistics::default(),
            gaps: Gaps::default(),
            contexts: Contexts::default(),
            doubts: Doubts::default(),
            doubting: Doubting::default(),
            left_out: None,
        };
        let section = session.section(source, Arc::clone(&code));
        work(&mut follower, &session.input(source, &watch), &section, &mut seen)?;
        let ended_at = watch.ended_at();
        drop((watch, follower));
        let statistics = seen.statistics;
        let losses = seen.losses();
        self.say(&statistics, &losses, &code.program, fits);
        Ok(Outcome { found: (), statistics, losses, code, itms: Vec::new(), notices: Vec::new(), ended_at })
    }

    /// Hands each record to `sink` in the order of the trace, with what ITMs sent between them. Answers what was counted of
    /// these.
    fn in_order(
        self,
        follower: &mut Follower<'_>,
        input: &Input<'_>,
        sink: &mut dyn Sink<FlowRecord>,
        seen: &mut Seen<'_>,
    ) -> io::Result<Vec<(crate::model::Itm, tracewalk_analysis::itm::ItmCounts)>> {
        let Self { session, source, observer, .. } = self;
        let itms = if sink.shows_itm() { session.itms_beside(source) } else { Vec::new() };
        let mut beside = Itms::new(session, itms);
        let (doubtful, mut trusted) = (self.trust.doubtful, Trusted::default());
        let mut hand_on = |record: FlowRecord| {
            beside.before(record.at, sink)?;
            sink.record(record)
        };
        seen.statistics = follower.flow(input, |mut record| {
            record.at = CaptureOffset(seen.buffer.file_offset(record.at));
            seen.gaps.element(&record.element, record.at);
            if let Some(DoubtfulChange::Ends(stretch)) = seen.doubting.element(&record.element, || record.at)
            {
                seen.doubts.add(stretch);
            }
            seen.contexts.element(&record.element);
            match doubtful {
                Doubtful::Keep => hand_on(record),
                Doubtful::Drop => trusted.record(record, &mut hand_on),
            }
        })?;
        trusted.finish(&mut hand_on)?;
        beside.each(|record| sink.itm(record))?;
        sink.left_out(trusted.left_out());
        seen.left_out = (doubtful == Doubtful::Drop).then(|| trusted.left_out());
        Ok(beside.finish(observer))
    }

    /// Whether the program is what was traced: decodes the beginning, and says so if the image contradicts the trace all the
    /// time.
    fn image_fits(self, follower: &mut Follower<'_>) -> io::Result<bool> {
        let Self { session, source, observer, .. } = self;
        if follower.has_no_program() {
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
        // A statement that contradicts the trace was reported, and may be the reason.
        if source.correction.is_none() {
            let wrong = contexts::where_contradicted(session, source, &ran, first);
            let kind = NoticeKind::ImageRefused { source: source.id, count, ranges, first, wrong };
            observer.say_at(at, kind);
        }
        Ok(false)
    }

    /// Says what could not be decoded or followed.
    fn say(self, statistics: &Statistics, losses: &Losses, program: &Program, fits: bool) {
        let Self { session, source, observer, .. } = self;
        let gaps = &losses.gaps;
        session.say_if_nothing_decoded(source, statistics, observer);
        let contradicting =
            [gaps.contradictions.first.map(|(at, _)| at), gaps.trace_lost.first.map(|(at, ())| at)];
        if let Some(first) = contradicting.into_iter().flatten().min() {
            session.reconsider(source, statistics.malformed + gaps.contradictions.count, first, observer);
        }
        if statistics.malformed > 0 {
            let (source, count) = (source.id, statistics.malformed);
            observer.say(NoticeKind::Malformed { source, count, first: None });
        }
        contexts::say(source, &losses.contexts, program, observer);
        self.say_gaps(losses, program, fits);
    }

    /// Sums up where execution could not be followed.
    fn say_gaps(self, losses: &Losses, program: &Program, image_fits: bool) {
        let Self { session, source: Source { id: source, .. }, observer, .. } = self;
        let (source, Losses { gaps, contexts: ran, .. }) = (*source, losses);
        match gaps.no_code.first {
            // That the image does not fit was reported, and is the reason.
            Some(_) if program.is_empty() && !image_fits => {}
            Some(_) if program.is_empty() => observer.say(NoticeKind::NoProgram { source }),
            Some((at, first)) => {
                let contexts = contexts::without_code(ran, program);
                let count = gaps.no_code.count;
                observer.say_at(at, NoticeKind::CodeMissing { source, count, first, contexts });
            }
            None => {}
        }
        if let Some((at, first)) = gaps.undecodable.first {
            let count = gaps.undecodable.count;
            observer.say_at(at, NoticeKind::CodeUndecodable { source, count, first });
        }
        if let Some((at, first)) = gaps.contradictions.first {
            let wrong = match first {
                GapReason::Contradiction(contradiction) => {
                    contexts::where_contradicted(session, self.source, ran, contradiction)
                }
                _ => crate::notice::WrongImage::default(),
            };
            let count = gaps.contradictions.count;
            observer.say_at(at, NoticeKind::Contradictions { source, count, first, wrong });
        }
        if let Some((at, ())) = gaps.address_unknown.first {
            let count = gaps.address_unknown.count;
            observer.say_at(at, NoticeKind::AddressUnknown { source, count });
        }
        if let Some((at, ())) = gaps.trace_lost.first {
            observer.say_at(at, NoticeKind::TraceLost { source, count: gaps.trace_lost.count });
        }
    }
}

impl Seen<'_> {
    /// What was lost, now that the trace has ended.
    fn losses(self) -> Losses {
        let Self { buffer, statistics, gaps, contexts, mut doubts, doubting, left_out } = self;
        let end = CaptureOffset(buffer.bytes.len() as u64);
        if let Some(open) = doubting.at_end(StreamOffset(statistics.bytes), end) {
            doubts.add(open);
        }
        let in_doubt = left_out.map(|left_out| InDoubt::of(left_out, Doubtful::Drop));
        Losses { gaps, contexts, doubts, in_doubt }
    }
}

/// The code if nothing is known of the program.
fn without_program(code: &Code) -> Arc<Code> {
    Arc::new(Code { interrupts: code.interrupts.clone(), ..Code::unknown() })
}

/// A part that is given where elements stand in the file.
#[derive(Clone)]
struct InFile<'a, P> {
    part: P,
    buffer: &'a Buffer,
}

impl<P: Part> Part for InFile<'_, P> {
    fn begin(&mut self, doubting: Doubting) {
        self.part.begin(doubting.placed(|at| CaptureOffset(self.buffer.file_offset(at))));
    }

    #[inline]
    fn element(&mut self, element: &Element, at: impl FnOnce() -> CaptureOffset) {
        self.part.element(element, || CaptureOffset(self.buffer.file_offset(at())));
    }

    #[inline]
    fn passage(&mut self, passage: &Passage<'_>, mut at: impl FnMut(StreamOffset) -> CaptureOffset) {
        self.part.passage(passage, |start| CaptureOffset(self.buffer.file_offset(at(start))));
    }
}
