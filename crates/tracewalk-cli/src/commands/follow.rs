//! Following one source's program flow, for every command that looks at it, and saying what could not be followed.

use std::rc::Rc;

use tracewalk::flow::{Element, GapReason, Passage};
use tracewalk::program::Program;
use tracewalk::span::{CaptureOffset, StreamOffset};
use tracewalk_analysis::drive::{Follower, NoProgress, Spread};
use tracewalk_analysis::record::FlowRecord;
use tracewalk_analysis::sink::{Join, Part, Sink};
use tracewalk_analysis::{
    Code, Contexts, Doubtful, DoubtfulChange, DoubtfulStretch, Doubting, Doubts, Gaps, InDoubt, Statistics,
    Trusted, Verdict,
};
use tracewalk_input::capture::Buffer;

use super::{beside, contexts, tell_if_nothing_decoded};
use crate::args::{FollowArgs, Trust};
use crate::failure::Failure;
use crate::messages::{Messages, counted};
use crate::work::{Job, Work};

/// How much of a capture is decoded to see whether the image fits.
const PROBE: usize = 1 << 19;

/// A source that is to be followed.
#[derive(Clone, Copy)]
pub(super) struct Following<'a> {
    pub(super) work: &'a Work,
    pub(super) job: &'a Job,
    pub(super) trust: Trust,
    pub(super) messages: &'a Messages,
}

impl<'a> Following<'a> {
    pub(super) const fn new(work: &'a Work, job: &'a Job, trust: Trust, messages: &'a Messages) -> Self {
        Self { work, job, trust, messages }
    }
}

/// Follows all sources of a capture, as it comes: `each` follows one.
pub(super) fn all_sources(
    work: &mut Work,
    args: &FollowArgs,
    messages: &Messages,
    mut each: impl FnMut(&mut Work, &Job, Rc<Code>) -> Result<Statistics, Failure>,
) -> Result<Statistics, Failure> {
    let mut total = Statistics::default();
    // More of them may be found when a capture that comes has come.
    for index in 0.. {
        let Some(job) = work.jobs.get(index).cloned() else { break };
        let code = work.code(&job, Some(&args.source_dirs), messages)?;
        total.add(&each(work, &job, code)?);
        work.end_job(messages)?;
    }
    Ok(total)
}

/// Follows one source and hands what is found to `exporter`, as a section of its own; without what is in doubt, where that is
/// left out.
pub(super) fn source(
    following: Following<'_>,
    code: &Rc<Code>,
    exporter: &mut dyn Sink<FlowRecord>,
) -> Result<Statistics, Failure> {
    let doubtful = following.trust.doubtful;
    let (statistics, doubts) = in_order(following, code, doubtful, exporter)?;
    following.tell_doubts(&doubts);
    Ok(statistics)
}

/// As [`source`], with all that is in doubt; answers what that is, too.
pub(super) fn source_with_doubts(
    following: Following<'_>,
    code: &Rc<Code>,
    exporter: &mut dyn Sink<FlowRecord>,
) -> Result<(Statistics, Found), Failure> {
    in_order(following, code, Doubtful::Keep, exporter)
}

/// As [`source_with_doubts`], by several threads.
pub(super) fn source_in_parts(
    following: Following<'_>,
    code: &Rc<Code>,
    spread: Spread,
    exporter: &mut impl Join,
) -> Result<(Statistics, Found), Failure> {
    let Following { work, job, messages, .. } = following;
    let mut follower = Follower::new(&job.config, &code.program);
    let fits = following.fits(&mut follower)?;
    let unknown;
    let code = if fits {
        code
    } else {
        unknown = without_program(code);
        follower = Follower::new(&job.config, &unknown.program);
        &unknown
    };
    let buffer = work.buffer(job);
    let watch = work.watch(job, messages);
    let (mut statistics, mut gaps) = (Statistics::default(), Gaps::default());
    let (mut ran, mut doubts, mut doubting) = (Contexts::default(), Doubts::default(), Doubting::default());
    let in_file = |at| CaptureOffset(buffer.file_offset(at));
    exporter.section(&work.section(job, Rc::clone(code)))?;
    let input = work.input(job, &watch);
    let empty = InFile { part: exporter.part(), buffer };
    follower.flow_parts(&input, spread, &empty, |part| {
        statistics.add(&part.statistics);
        gaps.add_part(&part.gaps, in_file);
        doubts.add_part(&part.doubts, in_file);
        doubting = part.doubting;
        ran.add_part(&part.contexts);
        exporter.join(part.part.part)
    })?;
    exporter.end_section()?;
    let ended_at = watch.ended_at();
    drop(watch);
    let doubts = Found::at_end(doubts, doubting.placed(in_file), &statistics, buffer);
    following.tell(&statistics, (&gaps, &ran), &code.program, fits);
    messages.record(|record| record.source(work, job, &statistics, (Some(&code.program), ended_at)))?;
    Ok((statistics, doubts))
}

