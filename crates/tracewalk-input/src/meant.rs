//! Usual spellings of processors, containers and protocols, and their meanings.
//!
//! A user who writes `m7`, `stm32f4` or `etb` has not misspelt a word: the nearest known word means something
//! else.

use crate::nearest::nearest_within;

/// A word and its meaning, which is empty if nothing known fits.
type Meaning = (&'static str, &'static str);

/// Families of chips by prefixes of their names, and processors by short names.
const CPUS: &[Meaning] = &[
    ("m0+", "cortex-m0plus"),
    ("m0plus", "cortex-m0plus"),
    ("m0", "cortex-m0"),
    ("m1", "cortex-m1"),
    ("m3", "cortex-m3"),
    ("m4f", "cortex-m4"),
    ("m4", "cortex-m4"),
    ("m7", "cortex-m7"),
    ("m23", "cortex-m23"),
    ("m33", "cortex-m33"),
    ("m55", "cortex-m55"),
    ("m85", "cortex-m85"),
    ("r4", "cortex-r4"),
    ("r5", "cortex-r5"),
    ("r7", "cortex-r7"),
    ("r8", "cortex-r8"),
    ("a5", "cortex-a5"),
    ("a7", "cortex-a7"),
    ("a8", "cortex-a8"),
    ("a9", "cortex-a9"),
    ("a15", "cortex-a15"),
    ("a17", "cortex-a17"),
];

const CHIPS: &[Meaning] = &[
    ("stm32f0", "cortex-m0"),
    ("stm32f1", "cortex-m3"),
    ("stm32f2", "cortex-m3"),
    ("stm32f3", "cortex-m4"),
    ("stm32f4", "cortex-m4"),
    ("stm32f7", "cortex-m7"),
    ("stm32g0", "cortex-m0plus"),
    ("stm32g4", "cortex-m4"),
    ("stm32h5", "cortex-m33"),
    ("stm32h7", "cortex-m7"),
    ("stm32l0", "cortex-m0plus"),
    ("stm32l1", "cortex-m3"),
    ("stm32l4", "cortex-m4"),
    ("stm32l5", "cortex-m33"),
    ("stm32u5", "cortex-m33"),
    ("gd32f1", "cortex-m3"),
    ("gd32f4", "cortex-m4"),
    ("nrf51", "cortex-m0"),
    ("nrf52", "cortex-m4"),
    ("nrf53", "cortex-m33"),
    ("nrf91", "cortex-m33"),
    ("rp2040", "cortex-m0plus"),
    ("rp2350", "cortex-m33"),
    ("lpc11", "cortex-m0"),
    ("lpc13", "cortex-m3"),
    ("lpc17", "cortex-m3"),
    ("lpc18", "cortex-m3"),
    ("lpc40", "cortex-m4"),
    ("lpc43", "cortex-m4"),
    ("lpc55", "cortex-m33"),
    ("sam3", "cortex-m3"),
    ("sam4", "cortex-m4"),
    ("samd21", "cortex-m0plus"),
    ("samd51", "cortex-m4"),
    ("same70", "cortex-m7"),
    ("imxrt10", "cortex-m7"),
    ("efm32gg11", "cortex-m4"),
];

const CONTAINERS: &[Meaning] = &[
    ("etb", "frames"),
    ("etf", "frames"),
    ("etr", "frames"),
    ("tmc", "frames"),
    ("coresight", "frames"),
    ("formatter", "frames"),
    ("port", "tpiu"),
    ("traceport", "tpiu"),
    ("swo", "raw"),
    ("swv", "raw"),
    ("uart", "raw"),
    ("etm", "raw"),
    ("itm", "raw"),
    ("binary", "raw"),
];

