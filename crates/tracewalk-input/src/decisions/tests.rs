use std::path::{Path, PathBuf};

use serde_json::Value;

use super::*;

const PROGRAMS: [&str; 6] = ["decisions", "proto", "json", "motor", "sched", "lexer"];

fn corpus(program: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/mcdc").join(program)
}

fn object(program: &str) -> Vec<u8> {
    std::fs::read(corpus(program).join(format!("decisions/{program}.cov.o"))).unwrap()
}

/// The name, place in its text, file id, place in the file, number of conditions, and whether one is constant.
type Summary = (String, [u64; 4], u64, [u64; 2], u64, bool);

fn expected(program: &str) -> Vec<Summary> {
    let text = std::fs::read(corpus(program).join("expected.json")).unwrap();
    let expected = serde_json::from_slice::<Value>(&text).unwrap();
    let number = |value: &Value| value.as_u64().unwrap();
    let summary = |decision: &Value| {
        let of = |name: &str| number(&decision[name]);
        let place = &decision["place"];
        (
            decision["function"].as_str().unwrap().to_owned(),
            ["line", "column", "end_line", "end_column"].map(of),
            of("file_id"),
            [number(&place[0]), number(&place[1])],
            of("conditions"),
            decision["flags"].as_array().unwrap().iter().any(|flag| flag == "constant"),
        )
    };
    let mut all = expected["decisions"].as_array().unwrap().iter().map(summary).collect::<Vec<_>>();
    all.sort();
    all
}

fn found(program: &str) -> Vec<Decision> {
    read_decisions(&corpus(program).join("decisions")).unwrap()
}

#[tracewalk_corpus::test]
fn decisions_have_the_places_and_conditions_that_llvm_cov_prints() {
    for program in PROGRAMS {
        let summary = |decision: Decision| {
            assert!(decision.is_whole, "{decision:?}");
            let place = |place: Place| [u64::from(place.line), u64::from(place.column)];
            let ([line, column], [end_line, end_column]) =
                (place(decision.own.start), place(decision.own.end));
            (
                decision.function.to_string(),
                [line, column, end_line, end_column],
                decision.file_id as u64,
                place(decision.range.start),
                decision.conditions.len() as u64,
                decision.conditions.iter().any(|condition| condition.is_constant),
            )
        };
        let mut all = found(program).into_iter().map(summary).collect::<Vec<_>>();
        all.sort();
        assert_eq!(all, expected(program), "{program}");
    }
}

/// llvm-cov's vectors list conditions in its order: each must be a way through the graph in ours.
#[tracewalk_corpus::test]
fn the_order_of_conditions_is_that_of_llvm_covs_vectors() {
    for program in PROGRAMS {
        let text = std::fs::read(corpus(program).join("expected.json")).unwrap();
        let expected = serde_json::from_slice::<Value>(&text).unwrap();
        let all = found(program);
        for truth in expected["decisions"].as_array().unwrap() {
            let own = |decision: &&Decision| {
                let start = decision.own.start;
                truth["function"] == *decision.function
                    && truth["line"] == start.line
                    && truth["column"] == start.column
                    && truth["file_id"] == decision.file_id
            };
            let decision = all.iter().find(own).unwrap();
            for vector in truth["vectors"].as_array().unwrap() {
                let vector = vector.as_str().unwrap();
                let values = vector.chars().zip(&decision.conditions);
                let evaluated = values.clone().filter(|(value, _)| *value != '-').count();
                let (mut id, mut steps) = (1, 0);
                while id != 0 {
                    let (value, condition) =
                        values.clone().find(|(_, condition)| condition.id == id).unwrap();
                    assert_ne!(value, '-', "{vector} of {decision:?}");
                    id = if value == 'T' { condition.if_true } else { condition.if_false };
                    steps += 1;
                }
                assert_eq!(steps, evaluated, "{vector} of {decision:?}");
            }
        }
    }
}