/// What is in doubt of a source.
pub(super) struct Found {
    doubts: Doubts,
    /// How many instructions that are; `None` where nobody counted them.
    pub(super) instructions: Option<InDoubt>,
}

impl Found {
    /// The trace ends behind these stretches.
    fn at_end(mut doubts: Doubts, doubting: Doubting, statistics: &Statistics, buffer: &Buffer) -> Self {
        let end = CaptureOffset(buffer.bytes.len() as u64);
        if let Some(open) = doubting.at_end(StreamOffset(statistics.bytes), end) {
            doubts.add(open);
        }
        Self { doubts, instructions: None }
    }
}

fn in_order(
    following: Following<'_>,
    code: &Rc<Code>,
    doubtful: Doubtful,
    exporter: &mut dyn Sink<FlowRecord>,
) -> Result<(Statistics, Found), Failure> {
    let Following { work, job, messages, .. } = following;
    let mut follower = Follower::new(&job.config, &code.program);
    let fits = following.fits(&mut follower)?;
    let unknown;
    let code = if fits {
        code
    } else {
        unknown = without_program(code);
        follower = Follower::new(&job.config, &unknown.program);
        &unknown
    };
    let buffer = work.buffer(job);
    let watch = work.watch(job, messages);
    let (mut gaps, mut ran) = (Gaps::default(), Contexts::default());
    let (mut doubts, mut doubting) = (Doubts::default(), Doubting::default());
    let mut trusted = Trusted::default();
    exporter.section(&work.section(job, Rc::clone(code)))?;
    let mut beside = beside::Itms::of(work, job, exporter);
    let mut hand_on = |record: FlowRecord| {
        beside.before(record.at, exporter)?;
        exporter.record(record)
    };
    let statistics = follower.flow(&work.input(job, &watch), |mut record| {
        record.at = CaptureOffset(buffer.file_offset(record.at));
        gaps.element(&record.element, record.at);
        if let Some(DoubtfulChange::Ends(stretch)) = doubting.element(&record.element, || record.at) {
            doubts.add(stretch);
        }
        ran.element(&record.element);
        match doubtful {
            Doubtful::Keep => hand_on(record),
            Doubtful::Drop => trusted.record(record, &mut hand_on),
        }
    })?;
    trusted.finish(&mut hand_on)?;
    beside.rest(exporter)?;
    exporter.left_out(trusted.left_out());
    exporter.end_section()?;
    beside.tell(messages);
    let ended_at = watch.ended_at();
    drop(watch);
    let mut doubts = Found::at_end(doubts, doubting, &statistics, buffer);
    if doubtful == Doubtful::Drop {
        doubts.instructions = Some(InDoubt::of(trusted.left_out(), doubtful));
    }
    following.tell(&statistics, (&gaps, &ran), &code.program, fits);
    messages.record(|record| record.source(work, job, &statistics, (Some(&code.program), ended_at)))?;
    Ok((statistics, doubts))
}

/// A part that is told where elements stand in the file.
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

impl Following<'_> {
    /// Whether the program is what was traced: not if the trace contradicts it all the time.
    fn fits(self, follower: &mut Follower<'_>) -> Result<bool, Failure> {
        let Self { work, job, trust, messages } = self;
        Ok(trust.image || image_fits(work, job, follower, messages)?)
    }

    /// Says which stretches are in doubt, and what became of what they told.
    pub(super) fn tell_doubts(self, found: &Found) {
        let Doubts { count, bytes, first } = &found.doubts;
        let Some(DoubtfulStretch { from, to, .. }) = first.first() else { return };
        let became = match found.instructions.map(InDoubt::sentence) {
            Some(Some(sentence)) => sentence,
            Some(None) => "no instruction was told in them".to_owned(),
            None => "--doubtful drop leaves out what was told in them".to_owned(),
        };
        self.messages.note(format_args!(
            "{}: {} of trace in doubt, {}, the first from {from} to {to}; {became}",
            self.job.name(),
            counted(*count, "stretch").replace("stretchs", "stretches"),
            counted(*bytes, "byte"),
        ));
    }

    /// Says what could not be decoded or followed.
    fn tell(self, statistics: &Statistics, (gaps, ran): (&Gaps, &Contexts), program: &Program, fits: bool) {
        let Self { work, job, messages, .. } = self;
        tell_if_nothing_decoded(job, statistics, messages);
        let contradicting =
            [gaps.contradictions.first.map(|(at, _)| at), gaps.trace_lost.first.map(|(at, ())| at)];
        if let Some(first) = contradicting.into_iter().flatten().min() {
            work.reconsider(job, statistics.malformed + gaps.contradictions.count, first, messages);
        }
        tell_malformed(job, statistics, messages);
        contexts::tell(job, ran, program, messages);
        tell_gaps(work, job, (gaps, ran), program, fits, messages);
    }
}

