//! The decoder's reading of damaged traces, as `cargo xtask damage` measures it, for a part of the same
//! traces.

use std::path::PathBuf;

use tracewalk_conformance::damage::{CASES, Effect, Kind};
use tracewalk_conformance::matrix::Programs;

#[test]
fn what_damage_makes_wrong_is_in_doubt_where_it_was_noticed_and_nothing_is_lost_outside() {
    const TIMES: u32 = 4;
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/firmware");
    let mut programs = Programs::new(&folder, |file| std::fs::read(file));
    let mut wrong = 0;
    for case in CASES {
        for kind in Kind::ALL {
            let mut effects = Vec::new();
            programs.damage(&case.parse().unwrap(), kind, TIMES, &mut effects).unwrap();
            let sum = |what: fn(&Effect) -> u64| effects.iter().map(what).sum::<u64>();
            let command = format!("cargo xtask damage --times {TIMES} --case \"{case}\" ({})", kind.name());
            assert_eq!(sum(|effect| effect.wrong_as_fact), 0, "wrong as fact: {command}");
            assert_eq!(sum(|effect| effect.lost_outside), 0, "lost outside: {command}");
            wrong += sum(|effect| effect.wrong);
        }
    }
    assert!(wrong > 300, "the damage did nothing: {wrong}");
}