/// The counts are those of the corpus' own reader of mappings.
#[tracewalk_corpus::test]
fn statements_have_the_code_that_runs_when_the_decision_is_true() {
    let bodies =
        PROGRAMS.map(|program| found(program).iter().filter(|decision| decision.body.is_some()).count());
    assert_eq!(bodies, [35, 8, 11, 10, 8, 17]);
    let place = |line, column| Place { line, column };
    // A `for`, whose body comes after the increment, and an `if` without braces.
    for (program, decision, start, end) in [
        ("proto", place(95, 26), place(95, 63), place(98, 6)),
        ("json", place(86, 9), place(87, 9), place(87, 17)),
    ] {
        let all = found(program);
        let body = all.iter().find(|found| found.range.start == decision).unwrap().body;
        assert_eq!(body, Some(SourceRange { start, end }));
    }
}

#[tracewalk_corpus::test]
fn an_object_cut_anywhere_is_an_error_or_has_the_same_decisions() {
    let whole = object("lexer");
    let all = decisions_of("lexer.o".as_ref(), &whole).unwrap();
    for end in (0..whole.len()).step_by(7) {
        if let Ok(found) = decisions_of("lexer.o".as_ref(), &whole[..end]) {
            assert_eq!(found, all, "cut at {end}");
        }
    }
}

#[tracewalk_corpus::test]
fn flipped_bits_never_panic_and_errors_have_a_place_in_the_file() {
    let whole = object("motor");
    let mut errors = 0;
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << (at % 8);
        if let Err(error) = decisions_of("motor.o".as_ref(), &flipped) {
            assert!(error.fault.at <= whole.len() as u64, "{error}");
            errors += 1;
        }
    }
    assert!(errors > 100, "{errors}");
}

#[tracewalk_corpus::test]
fn an_archive_has_the_decisions_of_its_members() {
    let mut archive = b"!<arch>\n".to_vec();
    let mut apart = Vec::new();
    for program in ["lexer", "json"] {
        let object = object(program);
        let header = format!(
            "{:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n",
            format!("{program}.o/"),
            0,
            0,
            0,
            644,
            object.len()
        );
        archive.extend(header.bytes());
        archive.extend(&object);
        archive.resize(archive.len().next_multiple_of(2), b'\n');
        apart.extend(decisions_of("x.o".as_ref(), &object).unwrap());
    }
    assert_eq!(decisions_of("x.a".as_ref(), &archive).unwrap(), apart);
}

#[test]
fn numbers_without_data_end_at_the_end_of_the_data() {
    let huge = [0xff, 0xff, 0xff, 0xff, 0x0f];
    let error = regions::read(cursor::Cursor::new(&huge, 0x40)).unwrap_err();
    assert_eq!((error.at, error.kind), (0x45, FaultKind::Truncated));
    let endless = [0xff; 11];
    let error = regions::read(cursor::Cursor::new(&endless, 0x40)).unwrap_err();
    assert_eq!((error.at, error.kind), (0x40, FaultKind::TooLarge(u64::MAX)));
}

#[test]
fn expansions_in_a_circle_are_too_deep() {
    // Two files; no expressions; in file 0 a decision and an expansion into 1, in 1 an expansion into 0.
    let data = [2, 0, 0, 0, 2, 40, 0, 1, 1, 1, 0, 9, 12, 1, 1, 0, 9, 1, 4, 1, 1, 0, 9];
    let (files, regions) = regions::read(cursor::Cursor::new(&data, 0)).unwrap();
    assert_eq!(files, [0, 0]);
    let found = function::decisions(&"f".into(), &["a.c".into(), "a.c".into()].into(), &regions);
    assert_eq!(found, Err(FaultKind::TooDeep));
}

#[test]
fn a_folder_without_objects_has_no_mapping() {
    let folder = tempfile::tempdir().unwrap();
    let error = read_decisions(folder.path()).unwrap_err();
    assert_eq!(error.fault.kind, FaultKind::NoMapping);
}
