//! Identifies a source: its protocol, its trace unit, and the unit's settings.
//!
//! ```text
//! read the beginning of the bytes with every unit and every setting that changes the length of packets; keep the best
//! from each of these on, change one setting at a time as long as the reading gets better, with the program followed
//! the best result is the answer; for each question the best other answer is the runner-up
//! ```

use std::sync::Arc;

use tracewalk::ids::TraceId;
use tracewalk::program::Program;
use tracewalk::source::SourceConfig;
use tracewalk_input::Origin;
use tracewalk_input::capture::SourceDescription;

use super::finding::{Answer, Certainty, Finding};
use super::processor::Unit;
use super::reading::Reading;
use super::settings::{self, Question};
use super::traced::Traced;
use crate::contents::Sample;
use crate::sources::config;

/// How much of a sample is read to find the starts.
const FIRST_LOOK: usize = 1 << 14;
/// The number of starts that are improved.
const STARTS: usize = 4;
/// The most rounds of questions. Settings hardly depend on one another.
const ROUNDS: usize = 4;

/// The inferred settings of a source.
#[derive(Clone, Debug)]
pub(crate) struct FoundSource {
    pub(crate) source: SourceDescription,
    pub(crate) reading: Reading,
    pub(crate) findings: Vec<Finding>,
    /// Whether the program cannot be the traced one: it contradicts every reading, or lacks most of the traced code.
    pub(crate) misses_program: bool,
}

/// The stated settings of a source that do not fit, and those that do.
#[derive(Clone, Debug)]
pub struct Correction {
    /// The settings that differ.
    pub changes: Vec<Change>,
    /// The counts against the statements.
    pub stated: String,
    /// The source with the settings that fit.
    pub source: SourceDescription,
    /// The counts with the settings that fit.
    pub fits: String,
}

/// A stated setting that the trace contradicts, and the one that fits.
#[derive(Clone, Debug)]
pub struct Change {
    /// The subject, in few words.
    pub about: &'static str,
    /// The register with the setting.
    pub register: &'static str,
    /// The stated value.
    pub said: String,
    /// The origin of the stated value.
    pub by: Origin,
    /// The value that fits better.
    pub fits: String,
}

impl FoundSource {
    /// A source as described, with nothing inferred.
    fn described(source: &SourceDescription, reading: Reading) -> Self {
        let misses_program = reading.misses_program();
        Self { source: source.clone(), reading, findings: Vec::new(), misses_program }
    }
}

/// Reads a sample in many ways.
pub(crate) struct Search<'a> {
    sample: &'a Sample,
    traced: Traced<'a>,
    units: &'a [Unit],
    /// The readings so far.
    known: Vec<(SourceConfig, Reading)>,
    /// The last reading that was only checked for being good.
    good: Option<(SourceConfig, Option<Reading>)>,
    /// The greatest cost of a reading before it is given up.
    most: u64,
}

impl<'a> Search<'a> {
    pub(crate) fn new(sample: &'a Sample, traced: Traced<'a>, units: &'a [Unit]) -> Self {
        Self { sample, traced, units, known: Vec::new(), good: None, most: most(sample) }
    }

    /// Identifies the source with this ID, without any statement about it.
    pub(crate) fn anything(&mut self, id: Option<TraceId>) -> Option<FoundSource> {
        let bases = self.units.iter().map(|unit| SourceDescription { id, ..unit.source() });
        self.best_of(&bases.collect::<Vec<_>>(), &|_| true)
    }

    /// Infers the missing settings of a source. `None` if everything is stated, or if nothing can be inferred.
    pub(crate) fn rest(&mut self, source: &SourceDescription) -> Option<FoundSource> {
        let free = |question: Question| question.is_open(source);
        let units = self.units.iter().filter(|unit| unit.protocol == source.protocol);
        let mut bases = match &source.cpu {
            Some(_) => vec![source.clone()],
            None => units.map(|unit| unit.completed(source)).collect(),
        };
        bases.retain(|base| config(base).is_ok());
        self.best_of(&bases, &free)
    }

