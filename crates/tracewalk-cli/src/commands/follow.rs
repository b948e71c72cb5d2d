//! Following one source's program flow, for every command that looks at it, and saying what could not be followed.

use std::rc::Rc;

use tracewalk::flow::{Element, GapReason, Passage};
use tracewalk::program::Program;
use tracewalk::span::{CaptureOffset, StreamOffset};
use tracewalk_input::capture::Buffer;
use tracewalk_report::Code;
use tracewalk_report::analysis::{Contexts, Gaps, Statistics, Verdict};
use tracewalk_report::drive::{NoProgress, Part, Spread};
use tracewalk_report::export::{Export, FlowRecord, Join};

use super::{beside, contexts, tell_if_nothing_decoded};
use crate::args::FollowArgs;
use crate::failure::Failure;
use crate::messages::{Messages, counted};
use crate::progress::Bar;
use crate::work::{Job, Work};

/// How much of a capture is decoded to see whether the image fits.
const PROBE: usize = 1 << 19;

/// A source that is to be followed.
#[derive(Clone, Copy)]
pub(super) struct Following<'a> {
    pub(super) work: &'a Work,
    pub(super) job: &'a Job,
    /// Whether the image is followed even where the trace contradicts it.
    pub(super) trust_image: bool,
    pub(super) messages: &'a Messages,
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

/// Follows one source and hands what is found to `exporter`, as a section of its own.
pub(super) fn source(
    work: &Work,
    job: &Job,
    code: Rc<Code>,
    trust_image: bool,
    exporter: &mut dyn Export<FlowRecord>,
    messages: &Messages,
) -> Result<Statistics, Failure> {
    let following = Following { work, job, trust_image, messages };
    let (code, fits) = following.fitting(code)?;
    let buffer = work.buffer(job);
    let bar = Bar::new(buffer.bytes.len() as u64, messages.quiet());
    let mut gaps = Gaps::default();
    let mut ran = Contexts::default();
    exporter.section(&Work::section(job, Rc::clone(&code)))?;
    let mut beside = beside::Itms::of(work, job, exporter);
    let statistics = work.input(job, &bar).flow(&job.config, &code.program, |mut record| {
        record.at = CaptureOffset(buffer.file_offset(record.at));
        gaps.element(&record.element, record.at);
        ran.element(&record.element);
        beside.before(record.at, exporter)?;
        exporter.record(record)
    })?;
    beside.rest(exporter)?;
    exporter.end_section()?;
    beside.tell(messages);
    drop(bar);
    following.tell(&statistics, (&gaps, &ran), &code.program, fits);
    messages.record(|record| record.source(work, job, &statistics, Some(&code.program)))?;
    Ok(statistics)
}

/// As [`source`], by several threads.
pub(super) fn source_in_parts(
    following: Following<'_>,
    code: Rc<Code>,
    spread: Spread,
    exporter: &mut impl Join,
) -> Result<Statistics, Failure> {
    let Following { work, job, messages, .. } = following;
    let (code, fits) = following.fitting(code)?;
    let buffer = work.buffer(job);
    let bar = Bar::new(buffer.bytes.len() as u64, messages.quiet());
    let (mut statistics, mut gaps) = (Statistics::default(), Gaps::default());
    let mut ran = Contexts::default();
    exporter.section(&Work::section(job, Rc::clone(&code)))?;
    let input = work.input(job, &bar);
    let empty = InFile { part: exporter.part(), buffer };
    input.flow_parts(&job.config, &code.program, spread, &empty, |part| {
        statistics.add(&part.statistics);
        gaps.add_part(&part.gaps, |at| CaptureOffset(buffer.file_offset(at)));
        ran.add_part(&part.contexts);
        exporter.join(part.part.part)
    })?;
    exporter.end_section()?;
    drop(bar);
    following.tell(&statistics, (&gaps, &ran), &code.program, fits);
    messages.record(|record| record.source(work, job, &statistics, Some(&code.program)))?;
    Ok(statistics)
}

/// A part that is told where elements stand in the file.
#[derive(Clone)]
struct InFile<'a, P> {
    part: P,
    buffer: &'a Buffer,
}

impl<P: Part> Part for InFile<'_, P> {
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
    /// The code, unless the trace contradicts it all the time; whether it is the code.
    fn fitting(self, code: Rc<Code>) -> Result<(Rc<Code>, bool), Failure> {
        let Self { work, job, trust_image, messages } = self;
        if trust_image || image_fits(work, job, &code, messages)? {
            return Ok((code, true));
        }
        Ok((Rc::new(Code { interrupts: code.interrupts.clone(), ..Code::unknown() }), false))
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

/// Decodes the beginning without printing it. Where the image contradicts the trace all the time, says so.
fn image_fits(work: &Work, job: &Job, code: &Code, messages: &Messages) -> Result<bool, Failure> {
    if code.program.is_empty() {
        return Ok(true);
    }
    let buffer = work.buffer(job);
    let (mut ranges, mut gaps, mut ran) = (0, Gaps::default(), Contexts::default());
    let alone = Spread::over(1).for_counts();
    work.input(job, &NoProgress).head(PROBE).flow_parts(&job.config, &code.program, alone, &(), |part| {
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
