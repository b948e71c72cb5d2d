//! `profile --format firefox`: JSON for <https://profiler.firefox.com>, in its "processed profile" format.
//!
//! Each source is a thread; each chain of calls is one sample with its own cost as weight. Samples are in the order of the
//! chains, not of time; a timeline shows the order in time.

use std::io::{self, Write};
use std::time::Duration;

use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, ReferenceTimestamp,
    SamplingInterval, StackHandle, ThreadHandle, Timestamp, WeightType,
};

use super::profile::ProfileReport;
use crate::words::CUT;
use tracewalk_analysis::profile::{Label, LabelKind, Tree};

/// The length of one unit of cost if it is unknown: the profiler requires a time for every sample.
const NANOSECONDS_OF_ONE: u64 = 1000;

/// The most samples, each with a weight of at most 2^31. If there are more units of cost, several share a sample.
const MOST_UNITS: u64 = 1 << 43;

/// The colours of the kinds of nodes.
struct Categories {
    function: CategoryHandle,
    inlined: CategoryHandle,
    exception: CategoryHandle,
    task: CategoryHandle,
}

/// Writes all sources' chains of calls.
pub fn write_firefox(out: &mut dyn Write, report: &ProfileReport) -> io::Result<()> {
    let epoch = ReferenceTimestamp::from_duration_since_unix_epoch(Duration::ZERO);
    let totals = report.sources.iter().map(|(_, profile)| report.value(&profile.total()));
    let total = totals.fold(0, u64::saturating_add);
    let share = total.div_ceil(MOST_UNITS).max(1);
    let mut product = format!("tracewalk {}, {}", env!("CARGO_PKG_VERSION"), report.measure());
    if share > 1 {
        product.push_str(&format!(", {share} to a sample"));
    }
    if !report.complete {
        product.push_str(&format!(". {CUT}"));
    }
    let interval = SamplingInterval::from_nanos(NANOSECONDS_OF_ONE);
    let mut profile = fxprof_processed_profile::Profile::new(&product, epoch, interval);
    // All names are known: the profiler need not ask a symbol server.
    profile.set_symbolicated(true);
    let categories = Categories {
        function: profile.add_category("Function", CategoryColor::Orange),
        inlined: profile.add_category("Inlined function", CategoryColor::Yellow),
        exception: profile.add_category("Exception", CategoryColor::Purple),
        task: profile.add_category("Task", CategoryColor::Blue),
    };
    let start = Timestamp::from_nanos_since_reference(0);
    let process = profile.add_process(&report.name, 1, start);
    for (source, number) in report.sources.iter().zip(1..) {
        let thread = profile.add_thread(process, number, start, false);
        profile.set_thread_name(thread, &report.name_of(&source.0));
        profile.set_thread_samples_weight_type(thread, WeightType::Samples);
        let profile = &mut profile;
        let mut samples = Samples { profile, thread, report, share, weight: 0, last: 0 };
        samples.add_tree(&categories, &report.tree(source, false));
    }
    serde_json::to_writer(&mut *out, &profile)?;
    writeln!(out)
}

/// The samples of one thread, each at the sum of the costs before it.
struct Samples<'a> {
    profile: &'a mut fxprof_processed_profile::Profile,
    thread: ThreadHandle,
    report: &'a ProfileReport,
    /// The units of cost in one unit of weight.
    share: u64,
    /// The weight of all samples so far.
    weight: u64,
    /// The time of the last sample, in nanoseconds.
    last: u64,
}

impl Samples<'_> {
    fn add_tree(&mut self, categories: &Categories, tree: &Tree) {
        let mut stacks: Vec<StackHandle> = Vec::new();
        let mut sum = 0_u64;
        tree.stacks(|path, node| {
            stacks.truncate(path.len() - 1);
            let label = tree.label_of(node);
            let name = self.profile.intern_string(&label.text());
            let frame = FrameInfo {
                frame: Frame::Label(name),
                category_pair: categories.of(label).into(),
                flags: FrameFlags::empty(),
            };
            let frame = self.profile.intern_frame(self.thread, frame);
            let stack = self.profile.intern_stack(self.thread, stacks.last().copied(), frame);
            stacks.push(stack);
            sum = sum.saturating_add(self.report.value(&node.own));
            let mut left = (sum / self.share).saturating_sub(self.weight);
            while left > 0 {
                // Weights have 31 bits.
                let weight = i32::try_from(left).unwrap_or(i32::MAX);
                left -= u64::from(weight.unsigned_abs());
                self.add(Some(stack), weight);
            }
        });
        // The profiler shows the time between samples: without one at the end, the last chain has no width.
        self.add(None, 0);
        self.profile.set_thread_end_time(self.thread, Timestamp::from_nanos_since_reference(self.last));
    }

    fn add(&mut self, stack: Option<StackHandle>, weight: i32) {
        let at = nanoseconds(self.report, self.weight.saturating_mul(self.share));
        // The processor was busy all the time since the previous sample.
        let spent = CpuDelta::from_nanos(at.saturating_sub(self.last));
        self.profile.add_sample(self.thread, Timestamp::from_nanos_since_reference(at), stack, spent, weight);
        self.last = at;
        self.weight += u64::from(weight.unsigned_abs());
    }
}

/// A cost on the profiler's axis of time.
fn nanoseconds(report: &ProfileReport, value: u64) -> u64 {
    match report.seconds(1) {
        Some(_) => report.in_nanoseconds(value),
        None => value.saturating_mul(NANOSECONDS_OF_ONE),
    }
}

impl Categories {
    const fn of(&self, label: &Label) -> CategoryHandle {
        match label.kind {
            LabelKind::Function => self.function,
            LabelKind::Inlined => self.inlined,
            LabelKind::Exception => self.exception,
            LabelKind::Task => self.task,
        }
    }
}