    /// The source as described if that reads well; otherwise with inferred values for missing settings.
    pub(crate) fn completed(&mut self, source: &SourceDescription) -> Option<FoundSource> {
        if let Some(reading) = self.good(source) {
            return Some(FoundSource::described(source, reading));
        }
        let as_described = self.reading(source);
        if let Some(reading) = as_described.filter(Reading::reads_well) {
            return Some(FoundSource::described(source, reading));
        }
        let found = self.rest(source);
        match (as_described, found) {
            (Some(reading), Some(found)) if found.reading.is_much_better_than(&reading) => Some(found),
            (Some(reading), _) => Some(FoundSource::described(source, reading)),
            (None, found) => found,
        }
    }

    /// Settings that fit better than the stated ones, if these do not fit.
    pub(crate) fn correction(&mut self, source: &SourceDescription) -> Option<Correction> {
        if self.good(source).is_some() {
            return None;
        }
        let stated = self.reading(source)?;
        if stated.reads_well() {
            return None;
        }
        let all = |_| true;
        let mut better = self.improve(source, &all);
        if !better.1.is_good() {
            // More than one setting may be wrong.
            let units = self.units.iter().map(|unit| {
                let (id, core) = (source.id, source.core.clone());
                SourceDescription { id, core, ..unit.source() }
            });
            let found = self.best_of(&units.collect::<Vec<_>>(), &all)?;
            better = (found.source, found.reading);
        }
        if !better.1.is_plausible() || !better.1.is_much_better_than(&stated) {
            return None;
        }
        let (source, better) = (source.clone(), better);
        let (own, other) = (config(&source).ok()?, config(&better.0).ok()?);
        let questions = [Question::Protocol].into_iter().chain(Question::SETTINGS);
        let mut changes = Vec::new();
        for question in questions.filter(|question| question.concerns_both(&source, &better.0)) {
            let (said, fits) = (question.answer(&source, &own), question.answer(&better.0, &other));
            if said != fits {
                let register =
                    source.registers.stated(question.register(&source.protocol)).map(|stated| &stated.origin);
                let cpu = source.cpu.as_ref().map(|cpu| &cpu.origin);
                let origin = if question == Question::Processor { cpu } else { register };
                let by = origin.unwrap_or(&source.origin).clone();
                changes.push(Change {
                    about: question.name(),
                    register: question.register(&source.protocol),
                    said,
                    by,
                    fits,
                });
            }
        }
        Some(Correction { changes, stated: stated.to_string(), source: better.0, fits: better.1.to_string() })
    }

    /// The best reading when the `free` settings of the bases are varied.
    fn best_of(
        &mut self,
        bases: &[SourceDescription],
        free: &dyn Fn(Question) -> bool,
    ) -> Option<FoundSource> {
        let starts = self.starts(bases, free);
        let best = starts.iter().map(|(start, _)| self.improve(start, free)).collect::<Vec<_>>();
        let (source, reading) = least(best)?;
        if reading.contradicts_program() {
            let empty = Arc::default();
            let found = Search::new(self.sample, Traced::alone(&empty), self.units).best_of(bases, free)?;
            return Some(FoundSource { misses_program: true, ..found });
        }
        let mut findings = Vec::new();
        if free(Question::Protocol) {
            let other_protocols = starts.iter().filter(|(start, _)| start.protocol != source.protocol);
            let other = other_protocols.min_by_key(|(_, reading)| reading.rank());
            let other = other.map(|(other, _)| other.clone());
            let other = other.or_else(|| self.turned_down(bases, &source, &reading));
            let others = other.into_iter().collect();
            findings.push(self.finding(Question::Protocol, &source, others)?);
        }
        findings.extend(self.findings(&source, free));
        Some(FoundSource { source, reading, findings, misses_program: reading.misses_program() })
    }

