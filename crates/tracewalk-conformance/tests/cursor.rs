//! A cursor shows what flow reports, wherever it is put in a trace and however it is moved from there: in
//! sound and damaged traces of each protocol, raw and in frames.

use std::path::PathBuf;

use tracewalk::flow::{Element, EventKind};
use tracewalk::frame::{Formatter, FormatterOptions, Framing};
use tracewalk::ids::{Location, TraceId};
use tracewalk::isa;
use tracewalk::program::Program;
use tracewalk::source::SourceConfig;
use tracewalk::span::CaptureOffset;
use tracewalk_analysis::Position;
use tracewalk_analysis::drive::{Carrier, Cursor, FlowIndex, Input, NoProgress, Sizes, Stretch, Totals};
use tracewalk_conformance::damage::{CASES, Kind};
use tracewalk_conformance::matrix::Programs;

/// Reproducible pseudo-random numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.count_below(most as u64)).unwrap()
    }

    fn count_below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most.max(1)
    }
}

/// One step as flow reports it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    element: Element,
    at: CaptureOffset,
    instruction: Option<Location>,
    context: Option<EventKind>,
    /// The totals up to and including this step.
    totals: Totals,
}

/// All steps of a source, by decoding it once.
fn decoded_once(input: &Input<'_>, config: &SourceConfig, program: &Program) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut totals = Totals::default();
    let mut context = None;
    let add = |record: tracewalk_analysis::record::FlowRecord| {
        let (element, at) = (record.element, record.at);
        let mut view = program;
        if let Some(EventKind::Context { context_id, vmid, .. }) = context {
            view = program.view(program.view_in(context_id, vmid));
        }
        match element {
            Element::Block(block) => {
                let mut place = Location::new(block.start, block.isa);
                for _ in 0..block.instructions {
                    totals.steps += 1;
                    totals.instructions += 1;
                    steps.push(Step { element, at, instruction: Some(place), context, totals });
                    let code = view.code(place.address).expect("flow has been there");
                    let bytes =
                        isa::classify(code, place.address, place.isa).expect("flow has been there").bytes;
                    place = place.after(bytes.into());
                }
                assert_eq!(place.address, block.end);
                return Ok(());
            }
            Element::Proof(_) => return Ok(()),
            Element::Gap(_) => totals.steps += 1,
            Element::Event(event) => {
                totals.steps += 1;
                match event.kind {
                    EventKind::Exception { .. } => totals.exceptions += 1,
                    EventKind::Cycles(cycles) => totals.cycles += cycles,
                    EventKind::Timestamp(time) => totals.time = totals.time.max(time),
                    _ => {}
                }
            }
        }
        steps.push(Step { element, at, instruction: None, context, totals });
        if let Element::Event(event) = element
            && let EventKind::Context { .. } = event.kind
        {
            context = Some(event.kind);
        }
        Ok(())
    };
    input.flow(config, program, add).unwrap();
    steps
}

fn assert_is_at(cursor: &Cursor<'_>, steps: &[Step], step: usize, how: &str) {
    let expected = steps[step];
    let here = cursor.current().unwrap_or_else(|| panic!("{how}: nowhere, expected step {step}"));
    assert_eq!(here.step, step as u64, "{how}");
    let instruction = here.instruction.map(|instruction| instruction.location);
    let found = (*here.element, here.at, instruction, here.context);
    assert_eq!(
        found,
        (expected.element, expected.at, expected.instruction, expected.context),
        "{how}, step {step}"
    );
    if let Some(instruction) = here.instruction {
        assert_eq!(instruction.number + 1, expected.totals.instructions, "{how}, step {step}");
    }
}

