//! How often exceptions were taken and how long they took; the same for functions.
//!
//! A timeline's items go in ([`ActivityRecorder`]), [`Activities`] come out: counts, and durations in the unit of the axis (cycles,
//! ticks or instructions).
//!
//! A duration lasts from the place where an exception was taken to the place where it returned. With preemption it is all of that; without, it
//! excludes other interrupts and other tasks in between. Exceptions that an instruction raises itself (SVC, faults) count for the code that
//! raised them and do not preempt it.
//!
//! An exception that a gap cuts, or that begins or ends outside the trace, is counted but has no duration.
//!
//! ```
//! use tracewalk_analysis::interrupts::Lengths;
//!
//! let mut lengths = Lengths::default();
//! [20, 30, 40].into_iter().for_each(|cycles| lengths.add(cycles));
//! assert_eq!((lengths.min(), lengths.max(), lengths.percentile(50)), (Some(20), Some(40), Some(30)));
//! assert_eq!(lengths.mean(), Some(30.0));
//! ```

mod activity;
mod analysis;
mod collected;
mod itm;
mod lengths;
mod saved;
mod small_map;

use std::collections::BTreeMap;

use tracewalk::directive::BeginReason;
use tracewalk::flow::GapReason;
use tracewalk::ids::Exception;

use super::InDoubt;
use super::call_stack::{FunctionId, Task};
use super::clock::Unit;
use super::timeline::{Certainty, Change, Finish, Item, Mark, Span, SpanId, Start, Track, Unknown, What};
use crate::quick::QuickMap;
use lengths::Gathering;
use small_map::SmallMap;

pub use activity::Activity;
pub use analysis::{Measuring, Reported};
pub use collected::{AllActivities, Measured, ProgramActivities};
pub use itm::ReportedActivities;
pub use lengths::Lengths;

/// The exceptions of one source and, on request, its functions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Activities {
    /// By exception; `None` if neither the trace nor the vector table identifies it.
    pub exceptions: BTreeMap<Option<Exception>, Activity>,
    /// By function.
    pub functions: BTreeMap<FunctionId, Activity>,
    /// Instructions in doubt.
    pub in_doubt: InDoubt,
}

/// Measures how long exceptions and functions of a timeline took.
#[derive(Debug)]
pub struct ActivityRecorder {
    unit: Unit,
    functions: bool,
    /// The records, and the index of each exception's and function's record.
    records: Vec<Record>,
    numbers: QuickMap<Key, usize>,
    /// The records that were looked up last.
    recent: [usize; 2],
    open: SmallMap<SpanId, Open>,
    /// Running interrupts, the innermost last.
    interrupts: Vec<Interrupt>,
    /// Running handlers of exceptions that an instruction raised itself.
    others: Vec<SpanId>,
    /// The clocks of interrupts that wait for their task.
    suspended: SmallMap<SpanId, u64>,
    task: Option<Task>,
    /// The clock of the running task, and those of the others.
    clock: u64,
    tasks: QuickMap<Option<Task>, u64>,
    now: u64,
    /// Counts the stretches of unknown length.
    epoch: u64,
    gap_began: u64,
    /// Whether items are an ITM's reports: any exception interrupts the one before, estimated times are unknown, and the time from an
    /// exit to the report of the return belongs to no handler.
    is_reported: bool,
    /// Whether time passes between such an exit and return.
    is_between: bool,
}

/// The measurements of an exception or a function.
#[derive(Debug)]
struct Record {
    key: Key,
    /// Without lengths.
    counts: Activity,
    with_preemption: Gathering,
    without_preemption: Gathering,
    inter_arrival: Gathering,
    /// The last beginning, and the stretch of known length that it is in.
    last: Option<(u64, u64)>,
}

/// A running interrupt: an exception from outside.
#[derive(Clone, Copy, Debug)]
struct Interrupt {
    id: SpanId,
    /// The interrupt's own run time.
    clock: u64,
}

/// A context with a clock of its own, which stops while another one runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Context {
    Task(Option<Task>),
    Interrupt(SpanId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    Exception(Option<Exception>),
    Function(FunctionId),
}

/// A span that has not ended.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// The index of the span's record.
    record: usize,
    /// The beginning; `None` if that was not seen.
    since: Option<u64>,
    context: Context,
    /// The context's clock at the beginning.
    clock: u64,
    epoch: u64,
}

impl Activities {
    /// Adds the activities of another part of the trace. The time from one part's last beginning to the other's first is not an
    /// inter-arrival time.
    pub fn merge(&mut self, other: &Self) {
        for (exception, activity) in &other.exceptions {
            self.exceptions.entry(*exception).or_default().merge(activity);
        }
        for (function, activity) in &other.functions {
            self.functions.entry(*function).or_default().merge(activity);
        }
        self.in_doubt.add(other.in_doubt);
    }