    /// A source of another protocol that reads worse, so that the evidence against it can be stated.
    fn turned_down(
        &mut self,
        bases: &[SourceDescription],
        source: &SourceDescription,
        best: &Reading,
    ) -> Option<SourceDescription> {
        let mut others = bases.iter().filter(|base| base.protocol != source.protocol);
        others.find(|base| self.reading(base).is_some_and(|reading| reading.is_worse_than(best))).cloned()
    }

    /// The reading of the source as described, if it is good. Usually it is, and no other reading is needed.
    fn good(&mut self, source: &SourceDescription) -> Option<Reading> {
        let config = config(source).ok()?;
        if self.good.as_ref().is_none_or(|(known, _)| *known != config) {
            let reading = Reading::good(self.sample, &config, self.traced, self.most);
            self.good = Some((config, reading));
        }
        self.good.as_ref()?.1
    }

    /// The reading of the source as described.
    pub(crate) fn reading(&mut self, source: &SourceDescription) -> Option<Reading> {
        let config = config(source).ok()?;
        if let Some((_, reading)) = self.known.iter().find(|(known, _)| *known == config) {
            return Some(*reading);
        }
        let reading = Reading::of(self.sample, &config, self.traced, self.most);
        // A reading that is much worse than the best so far is given up.
        self.most = self.most.min(4 * reading.cost() + 64);
        self.known.push((config, reading));
        Some(reading)
    }

    /// The most promising ways to read the beginning: at most one for each base, the best first.
    fn starts(
        &self,
        bases: &[SourceDescription],
        free: &dyn Fn(Question) -> bool,
    ) -> Vec<(SourceDescription, Reading)> {
        let Some(sample) = self.sample.synchronised(FIRST_LOOK) else { return Vec::new() };
        let mut best = most(&sample);
        let mut starts = Vec::new();
        for base in bases {
            let mut read = Vec::new();
            for source in settings::lengths(base, free) {
                for (source, reading) in self.beginnings(&sample, source, 2 * best + 16, free) {
                    if reading.is_plausible() && !reading.gave_up() {
                        best = best.min(reading.cost());
                        read.push((source, reading));
                    }
                }
            }
            starts.extend(least(read));
        }
        starts.sort_by_key(|(_, reading)| reading.rank());
        starts.truncate(STARTS);
        starts
    }

    /// The reading of the source. If the lengths of its packets are plausible but their contents impossible, also the
    /// readings with the other formats of timestamps: a wrong format has this effect, and changes no packet's length.
    fn beginnings(
        &self,
        sample: &Sample,
        source: SourceDescription,
        most: u64,
        free: &dyn Fn(Question) -> bool,
    ) -> Vec<(SourceDescription, Reading)> {
        let read = |source: SourceDescription| {
            let config = config(&source).ok()?;
            let reading = Reading::of_packets(sample, &config, self.traced.program, most);
            Some((source, reading))
        };
        let mut all = Vec::from_iter(read(source));
        if let [(source, reading)] = all.as_slice()
            && free(Question::Timestamps)
            && reading.has_packets()
            && reading.contradicts_itself()
        {
            let others = Question::Timestamps.others(source, self.units);
            all.extend(others.into_iter().filter_map(read));
        }
        all
    }

    /// The best reading when the `free` settings are varied one at a time.
    fn improve(
        &mut self,
        start: &SourceDescription,
        free: &dyn Fn(Question) -> bool,
    ) -> (SourceDescription, Reading) {
        let mut best = (start.clone(), self.reading(start).unwrap_or_default());
        for _ in 0..ROUNDS {
            let before = best.1;
            for question in Question::SETTINGS.into_iter().filter(|question| free(*question)) {
                for other in self.others(question, &best.0, free) {
                    let Some(reading) = self.reading(&other).filter(Reading::is_plausible) else { continue };
                    if reading.rank() < best.1.rank() {
                        best = (other, reading);
                    }
                }
            }
            if best.1.rank() == before.rank() {
                break;
            }
        }
        best
    }

