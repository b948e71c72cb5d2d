//! Chips whose trace units need knowledge that no ROM table has: text files, of which some are built in.
//!
//! A file has one item on a line, and comments after `#`:
//!
//! ```text
//! unit KIND ADDRESS                                       etmv3, etmv4, mtb, etb, tmc, funnel, tpiu, itm or dwt
//! ring pointer=ADDRESS left=ADDRESS of=WORDS most=BITS    something writes the trace to a ring of memory: where its next word
//!                                                         goes, how many words are left, and the largest ring
//! overflow address=ADDRESS mask=BITS                      what shows that words were lost
//! pins COUNT                                              the trace leaves through this number of data pins
//! PHASE UNIT REGISTER ADDRESS write VALUE                 PHASE is setup, stop or restore
//! PHASE UNIT REGISTER ADDRESS clear BITS set BITS         either may be left out
//! PHASE UNIT REGISTER ADDRESS set BITS key BITS           the key stands in what is written
//! PHASE UNIT REGISTER ADDRESS poll MASK VALUE
//! PHASE UNIT REGISTER ADDRESS restore
//! ```
//!
//! In a value, `BUFFER` is the ring's address, `RING` its size's number of bits from bit 8 on, and `COUNT` the words that are written
//! until the transfer ends, joined by `|`. If the recording ends when the memory is full, `RING` is 0.

use std::fmt;

use crate::plan::{Register, Step};
use crate::rom::{Kind, Unit};

/// The chips that are built in: the name, and the file's text.
pub const KNOWN: [(&str, &str); 8] = [
    ("imxrt1050", include_str!("../chips/imxrt1050.txt")),
    ("lpc43xx", include_str!("../chips/lpc43xx.txt")),
    ("nrf52840", include_str!("../chips/nrf52840.txt")),
    ("nrf5340", include_str!("../chips/nrf5340.txt")),
    ("nrf9160", include_str!("../chips/nrf9160.txt")),
    ("rp2350", include_str!("../chips/rp2350.txt")),
    ("stm32f4", include_str!("../chips/stm32f4.txt")),
    ("stm32h7", include_str!("../chips/stm32h7.txt")),
];

/// What is known of a chip.
#[derive(Clone, Debug, Default)]
pub struct Chip {
    /// Its trace units.
    pub(crate) units: Vec<Unit>,
    pub(crate) ring: Option<Ring>,
    /// The register and its bits that show that trace was lost.
    pub(crate) overflow: Option<(u32, u32)>,
    /// The number of pins through which the trace leaves.
    pub(crate) pins: Option<u32>,
    steps: Vec<(Phase, String, String, u32, Vec<String>)>,
}

/// A ring in memory, and who fills it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ring {
    pub(crate) pointer: u32,
    pub(crate) left: u32,
    /// The bits that count words in the register of those that are left.
    pub(crate) of: u32,
    /// The words of the whole transfer.
    pub(crate) count: u32,
    pub(crate) most: u32,
}

/// When a step is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Setup,
    Stop,
    Restore,
}

/// A line of a chip's file that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChipError {
    /// The line, from 1.
    pub line: usize,
    /// Its text.
    pub text: String,
}

impl std::error::Error for ChipError {}

impl fmt::Display for ChipError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: `{}` is not an item of a chip's description", self.line, self.text)
    }
}

impl Chip {
    /// Reads a chip's file.
    ///
    /// # Errors
    ///
    /// If a line is no item.
    pub fn parse(text: &str) -> Result<Self, ChipError> {
        let mut chip = Self::default();
        for (line, text) in (1..).zip(text.lines()) {
            let item = text.split('#').next().unwrap_or_default();
            let words = item.split_whitespace().collect::<Vec<_>>();
            chip.item(&words).ok_or_else(|| ChipError { line, text: text.to_owned() })?;
        }
        match chip.units.is_empty() && chip.steps.is_empty() {
            true => Err(ChipError { line: 1, text: String::new() }),
            false => Ok(chip),
        }
    }

    fn item(&mut self, words: &[&str]) -> Option<()> {
        match *words {
            [] => {}
            ["unit", kind, base] => {
                let kind = kind_of(kind)?;
                self.units.push(Unit { kind, base: number(base)?, part: 0 });
            }
            ["ring", ref fields @ ..] => {
                let field = |name| fields.iter().find_map(|field| field.strip_prefix(name)).and_then(number);
                let [pointer, left] = [field("pointer=")?, field("left=")?];
                let of = field("of=")?;
                self.ring = Some(Ring { pointer, left, of, count: of, most: field("most=")? });
            }
            ["overflow", address, mask] => {
                let address = address.strip_prefix("address=").and_then(number)?;
                self.overflow = Some((address, mask.strip_prefix("mask=").and_then(number)?));
            }
            ["pins", count] => self.pins = Some(number(count).filter(|count| (1..=32).contains(count))?),
            [phase, unit, register, address, ref access @ ..] => {
                let phase = match phase {
                    "setup" => Phase::Setup,
                    "stop" => Phase::Stop,
                    "restore" => Phase::Restore,
                    _ => return None,
                };
                let at = Register { unit: "", base: number(address)?, name: "", offset: 0 };
                step(at, access, Filled::default())?;
                let access = access.iter().map(|word| (*word).to_owned()).collect();
                self.steps.push((phase, unit.to_owned(), register.to_owned(), at.base, access));
            }
            _ => return None,
        }
        Some(())
    }