/// The code where nothing is known of the program.
fn without_program(code: &Code) -> Rc<Code> {
    Rc::new(Code { interrupts: code.interrupts.clone(), ..Code::unknown() })
}

/// Decodes the beginning without printing it. Where the image contradicts the trace all the time, says so.
fn image_fits(
    work: &Work,
    job: &Job,
    follower: &mut Follower<'_>,
    messages: &Messages,
) -> Result<bool, Failure> {
    if follower.has_no_program() {
        return Ok(true);
    }
    let buffer = work.buffer(job);
    let (mut ranges, mut gaps, mut ran) = (0, Gaps::default(), Contexts::default());
    let alone = Spread::over(1).for_counts();
    follower.flow_parts(&work.input(job, &NoProgress).head(PROBE), alone, &(), |part| {
        ranges += part.statistics.ranges;
        gaps.add_part(&part.gaps, |at| CaptureOffset(buffer.file_offset(at)));
        ran.add_part(&part.contexts);
        Ok(())
    })?;
    let contradictions = gaps.contradictions;
    let (Verdict::DoesNotFit, Some((at, GapReason::Contradiction(first)))) =
        (Verdict::of(contradictions.count, ranges), contradictions.first)
    else {
        return Ok(true);
    };
    if job.correction.is_some() {
        // It was told, and may be the reason.
        return Ok(false);
    }
    messages.incomplete(format_args!(
        "{}: trace and image disagree {} in {}, first at {at}{}: {first}; this is not the program that was traced, and \
         only what the trace itself says is printed; give the right one with --image, {}or --trust-image to follow \
         this one",
        job.name(),
        counted(contradictions.count, "time"),
        counted(ranges, "range"),
        contexts::where_contradicted(work, job, &ran, first),
        contexts::other_context(&ran),
    ));
    Ok(false)
}

fn tell_malformed(job: &Job, statistics: &Statistics, messages: &Messages) {
    if statistics.malformed > 0 {
        messages.incomplete(format_args!(
            "{}: {} of malformed trace; `tracewalk packets` shows them",
            job.name(),
            counted(statistics.malformed, "part"),
        ));
    }
}

/// Sums up where execution could not be followed, and what would help.
fn tell_gaps(
    work: &Work,
    job: &Job,
    (gaps, ran): (&Gaps, &Contexts),
    program: &Program,
    image_fits: bool,
    messages: &Messages,
) {
    let name = job.name();
    if let Some((_, address)) = gaps.no_code.first {
        if program.is_empty() && !image_fits {
            // The disagreement was told, and is the reason.
        } else if program.is_empty() {
            messages.incomplete(format_args!(
                "{name}: without the program only what the trace itself says is known; add it with --image FILE"
            ));
        } else {
            messages.incomplete(format_args!(
                "{name}: execution reached code that no image holds {}, first at {address}{}; add it with --image FILE \
                 or --image ADDRESS:FILE{}",
                counted(gaps.no_code.count, "time"),
                contexts::without_code(ran, program),
                contexts::as_suffix(ran, program),
            ));
        }
    }
    if let Some((at, reason)) = gaps.undecodable.first {
        messages.incomplete(format_args!(
            "{name}: {}, first at {at}: {reason}; --image can name a better file",
            counted(gaps.undecodable.count, "place") + " where code cannot be decoded",
        ));
    }
    if let Some((at, reason)) = gaps.contradictions.first {
        messages.incomplete(format_args!(
            "{name}: {}, first at {at}{}: {reason}; check that --image is exactly the program that was traced{}",
            counted(gaps.contradictions.count, "contradiction"),
            match reason {
                GapReason::Contradiction(first) => contexts::where_contradicted(work, job, ran, first),
                _ => String::new(),
            },
            contexts::and_context(ran),
        ));
    }
    if let Some((at, ())) = gaps.address_unknown.first {
        messages.incomplete(format_args!(
            "{name}: {}, first at {at}; nothing can be done about it",
            counted(gaps.address_unknown.count, "time") + " the trace does not say where execution went",
        ));
    }
    if let Some((at, ())) = gaps.trace_lost.first {
        messages.incomplete(format_args!(
            "{name}: {}, first at {at}; `tracewalk info` shows what was lost",
            counted(gaps.trace_lost.count, "place") + " where trace is malformed or missing",
        ));
    }
}