    /// The source with each other answer to try.
    fn others(
        &mut self,
        question: Question,
        source: &SourceDescription,
        free: &dyn Fn(Question) -> bool,
    ) -> Vec<SourceDescription> {
        let mut others = question.others(source, self.units);
        if question == Question::Processor && free(Question::Timestamps) {
            // Another processor comes with its usual timestamps. If these are wrong, they would count against the
            // processor.
            let mut with_other_times = Vec::new();
            for other in &others {
                if self.reading(other).is_some_and(|reading| reading.contradicts_itself()) {
                    with_other_times.extend(Question::Timestamps.others(other, self.units));
                }
            }
            others.extend(with_other_times);
        }
        others
    }

    /// The findings about this source, question by question.
    fn findings(&mut self, source: &SourceDescription, free: &dyn Fn(Question) -> bool) -> Vec<Finding> {
        let questions = Question::SETTINGS.into_iter().filter(|question| free(*question));
        questions
            .filter_map(|question| {
                let others = question.others(source, self.units);
                self.finding(question, source, others)
            })
            .collect()
    }

    fn finding(
        &mut self,
        question: Question,
        source: &SourceDescription,
        others: Vec<SourceDescription>,
    ) -> Option<Finding> {
        let own = config(source).ok()?;
        let reading = self.reading(source)?;
        let others = others.into_iter().filter_map(|other| {
            let config = config(&other).ok().filter(|config| *config != own)?;
            let reading = self.reading(&other)?;
            Some((question.answer(&other, &config), reading))
        });
        let best = Answer::new(question.answer(source, &own), reading);
        // An answer with the same execution is the runner-up only if there is no other.
        let next = others.min_by_key(|(_, other)| (reading.gives_the_same(other), other.rank()));
        let certainty = match &next {
            // With another depth, the uncommitted elements at the end are others, which may look like an error.
            Some((_, next)) if question == Question::Speculation && next.is_as_likely_as(&reading) => {
                certainty(&reading, &reading.with_story_of(next))
            }
            Some((_, next)) => certainty(&reading, next),
            // A question with only one answer is no finding; but for the protocol, no other one was recognised.
            None if question == Question::Protocol => Certainty::Certain,
            None => return None,
        };
        let runner_up = next.map(|(other, next)| Answer::new(other, next));
        Some(Finding { about: question.name(), best, runner_up, certainty })
    }
}

/// The certainty of a reading that was preferred to another one.
fn certainty(best: &Reading, other: &Reading) -> Certainty {
    if best.gives_the_same(other) {
        Certainty::Indifferent
    } else if other.is_worse_than(best) && !other.may_be_damaged_as(best) {
        Certainty::Certain
    } else if best.runs_the_same(other) {
        Certainty::DoubtfulDetails
    } else {
        Certainty::Doubtful
    }
}

/// The best reading of a source's packets, if there is any.
pub(super) fn recognise(sample: &Sample, units: &[Unit]) -> Option<Reading> {
    let bases = units.iter().map(Unit::source).collect::<Vec<_>>();
    let empty = Arc::default();
    let starts = Search::new(sample, Traced::alone(&empty), units).starts(&bases, &|_| true);
    starts.first().map(|(_, reading)| *reading)
}

/// The best-fitting protocol of a source that is of none of them, with the evidence against it.
pub(super) fn best_protocol(sample: &Sample, units: &[Unit]) -> Option<Answer> {
    let empty = Program::new();
    let readings = units.iter().filter_map(|unit| {
        let config = config(&unit.source()).ok()?;
        Some((config.protocol(), Reading::of_packets(sample, &config, &empty, most(sample))))
    });
    // A reading with an I-sync is preferred.
    let (protocol, reading) = readings.min_by_key(|(_, reading)| (!reading.begins(), reading.rank()))?;
    Some(Answer::new(protocol, reading))
}

/// The cost above which a reading is worthless.
fn most(sample: &Sample) -> u64 {
    64 + sample.bytes().len() as u64 / 32
}

/// The best reading; among equals the first.
fn least(read: Vec<(SourceDescription, Reading)>) -> Option<(SourceDescription, Reading)> {
    read.into_iter().min_by_key(|(_, reading)| reading.rank())
}
