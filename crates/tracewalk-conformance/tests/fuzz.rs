//! The functions of the fuzz targets with their seeds and mutations of them, the same in every run. libFuzzer finds more
//! (`fuzz/run`); here what it found stays mended.

use std::path::Path;
use std::{fs, panic};

/// The mutations of each seed.
const MUTATIONS: u32 = 500;

/// The longest input, as for libFuzzer.
const LONGEST: usize = 8192;

/// Marsaglia's xorshift64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits") % bound.max(1)
    }

    fn byte(&mut self) -> u8 {
        match self.below(4) {
            0 => 0,
            1 => 0xff,
            _ => u8::try_from(self.below(256)).expect("a byte"),
        }
    }

    /// Changes bytes in one to four places.
    fn mutate(&mut self, input: &mut Vec<u8>, other: &[u8]) {
        for _ in 0..=self.below(4) {
            let at = self.below(input.len());
            let end = (at + 1 + self.below(16)).min(input.len());
            match self.below(7) {
                0 => input.truncate(at),
                1 => input.insert(at, self.byte()),
                2 => input.extend_from_within(at..end),
                3 => drop(input.drain(at..end)),
                4 => input
                    .splice(at..end, other.iter().skip(self.below(other.len())).take(16).copied())
                    .for_each(drop),
                5 => input.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << self.below(8)),
                _ => input.iter_mut().skip(at).take(1).for_each(|byte| *byte = self.byte()),
            }
        }
        input.truncate(LONGEST);
    }
}

/// Runs a target on its seeds and their mutations, or those of nothing.
fn run(name: &str, target: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(name);
    let mut files = fs::read_dir(folder).map_or_else(
        |_| Vec::new(),
        |entries| entries.map(|entry| entry.expect("an entry").path()).collect(),
    );
    files.sort();
    let mut seeds = files.iter().map(|file| fs::read(file).expect("a seed")).collect::<Vec<_>>();
    if seeds.is_empty() {
        seeds.push((0..=255).collect());
    }
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for seed in &seeds {
        for mutation in 0..=MUTATIONS {
            let mut input = seed.clone();
            if mutation > 0 {
                let other = &seeds[random.below(seeds.len())];
                random.mutate(&mut input, other);
            }
            if let Err(reason) = panic::catch_unwind(|| target(&input)) {
                let file = std::env::temp_dir().join(format!("{name}-{mutation}.fuzz"));
                fs::write(&file, &input).expect("room for an input");
                eprintln!("the input is in {}", file.display());
                panic::resume_unwind(reason);
            }
        }
    }
}

macro_rules! targets {
    ($($name:ident)*) => { $(#[test] fn $name() { run(stringify!($name), tracewalk_fuzz::$name); })* };
}

targets! {
    coverage description dump elf etmv3 etmv4 flow frames itm mtb path perf pft recording saved snapshot stm svd
}
