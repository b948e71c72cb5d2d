//! Analyses that take whole passages, decoded by several threads, answer as they do element by element: whole captures
//! and damaged ones.

use std::io;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;
use tracewalk::ids::ContextId;
use tracewalk::program::Program;
use tracewalk::source::SourceConfig;
use tracewalk_analysis::analysis::{Analysis, End, FlowSink, Repeated};
use tracewalk_analysis::clock::Unit;
use tracewalk_analysis::counts::Counting;
use tracewalk_analysis::coverage::Conditions;
use tracewalk_analysis::drive::{Carrier, Follower, Input, NoProgress, Spread, Stretch};
use tracewalk_analysis::interrupts::Measuring;
use tracewalk_analysis::log::{Log, Noting, Reader};
use tracewalk_analysis::place::{ExceptionName, Happening, Place, Position};
use tracewalk_analysis::profile::Profiling;
use tracewalk_analysis::record::{FlowRecord, ItmRecord};
use tracewalk_analysis::sink::Sink;
use tracewalk_analysis::timeline::{Item, Scale, Timeline};
use tracewalk_analysis::{Doubtful, Section, Statistics, Window};
use tracewalk_session::{Covered, Follow, Losses, Request, Session, Trust};

use crate::ete;
use crate::support::{copy_with, corpus, example};

/// All items of a timeline.
struct Items {
    scale: Scale,
    window: Window,
    timeline: Option<Timeline>,
    items: Vec<Item>,
}

impl Sink<FlowRecord> for Items {
    fn section(&mut self, section: &Section) -> io::Result<()> {
        self.timeline = Some(Timeline::new(Arc::clone(&section.code), &self.scale, &self.window));
        Ok(())
    }

    fn record(&mut self, record: FlowRecord) -> io::Result<()> {
        let Self { timeline, items, .. } = self;
        let timeline = timeline.as_mut().expect("a section has begun");
        timeline.element(&record.element, record.at, &mut |item: Item| items.push(item));
        Ok(())
    }
}

impl FlowSink for Items {
    fn passage(&mut self, repeated: &Repeated<'_>) -> io::Result<()> {
        let Self { timeline, items, .. } = self;
        timeline.as_mut().expect("a section has begun").passage(repeated, &mut |item: Item| items.push(item));
        Ok(())
    }

    fn needs_places(&self) -> bool {
        false
    }
}

impl Analysis for Items {
    type Found = Vec<Item>;

    fn answer(self, _: &End) -> Vec<Item> {
        let Self { timeline, mut items, .. } = self;
        timeline.expect("a section has begun").finish(&mut |item: Item| items.push(item));
        items
    }
}

/// The number of elements before each record of an ITM.
#[derive(Default)]
struct Between {
    elements: usize,
    before: Vec<usize>,
}

impl Sink<FlowRecord> for Between {
    fn section(&mut self, _: &Section) -> io::Result<()> {
        Ok(())
    }

    fn record(&mut self, _: FlowRecord) -> io::Result<()> {
        self.elements += 1;
        Ok(())
    }

    fn shows_itm(&self) -> bool {
        true
    }

    fn itm(&mut self, _: &ItmRecord) -> io::Result<()> {
        self.before.push(self.elements);
        Ok(())
    }
}

impl FlowSink for Between {
    fn passage(&mut self, repeated: &Repeated<'_>) -> io::Result<()> {
        self.elements += repeated.elements().count();
        Ok(())
    }

    fn needs_places(&self) -> bool {
        false
    }
}

impl Analysis for Between {
    type Found = Vec<usize>;

    fn answer(self, _: &End) -> Vec<usize> {
        self.before
    }
}

/// The answer for each source of a capture, with its counts.
fn found<A: Analysis>(capture: &Path, how: &Follow, analysis: impl Fn() -> A) -> Vec<(A::Found, String)> {
    found_in(Spread::over(1).segment, capture, how, analysis)
}

fn found_in<A: Analysis>(
    segment: usize,
    capture: &Path,
    how: &Follow,
    analysis: impl Fn() -> A,
) -> Vec<(A::Found, String)> {
    // Without a stated length of segments, short captures are followed element by element.
    let request = Request { segment: Some(segment), ..Request::new(capture) };
    let (mut session, _) = Session::open(request).expect("the capture is readable");
    let sources = session.sources().to_vec();
    let each = sources.iter().map(|source| {
        let outcome = session.run(source, how, analysis()).expect("the source can be followed");
        let losses = Losses { places: None, ..outcome.losses };
        (outcome.found, format!("{:?} {losses:?}", outcome.statistics))
    });
    each.collect()
}

/// Compares an analysis by passages with the same analysis by elements, with and without instructions in doubt.
fn check<A: Analysis>(capture: &Path, threads: &[u16], analysis: impl Fn() -> A)
where
    A::Found: PartialEq,
{
    check_how(capture, threads, &[Doubtful::Drop, Doubtful::Keep], analysis);
}