    /// The steps of a phase.
    pub(crate) fn steps(&self, wanted: Phase, filled: Filled) -> Vec<Step> {
        let steps = self.steps.iter().filter(|(phase, ..)| *phase == wanted);
        let step = |(_, unit, name, base, access): &(_, String, String, u32, Vec<String>)| {
            // A program reads one description of a chip, so its names may last as long as it.
            let [unit, name] = [unit, name].map(|name| &*Box::leak(name.clone().into_boxed_str()));
            let words = access.iter().map(String::as_str).collect::<Vec<_>>();
            step(Register { unit, base: *base, name, offset: 0 }, &words, filled)
        };
        steps.filter_map(step).collect()
    }
}

/// What the names in a value stand for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Filled {
    pub(crate) buffer: u32,
    pub(crate) bits: u32,
    pub(crate) count: u32,
}

fn step(at: Register, access: &[&str], filled: Filled) -> Option<Step> {
    let value = |text: &str| {
        text.split('|').try_fold(0, |sum, part| {
            Some(
                sum | match part {
                    "BUFFER" => filled.buffer,
                    "RING" => filled.bits << 8,
                    "COUNT" => filled.count,
                    _ => number(part)?,
                },
            )
        })
    };
    Some(match *access {
        ["write", text] => Step::Write(at, value(text)?),
        ["clear", clear] => Step::Change { at, clear: number(clear)?, set: 0, key: 0 },
        ["set", set] => Step::Change { at, clear: 0, set: number(set)?, key: 0 },
        ["clear", clear, "set", set] => Step::Change { at, clear: number(clear)?, set: number(set)?, key: 0 },
        ["set", set, "key", key] => Step::Change { at, clear: 0, set: number(set)?, key: number(key)? },
        ["poll", mask, text] => Step::Poll { at, mask: number(mask)?, value: value(text)? },
        ["restore"] => Step::Restore(at),
        _ => return None,
    })
}

fn kind_of(name: &str) -> Option<Kind> {
    Some(match name {
        "mtb" => Kind::Mtb,
        "etmv3" => Kind::Etmv3,
        "etmv4" => Kind::Etmv4,
        "etb" => Kind::Etb,
        "tmc" => Kind::Tmc,
        "funnel" => Kind::Funnel,
        "tpiu" => Kind::Tpiu,
        "itm" => Kind::Itm,
        "dwt" => Kind::Dwt,
        _ => return None,
    })
}

fn number(text: &str) -> Option<u32> {
    text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |digits| u32::from_str_radix(digits, 16).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_chips_are_read() {
        for (name, text) in KNOWN {
            let chip = Chip::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(!chip.steps(Phase::Setup, Filled::default()).is_empty(), "{name}");
            assert!(
                chip.ring.is_some() || chip.pins.is_some() || !chip.units.is_empty() || *name == *"lpc43xx"
            );
            let restored = chip.steps(Phase::Restore, Filled::default());
            for step in chip.steps(Phase::Setup, Filled::default()) {
                let is_undone =
                    || restored.iter().any(|other| other.register().address() == step.register().address());
                assert!(!matches!(step, Step::Change { .. }) || is_undone(), "{name}: {step}");
            }
        }
        let chip = Chip::parse("setup DMA CTRL 0x100 write 0x1|RING\nsetup DMA TO 0x104 write BUFFER")
            .expect("two items");
        let steps = chip.steps(Phase::Setup, Filled { buffer: 0x2000_0000, bits: 12, count: 0 });
        let values = steps.iter().map(|step| if let Step::Write(_, value) = step { *value } else { 0 });
        assert_eq!(values.collect::<Vec<_>>(), [0xc01, 0x2000_0000]);
    }

    #[test]
    fn a_line_that_is_no_item_is_named() {
        assert!(Chip::parse("# nothing").is_err());
        for text in
            ["unit etm9 0x0", "unit etmv4 there", "setup DMA CTRL 0x100 write", "ring pointer=0x1", "begin"]
        {
            assert_eq!(
                Chip::parse(&format!("# a chip\n{text}")).map_err(|error| error.line).err(),
                Some(2),
                "{text}"
            );
        }
    }
}