/// Puts a cursor somewhere, by each available method, and walks from there.
fn walk_about(index: &FlowIndex<'_>, steps: &[Step], numbers: &mut Numbers) {
    let mut cursor = index.cursor();
    let Some(totals) = steps.last().map(|step| step.totals) else {
        assert!(cursor.current().is_none() && !cursor.step() && !cursor.step_back() && !cursor.seek_step(0));
        return;
    };
    assert_eq!(index.totals(), totals);
    assert_is_at(&cursor, steps, 0, "the first");
    let mut now = 0;
    for _ in 0..60 {
        let first = |reached: &dyn Fn(&Step) -> bool| steps.iter().position(reached);
        let (moved, expected, how) = match numbers.below(7) {
            0 | 1 => {
                let step = numbers.below(steps.len() + steps.len() / 20 + 1);
                (cursor.seek_step(step as u64), Some(step).filter(|step| *step < steps.len()), "step")
            }
            2 => {
                let number = numbers.count_below(totals.instructions + 2);
                let found = first(&|step| step.totals.instructions > number);
                (cursor.seek(Position::Instructions(number)), found, "instruction")
            }
            3 => {
                let cycles = 1 + numbers.count_below(totals.cycles + 2);
                let found = first(&|step| step.totals.cycles >= cycles);
                (cursor.seek(Position::Cycles(cycles)), found, "cycles")
            }
            4 => {
                let time = steps[numbers.below(steps.len())].totals.time + numbers.below(3) as u64;
                let found = first(&|step| step.totals.time >= time.max(1));
                (cursor.seek(Position::Time(time.max(1))), found, "time")
            }
            5 => {
                let number = numbers.count_below(totals.exceptions + 1);
                let found = first(&|step| step.totals.exceptions > number);
                (cursor.seek_exception(number), found, "exception")
            }
            _ => {
                let at = CaptureOffset(steps[numbers.below(steps.len())].at.0 + numbers.below(3) as u64);
                (cursor.seek(Position::Capture(at)), first(&|step| step.at >= at), "byte")
            }
        };
        assert_eq!(moved, expected.is_some(), "{how}");
        now = expected.unwrap_or(now);
        assert_is_at(&cursor, steps, now, how);
        for _ in 0..numbers.below(12) {
            let back = numbers.below(2) == 0;
            let next =
                if back { now.checked_sub(1) } else { Some(now + 1).filter(|next| *next < steps.len()) };
            assert_eq!(if back { cursor.step_back() } else { cursor.step() }, next.is_some());
            now = next.unwrap_or(now);
            assert_is_at(&cursor, steps, now, if back { "back" } else { "on" });
        }
        // Seeks the same address again.
        if let Some(address) = steps[now].instruction.map(|at| at.address).filter(|_| numbers.below(4) == 0) {
            let is_there = |step: &Step| step.instruction.is_some_and(|at| at.address == address);
            let back = numbers.below(2) == 0;
            let next = match back {
                true => steps[..now].iter().rposition(is_there),
                false => steps[now + 1..].iter().position(is_there).map(|on| now + 1 + on),
            };
            assert_eq!(
                if back { cursor.previous_at(address) } else { cursor.next_at(address) },
                next.is_some()
            );
            now = next.unwrap_or(now);
            assert_is_at(&cursor, steps, now, "address");
        }
    }
    // All steps one after the other, forwards and backwards.
    assert!(cursor.seek_step(0));
    for step in 0..steps.len() {
        assert_is_at(&cursor, steps, step, "on");
        assert_eq!(cursor.step(), step + 1 < steps.len());
    }
    for step in (steps.len().saturating_sub(200)..steps.len()).rev() {
        assert_is_at(&cursor, steps, step, "back");
        assert_eq!(cursor.step_back(), step > 0);
    }
}