fn check_how<A: Analysis>(capture: &Path, threads: &[u16], how: &[Doubtful], analysis: impl Fn() -> A)
where
    A::Found: PartialEq,
{
    for &doubtful in how {
        let trust = Trust { doubtful, ..Trust::default() };
        let how = |threads| Follow { threads, trust, ..Follow::default() };
        // Elements come one by one if the places of losses are listed.
        let expected = found(capture, &Follow { places: true, ..how(1) }, &analysis);
        for &threads in threads {
            for segment in [Spread::over(1).segment, 300 * usize::from(threads)] {
                let what = format!("{}, {threads} threads, {segment}, {doubtful:?}", capture.display());
                let found = found_in(segment, capture, &how(threads), &analysis);
                for (found, expected) in found.iter().zip(&expected) {
                    assert_eq!(found.1, expected.1, "{what}");
                    assert!(found.0 == expected.0, "{what}: {} differs", std::any::type_name::<A>());
                }
                assert_eq!(found.len(), expected.len(), "{what}");
            }
        }
    }
}

fn check_coverage(capture: &Path, threads: &[u16]) {
    for doubtful in [Doubtful::Drop, Doubtful::Keep] {
        let covering = || Covered::of_all(Conditions::OfEvery, doubtful);
        check_how(capture, threads, &[doubtful], covering);
    }
}

fn check_all(capture: &Path, threads: &[u16], window: &Window) {
    check_coverage(capture, threads);
    check(capture, threads, Counting::default);
    check(capture, threads, Between::default);
    check(capture, threads, || Profiling::new(window.clone()));
    for unit in [Unit::Instructions, Unit::Cycles, Unit::Time] {
        check_unit(capture, threads, window, unit);
    }
}

fn check_unit(capture: &Path, threads: &[u16], window: &Window, unit: Unit) {
    let scale = Scale { unit, counts_cycles: unit == Unit::Cycles, frequency: None };
    let measuring = |functions| {
        let window = window.clone();
        move || Measuring::new(scale, window.clone(), functions)
    };
    check(capture, threads, measuring(true));
    check(capture, threads, measuring(false));
    check_exceptions(capture, measuring);
    check(capture, threads, || items(scale, window));
}

fn items(scale: Scale, window: &Window) -> Items {
    Items { scale, window: window.clone(), timeline: None, items: Vec::new() }
}

/// The whole trace, and parts that end at positions, functions and exceptions.
fn windows() -> [Window; 5] {
    let position = |count| Some(Place::Position(Position::Instructions(count)));
    let nth = |nth: u64, what| Some(Place::Happening { what, nth: NonZeroU64::new(nth).expect("not zero") });
    let function = |name: &str| Happening::Function { name: name.to_owned(), offset: 0 };
    // Each of the programs has some of these.
    let interrupt = || Happening::Exception(ExceptionName::Any);
    [
        Window::default(),
        Window { from: position(300), to: position(4000) },
        Window { from: nth(3, function("next_random")), to: nth(1, function("interpret")) },
        Window { from: nth(2, interrupt()), to: nth(9, interrupt()) },
        Window { from: nth(1, function("crc32")), to: nth(30, function("ascending")) },
    ]
}

/// The results for exceptions do not depend on whether functions are measured.
fn check_exceptions<F: Fn() -> Measuring>(capture: &Path, measuring: impl Fn(bool) -> F) {
    let exceptions = |functions| {
        let found = found(capture, &Follow::default(), measuring(functions));
        found.into_iter().map(|((activities, _), _)| activities.exceptions).collect::<Vec<_>>()
    };
    assert!(exceptions(true) == exceptions(false), "{}", capture.display());
}

pub(crate) fn examples() -> Vec<PathBuf> {
    ["m3-etmv3", "a7-etmv3", "a15-pft", "m0-crash-mtb", "a57-etmv4"].map(example).to_vec()
}

/// A copy of a capture with a changed trace.
pub(crate) fn with_trace(example: &Path, change: impl FnOnce(Vec<u8>) -> Vec<u8>) -> tempfile::TempDir {
    copy_with(example, "trace.bin", change)
}

/// Some bits of a trace are changed, and some bytes are missing.
#[derive(Clone, Debug)]
pub(crate) struct Damage {
    flips: Vec<(usize, u8)>,
    missing: (usize, usize),
}

impl Damage {
    pub(crate) fn any() -> impl Strategy<Value = Self> {
        let flips = proptest::collection::vec((any::<usize>(), any::<u8>()), 1..6);
        (flips, (any::<usize>(), 0_usize..80)).prop_map(|(flips, missing)| Self { flips, missing })
    }

