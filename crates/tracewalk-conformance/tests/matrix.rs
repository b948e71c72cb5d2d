//! Checks a part of the matrix of programs, trace units and modes. `cargo xtask matrix` checks other parts of
//! it, and with `--all` everything.

use std::path::PathBuf;

use tracewalk_conformance::matrix::{Programs, cases};

/// One case in this number is checked: a prime, so that over all cases every value of a dimension meets every
/// value of every other one.
const STEP: usize = 401;

#[test]
fn what_was_traced_is_found_in_every_kind_of_trace() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/firmware");
    let mut programs = Programs::new(&folder, |file| std::fs::read(file));
    let (mut checked, mut instructions) = (0, 0);
    for case in cases().iter().step_by(STEP) {
        match programs.check(case) {
            Ok(found) => instructions += found,
            Err(failure) => panic!("cargo xtask matrix {case}\n    {failure}"),
        }
        checked += 1;
    }
    assert!(checked > 900 && instructions > 3_000_000, "{checked} cases, {instructions} instructions");
}
