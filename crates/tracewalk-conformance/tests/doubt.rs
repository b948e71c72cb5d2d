//! Coverage and every other consumer of trusted elements leave out the same doubtful elements.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tracewalk::flow::Element;
use tracewalk::ids::Location;
use tracewalk::isa;
use tracewalk::program::Program;
use tracewalk::source::{FlowStream, SourceConfig};
use tracewalk::span::CaptureOffset;
use tracewalk_analysis::coverage::{Conditions, Part as Covered, Recorder};
use tracewalk_analysis::record::FlowRecord;
use tracewalk_analysis::{Doubtful, Trusted};
use tracewalk_conformance::damage::{Arrived, CASES, Kind, Sound};
use tracewalk_conformance::matrix::Programs;

/// How often each instruction ran.
type Counts = BTreeMap<Location, u64>;

/// Counts each instruction of a run of code from `start` up to `end` as executed `times` times.
fn add(counts: &mut Counts, program: &Program, start: Location, end: u64, times: u64) {
    let mut at = start;
    while at.address.get() < end {
        *counts.entry(at).or_default() += times;
        let code = program.code(at.address).unwrap_or_default();
        let instruction = isa::classify(code, at.address, at.isa).expect("flow has been through this code");
        at = at.after(instruction.bytes.into());
    }
}

fn counts(covered: &Covered, program: &Program) -> Counts {
    let mut counts = Counts::new();
    for (block, times) in &covered.blocks {
        add(&mut counts, program, Location::new(block.start, block.isa), block.end.get(), *times);
    }
    counts
}

/// The coverage of a trace, and its elements.
fn covered(
    (config, program): (&SourceConfig, &Program),
    arrived: &Arrived,
    doubtful: Doubtful,
) -> (Covered, Vec<Element>) {
    let mut elements = Vec::new();
    let mut take = |element| elements.push(element);
    let mut stream = FlowStream::new(config);
    let mut from = 0;
    for &loss in &arrived.losses {
        stream.push(arrived.bytes.get(from..loss).unwrap_or_default(), program, &mut take);
        stream.lose_sync(program, &mut take);
        from = loss;
    }
    stream.push(arrived.bytes.get(from..).unwrap_or_default(), program, &mut take);
    stream.finish(program, &mut take);
    let mut recorder = Recorder::new(Conditions::recorded_by(config), doubtful);
    let mut trusted = Trusted::default();
    let mut record = |record: FlowRecord, is_doubtful| {
        recorder.element(&record.element, is_doubtful);
        Ok(())
    };
    for &element in &elements {
        trusted.weigh(FlowRecord { element, at: CaptureOffset(0) }, &mut record).unwrap();
    }
    trusted.finish(&mut |certain| record(certain, false)).unwrap();
    (recorder.finish("", "-", config.protocol(), arrived.bytes.len() as u64), elements)
}

/// The elements that are not in doubt.
fn trusted(elements: &[Element]) -> (Vec<Element>, u64) {
    let (mut trusted, mut left) = (Trusted::default(), Vec::new());
    let mut take = |record: FlowRecord| {
        left.push(record.element);
        Ok(())
    };
    for &element in elements {
        trusted.record(FlowRecord { element, at: CaptureOffset(0) }, &mut take).unwrap();
    }
    trusted.finish(&mut take).unwrap();
    (left, trusted.left_out())
}

fn programs() -> Programs {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/firmware");
    Programs::new(&folder, |file| std::fs::read(file))
}

#[test]
fn coverage_of_damaged_traces_has_nothing_that_was_noticed_to_be_wrong() {
    const TIMES: u32 = 3;
    let (mut programs, mut left_out, mut wrong_if_kept) = (programs(), 0, 0);
    for (case, kind) in CASES.iter().flat_map(|case| Kind::ALL.map(|kind| (case, kind))) {
        let command = format!("cargo xtask damage --times {TIMES} --case \"{case}\" ({})", kind.name());
        let look = |sound: &Sound<'_>, damaged: &Arrived| {
            let of = sound.of();
            let sound_counts = counts(&covered(of, sound.arrived(), Doubtful::Keep).0, of.1);
            // Executions in excess of the sound trace.
            let surplus = |counts: &Counts| -> u64 {
                let more = |(at, times): (&Location, &u64)| {
                    times.saturating_sub(sound_counts.get(at).copied().unwrap_or_default())
                };
                counts.iter().map(more).sum()
            };
            let [(dropping, elements), (keeping, _)] =
                [Doubtful::Drop, Doubtful::Keep].map(|doubtful| covered(of, damaged, doubtful));
            let [dropped, kept] = [&dropping, &keeping].map(|covered| counts(covered, of.1));
            let effect = sound.damaged(damaged);
            assert!(surplus(&dropped) <= effect.never_noticed(), "{command}");
            wrong_if_kept += surplus(&kept);

            // Every command leaves out exactly the elements that are in doubt.
            let in_doubt = effect.wrong_in_doubt + effect.right_in_doubt;
            let [losses, kept_losses] = [&dropping, &keeping].map(|covered| covered.source.losses.in_doubt);
            assert_eq!((losses.left_out, losses.counted), (in_doubt, 0), "{command}");
            assert_eq!((kept_losses.left_out, kept_losses.counted), (0, in_doubt), "{command}");
            assert_eq!(dropping.source.instructions + in_doubt, keeping.source.instructions, "{command}");
            let (certain, number) = trusted(&elements);
            assert_eq!(number, in_doubt, "{command}");
            let blocks = |covered: &Covered| covered.blocks.values().sum::<u64>();
            let certain_blocks =
                certain.iter().filter(|element| matches!(element, Element::Block(_))).count();
            assert_eq!(certain_blocks as u64, blocks(&dropping), "{command}");
            left_out += in_doubt;
        };
        programs.each_damaged(&case.parse().unwrap(), kind, TIMES, look).unwrap();
    }
    assert!(left_out > 50_000 && wrong_if_kept > 300, "the damage did nothing: {left_out}, {wrong_if_kept}");
}