/// The bytes of a source and of another one beside it, in frames; some bytes are damaged if `damage` is set.
fn in_frames(bytes: &[u8], id: TraceId, damage: bool, numbers: &mut Numbers) -> Vec<u8> {
    let other = TraceId::new(0x33).unwrap();
    let mut capture = Vec::new();
    let mut formatter = Formatter::new(FormatterOptions::default());
    let mut rest = bytes;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.len().min(1 + numbers.below(300)));
        formatter.write(id, piece, &mut capture);
        formatter.write(other, &[0x5a; 64][..numbers.below(64)], &mut capture);
        rest = after;
    }
    formatter.flush(&mut capture);
    if damage {
        for _ in 0..3 {
            let at = numbers.below(capture.len());
            match numbers.below(2) {
                0 => drop(capture.drain(at..(at + 1 + numbers.below(40)).min(capture.len()))),
                _ => capture[at] ^= 1 << numbers.below(8),
            }
        }
    }
    capture
}

#[test]
fn a_cursor_shows_what_flow_hands_on_wherever_it_is_put() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/firmware");
    let mut programs = Programs::new(&folder, |file| std::fs::read(file));
    let mut numbers = Numbers(1);
    let (mut steps_compared, mut waypoints, mut indexes, mut kept_again) = (0, 0, 0, 0);
    for (number, case) in CASES.iter().enumerate() {
        let kind = Kind::ALL[number % Kind::ALL.len()];
        let mut look = |config: &SourceConfig, program: &Program, bytes: &[u8]| {
            // Long enough to be interesting, and short enough for an unoptimised build.
            let bytes = &bytes[..bytes.len().min(6000)];
            let id = TraceId::new(0x10).unwrap();
            let middle = (8 + numbers.below(bytes.len())).next_multiple_of(8).min(bytes.len() - 1);
            let stretch = |bytes, continues| Stretch { bytes, continues };
            let cut = vec![stretch(0..middle, false), stretch(middle..bytes.len(), numbers.below(2) == 0)];
            let turned = vec![stretch(middle..bytes.len(), false), stretch(0..middle, true)];
            let frames = Carrier::Frames { framing: Framing::Buffer, id };
            let captures = [
                (bytes.to_vec(), Carrier::Stretches(vec![Stretch::all(bytes.len())])),
                (bytes.to_vec(), Carrier::Stretches(cut)),
                (bytes.to_vec(), Carrier::Stretches(turned)),
                (in_frames(bytes, id, false, &mut numbers), frames.clone()),
                (in_frames(bytes, id, true, &mut numbers), frames),
            ];
            for (capture, carrier) in captures {
                let input = Input { capture: &capture, carrier, rest: None, progress: &NoProgress };
                let steps = decoded_once(&input, config, program);
                let sizes = Sizes {
                    segment: 1 + numbers.below(600),
                    piece: 1 + numbers.below(80),
                    waypoints: 1 + numbers.below(12),
                };
                let by = (sizes, 1 + numbers.below(3));
                let index = FlowIndex::with_sizes(&input, config, program, by);
                assert!(index.waypoints() <= sizes.waypoints && index.is_complete());
                walk_about(&index, &steps, &mut numbers);
                // An index that was stored and loaded equals the original.
                if let Some(kept) = index.kept() {
                    let bytes =
                        postcard::to_allocvec(&kept).expect("states that are between blocks of the graph");
                    let kept = postcard::from_bytes(&bytes).expect("what was written");
                    let again = FlowIndex::of_kept(kept, &input, config, program).expect("the same source's");
                    walk_about(&again, &steps, &mut numbers);
                    kept_again += 1;
                }
                steps_compared += steps.len();
                waypoints += index.waypoints();
                indexes += 1;
            }
        };
        let case = case.parse().unwrap();
        programs
            .each_damaged(&case, kind, 1, |sound, damaged| {
                let (config, program) = sound.of();
                look(config, program, &sound.arrived().bytes);
                look(config, program, &damaged.bytes);
            })
            .unwrap();
    }
    assert!(steps_compared > 100_000 && waypoints > 200, "{steps_compared} steps, {waypoints} waypoints");
    assert!(kept_again * 3 > indexes, "{kept_again} of {indexes} indexes could be kept");
}
