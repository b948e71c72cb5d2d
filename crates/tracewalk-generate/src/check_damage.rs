//! The command `damage`: what the decoder makes of damaged traces, as a table.

use std::error::Error;
use std::path::Path;

use tracewalk_generate::damage::{Effect, Kind};
use tracewalk_generate::matrix::{Case, Programs};

use crate::arguments::Arguments;

/// The traces that are damaged: each protocol and encoding, plain and with more in it.
const CASES: [&str; 9] = [
    "m3 etmv3,cpu=cortex-m3,etmcr=0x0 cancel=multiple synchronise=1024",
    "m3 etmv3,cpu=cortex-m3,etmcr=0x100 cancel=multiple synchronise=1024",
    "m4 etmv3,cpu=cortex-m4,etmcr=0x0 cancel=always synchronise=256 timestamps=100",
    "a9 etmv3,cpu=cortex-a7,etmcr=0x0 cancel=multiple synchronise=1024",
    "a9 etmv3,cpu=cortex-a7,etmcr=0xd00c cancel=multiple synchronise=1024 timestamps=100",
    "a15 pft,cpu=cortex-a9,etmcr=0x0 depth=1 synchronise=256",
    "a9 pft,cpu=cortex-a15,etmcr=0x20000000 depth=4 synchronise=256",
    "a9 pft,cpu=cortex-a15,etmcr=0xd000 depth=1 synchronise=1024 timestamps=100",
    "rust-a9 pft,cpu=cortex-a15,etmcr=0x100 depth=1 synchronise=256",
];

/// How often each trace is damaged in each way, where nothing else is said.
const USUAL_TIMES: u32 = 300;

pub(crate) fn run(mut arguments: Arguments) -> Result<(), Box<dyn Error>> {
    let times = arguments.number("--times")?.unwrap_or(USUAL_TIMES);
    let folder = arguments.optional("--firmware")?.unwrap_or_else(|| "testdata/firmware".to_owned());
    arguments.finish()?;
    let mut programs = Programs::new(Path::new(&folder), |file| std::fs::read(file));
    println!(
        "| damage | bytes until in step: median, 95 %, most | wrong instructions: all, traces with some, most | lost outside |"
    );
    println!("|---|---|---|---|");
    for kind in Kind::ALL {
        let mut effects = Vec::new();
        for case in CASES {
            let case = case.parse::<Case>()?;
            programs.damage(&case, kind, times, &mut effects)?;
        }
        println!("| {} | {} |", kind.name(), row(&effects));
    }
    Ok(())
}

fn row(effects: &[Effect]) -> String {
    let mut bytes = effects.iter().filter_map(|effect| effect.bytes_until_in_step).collect::<Vec<_>>();
    bytes.sort_unstable();
    let part = |percent: usize| bytes.get((bytes.len() * percent / 100).min(bytes.len().saturating_sub(1)));
    let part = |percent| part(percent).map_or_else(|| "-".to_owned(), u64::to_string);
    let wrong = effects.iter().map(|effect| effect.wrong);
    let (all, some) = (wrong.clone().sum::<u64>(), wrong.clone().filter(|&wrong| wrong != 0).count());
    let most = wrong.max().unwrap_or(0);
    let outside = effects.iter().map(|effect| effect.lost_outside).sum::<u64>();
    format!(
        "{}, {}, {} | {all}, {some} of {}, {most} | {outside}",
        part(50),
        part(95),
        part(100),
        effects.len()
    )
}