/// A protocol that is not decoded has no replacement.
const PROTOCOLS: &[Meaning] = &[
    ("etm", "etmv3"),
    ("etm3", "etmv3"),
    ("etm4", "etmv4"),
    ("ete", "etmv4"),
    ("swo", "itm"),
    ("swv", "itm"),
    ("dwt", "itm"),
    ("ptmv1", "pft"),
    ("etb", ""),
    ("tpiu", ""),
];

/// The processor that was meant, as `cpu=` accepts it: one of `known`, or the processor of a short name or a
/// chip.
pub(crate) fn cpu(given: &str, known: impl IntoIterator<Item = &'static str>) -> &'static str {
    let word = folded(given);
    let chip = CHIPS.iter().filter(|(chip, _)| word.starts_with(chip)).max_by_key(|(chip, _)| chip.len());
    let short = || CPUS.iter().find(|(short, _)| *short == word);
    let meant = chip.or_else(short).map(|(_, cpu)| *cpu);
    meant.or_else(|| nearest_within(given, known)).unwrap_or_default()
}

/// The container that was meant.
pub(crate) fn container(given: &str, known: impl IntoIterator<Item = &'static str>) -> &'static str {
    of(CONTAINERS, given, known)
}

/// The protocol that was meant; empty for a protocol that is not decoded.
pub(crate) fn protocol(given: &str, known: impl IntoIterator<Item = &'static str>) -> &'static str {
    of(PROTOCOLS, given, known)
}

fn of(meanings: &[Meaning], given: &str, known: impl IntoIterator<Item = &'static str>) -> &'static str {
    let word = folded(given);
    let meant = meanings.iter().find(|(said, _)| *said == word).map(|(_, meant)| *meant);
    meant.or_else(|| nearest_within(given, known)).unwrap_or_default()
}

/// The word in lower case, without the separators between its parts.
fn folded(word: &str) -> String {
    let letters = word.chars().take(64).filter(|letter| !matches!(letter, '-' | '_' | ' ' | '.'));
    letters.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::{Container, Protocol, SourceDescription};
    use crate::cpu::{Profile, UsualRegisters};

    #[test]
    fn what_is_meant_is_known() {
        for (word, meant) in CPUS.iter().chain(CHIPS) {
            assert!(Profile::of_cpu(meant).is_some(), "{word}");
            assert_eq!(cpu(word, UsualRegisters::cpus()), *meant, "{word}");
        }
        for (word, meant) in CONTAINERS {
            assert!(meant.parse::<Container>().is_ok(), "{word}");
        }
        for (word, meant) in PROTOCOLS.iter().filter(|(_, meant)| !meant.is_empty()) {
            assert!(
                meant
                    .parse::<SourceDescription>()
                    .is_ok_and(|source| source.protocol != Protocol::Unknown(String::new())),
                "{word}"
            );
        }
    }

    #[test]
    fn people_are_understood_and_nothing_is_suggested_that_is_another_thing() {
        let cpu = |word| cpu(word, UsualRegisters::cpus());
        let words =
            ["m3", "M7", "stm32f4", "STM32F407VG", "lpc1769", "nRF52840", "rp2040", "crotex-m3", "z80", "x"];
        let meant = [
            "cortex-m3",
            "cortex-m7",
            "cortex-m4",
            "cortex-m4",
            "cortex-m3",
            "cortex-m4",
            "cortex-m0plus",
            "cortex-m3",
            "",
            "",
        ];
        assert_eq!(words.map(cpu), meant);
        let container = |word| container(word, ["auto", "frames", "tpiu", "raw", "mtb"]);
        let words = ["etb", "ETR", "swo", "TPIU", "tpui", "frame", "pcap"];
        assert_eq!(words.map(container), ["frames", "frames", "raw", "tpiu", "tpiu", "frames", ""]);
        let protocol = |word| protocol(word, Protocol::NAMES);
        let words = ["etm", "etmv4", "ETE", "swo", "pfts", "unknwon"];
        assert_eq!(words.map(protocol), ["etmv3", "etmv4", "etmv4", "itm", "pft", "unknown"]);
    }
}
