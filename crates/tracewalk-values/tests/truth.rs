//! Values along recorded paths, compared with what an emulator recorded.

mod program;

use program::Case;
use tracewalk_values::End;

/// What is known of the end of the path.
#[derive(Clone, Copy, Debug)]
enum Known {
    Nothing,
    Registers,
    RegistersAndMemory,
}

/// A run: the program, the last instructions or all of them, what is known of the end, and the least part of register writes in percent, of
/// all instructions and of the last 2,000, that has to be known. The figures are those that were reached, rounded down.
type Run = (&'static str, Option<usize>, Known, [u32; 2]);

const RUNS: &[Run] = &[
    ("stock", None, Known::Nothing, [35, 22]),
    ("stock", None, Known::Registers, [36, 25]),
    ("stock", None, Known::RegistersAndMemory, [37, 25]),
    ("stock", Some(2_600), Known::Nothing, [14, 14]),
    ("stock", Some(2_600), Known::Registers, [25, 25]),
    ("stock", Some(2_600), Known::RegistersAndMemory, [25, 25]),
    ("telemetry", None, Known::Nothing, [68, 67]),
    ("telemetry", None, Known::Registers, [68, 70]),
    ("telemetry", None, Known::RegistersAndMemory, [68, 71]),
    ("telemetry", Some(2_600), Known::Nothing, [64, 67]),
    ("telemetry", Some(2_600), Known::Registers, [66, 70]),
    ("telemetry", Some(2_600), Known::RegistersAndMemory, [67, 71]),
    ("grid", None, Known::Nothing, [52, 52]),
    ("grid", None, Known::Registers, [52, 53]),
    ("grid", None, Known::RegistersAndMemory, [54, 68]),
    ("grid", Some(2_600), Known::Nothing, [50, 51]),
    ("grid", Some(2_600), Known::Registers, [55, 55]),
    ("grid", Some(2_600), Known::RegistersAndMemory, [78, 82]),
];

#[tracewalk_corpus::test]
fn nothing_that_is_stated_differs_from_the_record() {
    for &(name, last, known, least) in RUNS {
        let case = Case::read(name);
        let all = case.end();
        let end = match known {
            Known::Nothing => None,
            Known::Registers => Some(End { memory: Vec::new(), ..all }),
            Known::RegistersAndMemory => Some(all),
        };
        let outcome = case.prove(last, end.as_ref());
        println!("{name:10} {last:?} {known:?}: {outcome}");
        assert_eq!(outcome.wrong, Vec::<String>::new(), "{name} {last:?} {known:?}");
        let reached = [outcome.all.percent(), outcome.last.percent()];
        let is_enough = reached.iter().zip(least).all(|(reached, least)| *reached >= f64::from(least));
        assert!(is_enough, "{name} {last:?} {known:?}: {outcome}, expected {least:?}");
    }
}

#[tracewalk_corpus::test]
fn a_state_of_another_moment_contradicts_the_path_or_is_refused() {
    let case = Case::read("telemetry");
    // The state of the end, claimed for a moment 400 steps earlier.
    let outcome = case.prove_without_the_last(400, &case.end());
    assert!(outcome.end_contradicts, "{outcome}");
    assert_eq!(outcome.wrong, Vec::<String>::new());
}

#[tracewalk_corpus::test]
fn a_path_in_many_windows_has_no_wrong_value_and_few_fewer() {
    for (name, least) in [("stock", 33.), ("telemetry", 64.), ("grid", 40.)] {
        let case = Case::read(name);
        let end = case.end();
        for (window, overlap) in [(4_000, 1_000), (1_500, 300), (977, 64), (300, 0)] {
            let outcome = case.prove_in_windows(window, overlap, Some(&end));
            println!("{name:10} windows of {window}: {outcome}");
            assert_eq!(outcome.wrong, Vec::<String>::new(), "{name} {window}");
            assert!(!outcome.end_contradicts, "{name} {window}");
            assert!(window < 4_000 || outcome.all.percent() > least, "{name} {window}: {outcome}");
        }
    }
}