    pub(crate) fn of(&self, mut trace: Vec<u8>) -> Vec<u8> {
        for (at, bits) in &self.flips {
            let at = at % trace.len();
            trace[at] ^= bits;
        }
        let from = self.missing.0 % trace.len();
        trace.drain(from..(from + self.missing.1).min(trace.len()));
        trace
    }
}

#[test]
fn whole_captures_are_the_same_by_passages_and_by_elements() {
    for example in examples() {
        check_all(&example.join("capture.toml"), &[1, 2, 3, 7], &Window::default());
    }
}

#[test]
fn parts_of_captures_are_the_same_by_passages_and_by_elements() {
    for window in &windows()[1..] {
        for example in examples() {
            let capture = example.join("capture.toml");
            check(&capture, &[2], || Profiling::new(window.clone()));
            check_unit(&capture, &[2], window, Unit::Instructions);
        }
    }
}

/// A capture repeated up to a number of bytes, with damage.
pub(crate) fn long(example: &Path, bytes: usize) -> tempfile::TempDir {
    with_trace(example, |once| {
        let mut long = once.repeat(bytes / once.len());
        for at in [long.len() / 7, long.len() / 3, long.len() / 2] {
            long[at] ^= 0x10;
            long.drain(at + 1000..at + 1037);
        }
        long
    })
}

#[test]
fn coverage_of_long_captures_is_the_same_on_any_number_of_threads() {
    // Segments of analyses that only count are long, and one thread decodes up to three of them.
    for example in &examples()[..2] {
        let folder = long(example, 5 << 20);
        let covering = || Covered::of_all(Conditions::OfEvery, Doubtful::Drop);
        check_how(&folder.path().join("capture.toml"), &[1, 2, 7], &[Doubtful::Drop], covering);
    }
}

#[test]
fn long_captures_are_the_same_on_any_number_of_threads() {
    for example in examples().iter().filter(|example| !example.ends_with("m0-crash-mtb")) {
        let folder = long(example, 280 << 10);
        check_long(&folder.path().join("capture.toml"));
    }
}

/// Its passages state exception levels, without context IDs.
#[tracewalk_corpus::test]
fn a_long_capture_with_exception_levels_is_the_same_on_any_number_of_threads() {
    let folder = long(&corpus("etm4/synthetic/mix-a57-etmv4"), 280 << 10);
    check_long(&folder.path().join("snapshot.ini"));
}

fn check_long(capture: &Path) {
    check_how(capture, &[1, 2, 7], &[Doubtful::Drop], Counting::default);
    for (window, threads) in windows().iter().zip([&[2, 3, 7][..], &[3], &[2], &[7], &[3]]) {
        check_how(capture, threads, &[Doubtful::Drop], || Profiling::new(window.clone()));
        let scale = Scale { unit: Unit::Instructions, counts_cycles: false, frequency: None };
        let measuring = || Measuring::new(scale, window.clone(), true);
        check_how(capture, &threads[..1], &[Doubtful::Drop], measuring);
        check_how(capture, &threads[..1], &[Doubtful::Drop], || items(scale, window));
    }
}

#[test]
fn transactions_are_the_same_by_passages_and_by_elements() {
    for start_is_p0 in [true, false] {
        let traced = ete::trace(400, 3, start_is_p0);
        assert!(traced.committed > 150 && traced.failed > 100 && traced.lost > 10);
        let (_folder, capture) = ete::capture(&traced.bytes, start_is_p0);
        check_all(&capture, &[1, 2, 3, 7], &Window::default());
        for window in &windows()[1..2] {
            check(&capture, &[2], || Profiling::new(window.clone()));
            check_unit(&capture, &[2], window, Unit::Instructions);
        }
    }
}

/// An ETE trace of `helper` alone, run this many times, each after a context. A few of the contexts, as `seed` decides, have a context
/// ID.
fn contexts(turns: u64, seed: u64) -> Vec<u8> {
    let mut unit = ete::Unit::new(seed, true);
    unit.synchronise(0x3000, false, true);
    for _ in 0..turns {
        for (taken, instructions) in [(true, 3), (true, 2), (false, 2), (true, 1)] {
            unit.atom(taken, instructions);
        }
        let exception_level = u8::from(unit.below(2) == 0);
        let context_id = (unit.below(8) == 0).then(|| ContextId(1 + u32::from(unit.below(2) == 0)));
        unit.go_to(0x3000, Some(ete::context(exception_level, context_id)));
    }
    unit.traced.bytes
}

/// Some contexts have an ID; the others are stated by passages.
#[test]
fn contexts_with_and_without_ids_are_the_same_by_passages_and_by_elements() {
    let trace = contexts(3000, 5);
    let (_folder, capture) = ete::capture(&trace, true);
    check_all(&capture, &[1, 2, 3, 7], &Window::default());
}

