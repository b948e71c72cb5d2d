//! The command `matrix`: checks cases, and prints each failed case as the words that repeat it.

use std::error::Error;
use std::path::Path;

use tracewalk_conformance::matrix::{Case, Programs, cases};

use tracewalk_generate::arguments::Arguments;

/// By default one case in this number is checked. The number shares no factor with the dimensions, so that
/// every value meets every other one over all cases.
const USUAL_STEP: u32 = 401;

/// The most failures that are printed.
const MOST_FAILURES: usize = 20;

pub(crate) fn run(mut arguments: Arguments) -> Result<(), Box<dyn Error>> {
    let all = arguments.flag("--all");
    let step = arguments.number("--every")?.unwrap_or(if all { 1 } else { USUAL_STEP });
    let first = arguments.number("--from")?.unwrap_or(0);
    let folder = arguments.optional("--firmware")?.unwrap_or_else(|| "testdata/firmware".to_owned());
    let words = arguments.words();
    let chosen = if words.is_empty() {
        cases().into_iter().skip(usize::try_from(first)?).step_by(usize::try_from(step)?.max(1)).collect()
    } else {
        vec![words.join(" ").parse::<Case>()?]
    };
    let mut programs = Programs::new(Path::new(&folder), |file| std::fs::read(file));
    let (mut instructions, mut failures) = (0, 0);
    for case in &chosen {
        match programs.check(case) {
            Ok(found) => instructions += found,
            Err(failure) => {
                println!("cargo xtask matrix {case}\n    {failure}");
                failures += 1;
            }
        }
        if failures >= MOST_FAILURES {
            return Err(format!("stopped after {failures} failures").into());
        }
    }
    println!("{} cases of {}, {instructions} instructions, {failures} failures", chosen.len(), cases().len());
    if failures == 0 { Ok(()) } else { Err("found an execution other than the traced one".into()) }
}