    fn of(&mut self, key: Key) -> &mut Activity {
        match key {
            Key::Exception(exception) => self.exceptions.entry(exception).or_default(),
            Key::Function(function) => self.functions.entry(function).or_default(),
        }
    }
}

impl Record {
    fn of(key: Key) -> Self {
        Self {
            key,
            counts: Activity::default(),
            with_preemption: Gathering::default(),
            without_preemption: Gathering::default(),
            inter_arrival: Gathering::default(),
            last: None,
        }
    }

    /// Another activity of the record's kind begins here.
    #[inline]
    fn begins(&mut self, now: u64, epoch: u64, unit: Unit) {
        let last = self.last.replace((now, epoch));
        let nothing_ran = last.is_some_and(|(last, _)| unit == Unit::Instructions && now <= last);
        if let Some((last, _)) = last.filter(|(_, last_epoch)| *last_epoch == epoch && !nothing_ran) {
            self.inter_arrival.add(now.saturating_sub(last));
        }
    }

    fn finish(self) -> Activity {
        Activity {
            with_preemption: self.with_preemption.finish(),
            without_preemption: self.without_preemption.finish(),
            inter_arrival: self.inter_arrival.finish(),
            ..self.counts
        }
    }
}

impl ActivityRecorder {
    /// An empty recorder on an axis with this unit.
    #[must_use]
    pub fn new(unit: Unit, functions: bool) -> Self {
        Self {
            unit,
            functions,
            records: Vec::new(),
            numbers: QuickMap::default(),
            recent: [0; 2],
            open: SmallMap::default(),
            interrupts: Vec::new(),
            others: Vec::new(),
            suspended: SmallMap::default(),
            task: None,
            clock: 0,
            tasks: QuickMap::default(),
            now: 0,
            epoch: 0,
            gap_began: 0,
            is_reported: false,
            is_between: false,
        }
    }

    /// Takes the timeline's next item.
    pub fn take(&mut self, item: &Item) {
        self.pass(item.at.ticks);
        self.epoch += u64::from(self.is_reported && item.at.certainty == Certainty::Estimated);
        match item.change {
            Change::Begin(_) | Change::Mark { mark: Mark::Exception(..), .. } => self.is_between = false,
            Change::End { .. } => self.is_between = self.is_reported,
            Change::Mark { .. } => {}
        }
        match &item.change {
            Change::Begin(span) => match span.what {
                What::Task(task) => self.change_task(task),
                What::Gap(why) => {
                    self.gap_began = self.now;
                    // Only timestamps show how long tracing was lost.
                    let lost = match why {
                        Unknown::Gap(reason) => {
                            matches!(reason, GapReason::TraceLost | GapReason::Contradiction(_))
                        }
                        Unknown::Untraced(reason) => reason != BeginReason::Enabled,
                        Unknown::Reports => true,
                    };
                    if lost && self.unit == Unit::Cycles {
                        self.epoch += 1;
                    }
                }
                What::Exception(_) | What::Function { .. } => self.begin(span),
            },
            Change::End { track: Track::Gaps, .. } => {
                let unknown = match self.unit {
                    Unit::Instructions => true,
                    Unit::Cycles => self.now == self.gap_began,
                    Unit::Time | Unit::Samples => false,
                };
                self.epoch += u64::from(unknown);
            }
            Change::End { id, finish, .. } => self.end(*id, *finish),
            Change::Mark { .. } => {}
        }
    }

    /// The activities.
    #[must_use]
    pub fn finish(self) -> Activities {
        let mut found = Activities::default();
        for record in self.records {
            let key = record.key;
            let activity = record.finish();
            // A record whose beginnings and ends were not seen has no activity.
            if activity != Activity::default() {
                *found.of(key) = activity;
            }
        }
        found
    }

    /// The index of a record.
    #[inline]
    fn record(&mut self, key: Key) -> usize {
        let is_its = |number: &&usize| self.records.get(**number).is_some_and(|record| record.key == key);
        match self.recent.iter().find(is_its) {
            Some(number) => *number,
            None => self.look_up(key),
        }
    }

    #[inline(never)]
    fn look_up(&mut self, key: Key) -> usize {
        let Self { records, numbers, .. } = self;
        let number = *numbers.entry(key).or_insert_with(|| {
            records.push(Record::of(key));
            records.len() - 1
        });
        self.recent = [number, self.recent[0]];
        number
    }

    /// Time passes for the running context.
    #[inline]
    fn pass(&mut self, now: u64) {
        let passed = now.saturating_sub(self.now);
        self.now = now;
        match self.interrupts.last_mut() {
            _ if self.is_between => {}
            Some(interrupt) => interrupt.clock += passed,
            None => self.clock += passed,
        }
    }