/// The answer of an analysis that takes passages, and the totals.
fn answer<A: Analysis>(
    follower: &mut Follower<'_>,
    input: &Input<'_>,
    spread: Spread,
    mut analysis: A,
) -> (A::Found, Statistics) {
    let mut reader = Reader::new(Doubtful::Drop, analysis.weighs_doubt());
    let (mut statistics, mut parts) = (Statistics::default(), 0);
    let noted = follower.flow_parts(input, spread, &Log::new(Noting::Passages), |gathered| {
        parts += 1;
        statistics.add(&gathered.statistics);
        reader.part(gathered.part, &mut analysis)
    });
    noted.and_then(|()| reader.finish(&mut analysis)).expect("nothing is written");
    assert!(parts > 10, "{parts} parts");
    (analysis.answer(&End { statistics, complete: true }), statistics)
}

/// Short segments, so that most borders are inside transactions.
#[test]
fn coverage_and_counts_leave_out_transactions_without_a_commit_on_any_number_of_threads() {
    let traced = ete::trace(3000, 7, true);
    let config = SourceConfig::Etmv4(ete::config(true));
    let mut program = Program::new();
    program.add(ete::BASE, &ete::code()).expect("the program fits into memory");
    let carrier = Carrier::Stretches(vec![Stretch::all(traced.bytes.len())]);
    let input = Input { capture: &traced.bytes, carrier, rest: None, progress: &NoProgress };
    for (threads, segment) in [(1, 1000), (2, 777), (3, 64), (7, 4096)] {
        let (spread, mut follower) = (Spread { threads, segment }, Follower::new(&config, &program));
        let covering = Covered::of_all(Conditions::OfBranches, Doubtful::Drop);
        let (covered, statistics) = answer(&mut follower, &input, spread, covering);
        let (counted, _) = answer(&mut follower, &input, spread, Counting::default());
        let [(_, covered)] = &*covered else { panic!("there is one program") };
        let [source] = &*covered.sources else { panic!("there is one source") };
        assert_eq!(statistics.instructions, traced.instructions);

        let ran = |at: u64| {
            let blocks = covered.blocks.iter().filter(|(key, _)| key.start.get() == at);
            blocks.map(|(_, count)| count).sum::<u64>()
        };
        assert_eq!(source.losses.uncommitted, traced.uncommitted, "{threads} threads");
        assert_eq!(
            source.instructions,
            traced.instructions - traced.uncommitted,
            "{threads} threads"
        );
        assert_eq!((ran(0x200c), ran(0x3000)), (traced.committed, traced.committed), "{threads} threads");
        // The branch after the start also runs after each failure.
        assert_eq!(ran(0x2004), traced.committed + traced.failed, "{threads} threads");
        assert_eq!(ran(0x2018), traced.failed, "{threads} threads");

        let [counts] = &*counted.counts.values().collect::<Vec<_>>() else { panic!("there is one context") };
        assert_eq!(counted.uncommitted, traced.uncommitted, "{threads} threads");
        assert_eq!(counts.instructions, source.instructions, "{threads} threads");
        let calls = counts.branches.iter().filter(|(branch, _)| branch.from.get() == 0x2008);
        let calls = calls.map(|(branch, count)| (branch.to.get(), *count)).collect::<Vec<_>>();
        assert_eq!(calls, [(0x3000, traced.committed)], "{threads} threads");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(16) })]

    #[test]
    fn damaged_transactions_are_the_same_by_passages_and_by_elements(
        seed in any::<u64>(),
        start_is_p0 in any::<bool>(),
        damage in Damage::any(),
    ) {
        let trace = damage.of(ete::trace(300, seed, start_is_p0).bytes);
        let (_folder, capture) = ete::capture(&trace, start_is_p0);
        check_coverage(&capture, &[1, 2, 3]);
        check(&capture, &[1, 2, 3], Counting::default);
        check(&capture, &[1, 2], || Profiling::new(Window::default()));
        check_unit(&capture, &[1, 2], &Window::default(), Unit::Instructions);
    }

    #[test]
    fn damaged_captures_are_the_same_by_passages_and_by_elements(
        damage in Damage::any(),
        example in proptest::sample::select(examples()),
        window in proptest::sample::select(windows().to_vec()),
        unit in proptest::sample::select(vec![Unit::Instructions, Unit::Cycles, Unit::Time]),
    ) {
        let folder = with_trace(&example, |trace| damage.of(trace));
        let capture = folder.path().join("capture.toml");
        check_coverage(&capture, &[1, 2]);
        check(&capture, &[1, 3], Counting::default);
        check(&capture, &[1, 2], Between::default);
        check(&capture, &[1, 2], || Profiling::new(window.clone()));
        check_unit(&capture, &[1, 2], &window, unit);
    }
}
