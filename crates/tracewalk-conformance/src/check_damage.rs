//! The command `damage`: prints a table of the effects that damaged traces have on the decoder.

use std::error::Error;
use std::path::Path;

use tracewalk_conformance::damage::{CASES, Effect, Kind};
use tracewalk_conformance::matrix::{Case, Programs};

use tracewalk_generate::arguments::Arguments;

/// The default number of times that each trace is damaged in each way.
const USUAL_TIMES: u32 = 300;

pub(crate) fn run(mut arguments: Arguments) -> Result<(), Box<dyn Error>> {
    let times = arguments.number("--times")?.unwrap_or(USUAL_TIMES);
    let only = arguments.optional("--case")?;
    let kind = arguments.number("--kind")?;
    let folder = arguments.optional("--firmware")?.unwrap_or_else(|| "testdata/firmware".to_owned());
    arguments.finish()?;
    let mut programs = Programs::new(Path::new(&folder), |file| std::fs::read(file));
    println!(
        "| damage | bytes until in step: median, 95 %, most | wrong: all, in doubt, never noticed, as fact | traces with some wrong, not in doubt, as fact | right in doubt | lost, outside |"
    );
    println!("|---|---|---|---|---|---|");
    let kinds = (0_u32..).zip(Kind::ALL);
    for (number, kind) in kinds.filter(|(number, _)| kind.is_none_or(|kind| kind == *number)) {
        let mut effects = Vec::new();
        let mut failures = Vec::new();
        for case in CASES.into_iter().filter(|case| only.as_deref().is_none_or(|only| only == *case)) {
            let before = effects.len();
            programs.damage(&case.parse::<Case>()?, kind, times, &mut effects)?;
            let of_case = effects.iter().skip(before).zip(0..times);
            let failed = of_case.filter(|(effect, _)| effect.wrong_as_fact != 0 || effect.lost_outside != 0);
            failures.extend(failed.map(|(_, seed)| format!("{case} damage={number}:{seed}")));
        }
        println!("| {} | {} |", kind.name(), row(&effects));
        // `cargo xtask opencsd --keep FOLDER` accepts the failures of raw traces, and keeps the trace.
        failures.iter().for_each(|one| eprintln!("reported as fact, or lost outside the damage: {one}"));
    }
    Ok(())
}

fn row(effects: &[Effect]) -> String {
    let mut bytes = effects.iter().filter_map(|effect| effect.bytes_until_in_step).collect::<Vec<_>>();
    bytes.sort_unstable();
    let part = |percent: usize| bytes.get((bytes.len() * percent / 100).min(bytes.len().saturating_sub(1)));
    let part = |percent| part(percent).map_or_else(|| "-".to_owned(), u64::to_string);
    let sum = |what: fn(&Effect) -> u64| effects.iter().map(what).sum::<u64>();
    let with = |what: fn(&Effect) -> u64| effects.iter().filter(|effect| what(effect) != 0).count();
    format!(
        "{}, {}, {} | {}, {}, {}, {} | {}, {}, {} of {} | {} | {}, {}",
        part(50),
        part(95),
        part(100),
        sum(|effect| effect.wrong),
        sum(|effect| effect.wrong_in_doubt),
        sum(Effect::never_noticed),
        sum(|effect| effect.wrong_as_fact),
        with(|effect| effect.wrong),
        with(|effect| effect.wrong - effect.wrong_in_doubt),
        with(|effect| effect.wrong_as_fact),
        effects.len(),
        sum(|effect| effect.right_in_doubt),
        sum(|effect| effect.lost),
        sum(|effect| effect.lost_outside),
    )
}