    /// Another task runs, or the same one again.
    fn change_task(&mut self, task: Task) {
        let task = Some(task);
        if task != self.task {
            let clock = self.tasks.remove(&task).unwrap_or(0);
            self.tasks.insert(self.task, std::mem::replace(&mut self.clock, clock));
            self.task = task;
        }
    }

    fn context(&self) -> Context {
        self.interrupts.last().map_or(Context::Task(self.task), |interrupt| Context::Interrupt(interrupt.id))
    }

    /// A context's clock; `None` if the context has not run, or has ended.
    fn clock(&mut self, context: Context) -> Option<u64> {
        match context {
            Context::Task(task) if task == self.task => Some(self.clock),
            Context::Task(task) => self.tasks.get(&task).copied(),
            Context::Interrupt(id) => {
                let running = self.interrupts.iter().rfind(|interrupt| interrupt.id == id);
                running.map(|interrupt| interrupt.clock).or_else(|| self.suspended.get_mut(&id).copied())
            }
        }
    }

    fn begin(&mut self, span: &Span) {
        let interrupt = match span.what {
            What::Exception(it) => self.is_reported || !it.exception.is_some_and(Exception::is_synchronous),
            _ => false,
        };
        let preempting = interrupt && !(self.interrupts.is_empty() && self.others.is_empty());
        if !interrupt && matches!(span.what, What::Exception(_)) {
            self.others.push(span.id);
        }
        if span.start == Start::Resumed {
            if interrupt {
                let clock = self.suspended.remove(&span.id).unwrap_or(0);
                self.interrupts.push(Interrupt { id: span.id, clock });
            }
            return;
        }
        let key = match span.what {
            What::Exception(it) => Key::Exception(it.exception),
            What::Function { function, .. } if self.functions => Key::Function(function),
            _ => return,
        };
        let context = match span.track {
            _ if interrupt => Context::Interrupt(span.id),
            Track::Task(task) => Context::Task(Some(task)),
            _ => self.context(),
        };
        let since = (span.start == Start::Here).then_some(self.now);
        let clock = if interrupt {
            self.interrupts.push(Interrupt { id: span.id, clock: 0 });
            0
        } else {
            self.clock(context).unwrap_or(0)
        };
        let number = self.record(key);
        self.open.insert(span.id, Open { record: number, since, context, clock, epoch: self.epoch });
        let (now, epoch, unit) = (self.now, self.epoch, self.unit);
        let Some(record) = self.records.get_mut(number).filter(|_| since.is_some()) else { return };
        record.begins(now, epoch, unit);
        let activity = &mut record.counts;
        activity.count += 1;
        activity.preempting += u64::from(preempting);
        if let What::Exception(it) = span.what {
            activity.tail_chained += u64::from(it.chained);
        }
    }

    /// Ends an interrupt, if it runs; returns its own run time.
    #[inline]
    fn end_interrupt(&mut self, id: SpanId) -> Option<u64> {
        let innermost = self.interrupts.pop_if(|interrupt| interrupt.id == id);
        let ended = innermost.or_else(|| {
            let index = self.interrupts.iter().rposition(|interrupt| interrupt.id == id)?;
            Some(self.interrupts.remove(index))
        });
        ended.map(|interrupt| interrupt.clock)
    }

    fn end(&mut self, id: SpanId, finish: Finish) {
        let own = self.end_interrupt(id);
        self.others.retain(|other| *other != id);
        if finish == Finish::Suspended {
            own.into_iter().for_each(|clock| self.suspended.insert(id, clock));
            return;
        }
        let own = own.or_else(|| self.suspended.remove(&id));
        let Some(open) = self.open.remove(&id) else { return };
        let clock = if open.context == Context::Interrupt(id) { own } else { self.clock(open.context) };
        let (now, epoch, unit) = (self.now, self.epoch, self.unit);
        // A handler has at least one instruction: if none was followed, its duration is unknown, not 0.
        let nothing_ran = |since: u64| unit == Unit::Instructions && now <= since;
        let Some(record) = self.records.get_mut(open.record) else { return };
        let complete = match (record.key, finish) {
            (_, Finish::Returned) => true,
            // If another function, or one further out, continues, this function is over.
            (Key::Function(_), Finish::Replaced | Finish::Unwound) => true,
            _ => false,
        };
        let known = complete && open.epoch == epoch && !open.since.is_some_and(nothing_ran);
        match open.since.filter(|_| known) {
            Some(since) => {
                record.with_preemption.add(now.saturating_sub(since));
                record.without_preemption.add(clock.unwrap_or(0).saturating_sub(open.clock));
            }
            None => record.counts.cut += 1,
        }
    }
}

#[cfg(test)]
mod tests;
